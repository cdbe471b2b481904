"""Counterfactual regret minimisation for one round of Liar's Dice between two players and more, with a certificate.

One walk of the tree takes the view of one player and carries the reach of all others: how likely each comes to a node with
each class of its hands. Their dice are independent, so how many of them count for a bid together follows from a convolution.
A node that the others never reach is left out with all that lies below it. The walk learns the viewer's regrets, and the
average strategy of the player before it, whose reach is at hand.

A round ends when a player loses a die; what that is worth to each is given. With three players or more this is no zero-sum
game: regrets that vanish promise a coarse correlated equilibrium only. How much a player gains by leaving the average
strategies is computed by best responses, and says how near they are to an equilibrium.

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
from dice_envs.games.liars_dice.exact.seating import Certificate
from dice_envs.games.liars_dice.exact.tree import LEAF, Tree, mix_at, numbers_at

LEARN, RESPOND, FOLLOW = 0, 1, 2  # of `View.mode`: the player learns, plays best, plays the average
SMALL = 500_000  # rounds of fewer numbers are learnt in float64
SHARED_FROM = 800_000  # numbers of a round that is walked by first bids, so that a walk can be ended early
MOST_LEVELS = 65_535  # to which a strategy is rounded where it is stored in uint16
OF_TWO = np.array([[0.0, 1.0], [1.0, 0.0]])  # what a round of two is worth to each player, if each of them loses the die


# --- what kernels receive -------------------------------------------------------------------------------------------------


class View(NamedTuple):
    """How a walk goes: in whose view, and by which numbers."""

    player: int
    mode: int  # LEARN, RESPOND or FOLLOW; in the last two all others follow their averages
    payoffs: np.ndarray  # (players,) float64: what the rest of the game is worth to the player if each of them loses the die
    # Strategies, (numbers,) of any type: never below 0, in proportion to how likely each action is; see `Kinds`.
    plays: np.ndarray  # of all who do not respond: the regrets if the player learns, else the averages
    averages: np.ndarray
    # The weights of an iteration relative to the first one: the inverse of the discounts of what came before.
    weight: float  # of the strategies in their averages
    step: float  # of regrets


class Scratch(NamedTuple):
    """Work space of a walk for the nodes on its path. The first axis of most arrays is the depth.

    It has room for the longest path, the most actions and classes of any kind, and quantities from 0 to the highest bid's.
    """

    kind: np.ndarray  # (depth,) int64
    offset: np.ndarray  # (depth,) int64: where the node's numbers begin
    edge: np.ndarray  # (depth,) int64: the next to follow
    live: np.ndarray  # (depth,) bool: whether all others come there
    learns: np.ndarray  # (depth,) bool: whether the player does whose averages are learnt
    reach: np.ndarray  # (depth, players, classes) float64; the viewer's is not kept
    value: np.ndarray  # (depth, classes) float64: what the round is worth to the viewer, times the reach of all others
    action: np.ndarray  # (depth, actions, classes) float64: at the viewer's nodes the value of an action, at others'
    # the chance that the mover comes there and takes it
    mix: np.ndarray  # (actions, classes) float64: the viewer's strategy at one node
    factor: np.ndarray  # (classes,) float64
    nothing: np.ndarray  # (classes,) float64: zeros
    matched: np.ndarray  # (quantities,) float64: how likely the others come with 0, 1, 2 … or more matches
    more: np.ndarray  # (quantities,) float64
    one: np.ndarray  # (quantities,) float64
    several: tuple[int, ...]  # empty for two players: kernels know its length, and so that there is one other, when compiled

    @classmethod
    def of(cls, tree: Tree) -> Scratch:
        """Return room for walks of a tree."""
        kinds = tree.kinds
        height = np.ones(len(kinds.mover), np.int64)
        for kind in reversed(range(len(height))):
            below = kinds.child[kinds.first_edge[kind] : kinds.first_edge[kind + 1]]
            height[kind] += max((height[child] for child in below if child != LEAF), default=0)
        depth, classes, players = int(height[0]), int(kinds.classes.max()), len(tree.dice)
        actions, quantities = 1 + int(np.diff(kinds.first_edge).max()), 1 + int(kinds.needed.max())
        return cls(
            kind=np.zeros(depth, np.int64),
            offset=np.zeros(depth, np.int64),
            edge=np.zeros(depth, np.int64),
            live=np.ones(depth, np.bool_),
            learns=np.ones(depth, np.bool_),
            reach=np.zeros((depth, players, classes)),
            value=np.zeros((depth, classes)),
            action=np.zeros((depth, actions, classes)),
            mix=np.zeros((actions, classes)),
            factor=np.zeros(classes),
            nothing=np.zeros(classes),
            matched=np.zeros(quantities),
            more=np.zeros(quantities),
            one=np.zeros(quantities),
            several=(1,) if players > 2 else (),
        )


# --- calls ----------------------------------------------------------------------------------------------------------------


@kernel(allocates=False, inline=True)
def _others_of(kinds, scratch):
    """Return how many others there are."""
    return kinds.classes.shape[1] - 1 if len(scratch.several) > 0 else 1


@kernel(allocates=False, inline=True)
def _after(player, others):
    """Return the player after one: who calls what it bids."""
    return player + 1 if player < others else 0


@kernel(allocates=False, inline=True)
def _before(player, others):
    """Return the player before one: who bids where it is to move."""
    return player - 1 if player > 0 else others


@kernel(allocates=False)
def _convolve(needed, scratch):
    """Add independent numbers of matches, `scratch.one`, to those in `scratch.matched`; sums end at `needed`. In place."""
    matched, more, one = scratch.matched, scratch.more, scratch.one
    for count in range(needed + 1):
        more[count] = matched[count]
        matched[count] = 0.0
    for count in range(needed + 1):
        if more[count] > 0.0:
            for match in range(needed + 1):
                matched[min(count + match, needed)] += more[count] * one[match]


@kernel(allocates=False, inline=True)
def _add_matches(kinds, kind, player, weights, is_first, scratch):
    """Add a player's matches to `scratch.matched`, how likely others come with 0, 1, 2 … matches together. In place.

    No class counts more dice than were bid, and sums end there, so that the entries up to `needed` are enough.
    """
    needed = kinds.needed[kind]
    added = scratch.matched if is_first else scratch.one
    for count in range(needed + 1):
        added[count] = 0.0
    at = kinds.match_at[kind, player]
    for each in range(kinds.classes[kind, player]):
        added[kinds.match[at + each]] += weights[each]
    if not is_first:
        _convolve(needed, scratch)


@kernel(allocates=False, inline=True)
def _write_call(kinds, scratch, depth, view, row, out):
    """Write what a call of the last bid is worth to the viewer, by class, into `out`. In place.

    `row` (classes,) is the reach with which the mover calls, if it is not the viewer.
    """
    kind, player, others = scratch.kind[depth], view.player, _others_of(kinds, scratch)
    mover, needed, matched = kinds.mover[kind], kinds.needed[kind], scratch.matched
    other = player
    for place in range(others):
        other = _after(other, others)
        _add_matches(kinds, kind, other, row if other == mover else scratch.reach[depth, other], place == 0, scratch)
    for count in range(needed - 1, -1, -1):
        matched[count] += matched[count + 1]
    holds, fails = view.payoffs[mover], view.payoffs[_before(mover, others)]
    at = kinds.match_at[kind, player]
    for each in range(kinds.classes[kind, player]):
        hold = matched[needed - kinds.match[at + each]]
        out[each] = hold * holds + (matched[0] - hold) * fails


@kernel(allocates=False, inline=True)
def _value_leaf(kinds, scratch, depth, view, edge):
    """Return what a bid that is called for certain is worth to a viewer whose dice all match, and to one with others.

    All dice are bid, so that the bid holds if all dice of all players match. The call at the node has just been valued.
    """
    kind, others = scratch.kind[depth], _others_of(kinds, scratch)
    mover, is_own = kinds.mover[kind], kinds.mover[kind] == view.player
    come = scratch.matched[0] if is_own else 1.0
    match = 1.0
    other = view.player
    for _ in range(others):
        other = _after(other, others)
        total = 0.0
        matching = 0.0
        at = kinds.map_at[edge, other]
        if other == mover:
            row = scratch.action[depth, 1 + edge - kinds.first_edge[kind]]
            for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
                total += row[kinds.allowed[k]]
                if kinds.maps[at + kinds.allowed[k]] == 1:
                    matching += row[kinds.allowed[k]]
        else:
            reach = scratch.reach[depth, other]
            for each in range(kinds.classes[kind, other]):
                total += reach[each]
                if kinds.maps[at + each] == 1:
                    matching += reach[each]
        match *= matching
        if not is_own:
            come *= total
    holds, fails = view.payoffs[_after(mover, others)], view.payoffs[mover]
    return match * holds + (come - match) * fails, come * fails


# --- visits ---------------------------------------------------------------------------------------------------------------


@kernel(allocates=False, inline=True)
def _add(kinds, kind, offset, numbers, factor, rows, less):
    """Add factor * (rows - less) to a node's numbers, which stay at 0 or above. In place."""
    active, first = kinds.active[kind], kinds.first_edge[kind]
    begin = 1 if kind == 0 else 0  # the empty history has no numbers of a call
    at = offset
    for place in range(begin, 1 + kinds.first_leaf[kind] - first):
        for each in range(active):
            numbers[at + each] = max(0.0, numbers[at + each] + factor * (rows[place, each] - less[each]))
        at += active
    for edge in range(kinds.first_leaf[kind], kinds.first_edge[kind + 1]):
        for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
            each = kinds.allowed[k]
            numbers[at] = max(0.0, numbers[at] + factor * (rows[1 + edge - first, each] - less[each]))
            at += 1


@kernel(allocates=False, inline=True)
def _follow(kinds, scratch, depth, view):
    """Write how likely the mover, who is not the viewer, comes to a node and takes each action; average it. In place."""
    kind, offset, action = scratch.kind[depth], scratch.offset[depth], scratch.action[depth]
    mover, active = kinds.mover[kind], kinds.active[kind]
    reach = scratch.reach[depth, mover]
    if active > 0:
        mix_at(kinds, kind, offset, view.plays, action, scratch.factor)
        for place in range(1 + kinds.first_edge[kind + 1] - kinds.first_edge[kind]):
            for each in range(active):
                action[place, each] = action[place, each] * scratch.factor[each] * reach[each]
        if view.mode == LEARN and mover == _before(view.player, _others_of(kinds, scratch)):
            _add(kinds, kind, offset, view.averages, view.weight, action, scratch.nothing)
    for each in range(active, kinds.classes[kind, mover]):
        action[0, each] = reach[each]


@kernel(allocates=False, inline=True)
def _enter(kinds, scratch, depth, view):
    """Enter the node at a depth, whose kind, offset and reach are set. In place."""
    kind, player = scratch.kind[depth], view.player
    first = kinds.first_edge[kind]
    scratch.edge[depth] = first
    is_own, value, action = kinds.mover[kind] == player, scratch.value[depth], scratch.action[depth]
    if not is_own:
        _follow(kinds, scratch, depth, view)
    if not scratch.live[depth]:
        return
    _write_call(kinds, scratch, depth, view, action[0], action[0] if is_own else value)
    for edge in range(kinds.first_leaf[kind], kinds.first_edge[kind + 1]):
        all_match, others = _value_leaf(kinds, scratch, depth, view, edge)
        at = kinds.map_at[edge, player]
        if is_own:
            row = action[1 + edge - first]
            for each in range(kinds.active[kind]):
                row[each] = 0.0
            for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
                row[kinds.allowed[k]] = all_match if kinds.maps[at + kinds.allowed[k]] == 1 else others
        else:
            for each in range(kinds.classes[kind, player]):
                value[each] += all_match if kinds.maps[at + each] == 1 else others


@kernel(allocates=False, inline=True)
def _leave(kinds, scratch, depth, view):
    """Leave the node at a depth: one of the viewer gets its values, and new regrets where it learns. In place."""
    kind, offset = scratch.kind[depth], scratch.offset[depth]
    if kinds.mover[kind] != view.player or not scratch.live[depth]:
        return
    value, action = scratch.value[depth], scratch.action[depth]
    active = kinds.active[kind]
    actions = 1 + kinds.first_edge[kind + 1] - kinds.first_edge[kind]
    for each in range(active):
        value[each] = 0.0
    for each in range(active, kinds.classes[kind, view.player]):
        value[each] = action[0, each]
    if active == 0:
        return
    if view.mode == RESPOND:
        begin = 1 if kind == 0 else 0  # no call of nothing
        for each in range(active):
            value[each] = action[begin, each]
        for place in range(begin + 1, actions):
            for each in range(active):
                value[each] = max(value[each], action[place, each])
        return
    mix_at(kinds, kind, offset, view.plays, scratch.mix, scratch.factor)
    for place in range(actions):
        for each in range(active):
            value[each] += scratch.mix[place, each] * scratch.factor[each] * action[place, each]
    if view.mode == LEARN:
        _add(kinds, kind, offset, view.plays, view.step, action, value)


# --- the walk -------------------------------------------------------------------------------------------------------------


@kernel(allocates=False, inline=True)
def _go_down(kinds, above, scratch, depth, edge, view):
    """Enter all others' reach at the child that an edge leads to in `scratch`; return whether the walk goes there. In place.

    It does if all others come there, or when learning at least the player whose averages are learnt. The node is at `depth`
    of `above`.
    """
    kind, child, others = above.kind[depth], kinds.child[edge], _others_of(kinds, scratch)
    mover, live, learns = kinds.mover[kind], above.live[depth], above.learns[depth]
    other = view.player
    for _ in range(others):
        other = _after(other, others)
        below, at = scratch.reach[depth + 1, other], kinds.map_at[edge, other]
        for each in range(kinds.classes[child, other]):
            below[each] = 0.0
        weights = above.action[depth, 1 + edge - kinds.first_edge[kind]] if other == mover else above.reach[depth, other]
        arrived = 0.0
        for each in range(kinds.active[kind] if other == mover else kinds.classes[kind, other]):
            below[kinds.maps[at + each]] += weights[each]
            arrived += weights[each]
        if other == mover:
            live &= arrived > 0.0
            learns &= arrived > 0.0 or other != _before(view.player, others)
    scratch.live[depth + 1] = live
    scratch.learns[depth + 1] = learns
    scratch.kind[depth + 1] = child
    scratch.offset[depth + 1] = above.offset[depth] + kinds.shift[edge]
    return live or (learns and view.mode == LEARN)


@kernel(allocates=False, inline=True)
def _come_up(kinds, scratch, depth, edge, view, below):
    """Take the values of the child that an edge leads to into those of the node at a depth. In place."""
    kind, at = scratch.kind[depth], kinds.map_at[edge, view.player]
    if kinds.mover[kind] == view.player:
        row = scratch.action[depth, 1 + edge - kinds.first_edge[kind]]
        for each in range(kinds.active[kind]):
            row[each] = below[kinds.maps[at + each]]
    else:
        value = scratch.value[depth]
        for each in range(kinds.classes[kind, view.player]):
            value[each] += below[kinds.maps[at + each]]


@kernel(allocates=False)
def _walk(kinds, scratch, start, view):
    """Visit the node at depth `start` of `scratch` and all below it. In place; `kinds` is only read.

    The path never grows longer than the tree is high, which is the depth that `scratch` has room for.
    """
    depth = start
    _enter(kinds, scratch, depth, view)
    while True:
        edge = scratch.edge[depth]
        if edge < kinds.first_leaf[scratch.kind[depth]]:
            scratch.edge[depth] = edge + 1
            if _go_down(kinds, scratch, scratch, depth, edge, view):
                depth += 1
                _enter(kinds, scratch, depth, view)
            continue
        _leave(kinds, scratch, depth, view)
        if depth == start:
            return
        depth -= 1
        if scratch.live[depth + 1]:
            _come_up(kinds, scratch, depth, scratch.edge[depth] - 1, view, scratch.value[depth + 1])


@kernel(allocates=False)
def _branch(kinds, top, scratch, edge, view, value):
    """Walk what follows one of the first bids, and write its values into `value` (classes,). In place; `top` is only read."""
    value[:] = 0.0
    if _go_down(kinds, top, scratch, 0, edge, view):
        _walk(kinds, scratch, 1, view)
        for each in range(kinds.classes[kinds.child[edge], view.player] if scratch.live[1] else 0):
            value[each] = scratch.value[1, each]


@kernel(allocates=False)
def _quantise(kinds, scratch, averages, most, out):
    """Write every node's strategy, the likeliest action of each class as `most`, into `out` (numbers,) of zeros. In place."""
    depth, rows = 0, scratch.mix
    scratch.kind[0], scratch.offset[0], scratch.edge[0] = 0, 0, 0
    while depth >= 0:
        kind, offset, edge = scratch.kind[depth], scratch.offset[depth], scratch.edge[depth]
        first, actions = kinds.first_edge[kind], 1 + kinds.first_edge[kind + 1] - kinds.first_edge[kind]
        if edge == first:
            numbers_at(kinds, kind, offset, averages, rows, scratch.factor)
            for each in range(kinds.active[kind]):
                largest = 0.0
                for place in range(actions):
                    largest = max(largest, rows[place, each])
                for place in range(actions):
                    rows[place, each] = rows[place, each] / largest * most + 0.5 if largest > 0.0 else 0.0
            _add(kinds, kind, offset, out, 1.0, rows, scratch.nothing)
        if edge < kinds.first_leaf[kind]:
            scratch.edge[depth] = edge + 1
            depth += 1
            scratch.kind[depth] = kinds.child[edge]
            scratch.offset[depth] = offset + kinds.shift[edge]
            scratch.edge[depth] = kinds.first_edge[kinds.child[edge]]
        else:
            depth -= 1


# --- solving ------------------------------------------------------------------------------------------------------


class Walker:
    """Walks the tree of a round by strategies that are held as numbers.

    Args:
        tree: of the round.
        averages: (numbers,) of any type, in proportion to how likely each action is; see `Kinds`.
        threads: number of threads that walk at once, each below other first bids.

    Attributes:
        look: called before each first bid in a walk of a large round; whatever it raises ends the walk.
    """

    def __init__(self, tree: Tree, averages: np.ndarray, threads: int = 1) -> None:
        self.tree = tree
        self.averages = averages
        self._regrets = averages  # a solver has its own
        self._weight = self._step = 1.0
        kinds = tree.kinds
        # The largest first, so that all threads end together.
        self._branches = sorted(range(int(kinds.first_leaf[0])), key=lambda edge: -int(kinds.size[kinds.child[edge]]))
        self._values = np.zeros((int(kinds.first_edge[1]), int(kinds.classes.max())))
        self._top = Scratch.of(tree)
        self._reach = np.zeros_like(self._top.reach[0])
        for reach, chances in zip(self._reach, tree.class_chances, strict=True):
            reach[: len(chances)] = chances
        self._scratch = [Scratch.of(tree) for _ in range(_walks_of(tree, threads) - 1)]
        self.look: Callable[[], Any] = lambda: None
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)  # starts threads at its first use

    def _pass(self, player: int, mode: int, payoffs: np.ndarray) -> float:
        """Walk once in a player's view, and return what the round is worth to it."""
        kinds, top, chances = self.tree.kinds, self._top, self.tree.class_chances
        top.reach[0], top.kind[0], top.offset[0] = self._reach, 0, 0
        plays = self._regrets if mode == LEARN else self.averages
        view = View(player, mode, payoffs[player], plays, self.averages, self._weight, self._step)
        if not self._scratch:
            _walk(kinds, top, 0, view)
        else:
            _enter(kinds, top, 0, view)
            waiting = iter(self._branches)  # next() of a list's iterator is atomic

            def work(scratch: Scratch) -> None:
                for edge in waiting:
                    self.look()
                    _branch(kinds, top, scratch, edge, view, self._values[edge])

            list(self._pool.map(work, self._scratch))
            for edge in range(len(self._branches)):
                _come_up(kinds, top, 0, edge, view, self._values[edge])
            _leave(kinds, top, 0, view)
        return float(top.value[0, : len(chances[player])] @ chances[player])

    def responds(self, payoffs: np.ndarray = OF_TWO) -> np.ndarray:
        """Return what the round is worth to each player that responds best to all others, (players,) float64.

        `payoffs`, (players, players) float64, is that to each player, if each of them loses the die. Of two, the round alone.
        """
        return np.array([self._pass(player, RESPOND, payoffs) for player in range(len(payoffs))])

    def certify(self, payoffs: np.ndarray = OF_TWO, responding: np.ndarray = OF_TWO) -> Certificate:
        """Certify the strategies. `payoffs` (see `responds`) holds if all follow them, `responding` for a best response."""
        plays = [self._pass(player, FOLLOW, payoffs) for player in range(1 if payoffs is OF_TWO else len(payoffs))]
        if payoffs is OF_TWO:
            plays.append(1 - plays[0])
        return Certificate(np.array(plays), self.responds(responding))

    def response(self, player: int, kind: int, offset: int, reach: np.ndarray) -> np.ndarray:
        """Return what the best response of one of two players wins below a node, by its classes, times the sum of `reach`.

        `reach`, (classes,), is the chance that the other player comes there with each class of hands.
        """
        top = self._top
        top.kind[0], top.offset[0] = kind, offset
        top.reach[0, 1 - player, : len(reach)] = reach
        _walk(self.tree.kinds, top, 0, View(player, RESPOND, OF_TWO[player], self.averages, self.averages, 1.0, 1.0))
        return top.value[0, : int(self.tree.kinds.classes[kind, player])].copy()


def _walks_of(tree: Tree, threads: int) -> int:
    """Return how many places a walk visits at once: the empty history and one in each branch, or one in the whole tree."""
    return 1 + threads if threads > 1 or tree.kinds.size[0] >= SHARED_FROM else 1


class RoundSolver(Walker):
    """Approaches strategies that no player gains by leaving, iteration by iteration.

    `payoffs`, (players, players) float64, is the rest of the game to each player, if each of them loses the die.

    Attributes:
        iterations: number made so far.
    """

    def __init__(self, tree: Tree, threads: int = 1, payoffs: np.ndarray = OF_TWO) -> None:
        size = int(tree.kinds.size[0])
        dtype = dtype_of(size)
        super().__init__(tree, np.zeros(size, dtype), threads)
        self._regrets = np.zeros(size, dtype)
        self._payoffs = payoffs
        self.iterations = 0

    def iterate(self, count: int) -> None:
        """Learn for `count` more iterations.

        Brown and Sandholm's discounts: before iteration t + 1 the regrets are multiplied by t^α/(t^α + 1); before iteration t
        the averages by ((t - 1)/t)^γ. α grows from 1 to 3 and γ falls from 6 to 3.
        """
        for _ in range(count):
            self.iterations = t = self.iterations + 1
            if t > 1:
                alpha, gamma = min(3.0, 1 + 2 * t / 200), max(3.0, 6 - 3 * t / 200)
                self._weight *= (t / (t - 1)) ** gamma
                self._step *= 1 + (t - 1) ** -alpha
            for player in range(len(self._payoffs)):
                self._pass(player, LEARN, self._payoffs)


def dtype_of(size: int) -> type[np.floating]:
    """Return the type in which a list of this size is held."""
    return np.float64 if size < SMALL else np.float32


def memory_of(trees: Iterable[Tree], threads: int = 1) -> int:
    """Return the bytes that the trees, their `RoundSolver`s and the results take, and the certificate of one of them."""
    total = largest = 0
    for tree in trees:
        size = int(tree.kinds.size[0])
        described = sum(array.nbytes for array in tree.kinds)
        walks = sum(array.nbytes for array in Scratch.of(tree)[:-1]) * _walks_of(tree, threads)
        total += size * (2 * np.dtype(dtype_of(size)).itemsize + 2) + described + walks
        largest = max(largest, walks)
    return total + largest


def quantised(tree: Tree, averages: np.ndarray) -> np.ndarray:
    """Round strategies to 65,536 levels, (numbers,) uint16: the likeliest action of each class has the highest."""
    out = np.zeros(len(averages), np.uint16)
    _quantise(tree.kinds, Scratch.of(tree), averages, float(MOST_LEVELS), out)
    return out
