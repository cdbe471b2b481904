"""The scale in which people read results: shares of games won where a game has a winner, else its returns."""

from __future__ import annotations

from typing import Any, NamedTuple

from dice_envs.core.game import Variant
from dice_envs.exact import ResponseValues

__all__ = ["GAMES_WON", "Scale", "scale_of"]

GAMES_WON = "games won"


class Scale(NamedTuple):
    """A linear scale: a return r reads `shift + factor * r`.

    Attributes:
        shift, factor: of the scale.
        unit: what is counted, GAMES_WON or the unit of the game's returns.
        is_share: whether results are shares of what is counted, 0 to 1.
        low, high: the worst and the best possible result.
    """

    shift: float
    factor: float
    unit: str
    is_share: bool
    low: float
    high: float

    @property
    def spread(self) -> float:
        """The best possible result less the worst."""
        return self.high - self.low

    def of(self, returns: Any) -> Any:
        """Return what returns read, a number or an array."""
        return self.shift + self.factor * returns


def scale_of(variant: Variant, values: ResponseValues) -> Scale:
    """Return the share of games won, where a tie counts half, if two players win or lose a game; else the returns."""
    facts = variant.facts
    returns = (facts.min_return, facts.max_return)
    if facts.num_seats == 2 and facts.zero_sum and returns == (-1.0, 1.0):
        return Scale(0.5, 0.5, GAMES_WON, True, 0.0, 1.0)
    return Scale(0.0, 1.0, values.unit, returns == (0.0, 1.0), *returns)
