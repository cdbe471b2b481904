"""Optimal play of Liar's Dice with five dice each, in one small network."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from dice_envs.agent import Promises, Turn
from dice_envs.core.game import Variant, configure

from ..base import OfOneGame
from ..ppo import POLICIES, NetworkPolicy, shipped

CHAMPION = "liars_dice_champion"  # the policy file


@dataclasses.dataclass(frozen=True)
class Champion(OfOneGame):
    """Optimal play of two-player Liar's Dice with five dice each, distilled into one network.

    Needs no solver and answers at once. `agents --policies` prints how often a best response wins against it. Plays
    liars_dice with default options only.
    """

    plays = "liars_dice"

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
        if CHAMPION not in found:
            raise ValueError(f"the package is not complete: there is no policy file {CHAMPION}.npz in {POLICIES}")
        return found[CHAMPION]

    @property
    def about(self) -> dict[str, Any]:
        """The file's `about` (see `dice_envs.agents.ppo.check_about`)."""
        return dict(self.policy.about or {})

    @functools.cached_property
    def promises(self) -> Promises:
        """Those of the network; commands take no options from it."""
        return dataclasses.replace(self.policy.promises, variant=None)

    def act(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        return self.policy.act(turn)

    def probabilities(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        return self.policy.probabilities(turn)
