"""Exact play of FateStones: values, Nash strategies and best responses, by recursion over the dice in hand.

Here agents are measured and choices valued. `draws` has the recursion, how dice compare, and solutions of whole draws.

All dice are open, so a position is two hands. The players choose at the same time, so it is a zero-sum matrix game.
Its entry (i, j) is P(die i beats die j) − P(it loses) + P(tie) times the value of the position without the two dice.
Values are wins minus losses of seat 0 in one draw. A scratch counts 0: this is also the value of the redraw that follows
under `scratch="redraw"`, because the game is fair before the dice are drawn.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dice_envs.agent import Turn, Uniform, ask_probabilities, promises_of
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.work import advance
from dice_envs.exact.agents import Mixed, fixed, is_random
from dice_envs.exact.contract import RETURN, ActionValues, Effort, Measurement, ProfileValues, ResponseValues, Unit
from dice_envs.exact.intervals import half_width, ratio_half_width
from dice_envs.games.fatestones import GONE, MAX_HAND, NONE
from dice_envs.games.fatestones.exact.draws import SIZE_OF, compared, draw_hands, edges, nash, new_work, pairs, payoffs
from dice_envs.games.fatestones.exact.draws import solve_game as solve_game

MOST_WHOLE = 25_000  # all draws of a bag are measured if there are at most this many, each order of a hand's dice counted
SAMPLE = 2_000  # draws from larger bags
DRAWS_AT_ONCE = 2_000
ANSWERS = 4  # for each position, twice, of an agent whose answers are random
# Such an agent is measured repeatedly, so each time on 1 draw in 40 of a sample, or where none is asked for on as many as have
# 4,000 positions, and at least on 50.
ONE_IN, FEW_POSITIONS, FEW = 40, 4_000, 50
MOST_EDGE = 2 * (1 - 1 / MAX_HAND)  # of one choice: the only die that wins
UNIT = Unit("wins minus losses per draw")


# --- an agent's policy ----------------------------------------------------------------------------------------------


def _positions(hands: np.ndarray, a: int, b: int, seat: int, states: np.ndarray) -> None:
    """Set each state to hands[i] with only the dice of subsets a and b left and the seat to move. In place."""
    states["hands"] = GONE
    for whose, subset in enumerate((a, b)):
        dice = [i for i in range(hands.shape[2]) if subset >> i & 1]
        states["hands"][:, whose, : len(dice)] = hands[:, whose, dice]
    states["left"] = SIZE_OF[a]
    states["committed"] = NONE if seat == 0 else 0  # hidden from seat 1, so any die will do
    states["seat"] = seat
    states["draws"] = 1


def _policy(variant: Variant, agent: Any, hands: np.ndarray, seat: int, streams: np.ndarray) -> np.ndarray:
    """Return the agent's probabilities at every position of the draws, (n, subsets, subsets, MAX_HAND) float64."""
    n, _, size = hands.shape
    out = np.zeros((n, 1 << size, 1 << size, MAX_HAND))
    states = np.zeros(n, variant.game.state)
    for a, b, _ in pairs(size):
        _positions(hands, a, b, seat, states)
        turn = Turn(variant, states, np.arange(n), streams)
        out[:, a, b, : variant.facts.num_actions] = ask_probabilities(agent, turn)
    return out


# Recursions: the value of a policy against the best response, and against a uniformly random opponent; and the value of
# another sample of a random agent's answers against the best response to the first sample.
_BEST, _RANDOM, _AGAIN = range(3)


def _respond(hands: np.ndarray, policies: np.ndarray, seat: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what policies (samples, n, subsets, subsets, MAX_HAND) of a seat win in each draw, and what their opponent may.

    Returns:
        (3, n) float64, by _BEST, _RANDOM and _AGAIN; and (n, size), the responder's expected gain with each first die.
    """
    n, _, size = hands.shape
    draws = np.arange(n)
    margin, tie = compared(hands[:, seat], hands[:, 1 - seat])
    values = np.zeros((3, n, 1 << size, 1 << size))
    for mine, theirs, dice in pairs(size):  # the last pair is that of whole hands
        chances = policies[[0, 0, -1], :, *((mine, theirs) if seat == 0 else (theirs, mine)), : SIZE_OF[mine], None]
        kept = (chances * payoffs(mine, theirs, dice, margin, tie, values)).sum(axis=2)  # by the responder's die
        values[_BEST, :, mine, theirs] = kept[_BEST].min(axis=1)
        values[_RANDOM, :, mine, theirs] = (kept[_RANDOM] / SIZE_OF[mine]).sum(axis=1)
        values[_AGAIN, :, mine, theirs] = kept[_AGAIN, draws, kept[_BEST].argmin(axis=1)]
    return values[:, :, -1, -1], -kept[_BEST]


def _meet(hands: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return what seat 0 wins in each draw, (n,) float64, if these are the policies, (n, subsets, subsets, MAX_HAND)."""
    n, _, size = hands.shape
    margin, tie = compared(hands[:, 0], hands[:, 1])
    values = np.zeros((n, 1 << size, 1 << size))
    for mine, theirs, dice in pairs(size):
        own, other = (policy[:, mine, theirs, : SIZE_OF[mine]] for policy in (first, second))
        payoff = payoffs(mine, theirs, dice, margin, tie, values)
        values[:, mine, theirs] = np.einsum("ni,nij,nj->n", own, payoff, other)
    return values[:, -1, -1]


@dataclasses.dataclass(frozen=True)
class DrawEvaluation:
    """An agent measured on draws exactly, without rolling dice. Arrays are (draws, 2): the agent in either seat.

    Attributes:
        gain: expected edge of the agent's first choice (see `edges`).
        best_gain: edge of the best first choice.
        against_random: wins minus losses against a uniformly random opponent.
        kept: wins minus losses against the best response to the agent. Of two samples of random answers: the mean of the
            first one's and the second one's, against the best response to the first.
        spread: half of what the second sample keeps more; 0 of one.
    """

    gain: np.ndarray
    best_gain: np.ndarray
    against_random: np.ndarray
    kept: np.ndarray
    spread: np.ndarray

    @classmethod
    def of_all(cls, parts: list[DrawEvaluation]) -> DrawEvaluation:
        """Join the evaluations of one agent on several sets of draws."""
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))

    def edge_share(self) -> tuple[float, float]:
        """Return the share of the edge captured, and the half-width of its 95 % interval over draws."""
        return edge_ratio(self.gain.sum(axis=1), self.best_gain.sum(axis=1))

    def exploitability(self) -> tuple[float, float]:
        """Return what the best response wins per draw, mean of both seats, and the half-width of its 95 % interval over draws.

        An agent with random answers, such as a search, states another policy each time it is asked; its true policy is
        their mean. A best response to a sample wins more from it than from the agent, and less from another sample.
        """
        lost = -self.kept.mean(axis=1)
        return float(lost.mean()), half_width(lost, -1.0, 1.0)

    def margin(self) -> tuple[float, float]:
        """Return wins minus losses per draw against a random opponent, and the half-width of its 95 % interval over draws."""
        won = self.against_random.mean(axis=1)
        return float(won.mean()), half_width(won, -1.0, 1.0)


def edge_ratio(gained: np.ndarray, most: np.ndarray) -> tuple[float, float]:
    """Return the share of the edge that first choices capture, and the half-width of its 95 % interval over draws.

    Args:
        gained, most: (n,) float64, the edge of each choice and that of the best one (see `edges`); or sums over both seats.
    """
    whole = float(most.sum())
    return (float(gained.sum()) / whole, ratio_half_width(gained, most, 2 * MOST_EDGE)) if whole > 0 else (0.0, 0.0)


def evaluate(variant: Variant, agent: Any, hands: np.ndarray, seed: int, samples: int = 1) -> DrawEvaluation:
    """Measure an agent on draws (n, 2, hand_size), rows of FACES, from its `probabilities` at every position.

    With two samples it is asked twice everywhere, since its answers are random. See `DrawEvaluation.kept`.

    Raises:
        AgentError: the agent states no probabilities, or invalid ones.
    """
    n, _, size = hands.shape
    gain, best_gain, against_random, kept, spread = (np.zeros((n, 2)) for _ in range(5))
    full = (1 << size) - 1
    for seat in range(2):
        streams = new_streams(np.random.SeedSequence(seed, spawn_key=(seat,)), n)
        policies = np.stack([_policy(variant, agent, hands, seat, streams) for _ in range(samples)])
        own = edges(hands[:, ::-1] if seat else hands, np.full(n, size))
        gain[:, seat] = (own * policies[0, :, full, full]).sum(axis=1)
        best_gain[:, seat] = own[:, :size].max(axis=1)
        (best, against_random[:, seat], again), _ = _respond(hands, policies, seat)
        kept[:, seat], spread[:, seat] = (best + again) / 2, (again - best) / 2
    return DrawEvaluation(gain, best_gain, against_random, kept, spread)


def first_choices(variant: Variant, agent: Any, hands: np.ndarray, seed: int) -> tuple[float, float]:
    """Return the share of the edge that the agent's first choices capture, and the half-width of its 95 % interval over draws.

    Both seats of draws (n, 2, hand_size), rows of FACES. Asks at far fewer positions than `evaluate`.
    """
    n, _, size = hands.shape
    gain, best_gain = np.zeros(n), np.zeros(n)
    full = (1 << size) - 1
    for seat in range(2):
        states = np.zeros(n, variant.game.state)
        _positions(hands, full, full, seat, states)
        turn = Turn(variant, states, np.arange(n), new_streams(np.random.SeedSequence(seed, spawn_key=(seat,)), n))
        own = edges(hands[:, ::-1] if seat else hands, np.full(n, size))[:, :size]
        gain += (own * ask_probabilities(agent, turn)).sum(axis=1)
        best_gain += own.max(axis=1)
    return edge_ratio(gain, best_gain)


def replies(variant: Variant, agent: Any, hands: np.ndarray, seat: int, streams: np.ndarray) -> np.ndarray:
    """Return the expected wins minus losses of each die against an agent, (n, MAX_HAND) float64; −2 beyond the hand.

    Args:
        variant: the game.
        agent: sits at `seat` and states its probabilities.
        hands: (n, 2, size) rows of FACES.
        seat: the agent's; the other seat replies.
        streams: (n,) the agent's random streams, modified in place.
    """
    policies = _policy(variant, agent, hands, seat, streams)[None]
    out = np.full((len(hands), MAX_HAND), -2.0)
    out[:, : hands.shape[2]] = _respond(hands, policies, seat)[1]
    return out


# --- the measure --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Averaged:
    """An agent's mean policy, estimated from at least ANSWERS of its answers."""

    agent: Any

    def probabilities(self, turn: Turn) -> np.ndarray:
        again = (
            Turn(turn.variant, turn._true_states, turn._index, turn.streams) for _ in range(-(-ANSWERS // self.agent.questions))
        )
        return np.mean([ask_probabilities(self.agent, each) for each in again], axis=0)


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure exploitability, share of the edge, and margin against a random player. See `dice_envs.exact.GameExact.measure`.

    The game is zero-sum and fair before the dice are drawn, so exploitability is what a best response wins, mean of
    both seats. All draws are measured if there are at most MOST_WHOLE (and no smaller sample is asked for), otherwise a
    random sample. The agent is asked at every position of every draw.

    The share of the edge treats all choices but the first as random (see `edges`). The best response to a random
    player plans for its own choices after a tie, so it captures slightly less than the whole edge.

    The policy of an agent with random answers is estimated by the mean of a few of them, twice. A best response to the first
    estimate wins more from it than can be won from the agent, and less from the second one, on average. The middle is reported.

    Raises:
        ValueError: the sample is too small to have an error.
    """
    hands, whole = _hands_to_measure(variant, effort)
    varies = is_random(agent)
    if varies:
        few = effort.sample // ONE_IN if effort.sample else FEW_POSITIONS // len(list(pairs(variant.options.hand_size)))
        whole, hands = whole and len(hands) <= max(few, FEW), hands[: max(few, FEW)]
    parts = []
    for start in range(0, len(hands), DRAWS_AT_ONCE):
        some = hands[start : start + DRAWS_AT_ONCE]
        parts.append(evaluate(variant, _Averaged(agent) if varies else agent, some, effort.seed, 2 if varies else 1))
        advance(len(some), len(hands))
    found = DrawEvaluation.of_all(parts)
    most, _ = evaluate(variant, Uniform(), hands, effort.seed).exploitability()  # what the best response to random play wins
    draws = _said(hands, whole)
    if varies and not whole:
        draws += f" (sample={4 * ONE_IN * len(hands)} takes {4 * len(hands):,})"

    def measurement(
        name: str, measured: tuple[float, float], optimum: float, unit: str, note: str, decisions: int, spread: float = 0.0
    ) -> Measurement:
        value, error = measured
        error = 0.0 if whole or varies else error  # for random answers the error comes from repeats
        return Measurement(name, value, optimum, abs(optimum - value), error + spread, unit, note, 2.0 * decisions)

    lost, share, margin = found.exploitability(), found.edge_share(), found.margin()
    size, spread = variant.options.hand_size, float(found.spread.mean())
    if not found.best_gain.any():
        share = 1.0, 0.0  # all dice are equally good
    return [
        measurement("exploitability", lost, 0.0, UNIT, f"{draws}, in which a scratch counts 0", size, spread),
        measurement("edge share", share, 1.0, "share", f"{draws}: first choices, when all others are random", 1),
        measurement("margin against random", margin, most, UNIT, draws, size),
    ]


def _hands_to_measure(variant: Variant, effort: Effort) -> tuple[np.ndarray, bool]:
    """Return draws in random order, (n, 2, hand_size) int16 rows of FACES, and whether they are all that can be drawn.
    ValueError for a sample of one."""
    if effort.sample == 1:
        raise ValueError("sample must be at least 2 draws, not 1: a single draw has no error")
    bag, size = variant.params.bag, variant.params.hand_size
    draws = math.perm(len(bag), 2 * size)
    if draws > min(MOST_WHOLE, effort.sample or MOST_WHOLE):
        return draw_hands(variant, effort.sample or SAMPLE, effort.seed), False
    hands = np.array(list(itertools.permutations(bag.tolist(), 2 * size)), np.int16).reshape(draws, 2, size)
    return np.random.default_rng(effort.seed).permutation(hands), True


def _said(hands: np.ndarray, whole: bool) -> str:
    return f"{'all' if whole else 'a random sample of'} {len(hands):,} draws"


def measure_profile(variant: Variant, agents: Sequence[Any], effort: Effort) -> ProfileValues:
    """Return what the agents of a profile win, and what best responses do. See `dice_envs.exact.GameExact.measure_profile`.

    Looks at the same draws as `measure`.

    Raises:
        ValueError: the sample is too small to have an error, or the probabilities of an agent are not fixed.
    """
    if any(isinstance(each, Mixed) for each in agents):
        raise ValueError("a mixture cannot be in a profile of FateStones: its opponent learns in a draw which agent it faces")
    hands, whole = _hands_to_measure(variant, effort)
    found = []
    with fixed(variant, agents, "an exact result of a profile is known for agents"):
        for start in range(0, len(hands), DRAWS_AT_ONCE):
            some = hands[start : start + DRAWS_AT_ONCE]
            streams = [new_streams(np.random.SeedSequence(effort.seed, spawn_key=(seat,)), len(some)) for seat in range(2)]
            first, second = (_policy(variant, agents[seat], some, seat, streams[seat]) for seat in range(2))
            won = _meet(some, first, second)
            best = [-_respond(some, policies[None], seat)[0][_BEST] for seat, policies in ((1, second), (0, first))]
            found.append((np.stack([won, -won], axis=1), np.stack(best, axis=1)))
            advance(len(some), len(hands))
    plays, responds = map(np.concatenate, zip(*found, strict=True))
    note = f"{_said(hands, whole)}, in which a scratch counts 0"
    return ProfileValues(plays, responds, UNIT, None if whole else 2.0, note)


# --- values of choices ----------------------------------------------------------------------------------------------


@kernel
def _against_nash(states, changed, values, mix):
    """Write what each die of the seat to move wins against the other's optimal strategy, and its own strategy.

    NaN and 0 beyond the hand, whose dice are at most the length of a row. `changed` (n,) says whether a state has other
    hands than the one before it. In place.
    """
    work = new_work()
    values[:] = np.nan
    mix[:] = 0.0
    for n in range(len(states)):
        state = states[n]
        size = np.int64(state["left"])
        if changed[n]:  # else `work` still holds these hands
            nash(state["hands"], size, work)
        for k in range(size):
            values[n, k] = 0.0
            for other in range(size):
                if state["seat"] == 0:
                    values[n, k] += work.payoff[k, other] * work.second[other]
                else:
                    values[n, k] -= work.payoff[other, k] * work.first[other]
            mix[n, k] = work.first[k] if state["seat"] == 0 else work.second[k]


def _values(states: np.ndarray, num_actions: int) -> tuple[np.ndarray, np.ndarray]:
    values, mix = np.empty((len(states), num_actions)), np.empty((len(states), num_actions))
    changed = np.ones(len(states), np.bool_)
    changed[1:] = (states["hands"][1:] != states["hands"][:-1]).any(axis=(1, 2))
    _against_nash(states, changed, values, mix)
    return values, mix


def nash_strategies(states: np.ndarray, num_actions: int) -> np.ndarray:
    """Return an optimal mixed strategy of the seat to move in each state, (n, num_actions) float64."""
    return _values(states, num_actions)[1]


def action_values(variant: Variant, state: Any) -> ActionValues:
    """Return what each die wins against the other's optimal mix, given optimal choices after a tie.

    See `dice_envs.exact.GameExact.action_values`.
    """
    (values,), (mix,) = _values(np.array([state]), variant.facts.num_actions)
    return ActionValues(values, UNIT, "against optimal play; a scratch is a tie", mix)


def response_values(variant: Variant, opponent: Any) -> ResponseValues:
    """Return the values of choices against the agent `nash`. See `dice_envs.exact.GameExact.response_values`.

    A best response to an equilibrium wins the value of every position, no more. The game is fair before the dice are drawn:
    both seats draw from one bag and choose at the same time. So its value is 0, and so is that of another draw after a scratch.

    Raises:
        ValueError: another opponent.
    """
    if promises_of(opponent).strategy != "equilibrium":
        raise ValueError(
            f"opponent must be nash for the values of choices, not {opponent.name}: what a best response to another wins "
            "before the dice are drawn is not known, since there are too many draws"
        )
    note = "against optimal play, with optimal choices after a tie"
    return ResponseValues(RETURN, note, lambda seat: 0.0, lambda states: _values(states, variant.facts.num_actions)[0])


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return a heading for decisions: the dice left in each hand. See `dice_envs.exact.GameExact.situations`."""
    dice = np.array(["", "1 die each", *(f"{count} dice each" for count in range(2, MAX_HAND + 1))])
    return {"dice left": dice[states["left"]]}
