"""Score dice: best responses to sorted play, exact up to the rounding of floating point.

A player knows its own dice in hand, and a range of faces for each of the other's dice. All faces in a range are equally
likely, and dice are independent of one another. (Known dice have a range of one face.)

Chances come from the ranges; the score of a pair of dice comes from the game's own kernel.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.game import Variant, configure
from dice_envs.core.kernel import kernel
from dice_envs.games.score_dice import HELD, Options, lowest_face, pair_points
from dice_envs.games.score_dice.exact.distribution import count_choices, count_subsets

PRECISION = 1e-14  # of values of rolls that can come again


class Known(NamedTuple):
    """A die in hand as others know it: its size, and the faces it may show, all equally likely."""

    low: int
    high: int
    size: int


class Rolled(NamedTuple):
    """A die that has been rolled."""

    face: int
    size: int


Sizes = tuple[int, ...]
Tied = tuple[Sizes, Sizes]  # sizes of the dice that tied so far in this roll: the player's, the other's
NONE_TIED: Tied = ((), ())
WHOLE_GAME = "whole game"  # key of the roll of whole pools, when one has spare dice: these are rolled again with the rest


def hands(dice: Iterable[Known]) -> dict[tuple[Rolled, ...], float]:
    """Return all hands that these dice can make, highest die first, with their chances."""
    found: dict[tuple[Rolled, ...], float] = {(): 1.0}
    for die in dice:
        longer: dict[tuple[Rolled, ...], float] = defaultdict(float)
        for hand, chance in found.items():
            for face in range(die.low, die.high + 1):
                more = (*hand, Rolled(face, die.size))
                longer[tuple(sorted(more, reverse=True))] += chance / (die.high - die.low + 1)
        found = dict(longer)
    return found


def deals(pool: Sizes, keep: int) -> Iterator[tuple[tuple[Known, ...], float]]:
    """Yield what both players can see after a pool is rolled and its spare lowest dice are dropped: (the dice kept, chance)."""
    spare = len(pool) - keep
    if spare == 0:
        yield tuple(Known(1, size, size) for size in pool), 1.0
        return
    for dropped in itertools.combinations(range(len(pool)), spare):
        kept = [place for place in range(len(pool)) if place not in dropped]
        # Of equal faces the one in the earlier place is the higher.
        for highest, face in ((place, face) for place in dropped for face in range(1, pool[place] + 1)):
            chance = 1 / pool[highest]
            for place in dropped:
                if place != highest:
                    chance *= min(pool[place], face - (place < highest)) / pool[place]
            ranges = [Known(face + (place > highest), pool[place], pool[place]) for place in kept]
            chance *= math.prod(max(0, die.high - die.low + 1) / die.size for die in ranges)
            if chance > 0:
                yield tuple(ranges), chance


def _fixed_point(step: Callable[[float], float], most: float) -> float:
    """Return the fixed point, above −most and below most, of an increasing, piecewise linear map with slope below 1."""
    from scipy.optimize import brentq

    return float(brentq(lambda value: step(value) - value, -most, most, xtol=PRECISION))


def points_of(params: Any, seat: int) -> np.ndarray:
    """Return what the seat scores for a pair, by its own face and the other's, (faces, faces) int64; faces begin with 0."""
    faces = range(params.most_sides + 1)
    of_a = np.array([[pair_points(params, a, b) for b in faces] for a in faces])
    return of_a if seat == 0 else -of_a.T


MOST_SITUATIONS = 250_000  # for which one seat's response to sorted play is computed, in half a minute


# --- best responses to sorted play ----------------------------------------------------------------------------------


@functools.cache
def _next_highest(dice: tuple[Known, ...]) -> tuple[tuple[float, Rolled, tuple[Known, ...]], ...]:
    """Return the dice that a player of its highest die can show next: (chance, die, ranges of the others after that).

    `dice` are in the order of their places.
    """
    found: dict[tuple[Rolled, tuple[Known, ...]], float] = defaultdict(float)
    for i, die in enumerate(dice):
        for face in range(die.low, die.high + 1):
            chance = 1 / (die.high - die.low + 1)
            rest = []
            for j, other in enumerate(dice):
                if j == i:
                    continue
                high = min(other.high, face - (j < i))  # equal faces go by place
                chance *= max(0, high - other.low + 1) / (other.high - other.low + 1)
                rest.append(Known(other.low, high, other.size))
            if chance > 0:
                found[Rolled(face, die.size), tuple(rest)] += chance
    return tuple((chance, die, rest) for (die, rest), chance in found.items())


class ResponseToHighest:
    """The exact best response to a player that always shows its highest die, of equal ones the first.

    With open hands this is Tian Ji's horse race. With hidden hands each die that the other shows is an upper bound for
    the rest. `seat` is the responding player's.
    """

    def __init__(self, options: Options, seat: int) -> None:
        params = configure("score_dice", **dataclasses.asdict(options)).params
        self.options = options
        self.seat = seat
        points = points_of(params, seat)
        # What a pair pays at once, and what it adds to a score that is rewarded at the end: one of the two is always 0.
        self._pays, self._scores = ((points * counted).tolist() for counted in (params.pay_score, not params.pay_score))
        self._pools = options.pools if seat == 0 else options.pools[::-1]
        self._rolls: dict[Any, float] = {}
        self._loop: tuple[Any, float] | None = None  # the roll whose value is sought, and the value assumed
        self._looping: dict[Any, float] = {}  # values that depend on the value assumed in `_loop`
        self._values: dict[Any, float] = {}
        self._by_situation: dict[bytes, np.ndarray] = {}  # see `action_values`

    def _roll_key(self, own: Iterable[int], other: Iterable[int], score: int) -> Any:
        """Return a key for the value of a roll of dice of these sizes: all on which it depends."""
        key = tuple(sorted(own, reverse=True)), tuple(sorted(other, reverse=True)), score
        spare = len(self._pools[0]) != len(self._pools[1])
        return WHOLE_GAME if spare and len(key[0]) == self.options.num_columns else key

    def _tie(self, own: Rolled, other: Rolled, tied: Tied) -> Tied:
        """Return the tied dice after a pair."""
        if own.face != other.face or self.options.ties != "reroll":
            return tied
        return tuple(sorted((*tied[0], own.size), reverse=True)), tuple(sorted((*tied[1], other.size), reverse=True))

    def roll_value(self, own: Sizes, other: Sizes, score: int = 0) -> float:
        """Return the value before dice of these sizes, equally many on either side, are rolled."""
        key = self._roll_key(own, other, score)
        if self._loop and self._loop[0] == key:
            return self._loop[1]
        if key not in self._rolls:
            outer = self._loop, self._looping

            def once(value: float) -> float:
                self._loop, self._looping = (key, value), {}
                return self._expected(*(self._pools if key == WHOLE_GAME else (own, other)), score)

            self._rolls[key] = _fixed_point(once, len(own) + 1.0) if self.options.ties == "reroll" else once(0.0)
            self._loop, self._looping = outer
        return self._rolls[key]

    def game_value(self) -> float:
        """Return the expected reward of a whole game for the seat."""
        columns = self.options.num_columns
        return self.roll_value(self._pools[0][:columns], self._pools[1][:columns])

    def value(self, own: tuple[Rolled, ...], other: tuple[Known, ...], score: int = 0, tied: Tied = NONE_TIED) -> float:
        """Return the expected reward still to come, with best play.

        Args:
            own: dice in hand, in any order.
            other: what is known of the other's dice in hand, in the order of their places (if all faces are known: the
                highest first, the larger of equal ones).
            score: the player's points minus the other's, as far as they are rewarded at the end of the game.
            tied: dice of this roll that tied, if ties are rolled again.
        """
        pairs_left = len(own) + len(tied[0])
        if abs(score) > pairs_left or not pairs_left:  # the other pairs cannot change the value any more
            return float((score > 0) - (score < 0))
        if not own:
            return self.roll_value(*tied, score)
        own = tuple(sorted(own, reverse=True))
        key = (own, other, score, tied)
        # The whole roll can come again only while every pair of it has tied.
        loops = self._loop and self._loop[0] == self._roll_key(
            (*tied[0], *(die.size for die in own)), (*tied[1], *(die.size for die in other)), score
        )
        memory = self._looping if loops else self._values
        if key not in memory:
            memory[key] = max(value for _, value in self.choices(own, other, score, tied))
        return memory[key]

    def choices(
        self, own: tuple[Rolled, ...], other: tuple[Known, ...], score: int = 0, tied: Tied = NONE_TIED
    ) -> list[tuple[Rolled, float]]:
        """Return every distinct die that can be shown, and its value. Arguments as for `value`."""
        result = []
        for die in dict.fromkeys(own):
            at, value = own.index(die), 0.0
            rest = own[:at] + own[at + 1 :]
            for chance, shown, others in _next_highest(other):
                later = score + self._scores[die.face][shown.face]
                paid = self._pays[die.face][shown.face]
                value += chance * (paid + self.value(rest, others, later, self._tie(die, shown, tied)))
            result.append((die, value))
        return result

    def _expected(self, own: Sizes, other: Sizes, score: int) -> float:
        """Return the value before these pools are rolled and spare dice dropped."""
        columns = min(len(own), len(other))
        total = 0.0
        for mine, chance_mine in deals(own, columns):
            for hand, chance_hand in hands(mine).items():
                for theirs, chance_theirs in deals(other, columns):
                    total += chance_mine * chance_hand * chance_theirs * self._seen_value(hand, theirs, score)
        return total

    def _seen_value(self, own: tuple[Rolled, ...], other: tuple[Known, ...], score: int) -> float:
        """Return the value after the roll. With open hands the other's dice are seen, too."""
        if not self.options.open_hands:
            return self.value(own, other, score)
        return sum(
            chance * self.value(own, tuple(Known(die.face, die.face, die.size) for die in hand), score)
            for hand, chance in hands(other).items()
        )

    def action_values(self, variant: Variant, states: np.ndarray) -> np.ndarray:
        """Return the expected reward still to come for each die shown now, with best play afterwards, (n, actions) float64.

        NaN for dice that are not in hand. The other is assumed to show its highest die from now on, even if it has not done
        so before. What the seat, which is to choose, cannot see is not read.
        """
        dice = variant.params.num_actions
        found = np.zeros((len(states), _SITUATION * dice + 1), np.int8)
        places = np.zeros((len(states), 2, dice), np.int64)
        _write_situations(variant.params, states, self.seat, found, places)
        as_bytes = found.view(f"S{found.shape[1]}").reshape(-1)  # far faster to sort than rows
        _, first, which = np.unique(as_bytes, return_index=True, return_inverse=True)
        values = np.array([self._values_in(row) for row in found[first]]).reshape(-1, dice)[which]
        out = np.full((len(states), dice), np.nan)
        in_hand = np.isfinite(values)
        out[np.nonzero(in_hand)[0], places[:, 0][in_hand]] = values[in_hand]
        return out

    def _values_in(self, row: np.ndarray) -> np.ndarray:
        """Return the value of each own die of a row of `_write_situations`, (dice,) float64; NaN without a die."""
        key = row.tobytes()
        if key not in self._by_situation:
            parts = (part[part > 0].tolist() for part in row[:-1].reshape(_SITUATION, -1))
            faces, _, sizes, lows, highs, others, own_tied, other_tied = parts
            own = tuple(map(Rolled, faces, sizes))
            values = dict(
                self.choices(own, tuple(map(Known, lows, highs, others)), int(row[-1]), (tuple(own_tied), tuple(other_tied)))
            )
            self._by_situation[key] = np.full(len(row) // _SITUATION, np.nan)
            self._by_situation[key][: len(own)] = [values[die] for die in own]
        return self._by_situation[key]


response_to_highest = functools.lru_cache(maxsize=16)(ResponseToHighest)  # with all values that it has computed so far


def values_against_highest(variant: Variant, states: np.ndarray) -> np.ndarray:
    """Return the expected reward to come with each die of the seat to move, (n, num_actions) float64; see `action_values`."""
    out = np.empty((len(states), variant.facts.num_actions))
    for seat in range(2):
        mine = states["seat"] == seat
        if mine.all():  # as in a measure, where a copy of the states would take as long as their values
            return response_to_highest(variant.options, seat).action_values(variant, states)
        out[mine] = response_to_highest(variant.options, seat).action_values(variant, states[mine])
    return out


_SITUATION = 8  # parts of a situation, each with an entry for every die of the larger pool; the score follows


@kernel(allocates=False)
def _write_situations(params, states, seat, out, places):
    """Write all that the rest of the game depends on, as the seat knows it. The last two are modified in place.

    Parts of a row of `out`, padded with zeros: of the seat's dice in hand what `_write_known` writes, and of the other's the
    same or what `_write_ranges` does; sizes of the dice that tied and are rolled again, the seat's and the other's. Then the
    score. `places` holds the places of known dice, the seat's and the other's.
    """
    dice = params.num_actions
    for i in range(len(states)):
        state, row = states[i], out[i]
        for part in range(2):
            who = seat if part == 0 else 1 - seat
            if part == 0 or params.open_hands:
                _write_known(params, state, who, row[3 * part * dice :], places[i, part])
            else:
                _write_ranges(params, state, who, row[3 * part * dice :])
            if params.reroll:
                _write_tied(params, state, who, row[(6 + part) * dice :])
        if not params.pay_score:
            row[_SITUATION * dice] = state["score"] if seat == 0 else -state["score"]


@kernel(allocates=False)
def _write_known(params, state, seat, out, places):
    """Write the face of each die in hand, twice, and its size; and its place. The highest comes first. In place."""
    dice = params.num_actions
    held = 0
    for face in range(params.most_sides, 0, -1):
        for die in range(dice):  # the larger of equal ones comes first, as pools are kept
            if state["status"][seat, die] == HELD and state["faces"][seat, die] == face:
                out[held] = face
                out[dice + held] = face
                out[2 * dice + held] = params.sizes[seat, die]
                places[held] = die
                held += 1


@kernel(allocates=False)
def _write_ranges(params, state, seat, out):
    """Write the lowest face that each die in hand can show, the highest, and the size, in the order of their places. In place.

    The highest face is that of an owner that has always shown its highest die; if there can be none, it is the size.
    """
    dice = params.num_actions
    held = 0
    possible = True
    for die in range(dice):
        if state["status"][seat, die] == HELD:
            out[held] = lowest_face(params, state, seat, die)
            out[dice + held] = _highest_face(params, state, seat, die)
            out[2 * dice + held] = params.sizes[seat, die]
            possible &= out[held] <= out[dice + held]
            held += 1
    for k in range(0 if possible else held):
        out[dice + k] = out[2 * dice + k]


@kernel(allocates=False)
def _highest_face(params, state, seat, die):
    """The highest face that a die in hand can show if its owner has always shown its highest die."""
    most = np.int64(params.sizes[seat, die])
    for column in range(state["column"]):
        shown = state["shown"][seat, column]
        most = min(most, np.int64(state["faces"][seat, shown]) - (die < shown))
    return most


@kernel(allocates=False)
def _write_tied(params, state, seat, out):
    tied = 0
    for size in range(params.most_sides, 0, -1):
        for column in range(state["column"]):
            own, other = state["shown"][seat, column], state["shown"][1 - seat, column]
            if state["faces"][seat, own] == state["faces"][1 - seat, other] and params.sizes[seat, own] == size:
                out[tied] = size
                tied += 1


# --- how much there is to compute -----------------------------------------------------------------------------------


def check_response(options: Options) -> None:
    """Raise ValueError if the best response to sorted play would take too long."""
    situations = max(count_situations(options, seat) for seat in range(2))
    if situations > MOST_SITUATIONS:
        raise ValueError(
            f"pool_a={options.pool_a} and pool_b={options.pool_b} are too large: the best response to sorted play has up to "
            f"{situations:,.0f} situations, and at most {MOST_SITUATIONS:,} are computed"
        )


def count_situations(options: Options, seat: int) -> float:
    """Return an upper bound on the number of situations for which the response to sorted play is computed.

    If tied dice are rolled again, it is a rough estimate.
    """
    own, other = options.pools if seat == 0 else options.pools[::-1]
    spare = len(other) - options.num_columns
    own_hands, other_hands = _count_hands(own), _count_hands(other)
    sizes = count_subsets(other)
    total = _count_deals(own, options) * own_hands[options.num_columns] * _count_deals(other, options)
    for column in range(options.num_columns):
        left = options.num_columns - column
        if options.open_hands:
            ranges = other_hands[left]
        else:  # the die shown last bounds those left, by its face and by its place among them
            ranges = max(other) * min(sizes[left] * (left + 1), math.comb(len(other), left) * (column + spare))
            ranges *= max(other) * (options.num_columns + 1) if spare else 1  # and so does the highest die dropped
        total += own_hands[left] * ranges * (1 if options.reward == "score" else 2 * column + 1)
    return float(total)


def _count_deals(pool: Sizes, options: Options) -> float:
    """Return how many times `deals` yields, at most."""
    spare = len(pool) - options.num_columns
    return math.comb(len(pool), spare) * spare * max(pool) if spare else 1


def _count_hands(pool: Sizes) -> np.ndarray:
    """Count the different hands that k of these dice can make, by k, (dice + 1,) float64."""
    kinds = Counter(pool).items()
    return count_choices([math.comb(size + held - 1, held) for held in range(count + 1)] for size, count in kinds)
