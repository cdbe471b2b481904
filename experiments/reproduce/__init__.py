"""Every figure of a source beside ours: `reproduce SOURCE`. A module here offers `main`, a typer command.

It makes rows (`Finding`), prints them as tables, and ends with `chapter_of`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.text import Text

from dice_envs.experiments.ui.console import finish
from dice_envs.experiments.ui.files import write_json
from dice_envs.experiments.ui.findings import Finding, verdict
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.page import Chapter


def rounds_to(published: str, ours: Fraction | float) -> bool:
    """Return whether our figure is within half of the last digit of what a source prints."""
    return abs(Fraction(ours) - Fraction(published)) <= Fraction(1, 2 * 10 ** len(published.partition(".")[2]))


def printed(source: str, figure: str, published: str, ours: Fraction | float, note: str = "") -> Finding:
    """Return a row for an exact figure, which agrees if ours is the same to the digits that the source prints."""
    return Finding(source, figure, float(published), float(ours), 0.0, rounds_to(published, ours), note)


def across(title: str, rows: Sequence[Finding], pattern: str, digits: int = 6) -> Grid:
    """Return rows as a table with several figures in a line, those that are compared with a published one marked.

    Args:
        title: of the table.
        rows: those whose figures' names fit the pattern are shown.
        pattern: a regular expression whose groups `line` and `column` are the place of a figure.
        digits: decimals.
    """
    lines: dict[str, dict[str, Finding]] = {}
    for row in rows:
        if found := re.fullmatch(pattern, row.figure):
            lines.setdefault(found["line"], {})[found["column"]] = row
    found_columns = dict.fromkeys(column for cells in lines.values() for column in cells)
    columns = sorted(found_columns, key=lambda column: int(column) if column.isdigit() else 0)  # numbers rise
    table: list[tuple[str | Text, ...]] = []
    for line, cells in lines.items():
        published = {"" if row.published is None else str(row.published) for row in cells.values()}
        shared = published.pop() if len(published) == 1 else "marked"
        table.append((line, shared, *(_cell(cells.get(column), digits) for column in columns)))
    return Grid(title, ("", "published", *columns), table)


def _cell(row: Finding | None, digits: int) -> Text:
    """Format our figure, and the verdict on it if there is one."""
    if row is None:
        return Text("-")
    ours = f"{row.ours:.{digits}f}"
    return Text(ours) if row.agrees is None else Text.assemble(ours, " ", verdict(row.agrees))


def chapter_of(
    title: str, data: dict[str, Any], json: Path | None, report: Path | None, draw: Callable[[Path], Any]
) -> Chapter:
    """Write a source's result and its plots; return its chapter of a page.

    Args:
        title: of the chapter: the game and its source.
        data: the result, with "rows", and "seed" if anything was random.
        json, report: as given on the command line.
        draw: saves the plots in a folder.
    """
    finish(lambda: write_json(json, data), lambda: draw(report) if report is not None else None)
    return Chapter(title, data["rows"], data.get("seed"))
