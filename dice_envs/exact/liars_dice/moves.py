"""Batches of public nodes in a round of Liar's Dice, and an asked player's moves at them.

A public node is a sequence of bids. Nobody sees another's dice, so a node holds an asked player's *reach*: for each
of its hands the probability that it is dealt and makes its bids of the sequence. Hands without reach are left out, and so
is a node that an asked player never reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.round import Round, must_call

HEAVY = 4_000_000  # numbers, about, that the subtrees of one batch may take


# --- batches ------------------------------------------------------------------------------------------------------


class Reach(NamedTuple):
    """Rows of hands with their reach: row r is hand[start[r] : start[r + 1]]."""

    start: np.ndarray  # (rows + 1,) int64
    hand: np.ndarray  # (entries,) int16
    weight: np.ndarray  # (entries, copies) float64


class Nodes(NamedTuple):
    """Public nodes of one depth at which a player has a choice."""

    slots: np.ndarray  # (nodes,) int64
    paths: np.ndarray  # (nodes, depth) int16: the bids made
    rows: np.ndarray  # (nodes, players) int64: of each player's reach; −1 where it never comes, and if it is not asked

    def part(self, begin: int, end: int) -> Nodes:
        """Return some of the nodes."""
        return Nodes(self.slots[begin:end], self.paths[begin:end], self.rows[begin:end])


class PlayerMoves(NamedTuple):
    """Moves of an asked player at the nodes of a batch, each times its reach.

    A *leaf* is a raise that must be called. *Tails* add up a player's weight by its dice that count for a bid: tail [k] is
    the weight of the hands with k or more of them, k up to the player's number of dice plus 1.
    """

    calls: np.ndarray  # (nodes, tails, copies): of the hands that call
    leaf_node: np.ndarray  # (leaves,) int64
    leaf_edge: np.ndarray  # (leaves,) int64
    leaf_tail: np.ndarray  # (leaves, tails, copies): of the hands that bid it
    node: np.ndarray  # (children,) int64: the child's parent
    edge: np.ndarray  # (children,) int64: by which it is reached
    reach: Reach  # a row for each child: the player's


def deal(round_: Round, players: Sequence[int], copies: int) -> tuple[Nodes, list[Reach]]:
    """Return the empty history, and each player's reach, which is empty for a player who is not asked."""
    everybody = range(len(round_.dice))
    rows = np.array([[0 if player in players else -1 for player in everybody]])
    reaches = []
    for player in everybody:
        count = len(round_.hands[player]) if player in players else 0
        weight = np.repeat(round_.chances[player][:count, None], copies, axis=1)
        reaches.append(Reach(np.array([0, count]), np.arange(count, dtype=np.int16), weight))
    return Nodes(np.zeros(1, np.int64), np.zeros((1, 0), np.int16), rows), reaches


def children_of(batch: Nodes, mover: int, round_: Round, nodes: np.ndarray, edges: np.ndarray, own: np.ndarray) -> Nodes:
    """Return the batch that edges lead to; `own` (children,) are the rows of the mover's reach there."""
    slots = round_.rules.child[edges]
    paths = np.column_stack([batch.paths[nodes], round_.rules.bid[slots].astype(np.int16)])
    rows = batch.rows[nodes]
    rows[:, mover] = own
    return Nodes(slots, paths, rows)


def ends_of(count: np.ndarray) -> np.ndarray:
    """Return where each part begins of parts with these numbers of entries, and where the last one ends, (parts + 1,) int64."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])


def parts_of(weights: np.ndarray) -> list[tuple[int, int]]:
    """Divide a batch into consecutive parts of at most HEAVY each, or of one node."""
    parts, begin = [], 0
    ends = np.cumsum(weights)
    while begin < len(weights):
        done = ends[begin - 1] if begin else 0.0
        end = max(begin + 1, int(np.searchsorted(ends, done + HEAVY, "right")))
        parts.append((begin, end))
        begin = end
    return parts


# --- asking a player ------------------------------------------------------------------------------------------------


class Asking(NamedTuple):
    """Nodes of one depth at which a player is asked, and where its answers are written.

    A node's hands are hand[start[row] : start[row + 1]] of its row; its entries and numbers have the same order. With two
    copies a source writes two answers, which differ where its answers are random.
    """

    slots: np.ndarray  # (nodes,) int64
    paths: np.ndarray  # (nodes, depth) int16: the bids made
    rows: np.ndarray  # (nodes,) int64
    start: np.ndarray  # (rows + 1,) int64
    hand: np.ndarray  # int16
    entry_at: np.ndarray  # (nodes + 1,) int64: where each node's part of `calls` begins, a number for each hand
    calls: np.ndarray  # (entries, copies) float64: the chance of a call; 0 before the first bid
    raise_at: np.ndarray  # (nodes + 1,) int64: where each node's part of `raises` begins: raise by raise, by hand
    raises: np.ndarray  # (numbers, copies) float64: the chance of each raise
    made: np.ndarray  # (edges of all nodes,) bool: whether a raise may have a chance above 0; comes as True


class Source(Protocol):
    """A player's probabilities. It writes them for a batch of nodes and each reachable hand, and does not see the reach.

    Attributes:
        neglected: how much of the player's play, as a probability, may be left out where a best response to it is valued. A
            source with rounding errors may allow about as much.
        ignores_dice: whether the probabilities depend on the last bid alone.
    """

    neglected: float = 0.0
    ignores_dice: bool = False

    def write(self, asking: Asking) -> None:
        """Write `calls` and `raises`. Raises with `made` set to False are not read, so they may stay as they are."""
        ...


@kernel(allocates=False)
def _weigh(rules, asking, weight, alive, least):
    """Multiply chances by reach and count the hands that make each raise. In place.

    Hands that come to a decision of the others with a chance of `least` or less are left out there.

    Returns how many children, entries of children and leaves there are.
    """
    children = 0
    entries = 0
    leaves = 0
    at = 0
    for node in range(len(asking.slots)):
        begin, base, entry = asking.start[asking.rows[node]], asking.raise_at[node], asking.entry_at[node]
        hands = asking.entry_at[node + 1] - entry
        for edge in range(rules.first[asking.slots[node]], rules.first[asking.slots[node] + 1]):
            ends = must_call(rules, rules.child[edge])
            floor = 0.0 if ends else least
            alive[at] = 0
            for k in range(hands if asking.made[at] else 0):
                positive = False
                for c in range(weight.shape[1]):
                    reach = asking.raises[base + k, c] * weight[begin + k, c]
                    asking.raises[base + k, c] = reach if reach > floor else 0.0
                    positive |= reach > floor
                alive[at] += positive
            if alive[at] > 0 and ends:
                leaves += 1
            elif alive[at] > 0:
                children += 1
                entries += alive[at]
            base += hands
            at += 1
        for k in range(hands):
            for c in range(weight.shape[1]):
                asking.calls[entry + k, c] *= weight[begin + k, c]
    return children, entries, leaves


@kernel(allocates=False, inline=True)
def _write_tail(asking, node, matches, weights, base, tail):
    """Write the tails of a node's hands with the weights from `base` on, for matches by hand. In place; `tail` comes zeroed.

    No hand matches more dice than its player has, two fewer than `tail` has entries.
    """
    begin = asking.start[asking.rows[node]]
    for k in range(asking.start[asking.rows[node] + 1] - begin):
        match = matches[asking.hand[begin + k]]
        for c in range(tail.shape[1]):
            tail[match, c] += weights[base + k, c]
    for k in range(len(tail) - 2, -1, -1):
        for c in range(tail.shape[1]):
            tail[k, c] += tail[k + 1, c]


@kernel(allocates=False, inline=True)
def _write_child(asking, node, base, reach, entry):
    """Write the hands that make a raise from `entry` on, and return where they end. In place; `_weigh` has counted them."""
    begin = asking.start[asking.rows[node]]
    for k in range(asking.start[asking.rows[node] + 1] - begin):
        positive = False
        for c in range(asking.raises.shape[1]):
            positive |= asking.raises[base + k, c] > 0.0
        if positive:
            reach.hand[entry] = asking.hand[begin + k]
            for c in range(asking.raises.shape[1]):
                reach.weight[entry, c] = asking.raises[base + k, c]
            entry += 1
    return entry


@kernel(allocates=False)
def _spread(rules, matches, asking, alive, moves):
    """Write `moves`. In place; `_weigh` has counted leaves and children, and tails come zeroed."""
    at = 0
    leaf = 0
    child = 0
    entry = 0
    for node in range(len(asking.slots)):
        slot, base = asking.slots[node], asking.raise_at[node]
        _write_tail(asking, node, matches[:, rules.face[slot]], asking.calls, asking.entry_at[node], moves.calls[node])
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            below = rules.child[edge]
            if alive[at] > 0 and must_call(rules, below):
                moves.leaf_node[leaf] = node
                moves.leaf_edge[leaf] = edge
                _write_tail(asking, node, matches[:, rules.face[below]], asking.raises, base, moves.leaf_tail[leaf])
                leaf += 1
            elif alive[at] > 0:
                moves.node[child] = node
                moves.edge[child] = edge
                moves.reach.start[child] = entry
                entry = _write_child(asking, node, base, moves.reach, entry)
                child += 1
            base += asking.entry_at[node + 1] - asking.entry_at[node]
            at += 1
    moves.reach.start[child] = entry


def moves_of(round_: Round, batch: Nodes, mover: int, reach: Reach, source: Source, least: float = 0.0) -> PlayerMoves:
    """Ask the player to move, and multiply its probabilities by what reaches the nodes.

    Hands that come to a decision of the others with a chance of `least` or less are left out there.
    """
    rules, slots = round_.rules, batch.slots
    nodes, copies = len(slots), reach.weight.shape[1]
    rows = np.ascontiguousarray(batch.rows[:, mover])
    hands, edges = reach.start[rows + 1] - reach.start[rows], rules.first[slots + 1] - rules.first[slots]
    raise_at, entry_at = ends_of(hands * edges), ends_of(hands)
    raises, calls = np.empty((raise_at[-1], copies)), np.empty((entry_at[-1], copies))
    made, alive = np.ones(edges.sum(), np.bool_), np.empty(edges.sum(), np.int64)
    asking = Asking(slots, batch.paths, rows, reach.start, reach.hand, entry_at, calls, raise_at, raises, made)
    source.write(asking)
    children, entries, leaves = _weigh(rules, asking, reach.weight, alive, least)
    tails = round_.dice[mover] + 2
    moves = PlayerMoves(
        calls=np.zeros((nodes, tails, copies)),
        leaf_node=np.empty(leaves, np.int64),
        leaf_edge=np.empty(leaves, np.int64),
        leaf_tail=np.zeros((leaves, tails, copies)),
        node=np.empty(children, np.int64),
        edge=np.empty(children, np.int64),
        reach=Reach(np.empty(children + 1, np.int64), np.empty(entries, np.int16), np.empty((entries, copies))),
    )
    _spread(rules, round_.matches[mover], asking, alive, moves)
    return moves
