"""Walks one round of Liar's Dice between two players, one of whom follows a fixed policy: the other's best response.

Nodes are walked in batches of one depth, all with the same player to move. A batch whose subtrees would take too much
memory is split, so a round of any size is walked in bounded memory. Nodes at which calling is the only legal action are
no decisions: the call is counted where the bid is made.

The responder's hands are merged into classes that no later call tells apart, and it calls every bid that cannot hold with
its own dice. Both are optimal against any player. With `copies` = 2 all is computed for two answers of an agent
whose answers are random: the response is the best one to the first, and it is valued against both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.moves import Batch, Held, Moves, Reach, children_of, deal, held_by, moves_of, parts_of, sum_up
from dice_envs.exact.liars_dice.round import CALL, MoverClasses, Round, must_call
from dice_envs.exact.liars_dice.sources import Source

__all__ = ["Keep", "Record", "Winnings", "respond", "write_tails"]


# --- a best response ----------------------------------------------------------------------------------------------


class Winnings(NamedTuple):
    """The responder's winnings at the nodes of a batch, by its classes of hands, times what reaches the node."""

    at: np.ndarray  # (nodes + 1,) int64: where each node's part of `won` begins
    won: np.ndarray  # (n, copies) float64


@kernel(allocates=False)
def _count_inner(rules, slots):
    inner = 0
    for node in range(len(slots)):
        for edge in range(rules.first[slots[node]], rules.first[slots[node] + 1]):
            inner += not must_call(rules, rules.child[edge])
    return inner


@kernel(allocates=False)
def _list_inner(rules, slots, node_of, edge_of):
    """Write the raises that leave the other a choice, for each node. In place; `_count_inner` has counted them."""
    at = 0
    for node in range(len(slots)):
        for edge in range(rules.first[slots[node]], rules.first[slots[node] + 1]):
            if not must_call(rules, rules.child[edge]):
                node_of[at] = node
                edge_of[at] = edge
                at += 1


@kernel(allocates=False, inline=True)
def write_tails(held, node, face, tail):
    """Write the tails of a node's hands for a face. In place; no hand matches more dice than `tail` has entries for."""
    tail[:] = 0.0
    for k in range(held.reach.start[held.rows[node]], held.reach.start[held.rows[node] + 1]):
        match = held.matches[held.reach.hand[k], face]
        for c in range(tail.shape[1]):
            tail[match, c] += held.reach.weight[k, c]
    sum_up(tail)


@kernel(allocates=False, inline=True)
def _take(won, at, choice, edge, offered, begin, to):
    """Choose an edge if it wins more against the first copy than the best choice so far. In place.

    It wins offered[begin + to], if `to` is not CALL.
    """
    if to != CALL and offered[begin + to, 0] > won[at, 0]:
        choice[at] = edge
        for c in range(won.shape[1]):
            won[at, c] = offered[begin + to, c]


@kernel(allocates=False)
def _choose(rules, held, slots, classes, below, found, choice, tail):
    """Write the responder's greatest winnings with each class of its hands where it is to move, and its choices. In place.

    `below` has the children, one for each raise that leaves the other a choice. `found` and `choice` (n,), an edge or CALL,
    have an entry for each class of each node. `tail` (tails, copies) is scratch.
    """
    child = 0
    for node in range(len(slots)):
        slot, at = slots[node], found.at[node]
        size = classes.size[slot]
        if slot > 0:
            write_tails(held, node, rules.face[slot], tail)
        for k in range(size):
            choice[at + k] = CALL
            needed = classes.calls[classes.call_at[slot] + k]
            for c in range(tail.shape[1]):
                found.won[at + k, c] = tail[0, c] - tail[needed, c] if slot > 0 else -1.0
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            to = classes.map_at[edge]
            if must_call(rules, rules.child[edge]):
                write_tails(held, node, rules.face[rules.child[edge]], tail)
                for k in range(size):
                    _take(found.won, at + k, choice, edge, tail, 0, classes.maps[to + k])
            else:
                for k in range(size):
                    _take(found.won, at + k, choice, edge, below.won, below.at[child], classes.maps[to + k])
                child += 1


@kernel(allocates=False)
def _add_winnings(slots, classes, moves, below, found):
    """Write the responder's winnings with each class of its hands where the other is to move. In place.

    `found` has an entry for each class of each node, `below` of each child.
    """
    copies = found.won.shape[1]
    for node in range(len(slots)):
        call_at = classes.call_at[slots[node]]
        for k in range(classes.size[slots[node]]):
            for c in range(copies):  # 0 before the first bid
                found.won[found.at[node] + k, c] = moves.calls[node, classes.calls[call_at + k], c]
    for leaf in range(len(moves.leaf_node)):
        at, map_at = found.at[moves.leaf_node[leaf]], classes.map_at[moves.leaf_edge[leaf]]
        for k in range(classes.size[slots[moves.leaf_node[leaf]]]):
            needed = classes.maps[map_at + k]
            for c in range(copies):
                found.won[at + k, c] += moves.leaf_tail[leaf, 0, c] - moves.leaf_tail[leaf, needed, c]
    for i in range(len(moves.node)):
        at, map_at = found.at[moves.node[i]], classes.map_at[moves.edge[i]]
        for k in range(classes.size[slots[moves.node[i]]]):
            to = below.at[i] + classes.maps[map_at + k]
            for c in range(copies):
                found.won[at + k, c] += below.won[to, c]


Record = Callable[[tuple[int, ...], np.ndarray], Any]


class Keep(Protocol):
    """Keeps what a walk finds at the nodes of each batch."""

    def keep_values(self, batch: Batch, found: Winnings, moves: Moves) -> None:
        """Keep the values of nodes at which the asked player is to move, and its raises there that must be called."""
        ...

    def keep_reach(self, batch: Batch, held: Held) -> None:
        """Keep the asked player's reach of nodes at which the responder is to move."""
        ...


class _Response:
    """One walk that finds a best response to an asked player."""

    def __init__(
        self,
        round_: Round,
        player: int,
        source: Source,
        done: Callable[[float], Any],
        record: Record | None,
        keep: Keep | None,
    ) -> None:
        self._round, self._player, self._source, self._done = round_, player, source, done
        self._record, self._keep = record, keep
        self._least, self._merges = 0.0, False  # `record` and `keep` need every node
        if record is None and keep is None:
            self._merges = getattr(source, "ignores_dice", False)
            most = round_.decisions[1 - player, 0] * len(round_.hands[player])  # pairs of a node and a hand to leave out
            self._least = getattr(source, "neglected", 0.0) / max(1.0, most)
        self._classes = round_.classes[1 - player]

    def value(self, copies: int) -> np.ndarray:
        batch, reaches = deal(self._round, (self._player,), copies)
        won = self._values(batch, reaches[self._player]).won
        found: np.ndarray = self._round.chances[1 - self._player] @ won[self._classes.of[0, 0]]
        return found

    def _values(self, batch: Batch, reach: Reach) -> Winnings:
        mover = batch.paths.shape[1] % 2
        if self._merges and (merged := self._merged(batch, mover, reach)) is not None:
            return merged
        size = self._classes.size[mover][batch.slots]
        at, copies = np.concatenate([[0], np.cumsum(size)]), reach.weight.shape[1]
        rows = batch.rows[:, self._player]
        numbers = (reach.start[rows + 1] - reach.start[rows] + size) * copies
        parts = parts_of(self._round.decisions.sum(axis=0)[batch.slots] * numbers)
        if len(parts) > 1 and not self._merges:  # merged batches are small
            return Winnings(at, np.concatenate([self._values(batch.part(*part), reach).won for part in parts]))
        found = Winnings(at, np.empty((at[-1], copies)))
        if len(found.won):
            classes = self._classes.by_mover(mover)
            (self._sum if mover == self._player else self._maximise)(batch, mover, reach, classes, found)
        return found

    def _merged(self, batch: Batch, mover: int, reach: Reach) -> Winnings | None:
        """Return the values from those of one node of each slot; None if the batch has no two nodes of a slot.

        Nodes of a slot differ only by how likely the asked player comes there, with any hand.
        """
        _, first, which = np.unique(batch.slots, return_index=True, return_inverse=True)
        if len(first) == len(batch.slots):
            return None
        one = self._values(Batch(batch.slots[first], batch.paths[first], batch.rows[first]), reach)
        decisions = self._round.decisions[int(mover != self._player)][batch.slots]
        self._done(float(decisions.sum() - decisions[first].sum()) * len(self._round.hands[self._player]))
        chance = reach.weight[reach.start[batch.rows[:, self._player]]]
        size = np.diff(one.at)[which]
        at = np.concatenate([[0], np.cumsum(size)])
        entries = np.arange(at[-1]) - np.repeat(at[:-1] - one.at[which], size)
        return Winnings(at, one.won[entries] * np.repeat(chance / chance[first][which], size, axis=0))

    def _sum(self, batch: Batch, mover: int, reach: Reach, classes: MoverClasses, found: Winnings) -> None:
        """Write the values of nodes at which the asked player is to move."""
        round_ = self._round
        moves = moves_of(round_, batch, mover, reach, self._source, self._least)
        children = children_of(batch, mover, round_, moves.node, moves.edge, True)
        # The player's decisions here and in the subtrees that it does not reach are done.
        reached = float(round_.decisions[1, children.slots].sum())
        self._done((float(round_.decisions[0, batch.slots].sum()) - reached) * len(round_.hands[mover]))
        _add_winnings(batch.slots, classes, moves, self._values(children, moves.reach), found)
        if self._keep is not None:
            self._keep.keep_values(batch, found, moves)

    def _maximise(self, batch: Batch, mover: int, reach: Reach, classes: MoverClasses, found: Winnings) -> None:
        """Write the values of nodes at which the responder is to move."""
        round_, rules = self._round, self._round.rules
        inner = _count_inner(rules, batch.slots)
        nodes, edges = np.empty(inner, np.int64), np.empty(inner, np.int64)
        _list_inner(rules, batch.slots, nodes, edges)
        below = self._values(children_of(batch, mover, round_, nodes, edges, False), reach)
        held = held_by(round_, batch, self._player, reach)
        choice = np.empty(len(found.won), np.int64)
        tail = np.empty((round_.dice[self._player] + 2, reach.weight.shape[1]))
        _choose(rules, held, batch.slots, classes, below, found, choice, tail)
        if self._keep is not None:
            self._keep.keep_reach(batch, held)
        if self._record is not None:
            for node, slot in enumerate(batch.slots):
                edge = choice[found.at[node] + self._classes.of[mover, slot]]
                self._record(tuple(batch.paths[node].tolist()), np.where(edge == CALL, CALL, rules.bid[rules.child[edge]]))


def respond(
    round_: Round,
    player: int,
    source: Source,
    copies: int = 1,
    done: Callable[[float], Any] = lambda amount: None,
    record: Record | None = None,
    keep: Keep | None = None,
) -> np.ndarray:
    """Return the chance of a best response to win the round from a player, (copies,) float64.

    Args:
        round_: the round.
        player: the one that is asked; the other one responds.
        source: the player's probabilities.
        copies: 2: `source` writes two answers; the response to the first is valued against each.
        done: progress callback, called with the number of the player's information sets that are done since the last call.
        record: called with the response at each node that is reached: the bids made, and for each of the responder's
            hands a bid or CALL.
        keep: keeps the values and the reach at the nodes that are reached.
    """
    return _Response(round_, player, source, done, record, keep).value(copies)
