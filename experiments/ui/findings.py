"""Tables of published figures beside ours, and of an agent's distance from optimal play as `dice_envs.measure` found it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.text import Text

from dice_envs import Measures
from dice_envs.core.options import options_text
from dice_envs.experiments.ui.grids import Grid, plus_minus, show_all
from dice_envs.experiments.ui.progress import progress

INDEPENDENT = "independent computation"  # the source of figures that were computed by another program, and not published


@dataclasses.dataclass
class Finding:
    """A published figure, if there is one, beside ours.

    Attributes:
        source: where it was published; empty if nowhere.
        figure: its name.
        published, ours: the two values.
        error: 0 for an exact figure, else the half-width of a 95 % interval.
        agrees: whether they agree; None without a published figure.
        note: for the reader.
    """

    source: str
    figure: str
    published: float | str | None
    ours: float | str | None
    error: float = 0.0
    agrees: bool | None = None
    note: str = ""


def figure_text(value: float | str | None, digits: int = 6) -> str:
    """Format a figure for tables with at most `digits` decimals; a dash for None."""
    if isinstance(value, float):
        value = round(value, digits) + 0.0  # no -0
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
    return "-" if value is None else str(value)


def findings_grid(title: str, findings: Sequence[Finding], digits: int = 6, error_heading: str = "± 95 %") -> Grid:
    """Return the findings as a table, one a row."""
    rows = []
    for each in findings:
        published, ours, error = (figure_text(value, digits) for value in (each.published, each.ours, each.error))
        rows.append((each.figure, published, ours, error if each.error else "exact", verdict(each.agrees), each.note))
    beside = "computed independently" if {each.source for each in findings} == {INDEPENDENT} else "published"
    return Grid(title, ("figure", beside, "ours", error_heading, "agrees", "note"), rows, (0, 4, 5))


def print_rows(title: str, findings: Sequence[Finding], digits: int = 4) -> None:
    """Print the findings as a table."""
    findings_grid(title, findings, digits, "±").show()


def verdict(agrees: bool | None) -> Text:
    """Return a green yes, a red no, or nothing for None."""
    return Text("") if agrees is None else Text("yes", "green") if agrees else Text("no", "red")


# --- measures ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def measuring(agent: str) -> Iterator[Callable[[float, float], Any]]:
    """Show the progress of one measurement; yields the callback `done` for `measure`."""
    with progress(f"measuring {agent}") as done:
        yield lambda amount, total: done(amount / total)


def measures_grid(measured: Measures, trained: bool = False) -> Grid:
    """Return the measurements as a table, the headline first, with the score below it.

    Measurements of a trained response are compared with the even share instead of the optimum, and have no score.
    """
    rows: list[tuple[str, ...]] = []
    for each in measured.measures:
        value, optimum, gap = (f"{figure:.5f}" for figure in (each.value, each.optimum, each.gap))
        rows.append((each.name, value, f"{each.error:.5f}" if each.error else "exact", optimum, gap, each.unit, each.note))
    notes = []
    if measured.score is not None:
        score = plus_minus(measured.score, measured.score_error or None, 6)
        notes = [f"score {score} (0: uniformly random play, 1: optimal)"]
    elif not trained:
        notes = ["score: none, since uniformly random play is optimal here"]
    options = f" ({options_text(measured.options)})" if measured.options else ""
    compared = ("response", "± 95 %", "even share", "above it") if trained else ("agent", "± 95 %", "optimal", "gap")
    title = f"{measured.agent} in {measured.game}{options}, seed {measured.seed}"
    return Grid(title, ("quantity", *compared, "unit", "note"), rows, (0, 5, 6), notes)


def show_measures(measured: Measures, trained: bool = False) -> None:
    """Print the measurements and the score."""
    show_all([measures_grid(measured, trained)])
