"""Exact best responses in Liar's Dice: one round between two players.

A round is a tree of public nodes, one for each sequence of bids. Hands stay hidden, so a node holds vectors over a
seat's hands; a hand is how many dice show each face, weighted with its multinomial probability. The seats' dice are
independent, so what a call is worth to a hand follows from the other seat's reach, summed by the number of its dice
that match the bid.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Turn, ask_probabilities
from dice_envs.dice import new_streams
from dice_envs.exact import Effort, Measurement
from dice_envs.game import Variant
from dice_envs.games.liars_dice import MAX_FACES, NO_BID, count_raises, face_of, matching, nth_raise, play, quantity_of
from dice_envs.kernel import kernel

__all__ = ["MOST_INFORMATION_SETS", "Policy", "Responder", "Round", "exploitability", "measure", "policy_of", "rounds_of"]

MOST_INFORMATION_SETS = 25_000_000  # of one round, both seats together: four dice each; asking at more takes too long
ROWS_AT_ONCE = 16_384  # information sets at which an agent is asked in one call


class Round(NamedTuple):
    """The public tree of one round, parents before their children, the children of a node side by side.

    Node 0 is the empty history. Pairs hold seat 0's part and seat 1's.
    """

    starter: int
    bid: np.ndarray  # (nodes,) int64: the last bid, or NO_BID
    mover: np.ndarray  # (nodes,) int64: the seat to move
    parent: np.ndarray  # (nodes,) int64; −1 for node 0
    first_child: np.ndarray  # (nodes,) int64
    num_children: np.ndarray  # (nodes,) int64: one for each legal bid, in rising order
    hands: tuple[np.ndarray, np.ndarray]  # (hands, MAX_FACES) int8: how many dice show each face
    chances: tuple[np.ndarray, np.ndarray]  # (hands,) float64
    matches: tuple[np.ndarray, np.ndarray]  # (hands, faces) int64: dice that match a bid on the face

    def information_sets(self, seat: int) -> int:
        """At how many pairs of a node and a hand the seat is to move."""
        return int((self.mover == seat).sum()) * len(self.hands[seat])


class Policy(NamedTuple):
    """What one seat does in a round, by node and by its own hand, (nodes, hands) float64."""

    bids: np.ndarray  # the probability of the bid that leads to the node, at its parent; 1 where that is not its move
    calls: np.ndarray  # the probability of a call at the node; 0 where it is not its move


@kernel
def _raises(params, state, bid, out):
    """Write the legal bids after `bid`; returns how many. The state and `out` are modified in place."""
    state["bid"] = bid
    count = count_raises(params, state)
    for k in range(count):
        out[k] = nth_raise(params, state, k)
    return count


def _dealt(variant: Variant, starter: int) -> np.ndarray:
    """One state in which the round has just been dealt."""
    state = np.zeros(1, variant.game.state)
    variant.kernels.deal(variant.params, state, np.zeros(1, np.int64))
    state["seat"] = state["starter"] = starter
    return state


def _all_hands(variant: Variant, dice: int) -> tuple[np.ndarray, np.ndarray]:
    faces = variant.params.num_faces
    thrown = list(itertools.combinations_with_replacement(range(faces), dice))
    hands = np.array([[throw.count(face) for face in range(MAX_FACES)] for throw in thrown], np.int8)
    ways = [math.factorial(dice) / math.prod(map(math.factorial, hand.tolist())) for hand in hands]
    return hands, np.array(ways) / faces**dice


@kernel
def _match_all(params, hands, out):
    for i in range(len(hands)):
        for face in range(params.num_faces):
            out[i, face] = matching(params, hands[i], face)


@functools.lru_cache(maxsize=4)
def rounds_of(variant: Variant) -> tuple[Round, ...]:
    """The rounds that a game of one round can be: one for each seat that may begin.

    Raises:
        ValueError: the game is not one round between two players for a win, or it has too many information sets.
    """
    options = variant.options
    if options.num_players != 2:
        raise ValueError(
            f"num_players must be 2 for an exact measure, not {options.num_players}: with more players a best response "
            "wins from what the others let it have, and no value of the game tells how much of that is the agent's fault"
        )
    if options.reward != "win":
        raise ValueError(f"reward must be 'win' for an exact measure, not {options.reward!r}, which is not zero-sum")
    if options.rounds != "single" and max(options.dice_per_seat) > 1:
        raise ValueError("rounds must be 'single' for an exact measure with more than one die each, not 'elimination'")
    return tuple(_round(variant, starter) for starter in ((0, 1) if options.starter == "random" else (0,)))


def _round(variant: Variant, starter: int) -> Round:
    params, state = variant.params, _dealt(variant, starter)[0]
    raises = np.empty(params.num_actions, np.int64)
    after: dict[int, np.ndarray] = {
        bid: raises[: _raises(params, state, bid, raises)].copy() for bid in range(NO_BID, params.call)
    }
    nodes = dict.fromkeys(after, 1)
    for bid in reversed(after):
        nodes[bid] = 1 + sum(nodes[higher] for higher in after[bid].tolist())
    dealt = [_all_hands(variant, dice) for dice in variant.options.dice_per_seat]
    sets = nodes[NO_BID] * max(len(hands) for hands, _ in dealt)
    if sets > MOST_INFORMATION_SETS:
        raise ValueError(
            f"num_dice={variant.options.num_dice!r} with num_faces={params.num_faces} makes a round of about {sets:,} "
            f"information sets; an exact measure takes {MOST_INFORMATION_SETS:,} at most"
        )
    size = nodes[NO_BID]
    bid, parent = np.full(size, NO_BID, np.int64), np.full(size, -1, np.int64)
    first, count = np.zeros(size, np.int64), np.zeros(size, np.int64)
    mover = np.full(size, starter, np.int64)
    made = 1
    for node in range(size):
        higher = after[bid[node]]
        first[node], count[node] = made, len(higher)
        children = slice(made, made + len(higher))
        bid[children], parent[children], mover[children] = higher, node, 1 - mover[node]
        made += len(higher)
    matches = []
    for hands, _ in dealt:
        matches.append(np.zeros((len(hands), params.num_faces), np.int64))
        _match_all(params, hands, matches[-1])
    (hands_0, chances_0), (hands_1, chances_1) = dealt
    return Round(starter, bid, mover, parent, first, count, (hands_0, hands_1), (chances_0, chances_1), tuple(matches))  # type: ignore[arg-type]


# --- policies -----------------------------------------------------------------------------------------------------


@kernel
def _positions(params, dealt, bid, parent, hands, nodes, which, states):
    """Set states[i] to node nodes[i], its mover holding hand which[i]. In place."""
    path = np.empty(len(dealt[0]["bids"]), np.int64)
    for i in range(len(nodes)):
        state = states[i]
        states[i] = dealt[0]
        length = 0
        node = nodes[i]
        while parent[node] >= 0:
            path[length] = bid[node]
            length += 1
            node = parent[node]
        for k in range(length):
            play(params, state, path[length - 1 - k])
        for seat in range(2):  # the other seat's hand is drawn again for whoever looks
            for face in range(MAX_FACES):
                state["counts"][seat, face] = 0
        for face in range(MAX_FACES):
            state["counts"][state["seat"], face] = hands[which[i], face]


@kernel
def _spread(call, bid, first, count, nodes, which, chances, bids, calls):
    """Write the probabilities of each action to where they lead. The last two are modified in place."""
    for i in range(len(nodes)):
        node = nodes[i]
        calls[node, which[i]] = chances[i, call]
        for child in range(first[node], first[node] + count[node]):
            bids[child, which[i]] = chances[i, bid[child]]


def policy_of(
    variant: Variant, played: Round, seat: int, agent: Any, seed: int = 0, done: Callable[[int], Any] = lambda amount: None
) -> Policy:
    """The policy of an agent that states its probabilities, asked once at every information set of the seat.

    Args:
        variant: the game.
        played: a round of it.
        seat: the agent's.
        agent: see `dice_envs.agent.ask_probabilities`.
        seed: of the agent's own random stream.
        done: told how many information sets have been asked for, as they are.

    Raises:
        AgentError: the agent's probabilities are no distribution over the legal actions.
    """
    mine = np.flatnonzero(played.mover == seat)
    hands = len(played.hands[seat])
    policy = Policy(np.ones((len(played.bid), hands)), np.zeros((len(played.bid), hands)))
    dealt = _dealt(variant, played.starter)
    # One hand's opposite must not be empty: whoever looks at the position counts the dice of both.
    streams = new_streams(seed, min(ROWS_AT_ONCE, len(mine) * hands))
    for start in range(0, len(mine) * hands, ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, len(mine) * hands))
        nodes, which = mine[rows // hands], rows % hands
        states = np.zeros(len(rows), variant.game.state)
        _positions(variant.params, dealt, played.bid, played.parent, played.hands[seat], nodes, which, states)
        chances = ask_probabilities(agent, Turn(variant, states, np.arange(len(rows)), streams[: len(rows)]))
        _spread(variant.params.call, played.bid, played.first_child, played.num_children, nodes, which, chances, *policy)
        done(len(rows))
    return policy


# --- best responses -------------------------------------------------------------------------------------------------

CALLS = -1  # value of a response where it calls; else it is the node that its bid leads to


@kernel
def _reach(mover, first, count, responder, chances, bids, reach):
    """Write how likely the other seat holds each hand and bids as the history says, (nodes, hands). In place."""
    reach[0] = chances
    for node in range(len(mover)):
        for child in range(first[node], first[node] + count[node]):
            for hand in range(reach.shape[1]):
                reach[child, hand] = reach[node, hand] * (1.0 if mover[node] == responder else bids[child, hand])


@kernel
def _call_values(params, bid, mine, weights, own, other, matched, value):
    """Write what a call of `bid` is worth to each own hand. `matched` is scratch. Both modified in place.

    `weights` (other's hands,) is the other's reach; `own` and `other` are matches (hands, faces).
    """
    quantity = quantity_of(params, bid) + 1
    face = face_of(params, bid)
    matched[:] = 0.0
    for hand in range(len(other)):
        matched[other[hand, face]] += weights[hand]
    for k in range(len(matched) - 2, -1, -1):
        matched[k] += matched[k + 1]
    for hand in range(len(own)):
        holds = matched[max(0, quantity - own[hand, face])]
        value[hand] = matched[0] - 2.0 * holds if mine else 2.0 * holds - matched[0]  # the caller wins if the bid fails


@kernel
def _respond(params, bid, mover, first, count, responder, own, other, calls, reach, choose, response, values):
    """Write the responder's counterfactual values (nodes, own hands), in place.

    With `choose` its best response is found and written into `response` (nodes, own hands), in place; else that one is
    played. `own` and `other` are matches (hands, faces).
    """
    matched = np.empty(params.num_actions + 1)  # a hand has fewer dice than the game has actions
    weights = np.empty(len(other))
    called = np.empty(len(own))
    for node in range(len(bid) - 1, -1, -1):
        mine = mover[node] == responder
        value = values[node]
        value[:] = -np.inf if mine and choose else 0.0
        if bid[node] != NO_BID:
            for hand in range(len(other)):
                weights[hand] = reach[node, hand] * (1.0 if mine else calls[node, hand])
            _call_values(params, bid[node], mine, weights, own, other, matched, called)
            for hand in range(len(own)):
                if not mine or choose or response[node, hand] == CALLS:
                    value[hand] = called[hand]
                    response[node, hand] = CALLS
        for child in range(first[node], first[node] + count[node]):
            for hand in range(len(own)):
                later = values[child, hand]
                if not mine:
                    value[hand] += later
                elif choose and later > value[hand]:
                    value[hand] = later
                    response[node, hand] = child
                elif not choose and response[node, hand] == child:
                    value[hand] = later


class Responder:
    """A best response of one seat to a policy of the other in a round.

    Attributes:
        value: what it wins from that policy, between −1 and 1.
        choice: (nodes, own hands) int32, CALLS or the node that the bid leads to; means nothing where it is not to move.
    """

    def __init__(self, variant: Variant, played: Round, seat: int, policy: Policy) -> None:
        self._variant, self._played, self._seat = variant, played, seat
        self.choice = np.zeros((len(played.bid), len(played.hands[seat])), np.int32)
        self.value = self._play(policy, choose=True)

    def against(self, policy: Policy) -> float:
        """What it wins from another policy."""
        return self._play(policy, choose=False)

    def _play(self, policy: Policy, choose: bool) -> float:
        played, own, other = self._played, self._seat, 1 - self._seat
        reach = np.empty((len(played.bid), len(played.hands[other])))
        values = np.empty((len(played.bid), len(played.hands[own])))
        tree = played.bid, played.mover, played.first_child, played.num_children
        _reach(*tree[1:], own, played.chances[other], policy.bids, reach)
        matches = played.matches[own], played.matches[other]
        _respond(self._variant.params, *tree, own, *matches, policy.calls, reach, choose, self.choice, values)
        return float(values[0] @ played.chances[own])


def exploitability(variant: Variant, agent: Any, seed: int = 0) -> float:
    """What best responses win from an agent that states its probabilities, mean over the seats and who begins."""
    wins = [
        Responder(variant, played, seat, policy_of(variant, played, 1 - seat, agent, seed)).value
        for played in rounds_of(variant)
        for seat in range(2)
    ]
    return sum(wins) / len(wins)


# --- the measure --------------------------------------------------------------------------------------------------


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Exploitability, and how often a best response wins. See `dice_envs.exact.GameMeasure`.

    The game is zero-sum, so the mean over the seats of what best responses win is the mean of what they win above the
    game's value, as OpenSpiel counts exploitability (NashConv / 2).

    An agent whose answers are random is known by a sample of them. A best response to a sample wins more from it than
    could be won from the agent; the same response wins less from a second sample, on average, than the best could.
    The agent's exploitability lies between the two, and so does the interval given.

    Raises:
        ValueError: see `rounds_of`.
    """
    rounds = rounds_of(variant)
    total = sum(played.information_sets(seat) for played in rounds for seat in range(2))

    def done(amount: int) -> None:
        effort.done(amount, total)

    most, least = np.empty((len(rounds), 2)), np.empty((len(rounds), 2))  # of the best response in each seat
    for row, played in enumerate(rounds):
        for seat in range(2):
            responder = Responder(variant, played, seat, policy_of(variant, played, 1 - seat, agent, effort.seed, done))
            most[row, seat] = least[row, seat] = responder.value
            if getattr(agent, "is_random", False):
                least[row, seat] = responder.against(policy_of(variant, played, 1 - seat, agent, effort.seed + 1))
    by_seat = (most + least).mean(axis=0) / 2
    exploitability = float(by_seat.mean())
    error = float((most - least).mean()) / 2
    sizes = f"{total:,} information sets"
    shares = ", ".join(f"{(1 + won) / 2:.6f} in seat {seat}" for seat, won in enumerate(by_seat))
    return [
        Measurement("exploitability", exploitability, 0.0, max(0.0, exploitability), error, "return", sizes),
        Measurement(
            "best response wins", (1 + exploitability) / 2, 0.5, max(0.0, exploitability / 2), error / 2, "probability", shares
        ),
    ]
