"""Equilibria of one round of Liar's Dice between two players: counterfactual regret minimisation with a certificate.

One walk of the tree takes the view of one player and carries how likely the other one comes to each node with each
class of hands. A node that the other one never reaches is left out with all that lies below it. The walk learns the
player's regrets and, of the other one, the average strategy, since its reach is at hand.

Sources: O. Tammelin, "Solving Large Imperfect Information Games Using CFR+" (2014), for regrets that stay at 0 or
above and for players who learn in turns; N. Brown and T. Sandholm, "Solving Imperfect-Information Games via Discounted
Regret Minimization" (AAAI 2019), for discounts of regrets and averages.
"""

from __future__ import annotations

import concurrent.futures
from typing import NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.tree import LEAF, Tree

__all__ = ["FOLLOW", "RESPOND", "Bounds", "RoundSolver", "Walker", "memory_of", "mix_at", "quantised", "strategy_at"]

LEARN, RESPOND, FOLLOW = 0, 1, 2  # what the player whose view a walk takes does: learn, play best, play the average
SMALL = 500_000  # rounds of fewer numbers are learnt in float64
SHARES = 4  # of the first bids, for each thread: whoever is done early takes another
MOST_LEVELS = 65_535  # to which a strategy is rounded where it is stored in uint16


class Numbers(NamedTuple):
    """One number for each class and action of each node, as `Kinds` lays them out."""

    regrets: np.ndarray  # (numbers,) float: never below 0
    averages: np.ndarray  # (numbers,) of any type: in proportion to how likely each action is


class Pace(NamedTuple):
    """What an iteration counts, relative to the first: discounts of what came before, turned around."""

    weight: float  # of the strategies in their averages
    step: float  # of regrets


class Scratch(NamedTuple):
    """Where a walk keeps what belongs to the nodes on its path. The first axis of most is the depth."""

    kind: np.ndarray  # (depth,) int64
    offset: np.ndarray  # (depth,) int64: where the node's numbers begin
    edge: np.ndarray  # (depth,) int64: the next to follow
    reach: np.ndarray  # (depth, classes) float64: of the other player
    value: np.ndarray  # (depth, classes) float64: the chance that the player wins, times the other's reach
    action: np.ndarray  # (depth, actions, classes) float64: at the player's nodes what an action is worth, at the
    # other's how likely it comes there and takes it; the call is action 0, an edge's raise 1 + its place
    mix: np.ndarray  # (actions, classes) float64: the player's strategy at one node
    total: np.ndarray  # (classes,) float64
    nothing: np.ndarray  # (classes,) float64: zeros
    matched: np.ndarray  # (quantities,) float64


def _scratch_for(tree: Tree) -> Scratch:
    kinds = tree.kinds
    height = np.ones(len(kinds.mover), np.int64)
    for kind in reversed(range(len(height))):
        below = kinds.child[kinds.first_edge[kind] : kinds.first_edge[kind + 1]]
        height[kind] += max((height[child] for child in below if child != LEAF), default=0)
    depth, classes = int(height[0]), int(kinds.classes.max())
    actions = 1 + int(np.diff(kinds.first_edge).max())
    return Scratch(
        kind=np.zeros(depth, np.int64),
        offset=np.zeros(depth, np.int64),
        edge=np.zeros(depth, np.int64),
        reach=np.zeros((depth, classes)),
        value=np.zeros((depth, classes)),
        action=np.zeros((depth, actions, classes)),
        mix=np.zeros((actions, classes)),
        total=np.zeros(classes),
        nothing=np.zeros(classes),
        matched=np.zeros(int(kinds.needed.max()) + 2),
    )


# --- one node -----------------------------------------------------------------------------------------------------


@kernel(allocates=False, inline=True)
def _call_chances(kinds, kind, player, weights, matched):
    """Write the sums of `weights`, by the player's classes, over those with at least 0, 1, 2, … dice for the bid. In place.

    No class counts more dice than were bid, so `needed` + 2 entries are enough, the last of them 0.
    """
    needed = kinds.needed[kind]
    for count in range(needed + 2):
        matched[count] = 0.0
    at = kinds.match_at[kind, player]
    for each in range(kinds.classes[kind, player]):
        matched[kinds.match[at + each]] += weights[each]
    for count in range(needed - 1, -1, -1):
        matched[count] += matched[count + 1]


@kernel(allocates=False, inline=True)
def mix_at(kinds, kind, offset, numbers, rows, total):
    """Write the strategy that a node's numbers are in proportion to, (actions, active classes). In place.

    Where all of a class are 0, its actions are equally likely. `total` is scratch. `rows` has a row for the call, which
    there is none of at the empty history, and one for each edge.
    """
    active = kinds.active[kind]
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    start = 1 if kind == 0 else 0
    for each in range(active):
        total[each] = 0.0
    if kind != 0:
        for each in range(active):
            rows[0, each] = numbers[offset + each]
            total[each] += rows[0, each]
    for edge in range(first, last):
        row = rows[1 + edge - first]
        at = offset + kinds.entry[edge]
        if kinds.child[edge] == LEAF:
            for each in range(active):
                row[each] = 0.0
            for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
                row[kinds.allowed[k]] = numbers[at]
                total[kinds.allowed[k]] += numbers[at]
                at += 1
        else:
            for each in range(active):
                row[each] = numbers[at + each]
                total[each] += row[each]
    unknown = False
    for each in range(active):
        unknown |= total[each] == 0.0
        total[each] = 1.0 / total[each] if total[each] > 0.0 else 0.0
    for place in range(start, 1 + last - first):
        for each in range(active):
            rows[place, each] *= total[each]
    if unknown:
        for each in range(active):
            if total[each] == 0.0:
                _mix_evenly(kinds, kind, each, rows)


@kernel(allocates=False)
def _mix_evenly(kinds, kind, each, rows):
    """Make the actions of one class equally likely. In place."""
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    choices = 0.0
    if kind != 0:
        rows[0, each] = 1.0
        choices = 1.0
    for edge in range(first, last):
        may = kinds.child[edge] != LEAF
        for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
            may |= kinds.allowed[k] == each
        rows[1 + edge - first, each] = 1.0 if may else 0.0
        choices += rows[1 + edge - first, each]
    for place in range(1 if kind == 0 else 0, 1 + last - first):
        rows[place, each] /= choices


@kernel(allocates=False, inline=True)
def _add(kinds, kind, offset, numbers, factor, rows, less):
    """Add factor * (rows - less) to a node's numbers, which stay at 0 or above. In place."""
    active = kinds.active[kind]
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    if kind != 0:
        for each in range(active):
            numbers[offset + each] = max(0.0, numbers[offset + each] + factor * (rows[0, each] - less[each]))
    for edge in range(first, last):
        row = rows[1 + edge - first]
        at = offset + kinds.entry[edge]
        if kinds.child[edge] == LEAF:
            for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
                each = kinds.allowed[k]
                numbers[at] = max(0.0, numbers[at] + factor * (row[each] - less[each]))
                at += 1
        else:
            for each in range(active):
                numbers[at + each] = max(0.0, numbers[at + each] + factor * (row[each] - less[each]))


@kernel(allocates=False, inline=True)
def _enter_other(kinds, kind, offset, player, mode, numbers, pace, scratch, reach, value, action):
    """Come to a node where the other player moves: what its calls are worth, and how likely it takes each action. In place."""
    other = 1 - player
    active = kinds.active[kind]
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    classes = kinds.classes[kind, player]
    if active > 0:
        mix_at(kinds, kind, offset, numbers.regrets if mode == LEARN else numbers.averages, action, scratch.total)
        for place in range(1 if kind == 0 else 0, 1 + last - first):
            for each in range(active):
                action[place, each] *= reach[each]
        if mode == LEARN:
            _add(kinds, kind, offset, numbers.averages, pace.weight, action, scratch.nothing)
    for each in range(classes):
        value[each] = 0.0
    if kind != 0:
        for each in range(active, kinds.classes[kind, other]):
            action[0, each] = reach[each]
        _call_chances(kinds, kind, other, action[0], scratch.matched)
        at = kinds.match_at[kind, player]
        needed = kinds.needed[kind]
        for each in range(classes):  # the player has made the bid and wins if it holds
            value[each] = scratch.matched[needed - kinds.match[at + each]]
    for edge in range(first, last):
        if kinds.child[edge] == LEAF:
            bid = 0.0
            for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
                bid += action[1 + edge - first, kinds.allowed[k]]
            at = kinds.map_at[edge, player]
            for each in range(classes):  # the player calls, and wins unless all its dice match as well
                if kinds.maps[at + each] == 0:
                    value[each] += bid


@kernel(allocates=False, inline=True)
def _enter_own(kinds, kind, player, scratch, reach, action):
    """Come to a node of the player: what a call and the bids that are called for certain are worth. In place."""
    other = 1 - player
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    if kind != 0:
        _call_chances(kinds, kind, other, reach, scratch.matched)
        at = kinds.match_at[kind, player]
        needed = kinds.needed[kind]
        for each in range(kinds.classes[kind, player]):  # the call wins if the bid fails
            action[0, each] = scratch.matched[0] - scratch.matched[needed - kinds.match[at + each]]
    for edge in range(first, last):
        if kinds.child[edge] == LEAF:
            won = 0.0
            at = kinds.map_at[edge, other]
            for each in range(kinds.classes[kind, other]):
                if kinds.maps[at + each] == 1:
                    won += reach[each]
            for each in range(kinds.active[kind]):
                action[1 + edge - first, each] = 0.0
            for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
                action[1 + edge - first, kinds.allowed[k]] = won


@kernel(allocates=False, inline=True)
def _leave_own(kinds, kind, offset, player, mode, numbers, pace, scratch, value, action):
    """Go from a node of the player: its values, and its regrets where it learns. In place."""
    active = kinds.active[kind]
    start = 1 if kind == 0 else 0
    actions = 1 + kinds.first_edge[kind + 1] - kinds.first_edge[kind]
    for each in range(active):
        value[each] = 0.0
    if kind != 0:
        for each in range(active, kinds.classes[kind, player]):
            value[each] = action[0, each]
    if active == 0:
        return
    if mode == RESPOND:
        for place in range(start, actions):
            for each in range(active):
                value[each] = max(value[each], action[place, each])
        return
    mix_at(kinds, kind, offset, numbers.regrets if mode == LEARN else numbers.averages, scratch.mix, scratch.total)
    for place in range(start, actions):
        for each in range(active):
            value[each] += scratch.mix[place, each] * action[place, each]
    if mode == LEARN:
        _add(kinds, kind, offset, numbers.regrets, pace.step, action, value)


@kernel(allocates=False)
def strategy_at(kinds, kind, offset, numbers, each, call, bids, out):
    """Write how likely one active class takes each action at a node into `out` (actions,), which holds zeros. In place.

    `bids` (edges,) says which action an edge stands for, `call` is the call.
    """
    total = 0.0
    for even in range(2):  # the second time round only for a class that the strategy never brings here
        if even == 1 and total > 0.0:
            break
        if kind != 0:
            out[call] = 1.0 if even == 1 else numbers[offset + each]
            total += out[call]
        for edge in range(kinds.first_edge[kind], kinds.first_edge[kind + 1]):
            at = -1
            if kinds.child[edge] != LEAF:
                at = offset + kinds.entry[edge] + each
            else:
                for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
                    if kinds.allowed[k] == each:
                        at = offset + kinds.entry[edge] + k - kinds.allowed_at[edge]
            if at >= 0:
                out[bids[edge]] = 1.0 if even == 1 else numbers[at]
                total += out[bids[edge]]
    for action in range(len(out)):
        out[action] /= total


# --- the walk -----------------------------------------------------------------------------------------------------


@kernel(allocates=False, inline=True)
def _enter(kinds, scratch, depth, player, mode, numbers, pace):
    kind, offset = scratch.kind[depth], scratch.offset[depth]
    scratch.edge[depth] = kinds.first_edge[kind]
    reach, value, action = scratch.reach[depth], scratch.value[depth], scratch.action[depth]
    if kinds.mover[kind] == player:
        _enter_own(kinds, kind, player, scratch, reach, action)
    else:
        _enter_other(kinds, kind, offset, player, mode, numbers, pace, scratch, reach, value, action)


@kernel(allocates=False, inline=True)
def _leave(kinds, scratch, depth, player, mode, numbers, pace):
    kind, offset = scratch.kind[depth], scratch.offset[depth]
    if kinds.mover[kind] == player:
        _leave_own(
            kinds, kind, offset, player, mode, numbers, pace, scratch, scratch.value[depth], scratch.action[depth]
        )  # fmt: skip


@kernel(allocates=False, inline=True)
def _go_down(kinds, kind, edge, player, reach, action, below):
    """Write the other player's reach at the child that an edge leads to; returns whether there is any. In place."""
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
def _walk(kinds, scratch, start, player, mode, numbers, pace):
    """Visit the node at depth `start` of `scratch` and all below it. All arrays but `kinds` are modified in place.

    The path never grows longer than the tree is high, which is the depth that `scratch` has room for.
    """
    depth = start
    _enter(kinds, scratch, depth, player, mode, numbers, pace)
    while True:
        kind = scratch.kind[depth]
        edge = scratch.edge[depth]
        last = kinds.first_edge[kind + 1]
        while edge < last and kinds.child[edge] == LEAF:
            edge += 1
        if edge < last:
            scratch.edge[depth] = edge + 1
            if _go_down(kinds, kind, edge, player, scratch.reach[depth], scratch.action[depth], scratch.reach[depth + 1]):
                scratch.kind[depth + 1] = kinds.child[edge]
                scratch.offset[depth + 1] = scratch.offset[depth] + kinds.shift[edge]
                depth += 1
                _enter(kinds, scratch, depth, player, mode, numbers, pace)
            continue
        _leave(kinds, scratch, depth, player, mode, numbers, pace)
        if depth == start:
            return
        below = scratch.value[depth]
        depth -= 1
        edge = scratch.edge[depth] - 1
        _come_up(kinds, scratch.kind[depth], edge, player, scratch.value[depth], scratch.action[depth], below)


@kernel(allocates=False)
def _begin(kinds, scratch, player, mode, numbers, pace):
    """Enter the empty history, whose reach is set. In place."""
    scratch.kind[0] = 0
    scratch.offset[0] = 0
    _enter(kinds, scratch, 0, player, mode, numbers, pace)


@kernel(allocates=False)
def _branches(kinds, top, scratch, edges, player, mode, numbers, pace, values):
    """Walk what follows some of the first bids, and write its values into values[edges]. In place, but for `top`."""
    for edge in edges:
        value = values[edge]
        for each in range(len(value)):
            value[each] = 0.0
        if _go_down(kinds, 0, edge, player, top.reach[0], top.action[0], scratch.reach[1]):
            scratch.kind[1] = kinds.child[edge]
            scratch.offset[1] = kinds.shift[edge]
            _walk(kinds, scratch, 1, player, mode, numbers, pace)
            for each in range(kinds.classes[kinds.child[edge], player]):
                value[each] = scratch.value[1, each]


@kernel(allocates=False)
def _end(kinds, scratch, player, mode, numbers, pace, values):
    """Leave the empty history, the values of whose branches are `values` (edges, classes). In place."""
    for edge in range(kinds.first_edge[1]):
        if kinds.child[edge] != LEAF:
            _come_up(kinds, 0, edge, player, scratch.value[0], scratch.action[0], values[edge])
    _leave(kinds, scratch, 0, player, mode, numbers, pace)


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
            for place in range(0 if kind != 0 else 1, 1 + last - first):
                _scale(kinds, kind, offset, place, averages, 0.0, scratch.total, out)
            for place in range(0 if kind != 0 else 1, 1 + last - first):
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


class Bounds(NamedTuple):
    """What the starter's chance to win the round lies between, by best responses to the strategies held."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """How much more than the value the two best responses win together: the exploitability of a round for ±1."""
        return self.upper - self.lower


class Walker:
    """Walks the tree of a round by strategies that are held as numbers.

    Args:
        tree: of the round.
        averages: (numbers,) of any type, in proportion to how likely each action is; see `Kinds`.
        threads: how many walk at once, each another first bid.
    """

    def __init__(self, tree: Tree, averages: np.ndarray, threads: int = 1) -> None:
        self.tree = tree
        self.averages = averages
        self._numbers = Numbers(np.zeros(0, averages.dtype), averages)
        self._pace = Pace(1.0, 1.0)
        kinds = tree.kinds
        self._shares = _shares(tree, SHARES * threads)
        self._values = np.zeros((int(kinds.first_edge[1]), int(kinds.classes.max())))
        self._top = _scratch_for(tree)
        self._scratch = [_scratch_for(tree) for _ in range(threads)] if threads > 1 else []
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)  # starts threads when they are asked for

    def _pass(self, player: int, mode: int) -> float:
        """One walk in a player's view; returns its chance to win."""
        kinds, top, chances = self.tree.kinds, self._top, self.tree.chances
        top.reach[0, : len(chances[1 - player])] = chances[1 - player]
        how = player, mode, self._numbers, self._pace
        if not self._scratch:
            top.kind[0] = top.offset[0] = 0
            _walk(kinds, top, 0, *how)
        else:
            _begin(kinds, top, *how)
            waiting = iter(self._shares)  # next() of a list's iterator is atomic

            def work(scratch: Scratch) -> None:
                for edges in waiting:
                    _branches(kinds, top, scratch, edges, *how, self._values)

            list(self._pool.map(work, self._scratch))
            _end(kinds, top, *how, self._values)
        return float(top.value[0, : len(chances[player])] @ chances[player])

    def bounds(self) -> Bounds:
        """What best responses to the two strategies leave of the starter's chance to win the round."""
        return Bounds(1 - self._pass(1, RESPOND), self._pass(0, RESPOND))

    def value(self) -> float:
        """The starter's chance to win if both play as the numbers say."""
        return self._pass(0, FOLLOW)

    def response(self, player: int, kind: int, offset: int, reach: np.ndarray) -> np.ndarray:
        """What the player's best response wins below a node, by its classes, times the sum of `reach`, float64.

        Args:
            player: 0 or 1.
            kind, offset: of the node.
            reach: (classes,) how likely the other player has each class of hands there.
        """
        top = self._top
        top.kind[0], top.offset[0] = kind, offset
        top.reach[0, : len(reach)] = reach
        _walk(self.tree.kinds, top, 0, player, RESPOND, self._numbers, self._pace)
        return top.value[0, : int(self.tree.kinds.classes[kind, player])].copy()

    def bid_chances(self, kind: int, offset: int, edge: int) -> np.ndarray:
        """How likely each class of a node's mover takes an edge there, (classes,) float64."""
        kinds, top = self.tree.kinds, self._top
        mix_at(kinds, kind, offset, self.averages, top.mix, top.total)
        chances = np.zeros(int(kinds.classes[kind, kinds.mover[kind]]))
        active = int(kinds.active[kind])
        chances[:active] = top.mix[1 + edge - int(kinds.first_edge[kind]), :active]
        return chances


def _shares(tree: Tree, count: int) -> list[np.ndarray]:
    """The first bids in so many shares of about the same work, the largest first, so that all threads end together."""
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
    """Finds an equilibrium of one round, better with every iteration.

    Attributes:
        iterations: made so far.
    """

    def __init__(self, tree: Tree, threads: int = 1) -> None:
        size = int(tree.kinds.size[0])
        dtype = _dtype(size)
        super().__init__(tree, np.zeros(size, dtype), threads)
        self._numbers = Numbers(np.zeros(size, dtype), self.averages)
        self.iterations = 0

    def iterate(self, count: int) -> None:
        """Learn for some more iterations.

        Iteration t's regrets count t^α/(t^α + 1) of the next one's, its strategies ((t - 1)/t)^γ of the next one's in
        the averages: Brown and Sandholm's discounts, with α growing from 1 to 3 and γ falling from 6 to 3.
        """
        for _ in range(count):
            self.iterations += 1
            t = self.iterations
            if t > 1:
                alpha, gamma = min(3.0, 1 + 2 * t / 200), max(3.0, 6 - 3 * t / 200)
                weight = self._pace.weight * (t / (t - 1)) ** gamma
                self._pace = Pace(weight, self._pace.step * (1 + (t - 1) ** -alpha))
            for player in range(2):
                self._pass(player, LEARN)


def _dtype(size: int) -> type[np.floating]:
    return np.float64 if size < SMALL else np.float32


def memory_of(tree: Tree) -> int:
    """Bytes that a `RoundSolver` and the result it leaves take."""
    size = int(tree.kinds.size[0])
    return size * (2 * np.dtype(_dtype(size)).itemsize + 2)


def quantised(tree: Tree, averages: np.ndarray) -> np.ndarray:
    """The strategies with 65,536 levels, (numbers,) uint16: the likeliest action of each class has the highest."""
    out = np.zeros(len(averages), np.uint16)
    _quantise(tree.kinds, _scratch_for(tree), averages, float(MOST_LEVELS), out)
    return out
