"""Published figures beside ours."""

from __future__ import annotations

import dataclasses
from typing import Any

from rich.table import Table
from rich.text import Text

from dice_envs.experiments.ui.console import console

__all__ = ["Finding", "figure_text", "print_rows", "verdict"]


@dataclasses.dataclass
class Finding:
    """A published figure, if there is one, beside ours.

    `error` is 0 for an exact figure, else the half-width of a 95 % interval.
    """

    source: str
    figure: str
    published: float | str | None
    ours: float | str | None
    error: float = 0.0
    agrees: bool | None = None  # None: nothing published to agree with
    note: str = ""


def figure_text(value: float | str | None, digits: int = 6) -> str:
    """A figure as tables show it: so many decimals at most, a dash for none."""
    if isinstance(value, float):
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
    return "-" if value is None else str(value)


def print_rows(title: str, findings: list[Finding], digits: int = 4) -> None:
    """The findings as a table on the terminal, one a row."""

    def text(value: Any) -> str:
        return figure_text(value, digits)

    table = Table(title=title, title_justify="left")
    for heading, justify in (("figure", "left"), ("published", "right"), ("ours", "right"), ("±", "right"), ("agrees", "left")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column("note")
    for each in findings:
        error = text(each.error) if each.error else "exact"
        table.add_row(each.figure, text(each.published), text(each.ours), error, verdict(each.agrees), each.note)
    console.print(table)


def verdict(agrees: bool | None) -> Text:
    """A green yes, a red no, or nothing where there is no verdict."""
    return Text("") if agrees is None else Text("yes", "green") if agrees else Text("no", "red")
