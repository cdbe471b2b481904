"""`reproduce GAME`: every figure of a source beside ours. A module or package here, named after the game, offers `main`.

It makes rows (`Finding`), prints them as tables, and ends with `chapter_of`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.text import Text

from dice_envs.agent.matches import MOST_GAMES
from dice_envs.core.options import check_range
from dice_envs.experiments import ui
from dice_envs.experiments.commands import modules
from dice_envs.experiments.ui.grids import Grid, figure_text
from dice_envs.experiments.ui.pages import About, Plot, Section, command_line, heat_map, plots_noted, saved_plot, write_page

INDEPENDENT = "independent computation"  # the source of figures that were computed by another program, and not published
LEAST_GAMES = 1000  # accepted by every source
FILES = ("json", "report", "resume", "ray")  # parameters that do not change the results, only where they are made or written


def all_sources(
    games: Annotated[
        int | None, ui.count_option("--games", help="Games to play for each source; each source's default if left out.")
    ] = None,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    ray: ui.RayOption = None,
) -> None:
    """Reproduce every source in turn; --report writes one page with all figures and plots.

    JSON: {"seed", "sources": {game: rows}}.

    Example: reproduce all --report report
    """
    if games is not None:
        check_range("games", games, LEAST_GAMES, MOST_GAMES)
    seed = ui.seed_or_fresh(seed)
    chapters: dict[str, Chapter] = {}
    for name, module in modules(sys.modules[__name__]).items():
        ui.console.print(f"\nreproduce {name.replace('_', '-')}")
        parameters = inspect.signature(module.main).parameters
        wanted = {"games": games, "seed": seed, "report": report, "ray": ray}
        given = {key: value for key, value in wanted.items() if key in parameters and value is not None}
        chapters[name] = module.main(**given)
    rows = {name: [row.as_dict() for row in chapter.rows] for name, chapter in chapters.items()}
    sections = [section for chapter in chapters.values() for section in sections_of(chapter)]
    about = About(
        command_line("reproduce all", {"games": games, "seed": seed, "report": report}), {"games": games or "usual"}, seed
    )
    title = "dice-envs: every figure of every source"
    what = _intro("Five games.")
    ui.write_all(json, {"seed": seed, "sources": rows}, report, lambda folder: write_page(folder, title, what, sections, about))


def _intro(what: str) -> list[str]:
    return [f"{what} Published figures stand beside ours; ± is the half-width of a 95 % interval; exact figures are marked."]


GROUP = "Every figure of a source, published beside computed."
COMMANDS = {"all": all_sources}


def wrapped(main: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the command of a source, which returns its chapter, so that it also writes a page into the folder of `--report`."""
    parameters = inspect.signature(main).parameters

    @functools.wraps(main)
    def run(**given: Any) -> Chapter | None:
        chapter: Chapter | None = main(**given)
        report = given.get("report")
        if chapter is not None and report is not None:
            changed = {name: value for name, value in given.items() if value != parameters[name].default and name not in FILES}
            options = {name: value for name, value in given.items() if name not in (*FILES, "seed") and value is not None}
            name = main.__module__.rpartition(".")[2].replace("_", "-")
            seed = {} if chapter.seed is None else {"seed": chapter.seed}
            command = command_line(f"reproduce {name}", {**changed, **seed, "report": report})
            about = About(command, options, chapter.seed)
            write_page(report, chapter.title, _intro("Every figure of the source."), sections_of(chapter, apart=True), about)
        return chapter

    return run


# --- what the sources share ---------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Finding:
    """A published figure, if there is one, beside ours."""

    source: str  # where it was published; empty if nowhere
    figure: str  # its name
    published: float | str | None
    ours: float | str | None
    error: float = 0.0  # 0 for an exact figure, else the half-width of a 95 % interval
    agrees: bool | None = None  # whether they agree; None without a published figure
    note: str = ""  # for the reader
    cell: tuple[str, str, str] | None = None  # the name of a table that shows it, its line and its column there

    def as_dict(self) -> dict[str, Any]:
        """Return the form that JSON holds."""
        return {name: value for name, value in vars(self).items() if name != "cell"}


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


@dataclasses.dataclass(frozen=True)
class Chapter:
    """Every figure of one source, published beside ours; the result of a module here."""

    title: str  # the game and its source
    rows: list[Finding]  # the figures
    seed: int | None = None  # of all random draws; None: nothing was random
    plots: Sequence[Plot] = ()  # saved ones


def sections_of(chapter: Chapter, apart: bool = False) -> list[Section]:
    """Return a chapter as a section: plots, disagreeing figures, a table for each source; `apart`: a section for each."""
    judged = [row for row in chapter.rows if row.agrees is not None]
    differing = [row for row in judged if not row.agrees]
    agree = f"{len(judged) - len(differing):,} of {len(judged):,} comparisons agree; {len(chapter.rows):,} figures in all."
    first = [findings_grid("Those that do not agree", differing)] if differing else []
    sources = dict.fromkeys(row.source for row in chapter.rows)
    grids = [findings_grid(source or "ours", [row for row in chapter.rows if row.source == source]) for source in sources]
    if not apart:
        return [Section(chapter.title, [agree], [*first, *grids], chapter.plots)]
    return [Section("In short", [agree], first, chapter.plots), *(Section(grid.title, grids=[grid]) for grid in grids)]


def printed(source: str, figure: str, published: str, ours: Fraction | float, note: str = "") -> Finding:
    """Return a row for an exact figure, which agrees if ours is within half of the last digit that the source prints."""
    reach = Fraction(1, 2 * 10 ** len(published.partition(".")[2]))
    return Finding(source, figure, float(published), float(ours), 0.0, abs(Fraction(ours) - Fraction(published)) <= reach, note)


def crossed(rows: Sequence[Finding], table: str) -> tuple[list[str], dict[str, list[Finding | None]]]:
    """Arrange the figures of a table: return the columns' names, and the cells of each line by its name."""
    lines: dict[str, dict[str, Finding]] = {}
    for row in rows:
        if row.cell is not None and row.cell[0] == table:
            lines.setdefault(row.cell[1], {})[row.cell[2]] = row
    found_columns = dict.fromkeys(column for cells in lines.values() for column in cells)
    columns = sorted(found_columns, key=lambda column: int(column) if column.isdigit() else 0)  # numbers rise
    return columns, {line: [cells.get(column) for column in columns] for line, cells in lines.items()}


def across(title: str, rows: Sequence[Finding], name: str, digits: int = 6) -> Grid:
    """Return the table of this name as `crossed` arranges it; figures that are compared with a published one are marked."""
    columns, lines = crossed(rows, name)
    table: list[tuple[str | Text, ...]] = []
    for line, cells in lines.items():
        published = {"" if row.published is None else str(row.published) for row in cells if row is not None}
        shared = published.pop() if len(published) == 1 else "marked"
        table.append((line, shared, *(_cell(row, digits) for row in cells)))
    return Grid(title, ("", "published", *columns), table)


def draw_across(folder: Path, source: str, name: str, title: str, rows: Sequence[Finding], digits: int) -> None:
    """Save the figures of such a table as a heat map, SOURCE_NAME.png, if there are any."""
    columns, lines = crossed(rows, name)
    if not lines:
        return
    numbers = np.array([[np.nan if row is None else row.ours for row in cells] for cells in lines.values()], float)
    size = (max(6, 1.5 + 0.09 * max(map(len, lines)) + 1.3 * len(columns)), 1.5 + 0.35 * len(lines))
    with saved_plot(folder, f"{source}_{name}", f"{title}.", figsize=size) as (canvas, panel):
        headings = [textwrap.fill(column, 14) for column in columns]
        texts = [["" if row is None else f"{row.ours:.{digits}f}" for row in cells] for cells in lines.values()]
        heat_map(panel, numbers, texts, list(lines), headings, "Blues", np.nanmax(numbers))
        canvas.suptitle(textwrap.fill(title, int(8 * size[0])))


def _cell(row: Finding | None, digits: int) -> Text:
    """Format our figure, and the verdict on it if there is one."""
    if row is None:
        return Text("-")
    ours = f"{row.ours:.{digits}f}"
    return Text(ours) if row.agrees is None else Text.assemble(ours, " ", verdict(row.agrees))


def chapter_of(
    title: str, data: dict[str, Any], json: Path | None, report: Path | None, draw: Callable[[Path], Any]
) -> Chapter:
    """Write a source's result and its plots, which `draw` saves in a folder; return its chapter of a page.

    `data` is the result, with "rows", and "seed" if anything was random.
    """
    with plots_noted() as plots:
        ui.write_all(json, {**data, "rows": [row.as_dict() for row in data["rows"]]}, report, draw)
    return Chapter(title, data["rows"], data.get("seed"), plots)
