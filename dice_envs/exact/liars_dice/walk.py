"""Walks one round of Liar's Dice between two players, one or both of whom follow fixed policies.

A public node is a sequence of bids. Nobody sees the other's dice, so a node holds an asked player's *reach*: for each
of its hands the probability that it is dealt and makes its bids of the sequence. Hands without reach are left out, and so
is a node that an asked player never reaches.

Nodes are walked in batches of one depth, all with the same player to move. A batch whose subtrees would take too much
memory is split, so a round of any size is walked in bounded memory. Nodes at which calling is the only legal action are
no decisions: the call is counted where the bid is made.

The responder's hands are merged into classes that no later call tells apart, and it calls every bid that cannot hold with
its own dice. Both are optimal against any player. With `copies` = 2 all is computed for two answers of an agent
whose answers are random: the response is the best one to the first, and it is valued against both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.round import CALL, MoverClasses, Round, must_call, threshold
from dice_envs.exact.liars_dice.sources import Asking, Source

__all__ = ["Record", "meet", "respond"]

HEAVY = 8_000_000  # numbers, about, that the subtrees of one batch may take


# --- batches ------------------------------------------------------------------------------------------------------


class Reach(NamedTuple):
    """Rows of hands: row r is hand[start[r] : start[r + 1]], and what reaches the node with each."""

    start: np.ndarray  # (rows + 1,) int64
    hand: np.ndarray  # (entries,) int16
    weight: np.ndarray  # (entries, copies) float64


class Batch(NamedTuple):
    """Public nodes of one depth at which somebody has a choice."""

    slots: np.ndarray  # (nodes,) int64
    paths: np.ndarray  # (nodes, depth) int16: the bids made
    rows: np.ndarray  # (nodes, 2) int64: of each player's reach; −1 for a player who is not asked

    def part(self, begin: int, end: int) -> Batch:
        """Return some of the nodes."""
        return Batch(self.slots[begin:end], self.paths[begin:end], self.rows[begin:end])


class Moves(NamedTuple):
    """What an asked player does at the nodes of a batch.

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


class Held(NamedTuple):
    """The hands with which an asked player reaches the nodes of a batch, for kernels."""

    rows: np.ndarray  # (nodes,) int64: of `reach`
    reach: Reach
    matches: np.ndarray  # (hands, faces) int64: dice of each hand that count for a bid on the face


def _deal(round_: Round, players: tuple[int, ...], copies: int) -> tuple[Batch, list[Reach]]:
    """Return the empty history, and each player's reach, which is empty for those who are not asked."""
    rows = np.array([[0 if player in players else -1 for player in range(2)]])
    reaches = []
    for player in range(2):
        count = len(round_.hands[player]) if player in players else 0
        weight = np.repeat(round_.chances[player][:count, None], copies, axis=1)
        reaches.append(Reach(np.array([0, count]), np.arange(count, dtype=np.int16), weight))
    return Batch(np.zeros(1, np.int64), np.zeros((1, 0), np.int16), rows), reaches


def _children(batch: Batch, mover: int, round_: Round, nodes: np.ndarray, edges: np.ndarray, new_rows: bool) -> Batch:
    """Return the batch that edges lead to; with `new_rows` the mover's reach has a row for each of them."""
    slots = round_.rules.child[edges]
    paths = np.column_stack([batch.paths[nodes], (slots - 1).astype(np.int16)])
    rows = batch.rows[nodes]
    if new_rows:
        rows[:, mover] = np.arange(len(nodes))
    return Batch(slots, paths, rows)


def _parts(weights: np.ndarray) -> list[tuple[int, int]]:
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


@kernel(allocates=False)
def _layout(first, slots, rows, start, raise_at, entry_at):
    """Write where each node's raises and entries begin, (nodes + 1,) each. In place."""
    raise_at[0] = entry_at[0] = 0
    for node in range(len(slots)):
        hands = start[rows[node] + 1] - start[rows[node]]
        entry_at[node + 1] = entry_at[node] + hands
        raise_at[node + 1] = raise_at[node] + hands * (first[slots[node] + 1] - first[slots[node]])


@kernel(allocates=False, inline=True)
def _weigh_raise(asking, weight, begin, base, hands):
    """Multiply the chances of one raise by reach and return how many hands make it. In place."""
    alive = 0
    for k in range(hands):
        positive = False
        for c in range(weight.shape[1]):
            asking.raises[base + k, c] *= weight[begin + k, c]
            positive |= asking.raises[base + k, c] > 0.0
        alive += positive
    return alive


@kernel(allocates=False)
def _weigh(rules, asking, weight, alive):
    """Multiply chances by reach and count the hands that make each raise. In place.

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
            alive[at] = _weigh_raise(asking, weight, begin, base, hands) if asking.made[at] else 0
            if alive[at] > 0 and must_call(rules, rules.child[edge]):
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
    _sum_up(tail)


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


@kernel(allocates=False)
def _sum_up(tail):
    """Turn weights by number into weights of that number or more. In place."""
    for k in range(len(tail) - 2, -1, -1):
        for c in range(tail.shape[1]):
            tail[k, c] += tail[k + 1, c]


def _held(round_: Round, batch: Batch, player: int, reach: Reach) -> Held:
    return Held(np.ascontiguousarray(batch.rows[:, player]), reach, round_.matches[player])


def _moves(round_: Round, batch: Batch, mover: int, reach: Reach, source: Source) -> Moves:
    """Ask the player to move, and multiply its probabilities by what reaches the nodes."""
    rules, slots = round_.rules, batch.slots
    nodes, copies = len(slots), reach.weight.shape[1]
    rows = np.ascontiguousarray(batch.rows[:, mover])
    raise_at, entry_at = np.empty(nodes + 1, np.int64), np.empty(nodes + 1, np.int64)
    _layout(rules.first, slots, rows, reach.start, raise_at, entry_at)
    raises, calls = np.empty((raise_at[-1], copies)), np.empty((entry_at[-1], copies))
    edges = int((rules.first[slots + 1] - rules.first[slots]).sum())
    made, alive = np.ones(edges, np.bool_), np.empty(edges, np.int64)
    asking = Asking(slots, batch.paths, rows, reach.start, reach.hand, entry_at, calls, raise_at, raises, made)
    source.write(asking)
    children, entries, leaves = _weigh(rules, asking, reach.weight, alive)
    tails = round_.dice[mover] + 2
    moves = Moves(
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


# --- a best response ----------------------------------------------------------------------------------------------


class Values(NamedTuple):
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
def _tails(held, node, face, tail):
    """Write the tails of a node's hands for a face. In place; no hand matches more dice than `tail` has entries for."""
    tail[:] = 0.0
    for k in range(held.reach.start[held.rows[node]], held.reach.start[held.rows[node] + 1]):
        match = held.matches[held.reach.hand[k], face]
        for c in range(tail.shape[1]):
            tail[match, c] += held.reach.weight[k, c]
    _sum_up(tail)


@kernel(allocates=False, inline=True)
def _take(won, at, choice, edge, offered, begin, to):
    """Choose an edge if it wins more against the first copy than the best choice so far. In place.

    What it wins is offered[begin + to], if `to` is not CALL.
    """
    if to != CALL and offered[begin + to, 0] > won[at, 0]:
        choice[at] = edge
        for c in range(won.shape[1]):
            won[at, c] = offered[begin + to, c]


@kernel(allocates=False)
def _choose(rules, held, slots, classes, below, found, choice, tail):
    """Write what the responder, who is to move, can win with each class of its hands, and its choice. In place.

    `below` has the children, one for each raise that leaves the other a choice. `found` and `choice` (n,), an edge or CALL,
    have an entry for each class of each node. `tail` (tails, copies) is scratch.
    """
    child = 0
    for node in range(len(slots)):
        slot, at = slots[node], found.at[node]
        size = classes.size[slot]
        if slot > 0:
            _tails(held, node, rules.face[slot], tail)
        for k in range(size):
            choice[at + k] = CALL
            needed = classes.calls[classes.call_at[slot] + k]
            for c in range(tail.shape[1]):
                found.won[at + k, c] = tail[0, c] - tail[needed, c] if slot > 0 else -1.0
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            to = classes.map_at[edge]
            if must_call(rules, rules.child[edge]):
                _tails(held, node, rules.face[rules.child[edge]], tail)
                for k in range(size):
                    _take(found.won, at + k, choice, edge, tail, 0, classes.maps[to + k])
            else:
                for k in range(size):
                    _take(found.won, at + k, choice, edge, below.won, below.at[child], classes.maps[to + k])
                child += 1


@kernel(allocates=False)
def _add_up(slots, classes, moves, below, found):
    """Write what the responder wins with each class of its hands where the other is to move. In place.

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


class _Response:
    """One walk that finds a best response to an asked player."""

    def __init__(self, round_: Round, player: int, source: Source, done: Callable[[float], Any], record: Record | None) -> None:
        self._round, self._player, self._source, self._done, self._record = round_, player, source, done, record
        self._classes = round_.classes[1 - player]

    def value(self, copies: int) -> np.ndarray:
        batch, reaches = _deal(self._round, (self._player,), copies)
        won = self._values(batch, reaches[self._player]).won
        found: np.ndarray = self._round.chances[1 - self._player] @ won[self._classes.of[0, 0]]
        return found

    def _values(self, batch: Batch, reach: Reach) -> Values:
        mover = batch.paths.shape[1] % 2
        size = self._classes.size[mover][batch.slots]
        at, copies = np.concatenate([[0], np.cumsum(size)]), reach.weight.shape[1]
        rows = batch.rows[:, self._player]
        numbers = (reach.start[rows + 1] - reach.start[rows] + size) * copies
        parts = _parts(self._round.decisions.sum(axis=0)[batch.slots] * numbers)
        if len(parts) > 1:
            return Values(at, np.concatenate([self._values(batch.part(*part), reach).won for part in parts]))
        found = Values(at, np.empty((at[-1], copies)))
        if len(found.won):
            classes = self._classes.by_mover(mover)
            (self._sum if mover == self._player else self._maximise)(batch, mover, reach, classes, found)
        return found

    def _sum(self, batch: Batch, mover: int, reach: Reach, classes: MoverClasses, found: Values) -> None:
        """Write the values of nodes at which the asked player is to move."""
        round_ = self._round
        moves = _moves(round_, batch, mover, reach, self._source)
        children = _children(batch, mover, round_, moves.node, moves.edge, True)
        # The player's decisions here and in the subtrees that it does not reach are done.
        reached = float(round_.decisions[1, children.slots].sum())
        self._done((float(round_.decisions[0, batch.slots].sum()) - reached) * len(round_.hands[mover]))
        _add_up(batch.slots, classes, moves, self._values(children, moves.reach), found)

    def _maximise(self, batch: Batch, mover: int, reach: Reach, classes: MoverClasses, found: Values) -> None:
        """Write the values of nodes at which the responder is to move."""
        round_, rules = self._round, self._round.rules
        inner = _count_inner(rules, batch.slots)
        nodes, edges = np.empty(inner, np.int64), np.empty(inner, np.int64)
        _list_inner(rules, batch.slots, nodes, edges)
        below = self._values(_children(batch, mover, round_, nodes, edges, False), reach)
        held = _held(round_, batch, self._player, reach)
        choice = np.empty(len(found.won), np.int64)
        tail = np.empty((round_.dice[self._player] + 2, reach.weight.shape[1]))
        _choose(rules, held, batch.slots, classes, below, found, choice, tail)
        if self._record is not None:
            for node, slot in enumerate(batch.slots):
                edge = choice[found.at[node] + self._classes.of[mover, slot]]
                self._record(tuple(batch.paths[node].tolist()), np.where(edge == CALL, CALL, rules.child[edge] - 1))


def respond(
    round_: Round,
    player: int,
    source: Source,
    copies: int = 1,
    done: Callable[[float], Any] = lambda amount: None,
    record: Record | None = None,
) -> np.ndarray:
    """Return the greatest chance with which anybody wins the round from a player, (copies,) float64.

    Args:
        round_: the round.
        player: who is asked; the other one responds.
        source: the player's probabilities.
        copies: 2: `source` writes two answers; the response to the first is valued against each.
        done: progress callback, called with the number of the player's information sets that are done since the last call.
        record: called with the response at each node that is reached: the bids made, and for each of the responder's
            hands a bid or CALL.
    """
    return _Response(round_, player, source, done, record).value(copies)


# --- two agents -----------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def _decide(rules, nodes, slots, tails, held, most):
    """Return the probability of calls, and that of calls of bids that hold.

    Call i is of the bid at slots[i], at or after node nodes[i]. `tails` are one player's, `held` is the other's; `most` is
    the number of the first's dice.
    """
    called = 0.0
    hold = 0.0
    for i in range(len(nodes)):
        row, slot = held.rows[nodes[i]], slots[i]
        if tails[i, 0, 0] > 0.0:
            for k in range(held.reach.start[row], held.reach.start[row + 1]):
                needed = threshold(rules.need[slot], held.matches[held.reach.hand[k], rules.face[slot]], most)
                called += tails[i, 0, 0] * held.reach.weight[k, 0]
                hold += tails[i, needed, 0] * held.reach.weight[k, 0]
    return called, hold


class _Meeting:
    """One walk that finds out how often one asked player wins from another."""

    def __init__(self, round_: Round, sources: tuple[Source, Source], done: Callable[[float], Any]) -> None:
        self._round, self._sources, self._done = round_, sources, done
        self.starter_wins = 0.0

    def walk(self, batch: Batch, reaches: list[Reach]) -> None:
        round_, mover = self._round, batch.paths.shape[1] % 2
        if not len(batch.slots):
            return
        below = round_.decisions.sum(axis=0)
        numbers = sum(each.start[rows + 1] - each.start[rows] for each, rows in zip(reaches, batch.rows.T, strict=True))
        parts = _parts(below[batch.slots] * numbers)
        if len(parts) > 1:
            for part in parts:
                self.walk(batch.part(*part), reaches)
            return
        moves = _moves(round_, batch, mover, reaches[mover], self._sources[mover])
        other = _held(round_, batch, 1 - mover, reaches[1 - mover])
        rules, most = round_.rules, round_.dice[mover]
        called, held = _decide(rules, np.arange(len(batch.slots)), batch.slots, moves.calls, other, most)
        forced, forced_held = _decide(rules, moves.leaf_node, rules.child[moves.leaf_edge], moves.leaf_tail, other, most)
        # The mover wins by calling what fails, and by bidding what holds when it is called.
        won, lost = called - held + forced_held, held + forced - forced_held
        self.starter_wins += won if mover == 0 else lost
        children = _children(batch, mover, round_, moves.node, moves.edge, True)
        self._done(float(below[batch.slots].sum() - below[children.slots].sum()))
        self.walk(children, [moves.reach if player == mover else reaches[player] for player in range(2)])


def meet(round_: Round, sources: tuple[Source, Source], done: Callable[[float], Any] = lambda amount: None) -> float:
    """Return the chance that the starter wins the round.

    `done` is called with the number of public nodes that the walk is done with since the last call.
    """
    meeting = _Meeting(round_, sources, done)
    meeting.walk(*_deal(round_, (0, 1), 1))
    return meeting.starter_wins
