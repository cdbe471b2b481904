"""Equilibria of one round of Liar's Dice between two players: counterfactual regret minimisation with a certificate.

One walk of the tree takes the view of one player and carries the other player's reach: how likely it comes to each node
with each class of hands. A node that the other one never reaches is left out with all that lies below it. The walk learns
the player's regrets and the other one's average strategy, whose reach is at hand.

Sources: O. Tammelin, "Solving Large Imperfect Information Games Using CFR+" (2014), for regrets that stay at 0 or
above and for players who learn in turns; N. Brown and T. Sandholm, "Solving Imperfect-Information Games via Discounted
Regret Minimization" (AAAI 2019), for discounts of regrets and averages.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.nodes import FOLLOW, LEARN, RESPOND, Numbers, Pace, Scratch, View, enter, leave, mix_at
from dice_envs.exact.liars_dice.seating import Bounds
from dice_envs.exact.liars_dice.tree import LEAF, Tree

__all__ = ["Certificate", "RoundSolver", "Walker", "dtype_of", "memory_of", "quantised"]

SMALL = 500_000  # rounds of fewer numbers are learnt in float64
SHARES = 4  # work units per thread, so that idle threads can take more
SHARED_FROM = 800_000  # numbers of a round that is walked share by share, so that a walk can be ended early
MOST_LEVELS = 65_535  # to which a strategy is rounded where it is stored in uint16


# --- the walk -----------------------------------------------------------------------------------------------------


@kernel(allocates=False, inline=True)
def _go_down(kinds, kind, edge, player, reach, action, below):
    """Write the other player's reach at the child that an edge leads to; return whether there is any. In place."""
    other = 1 - player
    for each in range(kinds.classes[kinds.child[edge], other]):
        below[each] = 0.0
    at = kinds.map_at[edge, other]
    if kinds.mover[kind] == player:
        for each in range(kinds.classes[kind, other]):
            below[kinds.maps[at + each]] += reach[each]
        return True
    arrived = 0.0
    row = action[1 + edge - kinds.first_edge[kind]]
    for each in range(kinds.active[kind]):
        below[kinds.maps[at + each]] += row[each]
        arrived += row[each]
    return arrived > 0.0


@kernel(allocates=False, inline=True)
def _come_up(kinds, kind, edge, player, value, action, below):
    """Take the values of the child that an edge leads to into those of its parent. In place."""
    at = kinds.map_at[edge, player]
    if kinds.mover[kind] == player:
        row = action[1 + edge - kinds.first_edge[kind]]
        for each in range(kinds.active[kind]):
            row[each] = below[kinds.maps[at + each]]
    else:
        for each in range(kinds.classes[kind, player]):
            value[each] += below[kinds.maps[at + each]]


@kernel(allocates=False)
def _walk(kinds, scratch, start, view):
    """Visit the node at depth `start` of `scratch` and all below it. In place; `kinds` is only read.

    The path never grows longer than the tree is high, which is the depth that `scratch` has room for.
    """
    depth = start
    enter(kinds, scratch, depth, view)
    while True:
        kind = scratch.kind[depth]
        edge = scratch.edge[depth]
        last = kinds.first_edge[kind + 1]
        while edge < last and kinds.child[edge] == LEAF:
            edge += 1
        if edge < last:
            scratch.edge[depth] = edge + 1
            reach, action = scratch.reach[depth], scratch.action[depth]
            if _go_down(kinds, kind, edge, view.player, reach, action, scratch.reach[depth + 1]):
                scratch.kind[depth + 1] = kinds.child[edge]
                scratch.offset[depth + 1] = scratch.offset[depth] + kinds.shift[edge]
                depth += 1
                enter(kinds, scratch, depth, view)
            continue
        leave(kinds, scratch, depth, view)
        if depth == start:
            return
        below = scratch.value[depth]
        depth -= 1
        edge = scratch.edge[depth] - 1
        _come_up(kinds, scratch.kind[depth], edge, view.player, scratch.value[depth], scratch.action[depth], below)


@kernel(allocates=False)
def _begin(kinds, scratch, view):
    """Enter the empty history, whose reach is set. In place."""
    scratch.kind[0] = 0
    scratch.offset[0] = 0
    enter(kinds, scratch, 0, view)


@kernel(allocates=False)
def _branches(kinds, top, scratch, edges, view, values):
    """Walk what follows some of the first bids, and write its values into values[edges]. In place; `top` is only read."""
    for edge in edges:
        value = values[edge]
        for each in range(len(value)):
            value[each] = 0.0
        if _go_down(kinds, 0, edge, view.player, top.reach[0], top.action[0], scratch.reach[1]):
            scratch.kind[1] = kinds.child[edge]
            scratch.offset[1] = kinds.shift[edge]
            _walk(kinds, scratch, 1, view)
            for each in range(kinds.classes[kinds.child[edge], view.player]):
                value[each] = scratch.value[1, each]


@kernel(allocates=False)
def _end(kinds, scratch, view, values):
    """Leave the empty history, the values of whose branches are `values` (edges, classes). In place."""
    for edge in range(kinds.first_edge[1]):
        if kinds.child[edge] != LEAF:
            _come_up(kinds, 0, edge, view.player, scratch.value[0], scratch.action[0], values[edge])
    leave(kinds, scratch, 0, view)


@kernel(allocates=False)
def _quantise(kinds, scratch, averages, most, out):
    """Write every node's strategy, the likeliest action of each class as `most`, into `out` (numbers,). In place."""
    depth = 0
    scratch.kind[0] = 0
    scratch.offset[0] = 0
    scratch.edge[0] = 0
    while depth >= 0:
        kind, offset, edge = scratch.kind[depth], scratch.offset[depth], scratch.edge[depth]
        first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
        active = kinds.active[kind]
        if edge == first and active > 0:
            scratch.total[:active] = 0.0
            start = 1 if kind == 0 else 0  # the empty history has no numbers of a call
            for place in range(start, 1 + last - first):
                _scale(kinds, kind, offset, place, averages, 0.0, scratch.total, out)
            for place in range(start, 1 + last - first):
                _scale(kinds, kind, offset, place, averages, most, scratch.total, out)
        while edge < last and kinds.child[edge] == LEAF:
            edge += 1
        if edge < last:
            scratch.edge[depth] = edge + 1
            scratch.kind[depth + 1] = kinds.child[edge]
            scratch.offset[depth + 1] = offset + kinds.shift[edge]
            depth += 1
            scratch.edge[depth] = kinds.first_edge[kinds.child[edge]]
        else:
            depth -= 1


@kernel(allocates=False)
def _scale(kinds, kind, offset, place, averages, most, largest, out):
    """With `most` 0, find each class's largest number; else write its numbers as shares of that. In place."""
    edge = kinds.first_edge[kind] + place - 1
    leaf = place > 0 and kinds.child[edge] == LEAF
    at = offset if place == 0 else offset + kinds.entry[edge]
    count = kinds.allowed_at[edge + 1] - kinds.allowed_at[edge] if leaf else kinds.active[kind]
    for k in range(count):
        each = kinds.allowed[kinds.allowed_at[edge] + k] if leaf else k
        if most == 0.0:
            largest[each] = max(largest[each], averages[at + k])
        elif largest[each] > 0.0:
            out[at + k] = np.uint16(averages[at + k] / largest[each] * most + 0.5)


# --- solving ------------------------------------------------------------------------------------------------------


class Certificate(NamedTuple):
    """Shares of wins from a round on, each (players,) float64. In a game of one round all who lose no die share the win."""

    plays: np.ndarray  # when all follow the strategies
    responds: np.ndarray  # of a player who responds best to all others

    @property
    def gain(self) -> float:
        """What the players gain by leaving the strategies, each alone, in all; of two, the exploitability for ±1."""
        return float((self.responds - self.plays).sum())

    @property
    def bounds(self) -> Bounds:
        """Bounds of the starter's chance to win a round of two players."""
        return Bounds.between(1 - float(self.responds[1]), float(self.responds[0]))


class Walker:
    """Walks the tree of a round by strategies that are held as numbers.

    Args:
        tree: of the round.
        averages: (numbers,) of any type, in proportion to how likely each action is; see `Kinds`.
        threads: number of threads that walk at once, each below other first bids.

    Attributes:
        look: called before each share of a walk of a large round; whatever it raises ends the walk.
    """

    def __init__(self, tree: Tree, averages: np.ndarray, threads: int = 1) -> None:
        self.tree = tree
        self.averages = averages
        self._numbers = Numbers(np.zeros(0, averages.dtype), averages)
        self._pace = Pace(1.0, 1.0)
        kinds = tree.kinds
        self._shares = _divided(tree, SHARES * threads)
        self._values = np.zeros((int(kinds.first_edge[1]), int(kinds.classes.max())))
        self._top = Scratch.of(tree)
        self._scratch = [Scratch.of(tree) for _ in range(_walks_of(tree, threads) - 1)]
        self.look: Callable[[], Any] = lambda: None
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)  # starts threads at its first use

    def _pass(self, player: int, mode: int) -> float:
        """Walk once in a player's view, and return its chance to win."""
        kinds, top, chances = self.tree.kinds, self._top, self.tree.class_chances
        top.reach[0, : len(chances[1 - player])] = chances[1 - player]
        view = View(player, mode, self._numbers, self._pace)
        if not self._scratch:
            top.kind[0] = top.offset[0] = 0
            _walk(kinds, top, 0, view)
        else:
            _begin(kinds, top, view)
            waiting = iter(self._shares)  # next() of a list's iterator is atomic

            def work(scratch: Scratch) -> None:
                for edges in waiting:
                    self.look()
                    _branches(kinds, top, scratch, edges, view, self._values)

            list(self._pool.map(work, self._scratch))
            _end(kinds, top, view, self._values)
        return float(top.value[0, : len(chances[player])] @ chances[player])

    def responds(self) -> np.ndarray:
        """Return each player's chance to win the round by a best response to the other's strategy, (2,) float64."""
        return np.array([self._pass(player, RESPOND) for player in range(2)])

    def certify(self) -> Certificate:
        """Certify the strategies for this round alone."""
        starter = self._pass(0, FOLLOW)
        return Certificate(np.array([starter, 1 - starter]), self.responds())

    def response(self, player: int, kind: int, offset: int, reach: np.ndarray) -> np.ndarray:
        """Return what the player's best response wins below a node, by its classes, times the sum of `reach`, float64.

        Args:
            player: 0 or 1.
            kind, offset: of the node.
            reach: (classes,) the chance that the other player comes there with each class of hands.
        """
        top = self._top
        top.kind[0], top.offset[0] = kind, offset
        top.reach[0, : len(reach)] = reach
        _walk(self.tree.kinds, top, 0, View(player, RESPOND, self._numbers, self._pace))
        return top.value[0, : int(self.tree.kinds.classes[kind, player])].copy()

    def bid_chances(self, kind: int, offset: int, edge: int) -> np.ndarray:
        """Return the chance that each class of a node's mover takes an edge there, (classes,) float64."""
        kinds, top = self.tree.kinds, self._top
        mix_at(kinds, kind, offset, self.averages, top.mix, top.total)
        chances = np.zeros(int(kinds.classes[kind, kinds.mover[kind]]))
        active = int(kinds.active[kind])
        chances[:active] = top.mix[1 + edge - int(kinds.first_edge[kind]), :active]
        return chances


def _walks_of(tree: Tree, threads: int) -> int:
    """Return how many places a walk visits at once: the empty history and one in each share, or one in the whole tree."""
    return 1 + threads if threads > 1 or tree.kinds.size[0] >= SHARED_FROM else 1


def _divided(tree: Tree, count: int) -> list[np.ndarray]:
    """Divide the first bids into `count` shares of about the same work, the largest first, so that all threads end together."""
    kinds = tree.kinds
    edges = [edge for edge in range(int(kinds.first_edge[1])) if kinds.child[edge] != LEAF]
    sizes = [int(kinds.size[kinds.child[edge]]) for edge in edges]
    shares: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for size, edge in sorted(zip(sizes, edges, strict=True), reverse=True):
        least = loads.index(min(loads))
        shares[least].append(edge)
        loads[least] += size
    return [np.array(share, np.int64) for _, share in sorted(zip(loads, shares, strict=True), reverse=True) if share]


class RoundSolver(Walker):
    """Approaches an equilibrium of one round, iteration by iteration.

    Attributes:
        iterations: number made so far.
    """

    def __init__(self, tree: Tree, threads: int = 1) -> None:
        size = int(tree.kinds.size[0])
        dtype = dtype_of(size)
        super().__init__(tree, np.zeros(size, dtype), threads)
        self._numbers = Numbers(np.zeros(size, dtype), self.averages)
        self.iterations = 0

    def iterate(self, count: int) -> None:
        """Learn for `count` more iterations."""
        for _ in range(count):
            self.iterations += 1
            if self.iterations > 1:
                self._pace = self._pace.at(self.iterations)
            for player in range(2):
                self._pass(player, LEARN)


def dtype_of(size: int) -> type[np.floating]:
    """Return the type in which a list of this size is held."""
    return np.float64 if size < SMALL else np.float32


def memory_of(trees: Iterable[Tree], threads: int = 1) -> int:
    """Return the bytes that the trees, their `RoundSolver`s and the results take, and the certificate of one of them."""
    total = largest = 0
    for tree in trees:
        size = int(tree.kinds.size[0])
        described = sum(array.nbytes for arrays in (tree.kinds, *tree.class_of) for array in arrays)
        walks = sum(array.nbytes for array in Scratch.of(tree)) * _walks_of(tree, threads)
        total += size * (2 * np.dtype(dtype_of(size)).itemsize + 2) + described + walks
        largest = max(largest, walks)
    return total + largest


def quantised(tree: Tree, averages: np.ndarray) -> np.ndarray:
    """Round strategies to 65,536 levels, (numbers,) uint16: the likeliest action of each class has the highest."""
    out = np.zeros(len(averages), np.uint16)
    _quantise(tree.kinds, Scratch.of(tree), averages, float(MOST_LEVELS), out)
    return out
