"""The solution of Liar's Dice with five dice each, in one small network."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dice_envs.agent import Turn
from dice_envs.agent.network import Network
from dice_envs.core.game import Variant, configure

from .base import OfOneGame
from .ppo import POLICIES, NetworkPolicy, shipped

__all__ = ["AGENTS", "Champion"]

FILE = "liars_dice_champion"


@dataclasses.dataclass(frozen=True)
class Champion(OfOneGame):
    """Optimal play of two-player Liar's Dice with five dice each, distilled into one network.

    Needs no solver and answers at once. `policies` prints how often a best response wins against it. Plays liars_dice with
    default options only.
    """

    plays = "liars_dice"
    observes_only = True

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or other options than the defaults."""
        super().check_variant(variant)
        ours, theirs = configure(self.plays).differences(variant)
        if ours:
            raise ValueError(f"champion plays liars_dice with {ours}; it cannot play {theirs}; nash plays other variants")

    @property
    def policy(self) -> NetworkPolicy:
        """The network; its `about` says how it was made and measured."""
        found = shipped()
        if FILE not in found:
            raise ValueError(f"the package is not complete: there is no policy file {FILE}.npz in {POLICIES}")
        return found[FILE]

    @property
    def about(self) -> dict[str, Any]:
        """The file's `about` (see `dice_envs.agents.about`)."""
        return dict(self.policy.about or {})

    @property
    def memoryless(self) -> bool:
        """See `NetworkPolicy`."""
        return self.policy.memoryless

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64."""
        self.check(turn)
        return self.policy.act(turn)

    def probabilities(self, turn: Turn) -> np.ndarray:
        """Return each action's probability, (n, num_actions) float64."""
        self.check(turn)
        return self.policy.probabilities(turn)

    def played_network(self, variant: Variant) -> Network | None:
        """See `dice_envs.agent.Agent`."""
        return self.policy.played_network(variant)


AGENTS = {"champion": Champion}
