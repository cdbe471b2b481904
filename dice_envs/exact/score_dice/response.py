"""Exact best responses in score dice to a player that always shows its highest die.

Values are exact up to the rounding of floating point: nothing is sampled.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact.score_dice.hands import (
    NONE_TIED,
    WHOLE_GAME,
    Die,
    Range,
    Sizes,
    Tied,
    VariantRules,
    deals,
    hands,
    settle,
)
from dice_envs.games.score_dice import HELD, Options, lowest_face

__all__ = ["ResponseToHighest", "check_response", "count_situations", "response_to_highest"]

MOST_SITUATIONS = 250_000  # for which one seat's response to sorted play is computed, in half a minute


@functools.cache
def next_highest(dice: tuple[Range, ...]) -> tuple[tuple[float, Die, tuple[Range, ...]], ...]:
    """Return the dice that a player of its highest die can show next: (chance, die, ranges of the others after that).

    `dice` are in the order of their places.
    """
    found: dict[tuple[Die, tuple[Range, ...]], float] = defaultdict(float)
    for i, die in enumerate(dice):
        for face in range(die.low, die.high + 1):
            chance = 1 / (die.high - die.low + 1)
            rest = []
            for j, other in enumerate(dice):
                if j == i:
                    continue
                high = min(other.high, face - (j < i))  # equal faces go by place
                chance *= max(0, high - other.low + 1) / (other.high - other.low + 1)
                rest.append(Range(other.low, high, other.size))
            if chance > 0:
                found[Die(face, die.size, die.low), tuple(rest)] += chance
    return tuple((chance, die, rest) for (die, rest), chance in found.items())


class ResponseToHighest(VariantRules):
    """The exact best response to a player that always shows its highest die, of equal ones the first.

    With open hands this is Tian Ji's horse race. With hidden hands each die that the other shows is an upper bound for
    the rest.

    Args:
        options: of the game.
        seat: the responding player's.
    """

    def __init__(self, options: Options, seat: int) -> None:
        super().__init__(options, seat)
        self._pools = options.pools if seat == 0 else options.pools[::-1]
        self._values: dict[Any, float] = {}
        self._looping: dict[Any, float] = {}  # values that depend on the value assumed in `_loop`
        self._loop: tuple[Any, float] | None = None  # the roll whose value is being iterated, and its current value
        self._rolls: dict[Any, float] = {}
        self._by_situation: dict[bytes, np.ndarray] = {}  # see `action_values`

    def value(self, own: tuple[Die, ...], other: tuple[Range, ...], score: int = 0, tied: Tied = NONE_TIED) -> float:
        """Return the expected reward still to come, with best play.

        Args:
            own: dice in hand, in any order.
            other: what is known of the other's dice in hand, in the order of their places (if all faces are known: the
                highest first, the larger of equal ones).
            score: the player's points minus the other's.
            tied: dice of this roll that tied, if ties are rolled again.
        """
        if self.decided(score, len(own) + len(tied[0])):
            return self.reward(score)
        if not own:
            return self.roll_value(*tied, score) if tied[0] else self.reward(score)
        own = tuple(sorted(own, reverse=True))
        key = (own, other, self.carried(score), tied)
        # The whole roll can come again only while every pair of it has tied.
        memory = self._looping if self._loop and self._loop[0] == self._roll_key(own, other, tied, score) else self._values
        if key not in memory:
            memory[key] = max(value for _, value in self.choices(own, other, score, tied))
        return memory[key]

    def choices(
        self, own: tuple[Die, ...], other: tuple[Range, ...], score: int = 0, tied: Tied = NONE_TIED
    ) -> list[tuple[Die, float]]:
        """Return every distinct die that can be shown, and its value. Arguments as for `value`."""
        result = []
        for die in dict.fromkeys(own):
            at = own.index(die)
            rest = own[:at] + own[at + 1 :]
            value = 0.0
            for chance, shown, others in next_highest(other):
                points = self.points(die.face, shown.face)
                value += chance * (self.paid(points) + self.value(rest, others, score + points, self.tie(die, shown, tied)))
            result.append((die, value))
        return result

    def _roll_key(self, own: tuple[Die, ...], other: tuple[Range, ...], tied: Tied, score: int) -> Any:
        mine = tuple(sorted((*tied[0], *(die.size for die in own)), reverse=True))
        theirs = tuple(sorted((*tied[1], *(die.size for die in other)), reverse=True))
        return self.roll_key(mine, theirs, score)

    def roll_value(self, own: Sizes, other: Sizes, score: int = 0) -> float:
        """Return the value before dice of these sizes, equally many on either side, are rolled."""
        key = self.roll_key(own, other, score)
        if self._loop and self._loop[0] == key:
            return self._loop[1]
        if key not in self._rolls:
            outer = self._loop, self._looping

            def once(value: float) -> float:
                self._loop, self._looping = (key, value), {}
                pools = self._pools if key == WHOLE_GAME else (own, other)
                return self._expected(*pools, score)

            self._rolls[key] = settle(once) if self.options.ties == "reroll" else once(0.0)
            self._loop, self._looping = outer
        return self._rolls[key]

    def _expected(self, own: Sizes, other: Sizes, score: int) -> float:
        """Return the value before these pools are rolled and spare dice dropped."""
        columns = min(len(own), len(other))
        total = 0.0
        for mine, chance_mine in deals(own, columns):
            for dice, chance_hand in hands(mine).items():
                hand = tuple(Die(die.face, die.size) for die in dice)  # `low` no longer matters
                for theirs, chance_theirs in deals(other, columns):
                    total += chance_mine * chance_hand * chance_theirs * self._seen_value(hand, theirs, score)
        return total

    def _seen_value(self, own: tuple[Die, ...], other: tuple[Range, ...], score: int) -> float:
        """Return the value after the roll. With open hands the other's dice are seen, too."""
        if not self.options.open_hands:
            return self.value(own, other, score)
        return sum(
            chance * self.value(own, tuple(Range(die.face, die.face, die.size) for die in hand), score)
            for hand, chance in hands(other).items()
        )

    def game_value(self) -> float:
        """Return the expected reward of a whole game for the responding player."""
        own, other = self._pools
        columns = self.options.num_columns
        return self.roll_value(own[:columns], other[:columns])

    def action_values(self, variant: Variant, states: np.ndarray) -> np.ndarray:
        """Return the expected reward still to come for each die shown now, with best play afterwards, (n, actions) float64.

        −inf for dice that are not in hand. The other is assumed to show its highest die from now on, even if it has not done
        so before.

        Args:
            variant: the game, with the options of this response.
            states: (n,) states in which the seat is to choose; what it cannot see is not read.
        """
        dice = variant.params.num_actions
        found = np.zeros((len(states), _SITUATION * dice + 1), np.int8)
        places = np.zeros((len(states), dice), np.int64)
        _write_situations(variant.params, states, self.seat, found, places)
        as_bytes = found.view(f"S{found.shape[1]}").reshape(-1)  # far faster to sort than rows
        _, first, which = np.unique(as_bytes, return_index=True, return_inverse=True)
        values = np.array([self._values_in(row) for row in found[first]]).reshape(-1, dice)[which]
        out = np.full((len(states), dice), -np.inf)
        in_hand = np.isfinite(values)
        out[np.nonzero(in_hand)[0], places[in_hand]] = values[in_hand]
        return out

    def _values_in(self, row: np.ndarray) -> np.ndarray:
        """Return the value of each own die of a row of `_write_situations`, (dice,) float64; −inf without a die."""
        key = row.tobytes()
        if key not in self._by_situation:
            parts = (part[part > 0].tolist() for part in row[:-1].reshape(_SITUATION, -1))
            faces, sizes, lows, highs, others, own_tied, other_tied = parts
            own = tuple(map(Die, faces, sizes))
            values = dict(
                self.choices(own, tuple(map(Range, lows, highs, others)), int(row[-1]), (tuple(own_tied), tuple(other_tied)))
            )
            self._by_situation[key] = np.full(len(row) // _SITUATION, -np.inf)
            self._by_situation[key][: len(own)] = [values[die] for die in own]
        return self._by_situation[key]


@functools.lru_cache(maxsize=16)
def response_to_highest(options: Options, seat: int) -> ResponseToHighest:
    """Return the response, cached with all values that it has computed so far."""
    return ResponseToHighest(options, seat)


_SITUATION = 7  # parts of a situation, each with an entry for every die of the larger pool; the score follows


@kernel
def _write_situations(params, states, seat, out, places):
    """Write all that the rest of the game depends on, as the seat knows it. The last two are modified in place.

    Parts of a row of `out`, padded with zeros: faces of the seat's dice in hand, the highest first; their sizes; of the
    other's dice in hand the lowest face each can show, the highest, and the size; sizes of the dice that tied and are
    rolled again, the seat's and the other's. Then the score. `places` holds the places of the seat's dice.
    """
    dice = params.num_actions
    for i in range(len(states)):
        state = states[i]
        row = out[i]
        held = 0
        for face in range(params.most_sides, 0, -1):
            for die in range(dice):  # the larger of equal ones comes first, as pools are kept
                if state["status"][seat, die] == HELD and state["faces"][seat, die] == face:
                    row[held] = face
                    row[dice + held] = params.sizes[seat][die]
                    places[i, held] = die
                    held += 1
        if params.open_hands:
            _write_known(params, state, 1 - seat, row[2 * dice :])
        else:
            _write_ranges(params, state, 1 - seat, row[2 * dice :])
        if params.reroll:
            for part in range(2):
                _write_tied(params, state, seat if part == 0 else 1 - seat, row[(5 + part) * dice :])
        if not params.pay_score:
            row[_SITUATION * dice] = state["score"] if seat == 0 else -state["score"]


@kernel
def _write_known(params, state, seat, out):
    dice = params.num_actions
    held = 0
    for face in range(params.most_sides, 0, -1):
        for die in range(dice):
            if state["status"][seat, die] == HELD and state["faces"][seat, die] == face:
                out[held] = face
                out[dice + held] = face
                out[2 * dice + held] = params.sizes[seat][die]
                held += 1


@kernel
def _write_ranges(params, state, seat, out):
    dice = params.num_actions
    held = 0
    possible = True
    for die in range(dice):
        if state["status"][seat, die] == HELD:
            out[held] = lowest_face(params, state, seat, die)
            out[dice + held] = _highest_face(params, state, seat, die)
            out[2 * dice + held] = params.sizes[seat][die]
            possible &= out[held] <= out[dice + held]
            held += 1
    if not possible:
        for k in range(held):
            out[dice + k] = out[2 * dice + k]


@kernel
def _highest_face(params, state, seat, die):
    """The highest face that a die in hand can show if its owner has always shown its highest die."""
    most = np.int64(params.sizes[seat][die])
    for column in range(state["column"]):
        shown = state["shown"][seat, column]
        most = min(most, np.int64(state["faces"][seat, shown]) - (die < shown))
    return most


@kernel
def _write_tied(params, state, seat, out):
    tied = 0
    for size in range(params.most_sides, 0, -1):
        for column in range(state["column"]):
            own, other = state["shown"][seat, column], state["shown"][1 - seat, column]
            if state["faces"][seat, own] == state["faces"][1 - seat, other] and params.sizes[seat][own] == size:
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
    sizes = _count_choices([[1.0] * (count + 1) for count in Counter(other).values()])
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
    return _count_choices([[math.comb(size + held - 1, held) for held in range(count + 1)] for size, count in kinds])


def _count_choices(kinds: list[list[float]]) -> np.ndarray:
    """Count the ways to take n dice, by n, if k dice of kind i can be taken in kinds[i][k] ways."""
    return functools.reduce(np.convolve, (np.array(ways, np.float64) for ways in kinds))
