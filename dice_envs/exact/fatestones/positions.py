"""How dice of FateStones compare, and the steps of the recursion over positions: matrix games and their solutions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.matrix_game import MAX_ACTIONS, solve_kernel
from dice_envs.games.fatestones import MAX_HAND, duel

__all__ = [
    "SIZE_OF",
    "VALUES",
    "Circle",
    "Work",
    "circles",
    "compare",
    "margins",
    "nash",
    "nash_strategies",
    "new_work",
    "set_payoff",
    "solve_position",
]

_SUBSETS = 1 << MAX_HAND
SIZE_OF = np.array([bin(subset).count("1") for subset in range(_SUBSETS)])
VALUES = 5  # tables of values that a recursion can fill at once


class Work(NamedTuple):
    """Work space of the recursions. Hands are subsets of the dice at the start, as bits."""

    margin: np.ndarray  # (MAX_HAND, MAX_HAND): P(die i of seat 0 beats die j of seat 1) − P(it loses)
    tie: np.ndarray  # (MAX_HAND, MAX_HAND): P(tie)
    payoff: np.ndarray  # (MAX_HAND, MAX_HAND): the matrix game of one position
    values: np.ndarray  # (VALUES, subsets, subsets): to seat 0; `nash` uses the first table
    first: np.ndarray  # (MAX_ACTIONS,): an optimal strategy of seat 0
    second: np.ndarray  # (MAX_ACTIONS,): and of seat 1
    tableau: np.ndarray  # work space of `solve_kernel`
    basis: np.ndarray


@kernel
def new_work():
    """Return work space for any number of draws, one after another."""
    return Work(
        np.zeros((MAX_HAND, MAX_HAND)),
        np.zeros((MAX_HAND, MAX_HAND)),
        np.zeros((MAX_HAND, MAX_HAND)),
        np.zeros((VALUES, _SUBSETS, _SUBSETS)),
        np.zeros(MAX_ACTIONS),
        np.zeros(MAX_ACTIONS),
        np.zeros((MAX_ACTIONS + 1, 2 * MAX_ACTIONS + 1)),
        np.zeros(MAX_ACTIONS, np.int64),
    )


# --- dice -----------------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def compare(hands, size, work):
    """Set `margin` and `tie` for all pairs of dice of the two hands. In place."""
    for i in range(size):
        for j in range(size):
            wins, ties = duel(hands[0, i], hands[1, j])
            work.margin[i, j] = (2 * wins + ties - 36) / 36.0
            work.tie[i, j] = ties / 36.0


@kernel
def _margins(dice, out):
    for i in range(len(dice)):
        for j in range(len(dice)):
            wins, ties = duel(dice[i], dice[j])
            out[i, j] = (2 * wins + ties - 36) / 36.0


def margins(dice: np.ndarray) -> np.ndarray:
    """Return P(die i beats die j) − P(it loses), (n, n) float64, of dice given as rows of FACES (n,)."""
    out = np.empty((len(dice), len(dice)))
    _margins(np.ascontiguousarray(dice, np.int64), out)
    return out


class Circle(NamedTuple):
    """Three dice each of which beats the next one, and the last the first."""

    dice: tuple[int, int, int]  # rows of FACES, the lowest first
    least: float  # the smallest of the three margins


def circles(dice: np.ndarray) -> list[Circle]:
    """List the circles of three among different dice (rows of FACES), each once, by falling least margin."""
    margin = margins(dice)
    beaten = [np.flatnonzero(row > 0) for row in margin]
    found = []
    for a in range(len(dice)):
        for b in beaten[a][beaten[a] > a]:
            for c in beaten[b][beaten[b] > a]:
                if margin[c, a] > 0:
                    least = min(margin[a, b], margin[b, c], margin[c, a])
                    found.append(Circle((int(dice[a]), int(dice[b]), int(dice[c])), float(least)))
    return sorted(found, key=lambda circle: (-circle.least, circle.dice))


# --- positions ------------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def set_payoff(size, a, b, values, work):
    """Set the matrix game of the position with subsets a and b; `values` holds the values of smaller positions. In place."""
    row = 0
    for i in range(size):
        if a >> i & 1:
            column = 0
            for j in range(size):
                if b >> j & 1:
                    work.payoff[row, column] = work.margin[i, j] + work.tie[i, j] * values[a ^ (1 << i), b ^ (1 << j)]
                    column += 1
            row += 1


@kernel(allocates=False)
def solve_position(size, a, b, work):
    """Solve the position with subsets a and b for both seats' Nash strategies; return its value. In place."""
    count = SIZE_OF[a]
    set_payoff(size, a, b, work.values[0], work)
    value = solve_kernel(work.payoff, count, count, work.tableau, work.basis, work.first, work.second)
    work.values[0, a, b] = value
    return value


@kernel
def nash(hands, size, work):
    """Leave the whole hands' matrix game in `work.payoff`, and its Nash strategies in `work.first` and `work.second`."""
    compare(hands, size, work)
    for a in range(1, 1 << size):
        for b in range(1, 1 << size):
            if SIZE_OF[a] == SIZE_OF[b]:
                solve_position(size, a, b, work)


@kernel
def _nash_policies(states, out):
    work = new_work()
    for n in range(len(states)):
        state = states[n]
        size = np.int64(state["left"])
        nash(state["hands"], size, work)
        for i in range(size):
            out[n, i] = work.first[i] if state["seat"] == 0 else work.second[i]


def nash_strategies(states: np.ndarray, num_actions: int) -> np.ndarray:
    """Return an optimal mixed strategy of the seat to move in each state, (n, num_actions) float64."""
    out = np.zeros((len(states), num_actions))
    _nash_policies(states, out)
    return out
