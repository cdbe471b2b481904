"""Policy files for tests."""

from pathlib import Path

import numpy as np

from agents.ppo import NetworkPolicy, save_policy
from dice_envs import Variant


def save_random_policy(path: Path, variant: Variant) -> Path:
    """A policy file for the variant, with random weights."""
    shape = variant.facts.num_actions, variant.facts.observation_size
    weights = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    save_policy(path, NetworkPolicy(variant.game.name, variant.changed_options(), [(weights, np.zeros(shape[0], np.float32))]))
    return path
