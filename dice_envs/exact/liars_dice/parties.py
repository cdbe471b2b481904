"""Walks one round of Liar's Dice at a table, all of whose players follow fixed policies, and values it for several parties.

A *party* is made of players who leave their policies and respond as one to those of all others, each knowing the dice of
all members. One member: a best response. Several: a coalition. None: the value of the policies. All parties are valued in one
walk, so that a player is asked once for all of them.

Nodes are walked in batches of one depth, all with the same player to move, as in `dice_envs.exact.liars_dice.walk`. The
others' dice are independent, and each plays by its own dice and what is public. So all that matters of them at a node is how
likely each comes there with 0, 1, 2, … dice that count for a bid, its *spread*; what a call is worth to a party's hand
follows from the sum of these independent numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.moves import Batch, Moves, Reach, deal, moves_of, parts_of
from dice_envs.exact.liars_dice.round import Round, Rules, hands_of, matches_of, must_call
from dice_envs.exact.liars_dice.sources import Source

__all__ = ["Party", "walk"]


class Party(NamedTuple):
    """Players of a round who respond as one, and what they play for."""

    members: tuple[int, ...]
    worth: np.ndarray  # (players,) float64: what the rest of the game is worth to the party if a player loses the round's die


# --- what kernels receive -----------------------------------------------------------------------------------------------


class _View(NamedTuple):
    """A party, as kernels see it."""

    worth: np.ndarray  # (players,) float64
    others: np.ndarray  # int64: the players who follow their policies
    matches: np.ndarray  # (hands, faces) int64: dice of the party's hands that count for a bid on the face


class _Scene(NamedTuple):
    """The nodes of a batch."""

    rules: Rules
    mover: int
    slots: np.ndarray  # (nodes,) int64
    spread: np.ndarray  # (nodes, players, faces, dice + 1) float64: how likely each player comes there with so many matches


class _Children(NamedTuple):
    """The nodes below those of a batch at which somebody has a choice, parent by parent."""

    node: np.ndarray  # (children,) int64: the parent
    edge: np.ndarray  # (children,) int64
    row: np.ndarray  # (children,) int64: of the mover's new reach; −1 where its policy does not go


class _Found(NamedTuple):
    """A party's winnings at the nodes of a batch, by its hands, times how likely all others come there."""

    at: np.ndarray  # (nodes,) int64: row of `won`; −1 where the others never come
    won: np.ndarray  # (rows, hands) float64


class _Scratch(NamedTuple):
    sums: np.ndarray  # (dice in play + 2,) float64
    more: np.ndarray  # (dice in play + 2,) float64


# --- sums of dice that count --------------------------------------------------------------------------------------------


@kernel(allocates=False, inline=True)
def _tails(scene, node, face, others, but, scratch):
    """Write into `scratch.sums` how likely others come to a node with 0, 1, 2 … or more matches together, leaving one out.

    In place. Players together match no more dice than are in play, two fewer than `sums` has entries.
    """
    sums, more = scratch.sums, scratch.more
    size = len(sums)
    for k in range(size):
        sums[k] = 0.0
    sums[0] = 1.0
    for player in others:
        if player == but:
            continue
        spread = scene.spread[node, player, face]
        for k in range(size):
            more[k] = 0.0
        for k in range(size):
            if sums[k] > 0.0:
                for match in range(min(len(spread), size - k)):
                    more[k + match] += sums[k] * spread[match]
        for k in range(size):
            sums[k] = more[k]
    for k in range(size - 2, -1, -1):
        sums[k] += sums[k + 1]


@kernel(allocates=False, inline=True)
def _add_mover(tail, scratch):
    """Add a player with `tail` (dice + 2,), its chances of that many matches or more, to the tails of others. In place."""
    sums, more = scratch.sums, scratch.more
    size, last = len(sums), len(tail) - 1
    for k in range(size):
        more[k] = 0.0
        for own in range(min(k, size - 2) + 1):
            more[k] += (sums[own] - sums[own + 1]) * tail[min(k - own, last)]
        for own in range(k + 1, size - 1):
            more[k] += (sums[own] - sums[own + 1]) * tail[0]
    for k in range(size):
        sums[k] = more[k]


@kernel(allocates=False, inline=True)
def _called(rules, slot, view, caller, bidder, sums, hand):
    """Return what a call of the slot's bid is worth to a party's hand, from the others' tails."""
    need = rules.need[slot] - view.matches[hand, rules.face[slot]]
    hold = sums[min(max(need, 0), len(sums) - 1)]
    return hold * view.worth[caller] + (sums[0] - hold) * view.worth[bidder]


# --- visits -------------------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def _respond(scene, view, children, below, found, scratch):
    """Write a party's greatest winnings where a member is to move. In place; `found` has a row for each node it comes to."""
    rules, players = scene.rules, scene.spread.shape[1]
    mover, after, before = scene.mover, (scene.mover + 1) % players, (scene.mover - 1) % players
    child = 0
    for node in range(len(scene.slots)):
        slot, at = scene.slots[node], found.at[node]
        while child < len(children.node) and children.node[child] < node:
            child += 1
        if at < 0:
            continue
        best = found.won[at]
        if slot > 0:
            _tails(scene, node, rules.face[slot], view.others, -1, scratch)
        for hand in range(len(best)):
            best[hand] = _called(rules, slot, view, mover, before, scratch.sums, hand) if slot > 0 else -np.inf
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            below_slot = rules.child[edge]
            if must_call(rules, below_slot):
                _tails(scene, node, rules.face[below_slot], view.others, -1, scratch)
                for hand in range(len(best)):
                    best[hand] = max(best[hand], _called(rules, below_slot, view, after, mover, scratch.sums, hand))
            else:  # a member may make every raise, so there is a child for each
                won = below.won[below.at[child]]
                for hand in range(len(best)):
                    best[hand] = max(best[hand], won[hand])
                child += 1


@kernel(allocates=False)
def _add_up(scene, view, asked, moves, children, below, found, scratch):
    """Write a party's winnings where another is to move, which follows its policy. In place.

    `asked` (nodes asked,) are the nodes that `moves` counts; `found` has a row for each node to which the party may come.
    """
    rules, players = scene.rules, scene.spread.shape[1]
    mover, after, before = scene.mover, (scene.mover + 1) % players, (scene.mover - 1) % players
    for node in range(len(scene.slots)):
        if found.at[node] >= 0:
            for hand in range(found.won.shape[1]):
                found.won[found.at[node], hand] = 0.0
    for i in range(len(asked)):
        node = asked[i]
        slot, at = scene.slots[node], found.at[node]
        if at >= 0 and slot > 0 and moves.calls[i, 0, 0] > 0.0:
            _tails(scene, node, rules.face[slot], view.others, mover, scratch)
            _add_mover(moves.calls[i, :, 0], scratch)
            for hand in range(found.won.shape[1]):
                found.won[at, hand] += _called(rules, slot, view, mover, before, scratch.sums, hand)
    for leaf in range(len(moves.leaf_node)):
        node, slot = asked[moves.leaf_node[leaf]], rules.child[moves.leaf_edge[leaf]]
        at = found.at[node]
        if at >= 0:
            _tails(scene, node, rules.face[slot], view.others, mover, scratch)
            _add_mover(moves.leaf_tail[leaf, :, 0], scratch)
            for hand in range(found.won.shape[1]):
                found.won[at, hand] += _called(rules, slot, view, after, mover, scratch.sums, hand)
    for child in range(len(children.node)):
        at, to = found.at[children.node[child]], below.at[child]
        if at >= 0 and to >= 0:
            for hand in range(found.won.shape[1]):
                found.won[at, hand] += below.won[to, hand]


@kernel(allocates=False)
def _list_children(scene, free, asked, moves, children):
    """List the children of the nodes, all of those that are `free` and those that the mover's policy makes; return how many.

    In place; a first call with empty `children` counts them.
    """
    rules, write = scene.rules, len(children.node) > 0
    count = made = at = 0
    for node in range(len(scene.slots)):
        slot = scene.slots[node]
        is_asked = at < len(asked) and asked[at] == node
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            if must_call(rules, rules.child[edge]):
                continue
            row = -1
            if is_asked and made < len(moves.node) and moves.node[made] == at and moves.edge[made] == edge:
                row = made
                made += 1
            if row >= 0 or free[node]:
                if write:
                    children.node[count] = node
                    children.edge[count] = edge
                    children.row[count] = row
                count += 1
        at += is_asked
    return count


@kernel(allocates=False)
def _write_spread(reach, matches, rows, spread):
    """Write how likely a player comes to each node with 0, 1, 2 … matches, by face. In place; nobody matches more than it has.

    `rows` (nodes,) are of `reach`; `spread` (nodes, faces, dice + 1), dice those of whoever has most.
    """
    for node in range(len(rows)):
        spread[node] = 0.0
        if rows[node] >= 0:
            for k in range(reach.start[rows[node]], reach.start[rows[node] + 1]):
                for face in range(matches.shape[1]):
                    spread[node, face, matches[reach.hand[k], face]] += reach.weight[k, 0]


# --- the walk -----------------------------------------------------------------------------------------------------------


class _Side:
    """A party in a round: its hands, which are those of one player with all dice of its members."""

    def __init__(self, round_: Round, party: Party) -> None:
        self.members = party.members
        hands, self.chances = hands_of(round_.variant, sum(round_.dice[member] for member in party.members))
        self.others = np.array([player for player in range(len(round_.dice)) if player not in party.members], np.int64)
        self.view = _View(np.asarray(party.worth, np.float64), self.others, matches_of(round_.variant, hands, round_.palifico))

    def live(self, batch: Batch) -> np.ndarray:
        """Return whether the others come to each node, (nodes,) bool."""
        reached: np.ndarray = np.all(batch.rows[:, self.others] >= 0, axis=1)
        return reached


_NO_MOVES = np.zeros(0, np.int64)


class _Walk:
    """One walk that values a round for all parties."""

    def __init__(
        self, round_: Round, sources: Sequence[Source], parties: Sequence[Party], done: Callable[[float], Any]
    ) -> None:
        self._round, self._sources, self._done = round_, sources, done
        self._sides = [_Side(round_, party) for party in parties]
        self._below = round_.decisions.sum(axis=0)
        hands = np.array([len(each) for each in round_.hands])
        # Information sets in the subtree of a slot, by its mover.
        self._sets = np.array([np.roll(hands, -mover) @ round_.decisions for mover in range(len(hands))])
        room = sum(round_.dice) + 2
        self._scratch = _Scratch(np.zeros(room), np.zeros(room))

    def values(self) -> np.ndarray:
        """Return what the round is worth to each party, (parties,) float64."""
        round_ = self._round
        everybody = tuple(range(len(round_.dice)))
        batch, reaches = deal(round_, everybody, 1)
        spread = np.zeros((1, len(everybody), round_.variant.params.num_faces, max(round_.dice) + 1))
        for player in everybody:
            _write_spread(reaches[player], round_.matches[player], np.zeros(1, np.int64), spread[:, player])
        found = self._visit(batch, spread, reaches)
        return np.array([float(each.won[0] @ side.chances) for side, each in zip(self._sides, found, strict=True)])

    def _visit(self, batch: Batch, spread: np.ndarray, reaches: list[Reach]) -> list[_Found]:
        live = np.array([side.live(batch) for side in self._sides])
        numbers = sum(each * len(side.chances) for each, side in zip(live, self._sides, strict=True))
        parts = parts_of(self._below[batch.slots] * (numbers + spread[0].size if len(spread) else 0))
        if len(parts) > 1:
            visited = [self._visit(batch.part(*part), spread[slice(*part)], reaches) for part in parts]
            return [_joined(each) for each in zip(*visited, strict=True)]
        found = [_empty(each, len(side.chances)) for each, side in zip(live, self._sides, strict=True)]
        if len(batch.slots):
            self._value(batch, spread, reaches, live, found)
        return found

    def _value(self, batch: Batch, spread: np.ndarray, reaches: list[Reach], live: np.ndarray, found: list[_Found]) -> None:
        """Write the values of a batch."""
        round_, mover = self._round, batch.paths.shape[1] % len(self._round.dice)
        is_member = np.array([mover in side.members for side in self._sides])
        free = live[is_member].any(axis=0)
        asked = np.flatnonzero(live[~is_member].any(axis=0))
        moves = self._ask(batch, mover, reaches[mover], asked)
        scene = _Scene(round_.rules, mover, batch.slots, spread)
        children = _children(scene, free, asked, moves)
        lower, lower_spread = self._go_down(batch, spread, mover, moves.reach, children)
        after = (mover + 1) % len(round_.dice)
        self._done(float(self._sets[mover, batch.slots].sum() - self._sets[after, lower.slots].sum()))
        lower_reaches = [*reaches[:mover], moves.reach, *reaches[mover + 1 :]]
        below = self._visit(lower, lower_spread, lower_reaches)
        for side, values, own in zip(self._sides, found, below, strict=True):
            if mover in side.members:
                _respond(scene, side.view, children, own, values, self._scratch)
            else:
                _add_up(scene, side.view, asked, moves, children, own, values, self._scratch)

    def _ask(self, batch: Batch, mover: int, reach: Reach, asked: np.ndarray) -> Moves:
        """Ask the mover at some nodes of a batch."""
        some = Batch(batch.slots[asked], batch.paths[asked], batch.rows[asked])
        return moves_of(self._round, some, mover, reach, self._sources[mover])

    def _go_down(
        self, batch: Batch, spread: np.ndarray, mover: int, reach: Reach, children: _Children
    ) -> tuple[Batch, np.ndarray]:
        """Return the batch of the children, and how likely each player comes there."""
        slots = self._round.rules.child[children.edge]
        rows = batch.rows[children.node]
        rows[:, mover] = children.row
        lower = spread[children.node]
        _write_spread(reach, self._round.matches[mover], children.row, lower[:, mover])
        bids = self._round.rules.bid[slots].astype(np.int16)
        return Batch(slots, np.column_stack([batch.paths[children.node], bids]), rows), lower


def _children(scene: _Scene, free: np.ndarray, asked: np.ndarray, moves: Moves) -> _Children:
    count = _list_children(scene, free, asked, moves, _Children(_NO_MOVES, _NO_MOVES, _NO_MOVES))
    children = _Children(*(np.empty(count, np.int64) for _ in range(3)))
    if count:
        _list_children(scene, free, asked, moves, children)
    return children


def _empty(live: np.ndarray, hands: int) -> _Found:
    return _Found(np.where(live, np.cumsum(live) - 1, -1), np.empty((int(live.sum()), hands)))


def _joined(parts: Sequence[_Found]) -> _Found:
    """Put the parts of a batch together."""
    ends = np.cumsum([0] + [len(part.won) for part in parts])
    at = [np.where(part.at >= 0, part.at + end, -1) for part, end in zip(parts, ends[:-1], strict=True)]
    return _Found(np.concatenate(at), np.concatenate([part.won for part in parts]))


def walk(
    round_: Round,
    sources: Sequence[Source],
    parties: Sequence[Party],
    done: Callable[[float], Any] = lambda amount: None,
) -> np.ndarray:
    """Return what a round is worth to each party, (parties,) float64.

    Args:
        round_: the round.
        sources: of each player's probabilities.
        parties: each responds to the others' policies, and wins `Party.worth` by who loses a die. A party without members
            learns the mean of what it is worth when all follow their policies.
        done: progress callback, called with the number of information sets that are done since the last call.
    """
    return _Walk(round_, sources, parties, done).values()
