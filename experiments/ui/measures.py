"""How far an agent is from optimal play: the table of `dice_envs.measure`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rich.table import Table

from dice_envs import Measures
from dice_envs.core.options import options_text
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.progress import progress

__all__ = ["measuring", "show"]


@contextlib.contextmanager
def measuring(agent: str) -> Iterator[Callable[[int, int], Any]]:
    """Progress of one measurement in percent; yields what `measure` takes as `done`."""
    with progress(f"measuring {agent}, %", 100) as done:
        yield lambda amount, total: done(100 * amount / total)


def show(measured: Measures, trained: bool = False) -> None:
    """The measurements on the terminal, the headline first, and the score.

    Those of a trained response stand beside the even share in place of the optimum, and have no score.
    """
    options = f" ({options_text(measured.options)})" if measured.options else ""
    title = f"{measured.agent} in {measured.game}{options}"
    table = Table(title=f"{title}, seed {measured.seed}", title_justify="left")
    table.add_column("quantity")
    for heading in ("response", "±", "even share", "above it") if trained else ("agent", "±", "optimal", "gap"):
        table.add_column(heading, justify="right")
    table.add_column("unit")
    table.add_column("note", overflow="fold")
    for each in measured.measures:
        figures = [f"{value:.6f}" for value in (each.value, each.optimum, each.gap)]
        error = f"{each.error:.6f}" if each.error else "exact"
        table.add_row(each.name, figures[0], error, figures[1], figures[2], each.unit, each.note)
    console.print(table)
    if trained:
        return
    if measured.score is None:
        console.print("score: none, since uniformly random play is optimal here")
    else:
        error = f" ± {measured.score_error:.6f}" if measured.score_error else ""
        console.print(f"score {measured.score:.6f}{error} (0: uniformly random play, 1: optimal)")
