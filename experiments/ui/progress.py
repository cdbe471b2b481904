"""Progress of long work: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["progress"]

FORETELLS_FROM = 0.002  # share of the work done before the remaining time is estimated
FIRST_LINE, NEXT_LINE = 10.0, 30.0  # seconds before the first line of progress, and between lines


@contextlib.contextmanager
def progress(what: str, total: float, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[..., None]]:
    """Show a progress bar, or occasional lines where standard error is not a terminal.

    Yields:
        A callback that takes the amount of work done since the last call, 1 if left out.
    """
    errors = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not errors.is_terminal:
        yield _Lines(what, total, clock)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount=1: bar.advance(task, amount)


class _Lines:
    """Progress as lines on standard error: `3 × 2,000 games: 25 %, 1,500 of 6,000, about 2 min left`."""

    def __init__(self, what: str, total: float, clock: Callable[[], float]) -> None:
        self.what, self.total, self.clock = what, total, clock
        self.amount = 0.0
        self.start = clock()
        self.next_line = self.start + FIRST_LINE

    def __call__(self, amount: float = 1) -> None:
        self.amount += amount
        now = self.clock()
        if now < self.next_line:
            return
        self.next_line = now + NEXT_LINE
        line = f"{self.what}: {100 * self.amount / self.total:.0f} %, {self.amount:,.0f} of {self.total:,.0f}"
        if self.amount >= FORETELLS_FROM * self.total:
            line += f", about {_duration((now - self.start) * max(0.0, self.total / self.amount - 1))} left"
        with contextlib.suppress(OSError):  # a line that cannot be written must not stop the work
            typer.echo(line, err=True)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
