"""`benchmark language`: what players who speak in words give away."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dice_envs import TASKS
from dice_envs.agent import check_plays
from dice_envs.core.options import check_range
from dice_envs.evaluation import check_games
from dice_envs.experiments.jobs.workers import Workers, kept_beside
from dice_envs.experiments.language import DEFAULT_TASKS, Score, field_of, named_players, players_of, score, task_of
from dice_envs.experiments.language.tables import grids_of, plot
from dice_envs.experiments.ui.console import console, finish
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.grids import show_all
from dice_envs.experiments.ui.options import JsonOption, ReportOption, ResumeOption, count_option
from dice_envs.experiments.ui.page import About, Section, command_line, write_page
from dice_envs.experiments.ui.plots import plots_noted
from dice_envs.experiments.ui.progress import progress

__all__ = ["group"]

MOST_POSITIONS = 10_000
MOST_COLUMNS = 6  # of a table on the terminal; all tables are on the page
INTRO = (
    "Every player moves through words: a prompt, and a reply. Regret is what a move gives away with optimal play afterwards, "
    "computed exactly. The result is against optimal play, with the luck taken out."
)


def group(guarded: Callable[..., Any]) -> typer.Typer:
    """Return the group of commands, each wrapped by `guarded`."""
    app = typer.Typer(no_args_is_help=True, help="Fixed tests of language models.")
    app.callback()(lambda: None)  # without it, typer takes the only command for the group
    app.command("language", help=language.__doc__)(guarded(language))
    return app


def language(
    players: Annotated[
        list[str] | None, typer.Argument(help="Players beside the usual ones, say chat:MODEL,url=URL; or any agents.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="A named task; repeat it. Five of them if left out.")] = None,
    positions: Annotated[int, count_option("--positions", help="Number of positions of each task.")] = 200,
    games: Annotated[int, count_option("--games", help="Number of games of each task; seats rotate.")] = 200,
    seed: Annotated[int, typer.Option(help="Fixes positions, dice and draws. Compare only results with the same seed.")] = 0,
    references: Annotated[bool, typer.Option(help="Whether the scripted agents of each game are measured, too.")] = True,
    json: JsonOption = None,
    report: ReportOption = None,
    resume: ResumeOption = False,
) -> None:
    """Language models at the table: exact regret, illegal replies, bluffs beside the solution's, results without luck.

    Each player is asked at fixed positions, which it sees in words, and plays games against optimal play. Every move has an
    exact price. The games' usual agents play through the same words, for comparison.

    A model's server has the OpenAI chat form; the key is taken from the environment. A reply without a legal move is asked
    again once, then a random move is played; both are counted. With --json all replies are written beside that file, and
    finished parts are kept there; after a stop the same command with --resume continues.

    Example: benchmark language chat:llama-3,url=http://127.0.0.1:8080/v1 --task liars_dice_3 --json result.json
    """
    tasks = [task_of(name) for name in task or DEFAULT_TASKS]
    check_range("positions", positions, 2, MOST_POSITIONS)
    check_games(games)
    check_writable(json)
    check_report(report)
    named = named_players(players or [], json, resume)
    everybody = {each.name: players_of(each, named, references) for each in tasks}
    for name, player in named.items():
        if not any(name in own for own in everybody.values()):
            check_plays(player, tasks[0].variant)
    given = {"players": players or [], "tasks": [each.name for each in tasks], "references": references}
    what = {"language": given, "positions": positions, "games": games}
    found: dict[str, list[Score]] = {}
    with kept_beside(json, resume, what, seed) as kept:
        workers = Workers(kept)
        for each in tasks:
            with progress(f"{each.name}: positions", positions) as done:
                field = field_of(each, positions, seed, done)
            with progress(f"{each.name}: players", len(everybody[each.name]) * (positions + games)) as done:
                found[each.name] = [
                    score(field, name, player, games, seed, workers, done) for name, player in everybody[each.name].items()
                ]
            console.print(f"seed {seed}")
            grids = grids_of(found[each.name])
            show_all([grid for grid in grids if len(grid.headings) <= MOST_COLUMNS])
    words = shlex.join(["benchmark", "language", *(players or [])])
    typed = {"task": task, "positions": positions, "games": games, "seed": seed, "report": report, "json": json}
    command = command_line(words, typed) + ("" if references else " --no-references")
    scores = [dataclasses.asdict(each) for own in found.values() for each in own]
    finish(
        lambda: write_json(json, {"command": command, "seed": seed, "scores": scores}),
        lambda: (
            _write_report(report, found, About(command, {"positions": positions, "games": games}, seed)) if report else None
        ),
    )


def _write_report(folder: Path, found: Mapping[str, Sequence[Score]], about: About) -> None:
    sections = []
    for name, scores in found.items():
        with plots_noted() as plots:
            plot(folder, scores)
        grids = grids_of(scores)
        sections.append(Section(name, [TASKS[name].asks, *grids[0].notes], grids, plots))
    write_page(folder, "dice-envs: players who speak in words", [INTRO], sections, about)
