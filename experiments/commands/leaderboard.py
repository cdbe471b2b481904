"""`leaderboard`: every agent on every named task."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated

import typer

from dice_envs.core.files import write_text
from dice_envs.experiments.jobs.workers import kept_beside, on_ray
from dice_envs.experiments.leaderboard import board, chosen, made_by, plan, source_of, unmeasured
from dice_envs.experiments.report import command_line
from dice_envs.experiments.ui.boards import INTRO, plot, sections, show
from dice_envs.experiments.ui.boards import markdown as as_markdown
from dice_envs.experiments.ui.console import console, finish
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.options import (
    JsonOption,
    RayOption,
    ReportOption,
    ResumeOption,
    SeedOption,
    count_option,
    seed_or_fresh,
)
from dice_envs.experiments.ui.page import About, write_page
from dice_envs.experiments.ui.plots import plots_noted
from dice_envs.experiments.ui.progress import progress

__all__ = ["PLACE", "main"]

PLACE = 10  # in the list of --help


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tasks (or a game, for all its tasks) and agents, in any order; if left out, all tasks and the usual agents."
        ),
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option(help="Your own agent, MODULE:FACTORY, say mine:make; repeat it for more.")
    ] = None,
    sample: Annotated[
        int | None, count_option(help="Deals or games to sample where there are too many for all of them.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Time limit of one agent on one task; then a smaller sample is tried.")] = 3.0,
    seed: SeedOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the board here as Markdown.")] = None,
    ray: RayOption = None,
    resume: ResumeOption = False,
) -> None:
    """The board: every agent's distance from optimal play, on every named task that it can play.

    A task is a game with options and one headline quantity (`dice_envs.TASKS`). A score is 0 for uniformly random play and 1
    for optimal play. A game's name stands for all its tasks, so the agent of thirties is named with a strategy, say
    thirties:heuristic. Where an agent cannot play a task, or not within --minutes, the board gives the reason. If it is too
    slow to be measured, but best responses to nash are known, it plays nash, and the board has its wins without luck.

    --agent adds your own agent: MODULE is found in the current folder, FACTORY is called without arguments, or with the
    game's variant if it needs one, and returns anything that `dice_envs.measure` takes.

    With --json each agent's result on a task is kept when it is done; after a stop the same command with --resume continues.

    Example: leaderboard liars_dice_openspiel_1 random nash --agent mine:make --report report
    """
    tasks, specs = chosen(names or [])
    others = {text: made_by(text) for text in agent or []}
    for path in (json, markdown):
        check_writable(path)
    check_report(report)
    given = {
        "names": [task.name for task in tasks],
        "agents": specs,
        "others": {text: source_of(text) for text in others},
        "sample": sample,
        "minutes": minutes,
    }
    with kept_beside(json, resume, {"board": given}, seed) as kept, on_ray(ray, kept) as workers:
        seed = kept.seed if kept else seed_or_fresh(seed)
        console.print(f"seed {seed}")
        rows = plan(tasks, specs or None, others)
        with progress("agents on tasks", len(rows)) as done:
            found = board([task.name for task in tasks], specs or None, others, seed, sample, minutes, done, workers)
        nowhere = unmeasured(found, [*specs, *others])
        words = " ".join(["leaderboard", *map(shlex.quote, names or [])])
        typed = {"agent": agent, "sample": sample, "minutes": None if minutes == 3.0 else minutes, "seed": seed}
        command = command_line(words, {**typed, "json": json, "report": report, "markdown": markdown})

        def write_report(folder: Path) -> None:
            with plots_noted() as plots:
                plot(folder, found)
            about = About(command, {"sample": sample or "each game's own", "minutes": minutes}, seed)
            write_page(folder, "dice-envs: the board", [INTRO], sections(found, plots), about)

        if not nowhere:
            finish(
                lambda: show(found),
                lambda: write_json(json, {"command": command, **dataclasses.asdict(found)}),
                lambda: write_report(report) if report is not None else None,
                lambda: write_text(markdown, as_markdown(found, command)) if markdown is not None else None,
            )
    if nowhere:  # outside the block, so that the kept results are removed: a corrected agent needs new ones
        raise ValueError(nowhere)
