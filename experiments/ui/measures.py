"""Tables of an agent's distance from optimal play, as `dice_envs.measure` found it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dice_envs import Measures
from dice_envs.core.options import options_text
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid, plus_minus
from dice_envs.experiments.ui.progress import progress

__all__ = ["measures_grid", "measuring", "show"]

WORDS = (0, 5, 6)


@contextlib.contextmanager
def measuring(agent: str) -> Iterator[Callable[[float, float], Any]]:
    """Show the progress of one measurement; yields the callback `done` for `measure`."""
    with progress(f"measuring {agent}") as done:
        yield lambda amount, total: done(amount / total)


def _rows(measured: Measures) -> list[tuple[str, ...]]:
    """Return a row for each measure: its name, the agent's value, error, optimum, gap, unit and note."""
    rows: list[tuple[str, ...]] = []
    for each in measured.measures:
        value, optimum, gap = (f"{figure:.5f}" for figure in (each.value, each.optimum, each.gap))
        rows.append((each.name, value, f"{each.error:.5f}" if each.error else "exact", optimum, gap, each.unit, each.note))
    return rows


def measures_grid(measured: Measures) -> Grid:
    """Return the measurements as a table of a page, with the score below it."""
    score = [] if measured.score is None else [f"score {measured.score:.6f} (0: uniformly random play, 1: optimal)"]
    headings = ("quantity", "agent", "± 95 %", "optimal", "gap", "unit", "note")
    return Grid(measured.agent, headings, _rows(measured), WORDS, score)


def show(measured: Measures, trained: bool = False) -> None:
    """Print the measurements, the headline first, and the score.

    Measurements of a trained response are compared with the even share instead of the optimum, and have no score.
    """
    options = f" ({options_text(measured.options)})" if measured.options else ""
    title = f"{measured.agent} in {measured.game}{options}"
    compared = ("response", "±", "even share", "above it") if trained else ("agent", "±", "optimal", "gap")
    Grid(f"{title}, seed {measured.seed}", ("quantity", *compared, "unit", "note"), _rows(measured), WORDS).show()
    if trained:
        return
    if measured.score is None:
        console.print("score: none, since uniformly random play is optimal here")
    else:
        score = plus_minus(measured.score, measured.score_error or None, 6)
        console.print(f"score {score} (0: uniformly random play, 1: optimal)")
