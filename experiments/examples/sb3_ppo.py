"""Stable-Baselines3's PPO and DQN and SB3-contrib's MaskablePPO on a game: the difference that action masks make.

    make example NAME=sb3_ppo ARGS="--game liars_dice --algorithm ppo --seed 1"

Thirties is one player's turn of the game of 30s: the best strategy scores 30.1520 pips on average, random play 24.4514. Liar's
Dice has two dice each, against an agent that plays by the numbers: a best response wins 85.76 % of games. Each learner takes
200,000 steps, about half a minute on one core. Score is the exact value of its likeliest legal actions. Illegal is the share of
20,000 games, played without masks, that an illegal action ended. Thirties, seeds 1 and 2:

| algorithm | score | illegal |
|---|---|---|
| `maskable_ppo` | 30.1173 30.0829 | 89 % 90 % |
| `ppo` | 28.1511 28.4308 | 0.00 % 0.00 % |
| `dqn` | 27.9623 27.9453 | 0.00 % 0.01 % |

Without masks a learner has to find out what is legal. In Thirties, after 20,000 steps, `ppo` and `dqn` always end the turn at
once (21 pips), which is the only action that is always legal. MaskablePPO learns nothing about illegal actions, so it needs the
mask in play too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import DQN, PPO

import dice_envs
import dice_envs.envs.sb3
from dice_envs.core.batch import IllegalAction
from dice_envs.core.dice import derived_seeds
from dice_envs.core.game import single_seat
from dice_envs.experiments.examples import CommandLine, print_wins

GAMES = {  # with the opponent, if there is one
    "thirties": (single_seat("thirties"), "random"),
    "liars_dice": (dice_envs.configure("liars_dice", num_dice=2, past_rounds=False), "numbers"),
}
NUM_ENVS = 64
EVALUATED = 20_000  # games
Z95 = 1.959963984540054  # the normal distribution's 97.5 % point

NETWORK = {"net_arch": [128, 128]}


def make(game: str, algorithm: str, seed: int) -> Any:
    """The learner with its environment.

    MaskablePPO finds the environment's masks by itself. PPO and DQN have no masks. Here an illegal action ends the game with
    the least possible return, so that they learn what is legal like everything else.
    """
    illegal_action: IllegalAction = "raise" if algorithm == "maskable_ppo" else "lose"
    env = dice_envs.envs.sb3.make_vec_env(GAMES[game][0], NUM_ENVS, GAMES[game][1], seed=seed, illegal_action=illegal_action)
    # gamma=1: a game ends after a few moves, and only its end is rewarded.
    common: dict[str, Any] = {"gamma": 1.0, "policy_kwargs": NETWORK, "seed": seed, "device": "cpu"}
    if algorithm == "dqn":
        return DQN(
            "MlpPolicy",
            env,
            learning_rate=lambda left: 1e-3 * left,
            buffer_size=200_000,
            learning_starts=5_000,
            batch_size=512,
            train_freq=1,  # one step of all environments, that is 64 decisions, between two updates
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
    """A function from observations to the numbers whose largest one is the likeliest action: DQN's values or PPO's logits."""

    def values(observations: np.ndarray) -> np.ndarray:
        seen = torch.from_numpy(observations)
        with torch.no_grad():
            found = model.q_net(seen) if isinstance(model, DQN) else model.policy.get_distribution(seen).distribution.logits
        return found.numpy()

    return values


def played(game: str, values: Callable[[np.ndarray], np.ndarray], seed: int) -> tuple[float, float, float]:
    """Play without masks; return the mean return, the half-width of its 95 % interval, and the share of illegal ends."""
    env = dice_envs.envs.sb3.make_vec_env(GAMES[game][0], EVALUATED, GAMES[game][1], seed=seed, illegal_action="lose")
    observations: Any = env.reset()
    returns, illegal = np.full(EVALUATED, np.nan), 0
    while np.isnan(returns).any():
        observations, _, dones, infos = env.step(values(observations).argmax(axis=1))
        for i in np.flatnonzero(dones & np.isnan(returns)):  # an ended game is dealt again; only the first one counts
            returns[i] = infos[i]["episode"]["r"]
            illegal += "illegal_action" in infos[i]
    return float(returns.mean()), float(Z95 * returns.std(ddof=1) / EVALUATED**0.5), illegal / EVALUATED


def report(game: str, model: Any, seed: int) -> None:
    """Print how good the learner's likeliest actions are: in games without masks, and measured exactly with masks."""
    values = action_values(model)

    def likeliest(observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """The policy as `measure` takes it: observations and action masks of n positions → action probabilities."""
        best = np.where(masks == 1, values(observations), -np.inf).argmax(axis=1)
        return np.eye(masks.shape[1])[best]

    mean, error, illegal = played(game, values, seed)
    print(f"without masks {mean:.4f} ± {error:.4f} a game in {EVALUATED:,} games, {illegal:.2%} ended by an illegal action")
    variant, opponent = GAMES[game]
    if game == "thirties":
        pips = dice_envs.measure(variant, likeliest).measures[0]
        print(f"with masks {pips.value:.4f} of {pips.optimum:.4f} pips, exactly")
    else:
        print("with masks ", end="")
        print_wins(variant, likeliest, opponent)


def main() -> None:
    """Read the options, train, measure."""
    line = CommandLine(__name__, steps=200_000)
    line.add_argument("--game", choices=GAMES, default="thirties", help="the game")
    line.add_argument("--algorithm", choices=("maskable_ppo", "ppo", "dqn"), default="maskable_ppo", help="the learner")
    options = line.read()
    model = make(options.game, options.algorithm, options.seed)
    model.learn(options.steps)
    report(options.game, model, *derived_seeds(options.seed, "evaluation"))


if __name__ == "__main__":
    main()
