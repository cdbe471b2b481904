"""`measure`: an agent's distance from optimal play, or what a response that is trained against it wins.

The return of a trained response is a lower bound of a best response's. It is useful where no exact best response is known: with
three players and more, against agents with memory, in large games.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from dice_envs import Measurement, Measures, Variant, measure
from dice_envs.agent import Agent
from dice_envs.agent.casting import cast
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.agents.ppo import Likeliest, NetworkPolicy
from dice_envs.core.game import single_seat
from dice_envs.core.machine import torch_threads
from dice_envs.core.options import check_choice, check_range, check_seed
from dice_envs.exact.intervals import half_width
from dice_envs.experiments import ui
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.arena.results import shares_of
from dice_envs.experiments.jobs import HERE, Workers, on_ray
from dice_envs.experiments.ui.grids import measures_grid, show_all
from dice_envs.learn.presets import Preset, presets_of

MOST_MINUTES = 60 * 24 * 7


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
    variant, (player, *_), policy = cast(game, ui.game_options(option), [agent, *(against or ())], single_seat)
    seed = ui.seed_or_fresh(seed)
    ui.print_mode(variant, policy)
    with on_ray(ray) as workers:
        if response is not None:
            with ui.progress(f"training a response to {agent}, minutes", minutes) as done:
                measured = measure_response(variant, agent, player, minutes, games, seed, done=done, workers=workers)
        else:
            with ui.progress(f"measuring {agent}") as done:
                apply = map if ray is None else workers.map
                measured = measure(variant, agent, seed=seed, sample=sample, done=done, apply=apply, against=against or ())
    ui.finish(lambda: show_all([measures_grid(measured, trained=response is not None)]), lambda: ui.write_json(json, measured))


def train_response(
    variant: Variant,
    agent: Agent,
    minutes: float,
    seed: int,
    preset: Preset | None = None,
    done: Callable[[float], Any] = lambda minutes: None,
) -> tuple[dict[str, NetworkPolicy], int]:
    """Train policies to win from `agent`, which has every other seat; return them and the learner's steps.

    The policies are "last" and, where the preset (None: "quick") averages policies, "averaged". `seed` fixes all but the number
    of rollouts that fit into the time, at least one. `done` is called with the minutes since its last call.
    """
    from dice_envs.learn.ppo import PPO

    p = dataclasses.replace(preset or presets_of(variant.game.name)["quick"], self_play=0.0)
    began, passed = time.perf_counter(), 0.0
    learner = PPO(variant, p, agent, seed)
    with torch_threads(p.threads):
        while passed < minutes:
            learner.iterate(left=max(0.0, 1 - passed / minutes))
            now = (time.perf_counter() - began) / 60
            done(now - passed)
            passed = now
    return learner.policies(), learner.steps


def _bound(name: str, values: np.ndarray, limits: tuple[float, float], even: float, unit: str, trained: str) -> Measurement:
    """The response's mean beside `even`, its mean among copies of itself: a bound only if it is significantly higher."""
    mean, half = float(values.mean()), half_width(values, *limits)
    if mean - half > even:
        note = f"a lower bound of what a best response gets: {trained}"
    else:
        note = f"no bound: the response does not get significantly more than its even share; {trained}"
    return Measurement(name, mean, even, max(0.0, mean - even), half, unit, note)


def measure_response(
    variant: Variant,
    name: str,
    agent: Agent,
    minutes: float = 5.0,
    games: int = 20_000,
    seed: int = 0,
    preset: Preset | None = None,
    done: Callable[[float], Any] = lambda minutes: None,
    workers: Workers = HERE,
) -> Measures:
    """Measure how much a trained response wins from an agent: above the even share, a lower bound of a best response's wins.

    The response trains against the agent at every other seat, then plays `games` games against it, seats rotating. It is the
    last or the averaged policy, with drawn or most likely actions: the form that did best in `games` earlier games. A gap is
    a mean return above that of the agent among copies of itself, which is 0 in a zero-sum game.

    Args:
        variant: a zero-sum game of two seats or more.
        name: the agent's.
        agent: the agent.
        minutes: of training, up to a week.
        games: evaluated.
        seed: fixes all but the number of rollouts that fit into the time.
        preset: how to train; None: the game's preset "quick".
        done: progress callback: the minutes of training since its last call.
        workers: play the games of the evaluation.

    Raises:
        ValueError: a game of one seat or that is not zero-sum, or arguments out of range.
    """
    if variant.facts.num_seats == 1:
        raise ValueError(f"{variant} has one seat, so nobody can respond to {name}; `measure` without --response is exact")
    if not variant.facts.zero_sum:
        raise ValueError(f"{variant} is not zero-sum, so the wins of a response do not measure {name}")
    check_range("minutes", minutes, 0, MOST_MINUTES, whole=False)
    if minutes <= 0:
        raise ValueError(f"minutes must be above 0, not {minutes}")
    check_range("games", games, 2, MOST_GAMES)
    seed = check_seed(seed)
    policies, steps = train_response(variant, agent, minutes, seed, preset, done)
    others = [agent] * (variant.facts.num_seats - 1)
    trying, judging = np.random.SeedSequence(seed).spawn(2)
    forms: dict[str, Agent] = {}
    for which, policy in policies.items():
        forms[f"the {which} policy's drawn actions"] = policy
        forms[f"the {which} policy's most likely actions"] = Likeliest(policy)
    tried = {
        how: play_table(variant, [form, *others], games, trying, workers=workers)[:, 0].mean() for how, form in forms.items()
    }
    how = max(tried, key=lambda each: tried[each])
    form = forms[how]
    returns = play_table(variant, [form, *others], games, judging, workers=workers)
    won, shares = returns[:, 0], shares_of(returns)[0][:, 0]
    trained = f"PPO with {how}, {steps:,} steps, {games:,} games"
    measures = (
        _bound("trained response's return", won, variant.facts.likely_returns, 0.0, "return", trained),
        _bound("trained response wins", shares, (0.0, 1.0), 1 / variant.facts.num_seats, "probability", trained),
    )
    return Measures(variant.game.name, variant.changed_options(), name, seed, None, measures)
