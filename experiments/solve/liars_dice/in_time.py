"""Solving with lines of progress, within the time that is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dice_envs.exact.liars_dice.solver import OutOfTimeError, Progress, throttled
from dice_envs.experiments.ui.console import console

__all__ = ["SAY_EVERY", "in_time"]

SAY_EVERY = 2.0  # seconds between two lines about a round that is not finished

Found = TypeVar("Found")


def in_time(
    solve: Callable[..., Found], minutes: float | None, line_of: Callable[[Progress], str], *args: Any, **settings: Any
) -> Found:
    """Solve with lines of progress, within some minutes if they are given.

    Raises:
        ValueError: the time is too short.
    """
    done = throttled(lambda progress: console.print(line_of(progress)), SAY_EVERY, ends=True)
    try:
        return solve(*args, seconds=60 * minutes if minutes else float("inf"), done=done, **settings)
    except OutOfTimeError as problem:
        raise ValueError(f"--minutes {minutes} is too short: {problem}") from None
