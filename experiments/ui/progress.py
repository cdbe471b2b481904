"""Progress of long work: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from dice_envs.exact.progress import duration, time_left

SOON, LATER = 10.0, 30.0  # seconds before the first line of progress, and between lines once the time left is known


@contextlib.contextmanager
def progress(
    what: str, total: float | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[..., None]]:
    """Show a progress bar, or occasional lines where standard error is not a terminal.

    Args:
        what: the work, as the line names it.
        total: amount of work in all, in pieces that are worth counting; None: only its share is shown, in per cent.
        clock: seconds now.

    Yields:
        A callback that takes the work done since the last call: its amount, 1 if left out, or its share of the whole.
    """
    errors = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not errors.is_terminal:
        yield _Lines(what, total, clock)
        return
    counted = TaskProgressColumn() if total is None else MofNCompleteColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), counted, TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(what, total=1 if total is None else total)
        yield lambda amount=1: bar.advance(task, amount)


class _Lines:
    """Progress as lines on standard error: `3 × 2,000 games: 25 %, 1,500 of 6,000, about 2 min left`."""

    def __init__(self, what: str, total: float | None, clock: Callable[[], float]) -> None:
        self.what, self.total, self.clock = what, total, clock
        self.amount = 0.0
        self.left = time_left(clock)
        self.next_line = clock() + SOON

    def __call__(self, amount: float = 1) -> None:
        self.amount += amount
        now = self.clock()
        share = self.amount if self.total is None else self.amount / self.total
        seconds = self.left(share)
        if now < self.next_line:
            return
        line = f"{self.what}: {100 * share:.0f} %"
        if self.total is not None:
            line += f", {self.amount:,.0f} of {self.total:,.0f}"
        if seconds is not None:
            line += f", about {duration(seconds)} left"
        self.next_line = now + (SOON if seconds is None else LATER)
        with contextlib.suppress(OSError):  # a line that cannot be written must not stop the work
            typer.echo(line, err=True)
