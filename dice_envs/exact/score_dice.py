"""Exact play of score dice: best response to a player who always plays its highest die, and equilibria of small pools.

Both work on what a player knows: its own dice in hand, and a range of faces for each of the other's dice. All faces in
a range are equally likely, and the dice are independent. (Known dice have a range of one face.) Values are exact up to
rounding: nothing is sampled.

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

from dice_envs import configure
from dice_envs.exact import REPEATS, Effort, Measurement
from dice_envs.exact.score_dice_policy import (
    answers_at_random,
    best_response,
    count_paths,
    count_sets,
    in_games,
    policy,
    rolls,
    shown_by_any,
    shown_by_highest,
)
from dice_envs.game import Variant
from dice_envs.games.score_dice import HELD, Options, lowest_face, pair_points
from dice_envs.kernel import kernel

__all__ = [
    "NONE_TIED",
    "Die",
    "Equilibrium",
    "Range",
    "ResponseToHighest",
    "count_situations",
    "deals",
    "hands",
    "known_ranges",
    "measure",
    "response_to_highest",
    "solve_matrix",
]

TOLERANCE = 1e-11  # of values that are found by iteration
MOST_PATHS = 300_000  # an equilibrium is computed if a roll can be played in at most this many ways, all hands together


class Range(NamedTuple):
    """What is known of a die in hand: its size, and the faces it may show, all equally likely."""

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
    """All hands that these dice can make, highest die first, with their chances."""
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
    """What both players can see after a pool is rolled and its spare lowest dice are dropped: (the dice kept, chance)."""
    spare = len(pool) - keep
    if spare == 0:
        yield tuple(Range(1, size, size) for size in pool), 1.0
        return
    for dropped in itertools.combinations(range(len(pool)), spare):
        kept = [place for place in range(len(pool)) if place not in dropped]
        for highest in dropped:  # of the dropped dice; of equal faces the one in the earlier place is the higher
            for face in range(1, pool[highest] + 1):
                chance = 1 / pool[highest]
                for place in dropped:
                    if place != highest:
                        chance *= min(pool[place], face - (place < highest)) / pool[place]
                ranges = [Range(face + (place > highest), pool[place], pool[place]) for place in kept]
                chance *= math.prod(max(0, die.high - die.low + 1) / die.size for die in ranges)
                if chance > 0:
                    yield tuple(ranges), chance


def settle(step: Callable[[float], float], start: float = 0.0) -> float:
    """The fixed point, by iteration, of an increasing map with slope below 1 (here at most 1/2)."""
    value = start
    for _ in range(200):
        after = step(value)
        if abs(after - value) < TOLERANCE:
            return after
        value = after
    return value


class _Exact:
    """What both solvers share: the rules of one variant from the viewpoint of one seat."""

    def __init__(self, options: Options, seat: int) -> None:
        params = configure("score_dice", **dataclasses.asdict(options)).params
        self.options = options
        self.seat = seat
        self.counts_score = options.reward == "score"
        self.spare = len(options.pool_a) != len(options.pool_b)  # type: ignore[arg-type]
        faces = range(params.most_sides + 1)
        self._points = [[int(pair_points(params, a, b)) for b in faces] for a in faces]

    def points(self, own: int, other: int) -> int:
        """What a pair of faces scores for the player."""
        return self._points[own][other] if self.seat == 0 else -self._points[other][own]

    def carried(self, score: int) -> int:
        """The part of the score that the rest of the game's value depends on."""
        return 0 if self.counts_score else score

    def reward(self, score: int) -> float:
        """The reward at the end of the game, beyond what was paid for each pair."""
        return 0.0 if self.counts_score else float((score > 0) - (score < 0))

    def decided(self, score: int, pairs_left: int) -> bool:
        """Whether the pairs left cannot change the value any more."""
        return not self.counts_score and abs(score) > pairs_left

    def paid(self, points: int) -> float:
        """The immediate reward for a pair."""
        return float(points) if self.counts_score else 0.0

    def roll_key(self, own: Sizes, other: Sizes, score: int) -> Any:
        """What the value of a roll of these dice depends on."""
        if self.spare and len(own) == self.options.num_columns:
            return WHOLE_GAME
        return own, other, self.carried(score)

    def tie(self, own: Die, other: Die, tied: Tied) -> Tied:
        """The tied dice after a pair."""
        if own.face != other.face or self.options.ties != "reroll":
            return tied
        return tuple(sorted((*tied[0], own.size), reverse=True)), tuple(sorted((*tied[1], other.size), reverse=True))


# --- best response ----------------------------------------------------------------------------------------------------


@functools.cache
def next_highest(dice: tuple[Range, ...]) -> tuple[tuple[float, Die, tuple[Range, ...]], ...]:
    """What a player who always shows its highest die can show next: (chance, die, what is then known of the others).
    `dice` are in the order of their places."""
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


class ResponseToHighest(_Exact):
    """The exact best response to a player who always shows its highest die, of equal ones the first.

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
        """Expected reward still to come, with best play.

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
        """Every distinct die that can be shown, and its value. Arguments as for `value`."""
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
        """The value before dice of these sizes, as many on either side, are rolled."""
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
        """The value before these pools are rolled and spare dice dropped."""
        columns = min(len(own), len(other))
        total = 0.0
        for mine, chance_mine in deals(own, columns):
            for dice, chance_hand in hands(mine).items():
                hand = tuple(Die(die.face, die.size) for die in dice)  # `low` no longer matters
                for theirs, chance_theirs in deals(other, columns):
                    total += chance_mine * chance_hand * chance_theirs * self._seen_value(hand, theirs, score)
        return total

    def _seen_value(self, own: tuple[Die, ...], other: tuple[Range, ...], score: int) -> float:
        """The value after the roll. With open hands the other's dice are seen too."""
        if not self.options.open_hands:
            return self.value(own, other, score)
        return sum(
            chance * self.value(own, tuple(Range(die.face, die.face, die.size) for die in hand), score)
            for hand, chance in hands(other).items()
        )

    def game_value(self) -> float:
        """The expected reward of a whole game for the responding player."""
        own, other = self._pools
        columns = self.options.num_columns
        return self.roll_value(own[:columns], other[:columns])

    def action_values(self, variant: Variant, states: np.ndarray) -> np.ndarray:
        """The expected reward still to come if a die is shown now and best play follows, (n, actions) float64; −inf for
        dice that are not in hand. If the other has not always shown its highest die, it is assumed to do so from now on.

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
        """The value of each own die of a row of `_write_situations`, (dice,) float64; −inf where there is none."""
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
    """The response, cached with all values that it has computed so far."""
    return ResponseToHighest(options, seat)


_SITUATION = 7  # parts of a situation, each with an entry for every die of the larger pool; the score follows


@kernel
def _write_situations(params, states, seat, out, places):
    """Write what the rest of the game depends on, as far as the seat knows it. The last two are modified in place.

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


def known_ranges(variant: Variant, state: Any, seat: int, statuses: tuple[int, ...] = (HELD,)) -> list[tuple[int, Range]]:
    """What both players know from the roll alone about the seat's dice with these statuses: (place, range), by place.
    Dice of open hands are known exactly."""
    known = []
    for place, size in enumerate(variant.options.pools[seat]):
        if state["status"][seat, place] in statuses:
            if variant.options.open_hands:
                face = int(state["faces"][seat, place])
                known.append((place, Range(face, face, size)))
            else:
                known.append((place, Range(int(lowest_face(variant.params, state, seat, place)), size, size)))
    return known


# --- equilibrium ------------------------------------------------------------------------------------------------------


def solve_matrix(payoffs: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Value and optimal mixed strategies (rows, columns) of a matrix game; the row player is paid `payoffs` (m, n)."""
    rows, columns = payoffs.shape
    floor, ceiling = payoffs.min(axis=1), payoffs.max(axis=0)
    if floor.max() >= ceiling.min() - 1e-15:  # a saddle point needs no mixing
        return float(floor.max()), np.eye(rows)[floor.argmax()], np.eye(columns)[ceiling.argmin()]
    from scipy.optimize import linprog

    # Maximise v so that every column pays at least v; the columns' shadow prices are the other's strategy.
    answer = linprog(
        np.r_[np.zeros(rows), -1.0],
        A_ub=np.c_[-payoffs.T, np.ones(columns)],
        b_ub=np.zeros(columns),
        A_eq=np.r_[np.ones(rows), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * rows + [(None, None)],
        method="highs",
    )
    other = np.maximum(0.0, -answer.ineqlin.marginals)
    own = np.maximum(0.0, answer.x[:rows])
    return float(answer.x[-1]), own / own.sum(), other / other.sum()


class _Plan:
    """One player's sequence form: a number for each sequence of choices, and the sequence that leads to each information
    set."""

    def __init__(self) -> None:
        self.parents: dict[Any, int] = {}  # information set → the sequence that leads to it
        self.sequences: dict[tuple[Any, Die], int] = {}  # (information set, choice) → sequence, from 1; 0 is the start

    def extend(self, information: Any, choice: Die, parent: int) -> int:
        self.parents.setdefault(information, parent)
        return self.sequences.setdefault((information, choice), len(self.sequences) + 1)

    def constraints(self) -> Any:
        """The sparse matrix E of E x = (1, 0, …): in a realization plan x the choices at each information set add up to the
        sequence that leads to it."""
        from scipy.sparse import csr_array

        numbers = {information: row for row, information in enumerate(self.parents, 1)}
        rows, columns, values = [0], [0], [1.0]
        for information, parent in self.parents.items():
            rows.append(numbers[information])
            columns.append(parent)
            values.append(-1.0)
        for (information, _), sequence in self.sequences.items():
            rows.append(numbers[information])
            columns.append(sequence)
            values.append(1.0)
        return csr_array((values, (rows, columns)), shape=(len(numbers) + 1, len(self.sequences) + 1))


Behaviour = dict[Any, dict[Die, float]]  # information set → chance of each die


class _Solution(NamedTuple):
    """A roll solved: its value to A, and both players' strategies by information set (own hand, columns so far)."""

    value: float
    behaviours: tuple[Behaviour, Behaviour]


class Equilibrium(_Exact):
    """A Nash equilibrium of score dice with small pools. Values are A's.

    With hidden hands each roll is a linear program over realization plans (Koller, Megiddo, von Stengel: Efficient
    Computation of Equilibria for Extensive Two-Person Games, 1996); with open hands each column is a matrix game.
    Rolls end with all dice shown, so rolling tied dice again begins a subgame, which is solved on its own.

    Args:
        options: of the game.

    Raises:
        ValueError: the pools are too large, from the start or when a roll is solved.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options, 0)
        self._solutions: dict[Any, _Solution] = {}
        self._open: dict[Any, tuple[float, dict[Die, float], dict[Die, float]]] = {}
        self._rolls: dict[Any, float] = {}
        self._loop: tuple[Any, float] | None = None
        pools = [tuple(Range(1, size, size) for size in pool) for pool in options.pools]
        self._check_size(*(dice[: options.num_columns] for dice in pools))

    def _check_size(self, a: tuple[Range, ...], b: tuple[Range, ...]) -> None:
        # Hands of k dice of one kind with f faces: C(f + k - 1, k); every order of either hand is a way to play it.
        many = math.factorial(len(a)) ** 2
        for dice in (a, b):
            for kind, count in Counter(dice).items():
                many *= math.comb(kind.high - kind.low + count, count)
        if many > MOST_PATHS and not (self.options.open_hands and self.options.ties != "reroll" and len(a) <= 4):
            raise ValueError(
                f"an equilibrium is computed for small pools only, say 3d6 against 3d6: pool_a={self.options.pool_a} and "
                f"pool_b={self.options.pool_b} can be played in {many:,} ways, {MOST_PATHS:,} are allowed"
            )

    # Rolls

    def roll_value(self, a: Sizes, b: Sizes, score: int = 0) -> float:
        """The value before dice of these sizes, as many on either side, are rolled."""
        key = self.roll_key(a, b, score)
        if self._loop and self._loop[0] == key:
            return self._loop[1]
        if self.decided(score, len(a)):
            return self.reward(score)
        if key not in self._rolls:
            pools = self.options.pools if key == WHOLE_GAME else (a, b)

            def once(value: float) -> float:
                self._loop = (key, value)
                return sum(
                    chance_a * chance_b * self._roll_once(dice_a, dice_b, score)
                    for dice_a, chance_a in deals(pools[0], len(a))
                    for dice_b, chance_b in deals(pools[1], len(a))
                )

            outer = self._loop
            self._rolls[key] = settle(once) if self.options.ties == "reroll" else once(0.0)
            self._loop = outer
        return self._rolls[key]

    def _roll_once(self, a: tuple[Range, ...], b: tuple[Range, ...], score: int) -> float:
        if not self.options.open_hands:
            return self._solve(a, b, score).value
        self._open.clear()  # these were computed with another value of the next roll
        return sum(
            chance_a * chance_b * self.open_column(hand_a, hand_b, score)[0]
            for hand_a, chance_a in hands(a).items()
            for hand_b, chance_b in hands(b).items()
        )

    def game_value(self) -> float:
        """The expected reward of a whole game for A."""
        columns = self.options.num_columns
        return self.roll_value(self.options.pools[0][:columns], self.options.pools[1][:columns])

    def _end(self, score: int, tied: Tied) -> float:
        """The value when a roll is over."""
        return self.roll_value(*tied, score) if tied[0] else self.reward(score)

    # Hidden hands

    def solution(self, a: tuple[Range, ...], b: tuple[Range, ...], score: int) -> _Solution:
        """The solved roll of dice with these ranges, which both players know. Cached."""
        key = (a, b, self.carried(score))
        if key not in self._solutions:
            outer = self._loop
            if self.options.ties == "reroll" and not self.decided(score, len(a)):
                # The same roll may come again, so its value must be known first.
                sizes = tuple(die.size for die in a), tuple(die.size for die in b)
                self._loop = self.roll_key(*sizes, score), self.roll_value(*sizes, score)
            self._solutions[key] = self._solve(a, b, score)
            self._loop = outer
        return self._solutions[key]

    def _solve(self, a: tuple[Range, ...], b: tuple[Range, ...], score: int) -> _Solution:
        from scipy.optimize import linprog
        from scipy.sparse import block_array, coo_array

        self._check_size(a, b)
        plans = _Plan(), _Plan()
        payoffs: dict[tuple[int, int], float] = defaultdict(float)
        ends: dict[tuple[int, Tied], float] = {}

        def walk(
            hand_a: tuple[Die, ...], hand_b: tuple[Die, ...], rest_a: tuple[Die, ...], rest_b: tuple[Die, ...],
            past: tuple[tuple[Die, Die], ...], sequences: tuple[int, int], points: int, tied: Tied, chance: float,
        ) -> None:  # fmt: skip
            if not rest_a:
                if (points, tied) not in ends:
                    ends[points, tied] = self.paid(points) + self._end(score + points, tied)
                payoffs[sequences] += chance * ends[points, tied]
                return
            forced = len(rest_a) == 1
            for die_a in dict.fromkeys(rest_a):
                left_a = _without(rest_a, die_a)
                next_a = sequences[0] if forced else plans[0].extend((hand_a, past), die_a, sequences[0])
                for die_b in dict.fromkeys(rest_b):
                    next_b = sequences[1] if forced else plans[1].extend((hand_b, past), die_b, sequences[1])
                    walk(
                        hand_a, hand_b, left_a, _without(rest_b, die_b), (*past, (die_a, die_b)), (next_a, next_b),
                        points + self.points(die_a.face, die_b.face), self.tie(die_a, die_b, tied), chance,
                    )  # fmt: skip

        for hand_a, chance_a in hands(a).items():
            for hand_b, chance_b in hands(b).items():
                walk(hand_a, hand_b, hand_a, hand_b, (), (0, 0), 0, NONE_TIED, chance_a * chance_b)
        sizes = [len(plan.sequences) + 1 for plan in plans]
        index = np.array(list(payoffs))
        matrix = coo_array((list(payoffs.values()), (index[:, 0], index[:, 1])), shape=tuple(sizes))
        constraints_a, constraints_b = plans[0].constraints(), plans[1].constraints()
        # Maximise what B must concede: A's plan x and B's dual values u with F' u <= P' x, E x = (1, 0, …).
        information_b = constraints_b.shape[0]
        answer = linprog(
            np.r_[np.zeros(sizes[0]), -1.0, np.zeros(information_b - 1)],
            A_ub=block_array([[-matrix.T, constraints_b.T]]).tocsr(),
            b_ub=np.zeros(sizes[1]),
            A_eq=block_array([[constraints_a, coo_array((constraints_a.shape[0], information_b))]]).tocsr(),
            b_eq=np.r_[1.0, np.zeros(constraints_a.shape[0] - 1)],
            bounds=[(0, None)] * sizes[0] + [(None, None)] * information_b,
            method="highs",
        )
        if answer.x is None:
            raise RuntimeError(f"the linear program of an equilibrium was not solved: {answer.message}")
        weights = answer.x[: sizes[0]], -answer.ineqlin.marginals
        return _Solution(
            float(answer.x[sizes[0]]),
            (_behaviour(plans[0], weights[0]), _behaviour(plans[1], weights[1])),
        )

    # Open hands

    def open_column(
        self, a: tuple[Die, ...], b: tuple[Die, ...], score: int, tied: Tied = NONE_TIED
    ) -> tuple[float, dict[Die, float], dict[Die, float]]:
        """The value when both see these hands, and both players' chances of showing each die."""
        if not a:
            return self._end(score, tied), {}, {}
        key = (a, b, self.carried(score), tied)
        if key not in self._open:
            choices_a, choices_b = list(dict.fromkeys(a)), list(dict.fromkeys(b))
            payoffs = np.zeros((len(choices_a), len(choices_b)))
            for (i, die_a), (j, die_b) in itertools.product(enumerate(choices_a), enumerate(choices_b)):
                points = self.points(die_a.face, die_b.face)
                later = self.open_column(_without(a, die_a), _without(b, die_b), score + points, self.tie(die_a, die_b, tied))
                payoffs[i, j] = self.paid(points) + later[0]
            value, mix_a, mix_b = solve_matrix(payoffs)
            self._open[key] = value, dict(zip(choices_a, mix_a)), dict(zip(choices_b, mix_b))
        return self._open[key]


def _without(dice: tuple[Die, ...], die: Die) -> tuple[Die, ...]:
    at = dice.index(die)
    return dice[:at] + dice[at + 1 :]


def _behaviour(plan: _Plan, weights: np.ndarray) -> Behaviour:
    """The chances at each information set; uniform where the plan does not reach."""
    weights = np.maximum(0.0, weights)
    behaviour: Behaviour = defaultdict(dict)
    for (information, die), sequence in plan.sequences.items():
        behaviour[information][die] = float(weights[sequence])
    for chances in behaviour.values():
        total = sum(chances.values())
        for die in chances:
            chances[die] = chances[die] / total if total > 1e-12 else 1 / len(chances)
    return dict(behaviour)


# --- the measure --------------------------------------------------------------------------------------------------

MOST_SITUATIONS = 250_000  # for which one seat's response to sorted play is computed, in half a minute
MOST_SETS = 4_000_000  # information sets of one seat against sorted play, at all of which an agent is asked
FEW_SETS = 50_000  # the same for an agent with random answers; and for the exploitability of any agent
MOST_LISTED = 50_000_000  # ways to play a roll, all hands and orders, for which a best response to an agent is computed
SAMPLE = 20_000  # games played where there are too many information sets
GAMES_AT_ONCE = 2_000
_Z95 = 1.959963984540054


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Reward against `highest`, which always shows its highest die; and exploitability. See `dice_envs.exact.GameMeasure`.

    Playing at random is an equilibrium with any pools, so its exploitability is 0. The headline is therefore the reward
    won from sorted play, mean of both seats, compared with the best response to it. A random player wins 0 by this mean,
    and so does `highest` itself.

    An agent's reward is that of the best response, minus what each of its choices loses against the best choice, given
    best play afterwards. With at most MOST_SETS information sets all choices are evaluated (unless a smaller sample is
    asked for). With more, and where tied dice are rolled again, the choices in random games are evaluated; there too the
    best response loses exactly 0. 4d6 against 4d6 has 3.5 million information sets, ten seconds for a fast agent; 5d6 are
    sampled.

    Exploitability is measured up to FEW_SETS information sets, about those of 3d8 against 3d8, and if tied dice are not
    rolled again. For random answers it lies between two bounds: take a best response to one sample of the answers. On
    average it wins more from that sample than can be won from the agent, and less from another. The middle is reported.

    Raises:
        ValueError: the best response to sorted play takes too long to compute; or the sample is too small.
    """
    options = variant.options
    _check_response(options)
    if effort.sample == 1:
        raise ValueError("sample must be at least 2 games, not 1: a single game has no error")
    optimum = sum(response_to_highest(options, seat).game_value() for seat in range(2)) / 2
    asked_for = effort.sample or math.inf
    sets = _count_sets(variant, to_highest=True)
    is_random = FEW_SETS < sets <= MOST_SETS and answers_at_random(variant, agent, effort.seed)
    if sets <= min(FEW_SETS if is_random else MOST_SETS, asked_for):
        lost, error = _loss_in_all(variant, agent, effort), 0.0
        note = f"all {sets:,} information sets of each seat"
    else:
        lost, error, games = _loss_in_games(variant, agent, effort)
        note = f"a random sample of {games:,} games from each seat, whose choices are compared with exact values"
    all_sets = _count_sets(variant, to_highest=False)
    small = all_sets <= FEW_SETS and count_paths(variant) <= MOST_LISTED
    if not small or all_sets > asked_for:
        reason = "a smaller sample is asked for" if small else "the pools are too large"
        reason = "tied dice are rolled again" if options.ties == "reroll" else reason
        note = f"{note}; exploitability is not measured, since {reason}"
        return [Measurement("reward against highest", optimum - lost, optimum, lost, error, "return", note)]
    won, won_error = _exploitability(variant, agent, effort.seed)
    return [
        Measurement("reward against highest", optimum - lost, optimum, lost, error, "return", note),
        Measurement(
            "exploitability", won, 0.0, max(0.0, won), won_error, "return", f"all {all_sets:,} information sets of each seat"
        ),
    ]


def _check_response(options: Options) -> None:
    """Raise ValueError if the best response to sorted play would take too long."""
    situations = max(count_situations(options, seat) for seat in range(2))
    if situations > MOST_SITUATIONS:
        raise ValueError(
            f"pool_a={options.pool_a} and pool_b={options.pool_b} are too large: the best response to sorted play has up to "
            f"{situations:,.0f} situations, and at most {MOST_SITUATIONS:,} are computed"
        )


def count_situations(options: Options, seat: int) -> float:
    """An upper bound on the number of situations for which the response to sorted play is computed, if tied dice are not
    rolled again; a rough estimate if they are."""
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
    """How many times `deals` yields, at most."""
    spare = len(pool) - options.num_columns
    return math.comb(len(pool), spare) * spare * max(pool) if spare else 1


def _count_hands(pool: Sizes) -> np.ndarray:
    """How many different hands k of these dice can make, by k, (dice + 1,) float64."""
    kinds = Counter(pool).items()
    return _count_choices([[math.comb(size + held - 1, held) for held in range(count + 1)] for size, count in kinds])


def _count_choices(kinds: list[list[float]]) -> np.ndarray:
    """In how many ways n dice can be taken, by n, if k dice of kind i can be taken in kinds[i][k] ways."""
    return functools.reduce(np.convolve, (np.array(ways, np.float64) for ways in kinds))


def _count_sets(variant: Variant, to_highest: bool) -> float:
    """`count_sets` of the seat that has more; infinite if tied dice are rolled again, as later rolls are not enumerated."""
    if variant.options.ties == "reroll":
        return math.inf
    return max(count_sets(variant, seat, to_highest) for seat in range(2))


def _losses(variant: Variant, states: np.ndarray, seat: int, chances: np.ndarray) -> np.ndarray:
    """What choices with these chances (n, actions) lose against `highest`, compared with the best choice and given best
    play afterwards, (n,) float64."""
    values = response_to_highest(variant.options, seat).action_values(variant, states)
    behind = np.where(chances > 0, values.max(axis=1, keepdims=True) - values, 0.0)
    return (chances * behind).sum(axis=1)


def _loss_in_all(variant: Variant, agent: Any, effort: Effort) -> float:
    """How much less than the best response the agent earns from `highest`, mean of both seats."""
    total = sum(int(count_sets(variant, seat, to_highest=True)) for seat in range(2))
    lost = 0.0

    def look(seat: int, chance: float, states: np.ndarray, chances: np.ndarray, weights: np.ndarray) -> None:
        nonlocal lost
        lost += chance * float(weights @ _losses(variant, states, seat, chances))
        effort.done(len(states), total)

    for seat, roll in itertools.product(range(2), rolls(variant)):
        shown = shown_by_highest(roll.hands[1 - seat], variant.options.open_hands)
        policy(variant, agent, seat, roll, shown, effort.seed, functools.partial(look, seat, roll.chance))
    return lost / 2


def _loss_in_games(variant: Variant, agent: Any, effort: Effort) -> tuple[float, float, int]:
    """The same from random games, its 95 % half-width, and the number of games. An agent with random answers gets a tenth
    of the games and no error: it is measured ten times, and its error comes from these repeats."""
    games = planned = effort.sample or SAMPLE
    at_once = min(GAMES_AT_ONCE, max(2, games // REPEATS))
    lost = np.zeros(0)
    while len(lost) < planned:
        count = min(at_once, planned - len(lost))
        seed = [effort.seed, len(lost)]
        by_seat = [in_games(variant, agent, seat, count, seed, functools.partial(_losses, variant)) for seat in range(2)]
        lost = np.append(lost, (by_seat[0] + by_seat[1]) / 2)
        is_random = getattr(agent, "is_random", False)
        planned = max(at_once, games // REPEATS) if is_random else games
        effort.done(count, planned)
    error = 0.0 if is_random else float(_Z95 * lost.std(ddof=1) / math.sqrt(len(lost)))
    return float(lost.mean()), error, len(lost)


def _exploitability(variant: Variant, agent: Any, seed: int) -> tuple[float, float]:
    """What best responses win from the agent, mean of both seats, and the half-width of its interval. The game's values to
    the two seats cancel out, so this is also the gain above the value."""
    most = least = 0.0
    for seat, roll in itertools.product(range(2), rolls(variant)):
        shown = shown_by_any(roll.hands[1 - seat], variant.options.open_hands)
        policies = [policy(variant, agent, seat, roll, shown, seed)]
        if getattr(agent, "is_random", False):
            policies.append(policy(variant, agent, seat, roll, shown, seed + 1))
        won = best_response(variant, seat, roll, shown, policies)
        most += roll.chance * float(won[0]) / 2
        least += roll.chance * float(won[-1]) / 2
    return (most + least) / 2, (most - least) / 2
