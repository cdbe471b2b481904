"""`arena`: agents against each other."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dice_envs.agent import Agent
from dice_envs.agent.casting import cast
from dice_envs.agent.matches import check_match
from dice_envs.core.files import write_text
from dice_envs.core.game import Variant
from dice_envs.evaluation import check_games
from dice_envs.exact import ResponseValues
from dice_envs.experiments import arena, ui
from dice_envs.experiments.arena.results import Result
from dice_envs.experiments.arena.tables import save_plot, show
from dice_envs.experiments.jobs import logged, resumable
from dice_envs.experiments.ui.grids import measuring

LEAST_COMPARED = 100  # games of each meeting from which on a best response is looked for; with fewer, intervals are too wide


def main(
    game: ui.GameArgument,
    agents: ui.AgentsArgument,
    option: ui.OptionOption = None,
    games: ui.GamesOption = 10_000,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    match: Annotated[
        int, typer.Option(help="Games that a pair or table plays one after another; agents with a memory keep it.")
    ] = 1,
    log: Annotated[Path | None, typer.Option(help="Write the games as a log, where the game has a log format.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Compute the win rates instead of playing: Liar's Dice.")] = False,
    without_luck: Annotated[
        bool, typer.Option("--without-luck", help="Take luck out of the results of pairs, as `evaluate` does, where possible.")
    ] = False,
    ray: ui.RayOption = None,
    resume: ui.ResumeOption = False,
) -> None:
    """Let agents play each other: every pair, or one table with an agent at each of three or more seats.

    `3*numbers` stands for three copies, so `ppo 3*numbers` is one agent against three at a table of four. In a cooperative
    game, such as The Shakes, the result is the team's return and its distance from optimal play.

    Seats rotate from game to game. Win rates come with 95 % intervals; a tie counts as half a win. With --exact they are
    computed, no games are played, and --games and --seed have no effect.

    Where a best response to an agent is known, a second table has what it wins from that agent, and the share of its edge
    over half that others took. Where it takes long to find, --without-luck finds it.

    With --without-luck the same games give smaller intervals: what dice and choices of known probabilities did to the chance
    to win is taken out. At least one agent of a pair must have fixed probabilities to which a best response is known.

    With --match N, games are played in matches of N at the same table. An agent with a memory, such as adaptive, then knows
    its opponent from earlier games. Intervals are over matches, and each part of the match has its own win rates.

    If the game has one seat, agents play alone, and the one with the higher return wins. Options that you leave out are
    those of a trained policy, if one takes part.

    With --ray a cluster plays the games, with the same results. With --json finished games are kept beside that file; after
    a stop the same command with --resume continues.

    Example: arena liars_dice random numbers numbers:bluff=0.5 --games 100000
    """
    agents = arena.expanded(agents)
    variant, players, policy = cast(game, ui.game_options(option), agents)
    arena.check_table(variant, len(agents), games)
    check_match(games, match)
    if without_luck:
        _check_without_luck(variant, games, match)
    given = {"log": log is not None, "ray": ray is not None, "resume": resume, "without-luck": without_luck}
    _check_together(exact, match, [name for name, is_given in given.items() if is_given])
    writer: Any = arena.log_writer(variant, len(agents)) if log is not None else None
    ui.check_writable(log)
    ui.print_mode(variant, policy)
    players = logged(players, json, resume)
    meetings = arena.num_meetings(variant, len(agents))
    hand_over = functools.partial(_hand_over, variant, players, json, report, log, writer)
    if exact:
        with ui.progress("computing") as done:
            result = arena.exact_tournament(variant, agents, done, players)
        hand_over(result)
        return
    what = {"game": str(variant.plain), "agents": agents, "games": games, "match": match, "without_luck": without_luck}
    with resumable(json if log is None else None, resume, what, seed, ray, players) as (seed, workers):
        values: list[ResponseValues | None] | None = None
        reasons: list[str] = []
        if without_luck:
            with measuring("values of choices") as told:
                values, reasons = arena.known_values(variant, agents, players, told)
        with ui.progress(f"{meetings} × {games:,} games", meetings * games) as done:
            result = arena.tournament(variant, agents, games, seed, done, players, writer, match, workers, values)
        result.notes = [*reasons, *workers.lines()]
        hand_over(result, seed, values)


def _hand_over(
    variant: Variant,
    players: Sequence[Agent],
    json: Path | None,
    report: Path | None,
    log: Path | None,
    writer: Any,
    result: Result,
    seed: int = 0,
    values: Sequence[ResponseValues | None] | None = None,
) -> None:
    """Add what could be won, print the tables and write all files."""
    arena.add_optimal(result, variant)
    if result.exact or result.games >= LEAST_COMPARED:
        with measuring("what a best response wins") as done:
            result.compare(arena.best_responses(variant, result.agents, players, values, seed, done))
    ui.finish(
        lambda: show(result),
        lambda: ui.write_json(json, result.as_dict()),
        lambda: save_plot(report, f"arena_{variant.game.name}", result) if report is not None else None,
        lambda: write_text(log, writer.text()) if log is not None else None,
    )


def _check_together(exact: bool, match: int, given: Sequence[str]) -> None:
    """Raise ValueError for options that exclude each other; `given` are the names of those beside --exact."""
    if exact and match > 1:
        raise ValueError(f"--exact plays no matches, so --match must be 1 with it, not {match}")
    for name in given:
        if exact:
            raise ValueError(f"--exact plays no games: leave out --{name} or --exact")
        if "log" in given and name != "log":
            raise ValueError(f"--log records games that are played here, in one go: leave out --{name} or --log")


def _check_without_luck(variant: Variant, games: int, match: int) -> None:
    """Raise ValueError where luck cannot be taken out."""
    if variant.facts.num_seats != 2 or variant.facts.cooperative:
        raise ValueError(f"--without-luck is for pairs that play against each other, which {variant} is not: leave it out")
    check_games(games, match)
