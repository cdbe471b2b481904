"""`benchmark language`: what players who speak in words give away."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from dice_envs import TASKS, response_values
from dice_envs.agent import check_plays
from dice_envs.core.options import check_range
from dice_envs.evaluation import GAMES_WON, check_games
from dice_envs.experiments import ui
from dice_envs.experiments.commands import guarded
from dice_envs.experiments.jobs import Workers, kept_beside
from dice_envs.experiments.language import DEFAULT_TASKS, Score, named_players, players_of, positions_of, score, task_of
from dice_envs.experiments.ui.grids import Grid, plus_minus, show_all
from dice_envs.experiments.ui.pages import About, Section, command_line, plots_noted, saved_plot, write_page

MOST_POSITIONS = 10_000
MOST_COLUMNS = 6  # of a table on the terminal; all tables are on the page
INTRO = (
    "Every player moves through words: a prompt, and a reply. Regret is what a move gives away with optimal play afterwards, "
    "computed exactly. The result is against optimal play, with the luck taken out."
)


def group() -> typer.Typer:
    """Return the group of commands."""
    app = typer.Typer(no_args_is_help=True, help="Fixed tests of language models.")
    app.callback()(lambda: None)  # without it, typer takes the only command for the group
    app.command("language")(guarded(language))
    return app


def language(
    players: Annotated[
        list[str] | None, typer.Argument(help="Players beside the usual ones, say chat:MODEL,url=URL; or any agents.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="A named task; repeat it. Five of them if left out.")] = None,
    positions: Annotated[int, ui.count_option("--positions", help="Number of positions of each task.")] = 200,
    games: Annotated[int, ui.count_option("--games", help="Number of games of each task; seats rotate.")] = 200,
    seed: Annotated[int, typer.Option(help="Fixes positions, dice and draws. Compare only results with the same seed.")] = 0,
    references: Annotated[bool, typer.Option(help="Whether the scripted agents of each game are measured, too.")] = True,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    resume: ui.ResumeOption = False,
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
            with ui.progress(f"{each.name}: positions", positions) as done:
                values = response_values(each.variant)  # first: it may have to solve the game
                drawn = positions_of(each.variant, positions, seed, done)
            with ui.progress(f"{each.name}: players", len(everybody[each.name]) * (positions + games)) as done:
                found[each.name] = [
                    score(each, drawn, values, name, player, games, seed, workers, done)
                    for name, player in everybody[each.name].items()
                ]
            ui.console.print(f"seed {seed}")
            grids = _grids_of(found[each.name])
            show_all([grid for grid in grids if len(grid.headings) <= MOST_COLUMNS])
    words = shlex.join(["benchmark", "language", *(players or [])])
    typed = {"task": task, "positions": positions, "games": games, "seed": seed, "report": report, "json": json}
    command = command_line(words, typed) + ("" if references else " --no-references")
    scores = [dataclasses.asdict(each) for own in found.values() for each in own]
    ui.finish(
        lambda: ui.write_json(json, {"command": command, "seed": seed, "scores": scores}),
        lambda: (
            _write_report(report, found, About(command, {"positions": positions, "games": games}, seed)) if report else None
        ),
    )


def _write_report(folder: Path, found: Mapping[str, Sequence[Score]], about: About) -> None:
    sections = []
    for name, scores in found.items():
        with plots_noted() as plots:
            _plot(folder, scores)
        sections.append(Section(name, [TASKS[name].asks], _grids_of(scores), plots))
    write_page(folder, "dice-envs: players who speak in words", [INTRO], sections, about)


# --- tables and plots ------------------------------------------------------------------------------------------------


def _grids_of(scores: Sequence[Score]) -> list[Grid]:
    """Return the tables of one task's scores: the players, bluffs if there are any, then a table for each kind of decision."""
    return [_main_grid(scores), *([_bluff_grid(scores)] if scores[0].bluffs else []), *_kind_grids(scores)]


def _figure(value: float, unit: str, error: float | None = None) -> str:
    """Write a value: in per cent if it is a share."""
    is_share = unit.startswith("%") or unit == GAMES_WON
    return plus_minus(value, error, 2 if is_share else 3, is_share)


def _main_grid(scores: Sequence[Score]) -> Grid:
    first = scores[0]
    unit = f"% of {GAMES_WON}" if first.result_unit == GAMES_WON else first.result_unit
    headings = ("player", f"regret a move ({first.unit})", "wrong", "illegal", f"result without luck ({unit})", "tokens")
    rows = [
        (
            each.player,
            _figure(each.regret, each.unit, each.error),
            f"{100 * each.wrong:.0f} %",
            f"{100 * each.illegal:.1f} %",
            _figure(each.result, each.result_unit, each.result_error),
            f"{each.tally.tokens:,}" if each.tally else "",
        )
        for each in scores
    ]
    notes = [f"a best response to optimal play: {_figure(first.best, first.result_unit)} {unit}; all intervals are 95 %"]
    random = [f"{each.player}: {each.tally.random:,}" for each in scores if each.tally and each.tally.random]
    if random:
        notes.append(f"moves drawn at random after two illegal replies: {', '.join(random)}")
    if any(each.player == "nash" and each.regret > min(other.regret for other in scores) for each in scores):
        notes.append("less regret than nash has says nothing: its solution is an approximation, whose rare moves cost a little")
    return Grid(f"{first.task}: {first.positions:,} positions and {first.games:,} games", headings, rows, notes=notes)


def _kind_grids(scores: Sequence[Score]) -> list[Grid]:
    """A table for each heading, a row for each kind of decision, a column for each player."""
    grids = []
    for by in dict.fromkeys(kind.by for each in scores for kind in each.kinds):
        found = [{kind.label: kind for kind in each.kinds if kind.by == by} for each in scores]
        labels = dict.fromkeys(label for kinds in found for label in kinds)
        rows = []
        for label in labels:
            cells = [
                f"{_figure(kinds[label].regret, scores[0].unit, kinds[label].error)} ({kinds[label].decisions:,})"
                if label in kinds
                else ""
                for kinds in found
            ]
            rows.append((label, *cells))
        title = f"regret by {by} ({scores[0].unit}; decisions in brackets)"
        grids.append(Grid(title, ("", *(each.player for each in scores)), rows))
    return grids


def _bluff_grid(scores: Sequence[Score]) -> Grid:
    rows = [
        (f"{100 * own.solution:.0f} % ({own.positions:,})", *(f"{100 * each.bluffs[k].player:.0f} %" for each in scores))
        for k, own in enumerate(scores[0].bluffs)
    ]
    title = "how often each bluffs where the solution bluffs this often (positions in brackets)"
    return Grid(title, ("solution", *(each.player for each in scores)), rows)


def _plot(folder: Path, scores: Sequence[Score]) -> None:
    """Save the calibration plot of one task's bluffs; nothing for a game without bluffs."""
    if not scores[0].bluffs:
        return
    task = scores[0].task
    caption = (
        f"{task}: how often each player bluffs, beside how often the solution does at the same positions, with 95 % intervals."
    )
    with saved_plot(folder, f"bluffs_{task}", caption, figsize=(9, 6.5)) as (_, axes):
        axes.plot((0, 1), (0, 1), color="#999999", linestyle="--", label="as often as the solution")
        for number, each in enumerate(scores):
            shift = 0.006 * (number - (len(scores) - 1) / 2)  # side by side, so that intervals can be told apart
            axes.errorbar(
                [own.solution + shift for own in each.bluffs],
                [own.player for own in each.bluffs],
                [[min(own.error, own.player) for own in each.bluffs], [min(own.error, 1 - own.player) for own in each.bluffs]],
                marker="o",
                linestyle="none",
                capsize=3,
                label=each.player,
            )
        axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), xlabel="chance of a bluff, solution", ylabel="share of bluffs, player")
        axes.set_title(f"bluffs in {task}")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
