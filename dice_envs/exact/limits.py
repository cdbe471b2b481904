"""Limits on a measurement: progress callbacks for `measure` that stop one that takes too long."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["TooLong", "up_to", "within"]

LOOKS = 2.0  # seconds before the whole time is estimated from the progress so far
MUCH_LESS = 50  # a measurement may take this many times less than estimated


class TooLong(Exception):
    """A measurement needs more positions, or more time, than allowed. The message is its number of positions."""


def up_to(most: int, done: Callable[[float, float], Any] = lambda amount, total: None) -> Callable[[float, float], Any]:
    """Return a progress callback that raises TooLong if there are more than `most` positions, and else calls `done`."""

    def checked(amount: float, total: float) -> None:
        if total > most:
            raise TooLong(f"{total:,.0f} positions")
        done(amount, total)

    return checked


def within(minutes: float) -> Callable[[float, float], Any]:
    """Return a progress callback that raises TooLong after the time limit, or when it will clearly be exceeded.

    Positions that an agent never reaches are skipped, so the whole may take far less than the first part suggests.
    """
    start, amount_done = time.perf_counter(), 0.0

    def checked(amount: float, total: float) -> None:
        nonlocal amount_done
        amount_done += amount
        seconds = time.perf_counter() - start
        if seconds > 60 * minutes or (seconds > LOOKS and seconds * total > MUCH_LESS * 60 * minutes * amount_done):
            raise TooLong(f"{total:,.0f} positions")

    return checked
