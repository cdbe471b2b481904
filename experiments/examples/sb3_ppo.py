"""Stable-Baselines3's PPO and DQN, and SB3-contrib's MaskablePPO, on one game: what action masks change.

    make example NAME=sb3_ppo ARGS="--algorithm ppo --seed 1"

One player's turn of the game of 30s, whose best strategy scores 30.1520 pips on average and random play 24.4514. Each learner
has 200,000 steps, about half a minute of one core. Score is what its likeliest actions earn, exactly, where it may choose among
legal ones; illegal is the share of 20,000 games that end by an illegal action where it may not. Seeds 1 and 2:

| algorithm | score | illegal |
|---|---|---|
| `maskable_ppo` | 30.1173 30.0829 | 89 % 90 % |
| `ppo` | 28.1511 28.4308 | 0.00 % 0.00 % |
| `dqn` | 27.9623 27.9453 | 0.00 % 0.01 % |

Without masks a learner has to find out what is legal: after 20,000 steps `ppo` and `dqn` always end the turn at once, the one
action that is always legal (21 pips). MaskablePPO learns nothing about illegal actions, so it needs its mask in play too.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO

import dice_envs
import dice_envs.envs.sb3
from dice_envs.core.batch import IllegalAction
from dice_envs.core.options import check_range

GAME = "thirties"
NUM_ENVS = 64
EVALUATED = 20_000  # games
Z95 = 1.959963984540054  # the normal distribution's 97.5 % point

NETWORK = {"net_arch": [128, 128]}


def make(algorithm: str, seed: int) -> Any:
    """The learner and its environment.

    MaskablePPO finds the environment's masks by itself. PPO and DQN have no masks: where an action that is not legal loses
    the game with the least possible return, they learn what is legal as they learn all else.
    """
    illegal_action: IllegalAction = "raise" if algorithm == "maskable_ppo" else "lose"
    env = dice_envs.envs.sb3.make_vec_env(GAME, NUM_ENVS, seed=seed, illegal_action=illegal_action)
    # gamma=1: a game ends by itself after a few moves, and only its end is rewarded.
    common: dict[str, Any] = {"gamma": 1.0, "policy_kwargs": NETWORK, "seed": seed, "device": "cpu"}
    if algorithm == "dqn":
        return DQN(
            "MlpPolicy",
            env,
            learning_rate=lambda left: 1e-3 * left,
            buffer_size=200_000,
            learning_starts=5_000,
            batch_size=512,
            train_freq=1,  # steps of all environments between two updates, so of 64 decisions
            gradient_steps=1,
            target_update_interval=64 * NUM_ENVS,
            exploration_fraction=0.3,
            exploration_final_eps=0.05,
            **common,
        )
    learner = MaskablePPO if algorithm == "maskable_ppo" else PPO
    return learner(
        "MlpPolicy",
        env,
        n_steps=64,
        batch_size=1024,
        n_epochs=4,
        learning_rate=lambda left: 1e-3 * left,
        ent_coef=0.01,
        **common,
    )


def action_values(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    """What the learner takes the largest of: DQN's action values, or PPO's logits."""

    def values(observations: np.ndarray) -> np.ndarray:
        seen = torch.from_numpy(observations)
        with torch.no_grad():
            found = model.q_net(seen) if isinstance(model, DQN) else model.policy.get_distribution(seen).distribution.logits
        return found.numpy()

    return values


def played(values: Callable[[np.ndarray], np.ndarray], seed: int) -> tuple[float, float, float]:
    """Games without masks: the mean return, the half-width of its 95 % interval, and the share that an illegal action ended."""
    env = dice_envs.envs.sb3.make_vec_env(GAME, EVALUATED, seed=seed, illegal_action="lose")
    observations: Any = env.reset()
    returns, illegal = np.full(EVALUATED, np.nan), 0
    while np.isnan(returns).any():
        observations, _, dones, infos = env.step(values(observations).argmax(axis=1))
        for i in np.flatnonzero(dones & np.isnan(returns)):  # an ended game is dealt again; only the first one counts
            returns[i] = infos[i]["episode"]["r"]
            illegal += "illegal_action" in infos[i]
    return float(returns.mean()), float(Z95 * returns.std(ddof=1) / EVALUATED**0.5), illegal / EVALUATED


def report(model: Any, seed: int) -> None:
    """How good the learner's likeliest actions are: played without masks, and measured exactly with them."""
    values = action_values(model)

    def likeliest(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """What `measure` takes: from observations and action masks to action probabilities, for any number of positions."""
        best = np.where(masks == 1, values(observations), -np.inf).argmax(axis=1)
        return np.eye(masks.shape[1])[best]

    mean, error, illegal = played(values, seed)
    print(f"without masks {mean:.4f} ± {error:.4f} pips in {EVALUATED:,} games, {illegal:.2%} ended by an illegal action")
    value = dice_envs.measure(GAME, likeliest).measures[0]
    print(f"with masks {value.value:.4f} of {value.optimum:.4f} pips, exactly")


def main() -> None:
    """Read the options, train, measure."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", choices=("maskable_ppo", "ppo", "dqn"), default="maskable_ppo", help="the learner")
    parser.add_argument("--steps", type=int, default=200_000, help="decisions of the learner, in all")
    parser.add_argument("--seed", type=int, default=secrets.randbits(31), help="fixes all that is random; fresh if left out")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's")
    options = parser.parse_args()
    try:
        check_range("--steps", options.steps, 1, 10**10)
        check_range("--seed", options.seed, 0, 2**32 - 1)
        check_range("--threads", options.threads, 1, 256)
    except ValueError as problem:
        parser.error(str(problem))
    torch.set_num_threads(options.threads)
    print(f"seed {options.seed}", flush=True)
    model = make(options.algorithm, options.seed)
    model.learn(options.steps)
    report(model, options.seed)


if __name__ == "__main__":
    main()
