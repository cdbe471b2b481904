"""A best response that is trained: what PPO learns to win from an agent that stays as it is.

It bounds from below what a best response wins, where no exact one is known: at tables of three and more, against agents
with memory, in games too large.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.ppo import Likeliest, NetworkPolicy
from dice_envs import Measurement, Measures, Variant
from dice_envs.agent import Agent
from dice_envs.exact import Z95
from dice_envs.game import check_range
from experiments.arena import MOST_GAMES, play_table
from experiments.presets import MOST_SEED, Preset, presets_of
from experiments.workers import HERE, Workers

__all__ = ["measure_response", "train_response"]

MOST_MINUTES = 60 * 24 * 7


def train_response(
    variant: Variant,
    agent: Agent,
    minutes: float,
    seed: int,
    preset: Preset | None = None,
    done: Callable[[float], Any] = lambda minutes: None,
) -> tuple[NetworkPolicy, int]:
    """A policy trained to win from `agent`, which has every other seat; and the steps that it learnt from.

    Args:
        variant: a game of two seats or more.
        agent: does not learn.
        minutes: of training, at least one rollout.
        seed: fixes all but the number of rollouts that fit into the time.
        preset: how to train; None: as `train` does against opponents.
        done: told the minutes that have passed since it was told last.
    """
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    from dice_envs.ppo import RegularisedPPO, dense_layers
    from dice_envs.sb3 import make_vec_env

    p = preset or presets_of(variant.game.name)["quick"]
    torch.set_num_threads(p.threads)
    began = time.perf_counter()
    passed = 0.0

    def remaining(_: float) -> float:
        return max(0.0, 1 - passed / minutes)

    class Clock(BaseCallback):
        """Says what time it is."""

        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            nonlocal passed
            now = (time.perf_counter() - began) / 60
            done(now - passed)
            passed = now

    model = RegularisedPPO(
        "MlpPolicy",
        make_vec_env(variant, p.num_envs, agent, seed=seed, expected_rewards=p.expected_rewards),
        n_steps=p.num_steps,
        batch_size=p.minibatch,
        n_epochs=p.epochs,
        learning_rate=lambda progress: p.learning_rate * remaining(progress),
        clip_range=p.clip,
        normalize_advantage=p.normalize,
        vf_coef=p.value_weight,
        ent_coef=p.entropy,
        gae_lambda=p.gae_lambda,
        policy_kwargs={"net_arch": list(p.hidden)},
        seed=seed,
        device="cpu",
    )
    while passed < minutes:
        model.learn(p.num_envs * p.num_steps, callback=Clock(), reset_num_timesteps=False)
    policy = NetworkPolicy(variant.game.name, variant.changed_options(), dense_layers(model.policy))
    return policy, model.num_timesteps


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
    """What a trained response wins from an agent: a lower bound of what a best response wins.

    The response trains against the agent at every other seat, then plays `games` games against it, seats rotating; of its
    two forms, drawn and most likely actions, the one that is better in as many games before is taken. A gap is a mean
    return above that of the agent in its own company, which is 0 in a zero-sum game.

    Args:
        variant: a zero-sum game of two seats or more.
        name: the agent's.
        agent: the agent.
        minutes: of training, up to a week.
        games: evaluated.
        seed: fixes all but how much fits into the time.
        preset: how to train; None: as `train` does against opponents.
        done: told the minutes that have passed since it was told last.
        workers: where the games are played that judge the response.

    Raises:
        ValueError: a game of one seat or that is not zero-sum, or arguments out of range.
    """
    if variant.facts.num_seats == 1:
        raise ValueError(f"{variant} has one seat, so nobody can respond to {name}; `measure` without --response is exact")
    if not variant.facts.zero_sum:
        raise ValueError(f"{variant} is not zero-sum, so what a response wins is no measure of {name}")
    check_range("minutes", minutes, 0, MOST_MINUTES, whole=False)
    if minutes <= 0:
        raise ValueError(f"minutes must be above 0, not {minutes}")
    check_range("games", games, 2, MOST_GAMES)
    check_range("seed", seed, 0, MOST_SEED)
    policy, steps = train_response(variant, agent, minutes, seed, preset, done)
    others = [agent] * (variant.facts.num_seats - 1)
    trying, judging = np.random.SeedSequence(seed).spawn(2)
    forms: list[tuple[str, Agent]] = [("drawn actions", policy), ("most likely actions", Likeliest(policy))]
    tried = [play_table(variant, [form, *others], games, trying, workers=workers)[:, 0].mean() for _, form in forms]
    how, form = forms[int(np.argmax(tried))]
    returns = play_table(variant, [form, *others], games, judging, workers=workers)
    won = returns[:, 0]
    half = Z95 * float(won.std(ddof=1)) / math.sqrt(games)
    best = returns.max(axis=1)
    shares = (won >= best - 1e-6) / (returns >= best[:, None] - 1e-6).sum(axis=1)
    fair = 1 / variant.facts.num_seats
    note = f"a lower bound: PPO with {how}, {steps:,} steps, {games:,} games"
    measures = (
        Measurement("trained response's return", float(won.mean()), 0.0, max(0.0, float(won.mean())), half, "return", note),
        Measurement(
            "trained response wins", float(shares.mean()), fair, max(0.0, float(shares.mean()) - fair),
            Z95 * float(shares.std(ddof=1)) / math.sqrt(games), "probability", note,
        ),
    )  # fmt: skip
    return Measures(variant.game.name, variant.changed_options(), name, seed, None, measures)
