"""Optimal play, in the games that are solved, and that of Liar's Dice in one small network."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Any, ClassVar

import numpy as np

from dice_envs.agent import Promises, Turn
from dice_envs.core.game import Variant, configure
from dice_envs.core.options import Range
from dice_envs.games.liars_dice.exact.solver import LEAST_PRECISION, check_needs

from . import fatestones, liars_dice, score_dice
from .base import Checked, OfOneGame, check_game
from .ppo import POLICIES, NetworkPolicy, shipped

CHAMPION = "liars_dice_champion"  # the policy file


@dataclasses.dataclass(frozen=True)
class Nash(Checked):
    """Optimal play: no opponent wins more than the game's value, up to the precision.

    FateStones: an exact equilibrium of the rest of the game. Liar's Dice between two players: the solution that
    `solve liars_dice` has kept; without one the game is solved first, up to three dice each in seconds, five in a minute or
    two. Liar's Dice with more players: strategies that no seat gains much by leaving. Score dice: a random die in hand, as
    `shuffled`, which is an equilibrium with any pools.

    Attributes:
        precision: Liar's Dice: how much best responses may win above the value, for returns of ±1, mean of both seats; with
            more players the sum of what the seats may gain, in shares of wins.
    """

    plays: ClassVar[tuple[str, ...]] = ("fatestones", "liars_dice", "score_dice")

    precision: Annotated[float, Range(LEAST_PRECISION, 1)] = 1e-3

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for a variant that cannot be solved."""
        self.of_game(variant).check_variant(variant)

    @functools.cached_property
    def promises(self) -> Promises:
        """Past rounds make no difference; each game has a player of its own, and Liar's Dice is solved before it begins."""
        return Promises(looks_back=False, for_variant=self.of_game, needs=self._needs, prepare=self._prepare)

    def _needs(self, variant: Variant, positions: int) -> None:
        self.check_variant(variant)
        if variant.game.name == "liars_dice":
            check_needs(variant, self.precision)

    def _prepare(self, variant: Variant) -> None:
        """Solve the game, unless that is done. Only Liar's Dice is solved as a whole. ValueError if it cannot be solved."""
        player = self.of_game(variant)
        if isinstance(player, liars_dice.LiarsDiceNash):
            player.solution(variant)

    def of_game(self, variant: Variant) -> fatestones.FateStonesNash | liars_dice.LiarsDiceNash | score_dice.Shuffled:
        """Return the player of the variant's game. ValueError for a game that is not solved."""
        check_game(self, variant)
        if variant.game.name == "score_dice":
            return score_dice.Shuffled()
        return fatestones.FateStonesNash() if variant.game.name == "fatestones" else liars_dice.LiarsDiceNash(self.precision)

    def act(self, turn: Turn) -> np.ndarray:
        return self.of_game(turn.variant).act(turn)

    def probabilities(self, turn: Turn) -> np.ndarray:
        return self.of_game(turn.variant).probabilities(turn)


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


AGENTS = {"champion": Champion, "nash": Nash}
