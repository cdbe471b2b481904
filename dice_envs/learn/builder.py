"""The one place where a preset becomes a learner."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dice_envs.agents.ppo import NetworkPolicy
from dice_envs.core.game import Variant
from dice_envs.learn.presets import Preset

__all__ = ["RUN_ONLY", "learner", "policy_of", "torch_threads"]

# Fields of a preset that say how long a run is and what it keeps; `learner` and `policy_of` use all others.
RUN_ONLY = frozenset(
    ["steps", "opponents", "self_share", "past_selves", "snapshot_every", "measure_every", "keep", "checkpoint_every"]
)  # fmt: skip


@contextlib.contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Set the number of PyTorch's threads while a block runs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def learner(
    variant: Variant,
    preset: Preset,
    opponents: Any,
    seed: int,
    *,
    remaining: Callable[[float], float] = lambda share: share,
    log: str | None = None,
    device: str = "cpu",
) -> Any:
    """Build a preset's `dice_envs.learn.ppo.RegularisedPPO` and its environment, with games dealt.

    Args:
        variant: the game.
        preset: how to train. Every field is used but those of a run (see `RUN_ONLY`).
        opponents: at the other seats, as `dice_envs.envs.sb3.make_vec_env` takes them.
        seed: fixes weights, games and all that is drawn.
        remaining: maps the share of steps that remain to the share of the training that remains; schedules follow it.
        log: TensorBoard's folder.
        device: PyTorch's.
    """
    from dice_envs.envs.sb3 import make_vec_env
    from dice_envs.learn.ppo import RegularisedPPO

    p = preset
    env = make_vec_env(variant, p.num_envs, opponents, self_play=p.self_play, expected_rewards=p.expected_rewards)

    def timed(schedule: float | Callable[[float], float]) -> float | Callable[[float], float]:
        return (lambda share: schedule(remaining(share))) if callable(schedule) else schedule

    with torch_threads(p.threads):
        model = RegularisedPPO(
            "MlpPolicy",
            env,
            n_steps=p.num_steps,
            batch_size=p.minibatch,
            n_epochs=p.epochs,
            learning_rate=timed(_between(p.learning_rate, p.learning_rate_end)),
            clip_range=p.clip,
            normalize_advantage=p.normalize,
            vf_coef=p.value_weight,
            ent_coef=timed(_falling(p.entropy, p.entropy_end)),
            kl_coef=timed(_falling(p.kl, p.kl_end)),
            reference_rate=p.reference_rate,
            proximal_coef=timed(_falling(p.proximal, p.proximal_end)),
            settle=p.settle,
            least_stake=p.least_stake,
            central_critic=p.central_critic,
            average_rate=p.average_rate,
            exploration=timed(_falling(p.exploration, 0.0)),
            gae_lambda=p.gae_lambda,
            policy_kwargs={"net_arch": list(p.hidden)},
            tensorboard_log=log,
            seed=seed,
            device=device,
        )
        if p.input_scale != 1:
            _steepen(model.policy, p.input_scale)
    # What `learn` would do first: a new run can then be saved and resumed like any other.
    model._last_obs = env.reset()
    model._last_episode_starts = np.ones(p.num_envs, bool)
    return model


def policy_of(variant: Variant, preset: Preset, model: Any, averaged: bool = False) -> NetworkPolicy:
    """A copy of the model's present policy, or of the running mean of its policies."""
    from dice_envs.learn.ppo import dense_layers

    layers = dense_layers(model.average_policy if averaged else model.policy)
    return NetworkPolicy(variant.game.name, variant.changed_options(), layers, floor=preset.floor)


def _steepen(policy: Any, scale: float) -> None:
    """Multiply the weights of the first layers, and centre their units on inputs from 0 to 1."""
    import torch

    with torch.no_grad():
        for network in (policy.mlp_extractor.policy_net, policy.mlp_extractor.value_net):
            for first in network[:1]:
                first.weight.mul_(scale)
                first.bias.copy_(-0.5 * first.weight.sum(dim=1))


def _between(start: float, end: float) -> Callable[[float], float]:
    """A linear schedule from `start` to `end`, constant after it: the last rollout may go beyond the end."""
    return lambda remaining: end + (start - end) * max(remaining, 0.0)


def _falling(start: float, end: float | None) -> float | Callable[[float], float]:
    """A schedule from `start` to `end`: geometric, or linear where one of them is 0; constant without an end."""
    if end is None or end == start:
        return start
    if start > 0 and end > 0:
        return lambda remaining: end * (start / end) ** max(remaining, 0.0)
    return _between(start, end)
