"""`leaderboard`: every agent on every named task."""

from __future__ import annotations

import dataclasses
import functools
import math
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dice_envs.core.files import write_text
from dice_envs.core.options import options_text
from dice_envs.experiments import ui
from dice_envs.experiments.jobs import resumable
from dice_envs.experiments.leaderboard import TIMED, Board, TaskBoard, board, chosen, plan, unmeasured
from dice_envs.experiments.ui import pages
from dice_envs.experiments.ui.grids import LONGEST, Grid, plus_minus, short, show_all

LEADERS = 3  # in the summary
UNKNOWN = "–"  # in a table
INTRO = (
    "Every agent on every named task that it can play, with its distance from optimal play. A score is 0 for uniformly random "
    "play and 1 for optimal play; where the task fixes the opponent, as in score dice, optimal play is the best response to "
    "it, not an equilibrium. ± is half of a 95 % interval (± ?: not known); figures without it are exact. Time per "
    f"move is that of one process: {TIMED} games together, and one alone. Large games are measured on a sample, as their notes "
    "say."
)


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tasks (or a game, for all its tasks) and agents, in any order; if left out, all tasks and the usual agents."
        ),
    ] = None,
    sample: Annotated[
        int | None, ui.count_option(help="Deals or games to sample where there are too many for all of them.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Time limit of one agent on one task; then a smaller sample is tried.")] = 3.0,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the board here as Markdown.")] = None,
    ray: ui.RayOption = None,
    resume: ui.ResumeOption = False,
) -> None:
    """The board: every agent's distance from optimal play, on every named task that it can play.

    A task is a game with options and one headline quantity (`dice_envs.TASKS`). A score is 0 for uniformly random play and 1
    for optimal play. A game's name stands for all its tasks, so the agent of thirties is named with a strategy, say
    thirties:heuristic. Where an agent cannot play a task, or not within --minutes, the board gives the reason. If it is too
    slow to be measured, but best responses to nash are known, it plays nash, and the board has its wins without luck.

    An agent of your own is FILE.py:CLASS, as in all commands.

    With --json each agent's result on a task is kept when it is done; after a stop the same command with --resume continues.

    Example: leaderboard liars_dice_openspiel_1 random nash mine.py:Agent --report report
    """
    tasks, specs = chosen(names or [])
    ui.check_writable(markdown)
    given = {"names": [task.name for task in tasks], "agents": specs}
    with resumable(json, resume, {"board": given, "sample": sample, "minutes": minutes}, seed, ray) as (seed, workers):
        ui.console.print(f"seed {seed}")
        with ui.progress("agents on tasks", len(plan(tasks, specs or None))) as done:
            found = board([task.name for task in tasks], specs or None, seed, sample, minutes, done, workers)
        nowhere = unmeasured(found, specs)
        words = " ".join(["leaderboard", *map(shlex.quote, names or [])])
        typed = {"sample": sample, "minutes": None if minutes == 3.0 else minutes, "seed": seed}
        command = pages.command_line(words, {**typed, "json": json, "report": report, "markdown": markdown})

        def write_report(folder: Path) -> None:
            with pages.plots_noted() as plots:
                plot_scores(folder, found)
            about = pages.About(command, {"sample": sample or "each game's own", "minutes": minutes}, seed)
            pages.write_page(folder, "dice-envs: the board", [INTRO], sections(found, plots), about)

        if not nowhere:
            ui.finish(
                *(functools.partial(show_all, [_grid(place)]) for place in found.tasks),
                lambda: ui.write_json(json, {"command": command, **dataclasses.asdict(found)}),
                lambda: write_report(report) if report is not None else None,
                lambda: write_text(markdown, as_markdown(found, command)) if markdown is not None else None,
            )
    if nowhere:  # outside the block, so that the kept results are removed: a corrected agent needs new ones
        raise ValueError(nowhere)


# --- the board on the terminal, on a page, as Markdown and as a plot ------------------------------------------------


def _figure(value: float | None, error: float | None, digits: int) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:.{digits}f} ± ?" if error is None else plus_minus(value, error or None, digits)


def _grid(place: TaskBoard) -> Grid:
    """Return the agents of a task, the best first; notes have what was sampled, long names and why agents are missing."""
    rows, told = [], dict[str, list[str]]()
    measured = [each for each in place.standings if not each.missing]
    for number, each in enumerate(measured, start=1):
        worth = (each.elo, each.elo_error, 0) if place.field else (each.score, each.score_error, 4)
        times = [UNKNOWN if ms is None else f"{ms:.3g}" for ms in (each.batch_ms, each.alone_ms)]
        trained = "" if each.steps is None else f"{each.steps:,}, {_figure(each.minutes, 0.0, 1)}"
        figures = (_figure(each.value, each.error, 6), _figure(*worth), " / ".join(times), trained)
        rows.append((str(number), short(each.agent), *figures))
        if each.note:
            told.setdefault(each.note, []).append(each.agent)
    notes = [note if len(names) == len(rows) else f"{', '.join(names)}: {note}" for note, names in told.items()]
    notes += [f"{number} = {each.agent}" for number, each in enumerate(measured, start=1) if len(each.agent) > LONGEST]
    notes += [f"– {each.agent}: {each.missing}" for each in place.standings if each.missing]
    units = {each.unit for each in measured if each.unit}
    quantity = f"{place.headline} ({', '.join(units)})" if units and place.headline not in units else place.headline
    rating = "Elo" if place.field else "score"
    headings = ("", "agent", quantity, rating, f"ms/move, {TIMED} games / alone", "steps, minutes of training")
    return Grid(f"{place.name}: {place.asks}", headings, rows, (1, 5), notes, whole=(1,))


def _about_task(place: TaskBoard) -> list[str]:
    random, optimum = _compared(place)
    facts = [f"{place.game} ({options_text(place.options)})"]
    facts += [] if random is None else [f"random play {random:.6g}"]
    facts += [] if optimum is None else [f"optimal play {optimum:.6g}"]
    facts += [f"the field: {', '.join(place.field)}; optimal play is not known"] if place.field else []
    return [f"{place.asks[0].upper()}{place.asks[1:]}.", "; ".join(facts) + "."]


def _compared(place: TaskBoard) -> list[float | None]:
    """Return the values of random and of optimal play, None where they are not known."""
    found = ([each.value for each in place.standings if each.agent == "random"], [each.optimum for each in place.standings])
    return [next((value for value in values if value is not None), None) for values in found]


def _summary(found: Board) -> Grid:
    """The leading agents of each task."""
    rows = []
    for place in found.tasks:
        leaders = [
            f"{each.agent}: {each.score:.3f}" if each.elo is None else f"{each.agent}: Elo {each.elo:+.0f}"
            for each in place.standings
            if not each.missing and (each.score is not None or each.elo is not None)
        ]
        leaders = [*leaders, *[""] * LEADERS][:LEADERS]
        rows.append((place.name, place.headline, *(_figure(each, 0.0, 5) for each in _compared(place)), *leaders))
    headings = ("task", "quantity", "random play", "optimal play", "first", "second", "third")
    return Grid("who leads, and the score", headings, rows, (0, 1, 4, 5, 6))


def sections(found: Board, plots: Sequence[pages.Plot] = ()) -> list[pages.Section]:
    """Return the board as sections of a page."""
    parts = [pages.Section("All tasks", grids=[_summary(found)], plots=plots)]
    return parts + [pages.Section(place.name, _about_task(place), [_grid(place)]) for place in found.tasks]


def as_markdown(found: Board, command: str) -> str:
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


def plot_scores(folder: Path, found: Board) -> None:
    """Save a plot of the scores, one panel a task."""
    places = [place for place in found.tasks if any(each.score is not None for each in place.standings)]
    if not places:
        return
    across = min(3, len(places))
    down = math.ceil(len(places) / across)
    most = max(sum(each.score is not None for each in place.standings) for place in places)
    size = (4.6 * across, 0.6 + down * (1.1 + 0.3 * most))
    caption = "Scores: 0 is uniformly random play, 1 optimal play. Bars are cut at −0.25."
    with pages.saved_plot(folder, "board", caption, figsize=size, nrows=down, ncols=across, squeeze=False) as (canvas, axes):
        for axis in axes.flat[len(places) :]:
            axis.set_visible(False)
        for axis, place in zip(axes.flat, places, strict=False):
            shown_here = [each for each in place.standings if each.score is not None]
            scores = np.array([each.score for each in shown_here], float)
            names, errors = zip(*((short(each.agent, 22), each.score_error or 0.0) for each in shown_here), strict=True)
            pages.bars(axis, names, np.maximum(scores, -0.25), errors)
            axis.axvline(1, color=pages.ORANGE, linestyle="--", linewidth=1)
            axis.axvline(0, color="grey", linewidth=0.8)
            axis.set_xlim(min(0.0, max(-0.25, scores.min())) - 0.02, 1.08)
            axis.set_xticks([0, 0.5, 1])
            axis.set_title(place.name, fontsize=12)
        canvas.suptitle("Score by task: 0 random, 1 optimal")
