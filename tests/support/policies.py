"""Policy files and players for tests."""

from pathlib import Path

import numpy as np

from dice_envs import Variant
from dice_envs.agents.ppo import NetworkPolicy, save_policy


def save_random_policy(path: Path, variant: Variant) -> Path:
    """A policy file for the variant, with random weights."""
    shape = variant.facts.num_actions, variant.facts.observation_size
    weights = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    save_policy(path, NetworkPolicy(variant.game.name, variant.changed_options(), [(weights, np.zeros(shape[0], np.float32))]))
    return path


class Noisy:
    """Its policy is the uniform one, but it answers with other chances each time."""

    def act(self, turn):
        return self.probabilities(turn).argmax(axis=1)

    def probabilities(self, turn):
        weights = turn.legal * turn.rng.random(turn.legal.shape)
        return weights / weights.sum(axis=1, keepdims=True)
