"""DQN of Stable-Baselines3 as an algorithm."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.logger import Logger

from dice_envs import Mixture
from dice_envs.core.game import Variant
from dice_envs.envs.sb3 import make_vec_env
from dice_envs.experiments.learners import DECISIONS

GAMES = 16
EACH = 20_000  # decisions between two past selves
MOST = 20  # past selves; a new one replaces the oldest


class PastSelvesDQN:
    """DQN against a mixture of its past selves, which is its policy. It has no masks: an illegal action loses the game."""

    unit = DECISIONS

    def __init__(self, variant: Variant, seed: int, steps: int) -> None:
        self.selves = Mixture(["random"])
        self.env = make_vec_env(variant, GAMES, self.selves, seed=seed, illegal_action="lose")
        self.model = DQN(
            "MlpPolicy", self.env, learning_rate=1e-3, buffer_size=200_000, learning_starts=5_000, batch_size=512, train_freq=4,
            gradient_steps=1, target_update_interval=2_000, exploration_fraction=min(1.0, 100_000 / steps), gamma=1.0,
            exploration_final_eps=0.05, policy_kwargs={"net_arch": [128, 128]}, seed=seed % 2**32, device="cpu",
        )  # fmt: skip
        self.model.set_logger(Logger(None, []))
        self.added = 0

    def train(self, steps: int) -> int:
        before = self.model.num_timesteps
        due = EACH * (self.added + 1) - before
        self.model.learn(min(max(steps, GAMES), due), reset_num_timesteps=before == 0)
        if self.model.num_timesteps >= EACH * (self.added + 1):
            self.selves.agents[self.added % MOST : self.added % MOST + 1] = [_Likeliest(copy.deepcopy(self.model.q_net))]
            self.added += 1
        return int(self.model.num_timesteps - before)

    def policy(self) -> Mixture:
        return Mixture(list(self.selves.agents))


class _Likeliest:
    """The legal action of the highest value."""

    def __init__(self, values: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.values = values

    def probabilities(self, turn: Any) -> np.ndarray:
        with torch.no_grad():
            values = self.values(torch.from_numpy(turn.observations)).numpy()
        return np.eye(turn.legal.shape[1])[np.where(turn.legal == 1, values, -np.inf).argmax(axis=1)]

    def act(self, turn: Any) -> np.ndarray:
        return self.probabilities(turn).argmax(axis=1)
