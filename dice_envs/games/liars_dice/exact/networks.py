"""A policy network as a player of a round of Liar's Dice, asked at all hands of many nodes at once.

The answers are those of `sources.AgentSource` up to float32 rounding, several times as fast, because of what the positions have
in common:

- An entry of the observation depends on the node, or on the last bid and the hand. The first layer's sums x + y are therefore
  found in two parts, once for each node and once for each hand after each bid. From exp(2 x) and exp(2 y) the tanh of a sum
  takes one division.
- Nodes with the same last bid have the same legal actions. The last layer is computed for these alone.
- A batch's rows stay in the processor's cache from one layer to the next, and one thread computes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dice_envs.agent.kernel import HUGE, Network
from dice_envs.core.kernel import kernel
from dice_envs.core.machine import one_thread
from dice_envs.games.liars_dice.exact.moves import Asking, Source, parts_of
from dice_envs.games.liars_dice.exact.round import Round

NEGLECTED = 1e-8  # of a network's play in a round; its float32 rounding is larger
NODES_AT_ONCE = 16_384  # whose observations are made in one call
NUMBERS_AT_ONCE = 2**17  # of one layer: half a MB
LEAST_ROWS = 64  # below which a matrix product is slow

_ONE, _TWO, _HUGE, _LARGEST = np.float32(1), np.float32(2), np.float32(HUGE), np.finfo(np.float32).max
_MOST = 20.0  # exp(2 x) exp(2 y) is a float32 for x and y of up to this size


@kernel(allocates=False)
def _write_first(asking, nodes, of_node, of_hand, grown, out):
    """Write the first layer for each hand of the nodes, from the parts of its sums. In place; return the number of hands.

    It is the sums themselves or, of parts that are `grown`, exp(2 x) and exp(2 y), their tanh:
    tanh(x + y) = 1 − 2 / (1 + exp(2 x) exp(2 y)). `out` has a row for each hand.
    """
    row = 0
    for i in range(len(nodes)):
        for k in range(asking.entry_at[nodes[i]], asking.entry_at[nodes[i] + 1]):
            hand = asking.hand[k]
            if grown:
                for j in range(out.shape[1]):
                    out[row, j] = _ONE - _TWO / (_ONE + of_node[i, j] * of_hand[hand, j])
            else:
                for j in range(out.shape[1]):
                    out[row, j] = of_node[i, j] + of_hand[hand, j]
            row += 1
    return row


@kernel(allocates=False)
def _lower(logits, biases):
    """Add the biases and subtract each row's greatest logit. In place."""
    for row in range(len(logits)):
        greatest = -_LARGEST
        for action in range(len(biases)):
            logit = logits[row, action] + biases[action]
            if not abs(logit) <= _LARGEST:  # infinite or not a number: as `network.bound`
                logit = _HUGE if logit > 0 else -_HUGE
            logits[row, action] = logit
            greatest = max(greatest, logit)
        for action in range(len(biases)):
            logits[row, action] -= greatest


@kernel(allocates=False)
def _write_chances(asking, nodes, weights, raises, floor):
    """Write the chances for each hand of the nodes. In place; the first `raises` weights are of raises.

    Weights below `floor` are left out; a row's greatest is 1.
    """
    row = 0
    for i in range(len(nodes)):
        entry, base = asking.entry_at[nodes[i]], asking.raise_at[nodes[i]]
        hands = asking.entry_at[nodes[i] + 1] - entry
        for k in range(hands):
            total = 0.0
            for action in range(weights.shape[1]):
                if weights[row, action] < floor:
                    weights[row, action] = 0.0
                total += weights[row, action]
            share = 1.0 / total
            for c in range(asking.calls.shape[1]):
                for action in range(raises):
                    asking.raises[base + action * hands + k, c] = weights[row, action] * share
                asking.calls[entry + k, c] = weights[row, raises] * share if weights.shape[1] > raises else 0.0
            row += 1


class _AfterBid(NamedTuple):
    """Numbers that all nodes with the same last bid share."""

    of_hand: np.ndarray  # (hands, outputs of the first layer) float32: by how much the first layer's sums differ by the hand
    grown: np.ndarray  # exp(2 of_hand)
    small: bool  # whether no entry of `of_hand` is above _MOST in size
    actions: np.ndarray  # (actions,) int64: raises in rising order, then the call
    weights: np.ndarray  # (inputs of the last layer, actions) float32
    biases: np.ndarray  # (actions,) float32
    raises: int


class Networked(Source):
    """The probabilities of a policy network, which one of the round's players has.

    `observe` maps nodes' paths, nodes and hands to what the agent observes there: see `sources.AgentSource.observe`.
    """

    neglected = NEGLECTED

    def __init__(
        self, round_: Round, player: int, network: Network, observe: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    ) -> None:
        self._round, self._observe = round_, observe
        self._layers, self._floor = network.layers, network.floor
        self._hands = len(round_.hands[player])
        widest = max(len(biases) for _, biases in self._layers)
        self._rows = max(LEAST_ROWS, NUMBERS_AT_ONCE // widest)
        room = max(self._rows, self._hands)  # a node's hands stay together
        self._rooms = [np.empty((room, len(biases)), np.float32) for _, biases in self._layers[:-1] or self._layers]
        # Products with a matrix in rows are the faster ones.
        self._middle = [
            (np.ascontiguousarray(weights.T), biases, room)
            for (weights, biases), room in zip(self._layers[1:-1], self._rooms[1:], strict=True)
        ]
        self._after: dict[int, _AfterBid] = {}

    def write(self, asking: Asking) -> None:
        order = np.argsort(asking.slots, kind="stable")
        with one_thread(), np.errstate(over="ignore", invalid="ignore"):  # sums of finite weights may overflow
            for begin in range(0, len(order), NODES_AT_ONCE):
                nodes = order[begin : begin + NODES_AT_ONCE]
                seen = self._observe(asking.paths, nodes, np.zeros(len(nodes), np.int64))
                of_node, hands = seen @ self._layers[0][0].T, np.diff(asking.entry_at)[nodes]
                slots = np.flatnonzero(np.diff(asking.slots[nodes], prepend=-1, append=-1)).tolist()  # where each begins
                for first, last in itertools.pairwise(slots):
                    for low, high in parts_of(hands[first:last], self._rows):
                        some = slice(first + low, first + high)
                        self._answer(asking, nodes[some], of_node[some])

    def _prepare(self, asking: Asking, node: int, slot: int) -> _AfterBid:
        seen = self._observe(asking.paths, np.full(self._hands, node), np.arange(self._hands))
        to = self._round.rules.bid[self._round.rules.raises(slot)]
        actions = np.append(to, self._round.variant.params.call) if slot > 0 else to
        weights, biases = self._layers[-1]
        of_hand = (seen - seen[0]) @ self._layers[0][0].T
        return _AfterBid(
            of_hand=of_hand,
            grown=np.exp(2 * of_hand),
            small=bool(np.abs(of_hand).max() <= _MOST),
            actions=actions,
            weights=np.ascontiguousarray(weights[actions].T),
            biases=biases[actions],
            raises=len(to),
        )

    def _answer(self, asking: Asking, nodes: np.ndarray, of_node: np.ndarray) -> None:
        """Write the answers at nodes with the same last bid."""
        slot = int(asking.slots[nodes[0]])
        if slot not in self._after:
            self._after[slot] = self._prepare(asking, int(nodes[0]), slot)
        after = self._after[slot]
        if len(self._layers) == 1:
            rows = _write_first(asking, nodes, of_node, after.of_hand, False, self._rooms[0])
            logits = self._rooms[0][:rows, after.actions]
        else:
            hidden = self._first(asking, nodes, of_node, after)
            for weights, biases, room in self._middle:
                hidden = np.matmul(hidden, weights, out=room[: len(hidden)])
                np.tanh(np.add(hidden, biases, out=hidden), out=hidden)
            logits = hidden @ after.weights
        _lower(logits, after.biases)
        _write_chances(asking, nodes, np.exp(logits, out=logits), after.raises, self._floor)

    def _first(self, asking: Asking, nodes: np.ndarray, of_node: np.ndarray, after: _AfterBid) -> np.ndarray:
        """Return the first layer's outputs, (hands of all nodes, outputs)."""
        room, biases = self._rooms[0], self._layers[0][1]
        sums = of_node + biases
        if after.small and np.abs(sums).max() <= _MOST:
            return room[: _write_first(asking, nodes, np.exp(2 * sums), after.grown, True, room)]
        hidden = room[: _write_first(asking, nodes, of_node, after.of_hand, False, room)]
        return np.tanh(np.add(hidden, biases, out=hidden), out=hidden)
