"""Optimal play, in the games that are solved."""

from __future__ import annotations

import dataclasses
import functools
from typing import Annotated, Any, ClassVar

import numpy as np

from dice_envs.agent import Promises, Turn, check_needs, promises_of
from dice_envs.agent.specs import by_module
from dice_envs.core.game import Variant
from dice_envs.core.options import Range
from dice_envs.exact.contract import LEAST_PRECISION

from .base import Checked, check_game


class _Solved:
    """The games whose modules of agents have a player of optimal play: `NASH["nash"]`, made with a precision."""

    def __get__(self, player: Any, kind: Any) -> tuple[str, ...]:
        return tuple(game for game, offered in by_module("NASH").items() if offered)


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

    plays: ClassVar[Any] = _Solved()

    precision: Annotated[float, Range(LEAST_PRECISION, 1)] = 1e-3

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for a variant that cannot be solved."""
        self.of_game(variant).check_variant(variant)

    @functools.cached_property
    def promises(self) -> Promises:
        """Past rounds make no difference; each game has a player of its own, and Liar's Dice is solved before it begins."""
        return Promises(looks_back=False, for_variant=self.of_game, needs=self._needs, prepare=self._prepare)

    def _needs(self, variant: Variant, positions: int) -> None:
        check_needs(self.of_game(variant), variant, positions)

    def _prepare(self, variant: Variant) -> None:
        """Solve the game, unless that is done or not needed. ValueError if it cannot be solved."""
        prepare = promises_of(self.of_game(variant)).prepare
        if prepare is not None:
            prepare(variant)

    def of_game(self, variant: Variant) -> Any:
        """Return the player of the variant's game. ValueError for a game that is not solved."""
        check_game(self, variant)
        return by_module("NASH")[variant.game.name]["nash"](self.precision)

    def act(self, turn: Turn) -> np.ndarray:
        return np.asarray(self.of_game(turn.variant).act(turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        return np.asarray(self.of_game(turn.variant).probabilities(turn))


AGENTS = {"nash": Nash}
