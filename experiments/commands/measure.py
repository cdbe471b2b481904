"""`measure`: an agent's distance from optimal play."""

from __future__ import annotations

from typing import Annotated

import typer

from dice_envs import measure
from dice_envs.agent.casting import cast
from dice_envs.core.game import single_seat
from dice_envs.core.options import check_choice
from dice_envs.experiments.jobs.workers import on_ray
from dice_envs.experiments.response import measure_response
from dice_envs.experiments.ui.console import finish, print_mode
from dice_envs.experiments.ui.files import check_writable, write_json
from dice_envs.experiments.ui.measures import measuring, show
from dice_envs.experiments.ui.options import (
    GameArgument,
    JsonOption,
    OptionOption,
    RayOption,
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
    agent: Annotated[str, typer.Argument(help="The agent, say numbers:bluff=0.25; `agents` lists them.")],
    option: OptionOption = None,
    sample: Annotated[
        int | None, count_option(help="Size of a sample of deals or games, where there are too many for all of them.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="Who has the other seats at a table of Liar's Dice, once for each, in their order; else copies have."
        ),
    ] = None,
    response: Annotated[
        str | None, typer.Option(help="ppo: train a response to the agent; its return is a lower bound on a best response's.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Minutes of training, with --response.")] = 5.0,
    games: Annotated[int, count_option(help="Games in which the trained response is evaluated, with --response.")] = 20_000,
    seed: SeedOption = None,
    json: JsonOption = None,
    ray: RayOption = None,
) -> None:
    """Measure how far an agent is from optimal play: exactly where the game allows it, else with a 95 % interval.

    With --response ppo it trains a network against the agent, which has all other seats and does not learn. The network's
    return is a lower bound on a best response's where no exact one is known: with agents that have a memory, for example.

    At a table of Liar's Dice with three players or more the measure is the deviation gain: how many more games one player wins
    if it leaves the strategy that all others play. With --against it is the gain of each player at a table of different agents.

    For a trained policy, options that you leave out are those of its training. An agent that answers at random is measured ten
    times; --ray shares these out on a cluster.

    Example: measure liars_dice numbers:bluff=0.25 -o rules=openspiel -o num_dice=1
    """
    if response is not None:
        check_choice("--response", response, ("ppo",))
        if against:
            raise ValueError("--against is measured exactly: leave out --response or --against")
    variant, (player, *_), policy = cast(game, game_options(option), [agent, *(against or ())], single_seat)
    seed = seed_or_fresh(seed)
    check_writable(json)
    print_mode(variant, policy)
    with on_ray(ray) as workers:
        if response is not None:
            with progress(f"training a response to {agent}, minutes", minutes) as done:
                measured = measure_response(variant, agent, player, minutes, games, seed, done=done, workers=workers)
        else:
            with measuring(agent) as done:
                apply = map if ray is None else workers.map
                measured = measure(variant, agent, seed=seed, sample=sample, done=done, apply=apply, against=against or ())
    finish(lambda: show(measured, trained=response is not None), lambda: write_json(json, measured))
