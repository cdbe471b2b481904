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
from dice_envs.games.liars_dice.exact.round import Round, must_call

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

    def below(self, mover: int, round_: Round, nodes: np.ndarray, edges: np.ndarray, own: np.ndarray) -> Nodes:
        """Return the nodes that edges lead to; `own` (edges,) are the rows of the mover's reach there."""
        slots = round_.rules.child[edges]
        paths = np.column_stack([self.paths[nodes], round_.rules.bid[slots].astype(np.int16)])
        rows = self.rows[nodes]
        rows[:, mover] = own
        return Nodes(slots, paths, rows)


class PlayerMoves(NamedTuple):
    """An asked player's moves at the nodes of a batch, with its reach after each. A *leaf* is a raise that must be called."""

    calls: Reach  # a row for each node
    leaf_node: np.ndarray  # (leaves,) int64
    leaf_edge: np.ndarray  # (leaves,) int64
    leaves: Reach  # a row for each leaf
    node: np.ndarray  # (children,) int64: the child's parent
    edge: np.ndarray  # (children,) int64: by which it is reached
    reach: Reach  # a row for each child


def deal(round_: Round, players: Sequence[int], copies: int, sources: Sequence[Source] = ()) -> tuple[Nodes, list[Reach]]:
    """Return the empty history, and each player's reach, which is empty for a player who is not asked.

    Of a mixture among the players' `sources` it has a copy more for each agent.
    """
    everybody = range(len(round_.dice))
    rows = np.array([[0 if player in players else -1 for player in everybody]])
    reaches = []
    for player in everybody:
        count = len(round_.hands[player]) if player in players else 0
        weights = sources[player].weights if sources else None
        its = copies if weights is None else 1 + len(weights)
        weight = np.repeat(round_.chances[player][:count, None], its, axis=1)
        reaches.append(Reach(np.array([0, count]), np.arange(count, dtype=np.int16), weight))
    return Nodes(np.zeros(1, np.int64), np.zeros((1, 0), np.int16), rows), reaches


def ends_of(count: np.ndarray) -> np.ndarray:
    """Return where each part begins of parts with these numbers of entries, and where the last one ends, (parts + 1,) int64."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])


@kernel
def entries_of(begin, count):
    """Return the entries of parts that begin there and have these numbers of entries, part by part, int64."""
    entries = np.empty(count.sum(), np.int64)
    to = 0
    for part in range(len(begin)):
        for k in range(count[part]):
            entries[to] = begin[part] + k
            to += 1
    return entries


def parts_of(weights: np.ndarray, most: int = HEAVY) -> list[tuple[int, int]]:
    """Divide a batch into consecutive parts of at most `most` each, or of one node."""
    parts, begin = [], 0
    ends = np.cumsum(weights)
    while begin < len(weights):
        done = ends[begin - 1] if begin else 0.0
        end = max(begin + 1, int(np.searchsorted(ends, done + most, "right")))
        parts.append((begin, end))
        begin = end
    return parts


# --- asking a player ------------------------------------------------------------------------------------------------


class Asking(NamedTuple):
    """Nodes of one depth at which a player is asked, and where its answers are written.

    An entry is a node with one of the player's hands that come there, node by node. With two copies a source writes two
    answers, which differ where its answers are random. Of a mixture, copy 0 is left to `moves_of`, and those after it are its
    agents'.
    """

    slots: np.ndarray  # (nodes,) int64
    paths: np.ndarray  # (nodes, depth) int16: the bids made
    entry_at: np.ndarray  # (nodes + 1,) int64: where each node's entries begin
    hand: np.ndarray  # (entries,) int16
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
        weights: of a mixture, how often each of its agents is drawn, (agents,) float64. Each has a reach of its own, in the
            copies after the first, which has the mixture's.
    """

    neglected: float = 0.0
    ignores_dice: bool = False
    weights: np.ndarray | None = None

    def write(self, asking: Asking) -> None:
        """Write `calls` and `raises`. Raises with `made` set to False are not read, so they may stay as they are."""
        ...


@kernel(allocates=False, inline=True)
def _weigh_move(chances, base, hands, weight, begin, floor):
    """Multiply a move's chances, from `base` on, by the hands' reach; return how many hands make it. In place."""
    made = 0
    for k in range(hands):
        positive = False
        for c in range(weight.shape[1]):
            reach = chances[base + k, c] * weight[begin + k, c]
            chances[base + k, c] = reach if reach > floor else 0.0
            positive |= reach > floor
        made += positive
    return made


@kernel(allocates=False)
def _weigh(rules, asking, reach, rows, made_by, least, counts):
    """Multiply chances by reach, and count the hands that make each raise, `made_by` (edges of all nodes,). In place.

    Hands that come to a decision of the others with a chance of `least` or less are left out there. `counts` (4,), which comes
    zeroed, gets the numbers of leaves and of hands that make them, of children and of hands that come there.
    """
    at = 0
    for node in range(len(asking.slots)):
        begin, base, entry = reach.start[rows[node]], asking.raise_at[node], asking.entry_at[node]
        hands = asking.entry_at[node + 1] - entry
        for edge in range(rules.first[asking.slots[node]], rules.first[asking.slots[node] + 1]):
            ends = must_call(rules, rules.child[edge])
            might, floor = hands if asking.made[at] else 0, 0.0 if ends else least
            made_by[at] = _weigh_move(asking.raises, base, might, reach.weight, begin, floor)
            if made_by[at] > 0:
                kind = 0 if ends else 2
                counts[kind] += 1
                counts[kind + 1] += made_by[at]
            base += hands
            at += 1
        _weigh_move(asking.calls, entry, hands, reach.weight, begin, 0.0)


@kernel(allocates=False, inline=True)
def _write_row(asking, node, base, reach, row):
    """Write the hands that make a raise at a node, whose weights begin at `base`, as the next row of `reach`. In place."""
    begin, to = asking.entry_at[node], reach.start[row]
    for k in range(asking.entry_at[node + 1] - begin):
        positive = False
        for c in range(asking.raises.shape[1]):
            positive |= asking.raises[base + k, c] > 0.0
        if positive:
            reach.hand[to] = asking.hand[begin + k]
            for c in range(asking.raises.shape[1]):
                reach.weight[to, c] = asking.raises[base + k, c]
            to += 1
    reach.start[row + 1] = to


@kernel(allocates=False)
def _spread(rules, asking, made_by, moves):
    """Write `moves`. In place; `_weigh` has counted what there is."""
    at = 0
    leaf = 0
    child = 0
    for node in range(len(asking.slots)):
        slot, base = asking.slots[node], asking.raise_at[node]
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            if made_by[at] > 0 and must_call(rules, rules.child[edge]):
                moves.leaf_node[leaf] = node
                moves.leaf_edge[leaf] = edge
                _write_row(asking, node, base, moves.leaves, leaf)
                leaf += 1
            elif made_by[at] > 0:
                moves.node[child] = node
                moves.edge[child] = edge
                _write_row(asking, node, base, moves.reach, child)
                child += 1
            base += asking.entry_at[node + 1] - asking.entry_at[node]
            at += 1


def _new_reach(rows: int, entries: int, copies: int) -> Reach:
    return Reach(np.zeros(rows + 1, np.int64), np.empty(entries, np.int16), np.empty((entries, copies)))


def moves_of(round_: Round, batch: Nodes, mover: int, reach: Reach, source: Source, least: float = 0.0) -> PlayerMoves:
    """Ask the player to move, and multiply its probabilities by what reaches the nodes.

    Hands that come to a decision of the others with a chance of `least` or less are left out there.
    """
    rules, slots = round_.rules, batch.slots
    copies = reach.weight.shape[1]
    rows = np.ascontiguousarray(batch.rows[:, mover])
    hands, edges = reach.start[rows + 1] - reach.start[rows], rules.first[slots + 1] - rules.first[slots]
    raise_at, entry_at = ends_of(hands * edges), ends_of(hands)
    raises, calls = np.empty((raise_at[-1], copies)), np.empty((entry_at[-1], copies))
    hand = reach.hand[entries_of(reach.start[rows], hands)]
    made, made_by, counts = np.ones(edges.sum(), np.bool_), np.empty(edges.sum(), np.int64), np.zeros(4, np.int64)
    asking = Asking(slots, batch.paths, entry_at, hand, calls, raise_at, raises, made)
    source.write(asking)
    _weigh(rules, asking, reach, rows, made_by, least, counts)
    if source.weights is not None:  # no weight is 0, so the mixture makes a move where one of its agents does
        for each in (raises, calls):
            each[:, 0] = each[:, 1:] @ source.weights
    leaves, leaving, children, going = counts.tolist()
    moves = PlayerMoves(
        calls=Reach(entry_at, hand, calls),
        leaf_node=np.empty(leaves, np.int64),
        leaf_edge=np.empty(leaves, np.int64),
        leaves=_new_reach(leaves, leaving, copies),
        node=np.empty(children, np.int64),
        edge=np.empty(children, np.int64),
        reach=_new_reach(children, going, copies),
    )
    _spread(rules, asking, made_by, moves)
    return moves
