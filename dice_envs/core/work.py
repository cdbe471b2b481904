"""Work that somebody waits for: how far it is, and how much time and memory it may take.

    with work(seconds=60):
        measure("liars_dice", agent)

Long computations call `advance` on their way, and `needs` before they begin. They don't know who waits, or where. (A thread
that is to belong to the work runs in a copy of its context, see `contextvars.copy_context`.)
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from dice_envs.core.kernel import clock

FORETELLS_FROM = 0.01  # share of the work done before the remaining time is estimated
SILENT = 10.0  # seconds without a line before the time left is printed
LOOKS = 2.0  # seconds before the whole time is estimated from the progress so far
MUCH_LESS = 50  # tolerated overestimate of the total time, as a factor
HINT_SECONDS, HINT_MEMORY = 60.0, 2**29  # what people wait for who want to play, and the bytes that it may take

Tell: TypeAlias = Callable[[float, float], Any]  # called with the work done since the last call, and that in all


class Unwanted(Exception):
    """Raised by a listener, or before the work begins: nobody waits for its result any more."""


class TooLong(ValueError):
    """Work takes more than may be taken for it. The message says what takes so much."""


def _silent(amount: float, of: float) -> None:
    pass


@dataclasses.dataclass
class Work:
    """A block of work, see `work`."""

    tell: Tell
    say: Callable[[str], Any] | None
    seconds: float
    memory: float
    most: float
    outer: Work | None
    began: float
    amount: float = 0.0  # done so far
    of: float = 1.0  # in all, as told last

    def advance(self, amount: float, of: float) -> None:
        """Do as the function `advance`, in this block."""
        self.amount, self.of, now = self.amount + amount, of, clock()
        # What an agent never reaches is skipped, so the whole may take far less than the first part suggests.
        least = (now - self.began) * of / MUCH_LESS if now - self.began > LOOKS else 0.0
        for each in _around(self):
            if of > each.most or now - each.began > each.seconds or least > each.seconds * self.amount:
                raise TooLong(f"{of:,.0f} positions")
        self.tell(amount, of)

    def undo(self) -> None:
        """Say that all of it has to be done again."""
        self.tell(-self.amount, self.of)


@dataclasses.dataclass
class _Counting(Work):
    """A block that hands its progress on: limits are checked there."""

    def advance(self, amount: float, of: float) -> None:
        self.amount, self.of = self.amount + amount, of
        self.tell(amount, of)


_now: contextvars.ContextVar[Work | None] = contextvars.ContextVar("work", default=None)


def _around(innermost: Work | None) -> Iterator[Work]:
    """Yield a block of work and those that it is in."""
    while innermost is not None:
        yield innermost
        innermost = innermost.outer


@contextlib.contextmanager
def work(
    tell: Tell | None = None,
    *,
    say: Callable[[str], Any] | None = None,
    seconds: float = float("inf"),
    memory: float = float("inf"),
    most: float = float("inf"),
) -> Iterator[Work]:
    """Do a block of work for somebody who waits. What advances in it is not progress of the work around it.

    Args:
        tell: called with its progress, as (amount done since the last call, amount in all), in units such as positions or
            games. It may raise an exception to stop the work.
        say: called with lines in words; it may raise an exception, too. None: those go to the work around it.
        seconds: after these, or when they will clearly be exceeded, `advance` raises TooLong, also in blocks within this one;
            `needs` does so at once. Time in which kernels are compiled does not count.
        memory: bytes, for `needs`.
        most: `advance` raises TooLong for a larger amount in all.
    """
    with _entered(Work(tell or _silent, say, seconds, memory, most, _now.get(), clock())) as block:
        yield block


@contextlib.contextmanager
def _entered(block: Work) -> Iterator[Work]:
    token = _now.set(block)
    try:
        yield block
    finally:
        _now.reset(token)


def apart() -> contextlib.AbstractContextManager[object]:
    """Return a block whose progress is nobody's, such as that of an agent which solves something before it answers."""
    return contextlib.nullcontext() if _now.get() is None else work()


def hinting() -> contextlib.AbstractContextManager[object]:
    """Return a block of work for people who want to play: see `work`."""
    return work(seconds=HINT_SECONDS, memory=HINT_MEMORY)


def advance(amount: float = 1, of: float = 1) -> None:
    """Say that so much more of the work is done, of so much in all. TooLong where it takes longer than it may."""
    if (now := _now.get()) is not None:
        now.advance(amount, of)


def counting(of: float | None = None, share: float = 1.0) -> contextlib.AbstractContextManager[Work]:
    """Return a block that is a share of the work around it, which advances with it; `of`: its amount in all, if that is known
    here."""
    now = _now.get()

    def tell(amount: float, total: float) -> None:
        if now is not None:
            now.advance(amount, (total if of is None else of) / share)

    inf = float("inf")
    return _entered(_Counting(tell, None, inf, inf, inf, now, clock()))


def limits() -> tuple[float, float]:
    """Return the seconds and the bytes of memory that work may take here, infinity where nothing limits it."""
    around = [(each.seconds, each.memory) for each in _around(_now.get())]
    inf = float("inf")
    return min((seconds for seconds, _ in around), default=inf), min((memory for _, memory in around), default=inf)


def needs(what: str, seconds: float = 0.0, memory: float = 0.0) -> None:
    """Raise TooLong if the work, of which `what` says how large it is, takes more than may be taken here; by an estimate."""
    most_seconds, most_memory = limits()
    if seconds > most_seconds:
        raise TooLong(f"{what}, which takes about {duration(seconds)}; up to {duration(most_seconds)} are waited for")
    if memory > most_memory:
        raise TooLong(f"{what}, which takes about {memory / 2**30:,.1f} GiB; up to {most_memory / 2**30:,.1f} may be taken")


def is_watched() -> bool:
    """Return whether the work is part of some that somebody watches or limits."""
    return _now.get() is not None


def is_heard() -> bool:
    """Return whether `say` has a listener."""
    return any(each.say is not None for each in _around(_now.get()))


def say(line: str) -> None:
    """Hand a line of progress to the listener; without one print it on standard error."""
    listener = next((each.say for each in _around(_now.get()) if each.say is not None), None)
    if listener is None:
        print(line, file=sys.stderr, flush=True)
    else:
        listener(line)


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


def foretold(clock: Callable[[], float] = clock) -> Tell:
    """Return a `tell` of `work` that writes one line to standard error, the time left, if the work takes over ten seconds."""
    start, amount_done, is_told, left = clock(), 0.0, False, time_left(clock)

    def told(amount: float, of: float) -> None:
        nonlocal amount_done, is_told
        amount_done += amount
        share = amount_done / of
        seconds = left(share)
        if is_told or clock() - start < SILENT or not seconds:
            return
        is_told = True
        print(f"measuring: {100 * share:.0f} % of {of:,.0f} positions, about {duration(seconds)} left", file=sys.stderr)

    return told


def duration(seconds: float) -> str:
    """Return a time in words: seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"
