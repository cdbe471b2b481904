"""Walks one round of Liar's Dice, and values it for coalitions: best responses, and the policies as they are.

A *coalition* is made of players who leave their policies and respond as one to those of all others, each knowing the dice of
all members. Of one member it is a best response; without members it learns the value of the policies. All coalitions are valued
in one walk, so that a player is asked once for all of them.

Nodes are walked in batches of one depth, all with the same player to move. A batch whose subtrees would take too much
memory is split, so a round of any size is walked in bounded memory. Agents are not put into the numbers of a solution
(`tree`): its tree leaves out raises that an agent may make, and with all of them a round of six dice each takes 735 million
numbers, 2.9 GB.

Nodes at which calling is the only legal action are no decisions: the call is counted where the bid is made. A coalition's hands
are merged into classes that no later call tells apart.

The others' dice are independent, and each plays by its own dice and what is public. So what a call is worth to a coalition with
a hand follows from how likely the others come to the node with 0, 1, 2, … dice that count for the bid. Of two players there is
one other, whose numbers are taken as they are; those of several are convolved, which `_add_dice` alone does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.core.work import advance
from dice_envs.games.liars_dice.exact.moves import (
    Nodes,
    PlayerMoves,
    Reach,
    Source,
    deal,
    ends_of,
    entries_of,
    moves_of,
    parts_of,
)
from dice_envs.games.liars_dice.exact.round import CALL, Round, hands_of, must_call


class Coalition(NamedTuple):
    """Players of a round who respond as one, and what they play for."""

    members: tuple[int, ...]
    payoffs: (
        np.ndarray
    )  # (players,) float64: what the rest of the game is worth to the coalition if a player loses the round's die


class Winnings(NamedTuple):
    """A coalition's winnings at the nodes of a batch, by its classes of hands, times how likely all others come there."""

    at: np.ndarray  # (nodes + 1,) int64: where each node's part of `won` begins; it is empty where the others never come
    won: np.ndarray  # (n, copies) float64


# --- valuing the nodes of a batch -----------------------------------------------------------------------------------------


@kernel
def _add_dice(reach, rows, matches, faces, is_first, tails):
    """Add a player's dice to `tails` (n, numbers, copies), how likely players come to nodes with k or more matches. In place.

    Entry i is of row rows[i] of the player's reach and face faces[i]. `tails` has more numbers than the player has dice, so
    each match has room. Where the player never comes (row −1), the tails become 0. With `is_first` it is the first of the
    players, and `tails` may hold anything.
    """
    numbers, copies = tails.shape[1:]
    matched, sums = np.zeros((numbers, copies)), np.zeros((numbers, copies))
    for i in range(len(rows)):
        matched[:] = 0.0
        most, row = 0, rows[i]
        if row >= 0:
            for entry in range(reach.start[row], reach.start[row + 1]):
                match = matches[reach.hand[entry], faces[i]]
                most = max(most, match)
                for c in range(copies):
                    matched[match, c] += reach.weight[entry, c]
        if is_first:
            for c in range(copies):
                more = 0.0
                for k in range(numbers - 1, -1, -1):
                    more += matched[k, c]
                    tails[i, k, c] = more
            continue
        for c in range(copies):
            for k in range(numbers):
                sums[k, c] = 0.0
                for match in range(most + 1):
                    sums[k, c] += matched[match, c] * tails[i, max(k - match, 0), c]
            for k in range(numbers):
                tails[i, k, c] = sums[k, c]


def _list_edges(first: np.ndarray, edges: np.ndarray, slots: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of some of a batch's nodes, node by node: the node of each, and the edge.

    `edges` lists edges by slot; those of a slot begin at first[slot].
    """
    begin = first[slots[nodes]]
    count = first[slots[nodes] + 1] - begin
    return np.repeat(nodes, count), edges[entries_of(begin, count)]


class _View(NamedTuple):
    """A coalition where one of the players is to move, for kernels."""

    size: np.ndarray  # see `round.Classes`
    call_at: np.ndarray
    calls: np.ndarray
    map_at: np.ndarray
    maps: np.ndarray
    before: float  # what the rest of the game is worth to it if the player before the mover loses the die
    here: float  # if the mover does
    after: float  # if the player after the mover does


class Others(NamedTuple):
    """Tails of the players outside a coalition at some nodes of a batch."""

    nodes: np.ndarray  # (n,) int64
    tails: np.ndarray  # (n, numbers, copies): for the last bid
    leaf_tails: np.ndarray  # (leaves, numbers, copies): for raises that must be called


@kernel(allocates=False, inline=True)
def _called(tails, i, needed, c, caller, bidder):
    """Return what a call is worth if the bid holds with `needed` matches of the others, from what either loss is worth."""
    holds = tails[i, needed, c]
    return holds * caller + (tails[i, 0, c] - holds) * bidder


@kernel(allocates=False, inline=True)
def _bid_last(view, edge, size, tails, leaf, found, at, choice):
    """Choose a raise that must be called with the classes of a node's hands with which it wins more. In place."""
    for k in range(size):
        needed = view.maps[view.map_at[edge] + k]
        if needed != CALL and _called(tails, leaf, needed, 0, view.after, view.here) > found.won[at + k, 0]:
            choice[at + k] = edge
            for c in range(tails.shape[2]):
                found.won[at + k, c] = _called(tails, leaf, needed, c, view.after, view.here)


@kernel(allocates=False, inline=True)
def _bid_on(view, edge, size, below, child, found, at, choice):
    """Choose a raise after which the next player has a choice with the classes of hands with which it wins more. In place."""
    for k in range(size):
        entry = view.maps[view.map_at[edge] + k]
        if entry != CALL and below.won[below.at[child] + entry, 0] > found.won[at + k, 0]:
            choice[at + k] = edge
            for c in range(below.won.shape[1]):
                found.won[at + k, c] = below.won[below.at[child] + entry, c]


@kernel(allocates=False)
def _choose(rules, slots, view, others, children, below, found, choice):
    """Write a coalition's greatest winnings with each class of its hands where a member is to move, and its choices. In place.

    `found` has entries for the nodes to which `others` come. A member may make every raise, so there is one of `children`, with
    the winnings `below`, for each that leaves a choice. `choice`, (n,) int64, is an edge or CALL, for each class of each node:
    what wins most against the first copy.
    """
    child = leaf = 0
    for i in range(len(others.nodes)):
        node = others.nodes[i]
        slot, at = slots[node], found.at[node]
        size = view.size[slot]
        while child < len(children.node) and children.node[child] < node:
            child += 1
        for k in range(size):
            choice[at + k] = CALL
            needed = view.calls[view.call_at[slot] + k]
            for c in range(found.won.shape[1]):
                found.won[at + k, c] = _called(others.tails, i, needed, c, view.here, view.before) if slot > 0 else -np.inf
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            if must_call(rules, rules.child[edge]):
                _bid_last(view, edge, size, others.leaf_tails, leaf, found, at, choice)
                leaf += 1
            else:
                _bid_on(view, edge, size, below, child, found, at, choice)
                child += 1


@kernel(allocates=False)
def _add_up(slots, view, others, moves, children, below, found):
    """Write a coalition's winnings with each class of its hands where another is to move, which follows its policy. In place.

    `others` are at the nodes at which the mover was asked, the mover with them: where it calls, and at its leaves. `below` are
    the winnings at the children.
    """
    copies = found.won.shape[1]
    found.won[:] = 0.0
    for i in range(len(others.nodes)):
        node = others.nodes[i]
        slot, at = slots[node], found.at[node]
        for k in range(found.at[node + 1] - at if slot > 0 else 0):
            needed = view.calls[view.call_at[slot] + k]
            for c in range(copies):
                found.won[at + k, c] += _called(others.tails, i, needed, c, view.here, view.before)
    for leaf in range(len(moves.leaf_node)):
        node, to = others.nodes[moves.leaf_node[leaf]], view.map_at[moves.leaf_edge[leaf]]
        at = found.at[node]
        for k in range(found.at[node + 1] - at):
            needed = view.maps[to + k]
            for c in range(copies):
                found.won[at + k, c] += _called(others.leaf_tails, leaf, needed, c, view.after, view.here)
    for child in range(len(children.node)):
        node, to, base = children.node[child], view.map_at[children.edge[child]], below.at[child]
        at = found.at[node]
        for k in range(found.at[node + 1] - at if below.at[child + 1] > base else 0):
            for c in range(copies):
                found.won[at + k, c] += below.won[base + view.maps[to + k], c]


# --- the walk -------------------------------------------------------------------------------------------------------------


class _Children(NamedTuple):
    """The nodes below those of a batch at which somebody has a choice, parent by parent."""

    node: np.ndarray  # (children,) int64: the parent
    edge: np.ndarray  # (children,) int64
    row: np.ndarray  # (children,) int64: of the mover's new reach; −1 where its policy does not go


class _Visit(NamedTuple):
    """A batch with what lies below it."""

    batch: Nodes
    mover: int
    reaches: list[Reach]
    asked: np.ndarray  # (n,) int64: nodes at which the mover is asked
    children: _Children

    def view(self, coalition: _Coalition) -> _View:
        """Return a coalition for kernels."""
        each, players = coalition.classes, len(coalition.payoffs)
        payoffs = [float(coalition.payoffs[(self.mover + more) % players]) for more in (-1, 0, 1)]
        return _View(each.size[self.mover], each.call_at[self.mover], each.calls, each.map_at[self.mover], each.maps, *payoffs)


# Callback for a walk of two players with one responder, at each batch: the nodes, the asked player's tails, the values, and its
# moves where it is to move; where the responder is, the edge that it chooses, or CALL, for each class of each node, (n,) int64.
Keep = Callable[[Nodes, Others, Winnings, PlayerMoves | np.ndarray], Any]


class _Coalition:
    """A coalition in a round, with its hands.

    Attributes:
        members: its players.
        others: all other players, who are asked.
        chances: of its hands, which are those of one player with all dice of its members.
        classes: of its hands.
        payoffs: see `Coalition`.
    """

    def __init__(self, round_: Round, of: Coalition) -> None:
        players = range(len(round_.dice))
        self.members, self.payoffs = of.members, np.asarray(of.payoffs, np.float64)
        self.others = [player for player in players if player not in of.members]
        dice = sum(round_.dice[member] for member in of.members)
        _, self.chances, matches = hands_of(round_.variant, dice, round_.wild)
        wants_to_win = (
            len(players) == 2 and len(self.members) == 1 and self.payoffs[self.others[0]] >= self.payoffs[self.members[0]]
        )
        self.classes = round_.classes_of(of.members, matches, bool(wants_to_win))


class Walk:
    """A walk of one round.

    Args:
        round_: the round.
        sources: of each player's probabilities; that of a player who is in all coalitions is not asked.
        coalitions: each responds to the others' policies, and wins `Coalition.payoffs` by who loses a die. One without
            members learns the mean of its payoffs when all follow their policies. None has all players.
        copies: 2: sources write two answers; the response to the first is valued against each.
        keep: keeps the values, the reach and the response at the nodes that are reached by one of two players.
    """

    def __init__(
        self,
        round_: Round,
        sources: Sequence[Source],
        coalitions: Sequence[Coalition],
        copies: int = 1,
        keep: Keep | None = None,
    ) -> None:
        self._round, self._sources, self._copies, self._keep = round_, sources, copies, keep
        mixed = (1 + len(source.weights) for source in sources if source.weights is not None)
        self._most_copies = max(copies, *mixed, 1)
        self._coalitions = [_Coalition(round_, coalition) for coalition in coalitions]
        self._asked = sorted({player for coalition in self._coalitions for player in coalition.others})
        rules, players = round_.rules, range(len(round_.dice))
        self._below = round_.decisions.sum(axis=0)
        hands = np.array([len(round_.hands[player]) if player in self._asked else 0 for player in players])
        # Information sets of those who are asked in the subtree of a slot, by its mover.
        self._sets = np.array([np.roll(hands, -mover) @ round_.decisions for mover in players])
        ends = np.diff(rules.first)[rules.child] == 0
        slot_of = np.repeat(np.arange(len(rules.need)), np.diff(rules.first))
        # Raises that must be called and those that leave a choice: where each slot's begin, and a list of them.
        self._last, self._inner = (
            (ends_of(np.bincount(slot_of[which], minlength=len(rules.need))), np.flatnonzero(which)) for which in (ends, ~ends)
        )
        self._least, self._merges = 0.0, False
        if len(self._coalitions) == len(self._asked) == 1 and keep is None:  # which needs every node
            (asked,), (coalition,) = self._asked, self._coalitions
            self._merges = sources[asked].ignores_dice
            most = round_.decisions[list(coalition.members), 0].sum() * hands[asked]  # pairs of a node and a hand to leave out
            self._least = sources[asked].neglected / max(1.0, most)

    def values(self) -> np.ndarray:
        """Walk the round; return what it is worth to each coalition, (coalitions, copies) float64."""
        batch, reaches = deal(self._round, self._asked, self._copies, self._sources)
        each = zip(self._coalitions, self._values_of(batch, reaches), strict=True)
        return np.array([coalition.chances @ values.won[coalition.classes.of[0, 0]] for coalition, values in each])

    def _values_of(self, batch: Nodes, reaches: list[Reach]) -> list[Winnings]:
        if self._merges and (merged := self._merged(batch, reaches)) is not None:
            return [merged]
        mover = batch.paths.shape[1] % len(self._round.dice)
        reached = batch.rows >= 0
        sizes = [
            coalition.classes.size[mover, batch.slots]
            * np.logical_and.reduce([reached[:, player] for player in coalition.others])
            for coalition in self._coalitions
        ]
        numbers = sum(sizes)
        for player in self._asked:
            rows, start = batch.rows[:, player], reaches[player].start
            numbers = numbers + (start[rows + 1] - start[rows]) * reached[:, player]
        ends = [ends_of(size) for size in sizes]
        parts = parts_of(self._below[batch.slots] * numbers * self._most_copies)
        if len(parts) > 1 and not self._merges:  # merged batches are small
            visited = [self._values_of(batch.part(*part), reaches) for part in parts]
            won = [np.concatenate([each.won for each in values]) for values in zip(*visited, strict=True)]
            return [Winnings(*each) for each in zip(ends, won, strict=True)]
        found = [Winnings(end, np.empty((end[-1], self._copies))) for end in ends]
        if any(len(values.won) for values in found):
            self._value_nodes(batch, mover, reaches, found)
        return found

    def _merged(self, batch: Nodes, reaches: list[Reach]) -> Winnings | None:
        """Return the values from those of one node of each slot; None if the batch has no two nodes of a slot.

        Nodes of a slot differ only by how likely the asked player comes there, with any hand.
        """
        _, first, which = np.unique(batch.slots, return_index=True, return_inverse=True)
        if len(first) == len(batch.slots):
            return None
        (one,) = self._values_of(Nodes(*(each[first] for each in batch)), reaches)
        (asked,) = self._asked
        sets = self._sets[batch.paths.shape[1] % len(self._round.dice), batch.slots]
        advance(float(sets.sum() - sets[first].sum()))
        chance = reaches[asked].weight[reaches[asked].start[batch.rows[:, asked]]]
        size = np.diff(one.at)[which]
        at = ends_of(size)
        won = one.won[entries_of(one.at[which], size)]
        return Winnings(at, won * np.repeat(chance / chance[first][which], size, axis=0))

    def _value_nodes(self, batch: Nodes, mover: int, reaches: list[Reach], found: list[Winnings]) -> None:
        """Write the values of a batch."""
        round_ = self._round
        live = np.array([np.diff(values.at) > 0 for values in found])
        is_member = np.array([mover in coalition.members for coalition in self._coalitions])
        free, asked = live[is_member].any(axis=0), np.flatnonzero(live[~is_member].any(axis=0))
        moves = None
        if len(asked):
            some = Nodes(*(each[asked] for each in batch)) if len(asked) < len(batch.slots) else batch
            moves = moves_of(round_, some, mover, reaches[mover], self._sources[mover], self._least)
        children = self._children(batch.slots, free, asked, moves)
        lower = batch.below(mover, round_, *children)
        lower_reaches = list(reaches)
        if moves is not None:
            lower_reaches[mover] = moves.reach
        # The information sets here and in the subtrees to which nobody goes are done.
        below_here = self._sets[(mover + 1) % len(round_.dice), lower.slots]
        advance(float(self._sets[mover, batch.slots].sum() - below_here.sum()))
        visit = _Visit(batch, mover, reaches, asked, children)
        for coalition, values, below in zip(self._coalitions, found, self._values_of(lower, lower_reaches), strict=True):
            if mover in coalition.members:
                self._respond(coalition, visit, below, values)
            elif moves is not None:
                self._sum(coalition, visit, moves, below, values)

    def _children(self, slots: np.ndarray, free: np.ndarray, asked: np.ndarray, moves: PlayerMoves | None) -> _Children:
        """Return all children of nodes that are free, and of the others those that the mover's policy goes to."""
        made_at, made = (asked[moves.node], moves.edge) if moves is not None else (asked, asked)  # both empty
        own = np.arange(len(made))
        if not free.any():
            return _Children(made_at, made, own)
        node, edge = _list_edges(*self._inner, slots, np.flatnonzero(free))
        if not len(own):
            return _Children(node, edge, np.full(len(node), -1))
        width = len(self._round.rules.child)
        keys = np.union1d(node * width + edge, made_at * width + made)
        rows = np.full(len(keys), -1)
        rows[np.searchsorted(keys, made_at * width + made)] = own
        return _Children(keys // width, keys % width, rows)

    def _respond(self, coalition: _Coalition, visit: _Visit, below: Winnings, found: Winnings) -> None:
        """Write a coalition's values of nodes at which a member is to move."""
        rules, batch = self._round.rules, visit.batch
        nodes = np.flatnonzero(np.diff(found.at))
        others = self._others(coalition, visit, nodes, *_list_edges(*self._last, batch.slots, nodes))
        choice = np.empty(len(found.won), np.int64)
        _choose(rules, batch.slots, visit.view(coalition), others, visit.children, below, found, choice)
        if self._keep is not None:
            self._keep(batch, others, found, choice)

    def _sum(self, coalition: _Coalition, visit: _Visit, moves: PlayerMoves, below: Winnings, found: Winnings) -> None:
        """Write a coalition's values of nodes at which another is to move."""
        others = self._others(coalition, visit, visit.asked, visit.asked[moves.leaf_node], moves.leaf_edge, moves)
        _add_up(visit.batch.slots, visit.view(coalition), others, moves, visit.children, below, found)
        if self._keep is not None:
            self._keep(visit.batch, others, found, moves)

    def _others(
        self,
        coalition: _Coalition,
        visit: _Visit,
        nodes: np.ndarray,
        leaf_nodes: np.ndarray,
        leaf_edges: np.ndarray,
        moves: PlayerMoves | None = None,
    ) -> Others:
        """Return all outside a coalition at nodes, and at leaves below nodes. `moves` are the mover's, if it is one of them."""
        rules, slots = self._round.rules, visit.batch.slots
        tails, leaf_tails = (
            np.empty((len(each), sum(self._round.dice[player] for player in coalition.others) + 2, self._copies))
            for each in (nodes, leaf_nodes)
        )
        for player in coalition.others:
            reach, rows = visit.reaches[player], visit.batch.rows[:, player]
            parts = (reach, rows[nodes]), (reach, rows[leaf_nodes])
            if player == visit.mover and moves is not None:
                parts = (moves.calls, np.arange(len(nodes))), (moves.leaves, np.arange(len(leaf_nodes)))
            is_first, matches = player == coalition.others[0], self._round.matches[player]
            _add_dice(*parts[0], matches, rules.face[slots[nodes]], is_first, tails)
            _add_dice(*parts[1], matches, rules.face[rules.child[leaf_edges]], is_first, leaf_tails)
        return Others(nodes, tails, leaf_tails)
