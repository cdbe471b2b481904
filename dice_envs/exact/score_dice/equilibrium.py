"""Equilibria of score dice with small pools, exact up to the rounding of floating point."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.extras import needs
from dice_envs.exact import matrix_game
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
from dice_envs.games.score_dice import Options

__all__ = ["Equilibrium"]

MOST_PATHS = 300_000  # ways to play a roll, all hands together, up to which an equilibrium is computed


class _Plan:
    """One player's sequence form: a number for each sequence of choices, and the sequence before each information set."""

    def __init__(self) -> None:
        self.parents: dict[Any, int] = {}  # information set → the sequence that leads to it
        self.sequences: dict[tuple[Any, Die], int] = {}  # (information set, choice) → sequence, from 1; 0 is the start

    def extend(self, information: Any, choice: Die, parent: int) -> int:
        self.parents.setdefault(information, parent)
        return self.sequences.setdefault((information, choice), len(self.sequences) + 1)

    def constraints(self) -> Any:
        """Return the sparse matrix E of E x = (1, 0, …).

        In a realization plan x the choices at each information set add up to the sequence that leads to it.
        """
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
    """A solved roll: its value to A, and both players' strategies by information set (own hand, columns so far)."""

    value: float
    behaviours: tuple[Behaviour, Behaviour]


class Equilibrium(VariantRules):
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
        """Return the value before dice of these sizes, equally many on either side, are rolled."""
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
        """Return the expected reward of a whole game for A."""
        columns = self.options.num_columns
        return self.roll_value(self.options.pools[0][:columns], self.options.pools[1][:columns])

    def _end(self, score: int, tied: Tied) -> float:
        """Return the value after a roll."""
        return self.roll_value(*tied, score) if tied[0] else self.reward(score)

    # Hidden hands

    def solution(self, a: tuple[Range, ...], b: tuple[Range, ...], score: int) -> _Solution:
        """Return the solved roll of dice with these ranges, which both players know. Cached."""
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
        with needs("exact", "an equilibrium of score dice"):
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
        """Return the value when both see these hands, and both players' chances of showing each die."""
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
            value, mix_a, mix_b = matrix_game.solve(payoffs)
            self._open[key] = value, dict(zip(choices_a, mix_a)), dict(zip(choices_b, mix_b))
        return self._open[key]


def _without(dice: tuple[Die, ...], die: Die) -> tuple[Die, ...]:
    at = dice.index(die)
    return dice[:at] + dice[at + 1 :]


def _behaviour(plan: _Plan, weights: np.ndarray) -> Behaviour:
    """Return the chances at each information set; uniform at those that the plan does not reach."""
    weights = np.maximum(0.0, weights)
    behaviour: Behaviour = defaultdict(dict)
    for (information, die), sequence in plan.sequences.items():
        behaviour[information][die] = float(weights[sequence])
    for chances in behaviour.values():
        total = sum(chances.values())
        for die in chances:
            chances[die] = chances[die] / total if total > 1e-12 else 1 / len(chances)
    return dict(behaviour)
