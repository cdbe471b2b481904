"""Exact play of FateStones: values, Nash strategies and best responses, by recursion over the dice in hand.

All dice are open, so a position is two hands. The players choose at the same time, so it is a zero-sum matrix game.
Its entry (i, j) is P(die i beats die j) − P(it loses) + P(tie) times the value of the position without the two dice.
Values are wins minus losses of seat 0 in one draw. A scratch counts 0: this is also the value of the redraw that follows
under `scratch="redraw"`, because the game is fair before the dice are drawn.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Turn, Uniform, ask_probabilities
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import ActionValues, Effort, Measurement
from dice_envs.exact.intervals import Z95
from dice_envs.exact.matrix_game import MAX_ACTIONS, solve_kernel
from dice_envs.games.fatestones import GONE, MAX_HAND, NONE, duel

__all__ = [
    "MOST_DRAWS",
    "Circle",
    "Draws",
    "Evaluation",
    "add_up",
    "circles",
    "draw_hands",
    "edges",
    "evaluate",
    "first_choices",
    "margins",
    "mean_of",
    "nash_strategies",
    "parts_of_all",
    "ratio",
    "replies",
    "solve_all",
    "solve_draws",
    "solve_each",
    "solve_part",
]

_SUBSETS = 1 << MAX_HAND
_SIZE_OF = np.array([bin(subset).count("1") for subset in range(_SUBSETS)])
# The quantities that `_solve_draw` writes, each per draw and for the seat named.
NUM_QUANTITIES = 6
MOST_DRAWS = 10**7  # in a sample: more would not fit into a few GiB
VALUE, BEST_0, BEST_1, NASH_0, NASH_1, GAP = range(NUM_QUANTITIES)


class _Work(NamedTuple):
    """Work space of the recursions. Hands are subsets of the dice at the start, as bits."""

    margin: np.ndarray  # (MAX_HAND, MAX_HAND): P(die i of seat 0 beats die j of seat 1) − P(it loses)
    tie: np.ndarray  # (MAX_HAND, MAX_HAND): P(tie)
    payoff: np.ndarray  # (MAX_HAND, MAX_HAND): the matrix game of one position
    values: np.ndarray  # (5, subsets, subsets): of all quantities but GAP
    first: np.ndarray  # (MAX_ACTIONS,): an optimal strategy of seat 0, and of seat 1
    second: np.ndarray
    tableau: np.ndarray
    basis: np.ndarray


@kernel
def _new_work():
    return _Work(
        np.zeros((MAX_HAND, MAX_HAND)),
        np.zeros((MAX_HAND, MAX_HAND)),
        np.zeros((MAX_HAND, MAX_HAND)),
        np.zeros((5, _SUBSETS, _SUBSETS)),
        np.zeros(MAX_ACTIONS),
        np.zeros(MAX_ACTIONS),
        np.zeros((MAX_ACTIONS + 1, 2 * MAX_ACTIONS + 1)),
        np.zeros(MAX_ACTIONS, np.int64),
    )


@kernel
def _compare(hands, size, work):
    """Set `margin` and `tie` for all pairs of dice. In place."""
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
    """P(die i beats die j) − P(it loses), (n, n) float64, of dice given as rows of FACES (n,)."""
    out = np.empty((len(dice), len(dice)))
    _margins(np.ascontiguousarray(dice, np.int64), out)
    return out


class Circle(NamedTuple):
    """Three dice each of which beats the next one, and the last the first."""

    dice: tuple[int, int, int]  # rows of FACES, the lowest first
    least: float  # the smallest of the three margins


def circles(dice: np.ndarray) -> list[Circle]:
    """All circles of three among different dice (rows of FACES), each once, those with the greatest least margin first."""
    found = []
    margin = margins(dice)
    beaten = [np.flatnonzero(row > 0) for row in margin]
    for a in range(len(dice)):
        for b in beaten[a][beaten[a] > a]:
            for c in beaten[b][beaten[b] > a]:
                if margin[c, a] > 0:
                    least = min(margin[a, b], margin[b, c], margin[c, a])
                    found.append(Circle((int(dice[a]), int(dice[b]), int(dice[c])), float(least)))
    return sorted(found, key=lambda circle: (-circle.least, circle.dice))


@kernel
def _set_payoff(size, a, b, values, work):
    """The matrix game of the position with subsets a and b; `values` holds the values of smaller positions. In place."""
    row = 0
    for i in range(size):
        if a >> i & 1:
            column = 0
            for j in range(size):
                if b >> j & 1:
                    work.payoff[row, column] = work.margin[i, j] + work.tie[i, j] * values[a ^ (1 << i), b ^ (1 << j)]
                    column += 1
            row += 1


@kernel
def _solve_position(size, a, b, work):
    count = _SIZE_OF[a]
    _set_payoff(size, a, b, work.values[VALUE], work)
    value = solve_kernel(work.payoff, count, count, work.tableau, work.basis, work.first, work.second)
    work.values[VALUE, a, b] = value
    return value


@kernel
def _nash(hands, size, work):
    """Leaves the optimal strategies of the whole hands in `work.first` and `work.second`; returns the value."""
    _compare(hands, size, work)
    value = 0.0
    for a in range(1, 1 << size):
        for b in range(1, 1 << size):
            if _SIZE_OF[a] == _SIZE_OF[b]:
                value = _solve_position(size, a, b, work)
    return value


@kernel
def _solve_draw(hands, size, work, out):
    """Write the NUM_QUANTITIES quantities of a draw. In place.

    VALUE: Nash against Nash, to seat 0. BEST_s, NASH_s: what seat s wins from a uniformly random opponent with the
    best response, and with the Nash strategy found. GAP: the largest gain of a best response against either Nash
    strategy at any position of the draw, which is a rounding error.
    """
    _compare(hands, size, work)
    gap = 0.0
    for a in range(1, 1 << size):
        for b in range(1, 1 << size):
            count = _SIZE_OF[a]
            if count != _SIZE_OF[b]:
                continue
            value = _solve_position(size, a, b, work)
            for k in range(count):
                by_row = 0.0
                by_column = 0.0
                for m in range(count):
                    by_row += work.payoff[k, m] * work.second[m]
                    by_column += work.first[m] * work.payoff[m, k]
                gap = max(gap, by_row - value, value - by_column)
            for quantity in range(BEST_0, NASH_1 + 1):
                seat = (quantity - BEST_0) & 1
                _set_payoff(size, a, b, work.values[quantity], work)
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
                # `_set_payoff` adds values to seat 0's margins, so all values are stored as seat 0's.
                work.values[quantity, a, b] = own if seat == 0 else -own
    full = (1 << size) - 1
    for quantity in range(GAP):
        value = work.values[quantity, full, full]
        out[quantity] = -value if quantity in (BEST_1, NASH_1) else value
    out[GAP] = gap


@kernel
def _solve_draws(hands, out):
    work = _new_work()
    for i in range(len(hands)):
        _solve_draw(hands[i], hands.shape[2], work, out[i])


@kernel
def _solve_part(combinations, bag, first, last, sums):
    """Add the quantities of every draw in which one hand is row first … last-1 and the other a later row that shares
    no die with it to `sums`, which is as `solve_part` returns it. In place."""
    size = combinations.shape[1]
    work = _new_work()
    out = np.zeros(NUM_QUANTITIES)
    hands = np.zeros((2, MAX_HAND), np.int64)
    for i in range(first, last):
        for j in range(i + 1, len(combinations)):
            shared = False
            for k in range(size):
                hands[0, k] = bag[combinations[i, k]]
                hands[1, k] = bag[combinations[j, k]]
                for m in range(size):
                    shared |= combinations[i, k] == combinations[j, m]
            if shared:
                continue
            _solve_draw(hands, size, work, out)
            for quantity in range(GAP):
                sums[quantity] += out[quantity]
            sums[GAP] = max(sums[GAP], out[GAP])
            sums[NUM_QUANTITIES] += abs(out[VALUE])
            sums[NUM_QUANTITIES + 1] += 1.0


@dataclasses.dataclass(frozen=True)
class Draws:
    """Means over draws and both seats of each draw: wins minus losses per draw.

    Attributes:
        draws: how many; a draw with its seats exchanged counts as another.
        best_response: the best response to a uniformly random opponent.
        nash: the Nash strategy against a uniformly random opponent.
        unfairness: mean |value|: what the better hand is worth between perfect players.
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
    """All draws of a bag in about a hundred parts: the first and one past the last of the first seat's hands of each."""
    hands = math.comb(len(variant.params.bag), variant.params.hand_size)
    step = max(1, hands // 100)
    return [(first, min(first + step, hands)) for first in range(0, hands, step)]


def solve_part(variant: Variant, first: int, last: int, done: Callable[[int], Any] = lambda amount: None) -> np.ndarray:
    """Solve the draws of a part. `done` is called with its number of hands.

    Returns:
        (NUM_QUANTITIES + 2,) float64, for `add_up`: the sum of each quantity over half of the draws (exchanging the seats
        mirrors a draw), but the largest GAP; the sum of |value|; how many draws were solved.
    """
    bag = variant.params.bag
    combinations = np.array(list(itertools.combinations(range(len(bag)), variant.params.hand_size)))
    sums = np.zeros(NUM_QUANTITIES + 2)
    _solve_part(combinations, bag, first, last, sums)
    done(last - first)
    return sums


def add_up(parts: Sequence[np.ndarray]) -> Draws:
    """What all draws come to, from what `solve_part` has found of each part."""
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


def solve_all(variant: Variant, done: Callable[[int], Any] = lambda amount: None) -> Draws:
    """Solve every draw of the bag. `done` is called with the number of hands finished since the last call."""
    return add_up([solve_part(variant, first, last, done) for first, last in parts_of_all(variant)])


def solve_each(hands: np.ndarray, done: Callable[[int], Any] = lambda amount: None) -> np.ndarray:
    """Solve draws, (n, 2, hand_size) rows of FACES: (n, NUM_QUANTITIES) float64. `done` is called with their number."""
    out = np.zeros((len(hands), NUM_QUANTITIES))
    _solve_draws(hands, out)
    done(len(hands))
    return out


def mean_of(solved: np.ndarray) -> Draws:
    """What a sample of draws comes to, (n, NUM_QUANTITIES) as `solve_each` returns them."""
    best, nash = (solved[:, [low, low + 1]].mean(axis=1) for low in (BEST_0, NASH_0))
    error = Z95 / np.sqrt(len(solved))
    return Draws(
        draws=len(solved),
        best_response=float(best.mean()),
        nash=float(nash.mean()),
        unfairness=float(np.abs(solved[:, VALUE]).mean()),
        gap=float(solved[:, GAP].max()),
        best_response_error=float(error * best.std()),
        nash_error=float(error * nash.std()),
    )


def solve_draws(hands: np.ndarray) -> Draws:
    """Solve a sample of draws, (n, 2, hand_size) rows of FACES."""
    return mean_of(solve_each(hands))


def draw_hands(variant: Variant, count: int, seed: int) -> np.ndarray:
    """Random draws from the bag, (count, 2, hand_size) int16 rows of FACES."""
    hands: np.ndarray = Batch(variant, count, seed).states["hands"]
    return hands[:, :, : variant.params.hand_size].copy()


# --- the edge ---------------------------------------------------------------------------------------------------


@kernel
def _edges(hands, sizes, out):
    work = _new_work()
    for n in range(len(hands)):
        size = sizes[n]
        _compare(hands[n], size, work)
        values = work.values[0]
        for a in range(1, 1 << size):
            for b in range(1, 1 << size):
                count = _SIZE_OF[a]
                if count != _SIZE_OF[b]:
                    continue
                _set_payoff(size, a, b, values, work)
                mean = 0.0
                for i in range(count):
                    for j in range(count):
                        mean += work.payoff[i, j]
                values[a, b] = mean / (count * count)
        full = (1 << size) - 1
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += work.margin[i, j] + work.tie[i, j] * values[full ^ (1 << i), full ^ (1 << j)]
            out[n, i] = total / size - values[full, full]


def edges(hands: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """How much better each die of seat 0 is than a random one, when all other choices are uniformly random.

    Args:
        hands: (n, 2, up to MAX_HAND) rows of FACES; entries beyond a hand's size are ignored.
        sizes: (n,) dice in each hand.

    Returns:
        (n, MAX_HAND) float64: expected wins minus losses in the draw (choices after a tie included), minus the mean of
        this over the dice in hand; 0 beyond the hand.
    """
    out = np.zeros((len(hands), MAX_HAND))
    _edges(np.ascontiguousarray(hands), np.asarray(sizes, np.int64), out)
    return out


# --- any policy ---------------------------------------------------------------------------------------------------


def _pairs(size: int) -> list[tuple[int, int]]:
    """All pairs of non-empty subsets of equal size; every pair comes after those that it contains."""
    subsets = range(1, 1 << size)
    return [(a, b) for a in subsets for b in subsets if _SIZE_OF[a] == _SIZE_OF[b]]


@kernel
def _positions(hands, a, b, seat, states):
    """Set each state to hands[i] with only the dice of subsets a and b left and the seat to move. In place."""
    for n in range(len(hands)):
        state = states[n]
        for whose in range(2):
            left = 0
            for i in range(hands.shape[2]):
                if (a if whose == 0 else b) >> i & 1:
                    state["hands"][whose, left] = hands[n, whose, i]
                    left += 1
            for i in range(left, MAX_HAND):
                state["hands"][whose, i] = GONE
            state["left"] = left
        state["committed"] = NONE if seat == 0 else 0  # hidden from seat 1, so any die will do
        state["seat"] = seat
        state["draws"] = 1


def _policy(variant: Variant, agent: Any, hands: np.ndarray, seat: int, streams: np.ndarray) -> np.ndarray:
    """The agent's probabilities at every position of the draws, (n, subsets, subsets, MAX_HAND) float64."""
    n, _, size = hands.shape
    out = np.zeros((n, 1 << size, 1 << size, MAX_HAND))
    states = np.zeros(n, variant.game.state)
    for a, b in _pairs(size):
        _positions(hands, a, b, seat, states)
        turn = Turn(variant, states, np.arange(n), streams)
        out[:, a, b, : variant.facts.num_actions] = ask_probabilities(agent, turn)
    return out


@kernel
def _respond(hands, policy, seat, out, against_uniform, replies):
    """For each draw, write the value of the policy to its seat against the best response (`out`) and against a uniformly
    random opponent, and the responder's expected gain with each first die (`replies`). In place."""
    work = _new_work()
    size = hands.shape[2]
    full = (1 << size) - 1
    for n in range(len(hands)):
        _compare(hands[n], size, work)
        for a in range(1, 1 << size):
            for b in range(1, 1 << size):
                count = _SIZE_OF[a]
                if count != _SIZE_OF[b]:
                    continue
                for quantity in range(2):
                    values = work.values[quantity]
                    _set_payoff(size, a, b, values, work)
                    worst = 2.0
                    mean = 0.0
                    for j in range(count):  # the responder's die
                        kept = 0.0
                        for i in range(count):
                            won = work.payoff[i, j] if seat == 0 else -work.payoff[j, i]
                            kept += policy[n, a, b, i] * won
                        worst = min(worst, kept)
                        mean += kept / count
                        if quantity == 0 and a == full and b == full:
                            replies[n, j] = -kept
                    own = worst if quantity == 0 else mean
                    values[a, b] = own if seat == 0 else -own
        sign = 1 if seat == 0 else -1
        out[n] = sign * work.values[0, full, full]
        against_uniform[n] = sign * work.values[1, full, full]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """An agent measured on draws exactly, without rolling dice. Arrays are (draws, 2): the agent in either seat.

    Attributes:
        gain: expected edge of the agent's first choice (see `edges`).
        best_gain: edge of the best first choice.
        against_random: wins minus losses against a uniformly random opponent.
        kept: wins minus losses against the best response to the agent.
    """

    gain: np.ndarray
    best_gain: np.ndarray
    against_random: np.ndarray
    kept: np.ndarray

    @classmethod
    def of_all(cls, parts: list[Evaluation]) -> Evaluation:
        """Evaluations of one agent on several sets of draws, as one."""
        fields = [field.name for field in dataclasses.fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))

    def edge_share(self) -> tuple[float, float]:
        """Share of the edge captured, and the half-width of its 95 % interval over draws."""
        return ratio(self.gain.sum(axis=1), self.best_gain.sum(axis=1))

    def exploitability(self) -> tuple[float, float]:
        """What the best response wins per draw, mean of both seats, and the half-width of its 95 % interval over draws.

        An agent with random answers, such as a search, states another policy each time it is asked. Its true policy is
        their mean. A best response to the mean wins at most the mean of what best responses to the single policies win,
        so for such an agent this is an upper bound.
        """
        lost = -self.kept.mean(axis=1)
        return float(lost.mean()), float(Z95 * lost.std() / np.sqrt(len(lost)))

    def margin(self) -> tuple[float, float]:
        """Wins minus losses per draw against a random opponent, and the half-width of its 95 % interval over draws."""
        won = self.against_random.mean(axis=1)
        return float(won.mean()), float(Z95 * won.std() / np.sqrt(len(won)))


def ratio(parts: np.ndarray, wholes: np.ndarray) -> tuple[float, float]:
    """sum(parts) / sum(wholes), and the half-width of its 95 % interval (delta method, independent pairs)."""
    whole = float(wholes.sum())
    if whole == 0:
        return 0.0, 0.0
    share = float(parts.sum()) / whole
    residuals = parts - share * wholes
    return share, float(Z95 * np.sqrt((residuals**2).sum()) / whole)


def evaluate(variant: Variant, agent: Any, hands: np.ndarray, seed: int) -> Evaluation:
    """Measure an agent on draws (n, 2, hand_size), rows of FACES, from its `probabilities` at every position.

    Raises:
        AgentError: the agent states no probabilities, or invalid ones.
    """
    n, _, size = hands.shape
    gain, best_gain, against_random, kept = (np.zeros((n, 2)) for _ in range(4))
    full = (1 << size) - 1
    for seat in range(2):
        streams = new_streams(np.random.SeedSequence([seed, seat]), n)
        policy = _policy(variant, agent, hands, seat, streams)
        own = edges(hands[:, ::-1] if seat else hands, np.full(n, size))
        gain[:, seat] = (own * policy[:, full, full]).sum(axis=1)
        best_gain[:, seat] = own[:, :size].max(axis=1)
        _respond(hands, policy, seat, kept[:, seat], against_random[:, seat], np.zeros((n, MAX_HAND)))
    return Evaluation(gain, best_gain, against_random, kept)


def first_choices(variant: Variant, agent: Any, hands: np.ndarray, seed: int) -> tuple[float, float]:
    """Share of the edge that the agent's first choices capture on draws (n, 2, hand_size) of FACES' rows, in either
    seat, and the half-width of its 95 % interval over draws. Asks at far fewer positions than `evaluate`."""
    n, _, size = hands.shape
    gain, best_gain = np.zeros(n), np.zeros(n)
    full = (1 << size) - 1
    for seat in range(2):
        states = np.zeros(n, variant.game.state)
        _positions(hands, full, full, seat, states)
        turn = Turn(variant, states, np.arange(n), new_streams(np.random.SeedSequence([seed, seat]), n))
        own = edges(hands[:, ::-1] if seat else hands, np.full(n, size))[:, :size]
        gain += (own * ask_probabilities(agent, turn)).sum(axis=1)
        best_gain += own.max(axis=1)
    return ratio(gain, best_gain)


# --- choices in a position ----------------------------------------------------------------------------------------


@kernel
def _nash_policies(states, out):
    work = _new_work()
    for n in range(len(states)):
        state = states[n]
        size = np.int64(state["left"])
        _nash(state["hands"], size, work)
        for i in range(size):
            out[n, i] = work.first[i] if state["seat"] == 0 else work.second[i]


def nash_strategies(states: np.ndarray, num_actions: int) -> np.ndarray:
    """An optimal mixed strategy of the seat to move in each state, (n, num_actions) float64."""
    out = np.zeros((len(states), num_actions))
    _nash_policies(states, out)
    return out


@kernel
def _against_nash(states, values, mix):
    """Write what each die of the seat to move in states[0] wins against the other's optimal strategy, and its own. In place."""
    work = _new_work()
    state = states[0]
    size = np.int64(state["left"])
    _nash(state["hands"], size, work)
    for k in range(size):
        values[k] = 0.0
        for other in range(size):
            if state["seat"] == 0:
                values[k] += work.payoff[k, other] * work.second[other]
            else:
                values[k] -= work.payoff[other, k] * work.first[other]
        mix[k] = work.first[k] if state["seat"] == 0 else work.second[k]


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """What each die wins against the other's optimal mix, given optimal choices after a tie. See
    `dice_envs.exact.GameActionValues`."""
    values, mix = np.full(variant.facts.num_actions, np.nan), np.zeros(variant.facts.num_actions)
    _against_nash(np.array([state]), values, mix)
    return ActionValues(values, UNIT, "against optimal play; a scratch counts 0", mix)


def replies(variant: Variant, agent: Any, hands: np.ndarray, seat: int, streams: np.ndarray) -> np.ndarray:
    """Expected wins minus losses of each die against an agent, (n, MAX_HAND) float64; −2 beyond the hand.

    Args:
        variant: the game.
        agent: sits at `seat` and states its probabilities.
        hands: (n, 2, size) rows of FACES.
        seat: the agent's; the other seat replies.
        streams: (n,) the agent's random streams, modified in place.
    """
    policy = _policy(variant, agent, hands, seat, streams)
    out = np.full((len(hands), MAX_HAND), -2.0)
    _respond(hands, policy, seat, np.zeros(len(hands)), np.zeros(len(hands)), out)
    return out


# --- the measure --------------------------------------------------------------------------------------------------

MOST_WHOLE = 25_000  # all draws of a bag are measured if there are at most this many, each order of a hand's dice counted
SAMPLE = 2_000  # draws from larger bags
DRAWS_AT_ONCE = 2_000
ANSWERS = 8  # for each position, of an agent whose answers are random
ONE_IN, FEW = 40, 50  # such an agent is measured repeatedly, so each time on 1 draw in 40 of a sample, and at least on 50
UNIT = "wins minus losses per draw"


@dataclasses.dataclass(frozen=True)
class _Averaged:
    """An agent's mean policy, estimated from ANSWERS of its answers."""

    agent: Any

    def probabilities(self, turn: Turn) -> np.ndarray:
        again = (Turn(turn.variant, turn._true_states, turn._index, turn.streams) for _ in range(ANSWERS))
        return np.mean([ask_probabilities(self.agent, each) for each in again], axis=0)


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Exploitability, share of the edge, margin against a random player. See `dice_envs.exact.GameMeasure`.

    The game is zero-sum and fair before the dice are drawn, so exploitability is what a best response wins, mean of
    both seats. All draws are measured if there are at most MOST_WHOLE (and no smaller sample is asked for), otherwise a
    random sample. A slow agent takes long, because it is asked at every position of every draw.

    The share of the edge treats all choices but the first as random (see `edges`). The best response to a random
    player plans for its own choices after a tie, so it captures slightly less than the whole edge.

    If an agent's answers are random, its policy is estimated by the mean of a few of them. A best response to this
    estimate wins slightly more than could be won from the agent.

    Raises:
        ValueError: the sample is too small to have an error.
    """
    if effort.sample == 1:
        raise ValueError("sample must be at least 2 draws, not 1: a single draw has no error")
    hands, whole = _hands_to_measure(variant, effort)
    few = min(len(hands), max(FEW, (effort.sample or SAMPLE) // ONE_IN))
    parts = [evaluate(variant, agent, hands[:few], effort.seed)]
    remark = ""
    is_random = getattr(agent, "is_random", False)
    if is_random:
        whole = whole and few == len(hands)
        hands = hands[:few]
        parts = [evaluate(variant, _Averaged(agent), hands, effort.seed)]
        remark = f"; an upper bound, from the mean of {ANSWERS} random answers at each position"
    effort.done(few, len(hands))
    for start in range(few, len(hands), DRAWS_AT_ONCE):
        some = hands[start : start + DRAWS_AT_ONCE]
        parts.append(evaluate(variant, agent, some, effort.seed))
        effort.done(len(some), len(hands))
    found = Evaluation.of_all(parts)
    most, _ = evaluate(variant, Uniform(), hands, effort.seed).exploitability()  # what the best response to random play wins
    draws = f"{'all' if whole else 'a random sample of'} {len(hands):,} draws"

    def measurement(name: str, measured: tuple[float, float], optimum: float, unit: str, note: str) -> Measurement:
        value, error = measured
        error = 0.0 if whole or is_random else error  # for random answers the error comes from repeats
        return Measurement(name, value, optimum, abs(optimum - value), error, unit, note)

    lost, share, margin = found.exploitability(), found.edge_share(), found.margin()
    if not found.best_gain.any():
        share = 1.0, 0.0  # all dice are equally good
    return [
        measurement("exploitability", lost, 0.0, UNIT, f"{draws}, in which a scratch counts 0{remark}"),
        measurement("edge share", share, 1.0, "share", f"{draws}: first choices, when all others are random"),
        measurement("margin against random", margin, most, UNIT, draws),
    ]


def _hands_to_measure(variant: Variant, effort: Effort) -> tuple[np.ndarray, bool]:
    """Draws in random order, (n, 2, hand_size) int16 rows of FACES, and whether they are all that can be drawn."""
    bag, size = variant.params.bag, variant.params.hand_size
    draws = math.perm(len(bag), 2 * size)
    if draws > min(MOST_WHOLE, effort.sample or MOST_WHOLE):
        return draw_hands(variant, effort.sample or SAMPLE, effort.seed), False
    hands = np.array(list(itertools.permutations(bag.tolist(), 2 * size)), np.int16).reshape(draws, 2, size)
    return np.random.default_rng(effort.seed).permutation(hands), True
