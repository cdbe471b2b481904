"""`measure`: an agent's distance from optimal play, or what a response that is trained against it wins."""

from __future__ import annotations

from typing import Annotated

import typer

from dice_envs import measure
from dice_envs.agent.specs import lineup
from dice_envs.core.game import single_seat
from dice_envs.core.options import check_choice
from dice_envs.experiments import ui
from dice_envs.experiments.jobs import on_ray
from dice_envs.experiments.response import measure_response
from dice_envs.experiments.ui.grids import measures_grid, show_all


def main(
    game: ui.GameArgument,
    agent: Annotated[str, typer.Argument(help="The agent, say numbers:bluff=0.25; `agents` lists them.")],
    option: ui.OptionOption = None,
    sample: Annotated[
        int | None, ui.count_option(help="Size of a sample of deals or games, where there are too many for all of them.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Agent at another seat of a table; repeat once per seat in turn order. Copies of AGENT if left out."),
    ] = None,
    response: Annotated[
        str | None, typer.Option(help="ppo: train a response to the agent; its return is a lower bound on a best response's.")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Minutes of training, with --response.")] = 5.0,
    games: Annotated[int, ui.count_option(help="Games in which the trained response is evaluated, with --response.")] = 20_000,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    ray: ui.RayOption = None,
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
    variant, (player, *_), policy = lineup(game, ui.game_options(option), [agent, *(against or ())], single_seat)
    seed = ui.seed_or_fresh(seed)
    ui.print_mode(variant, policy)
    with on_ray(ray) as workers:
        if response is not None:
            with ui.progress(f"training a response to {agent}, minutes", minutes):
                measured = measure_response(variant, agent, player, minutes, games, seed, workers=workers)
        else:
            with ui.progress(f"measuring {agent}") as bar:
                apply = map if ray is None else workers.map
                measured = measure(
                    variant, agent, seed=seed, sample=sample, done=bar.advance, apply=apply, against=against or ()
                )
    grid = measures_grid(measured, trained=response is not None, at_table=bool(against))
    ui.finish(lambda: show_all([grid]), lambda: ui.write_json(json, measured))
