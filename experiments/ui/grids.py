"""Tables, written to the terminal, to a page or as Markdown."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Literal

from rich.table import Table
from rich.text import Text

from dice_envs.experiments.ui.console import console

__all__ = ["Cell", "Grid", "show_all"]

Cell = str | Text  # a Text has a colour on the terminal


@dataclasses.dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        title: may be empty.
        headings: of the columns; empty for a table without headings.
        rows: cells, one for each column.
        words: numbers of the columns that hold words and are aligned left; the others hold figures and are aligned right.
        notes: lines below the table, on a page and in Markdown.
        whole: numbers of the columns that are not wrapped on the terminal.
        rules: numbers of the rows below which the terminal shows a line.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: Collection[int] = (0,)
    notes: Sequence[str] = ()
    whole: Collection[int] = ()
    rules: Collection[int] = ()

    def show(self) -> None:
        """Print the table on the terminal."""
        table = Table(title=self.title or None, title_justify="left", show_header=bool(self.headings))
        for number in range(len(self.headings or self.rows[0])):
            justify: Literal["left", "right"] = "left" if number in self.words else "right"
            heading = self.headings[number] if self.headings else ""
            table.add_column(heading, justify=justify, no_wrap=number in self.whole, overflow="fold")
        for number, row in enumerate(self.rows):
            table.add_row(*row, end_section=number in self.rules)
        console.print(table)

    def html(self) -> str:
        """Return the table as HTML that is also XML, without its notes."""
        lines = [f"<table>\n<caption>{escape(self.title)}</caption>", "<thead><tr>"]
        for number, heading in enumerate(self.headings):
            lines.append(f'<th{self._class(number)} scope="col">{escape(heading)}</th>')
        lines += ["</tr></thead>", "<tbody>"]
        for row in self.rows:
            cells = [f"<td{self._class(number, str(cell))}>{escape(str(cell))}</td>" for number, cell in enumerate(row)]
            lines.append(f"<tr>{''.join(cells)}</tr>")
        return "\n".join([*lines, "</tbody>", "</table>"])

    def _class(self, number: int, cell: str = "") -> str:
        if number not in self.words:
            return ""
        return ' class="w no"' if cell == "no" else ' class="w"'

    def markdown(self) -> list[str]:
        """Return the table as lines of Markdown, without title and notes."""
        marks = [":--" if number in self.words else "--:" for number in range(len(self.headings))]
        return [_line(row) for row in (self.headings, marks, *self.rows)]


def show_all(grids: Sequence[Grid]) -> None:
    """Print tables, then the notes of the first one."""
    for grid in grids:
        grid.show()
    for note in grids[0].notes:
        console.whole_line(note)


def _line(row: Iterable[Cell]) -> str:
    cells = (" ".join(str(cell).replace("|", "\\|").split()) for cell in row)
    return f"| {' | '.join(cells)} |"
