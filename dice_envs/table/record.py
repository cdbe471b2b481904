"""A player's record: what it gave away in many games, whatever luck it had."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from dice_envs.evaluation import Scale
from dice_envs.exact.intervals import half_width, t95
from dice_envs.table.review import Review, Split

__all__ = ["Record", "record_of"]


@dataclasses.dataclass(frozen=True)
class Record:
    """A player's games of one game with the same options, in the order in which they were played.

    Attributes:
        games: number of games.
        given_away, error: mean of what the player's choices cost in a game, and half of its 95 % interval; None after one game.
        luck, luck_error: mean luck of a game, and half of its 95 % interval; None after one game.
        result: mean result of a game.
        trend, trend_error: change of what is given away from game to game, by least squares, and half of its 95 % interval;
            None after fewer than three games.
        marks: mark → number of moves; see `Judged`.
        scale: of all figures.
    """

    games: int
    given_away: float
    error: float | None
    luck: float
    luck_error: float | None
    result: float
    trend: float | None
    trend_error: float | None
    marks: dict[str, int]
    scale: Scale


def record_of(games: Iterable[tuple[Review, int]]) -> Record:
    """Return the record of a player who sat at the given seat in each reviewed game.

    Raises:
        ValueError: there is no game, or one whose result cannot be divided into play and luck; or results read differently.
    """
    splits: list[Split] = []
    marks: Counter[str] = Counter()
    for found, seat in games:
        if seat not in found.splits:
            raise ValueError("the result of a game cannot be divided into play and luck: optimal play of it is not known")
        splits.append(found.splits[seat])
        marks += found.marks(seat)
    if len({split.scale for split in splits}) != 1:
        raise ValueError("a record needs games of one kind" if splits else "a record needs a game")
    given = np.array([-split.play for split in splits])
    luck = np.array([split.luck for split in splits])
    trend, scale = _trend(given), splits[0].scale
    return Record(
        games=len(splits),
        given_away=float(given.mean()),
        error=half_width(given, 0.0, scale.spread) if len(given) > 1 else None,
        luck=float(luck.mean()),
        luck_error=half_width(luck, -scale.spread, scale.spread) if len(luck) > 1 else None,
        result=float(np.mean([split.result for split in splits])),
        trend=trend[0],
        trend_error=trend[1],
        marks=dict(marks),
        scale=scale,
    )


def _trend(values: Sequence[float] | np.ndarray) -> tuple[float | None, float | None]:
    """Return the slope of values in their order, and half of its 95 % interval."""
    count = len(values)
    if count < 3:
        return None, None
    place = np.arange(count) - (count - 1) / 2
    spread = float(place @ place)
    slope = float(place @ values) / spread
    rest = np.asarray(values) - np.mean(values) - slope * place
    return slope, t95(count - 2) * math.sqrt(float(rest @ rest) / (count - 2) / spread)
