"""Progress of long computations: messages to a listener or to standard error, and callbacks for `measure`.

A game may have to be solved before an agent moves or a hint is given. `say` reports this from inside; a program that shows
progress elsewhere, such as the page, runs the work within `followed`. Callbacks for `measure` say how long it will take, or
stop it where that is too long.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

FORETELLS_FROM = 0.01  # share of the work done before the remaining time is estimated
SILENT = 10.0  # seconds without a progress callback before the time left is printed
LOOKS = 2.0  # seconds before the whole time is estimated from the progress so far
MUCH_LESS = 50  # tolerated overestimate of the total time, as a factor

_listener: contextvars.ContextVar[Callable[[str], Any] | None] = contextvars.ContextVar("listener", default=None)


class Unwanted(Exception):
    """Raised by a listener, or before the work begins: nobody waits for its result any more."""


@contextlib.contextmanager
def followed(listener: Callable[[str], Any]) -> Iterator[None]:
    """Send the lines of computations in this thread to the listener, which may raise an exception to stop them."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_followed() -> bool:
    """Return whether a listener gets the lines."""
    return _listener.get() is not None


def say(line: str) -> None:
    """Hand a line of progress to the listener; without one print it on standard error."""
    listener = _listener.get()
    if listener is None:
        print(line, file=sys.stderr, flush=True)
    else:
        listener(line)


class TooLong(Exception):
    """A measurement needs more positions, or more time, than allowed. The message is its number of positions."""


def up_to(most: int, done: Callable[[float, float], Any] = lambda amount, total: None) -> Callable[[float, float], Any]:
    """Return a progress callback that raises TooLong if there are more than `most` positions, and else calls `done`."""

    def checked(amount: float, total: float) -> None:
        if total > most:
            raise TooLong(f"{total:,.0f} positions")
        done(amount, total)

    return checked


def within(minutes: float, done: Callable[[float, float], Any] = lambda amount, total: None) -> Callable[[float, float], Any]:
    """Return a progress callback that raises TooLong after the time limit, or when it will clearly be exceeded, and else calls
    `done`.

    Positions that an agent never reaches are skipped, so the whole may take far less than the first part suggests.
    """
    start, amount_done = time.perf_counter(), 0.0

    def checked(amount: float, total: float) -> None:
        nonlocal amount_done
        amount_done += amount
        seconds = time.perf_counter() - start
        if seconds > 60 * minutes or (seconds > LOOKS and seconds * total > MUCH_LESS * 60 * minutes * amount_done):
            raise TooLong(f"{total:,.0f} positions")
        done(amount, total)

    return checked


def time_left(clock: Callable[[], float]) -> Callable[[float], float | None]:
    """Return a function from the share of work that is done to the seconds left; None while that cannot be told.

    Time counts from the function's first call: until then kernels may have compiled.
    """
    first: list[float] = []

    def left(share: float) -> float | None:
        now = clock()
        if not first:
            first.extend((now, share))
        began, before = first
        if share < FORETELLS_FROM or share <= before:
            return None
        return (now - began) * max(0.0, 1 - share) / (share - before)

    return left


def foretold(clock: Callable[[], float] = time.perf_counter) -> Callable[[float, float], Any]:
    """Return a progress callback that writes one line to standard error, the time left, if the work takes over ten seconds."""
    start, amount_done, is_told, left = clock(), 0.0, False, time_left(clock)

    def told(amount: float, total: float) -> None:
        nonlocal amount_done, is_told
        amount_done += amount
        share = amount_done / total
        seconds = left(share)
        if is_told or clock() - start < SILENT or not seconds:
            return
        is_told = True
        print(f"measuring: {100 * share:.0f} % of {total:,.0f} positions, about {duration(seconds)} left", file=sys.stderr)

    return told


def duration(seconds: float) -> str:
    """Return a time in words: seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
