"""Work that somebody waits for: how far it is, and how much time and memory it may take.

    with work(seconds=60):
        measure("liars_dice", agent)

Long computations call `advance` on their way, and `needs` before they begin. They don't know who waits, or where. (A thread
that is to belong to the work runs in a copy of its context, see `contextvars.copy_context`.)
"""

from __future__ import annotations

import contextvars
import math
import sys
import time
from collections.abc import Callable
from typing import Any, Self, TypeAlias

_compiling = {"perf_counter": 0.0, "process_time": 0.0}  # clock of `time` → seconds in which kernels were compiled
try:
    from numba.core import event

    class _Compiling(event.Listener):  # type: ignore[misc,unused-ignore]
        """Adds up the time in which kernels are compiled. One may be compiled within another."""

        depth = 0

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.began = {name: getattr(time, name)() for name in _compiling}
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                for name, began in self.began.items():
                    _compiling[name] += getattr(time, name)() - began

    event.register("numba:compile", _Compiling())
except (ImportError, AttributeError):  # pragma: no cover - another numba
    pass

FORETELLS_FROM = 0.01  # share of the work done before the remaining time is estimated
SILENT = 10.0  # seconds without a line before the time left is printed
LOOKS = 2.0  # seconds before the whole time is estimated from the progress so far
MUCH_LESS = 50  # tolerated overestimate of the total time, as a factor
HINT_SECONDS, HINT_MEMORY = 60.0, 2**29  # what people wait for who want to play, and the bytes that it may take

Tell: TypeAlias = Callable[[float, float], Any]  # called with the work done since the last call, and that in all


def clock(name: str = "perf_counter") -> float:
    """Return seconds by a clock, "perf_counter" or "process_time", less those in which kernels were compiled."""
    seconds: float = getattr(time, name)() - _compiling[name]
    return seconds


class Unwanted(Exception):
    """Raised by a listener, or before the work begins: nobody waits for its result any more."""


class TooLong(ValueError):
    """Work takes more time or memory than it may. The message says how large it is."""


class work:
    """A block of work for somebody who waits. What advances in it is not progress of the work around it.

    Args:
        tell: called with its progress, as (amount done since the last call, amount in all), in units such as positions or
            games. It may raise an exception to stop the work.
        say: called with lines in words; it may raise an exception, too. None: those go to the work around it.
        seconds: after these, or when they will clearly be exceeded, `advance` raises TooLong, also in blocks within this one;
            `needs` does so at once. Time in which kernels are compiled does not count.
        memory: bytes, for `needs`.
        most: `advance` raises TooLong for a larger amount in all.

    Attributes:
        around: this block and those that it is in, the innermost first.
        amount, of: what is done so far, and in all, as told last.
    """

    amount, of = 0.0, 1.0
    around: tuple[work, ...]

    def __init__(
        self,
        tell: Tell | None = None,
        *,
        say: Callable[[str], Any] | None = None,
        seconds: float = math.inf,
        memory: float = math.inf,
        most: float = math.inf,
    ) -> None:
        self.tell, self.say, self.seconds, self.memory, self.most = tell, say, seconds, memory, most

    def __enter__(self) -> Self:
        self.around, self.began = (self, *_around()), clock()
        self._before = _now.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        _now.reset(self._before)

    def advance(self, amount: float, of: float) -> None:
        """Do as the function `advance`, in this block."""
        self.amount, self.of, now = self.amount + amount, of, clock()
        # What an agent never reaches is skipped, so the whole may take far less than the first part suggests.
        least = (now - self.began) * of / MUCH_LESS if now - self.began > LOOKS else 0.0
        for each in self.around:
            if of > each.most or now - each.began > each.seconds or least > each.seconds * self.amount:
                raise TooLong(f"{of:,.0f} positions")
        if self.tell is not None:
            self.tell(amount, of)

    def undo(self) -> None:
        """Say that all of it has to be done again."""
        if self.tell is not None and self.amount:
            self.tell(-self.amount, self.of)


class counting(work):
    """A block that is a share of the work around it, which advances with it. `whole`: its amount in all, if known."""

    def __init__(self, whole: float | None = None, share: float = 1.0) -> None:
        outer = _now.get()

        def tell(amount: float, of: float) -> None:
            if outer is not None:
                outer.advance(amount, (of if whole is None else whole) / share)

        super().__init__(tell)

    def advance(self, amount: float, of: float) -> None:
        self.amount, self.of = self.amount + amount, of
        if self.tell is not None:
            self.tell(amount, of)  # where limits are checked


_now: contextvars.ContextVar[work | None] = contextvars.ContextVar("work", default=None)


def _around() -> tuple[work, ...]:
    now = _now.get()
    return () if now is None else now.around


def hinting() -> work:
    """Return a block of work for people who want to play."""
    return work(seconds=HINT_SECONDS, memory=HINT_MEMORY)


def advance(amount: float = 1, of: float = 1) -> None:
    """Say that so much more of the work is done, of so much in all. TooLong where it takes longer than it may."""
    if (now := _now.get()) is not None:
        now.advance(amount, of)


def limits() -> tuple[float, float]:
    """Return the seconds and the bytes of memory that work may take here, infinity where nothing limits it."""
    around = _around()
    return min((each.seconds for each in around), default=math.inf), min((each.memory for each in around), default=math.inf)


def needs(what: str, seconds: float = 0.0, memory: float = 0.0) -> None:
    """Raise TooLong if work takes more seconds or bytes, by estimates, than it may here. `what` says how large it is."""
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
    return any(each.say is not None for each in _around())


def say(line: str) -> None:
    """Hand a line of progress to the listener; without one print it on standard error."""
    listener = next((each.say for each in _around() if each.say is not None), None)
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
    start, amount_done, is_printed, left = clock(), 0.0, False, time_left(clock)

    def report(amount: float, of: float) -> None:
        nonlocal amount_done, is_printed
        amount_done += amount
        share = amount_done / of
        seconds = left(share)
        if is_printed or clock() - start < SILENT or not seconds:
            return
        is_printed = True
        print(f"measuring: {100 * share:.0f} % of {of:,.0f} positions, about {duration(seconds)} left", file=sys.stderr)

    return report


def duration(seconds: float) -> str:
    """Return a time in words: seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"
