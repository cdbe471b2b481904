"""Published figures beside ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rich.text import Text

from dice_envs.experiments.ui.grids import Grid

__all__ = ["INDEPENDENT", "Finding", "figure_text", "findings_grid", "print_rows", "verdict"]

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
