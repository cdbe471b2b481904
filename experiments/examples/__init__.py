"""Programs that read top to bottom: other people's learners on these games, one file each, and what they share: options,
a network, and the figures at the end.

The figures in their texts, but for those of `cleanrl_ppo`, were made when game i of a run had the run's seed + i. The same
seeds give other games now.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

import dice_envs
from dice_envs.core.game import Variant
from dice_envs.core.options import check_range
from dice_envs.exact import GameExact
from dice_envs.table.rules import docstring

Policy = Callable[[np.ndarray, np.ndarray], Any]  # observations and action masks of n positions → action probabilities


class CommandLine(argparse.ArgumentParser):
    """The options of an example: --steps, --seed, --threads, and those that it adds."""

    def __init__(self, module: str, steps: int, of: str = "decisions of the learner") -> None:
        super().__init__(usage=argparse.SUPPRESS, description=docstring(sys.modules[module]).partition("\n")[0])
        self._limits: dict[str, tuple[int, int]] = {}
        self.number("--steps", steps, 1, 10**10, f"{of}, in all")
        self.number("--seed", secrets.randbits(31), 0, 2**32 - 1, "fixes all that is random; fresh if left out")
        self.number("--threads", 1, 1, 256, "PyTorch's")

    def number(self, name: str, default: int, least: int, most: int, meaning: str) -> None:
        """Add an option that is a whole number within limits."""
        self.add_argument(name, type=int, default=default, help=meaning)
        self._limits[name] = least, most

    def read(self) -> argparse.Namespace:
        """Return the options given, and print the seed; bad ones end the program with one line."""
        options = self.parse_args()
        try:
            for name, (least, most) in self._limits.items():
                check_range(name, vars(options)[name[2:].replace("-", "_")], least, most)
        except ValueError as problem:
            self.error(str(problem))
        torch.set_num_threads(options.threads)
        print(f"seed {options.seed}", flush=True)
        return options


def network(inputs: int, outputs: int, scale: float) -> nn.Sequential:
    """A policy or a value with two hidden layers; a small `scale` makes the first policy nearly uniform."""
    layers = nn.Linear(inputs, 128), nn.Linear(128, 128), nn.Linear(128, outputs)
    for layer, gain in zip(layers, (2**0.5, 2**0.5, scale), strict=True):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])


def policy_of(logits: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Policy:
    """The policy as `dice_envs.measure` takes it, from observations and action masks → logits, −inf for illegal actions."""

    def policy(observations: np.ndarray, masks: np.ndarray) -> torch.Tensor:
        with torch.no_grad():
            return torch.softmax(logits(torch.from_numpy(observations), torch.from_numpy(masks)), dim=1)

    return policy


def print_wins(variant: Variant, policy: Policy, opponent: str) -> None:
    """Print how often a policy wins against an opponent, and how often a best response does: no games are played."""
    wins = GameExact(variant.game).winning_shares(variant, [policy, opponent])[0]
    best = dice_envs.measure(variant, opponent).measures[1].value
    print(f"wins {wins:.4f} of the games against {opponent}, exactly; a best response wins {best:.4f}")
