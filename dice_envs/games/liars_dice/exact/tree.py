"""The tree of one round of Liar's Dice, compressed until it can be held in memory, and the strategies held in its numbers.

A public node is a sequence of bids. The moves that may follow depend on the last bid and on the player to move, so a few
dozen *kinds* of node describe millions of nodes; where a node's numbers lie follows from the path that leads to it. Player 0
is the round's starter.

Hands of a player are one *class* at a kind of node if no later call tells them apart. Their counterfactual values are
equal, so one number serves them all.

In a game of two players the tree leaves out raises that a call or another raise beats, which changes neither the value of the
round nor that of a best response: a call of a bid that cannot hold with the own dice wins for certain. A bid of all dice is
called at once, so only hands whose dice all match have reason to make it, and not even they if a call wins wherever the raise
does. After a bid of all dice without wild dice no raise can hold where a call fails. With more players nothing is left out:
whoever calls may care who of the others loses a die.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.games.liars_dice import NO_WILD
from dice_envs.games.liars_dice.exact.round import Round
from dice_envs.games.liars_dice.exact.seating import Dice
from dice_envs.games.liars_dice.raises import NO_BID, face_of, quantity_of


class Kinds(NamedTuple):
    """The tree's kinds of node, for kernels. Kind 0 is the empty history. An edge is a raise, to another kind or a leaf.

    A *leaf* is a bid that is called for certain; it has no kind of its own, only an edge. `shift` says where a child's
    numbers begin, counted from its parent's; `entry` where the numbers of a raise begin, counted likewise. A call's
    come first. A raise has a number for each active class of the mover; to a leaf, for each class listed in `allowed`.
    Indices without a sign cost kernels no look at whether they count from the end.
    """

    mover: np.ndarray  # (kinds,) int64: the player to move
    needed: np.ndarray  # (kinds,) int64: the quantity of the last bid, 0 at the empty history
    first_edge: np.ndarray  # (kinds + 1,) int64
    classes: np.ndarray  # (kinds, players) int64: each player's classes; the mover's active ones are the first
    active: np.ndarray  # (kinds,) int64: classes of the mover that have a raise that may be best; all others call
    size: np.ndarray  # (kinds,) int64: numbers stored for the whole subtree
    own: np.ndarray  # (kinds,) int64: numbers stored for the node itself
    match_at: np.ndarray  # (kinds, players) int64: where the kind's part of `match` begins
    match: np.ndarray  # uint16: dice that count for the last bid, by class; no more than were bid
    child: np.ndarray  # (edges,) int64: a kind, or LEAF
    shift: np.ndarray  # (edges,) int64
    entry: np.ndarray  # (edges,) int64
    map_at: np.ndarray  # (edges, players) int64: where the edge's part of `maps` begins
    maps: np.ndarray  # uint16: a parent's class → the child's; to a leaf: 1 if all dice match, else 0
    allowed_at: np.ndarray  # (edges + 1,) int64: where the edge's part of `allowed` begins
    allowed: np.ndarray  # uint16: classes of the mover that may bid what leads to the leaf
    # What follows from the others:
    first_leaf: np.ndarray  # (kinds,) int64: the first edge to a leaf; edges to other kinds come before
    edge_bids: np.ndarray  # (edges,) int64: the bid that each edge stands for
    edge_of: np.ndarray  # (kinds, bids) int64: the edge by which each bid leaves each kind of node, −1 where none does
    class_of: np.ndarray  # (players, kinds, hands) int64: each player's hands → classes, filled up with zeros


class _Edge(NamedTuple):
    kind: int  # that it leaves
    bid: int
    child: int  # a kind, or LEAF
    allowed: np.ndarray  # see `Kinds`


MOST_NODES = 10**12  # keeps the counts within int64, and counting fast
LEAF = -1  # value of `Kinds.child`


def _numbered(*columns: np.ndarray) -> np.ndarray:
    """Number the different rows, from 0 in sorted order."""
    return np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].reshape(-1)


def _in_one(parts: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Put arrays together; return where each begins and the last one ends, and all of them, uint16."""
    parts = list(parts)
    starts = np.cumsum([0] + [len(each) for each in parts], dtype=np.int64)
    return starts, np.concatenate([np.zeros(0, np.uint16), *parts]).astype(np.uint16)


class Tree(Round):
    """A round with its kinds of node.

    Attributes:
        kinds: for kernels.
        bids: (kinds,) int64: the last bid of each kind, NO_BID for the first.
        kind_of: (bid, mover) → kind; not for leaves.
        class_of: see `Kinds`.
        class_chances: each player's, by class at the empty history, float64.

    Args:
        variant: only its rules of a round and its number of players count.
        dice: of the players, the starter's first.

    Raises:
        ValueError: the round has more than MOST_NODES public nodes.
    """

    def __init__(self, variant: Variant, dice: Dice) -> None:
        super().__init__(variant, dice)
        if self.nodes > MOST_NODES:
            raise ValueError(
                f"num_dice={dice} with num_faces={variant.params.num_faces} and raise_rule={variant.options.raise_rule!r} "
                f"makes a round of {self.nodes:,.0f} public nodes; {MOST_NODES:,} are allowed"
            )
        self._players = range(len(dice))
        self._for_two = variant.options.num_players == 2
        self.kind_of = self._find_kinds()
        self.bids = np.array([bid for bid, _ in self.kind_of], np.int64)
        self.class_of = np.zeros((len(dice), len(self.bids), max(map(len, self.hands))), np.int64)
        self.kinds = self._describe()
        self.class_chances = tuple(
            np.bincount(self.class_of[player, 0, : len(chances)], chances, int(self.kinds.classes[0, player]))
            for player, chances in enumerate(self.chances)
        )

    def is_leaf(self, bid: int, mover: int) -> bool:
        """Return whether every hand of a player calls the bid: nothing can be raised; or in a game of two all dice are bid,
        and none are wild.

        Not so where a raise may bid fewer dice, which can be answered by more than a call.
        """
        if bid == NO_BID:
            return False
        bids = np.append(self.raises[bid, mover], bid)
        all_dice = (bids // self.variant.params.num_faces + 1 == sum(self.dice)).all()
        return len(bids) == 1 or bool(self._for_two and all_dice and self.wild == NO_WILD)

    def _after(self, mover: int) -> int:
        return (mover + 1) % len(self.dice)

    def _find_kinds(self) -> dict[tuple[int, int], int]:
        waiting = [(NO_BID, 0)]
        reached = set(waiting)
        while waiting:
            bid, mover = waiting.pop()
            following = {(higher, self._after(mover)) for higher in self.raises[bid, mover].tolist()}
            new = [each for each in following - reached if not self.is_leaf(*each)]
            reached.update(new)
            waiting += new
        return {key: kind for kind, key in enumerate(key for key in self.raises if key in reached)}

    def _needed(self, bid: int) -> int:
        return 0 if bid == NO_BID else int(quantity_of(self.variant.params, bid)) + 1

    def _counting(self, bid: int, player: int) -> np.ndarray:
        """Count each hand's dice that match the bid, without differences that no hand of the others reveals."""
        if bid == NO_BID:
            return np.zeros(len(self.hands[player]), np.int64)
        needed = self._needed(bid)
        held = self.matches[player][:, face_of(self.variant.params, bid)]
        others = sum(self.dice) - self.dice[player]
        result: np.ndarray = np.clip(held, needed - others - 1, needed)
        return result

    def _all_match(self, bid: int, player: int) -> np.ndarray:
        matched: np.ndarray = self.matches[player][:, face_of(self.variant.params, bid)] == self.dice[player]
        return matched

    def _may_be_best(self, bid: int, mover: int, leaves: list[int]) -> np.ndarray:
        """Return whether bids that are called for certain may be a hand's best move, (leaves, hands)."""
        if not self._for_two:
            return np.ones((len(leaves), len(self.hands[mover])), bool)
        other = 1 - mover
        wins = [self._all_match(leaf, mover)[:, None] & self._all_match(leaf, other)[None, :] for leaf in leaves]
        sensible = np.array([won.any(axis=1) for won in wins]).reshape(len(leaves), len(self.hands[mover]))
        for place, won in enumerate(wins):
            if bid != NO_BID:
                fails = self._counting(bid, mover)[:, None] + self._counting(bid, other)[None, :] < self._needed(bid)
                sensible[place] &= (won & ~fails).any(axis=1)
            for earlier in range(place):  # of two that win against the same hands, the first will do
                sensible[place] &= (won & ~wins[earlier]).any(axis=1)
        return sensible

    def _describe(self) -> Kinds:
        count = len(self.kind_of)
        edges: list[_Edge] = []
        active, classes = np.zeros(count, np.int64), np.zeros((count, len(self.dice)), np.int64)
        for (bid, mover), kind in reversed(self.kind_of.items()):
            raises = self.raises[bid, mover].tolist()
            leaves = [higher for higher in raises if self.is_leaf(higher, self._after(mover))]
            sensible = dict(zip(leaves, self._may_be_best(bid, mover, leaves), strict=True))
            inner = [higher for higher in raises if higher not in sensible]
            leaves = [leaf for leaf in leaves if sensible[leaf].any()]
            children = [self.kind_of[higher, self._after(mover)] for higher in inner]
            some_raise = np.any([np.full(len(self.hands[mover]), bool(inner)), *(sensible[leaf] for leaf in leaves)], axis=0)
            is_active = np.ones(len(some_raise), bool)  # whether a hand does not call for certain
            if bid != NO_BID and self._for_two:
                others = sum(self.dice) - self.dice[mover]
                hopeless = self._counting(bid, mover) < self._needed(bid) - others  # the bid cannot hold: a call wins
                is_active = some_raise & ~hopeless
            ids: list[np.ndarray] = []
            for player in self._players:
                below = [self.class_of[player, child, : len(self.hands[player])] for child in children]
                columns = [self._counting(bid, player), *below]
                if player == mover:  # active classes come first
                    columns = [~is_active, columns[0], *(np.where(is_active, each, -1) for each in below)]
                if player == mover and self._for_two:
                    columns += [is_active & sensible[leaf] for leaf in leaves]
                else:
                    columns += [self._all_match(leaf, player) for leaf in leaves]
                ids.append(_numbered(*columns))
                self.class_of[player, kind, : len(ids[player])] = ids[player]
                classes[kind, player] = ids[player].max() + 1
            active[kind] = ids[mover][is_active].max(initial=-1) + 1
            none = np.zeros(0, np.int64)
            edges += [_Edge(kind, higher, child, none) for higher, child in zip(inner, children, strict=True)]
            allowed = [(leaf, np.unique(ids[mover][is_active & sensible[leaf]])) for leaf in leaves]
            edges += [_Edge(kind, leaf, LEAF, may) for leaf, may in allowed if len(may)]
        return self._flat(sorted(edges, key=lambda edge: edge.kind), active, classes)

    def _flat(self, edges: list[_Edge], active: np.ndarray, classes: np.ndarray) -> Kinds:
        """Return the kinds, from their edges in order, those to leaves last."""
        count, players = classes.shape
        kind_of_edge, edge_bids, child = np.array([each[:3] for each in edges], np.int64).T.copy()
        first_edge = np.concatenate([[0], np.cumsum(np.bincount(kind_of_edge, minlength=count))])
        first_leaf = first_edge[1:] - np.bincount(kind_of_edge[child == LEAF], minlength=count)
        shift, entry = np.zeros((2, len(edges)), np.int64)
        own, size = np.zeros((2, count), np.int64)
        match_at, match = _in_one(
            self._by_class(kind, player, self._counting(int(bid), player))
            for kind, bid in enumerate(self.bids)
            for player in self._players
        )
        map_at, maps = _in_one(self._map(edge, player) for edge in edges for player in self._players)
        allowed_at, allowed = _in_one(each.allowed for each in edges)
        for kind in reversed(range(count)):
            at = active[kind] if kind > 0 else 0
            for edge in range(first_edge[kind], first_edge[kind + 1]):
                entry[edge] = at
                at += active[kind] if child[edge] != LEAF else len(edges[edge].allowed)
            own[kind] = at
            for edge in range(first_edge[kind], first_edge[kind + 1]):
                if child[edge] != LEAF:
                    shift[edge] = at
                    at += size[child[edge]]
            size[kind] = at
        edge_of = np.full((count, sum(self.dice) * self.variant.params.num_faces), -1, np.int64)
        edge_of[kind_of_edge, edge_bids] = np.arange(len(edges))
        needed = np.array([self._needed(int(bid)) for bid in self.bids], np.int64)
        movers = np.array([mover for _, mover in self.kind_of], np.int64)
        match_at, map_at = match_at[:-1].reshape(count, players), map_at[:-1].reshape(-1, players)
        return Kinds(
            movers, needed, first_edge, classes, active, size, own, match_at, match, child, shift, entry, map_at, maps,
            allowed_at, allowed, first_leaf, edge_bids, edge_of, self.class_of,
        )  # fmt: skip

    def _map(self, edge: _Edge, player: int) -> np.ndarray:
        below = self._all_match(edge.bid, player) if edge.child == LEAF else self.class_of[player, edge.child]
        return self._by_class(edge.kind, player, below)

    def _by_class(self, kind: int, player: int, by_hand: np.ndarray) -> np.ndarray:
        """Return numbers of a player's hands by class, of which each has the same for all of its hands."""
        ids = self.class_of[player, kind, : len(self.hands[player])]
        out = np.zeros(int(ids.max()) + 1, np.int64)
        out[ids] = by_hand[: len(ids)]
        return out


# --- strategies ---------------------------------------------------------------------------------------------------
# Rows of actions have the call first, then a raise for each edge. The empty history has a dummy call, which is never taken.


@kernel(allocates=False, inline=True)
def numbers_at(kinds, kind, offset, numbers, rows, total):
    """Write the numbers of a node's actions, (actions, active classes), and their sums, (active classes,). In place."""
    active, first, last = kinds.active[kind], kinds.first_edge[kind], kinds.first_edge[kind + 1]
    at = offset
    for each in range(active):
        rows[0, each] = 0.0
        total[each] = 0.0
    for place in range(1 if kind == 0 else 0, 1 + kinds.first_leaf[kind] - first):
        for each in range(active):
            rows[place, each] = numbers[at + each]
            total[each] += rows[place, each]
        at += active
    for edge in range(kinds.first_leaf[kind], last):
        row = rows[1 + edge - first]
        for each in range(active):
            row[each] = 0.0
        for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
            row[kinds.allowed[k]] = numbers[at]
            total[kinds.allowed[k]] += numbers[at]
            at += 1


@kernel(allocates=False, inline=True)
def mix_at(kinds, kind, offset, numbers, rows, factor):
    """Write a node's numbers by action as `rows` (actions, active classes), and each class's `factor` (active classes,).

    In place. Rows times factors are the probabilities. Where all numbers of a class are 0, its actions are equally likely.
    Both have room for any kind of node.
    """
    numbers_at(kinds, kind, offset, numbers, rows, factor)
    unknown = False
    for each in range(kinds.active[kind]):
        unknown |= factor[each] == 0.0
    if unknown:
        _mix_evenly(kinds, kind, rows, factor)
    for each in range(kinds.active[kind]):
        factor[each] = 1.0 / factor[each]


@kernel(allocates=False)
def _mix_evenly(kinds, kind, rows, total):
    """Make the actions of classes whose `total` is 0 equally likely, and count them there. In place."""
    for each in range(kinds.active[kind]):
        if total[each] > 0.0:
            continue
        for place in range(1 + kinds.first_edge[kind + 1] - kinds.first_edge[kind]):
            if _number_of(kinds, kind, 0, place, each) >= 0:
                rows[place, each] = 1.0
                total[each] += 1.0


@kernel(allocates=False)
def _number_of(kinds, kind, offset, place, each):
    """Return where an active class's number of a row's action stands; −1 if the class may not take it."""
    edge = kinds.first_edge[kind] + place - 1
    if place == 0:
        return offset + each if kind != 0 else -1
    if kinds.child[edge] != LEAF:
        return offset + kinds.entry[edge] + each
    for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
        if kinds.allowed[k] == each:
            return offset + kinds.entry[edge] + k - kinds.allowed_at[edge]
    return -1


@kernel(allocates=False)
def strategy_at(kinds, kind, offset, numbers, each, call, out):
    """Write how likely one active class takes each action at a node into `out` (actions,), which holds zeros. In place."""
    total = 0.0
    for even in range(2):  # a class that the strategy never brings here takes its actions evenly
        if even == 1 and total > 0.0:
            break
        for place in range(1 + kinds.first_edge[kind + 1] - kinds.first_edge[kind]):
            at = _number_of(kinds, kind, offset, place, each)
            if at >= 0:
                action = kinds.edge_bids[kinds.first_edge[kind] + place - 1] if place > 0 else call
                out[action] = 1.0 if even == 1 else numbers[at]
                total += out[action]
    for action in range(len(out)):
        out[action] /= total
