"""Tables, written to the terminal, to a page or as Markdown: their figures with intervals, short names of agents, measures."""

from __future__ import annotations

import dataclasses
import itertools
import string
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from rich.measure import measure_renderables
from rich.table import Table
from rich.text import Text

from dice_envs import Measures
from dice_envs.core.options import options_text
from dice_envs.exact.contract import plus_minus
from dice_envs.experiments.ui import console

LONGEST = 30  # characters of a name in a table

Cell = str | Text  # a Text has a colour on the terminal


@dataclasses.dataclass(frozen=True)
class Grid:
    """A table."""

    title: str  # may be empty
    headings: Sequence[str]  # of the columns; empty for a table without headings
    rows: Sequence[Sequence[Cell]]  # cells, one for each column
    # Numbers of the columns that hold words and are aligned left; the others hold figures and are aligned right.
    words: Collection[int] = (0,)
    notes: Sequence[str] = ()  # lines below the table, on a page and in Markdown
    whole: Collection[int] = ()  # numbers of the columns that are not wrapped on the terminal
    rules: Collection[int] = ()  # numbers of the rows below which the terminal shows a line

    def show(self) -> None:
        """Print the table on the terminal, without empty columns.

        Where it would break a word, columns of words stand below it, the last first; then figures, all but two, if that helps.
        """
        headings = self.headings or [""] * len(self.rows[0])
        columns = [each for each in range(len(headings)) if not self.rows or any(str(row[each]) for row in self.rows)]
        names, below = [each for each in columns if each in self.words] or columns[:1], list[int]()
        while (widths := self._widths(columns)) is None and (words := [each for each in names[1:] if each not in self.whole]):
            columns.remove(words[-1])
            names.remove(words[-1])
            below.insert(0, words[-1])
        figures = [each for each in columns[1:] if each not in self.words]
        for first in range(len(figures) - 1, 1, -1) if widths is None else ():
            fewer = [each for each in columns if each not in figures[first:]]
            if widths := self._widths(fewer):
                columns, below = fewer, [*figures[first:], *below]
                break
        table = Table(title=self.title or None, title_justify="left", show_header=bool(self.headings))
        for index, number in enumerate(columns):
            justify: Literal["left", "right"] = "left" if number in self.words else "right"
            table.add_column(headings[number], justify=justify, no_wrap=number in self.whole, overflow="fold")
            table.columns[-1].width = None if widths is None else widths[index]
        for number, row in enumerate(self.rows):
            table.add_row(*(row[column] for column in columns), end_section=number in self.rules)
        console.print(table)
        for row in self.rows if below else ():
            parts = [f"{headings[each]} {row[each]}".strip() for each in below if str(row[each])]
            if parts:
                console.print(f"{', '.join(str(row[each]) for each in names if str(row[each]))}: {'; '.join(parts)}")

    def _widths(self, columns: Sequence[int]) -> list[int] | None:
        """Return widths of columns with which the table fits the terminal and breaks no word; None if there are none."""
        widths, least = [], []
        for number in columns:
            cells = [Text(str(row[number])) for row in (self.headings, *self.rows) if row]
            word, line = measure_renderables(console, console.options, cells)
            widths.append(line)
            least.append(line if number in self.whole else word)
        for _ in range(sum(widths) + 3 * len(columns) + 1 - console.width):
            wide = [(width, index) for index, width in enumerate(widths) if width > least[index]]
            if not wide:
                return None
            widths[max(wide)[1]] -= 1
        return widths

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


# --- figures and names in tables ------------------------------------------------------------------------------------


def figure_text(value: float | str | None, digits: int = 6) -> str:
    """Format a figure for tables with at most `digits` decimals; a dash for None."""
    if isinstance(value, float):
        return f"{value:z.{digits}f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
    return "-" if value is None else str(value)


def letters(count: int) -> list[str]:
    """Return A, B, … Z, AA, AB, …"""
    words = (itertools.product(string.ascii_uppercase, repeat=length) for length in itertools.count(1))
    return list(map("".join, itertools.islice(itertools.chain.from_iterable(words), count)))


def short(name: str, most: int = LONGEST) -> str:
    """Cut a name in the middle to `most` characters: paths differ at their ends, agents at their beginnings."""
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def joined(names: Sequence[str]) -> str:
    """Join the names at one table: `bayes + 2 × random`."""
    counts = {name: names.count(name) for name in names}
    return " + ".join(f"{count} × {short(name)}" if count > 1 else short(name) for name, count in counts.items())


# --- measures ----------------------------------------------------------------------------------------------------------


def measures_grid(measured: Measures, trained: bool = False, at_table: bool = False) -> Grid:
    """Return the measurements as a table, the headline first, with the score in the title.

    Measurements of a trained response are compared with the even share instead of the optimum, and have no score. `at_table`
    says that the agents at the other seats were named.
    """
    rows: list[tuple[str, ...]] = []
    for each in measured.measures:
        value, optimum, gap = (plus_minus(figure, None, 5) for figure in (each.value, each.optimum, each.gap))
        rows.append((each.name, value, f"{each.error:.5f}" if each.error else "exact", optimum, gap, each.unit, each.note))
    scored, notes = "", []
    if measured.score is not None:
        score = plus_minus(measured.score, measured.score_error or None, 6)
        scored = f": score {score} (0: uniformly random play, 1: optimal)"
    elif not trained:
        notes = [f"score: none, since {_no_score(measured, at_table)}"]
    options = f" ({options_text(measured.options)})" if measured.options else ""
    compared = ("response", "± 95 %", "even share", "above it") if trained else ("agent", "± 95 %", "optimal", "gap")
    title = f"{measured.agent} in {measured.game}{options}, seed {measured.seed}{scored}"
    return Grid(title, ("quantity", *compared, "unit", "note"), rows, (0, 5, 6), notes)


def _no_score(measured: Measures, at_table: bool) -> str:
    if at_table:
        return "random play is not measured at a table of these agents"
    bounds = measured.measures[0].is_bound
    return "only a bound of the gap is known" if bounds else "uniformly random play is optimal here"
