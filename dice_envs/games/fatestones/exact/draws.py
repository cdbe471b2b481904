"""Draws of FateStones solved: Nash and best responses to a random opponent, of all draws of a bag or a sample.

Here are also how dice compare, and the steps of the recursion over positions: matrix games and their solutions.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from dice_envs.core.batch import Batch
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_range
from dice_envs.core.work import advance, clock
from dice_envs.exact.contract import Solved, plus_minus
from dice_envs.exact.intervals import half_width
from dice_envs.exact.matrix_game import MAX_ACTIONS, solve_kernel
from dice_envs.games.fatestones import COUNTS, MAX_HAND, duel

_SUBSETS = 1 << MAX_HAND
SIZE_OF = np.array([bin(subset).count("1") for subset in range(_SUBSETS)])
_VALUES = 5  # tables of values that a recursion can fill at once


class _Workspace(NamedTuple):
    """Work space of the recursions. Hands are subsets of the dice at the start, as bits."""

    margin: np.ndarray  # (MAX_HAND, MAX_HAND): P(die i of seat 0 beats die j of seat 1) − P(it loses)
    tie: np.ndarray  # (MAX_HAND, MAX_HAND): P(tie)
    payoff: np.ndarray  # (MAX_HAND, MAX_HAND): the matrix game of one position
    values: np.ndarray  # (_VALUES, subsets, subsets): to seat 0; `nash` uses the first table
    first: np.ndarray  # (MAX_ACTIONS,): an optimal strategy of seat 0
    second: np.ndarray  # (MAX_ACTIONS,): and of seat 1
    tableau: np.ndarray  # work space of `solve_kernel`
    basis: np.ndarray


@kernel
def new_work():
    """Return work space for any number of draws, one after another."""
    return _Workspace(
        np.zeros((MAX_HAND, MAX_HAND)),
        np.zeros((MAX_HAND, MAX_HAND)),
        np.zeros((MAX_HAND, MAX_HAND)),
        np.zeros((_VALUES, _SUBSETS, _SUBSETS)),
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
            work.margin[i, j], work.tie[i, j] = (2 * wins + ties - 36) / 36.0, ties / 36.0


def compared(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return P(die i of `one` beats die j of `other`) − P(it loses), and P(tie), (…, i, j) float64; dice are rows of FACES."""
    ours, theirs = COUNTS[one].astype(np.int64), COUNTS[other].astype(np.int64).swapaxes(-1, -2)
    wins, ties = ours @ (theirs.cumsum(axis=-2) - theirs), ours @ theirs
    return (2 * wins + ties - 36) / 36, ties / 36


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
def _solve_position(size, a, b, work):
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
                _solve_position(size, a, b, work)


# --- draws ----------------------------------------------------------------------------------------------------------

MOST_DRAWS = 10**7  # in a sample: more would not fit into a few GiB
MOST_SOLVED = 10**9  # of all draws, which take hours
DRAWS_IN_PART = 20_000
# The quantities that `_solve_draw` writes, each per draw and for the seat named. All but GAP are recursions with a table of
# values each.
NUM_QUANTITIES = 6
VALUE, BEST_0, BEST_1, NASH_0, NASH_1, GAP = range(NUM_QUANTITIES)


@kernel(allocates=False)
def _gap(count, value, work):
    """Return the largest gain of a best response against the Nash strategies of the matrix game in `work.payoff`."""
    gap = 0.0
    for k in range(count):
        by_row = 0.0
        by_column = 0.0
        for m in range(count):
            by_row += work.payoff[k, m] * work.second[m]
            by_column += work.first[m] * work.payoff[m, k]
        gap = max(gap, by_row - value, value - by_column)
    return gap


@kernel(allocates=False)
def _meet_random(size, a, b, quantity, work):
    """Set one of BEST_s and NASH_s at a position whose Nash strategies are in `work`. In place."""
    count = SIZE_OF[a]
    seat = (quantity - BEST_0) & 1
    set_payoff(size, a, b, work.values[quantity], work)
    best = -2.0
    mixed = 0.0
    for k in range(count):
        mean = 0.0
        for m in range(count):
            mean += work.payoff[k, m] if seat == 0 else -work.payoff[m, k]
        mean /= count
        best = max(best, mean)
        mixed += mean * (work.first[k] if seat == 0 else work.second[k])
    own = best if quantity <= BEST_1 else mixed
    # `set_payoff` adds values to seat 0's margins, so all values are stored as seat 0's.
    work.values[quantity, a, b] = own if seat == 0 else -own


@kernel(allocates=False)
def _solve_draw(hands, size, work, out):
    """Write the NUM_QUANTITIES quantities of a draw. In place.

    VALUE: Nash against Nash, to seat 0. BEST_s, NASH_s: what seat s wins from a uniformly random opponent with the
    best response, and with the Nash strategy found. GAP: the largest gain of a best response against either Nash
    strategy at any position of the draw, which is a rounding error.
    """
    compare(hands, size, work)
    gap = 0.0
    for a in range(1, 1 << size):
        for b in range(1, 1 << size):
            if SIZE_OF[a] == SIZE_OF[b]:
                value = _solve_position(size, a, b, work)
                gap = max(gap, _gap(SIZE_OF[a], value, work))
                for quantity in range(BEST_0, NASH_1 + 1):
                    _meet_random(size, a, b, quantity, work)
    full = (1 << size) - 1
    for quantity in range(GAP):
        value = work.values[quantity, full, full]
        out[quantity] = -value if quantity in (BEST_1, NASH_1) else value
    out[GAP] = gap


@kernel
def _solve_draws(hands, out):
    work = new_work()
    for i in range(len(hands)):
        _solve_draw(hands[i], hands.shape[2], work, out[i])


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


def solve_part(variant: Variant, first: int, last: int) -> np.ndarray:
    """Solve the draws of a part. Advances by its number of hands, see `dice_envs.core.work`.

    Returns:
        (NUM_QUANTITIES + 2,) float64, for `add_up`: the sum of each quantity over half of the draws (exchanging the seats
        mirrors a draw), but the largest GAP; the sum of |value|; the number of draws solved.
    """
    rows = np.array(list(itertools.combinations(range(len(variant.params.bag)), variant.params.hand_size)))
    sums = np.zeros(NUM_QUANTITIES + 2)
    for number in range(first, last):
        others = rows[number + 1 :]
        others = others[~np.isin(others, rows[number]).any(axis=1)]  # those that share no die with this hand
        solved = _solve_each(variant.params.bag[np.stack([np.broadcast_to(rows[number], others.shape), others], axis=1)])
        sums[:GAP] += solved[:, :GAP].sum(axis=0)
        sums[GAP] = max(sums[GAP], solved[:, GAP].max(initial=0.0))
        sums[NUM_QUANTITIES:] += np.abs(solved[:, VALUE]).sum(), len(solved)
    advance(last - first)
    return sums


def add_up(parts: Sequence[np.ndarray]) -> Draws:
    """Combine the sums of all parts, as `solve_part` returns them."""
    found = np.array(parts)
    sums = found.sum(axis=0)
    draws = 2 * int(sums[NUM_QUANTITIES + 1])
    return Draws(
        draws=draws,
        best_response=(sums[BEST_0] + sums[BEST_1]) / draws,
        nash=(sums[NASH_0] + sums[NASH_1]) / draws,
        unfairness=2 * sums[NUM_QUANTITIES] / draws,
        gap=float(found[:, GAP].max()),
    )


def solve_all(variant: Variant) -> Draws:
    """Solve every draw of the bag. Advances by hands."""
    return add_up([solve_part(variant, first, last) for first, last in parts_of_all(variant)])


def solve_each(hands: np.ndarray) -> np.ndarray:
    """Return the quantities of draws (n, 2, hand_size), rows of FACES: (n, NUM_QUANTITIES) float64. Advances by n."""
    out = _solve_each(hands)
    advance(len(hands))
    return out


def _solve_each(hands: np.ndarray) -> np.ndarray:
    out = np.zeros((len(hands), NUM_QUANTITIES))
    _solve_draws(hands, out)
    return out


def mean_of(solved: np.ndarray) -> Draws:
    """Return the means over a sample of draws, (n, NUM_QUANTITIES) as `solve_each` returns them."""
    best, nash = (solved[:, [low, low + 1]].mean(axis=1) for low in (BEST_0, NASH_0))
    return Draws(
        draws=len(solved),
        best_response=float(best.mean()),
        nash=float(nash.mean()),
        unfairness=float(np.abs(solved[:, VALUE]).mean()),
        gap=float(solved[:, GAP].max()),
        best_response_error=half_width(best, -1.0, 1.0),
        nash_error=half_width(nash, -1.0, 1.0),
    )


def solve_draws(hands: np.ndarray) -> Draws:
    """Solve a sample of draws, (n, 2, hand_size) rows of FACES."""
    return mean_of(solve_each(hands))


def draw_hands(variant: Variant, count: int, seed: int) -> np.ndarray:
    """Return random draws from the bag, (count, 2, hand_size) int16 rows of FACES."""
    hands: np.ndarray = Batch(variant, count, seed).states["hands"]
    return hands[:, :, : variant.params.hand_size].copy()


def solve_game(
    variant: Variant,
    seed: int,
    workers: Any,
    progress: Any,
    say: Any,
    draws: Annotated[int, "Sampled draws; 0 for all (fair dice, three a hand: minutes)."] = 100_000,
) -> Solved:
    """Winnings of the best response and of the Nash strategy against a random player, over all draws or a sample.

    With --ray the draws are spread over a cluster, with the same result. With --json, solved parts are kept beside that file
    until the end, for --resume.

    Example: solve fatestones --draws 0
    """
    if draws != 0:
        check_range("draws", draws, 2, MOST_DRAWS)
    bag, hand = len(variant.params.bag), variant.params.hand_size
    every = math.comb(bag, hand) * math.comb(bag - hand, hand)
    if draws == 0 and every > MOST_SOLVED:
        raise ValueError(f"draws must not be 0 for all: there are {every:,} of this bag, {MOST_SOLVED:,} are allowed")
    start = clock()
    if draws:
        say(f"seed {seed}")
        hands = draw_hands(variant, draws, seed)
        pieces = [(hands[first : first + DRAWS_IN_PART],) for first in range(0, draws, DRAWS_IN_PART)]
        with progress("draws", draws):
            found = mean_of(np.concatenate(workers.run(solve_each, (), pieces, [len(piece) for (piece,) in pieces])))
    else:
        parts = parts_of_all(variant)
        with progress("hands", math.comb(bag, hand)):
            found = add_up(workers.run(solve_part, (variant,), parts, [last - first for first, last in parts]))
    seconds = clock() - start
    shown = [
        f"{found.draws:,} draws in {seconds:.1f} s; wins minus losses per draw:",
        f"  best response to random  {plus_minus(found.best_response, found.best_response_error, 6, sign=True)}",
        f"  Nash against random      {plus_minus(found.nash, found.nash_error, 6, sign=True)}",
        f"  mean |value|, Nash both  {found.unfairness:+.6f}",
        f"  most left from Nash      {found.gap:.1e} at any position",
    ]
    return Solved(shown, {**dataclasses.asdict(found), "seconds": seconds, "seed": seed if draws else None})


# --- the edge -------------------------------------------------------------------------------------------------------


def pairs(size: int) -> Iterator[tuple[int, int, Any]]:
    """Yield all pairs of non-empty subsets of equal size, as bits, each after the pairs that it contains.

    With each pair comes an index into arrays (…, size, size): its dice.
    """
    for mine, theirs in itertools.product(range(1, 1 << size), repeat=2):
        if SIZE_OF[mine] == SIZE_OF[theirs]:
            yield mine, theirs, np.ix_(*([die for die in range(size) if subset >> die & 1] for subset in (mine, theirs)))


def payoffs(mine: int, theirs: int, dice: Any, margin: np.ndarray, tie: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the matrix games of a position, (…, dice, dice), from the `values` (…, subsets, subsets) of smaller ones."""
    after = np.ix_(*(subset ^ (1 << each.ravel()) for subset, each in zip((mine, theirs), dice, strict=True)))
    return margin[..., *dice] + tie[..., *dice] * values[..., *after]


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
        margin, tie = compared(hands[rows, 0, :size], hands[rows, 1, :size])
        values = np.zeros((len(rows), 1 << size, 1 << size))
        for mine, theirs, dice in pairs(size):  # the last pair is that of whole hands
            payoff = payoffs(mine, theirs, dice, margin, tie, values)
            values[:, mine, theirs] = payoff.mean(axis=(1, 2))
        out[rows, :size] = payoff.mean(axis=2) - values[:, -1:, -1]
    return out
