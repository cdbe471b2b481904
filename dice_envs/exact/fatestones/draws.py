"""Draws of FateStones solved: Nash and best responses to a random opponent, of all draws of a bag or a sample.

Here are also how dice compare, and the recursion over positions (`valued`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.batch import Batch
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact.intervals import Z95
from dice_envs.exact.matrix_game import new_work, solve, solve_kernel
from dice_envs.games.fatestones import COUNTS, MAX_HAND

# --- dice -----------------------------------------------------------------------------------------------------------


@functools.cache
def _all_compared() -> tuple[np.ndarray, np.ndarray]:
    """Return what `compared` does of all dice."""
    counts = COUNTS.astype(np.float64)
    wins, ties = counts @ (counts.cumsum(axis=1) - counts).T, counts @ counts.T
    return (2 * wins + ties - 36) / 36, ties / 36


def compared(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P(die i of `one` beats die j of `other`) − P(it loses), and P(tie), (…, i, j) float64; dice are rows of FACES."""
    margin, tie = _all_compared()
    which = one[..., :, None], other[..., None, :]
    return margin[which], tie[which]


def margins(dice: np.ndarray) -> np.ndarray:
    """Return P(die i beats die j) − P(it loses), (n, n) float64, of dice given as rows of FACES (n,)."""
    return compared(dice, dice)[0]


class DiceCircle(NamedTuple):
    """Three dice each of which beats the next one, and the last the first."""

    dice: tuple[int, int, int]  # rows of FACES, the lowest first
    least: float  # the smallest of the three margins


def circles(dice: np.ndarray) -> list[DiceCircle]:
    """List the circles of three among different dice (rows of FACES), each once, by falling least margin."""
    margin = margins(dice)
    beaten = [np.flatnonzero(row > 0) for row in margin]
    found = []
    for a in range(len(dice)):
        for b in beaten[a][beaten[a] > a]:
            for c in beaten[b][beaten[b] > a]:
                if margin[c, a] > 0:
                    least = min(margin[a, b], margin[b, c], margin[c, a])
                    found.append(DiceCircle((int(dice[a]), int(dice[b]), int(dice[c])), float(least)))
    return sorted(found, key=lambda circle: (-circle.least, circle.dice))


# --- positions ------------------------------------------------------------------------------------------------------


@functools.cache
def pairs(size: int) -> tuple[tuple[int, int, Any, Any], ...]:
    """List all pairs of non-empty subsets of equal size, as bits, each after the pairs that it contains.

    With each pair come two indices: its dice, in arrays (…, size, size); and the pairs without one die each, in arrays
    (…, subsets, subsets).
    """
    found = []
    for mine, theirs in itertools.product(range(1, 1 << size), repeat=2):
        if mine.bit_count() == theirs.bit_count():
            dice = [[die for die in range(size) if subset >> die & 1] for subset in (mine, theirs)]
            after = [[subset ^ 1 << die for die in each] for subset, each in zip((mine, theirs), dice, strict=True)]
            found.append((mine, theirs, np.ix_(*dice), np.ix_(*after)))
    return tuple(found)


def valued(hands: np.ndarray, value: Callable[[int, int, np.ndarray], Any], tables: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Value all positions of draws, the smaller ones first.

    Args:
        hands: (n, 2, size) rows of FACES.
        value: (subset of seat 0's dice, of seat 1's, as bits; the position's matrix games (tables, n, dice, dice)) → the
            position's values to seat 0 (tables, n), from which those of larger positions follow.
        tables: number of recursions that are done at once.

    Returns:
        The matrix games of whole hands, (tables, n, size, size) float64, and their values, (tables, n).
    """
    count, _, size = hands.shape
    # Draws come last in these arrays: they are read and written in long rows.
    margin, tie = (np.moveaxis(each, 0, -1)[:, :, None] for each in compared(hands[:, 0], hands[:, 1]))
    values = np.zeros((1 << size, 1 << size, tables, count))
    for mine, theirs, dice, after in pairs(size):  # the last pair is that of whole hands
        payoffs = np.moveaxis(margin[dice] + tie[dice] * values[after], (0, 1), (-2, -1))
        values[mine, theirs] = value(mine, theirs, payoffs)
    return payoffs, values[-1, -1]


@kernel(allocates=False)
def _set_payoffs(margin, tie, mine, theirs, values, payoffs):
    """Set the matrix game of a position, from the `values` of smaller ones; return the number of dice. In place."""
    row = 0
    for i in range(len(margin)):
        if mine >> i & 1:
            column = 0
            for j in range(len(margin)):
                if theirs >> j & 1:
                    payoffs[row, column] = margin[i, j] + tie[i, j] * values[mine ^ (1 << i), theirs ^ (1 << j)]
                    column += 1
            row += 1
    return row


@kernel
def _nash(margin, tie, positions, payoffs, first, second):
    """Write what `nash` returns of each draw. `positions` are pairs of subsets, the last of whole hands. In place."""
    size = margin.shape[1]
    values = np.zeros((1 << size, 1 << size))
    tableau, basis = new_work()
    for n in range(len(margin)):
        for k in range(len(positions)):
            mine, theirs = positions[k]
            dice = _set_payoffs(margin[n], tie[n], mine, theirs, values, payoffs[n])
            values[mine, theirs] = solve_kernel(payoffs[n], dice, dice, tableau, basis, first[n], second[n])


def nash(hands: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve draws (n, 2, size), rows of FACES, in one compiled loop, which is fast for a few of them, too.

    Returns:
        The matrix games of whole hands if Nash strategies follow, (n, size, size) float64; and the Nash strategy of each
        seat, (n, size) float64.
    """
    count, _, size = hands.shape
    payoffs, first, second = np.empty((count, size, size)), np.empty((count, size)), np.empty((count, size))
    positions = np.array([(mine, theirs) for mine, theirs, *_ in pairs(size)])
    _nash(*compared(hands[:, 0], hands[:, 1]), positions, payoffs, first, second)
    return payoffs, first, second


# --- draws ----------------------------------------------------------------------------------------------------------

MOST_DRAWS = 10**7  # in a sample: more would not fit into a few GiB
VALUES_AT_ONCE = 2**19  # positions of draws that are solved together


@dataclasses.dataclass(frozen=True)
class Draws:
    """Means over draws and both seats of each draw: wins minus losses per draw.

    Attributes:
        draws: their number; a draw with its seats exchanged counts as another.
        best_response: the best response to a uniformly random opponent.
        nash: the Nash strategy against a uniformly random opponent.
        unfairness: mean |value|, the worth of the better hand between perfect players.
        gap: the largest gain of a best response against the Nash strategy at any position of any draw.
        best_response_error, nash_error: 95 % half-widths of the means over a sample; 0 when all draws were taken.
    """

    draws: int
    best_response: float
    nash: float
    unfairness: float
    gap: float
    best_response_error: float = 0.0
    nash_error: float = 0.0


def parts_of_all(variant: Variant) -> list[tuple[int, int]]:
    """Divide all draws of a bag into about a hundred parts, each a range of one seat's hands: its first, one past its last."""
    hands = math.comb(len(variant.params.bag), variant.params.hand_size)
    step = max(1, hands // 100)
    return [(first, min(first + step, hands)) for first in range(0, hands, step)]


def solve_part(variant: Variant, first: int, last: int, done: Callable[[int], Any] = lambda amount: None) -> np.ndarray:
    """Solve the draws of a part. `done` is called with its number of hands.

    Returns:
        (5,) float64, for `add_up`: the number of draws solved, half of all, since exchanging the seats mirrors a draw; sums of
        what `solve_each` returns of them, but the largest gap.
    """
    rows = np.array(list(itertools.combinations(range(len(variant.params.bag)), variant.params.hand_size)))
    found = np.zeros(5)
    for number in range(first, last):
        others = rows[number + 1 :]
        others = others[~np.isin(others, rows[number]).any(axis=1)]  # those that share no die with this hand
        solved = solve_each(variant.params.bag[np.stack([np.broadcast_to(rows[number], others.shape), others], axis=1)])
        found[:4] += len(solved), *solved[:, :3].sum(axis=0)
        found[4] = max(found[4], solved[:, 3].max(initial=0.0))
    done(last - first)
    return found


def add_up(parts: Sequence[np.ndarray]) -> Draws:
    """Combine the sums of all parts, as `solve_part` returns them."""
    found = np.array(parts)
    draws, *sums = found[:, :4].sum(axis=0).tolist()
    best_response, nash, unfairness = (each / draws for each in sums)
    return Draws(2 * int(draws), best_response, nash, unfairness, float(found[:, 4].max()))


def solve_all(variant: Variant, done: Callable[[int], Any] = lambda amount: None) -> Draws:
    """Solve every draw of the bag. `done` is called with the number of hands finished since the last call."""
    return add_up([solve_part(variant, first, last, done) for first, last in parts_of_all(variant)])


def solve_each(hands: np.ndarray, done: Callable[[int], Any] = lambda amount: None) -> np.ndarray:
    """Solve draws (n, 2, hand_size), rows of FACES. Calls `done` with n.

    Returns:
        (n, 4) float64, for each draw what `Draws` has of many: best_response, nash, unfairness and gap.
    """
    size = hands.shape[2]
    out = np.zeros((len(hands), 4))
    step = max(1, VALUES_AT_ONCE >> 2 * size)
    for some in range(0, len(hands), step):
        _solve(hands[some : some + step], out[some : some + step])
    done(len(hands))
    return out


def _solve(hands: np.ndarray, out: np.ndarray) -> None:
    """Write what `solve_each` returns. In place."""

    def value(mine: int, theirs: int, payoffs: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return values to seat 0: of Nash strategies; if one seat is random and the other's best response or Nash plays it."""
        worth, first, second = solve(payoffs[0])
        by_row = (payoffs[0] * second[:, None]).sum(axis=2)
        by_column = (payoffs[0] * first[:, :, None]).sum(axis=1)
        out[:, 3] = np.max([out[:, 3], by_row.max(axis=1) - worth, worth - by_column.min(axis=1)], axis=0)
        rows, columns = payoffs.mean(axis=3), payoffs.mean(axis=2)  # if the other seat is random
        nash_0, nash_1 = (rows[3] * first).sum(axis=1), (columns[4] * second).sum(axis=1)
        return worth, rows[1].max(axis=1), columns[2].min(axis=1), nash_0, nash_1

    worth, best_0, best_1, nash_0, nash_1 = valued(hands, value, 5)[1]
    out[:, 0], out[:, 1], out[:, 2] = (best_0 - best_1) / 2, (nash_0 - nash_1) / 2, np.abs(worth)


def mean_of(solved: np.ndarray) -> Draws:
    """Return the means over a sample of draws, (n, 4) as `solve_each` returns them."""
    best_response, nash, unfairness, _ = solved.mean(axis=0).tolist()
    errors = Z95 / np.sqrt(len(solved)) * solved[:, :2].std(axis=0)
    return Draws(len(solved), best_response, nash, unfairness, float(solved[:, 3].max()), *map(float, errors))


def solve_draws(hands: np.ndarray) -> Draws:
    """Solve a sample of draws, (n, 2, hand_size) rows of FACES."""
    return mean_of(solve_each(hands))


def draw_hands(variant: Variant, count: int, seed: int) -> np.ndarray:
    """Return random draws from the bag, (count, 2, hand_size) int16 rows of FACES."""
    hands: np.ndarray = Batch(variant, count, seed).states["hands"]
    return hands[:, :, : variant.params.hand_size].copy()


# --- the edge -------------------------------------------------------------------------------------------------------


def edges(hands: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return how much better each die of seat 0 is than a random one, if all other choices are uniformly random.

    Args:
        hands: (n, 2, up to MAX_HAND) rows of FACES; entries beyond a hand's size are ignored.
        sizes: (n,) dice in each hand.

    Returns:
        (n, MAX_HAND) float64: expected wins minus losses in the draw (choices after a tie included), minus the mean of
        this over the dice in hand; 0 beyond the hand.
    """
    out = np.zeros((len(hands), MAX_HAND))
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        payoffs, values = valued(hands[rows, :, :size], lambda mine, theirs, payoffs: payoffs.mean(axis=(2, 3)))
        out[rows, :size] = payoffs[0].mean(axis=2) - values[0, :, None]
    return out
