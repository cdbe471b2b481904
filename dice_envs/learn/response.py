"""PPO as a best response to an agent that does not learn."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from dice_envs.agent import Agent
from dice_envs.agents.ppo import NetworkPolicy
from dice_envs.core.game import Variant
from dice_envs.learn.builder import learner, policy_of, torch_threads
from dice_envs.learn.presets import Preset, presets_of

__all__ = ["train_response"]


def train_response(
    variant: Variant,
    agent: Agent,
    minutes: float,
    seed: int,
    preset: Preset | None = None,
    done: Callable[[float], Any] = lambda minutes: None,
) -> tuple[dict[str, NetworkPolicy], int]:
    """Train policies to win from `agent`, which has every other seat; return them and the learner's steps.

    The policies are "last" and, where the preset averages policies, "averaged".

    Args:
        variant: a game of two seats or more.
        agent: does not learn.
        minutes: of training, at least one rollout.
        seed: fixes all but the number of rollouts that fit into the time.
        preset: how to train; None: the game's preset "quick".
        done: progress callback: the minutes that have passed since its last call.
    """
    from stable_baselines3.common.callbacks import BaseCallback

    p = dataclasses.replace(preset or presets_of(variant.game.name)["quick"], self_play=0.0)
    began = time.perf_counter()
    passed = 0.0

    class Clock(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            nonlocal passed
            now = (time.perf_counter() - began) / 60
            done(now - passed)
            passed = now

    model = learner(variant, p, agent, seed, remaining=lambda share: max(0.0, 1 - passed / minutes))
    with torch_threads(p.threads):
        while passed < minutes:
            model.learn(p.num_envs * p.num_steps, callback=Clock(), reset_num_timesteps=False)
    found = {"last": policy_of(variant, p, model)}
    if p.average_rate:
        found["averaged"] = policy_of(variant, p, model, averaged=True)
    return found, model.num_timesteps
