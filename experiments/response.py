"""A trained response: what a network that is trained against an agent wins from it.

Its return is a lower bound of a best response's. It is useful where no exact best response is known: with three players and
more, against agents with memory, in large games.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from dice_envs import Measurement, Measures, Variant
from dice_envs.agent import Agent
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.agents.ppo import Likeliest, NetworkPolicy
from dice_envs.core.machine import torch_threads
from dice_envs.core.options import check_range, check_seed
from dice_envs.core.work import advance, work
from dice_envs.exact.intervals import half_width
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.arena.results import shares_of
from dice_envs.experiments.jobs import HERE, Workers
from dice_envs.learn.presets import Preset, presets_of

MOST_MINUTES = 60 * 24 * 7


def train_response(
    variant: Variant,
    agent: Agent,
    minutes: float,
    seed: int,
    preset: Preset | None = None,
) -> tuple[dict[str, NetworkPolicy], int]:
    """Train policies to win from `agent`, which has every other seat; return them and the learner's steps.

    The policies are "last" and, where the preset (None: "quick") averages policies, "averaged". `seed` fixes all but the number
    of rollouts that fit into the time, at least one. Advances by minutes.
    """
    from dice_envs.learn.ppo import PPO

    p = dataclasses.replace(preset or presets_of(variant.game.name)["quick"], self_play=0.0)
    began, passed = time.perf_counter(), 0.0
    learner = PPO(variant, p, agent, seed)
    with torch_threads(p.threads):
        while passed < minutes:
            learner.iterate(left=max(0.0, 1 - passed / minutes))
            now = (time.perf_counter() - began) / 60
            advance(now - passed)
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
    policies, steps = train_response(variant, agent, minutes, seed, preset)
    others = [agent] * (variant.facts.num_seats - 1)
    trying, judging = np.random.SeedSequence(seed).spawn(2)
    forms: dict[str, Agent] = {}
    for which, policy in policies.items():
        forms[f"the {which} policy's drawn actions"] = policy
        forms[f"the {which} policy's most likely actions"] = Likeliest(policy)
    with work():
        tried = {
            how: play_table(variant, [form, *others], games, trying, workers=workers)[:, 0].mean()
            for how, form in forms.items()
        }
        how = max(tried, key=lambda each: tried[each])
        returns = play_table(variant, [forms[how], *others], games, judging, workers=workers)
    won, shares = returns[:, 0], shares_of(returns)[0][:, 0]
    trained = f"PPO with {how}, {steps:,} steps, {games:,} games"
    measures = (
        _bound("trained response's return", won, variant.facts.likely_returns, 0.0, "return", trained),
        _bound("trained response wins", shares, (0.0, 1.0), 1 / variant.facts.num_seats, "probability", trained),
    )
    return Measures(variant.game.name, variant.changed_options(), name, seed, None, measures)
