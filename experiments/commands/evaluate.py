"""`evaluate`: what a player is worth, without luck."""

from __future__ import annotations

from typing import Annotated

import typer

from dice_envs import evaluate, response_values
from dice_envs.agent.casting import cast
from dice_envs.core.game import single_seat
from dice_envs.evaluation import check_games
from dice_envs.experiments.jobs.workers import kept_beside, on_ray
from dice_envs.experiments.ui.chats import Counted, logged
from dice_envs.experiments.ui.console import finish, print_mode
from dice_envs.experiments.ui.evaluations import save_plots, show
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.options import (
    GameArgument,
    JsonOption,
    OptionOption,
    RayOption,
    ReportOption,
    ResumeOption,
    SeedOption,
    count_option,
    game_options,
    seed_or_fresh,
)
from dice_envs.experiments.ui.progress import progress

__all__ = ["PLACE", "main"]

PLACE = 9  # in the list of --help


def main(
    game: GameArgument,
    agent: Annotated[str, typer.Argument(help="The player, say ppo; `agents` lists them.")],
    against: Annotated[
        str | None,
        typer.Option(help="The opponent, with fixed probabilities; nash if left out. Solo and team games have none."),
    ] = None,
    option: OptionOption = None,
    games: Annotated[int, count_option("--games", help="Number of games; seats rotate.")] = 1000,
    match: Annotated[int, typer.Option(help="Games played one after another; agents with a memory keep it.")] = 1,
    seed: SeedOption = None,
    json: JsonOption = None,
    report: ReportOption = None,
    ray: RayOption = None,
    resume: ResumeOption = False,
) -> None:
    """Evaluate a player without luck: what it wins from an opponent, and where it gives wins away.

    Every decision is compared with a best response to the opponent, whose values are known exactly. What dice and the
    opponent's choices do to the chance to win is luck, and is taken out. The mean stays right for any player, with a memory or
    with random answers, and good players need about a hundredth of the games.

    With --ray a cluster plays the games, with the same results. With --json finished games are kept beside that file; after
    a stop the same command with --resume continues.

    Example: evaluate liars_dice ppo --against nash -o num_dice=3
    """
    specs = [agent] if against is None else [agent, against]
    variant, (player, *_), policy = cast(game, game_options(option), specs, single_seat)
    check_games(games, match)
    check_writable(json)
    check_report(report)
    print_mode(variant, policy)
    (player,) = logged([player], json, resume)
    what = {"game": str(variant.plain), "agents": specs, "games": games, "match": match}
    with kept_beside(json, resume, what, seed) as kept, on_ray(ray, kept) as plain:
        workers = Counted(plain, [player])
        seed = kept.seed if kept else seed_or_fresh(seed)
        with progress("values of choices") as valued:
            values = response_values(variant, against, done=lambda amount, total: valued(amount / total))
        with progress(f"{games:,} games", games) as done:
            found = evaluate(
                variant, player, against, games, seed=seed, match=match, name=agent, values=values, done=done, run=workers.run
            )
    finish(
        lambda: show(found, workers.lines()),
        lambda: write_json(json, found),
        lambda: save_plots(report, found) if report is not None else None,
    )
