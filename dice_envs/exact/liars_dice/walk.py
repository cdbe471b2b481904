"""Walks through one round of Liar's Dice between two players, of whom one or both are known by their probabilities.

A public node is a sequence of bids. Nobody sees the other's dice, so a node holds an asked player's *reach*: for each
of its hands the chance that it is dealt and bids as the node says. Hands without any are left out, and so is a node that
an asked player never reaches. Player 0 is the round's starter; a *slot* is a bid plus 1, 0 before the first one.

Nodes are walked in batches of one depth, all with the same player to move. A batch whose subtrees would take too much
memory is split, so a round of any size is walked in bounded memory. Nodes at which calling is the only legal action are
no decisions: what the call is worth is counted where the bid is made.

The responder's hands are merged where no call that may follow tells them apart, and it calls whatever cannot hold with
its own dice. Both are right against any player. With `copies` = 2 all is done side by side for two answers of an agent
whose answers are random: the response is the best one to the first, and it is valued against both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from dice_envs.agent import Turn, ask_probabilities
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.tree import hands_of, matches_of, raises_of
from dice_envs.games.liars_dice import MAX_FACES, face_of, play, quantity_of

__all__ = ["Asked", "Listed", "Round", "Seats", "Tabled", "meet", "respond", "source_of"]

ROWS_AT_ONCE = 16_384  # information sets at which an agent is asked in one call
HEAVY = 8_000_000  # numbers, about, that the subtrees of one batch may take
SAME = 1e-9  # answers that differ by no more are alike
CALL = -1  # in `Classes.maps`: the hand calls whatever it might raise; in a choice: it calls


class Round:
    """One round: what may be bid, and the hands.

    Attributes:
        variant: the game.
        dice: of the starter and of the other player.
        hands: each player's, (hands, MAX_FACES) int8: how many dice show each face.
        chances: each player's, (hands,) float64.
        matches: each player's, (hands, faces) int64: dice that count for a bid on the face.
        first, child: the raises after slot s lead to the slots child[first[s] : first[s + 1]], in rising order.
        need, face: (slots,) int64: the bid's quantity and face index; 0 at slot 0.
        decisions: (2, slots) float64: nodes with a choice in the subtree of a slot, those of its mover and the others.
    """

    def __init__(self, variant: Variant, dice: tuple[int, int]) -> None:
        self.variant, self.dice = variant, dice
        slots = 1 + sum(dice) * variant.params.num_faces
        raises = [1 + raises_of(variant, dice, slot - 1) for slot in range(slots)]
        self.first = np.concatenate([[0], np.cumsum([len(each) for each in raises])]).astype(np.int64)
        self.child = np.concatenate(raises)
        bids = np.arange(slots - 1)
        self.need = np.concatenate([[0], [quantity_of(variant.params, bid) + 1 for bid in bids]]).astype(np.int64)
        self.face = np.concatenate([[0], [face_of(variant.params, bid) for bid in bids]]).astype(np.int64)
        self.decisions = np.zeros((2, slots))
        for slot in range(slots - 1, -1, -1):
            if len(raises[slot]):
                own, other = self.decisions[:, raises[slot]].sum(axis=1)
                self.decisions[:, slot] = 1 + other, own
        dealt = [hands_of(variant, number) for number in dice]
        self.hands = (dealt[0][0], dealt[1][0])
        self.chances = (dealt[0][1], dealt[1][1])
        self.matches = (matches_of(variant, self.hands[0]), matches_of(variant, self.hands[1]))

    def information_sets(self, player: int) -> float:
        """At how many pairs of a node and a hand the player has a choice."""
        return float(self.decisions[player, 0]) * len(self.hands[player])

    @functools.cached_property
    def classes(self) -> tuple[Classes, Classes]:
        """Each player's hands, merged, for when it is the responder."""
        return self._classes(0), self._classes(1)

    def _classes(self, player: int) -> Classes:
        slots, hands = len(self.need), len(self.hands[player])
        ids, count = np.zeros((2, slots, hands), np.int64), np.zeros((2, slots), np.int64)
        rules = self.first, self.child, self.need, self.face
        most = self.dice[1 - player]
        _merge(*rules, self.matches[player], most, player, ids, count)
        call_at = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        edges = np.diff(self.first)
        by_edge = np.concatenate([np.repeat(count[mover], edges) for mover in range(2)])
        map_at = np.concatenate([[0], np.cumsum(by_edge)]).astype(np.int64)
        calls, maps = np.zeros(call_at[-1], np.int64), np.zeros(map_at[-1], np.int64)
        _map(*rules, self.matches[player], most, player, ids, call_at, calls, map_at, maps)
        return Classes(ids, count, call_at[:-1].reshape(2, slots), calls, map_at[:-1].reshape(2, -1), maps)

    def dealt(self, starter: int) -> np.ndarray:
        """One state in which the round has just been dealt and no round has been seen before; the seat begins."""
        state = np.zeros(1, self.variant.game.state)
        self.variant.kernels.deal(self.variant.params, state, np.zeros(1, np.int64))
        for player in range(2):
            state["dice"][0, starter ^ player] = self.dice[player]
        state["in_round"][0] = state["dice"][0] > 0
        state["in_play"] = sum(self.dice)
        state["seat"] = state["starter"] = starter
        return state


class Classes(NamedTuple):
    """A responder's hands at each slot, [0] where player 0 is to move and [1] where player 1 is, merged into classes.

    A threshold says how many of the other's dice must count for a bid to hold; one that its dice cannot reach is its
    number of dice plus 1.
    """

    of: np.ndarray  # (2, slots, hands) int64: hand → class
    size: np.ndarray  # (2, slots) int64: how many classes
    call_at: np.ndarray  # (2, slots) int64: where the thresholds of the slot's bid begin, by class
    calls: np.ndarray  # int64
    map_at: np.ndarray  # (2, edges) int64: where the edge's part of `maps` begins, by the parent's class
    maps: np.ndarray  # int64: the child's class, or CALL; for a raise that must be called: the threshold of that bid


@kernel
def _threshold(need, matching, most):
    return min(max(need - matching, 0), most + 1)


@kernel
def _merge(first, child, need, face, matches, most, player, ids, count):
    """Number the classes of the player's hands: `ids` (2, slots, hands) and `count` (2, slots). In place.

    `most` is the number of the other player's dice. A class number is below the number of hands, a threshold at most
    `most` + 1, and `beyond` above both: so the key of a pair lies below hands * (beyond + 1), the length of the tables.
    """
    hands = len(matches)
    beyond = max(hands, most + 2)
    stamp = np.zeros(hands * (beyond + 1), np.int64)
    number = np.zeros(hands * (beyond + 1), np.int64)
    column = np.zeros(hands, np.int64)
    now = 0
    for slot in range(len(need) - 1, -1, -1):
        for mover in range(2):
            classes = 1
            for edge in range(first[slot] - 1, first[slot + 1]):
                call = edge < first[slot]
                if call and slot == 0:
                    continue
                for hand in range(hands):
                    own = _threshold(need[slot], matches[hand, face[slot]], most)
                    if call:
                        column[hand] = own
                        continue
                    below = child[edge]
                    if mover == player and slot > 0 and own == most + 1:
                        column[hand] = beyond
                    elif first[below] == first[below + 1]:
                        column[hand] = _threshold(need[below], matches[hand, face[below]], most)
                    else:
                        column[hand] = ids[1 - mover, below, hand]
                now += 1
                classes = 0
                for hand in range(hands):
                    key = ids[mover, slot, hand] * (beyond + 1) + column[hand]
                    if stamp[key] != now:
                        stamp[key] = now
                        number[key] = classes
                        classes += 1
                    ids[mover, slot, hand] = number[key]
            count[mover, slot] = classes


@kernel
def _map(first, child, need, face, matches, most, player, ids, call_at, calls, map_at, maps):
    """Write each class's thresholds and maps, as its hands have them. In place.

    `call_at` (2 * slots + 1,) and `map_at` (2 * edges + 1,) say where each part begins; class numbers are below its length.
    """
    slots = len(need)
    for mover in range(2):
        for slot in range(slots):
            at = call_at[mover * slots + slot]
            for hand in range(len(matches)):
                own = _threshold(need[slot], matches[hand, face[slot]], most)
                calls[at + ids[mover, slot, hand]] = own
                for edge in range(first[slot], first[slot + 1]):
                    below = child[edge]
                    to = map_at[mover * len(child) + edge] + ids[mover, slot, hand]
                    if mover == player and slot > 0 and own == most + 1:
                        maps[to] = CALL
                    elif first[below] == first[below + 1]:
                        maps[to] = _threshold(need[below], matches[hand, face[below]], most)
                    else:
                        maps[to] = ids[1 - mover, below, hand]


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
        """Some of the nodes."""
        return Batch(self.slots[begin:end], self.paths[begin:end], self.rows[begin:end])


class Moves(NamedTuple):
    """What an asked player does at the nodes of a batch.

    Tails are a player's weight by how many of its dice count for the bid: at [k], of those of which k or more do, up to
    its number of dice plus 1.
    """

    calls: np.ndarray  # (nodes, tails, copies): of the hands that call
    leaf_node: np.ndarray  # (leaves,) int64: a leaf is a raise that must be called
    leaf_edge: np.ndarray  # (leaves,) int64
    leaf_tail: np.ndarray  # (leaves, tails, copies): of the hands that bid it
    node: np.ndarray  # (children,) int64: whose child it is
    edge: np.ndarray  # (children,) int64
    reach: Reach  # a row for each child


class Asking(NamedTuple):
    """Where an asked player's moves are written: what reaches its nodes, times the chance of each move."""

    slots: np.ndarray  # (nodes,) int64
    paths: np.ndarray  # (nodes, depth) int16
    rows: np.ndarray  # (nodes,) int64: of the player's reach
    reach: Reach
    entry_at: np.ndarray  # (nodes + 1,) int64: where each node's part of `calls` begins, a number for each hand of its row
    calls: np.ndarray  # (entries, copies) float64
    raise_at: np.ndarray  # (nodes + 1,) int64: where each node's part of `raises` begins: a raise after the other, by hand
    raises: np.ndarray  # (numbers, copies) float64; means nothing where a raise has no hand alive
    alive: np.ndarray  # (edges of all nodes,) int64: how many hands make the raise


class Source(Protocol):
    """Where an asked player's probabilities come from."""

    def write(self, asking: Asking) -> None:
        """Write `calls`, `raises` and `alive`."""
        ...


def _deal(round_: Round, players: tuple[int, ...], copies: int) -> tuple[Batch, list[Reach]]:
    """The empty history, and the reach of those who are asked (of the others an empty one)."""
    rows = np.array([[0 if player in players else -1 for player in range(2)]])
    reaches = []
    for player in range(2):
        count = len(round_.hands[player]) if player in players else 0
        weight = np.repeat(round_.chances[player][:count, None], copies, axis=1)
        reaches.append(Reach(np.array([0, count]), np.arange(count, dtype=np.int16), weight))
    return Batch(np.zeros(1, np.int64), np.zeros((1, 0), np.int16), rows), reaches


def _children(batch: Batch, mover: int, round_: Round, nodes: np.ndarray, edges: np.ndarray, rows: np.ndarray | None) -> Batch:
    """The batch that the edges lead to; `rows` is the first of the mover's new rows, None where it keeps its own."""
    slots = round_.child[edges]
    paths = np.column_stack([batch.paths[nodes], (slots - 1).astype(np.int16)])
    of_children = batch.rows[nodes]
    if rows is not None:
        of_children[:, mover] = rows
    return Batch(slots, paths, of_children)


@kernel
def _layout(slots, rows, start, first, raise_at, entry_at):
    """Write where each node's raises and entries begin, (nodes + 1,) each. In place."""
    raise_at[0] = entry_at[0] = 0
    for node in range(len(slots)):
        alive = start[rows[node] + 1] - start[rows[node]]
        entry_at[node + 1] = entry_at[node] + alive
        raise_at[node + 1] = raise_at[node] + alive * (first[slots[node] + 1] - first[slots[node]])


@kernel
def _count(slots, first, child, alive):
    """How many children, entries of children and leaves the raises lead to that some hand makes."""
    children = 0
    entries = 0
    leaves = 0
    at = 0
    for node in range(len(slots)):
        for edge in range(first[slots[node]], first[slots[node] + 1]):
            if alive[at] > 0 and first[child[edge]] == first[child[edge] + 1]:
                leaves += 1
            elif alive[at] > 0:
                children += 1
                entries += alive[at]
            at += 1
    return children, entries, leaves


@kernel
def _spread(
    slots, rows, start, hand, first, child, face, matches, raise_at, raises, alive,
    leaf_node, leaf_edge, leaf_tail, child_node, child_edge, new_start, new_hand, new_weight,
):  # fmt: skip
    """Write the leaves and the children that `_count` has counted. In place; `leaf_tail` comes zeroed."""
    copies = raises.shape[1]
    at = 0
    leaf = 0
    kept = 0
    entry = 0
    for node in range(len(slots)):
        begin = start[rows[node]]
        hands = start[rows[node] + 1] - begin
        base = raise_at[node]
        for edge in range(first[slots[node]], first[slots[node] + 1]):
            below = child[edge]
            if alive[at] > 0 and first[below] == first[below + 1]:
                leaf_node[leaf] = node
                leaf_edge[leaf] = edge
                for k in range(hands):
                    match = matches[hand[begin + k], face[below]]
                    for c in range(copies):
                        leaf_tail[leaf, match, c] += raises[base + k, c]
                _sum_up(leaf_tail[leaf])
                leaf += 1
            elif alive[at] > 0:
                child_node[kept] = node
                child_edge[kept] = edge
                new_start[kept] = entry
                for k in range(hands):
                    positive = False
                    for c in range(copies):
                        positive |= raises[base + k, c] > 0.0
                    if positive:
                        new_hand[entry] = hand[begin + k]
                        for c in range(copies):
                            new_weight[entry, c] = raises[base + k, c]
                        entry += 1
                kept += 1
            base += hands
            at += 1
    new_start[kept] = entry


@kernel
def _sum_up(tail):
    """Turn weights by number into weights of that number or more. In place."""
    for k in range(len(tail) - 2, -1, -1):
        for c in range(tail.shape[1]):
            tail[k, c] += tail[k + 1, c]


@kernel
def _call_tails(slots, rows, start, hand, face, matches, entry_at, calls, tails):
    """Write the tails of those who call. In place; `tails` comes zeroed, and `calls` is 0 before the first bid."""
    for node in range(len(slots)):
        begin = start[rows[node]]
        for k in range(start[rows[node] + 1] - begin):
            match = matches[hand[begin + k], face[slots[node]]]
            for c in range(calls.shape[1]):
                tails[node, match, c] += calls[entry_at[node] + k, c]
        _sum_up(tails[node])


def _moves(round_: Round, batch: Batch, mover: int, reach: Reach, source: Source) -> Moves:
    """Ask the player to move what it does."""
    nodes, copies = len(batch.slots), reach.weight.shape[1]
    rows = np.ascontiguousarray(batch.rows[:, mover])
    raise_at, entry_at = np.empty(nodes + 1, np.int64), np.empty(nodes + 1, np.int64)
    _layout(batch.slots, rows, reach.start, round_.first, raise_at, entry_at)
    raises, calls = np.empty((raise_at[-1], copies)), np.empty((entry_at[-1], copies))
    alive = np.empty(int((round_.first[batch.slots + 1] - round_.first[batch.slots]).sum()), np.int64)
    source.write(Asking(batch.slots, batch.paths, rows, reach, entry_at, calls, raise_at, raises, alive))
    children, entries, leaves = _count(batch.slots, round_.first, round_.child, alive)
    tails, matches = round_.dice[mover] + 2, round_.matches[mover]
    moves = Moves(
        np.zeros((nodes, tails, copies)),
        np.empty(leaves, np.int64), np.empty(leaves, np.int64), np.zeros((leaves, tails, copies)),
        np.empty(children, np.int64), np.empty(children, np.int64),
        Reach(np.empty(children + 1, np.int64), np.empty(entries, np.int16), np.empty((entries, copies))),
    )  # fmt: skip
    seen = batch.slots, rows, reach.start, reach.hand
    _spread(
        *seen, round_.first, round_.child, round_.face, matches, raise_at, raises, alive,
        moves.leaf_node, moves.leaf_edge, moves.leaf_tail, moves.node, moves.edge, *moves.reach,
    )  # fmt: skip
    _call_tails(*seen, round_.face, matches, entry_at, calls, moves.calls)
    return moves


def _parts(weights: np.ndarray) -> list[tuple[int, int]]:
    """Consecutive parts of a batch of at most HEAVY each, or of one node."""
    parts, begin = [], 0
    ends = np.cumsum(weights)
    while begin < len(weights):
        done = ends[begin - 1] if begin else 0.0
        end = max(begin + 1, int(np.searchsorted(ends, done + HEAVY, "right")))
        parts.append((begin, end))
        begin = end
    return parts


# --- where probabilities come from ----------------------------------------------------------------------------------


@kernel
def _list_entries(rows, start, hand, node_of, hand_of):
    """Write each entry's node and hand. In place."""
    at = 0
    for node in range(len(rows)):
        for k in range(start[rows[node]], start[rows[node] + 1]):
            node_of[at] = node
            hand_of[at] = hand[k]
            at += 1


@kernel
def _positions(params, dealt, paths, hands, nodes, which, states):
    """Set states[i] to node nodes[i], its mover holding hand which[i]. In place."""
    for i in range(len(nodes)):
        state = states[i]
        states[i] = dealt[0]
        for k in range(paths.shape[1]):
            play(params, state, np.int64(paths[nodes[i], k]))
        for seat in range(2):  # the other's hand is drawn again for whoever looks
            for face in range(MAX_FACES):
                state["counts"][seat, face] = 0
        for face in range(MAX_FACES):
            state["counts"][state["seat"], face] = hands[which[i], face]


@kernel
def _scatter(slots, first, child, call, raise_at, entry_at, node_of, begin, chances, copy, raises, calls):
    """Write the answers for the entries from `begin` on to where they belong. In place."""
    for i in range(len(chances)):
        entry = begin + i
        node = node_of[entry]
        slot = slots[node]
        alive = entry_at[node + 1] - entry_at[node]
        at = raise_at[node] + entry - entry_at[node]
        for edge in range(first[slot], first[slot + 1]):
            raises[at, copy] = chances[i, child[edge] - 1]
            at += alive
        calls[entry, copy] = chances[i, call]


@kernel
def _weigh(slots, rows, start, weight, first, entry_at, calls, raise_at, raises, alive):
    """Multiply chances by reach and count the hands that make each raise. In place."""
    at = 0
    for node in range(len(slots)):
        begin = start[rows[node]]
        hands = start[rows[node] + 1] - begin
        base = raise_at[node]
        for _ in range(first[slots[node]], first[slots[node] + 1]):
            alive[at] = 0
            for k in range(hands):
                positive = False
                for c in range(weight.shape[1]):
                    raises[base + k, c] *= weight[begin + k, c]
                    positive |= raises[base + k, c] > 0.0
                alive[at] += positive
            base += hands
            at += 1
        for k in range(hands):
            for c in range(weight.shape[1]):
                calls[entry_at[node] + k, c] *= weight[begin + k, c]


class Seats:
    """Compares what an agent does in one seat with what it does at the same positions in the other one.

    Attributes:
        alike: whether no difference has been seen so far.
    """

    def __init__(self) -> None:
        self.alike = True

    def compare(self, agent: Any, turn: Turn, chances: np.ndarray, other: Turn) -> None:
        """Look at the positions of a turn, where the agent has answered `chances`, in the other seat."""
        if getattr(agent, "observes_only", False):
            self.alike = np.array_equal(turn.observations, other.observations)
        else:
            self.alike = bool(np.abs(ask_probabilities(agent, other) - chances).max(initial=0.0) <= SAME)


class Asked:
    """An agent, asked at each information set that it reaches.

    Args:
        round_: the round.
        player: which of the two the agent is.
        agent: see `dice_envs.agent.ask_probabilities`.
        seat: the agent's.
        streams: (copies, ROWS_AT_ONCE) of the agent's own random streams; used up.
        seats: told whether the agent answers alike in the other seat. None: it is not asked there.
    """

    def __init__(
        self, round_: Round, player: int, agent: Any, seat: int, streams: np.ndarray, seats: Seats | None = None
    ) -> None:
        self._round, self._player, self._agent, self._streams = round_, player, agent, streams
        self._seats = seats
        starter = seat if player == 0 else 1 - seat
        self._dealt, self._dealt_other_way = round_.dealt(starter), round_.dealt(1 - starter)

    def write(self, asking: Asking) -> None:
        slots, paths, rows, reach = asking[:4]
        raises, calls = asking.raises, asking.calls
        node_of, hand_of = np.empty(len(calls), np.int64), np.empty(len(calls), np.int64)
        _list_entries(rows, reach.start, reach.hand, node_of, hand_of)
        rules = self._round.first, self._round.child, self._round.variant.params.call
        for begin in range(0, len(calls), ROWS_AT_ONCE):
            some = slice(begin, begin + ROWS_AT_ONCE)
            for copy in range(raises.shape[1]):
                chances = self.ask(paths, node_of[some], hand_of[some], self._streams[copy])
                _scatter(slots, *rules, asking.raise_at, asking.entry_at, node_of, begin, chances, copy, raises, calls)
        _weigh(slots, rows, reach.start, reach.weight, self._round.first, *asking[4:])

    def ask(self, paths: np.ndarray, nodes: np.ndarray, which: np.ndarray, streams: np.ndarray) -> np.ndarray:
        """Its probabilities at nodes with hands, (n, actions) float64."""
        before = streams[: len(nodes)].copy()
        turn = self._turn(self._dealt, paths, nodes, which, streams[: len(nodes)])
        chances = ask_probabilities(self._agent, turn)
        if self._seats is not None and self._seats.alike:
            self._seats.compare(self._agent, turn, chances, self._turn(self._dealt_other_way, paths, nodes, which, before))
        return chances

    def _turn(self, dealt: np.ndarray, paths: np.ndarray, nodes: np.ndarray, which: np.ndarray, streams: np.ndarray) -> Turn:
        variant = self._round.variant
        states = np.zeros(len(nodes), variant.game.state)
        _positions(variant.params, dealt, paths, self._round.hands[self._player], nodes, which, states)
        return Turn(variant, states, np.arange(len(nodes)), streams)


@kernel
def _look_up(slots, rows, start, hand, weight, first, made, table, table_calls, calls, raise_at, raises, alive):
    """Write reach times chance from a table of raises (edges, hands) and of calls (slots, hands). In place.

    `made` (edges,) tells the raises that some hand makes.
    """
    entry = 0
    edges = 0
    for node in range(len(slots)):
        slot = slots[node]
        begin = start[rows[node]]
        hands = start[rows[node] + 1] - begin
        at = raise_at[node]
        for edge in range(first[slot], first[slot + 1]):
            some = 0
            if made[edge]:
                for k in range(hands):
                    chance = table[edge, hand[begin + k]]
                    for c in range(weight.shape[1]):
                        raises[at + k, c] = chance * weight[begin + k, c]
                    some += chance > 0.0
            alive[edges] = some
            edges += 1
            at += hands
        for k in range(hands):
            for c in range(weight.shape[1]):
                calls[entry, c] = table_calls[slot, hand[begin + k]] * weight[begin + k, c]
            entry += 1


class Tabled:
    """An agent to whom only its own dice and the last bid matter, and not the bids before: asked once for each pair."""

    def __init__(self, asked: Asked, round_: Round, player: int) -> None:
        self._round = round_
        hands, slots = len(round_.hands[player]), len(round_.need)
        self._raises, self._calls = np.zeros((len(round_.child), hands)), np.zeros((slots, hands))
        before = {int(slot): parent for parent in range(1, slots) for slot in _raises_of(round_, parent)}
        streams = new_streams(0, hands)  # nothing is drawn
        for slot in range(slots):
            to = _raises_of(round_, slot)
            path = [slot] if slot > 0 else []
            if slot > 0 and player == 0 and slot in before:
                path.insert(0, before[slot])
            if not len(to) or len(path) % 2 != player:  # forced, or never this player's turn
                continue
            nodes = np.zeros(hands, np.int64)
            chances = asked.ask(np.array([path], np.int16).reshape(1, -1) - 1, nodes, np.arange(hands), streams)
            self._raises[round_.first[slot] : round_.first[slot + 1]] = chances[:, to - 1].T
            self._calls[slot] = chances[:, -1]
        self._made = self._raises.any(axis=1)

    @property
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """The chance of each raise (edges, hands) and of a call (slots, hands), float64."""
        return self._raises, self._calls

    def write(self, asking: Asking) -> None:
        tables = self._round.first, self._made, self._raises, self._calls
        _look_up(asking.slots, asking.rows, *asking.reach, *tables, asking.calls, asking.raise_at, asking.raises, asking.alive)


def source_of(round_: Round, player: int, agent: Any, seat: int, streams: np.ndarray, seats: Seats | None = None) -> Source:
    """Where an agent's probabilities come from: see `Asked`, and `Tabled` for one that declares itself memoryless."""
    by_asking = Asked(round_, player, agent, seat, streams, seats)
    return Tabled(by_asking, round_, player) if getattr(agent, "memoryless", False) else by_asking


class _Places(NamedTuple):
    """Where a policy in one list says what a player does, by the player to move and the slot or the edge."""

    size: np.ndarray  # (2, slots) int64: numbers of the whole subtree
    shift: np.ndarray  # (2, edges) int64: from where a node's numbers begin to where its child's do


@kernel
def _place_all(first, child, hands, player, size, shift):
    """Write `_Places` of a player with so many hands. In place; every raise leads to a higher slot."""
    for slot in range(len(first) - 2, -1, -1):
        edges = first[slot + 1] - first[slot]
        for mover in range(2):
            at = (1 + edges) * hands if mover == player and edges > 0 else 0
            for edge in range(first[slot], first[slot + 1]):
                shift[mover, edge] = at
                at += size[1 - mover, child[edge]]
            size[mover, slot] = at


@kernel
def _find(path, first, child, shift):
    """Where the numbers of the node begin that the bids lead to; −1 if they are no legal bids."""
    at = 0
    slot = 0
    for k in range(len(path)):
        low = first[slot]
        high = first[slot + 1]
        while low < high:
            middle = (low + high) // 2
            if child[middle] < path[k] + 1:
                low = middle + 1
            else:
                high = middle
        if low == first[slot + 1] or child[low] != path[k] + 1:
            return -1
        at += shift[k % 2, low]
        slot = child[low]
    return at


@kernel
def _read_list(slots, paths, rows, start, hand, weight, first, child, shift, size, policy, calls, raise_at, raises, alive):
    """Write reach times chance from a policy in one list, with `size` hands. In place."""
    entry = 0
    edges = 0
    for node in range(len(slots)):
        begin = start[rows[node]]
        hands = start[rows[node] + 1] - begin
        at = _find(paths[node], first, child, shift)
        for k in range(hands):
            calls[entry + k, 0] = policy[at + hand[begin + k]] * weight[begin + k, 0]
        entry += hands
        to = raise_at[node]
        for _ in range(first[slots[node]], first[slots[node] + 1]):
            at += size
            some = 0
            for k in range(hands):
                raises[to + k, 0] = policy[at + hand[begin + k]] * weight[begin + k, 0]
                some += raises[to + k, 0] > 0.0
            alive[edges] = some
            edges += 1
            to += hands


class Listed:
    """A player whose policy stands in one list.

    The list has a part for each node at which the player has a choice, parents before their children and the children in
    rising order of bids, each with all that follows it before the next. A part holds the chance of a call for each
    hand (0 before the first bid), then the chance of each raise, in rising order, for each hand: (1 + raises, hands).
    `part` is the part of a node.

    Args:
        round_: the round.
        player: whose policy it is.
        policy: (size,) float64 or float32; None: zeros, to be filled.

    Attributes:
        policy: the list.

    Raises:
        ValueError: the list has the wrong size.
    """

    def __init__(self, round_: Round, player: int, policy: np.ndarray | None = None) -> None:
        self._round, self._player = round_, player
        slots, edges = len(round_.need), len(round_.child)
        self._places = _Places(np.zeros((2, slots), np.int64), np.zeros((2, edges), np.int64))
        self._hands = len(round_.hands[player])
        _place_all(round_.first, round_.child, self._hands, player, *self._places)
        size = int(self._places.size[0, 0])
        self.policy = np.zeros(size) if policy is None else policy
        if self.policy.shape != (size,):
            raise ValueError(f"the policy must be a list of {size:,} numbers, not of shape {self.policy.shape}")

    def part(self, bids: tuple[int, ...]) -> np.ndarray:
        """What the list says of the node that the bids lead to, (1 + raises, hands): a view.

        Raises:
            ValueError: the bids are not legal, or the player has no choice there.
        """
        at = _find(np.array(bids, np.int64), self._round.first, self._round.child, self._places.shift)
        raises = len(_raises_of(self._round, bids[-1] + 1 if bids else 0))
        if at < 0 or not raises or len(bids) % 2 != self._player:
            raise ValueError(f"the player has no choice after the bids {bids}")
        return self.policy[at : at + (1 + raises) * self._hands].reshape(1 + raises, self._hands)

    def write(self, asking: Asking) -> None:
        if asking.raises.shape[1] != 1:
            raise ValueError("a policy in a list gives one answer, not two")
        rules = self._round.first, self._round.child, self._places.shift, self._hands, self.policy
        places = asking.calls, asking.raise_at, asking.raises, asking.alive
        _read_list(asking.slots, asking.paths, asking.rows, *asking.reach, *rules, *places)


def _raises_of(round_: Round, slot: int) -> np.ndarray:
    return round_.child[round_.first[slot] : round_.first[slot + 1]]


# --- a best response --------------------------------------------------------------------------------------------------


@kernel
def _count_inner(slots, first, child):
    inner = 0
    for node in range(len(slots)):
        for edge in range(first[slots[node]], first[slots[node] + 1]):
            inner += first[child[edge]] < first[child[edge] + 1]
    return inner


@kernel
def _list_inner(slots, first, child, node_of, edge_of):
    """Write the raises that leave the other a choice, for each node. In place; they have been counted."""
    at = 0
    for node in range(len(slots)):
        for edge in range(first[slots[node]], first[slots[node] + 1]):
            if first[child[edge]] < first[child[edge] + 1]:
                node_of[at] = node
                edge_of[at] = edge
                at += 1


@kernel
def _tails(begin, end, hand, weight, face, matches, tail):
    """Write the tails of one row of reach for a face. In place."""
    tail[:] = 0.0
    for k in range(begin, end):
        match = matches[hand[k], face]
        for c in range(weight.shape[1]):
            tail[match, c] += weight[k, c]
    _sum_up(tail)


@kernel
def _choose(
    slots, rows, start, hand, weight, first, child, face, matches, most, count, call_at, calls, map_at, maps,
    value_at, below, below_at, values, choice,
):  # fmt: skip
    """Write what the responder, who is to move, can win with each class of its hands, and its choice. In place.

    `values` (n, copies) and `choice` (n,), an edge or CALL, begin at value_at[node] for each node; `below` holds the values
    of the children, one for each raise that leaves the other a choice, at `below_at`. `most` is the number of the
    other's dice, which no match exceeds. The other arrays are the responder's `Classes` where it is to move.
    """
    copies = weight.shape[1]
    tail = np.empty((most + 2, copies))
    next_child = 0
    for node in range(len(slots)):
        slot = slots[node]
        begin, end = start[rows[node]], start[rows[node] + 1]
        at = value_at[node]
        if slot > 0:
            _tails(begin, end, hand, weight, face[slot], matches, tail)
        for k in range(count[slot]):
            choice[at + k] = CALL
            for c in range(copies):
                values[at + k, c] = tail[0, c] - tail[calls[call_at[slot] + k], c] if slot > 0 else -1.0
        for edge in range(first[slot], first[slot + 1]):
            forced = first[child[edge]] == first[child[edge] + 1]
            if forced:
                _tails(begin, end, hand, weight, face[child[edge]], matches, tail)
            for k in range(count[slot]):
                to = maps[map_at[edge] + k]
                if to == CALL:
                    continue
                if forced:
                    if tail[to, 0] > values[at + k, 0]:
                        choice[at + k] = edge
                        for c in range(copies):
                            values[at + k, c] = tail[to, c]
                elif below[below_at[next_child] + to, 0] > values[at + k, 0]:
                    choice[at + k] = edge
                    for c in range(copies):
                        values[at + k, c] = below[below_at[next_child] + to, c]
            if not forced:
                next_child += 1


@kernel
def _add_up(
    slots, count, call_at, calls, map_at, maps, call_tails, leaf_node, leaf_edge, leaf_tail, child_node, child_edge,
    value_at, below, below_at, values,
):  # fmt: skip
    """Write what the responder wins with each class of its hands where the other is to move. In place.

    `values` begin at value_at[node], and those of the children, `below`, at `below_at`.
    """
    copies = values.shape[1]
    for node in range(len(slots)):
        slot = slots[node]
        for k in range(count[slot]):
            for c in range(copies):
                values[value_at[node] + k, c] = call_tails[node, calls[call_at[slot] + k], c]  # 0 before the first bid
    for leaf in range(len(leaf_node)):
        at = value_at[leaf_node[leaf]]
        tail = leaf_tail[leaf]
        for k in range(count[slots[leaf_node[leaf]]]):
            to = maps[map_at[leaf_edge[leaf]] + k]
            for c in range(copies):
                values[at + k, c] += tail[0, c] - tail[to, c]
    for i in range(len(child_node)):
        at = value_at[child_node[i]]
        for k in range(count[slots[child_node[i]]]):
            to = below_at[i] + maps[map_at[child_edge[i]] + k]
            for c in range(copies):
                values[at + k, c] += below[to, c]


Record = Callable[[tuple[int, ...], np.ndarray], Any]


class _Response:
    """One walk that finds a best response to an asked player."""

    def __init__(self, round_: Round, player: int, source: Source, done: Callable[[float], Any], record: Record | None) -> None:
        self._round, self._player, self._source, self._done, self._record = round_, player, source, done, record
        self._classes = round_.classes[1 - player]

    def value(self, copies: int) -> np.ndarray:
        batch, reaches = _deal(self._round, (self._player,), copies)
        values = self._values(batch, reaches[self._player])
        of = self._classes.of[0, 0]
        found: np.ndarray = self._round.chances[1 - self._player] @ values[of]
        return found

    def _values(self, batch: Batch, reach: Reach) -> np.ndarray:
        """What the responder wins at each node with each class of its hands, times what reaches the node, (n, copies)."""
        mover = batch.paths.shape[1] % 2
        rows = batch.rows[:, self._player]
        classes = self._classes.size[mover][batch.slots]
        numbers = (reach.start[rows + 1] - reach.start[rows] + classes) * reach.weight.shape[1]
        parts = _parts(self._round.decisions.sum(axis=0)[batch.slots] * numbers)
        if len(parts) > 1:
            return np.concatenate([self._values(batch.part(*part), reach) for part in parts])
        value_at = np.concatenate([[0], np.cumsum(classes)])
        values = np.empty((value_at[-1], reach.weight.shape[1]))
        if not len(values):
            return values
        (self._sum if mover == self._player else self._maximise)(batch, mover, reach, value_at, values)
        return values

    def _below(self, children: Batch, mover: int, reach: Reach) -> tuple[np.ndarray, np.ndarray]:
        classes = self._classes.size[1 - mover][children.slots]
        return self._values(children, reach), np.concatenate([[0], np.cumsum(classes)])

    def _tables(self, mover: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        of = self._classes
        return of.size[mover], of.call_at[mover], of.calls, of.map_at[mover], of.maps

    def _sum(self, batch: Batch, mover: int, reach: Reach, value_at: np.ndarray, values: np.ndarray) -> None:
        round_ = self._round
        moves = _moves(round_, batch, mover, reach, self._source)
        children = _children(batch, mover, round_, moves.node, moves.edge, np.arange(len(moves.node)))
        # All decisions of the player here and in the subtrees that it does not reach are done with.
        other = round_.decisions[1]
        reached = float(other[round_.child[moves.edge]].sum())
        self._done((float(round_.decisions[0, batch.slots].sum()) - reached) * len(round_.hands[mover]))
        below, below_at = self._below(children, mover, moves.reach)
        leaves = moves.leaf_node, moves.leaf_edge, moves.leaf_tail
        of_children = moves.node, moves.edge, value_at, below, below_at
        _add_up(batch.slots, *self._tables(mover), moves.calls, *leaves, *of_children, values)

    def _maximise(self, batch: Batch, mover: int, reach: Reach, value_at: np.ndarray, values: np.ndarray) -> None:
        round_, other = self._round, self._player
        inner = _count_inner(batch.slots, round_.first, round_.child)
        nodes, edges = np.empty(inner, np.int64), np.empty(inner, np.int64)
        _list_inner(batch.slots, round_.first, round_.child, nodes, edges)
        below, below_at = self._below(_children(batch, mover, round_, nodes, edges, None), mover, reach)
        rows = np.ascontiguousarray(batch.rows[:, other])
        choice = np.empty(len(values), np.int64)
        _choose(
            batch.slots, rows, *reach, round_.first, round_.child, round_.face, round_.matches[other], round_.dice[other],
            *self._tables(mover), value_at, below, below_at, values, choice,
        )  # fmt: skip
        if self._record is not None:
            for node, slot in enumerate(batch.slots):
                edge = choice[value_at[node] + self._classes.of[mover, slot]]
                self._record(tuple(batch.paths[node].tolist()), np.where(edge == CALL, CALL, round_.child[edge] - 1))


def respond(
    round_: Round,
    player: int,
    source: Source,
    copies: int = 1,
    done: Callable[[float], Any] = lambda amount: None,
    record: Record | None = None,
) -> np.ndarray:
    """The greatest chance with which anybody wins the round from a player, (copies,) float64.

    Args:
        round_: the round.
        player: who is asked; the other one responds.
        source: the player's probabilities.
        copies: 2: `source` writes two answers; the response to the first is valued against each.
        done: told of how many of the player's information sets the walk is done with.
        record: told of the response at each node that is reached: the bids made, and for each of the responder's
            hands a bid or CALL.
    """
    return _Response(round_, player, source, done, record).value(copies)


# --- two agents -----------------------------------------------------------------------------------------------------


@kernel
def _decide(nodes, edges, tails, slots, rows, start, hand, weight, child, face, need, matches, most):
    """How likely calls are, and how likely they are of bids that hold.

    Call i is made at or after node nodes[i]: of the bid there, or where `edges` is not empty of the one that edges[i] leads
    to. `tails` are one player's, the reach is the other's; `most` is the number of the first's dice.
    """
    called = 0.0
    held = 0.0
    for i in range(len(nodes)):
        node = nodes[i]
        slot = child[edges[i]] if len(edges) > 0 else slots[node]
        if tails[i, 0, 0] > 0.0:
            for k in range(start[rows[node]], start[rows[node] + 1]):
                to = _threshold(need[slot], matches[hand[k], face[slot]], most)
                called += tails[i, 0, 0] * weight[k, 0]
                held += tails[i, to, 0] * weight[k, 0]
    return called, held


class _Meeting:
    """One walk that finds out how often one asked player wins from another."""

    def __init__(self, round_: Round, sources: tuple[Source, Source], done: Callable[[float], Any]) -> None:
        self._round, self._sources, self._done = round_, sources, done
        self.starter_wins = 0.0

    def walk(self, batch: Batch, reaches: list[Reach]) -> None:
        round_, mover = self._round, batch.paths.shape[1] % 2
        if not len(batch.slots):
            return
        numbers = sum(each.start[rows + 1] - each.start[rows] for each, rows in zip(reaches, batch.rows.T, strict=True))
        parts = _parts(round_.decisions.sum(axis=0)[batch.slots] * numbers)
        if len(parts) > 1:
            for part in parts:
                self.walk(batch.part(*part), reaches)
            return
        moves = _moves(round_, batch, mover, reaches[mover], self._sources[mover])
        rows = np.ascontiguousarray(batch.rows[:, 1 - mover])
        seen = batch.slots, rows, *reaches[1 - mover], round_.child, round_.face, round_.need
        seen += round_.matches[1 - mover], round_.dice[mover]
        called, held = _decide(np.arange(len(batch.slots)), np.zeros(0, np.int64), moves.calls, *seen)
        forced, forced_held = _decide(moves.leaf_node, moves.leaf_edge, moves.leaf_tail, *seen)
        # The mover wins by calling what fails, and by bidding what holds when it is called.
        won, lost = called - held + forced_held, held + forced - forced_held
        self.starter_wins += won if mover == 0 else lost
        below = round_.decisions.sum(axis=0)
        self._done(float(below[batch.slots].sum() - below[round_.child[moves.edge]].sum()))
        children = _children(batch, mover, round_, moves.node, moves.edge, np.arange(len(moves.node)))
        self.walk(children, [moves.reach if player == mover else reaches[player] for player in range(2)])


def meet(round_: Round, sources: tuple[Source, Source], done: Callable[[float], Any] = lambda amount: None) -> float:
    """The chance that the starter wins the round. `done` is told of how many public nodes the walk is done with."""
    meeting = _Meeting(round_, sources, done)
    meeting.walk(*_deal(round_, (0, 1), 1))
    return meeting.starter_wins
