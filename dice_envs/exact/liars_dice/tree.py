"""The tree of one round of Liar's Dice between two players, compressed until it can be held in memory.

A public node is a sequence of bids. The moves that may follow depend on the last bid and on the player to move, so a few
dozen *kinds* of node describe millions of nodes; where a node's numbers lie follows from the path that leads to it. Player 0
is the round's starter.

The tree leaves out the following, which changes neither the value of the round nor that of a best response:

- **Raises that a call or another raise beats.** A call of a bid that cannot hold with the own dice wins for certain.
  A bid of all dice is called at once, so only hands whose dice all match have reason to make it, and not even they if
  a call wins wherever the raise does. After a bid of all dice without wild dice no raise can hold where a call fails.
- **Hands that do not differ any more.** Two hands of a player are one *class* at a kind of node if no later call
  tells them apart. Their counterfactual values are equal, so one number serves both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.exact.liars_dice.round import Round, raises_of, rising_bids
from dice_envs.exact.liars_dice.seating import Dice, is_palifico
from dice_envs.games.liars_dice import NO_WILD
from dice_envs.games.liars_dice.raises import NO_BID, face_of, quantity_of

__all__ = ["LEAF", "Kinds", "Tree"]


class Kinds(NamedTuple):
    """The tree's kinds of node, for kernels. Kind 0 is the empty history. An edge is a raise, to another kind or a leaf.

    A *leaf* is a bid that is called for certain; it has no kind of its own, only an edge. `shift` says where a child's
    numbers begin, counted from its parent's; `entry` where the numbers of a raise begin, counted likewise. A call's
    come first. A raise has a number for each active class of the mover; to a leaf, for each class listed in `allowed`.
    """

    mover: np.ndarray  # (kinds,) int64: the player to move, 0 or 1
    needed: np.ndarray  # (kinds,) int64: the quantity of the last bid, 0 at the empty history
    first_edge: np.ndarray  # (kinds + 1,) int64
    classes: np.ndarray  # (kinds, 2) int64: each player's classes; the mover's active ones are the first
    active: np.ndarray  # (kinds,) int64: classes of the mover that have a raise worth considering; all others call
    size: np.ndarray  # (kinds,) int64: numbers stored for the whole subtree
    own: np.ndarray  # (kinds,) int64: numbers stored for the node itself
    match_at: np.ndarray  # (kinds, 2) int64: where the kind's part of `match` begins
    match: np.ndarray  # int64: dice that count for the last bid, by class
    child: np.ndarray  # (edges,) int64: a kind, or LEAF
    shift: np.ndarray  # (edges,) int64
    entry: np.ndarray  # (edges,) int64
    map_at: np.ndarray  # (edges, 2) int64: where the edge's part of `maps` begins
    maps: np.ndarray  # int64: a parent's class → the child's; to a leaf: 1 if all dice match, else 0
    allowed_at: np.ndarray  # (edges + 1,) int64: where the edge's part of `allowed` begins
    allowed: np.ndarray  # int64: classes of the mover that may bid what leads to the leaf


class _Edge(NamedTuple):
    bid: int
    child: int  # a kind, or LEAF
    allowed: np.ndarray  # classes of the mover that may take it
    below: tuple[np.ndarray, np.ndarray]  # each player's hands → classes of the child; to a leaf: whether all dice match


MOST_NODES = 10**12  # keeps the counts within int64, and counting fast
LEAF = -1  # value of `Kinds.child`


def _numbered(rows: np.ndarray) -> np.ndarray:
    """Number the different rows, from 0 in sorted order."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


class Tree(Round):
    """A round of two players with its kinds of node.

    Attributes:
        kinds: for kernels.
        bids: (kinds,) int64: the last bid of each kind, NO_BID for the first.
        kind_of: (bid, mover) → kind; not for leaves.
        class_of: for each kind, each player's hands → classes, (hands,) int64.
        edge_bids: (edges,) int64: the bid that each edge of `kinds` stands for.
        class_chances: each player's, by class at the empty history, float64.

    Args:
        variant: only its rules of a round count: faces, raise rule and wild dice.
        dice: of the starter and of the other player.

    Raises:
        ValueError: the round has more than MOST_NODES public nodes.
    """

    def __init__(self, variant: Variant, dice: Dice) -> None:
        super().__init__(variant, dice, is_palifico(variant.options, dice))
        if self.nodes > MOST_NODES:
            raise ValueError(
                f"num_dice={dice} with num_faces={variant.params.num_faces} and raise_rule={variant.options.raise_rule!r} "
                f"makes a round of {self.nodes:,.0f} public nodes; {MOST_NODES:,} are allowed"
            )
        # Parents first.
        self._raises = {
            (bid, mover): raises_of(variant, dice, bid, mover, self.palifico)
            for bid in [NO_BID, *rising_bids(variant, dice, self.palifico)]
            for mover in range(2)
        }
        self.kind_of: dict[tuple[int, int], int] = {}
        self._find_kinds()
        self.bids = np.array([bid for bid, _ in self.kind_of], np.int64)
        self.class_of: list[list[np.ndarray]] = [[] for _ in self.kind_of]
        self.edge_bids = np.zeros(0, np.int64)
        self.kinds = self._describe()
        self.class_chances = tuple(
            np.bincount(self.class_of[0][player], self.chances[player], int(self.kinds.classes[0, player]))
            for player in range(2)
        )

    def raises_after(self, bid: int, mover: int) -> np.ndarray:
        """Return the bids that a player may make after `bid` (NO_BID: the first ones), in the order of their numbers, int64."""
        return self._raises[bid, mover]

    def is_leaf(self, bid: int, mover: int) -> bool:
        """Return whether every hand of a player calls the bid: nothing can be raised, or all dice are bid and none are wild.

        Not so where a raise may bid fewer dice: its bidder can be answered by more than a call.
        """
        if bid == NO_BID:
            return False
        bids = np.append(self._raises[bid, mover], bid)
        all_dice = (bids // self.variant.params.num_faces + 1 == sum(self.dice)).all()
        return len(bids) == 1 or bool(all_dice and (self.palifico or self.variant.params.wild == NO_WILD))

    def _find_kinds(self) -> None:
        waiting = [(NO_BID, 0)]
        reached = set(waiting)
        while waiting:
            bid, mover = waiting.pop()
            for higher in self._raises[bid, mover].tolist():
                if not self.is_leaf(higher, 1 - mover) and (higher, 1 - mover) not in reached:
                    reached.add((higher, 1 - mover))
                    waiting.append((higher, 1 - mover))
        self.kind_of = {key: kind for kind, key in enumerate(key for key in self._raises if key in reached)}

    def _needed(self, bid: int) -> int:
        return 0 if bid == NO_BID else int(quantity_of(self.variant.params, bid)) + 1

    def _counting(self, bid: int, player: int) -> np.ndarray:
        """Count each hand's dice that match the bid, without differences that no hand of the other player reveals."""
        if bid == NO_BID:
            return np.zeros(len(self.hands[player]), np.int64)
        needed = self._needed(bid)
        held = self.matches[player][:, face_of(self.variant.params, bid)]
        result: np.ndarray = np.clip(held, needed - self.dice[1 - player] - 1, needed)
        return result

    def _all_match(self, bid: int, player: int) -> np.ndarray:
        matched: np.ndarray = self.matches[player][:, face_of(self.variant.params, bid)] == self.dice[player]
        return matched

    def _worth_bidding(self, bid: int, mover: int, leaves: list[int]) -> np.ndarray:
        """Return whether bids that are called for certain may be a hand's best move, (hands, leaves)."""
        other = 1 - mover
        wins = [self._all_match(leaf, mover)[:, None] & self._all_match(leaf, other)[None, :] for leaf in leaves]
        worth = np.array([won.any(axis=1) for won in wins]).reshape(len(leaves), len(self.hands[mover])).T
        for place, won in enumerate(wins):
            if bid != NO_BID:
                fails = self._counting(bid, mover)[:, None] + self._counting(bid, other)[None, :] < self._needed(bid)
                worth[:, place] &= (won & ~fails).any(axis=1)
            for earlier in range(place):  # of two that win against the same hands, the first will do
                worth[:, place] &= (won & ~wins[earlier]).any(axis=1)
        return worth

    def _describe(self) -> Kinds:
        count = len(self.kind_of)
        edges: list[list[_Edge]] = [[] for _ in range(count)]
        active = np.zeros(count, np.int64)
        classes = np.zeros((count, 2), np.int64)
        for (bid, mover), kind in reversed(self.kind_of.items()):
            other = 1 - mover
            raises = self._raises[bid, mover].tolist()
            leaves = [higher for higher in raises if self.is_leaf(higher, other)]
            worth = dict(zip(leaves, self._worth_bidding(bid, mover, leaves).T, strict=True))
            inner = [higher for higher in raises if higher not in worth]
            leaves = [leaf for leaf in leaves if worth[leaf].any()]
            below = [self.class_of[self.kind_of[higher, other]] for higher in inner]
            own, others = self._counting(bid, mover), self._counting(bid, other)
            hopeless = own < self._needed(bid) - self.dice[other]  # the bid cannot hold: a call wins
            some_raise = np.full(len(own), bool(inner))
            for leaf in leaves:
                some_raise |= worth[leaf]
            is_active = some_raise & ~hopeless if bid != NO_BID else np.ones(len(own), bool)
            columns = [~is_active, own]
            columns += [np.where(is_active, each[mover], -1) for each in below]
            columns += [is_active & worth[leaf] for leaf in leaves]
            ids = {mover: _numbered(np.column_stack(columns))}  # sorted by the first column: active classes come first
            columns = [others] + [each[other] for each in below] + [self._all_match(leaf, other) for leaf in leaves]
            ids[other] = _numbered(np.column_stack(columns))
            self.class_of[kind] = [ids[0], ids[1]]
            active[kind] = ids[mover][is_active].max(initial=-1) + 1
            classes[kind] = ids[0].max() + 1, ids[1].max() + 1
            for higher, each in zip(inner, below, strict=True):
                edges[kind].append(_Edge(higher, self.kind_of[higher, other], np.arange(active[kind]), (each[0], each[1])))
            for leaf in leaves:
                may = np.unique(ids[mover][is_active & worth[leaf]])
                if len(may):
                    edges[kind].append(_Edge(leaf, LEAF, may, (self._all_match(leaf, 0), self._all_match(leaf, 1))))
        return self._flat(edges, active, classes)

    def _flat(self, edges: list[list[_Edge]], active: np.ndarray, classes: np.ndarray) -> Kinds:
        count = len(edges)
        movers = np.array([mover for _, mover in self.kind_of], np.int64)
        own, size = np.zeros(count, np.int64), np.zeros(count, np.int64)
        first_edge = np.concatenate([[0], np.cumsum([len(each) for each in edges])]).astype(np.int64)
        number = int(first_edge[-1])
        child, shift, entry = np.full(number, LEAF, np.int64), np.zeros(number, np.int64), np.zeros(number, np.int64)
        map_at, allowed_at = np.zeros((number, 2), np.int64), np.zeros(number + 1, np.int64)
        match_at = np.zeros((count, 2), np.int64)
        maps: list[np.ndarray] = []
        matches: list[np.ndarray] = []
        allowed: list[np.ndarray] = []
        filled = placed = 0
        for kind in range(count):
            for player in range(2):
                match_at[kind, player] = placed
                matches.append(self._by_class(kind, player, self._counting(int(self.bids[kind]), player)))
                placed += len(matches[-1])
        placed = 0
        for kind in range(count):
            for edge, described in enumerate(edges[kind], int(first_edge[kind])):
                child[edge] = described.child
                allowed_at[edge] = placed
                if described.child == LEAF:
                    allowed.append(described.allowed)
                    placed += len(described.allowed)
                for player in range(2):
                    map_at[edge, player] = filled
                    maps.append(self._by_class(kind, player, described.below[player]))
                    filled += len(maps[-1])
        allowed_at[number] = placed
        self.edge_bids = np.array([described.bid for each in edges for described in each], np.int64)
        for kind in reversed(range(count)):
            at = active[kind] if kind > 0 else 0
            for edge in range(first_edge[kind], first_edge[kind + 1]):
                entry[edge] = at
                at += active[kind] if child[edge] != LEAF else allowed_at[edge + 1] - allowed_at[edge]
            own[kind] = at
            for edge in range(first_edge[kind], first_edge[kind + 1]):
                if child[edge] != LEAF:
                    shift[edge] = at
                    at += size[child[edge]]
            size[kind] = at
        return Kinds(
            movers, np.array([self._needed(int(bid)) for bid in self.bids], np.int64), first_edge, classes, active, size, own,
            match_at, _in_one(matches), child, shift, entry, map_at, _in_one(maps), allowed_at, _in_one(allowed),
        )  # fmt: skip

    def _by_class(self, kind: int, player: int, by_hand: np.ndarray) -> np.ndarray:
        out = np.zeros(int(self.class_of[kind][player].max()) + 1, np.int64)
        out[self.class_of[kind][player]] = by_hand
        return out


def _in_one(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
