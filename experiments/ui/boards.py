"""The board of `leaderboard` on the terminal, on a page, as Markdown and as a plot."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dice_envs.core.options import options_text
from dice_envs.experiments.leaderboard import TIMED, Board, Place, Standing
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.names import LONGEST, short
from dice_envs.experiments.ui.page import Section
from dice_envs.experiments.ui.plots import Plot, saved_plot

__all__ = ["INTRO", "markdown", "plot", "sections", "show"]

LEADERS = 3  # in the summary
UNKNOWN = "–"  # in a table
LONGEST_REASON = 130  # characters of why an agent is missing, on the terminal
INTRO = (
    "Every agent on every named task that it can play, with its distance from optimal play. A score is 0 for uniformly random "
    f"play and 1 for optimal play; ± is half of a 95 % interval. Time per move is that of one process: {TIMED} games together, "
    "and one alone. Large games are measured on a sample, as the notes say."
)
HEADINGS = ("", "agent", "", "± 95 %", "gap", "score", "±", f"ms/move, {TIMED} games", "ms/move, alone")
TRAINED = ("steps trained", "minutes", "note")
WORDS = (1, len(HEADINGS) + len(TRAINED) - 1)


def _headings(place: Place) -> tuple[str, ...]:
    units = {each.unit for each in place.standings if each.unit}
    quantity = f"{place.headline} ({', '.join(units)})" if units and place.headline not in units else place.headline
    headings = [*HEADINGS, *TRAINED]
    headings[2] = quantity
    if place.field:
        headings[4:7] = ["Elo", "±", ""]
    return tuple(headings)


def _number(value: float | None, digits: int = 6) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def _cells(place: Place, number: int, each: Standing) -> tuple[str, ...]:
    """Cells of one row; against a field the Elo rating stands where others have gap and score."""
    if place.field:
        worth = [_number(each.elo, 0), _number(each.elo_error, 0), ""]
    else:
        error = "exact" if each.score_error == 0 else _number(each.score_error, 4)
        worth = [_number(each.gap), _number(each.score, 4), error]
    return (
        str(number),
        each.agent,
        _number(each.value),
        "exact" if each.error == 0 else _number(each.error),
        *worth,
        UNKNOWN if each.batch_ms is None else f"{each.batch_ms:.3g}",
        UNKNOWN if each.alone_ms is None else f"{each.alone_ms:.3g}",
        UNKNOWN if each.steps is None else f"{each.steps:,}",
        _number(each.minutes, 1),
        each.note,
    )


def _rows(place: Place) -> list[tuple[str, ...]]:
    return [_cells(place, number, each) for number, each in enumerate((s for s in place.standings if not s.missing), start=1)]


def _missing(place: Place) -> list[str]:
    return [f"– {each.agent}: {each.missing}" for each in place.standings if each.missing]


def _about_task(place: Place) -> list[str]:
    random, optimum = _random(place), _optimum(place)
    facts = [f"{place.game} ({options_text(place.options)})"]
    facts += [] if random is None else [f"random play {random:.6g}"]
    facts += [] if optimum is None else [f"optimal play {optimum:.6g}"]
    facts += [f"the field: {', '.join(place.field)}; optimal play is not known"] if place.field else []
    return [f"{place.asks[0].upper()}{place.asks[1:]}.", "; ".join(facts) + "."]


def show(found: Board) -> None:
    """Print a table for each task."""
    for place in found.tasks:
        headings, rows = _headings(place), _rows(place)
        rating = "Elo" if place.field else "score"
        columns = ("", "agent", headings[2], rating, f"ms/move, {TIMED} games / alone", "steps, minutes of training")
        cells = []
        for number, agent, value, error, *worth, batch_ms, alone_ms, steps, minutes, _ in rows:
            score = worth[:2] if place.field else worth[1:]
            trained = "" if steps == UNKNOWN else f"{steps}, {minutes}"
            figures = (_with_error(value, error), _with_error(*score), f"{batch_ms} / {alone_ms}")
            cells.append((number, short(agent), *figures, trained))
        Grid(f"{place.name}: {place.asks}", columns, cells, words=(1,), whole=(1,)).show()
        for line in _missing(place):
            console.whole_line(f"  {line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + '…'}")
        for number, agent, *_ in rows:
            if len(agent) > LONGEST:
                console.whole_line(f"  {number} = {agent}")


def _with_error(value: str, error: str) -> str:
    return value if error in ("exact", UNKNOWN) else f"{value} ± {error}"


def _optimum(place: Place) -> float | None:
    """Return the optimum of the first standing that has it."""
    return next((each.optimum for each in place.standings if each.optimum is not None), None)


def _random(place: Place) -> float | None:
    """Return the value of random play."""
    return next((each.value for each in place.standings if each.agent == "random"), None)


def _summary(found: Board) -> Grid:
    """The leading agents of each task."""
    rows = []
    for place in found.tasks:
        worths = [
            (each.agent, f"{each.score:.3f}" if each.elo is None else f"Elo {each.elo:+.0f}")
            for each in place.standings
            if not each.missing and (each.score is not None or each.elo is not None)
        ]
        leaders = [f"{agent}: {worth}" for agent, worth in worths[:LEADERS]]
        leaders += [""] * (LEADERS - len(leaders))
        compared = (_number(each, 5) for each in (_random(place), _optimum(place)))
        rows.append((place.name, place.headline, *compared, *leaders))
    headings = ("task", "quantity", "random play", "optimal play", "first", "second", "third")
    return Grid("who leads, and the score", headings, rows, (0, 1, 4, 5, 6))


def sections(found: Board, plots: Sequence[Plot] = ()) -> list[Section]:
    """Return the board as sections of a page."""
    parts = [Section("All tasks", grids=[_summary(found)], plots=plots)]
    for place in found.tasks:
        grid = Grid(place.headline, _headings(place), _rows(place), WORDS, _missing(place))
        parts.append(Section(place.name, _about_task(place), [grid]))
    return parts


def markdown(found: Board, command: str) -> str:
    """Return the board as Markdown, for the documentation."""
    lines = [
        "# The board",
        "",
        *textwrap.wrap(f"{INTRO} Tasks are `dice_envs.TASKS`. This page is made by", 128),
        "",
        "```sh",
        command,
        "```",
        "",
        f"with {', '.join(f'{name} {version}' for name, version in found.versions.items())}, seed {found.seed}.",
    ]
    for section in sections(found):
        lines += ["", f"## {section.title}", "", *section.text]
        for grid in section.grids:
            lines += ["", *grid.markdown()]
            lines += [f"\n{note}" for note in grid.notes]
    return "\n".join(lines) + "\n"


def plot(folder: Path, found: Board) -> None:
    """Save a plot of the scores, one panel a task."""
    places = [place for place in found.tasks if any(each.score is not None for each in place.standings)]
    if not places:
        return
    across = min(3, len(places))
    down = math.ceil(len(places) / across)
    most = max(sum(each.score is not None for each in place.standings) for place in places)
    size = (4.6 * across, 0.6 + down * (1.1 + 0.3 * most))
    caption = "Scores: 0 is uniformly random play, 1 optimal play. Bars are cut at −0.25."
    with saved_plot(folder, "board", caption, figsize=size, nrows=down, ncols=across, squeeze=False) as (canvas, axes):
        for axis in axes.flat[len(places) :]:
            axis.set_visible(False)
        for axis, place in zip(axes.flat, places, strict=False):
            shown_here = [each for each in place.standings if each.score is not None]
            across_here = np.arange(len(shown_here))[::-1]
            scores = np.array([each.score for each in shown_here], float)
            errors = [each.score_error or 0.0 for each in shown_here]
            axis.barh(across_here, np.maximum(scores, -0.25), 0.7, xerr=errors, color="#2a6f97", ecolor="#333333")
            axis.axvline(1, color="#e76f51", linestyle="--", linewidth=1)
            axis.axvline(0, color="grey", linewidth=0.8)
            axis.set_yticks(across_here, [short(each.agent, 22) for each in shown_here])
            axis.set_xlim(min(0.0, max(-0.25, scores.min())) - 0.02, 1.08)
            axis.set_xticks([0, 0.5, 1])
            axis.set_title(place.name, fontsize=12)
        canvas.suptitle("Score by task: 0 random, 1 optimal")
