"""Knowledge of players of score dice about the dice, and the rules of a variant as its solvers need them.

A player knows its own dice in hand, and a range of faces for each of the other's dice. All faces in a range are equally
likely, and dice are independent of one another. (Known dice have a range of one face.)

Chances come from the ranges; the score of a pair of dice comes from the game's own kernel.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from dice_envs.core.game import Variant, configure
from dice_envs.games.score_dice import HELD, Options, lowest_face, pair_points

__all__ = [
    "NONE_TIED",
    "WHOLE_GAME",
    "Die",
    "Range",
    "Sizes",
    "Tied",
    "VariantRules",
    "deals",
    "hands",
    "known_ranges",
    "settle",
]

TOLERANCE = 1e-11  # of values that are found by iteration


class Range(NamedTuple):
    """A die in hand as others know it: its size, and the faces it may show, all equally likely."""

    low: int
    high: int
    size: int


class Die(NamedTuple):
    """A die that has been rolled, and the lowest face that it could have shown."""

    face: int
    size: int
    low: int = 1


Sizes = tuple[int, ...]
Tied = tuple[Sizes, Sizes]  # sizes of the dice that tied so far in this roll: the player's, the other's
NONE_TIED: Tied = ((), ())
WHOLE_GAME = "whole game"  # key of the roll of whole pools, when one has spare dice: these are rolled again with the rest


def hands(dice: Iterable[Range]) -> dict[tuple[Die, ...], float]:
    """Return all hands that these dice can make, highest die first, with their chances."""
    found: dict[tuple[Die, ...], float] = {(): 1.0}
    for die in dice:
        longer: dict[tuple[Die, ...], float] = defaultdict(float)
        for hand, chance in found.items():
            for face in range(die.low, die.high + 1):
                more = (*hand, Die(face, die.size, die.low))
                longer[tuple(sorted(more, reverse=True))] += chance / (die.high - die.low + 1)
        found = dict(longer)
    return found


def deals(pool: Sizes, keep: int) -> Iterator[tuple[tuple[Range, ...], float]]:
    """Yield what both players can see after a pool is rolled and its spare lowest dice are dropped: (the dice kept, chance)."""
    spare = len(pool) - keep
    if spare == 0:
        yield tuple(Range(1, size, size) for size in pool), 1.0
        return
    for dropped in itertools.combinations(range(len(pool)), spare):
        kept = [place for place in range(len(pool)) if place not in dropped]
        # Of equal faces the one in the earlier place is the higher.
        for highest, face in ((place, face) for place in dropped for face in range(1, pool[place] + 1)):
            chance = 1 / pool[highest]
            for place in dropped:
                if place != highest:
                    chance *= min(pool[place], face - (place < highest)) / pool[place]
            ranges = [Range(face + (place > highest), pool[place], pool[place]) for place in kept]
            chance *= math.prod(max(0, die.high - die.low + 1) / die.size for die in ranges)
            if chance > 0:
                yield tuple(ranges), chance


def settle(step: Callable[[float], float], start: float = 0.0) -> float:
    """Find the fixed point of an increasing map with slope below 1 (here at most 1/2) by iteration."""
    value = start
    for _ in range(200):
        after = step(value)
        if abs(after - value) < TOLERANCE:
            return after
        value = after
    return value


class VariantRules:
    """The rules of one variant from the view of one seat."""

    def __init__(self, options: Options, seat: int) -> None:
        params = configure("score_dice", **dataclasses.asdict(options)).params
        self.options = options
        self.seat = seat
        self.counts_score = options.reward == "score"
        self.spare = len(options.pool_a) != len(options.pool_b)  # type: ignore[arg-type]
        faces = range(params.most_sides + 1)
        self._points = [[int(pair_points(params, a, b)) for b in faces] for a in faces]

    def points(self, own: int, other: int) -> int:
        """Return the player's score of a pair of faces."""
        return self._points[own][other] if self.seat == 0 else -self._points[other][own]

    def carried(self, score: int) -> int:
        """Return the part of the score on which the value of the rest of the game depends."""
        return 0 if self.counts_score else score

    def reward(self, score: int) -> float:
        """Return the reward at the end of the game, without what was paid for each pair."""
        return 0.0 if self.counts_score else float((score > 0) - (score < 0))

    def decided(self, score: int, pairs_left: int) -> bool:
        """Return whether the remaining pairs cannot change the value any more."""
        return not self.counts_score and abs(score) > pairs_left

    def paid(self, points: int) -> float:
        """Return the immediate reward for a pair."""
        return float(points) if self.counts_score else 0.0

    def roll_key(self, own: Sizes, other: Sizes, score: int) -> Any:
        """Return a key for the value of a roll of these dice: all on which it depends."""
        if self.spare and len(own) == self.options.num_columns:
            return WHOLE_GAME
        return own, other, self.carried(score)

    def tie(self, own: Die, other: Die, tied: Tied) -> Tied:
        """Return the tied dice after a pair."""
        if own.face != other.face or self.options.ties != "reroll":
            return tied
        return tuple(sorted((*tied[0], own.size), reverse=True)), tuple(sorted((*tied[1], other.size), reverse=True))


def known_ranges(variant: Variant, state: Any, seat: int, statuses: tuple[int, ...] = (HELD,)) -> list[tuple[int, Range]]:
    """Return what the roll alone tells both players of the seat's dice with these statuses: (place, range), by place.

    Dice of open hands are known exactly.
    """
    known = []
    for place, size in enumerate(variant.options.pools[seat]):
        if state["status"][seat, place] in statuses:
            if variant.options.open_hands:
                face = int(state["faces"][seat, place])
                known.append((place, Range(face, face, size)))
            else:
                known.append((place, Range(int(lowest_face(variant.params, state, seat, place)), size, size)))
    return known
