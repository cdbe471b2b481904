"""Strategies for one round of Liar's Dice at a table: counterfactual regret minimisation for two players and more.

One walk of the tree takes the view of one player and carries the reach of all others: how likely each comes to a node with
each class of its hands. Their dice are independent, so how many of them count for a bid together follows from a convolution.
A round ends when a player loses a die; each player's continuation value is given. With three players or more this is no
zero-sum game: regrets that vanish promise a coarse correlated equilibrium only. How much a player gains by leaving the
average strategies is computed by best responses, and says how near they are to an equilibrium.

Sources: see `dice_envs.exact.liars_dice.cfr`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.cfr import MOST_LEVELS
from dice_envs.exact.liars_dice.nodes import FOLLOW, LEARN, RESPOND, Numbers, Pace
from dice_envs.exact.liars_dice.round import Classes, Round, must_call
from dice_envs.exact.liars_dice.sources import Places

__all__ = ["Layout", "TableSolver", "TableWalker", "mix_all", "size_of"]


# --- where numbers stand --------------------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """The nodes of a round and the numbers of their strategies, for kernels.

    A node has a number for each action, the call first, then the raises in rising order, and for each class of its mover:
    (1 + raises, classes). At the empty history those of the call are never used. A bid that must be called has no numbers.
    """

    first: np.ndarray  # (slots + 1,) int64: see `round.Rules`
    child: np.ndarray  # (edges,) int64
    bid: np.ndarray  # (slots,) int64
    shift: np.ndarray  # (players, edges) int64: see `sources.Places`
    size: np.ndarray  # (players, movers, slots) int64: classes of each player; see `round.Classes` for all that follows
    need: np.ndarray  # (slots,) int64
    call_at: np.ndarray  # (players, movers, slots) int64
    calls: np.ndarray  # int64: thresholds
    map_at: np.ndarray  # (players, movers, edges) int64
    maps: np.ndarray  # int64: classes; thresholds at bids that must be called

    @classmethod
    def of(cls, round_: Round) -> Layout:
        """Return the layout of a round."""
        rules, classes = round_.rules, round_.all_classes
        return cls(
            first=rules.first,
            child=rules.child,
            bid=rules.bid,
            shift=_places_of(round_).shift,
            size=np.array([each.size for each in classes]),
            need=rules.need,
            call_at=_placed(classes, "call_at", "calls"),
            calls=np.concatenate([each.calls for each in classes]),
            map_at=_placed(classes, "map_at", "maps"),
            maps=np.concatenate([each.maps for each in classes]),
        )


def _places_of(round_: Round) -> Places:
    """Return where the numbers of each node stand in a list over all nodes."""
    raises = np.diff(round_.rules.first)
    own = [np.where(raises > 0, (1 + raises) * round_.all_classes[mover].size[mover], 0) for mover in range(len(round_.dice))]
    return Places.of(round_.rules, np.array(own))


def size_of(round_: Round) -> int:
    """Return how many numbers the strategies of a round have."""
    return int(_places_of(round_).size[0, 0])


def _placed(classes: tuple[Classes, ...], at: str, values: str) -> np.ndarray:
    """Return where each player's parts begin, when the values of all players are put together."""
    starts = np.cumsum([0] + [len(getattr(each, values)) for each in classes])
    return np.array([getattr(each, at) + start for each, start in zip(classes, starts, strict=False)])


class _TableView(NamedTuple):
    """How a walk goes: in whose view, and by which numbers."""

    player: int
    mode: int  # LEARN, RESPOND or FOLLOW; in the last two all others follow their averages
    worth: np.ndarray  # (players,) float64: what the rest of the game is worth to the player if each of them loses the die
    numbers: Numbers
    pace: Pace


class _TableScratch(NamedTuple):
    """Work space of a walk for the nodes on its path. The first axis of most arrays is the depth."""

    slot: np.ndarray  # (depth,) int64
    offset: np.ndarray  # (depth,) int64: where the node's numbers begin
    edge: np.ndarray  # (depth,) int64: the next to follow
    live: np.ndarray  # (depth,) bool: whether all others come there
    mass: np.ndarray  # (depth, players) float64: how likely each player comes there
    reach: np.ndarray  # (depth, players, classes) float64: the same by class; the viewer's is not kept
    value: np.ndarray  # (depth, classes) float64: what the round is worth to the viewer, times the reach of all others
    action: np.ndarray  # (depth, actions, classes) float64: at the viewer's nodes the value of an action, at others'
    # the chance that the mover comes there and takes it
    mix: np.ndarray  # (actions, classes) float64: the viewer's strategy at one node
    total: np.ndarray  # (classes,) float64
    sums: np.ndarray  # (dice + 2,) float64: how likely the others come with 0, 1, 2 … or more matches
    more: np.ndarray  # (dice + 2,) float64
    one: np.ndarray  # (dice + 2,) float64

    @classmethod
    def of(cls, round_: Round, layout: Layout) -> _TableScratch:
        """Return room for walks of a round."""
        height = np.ones(len(layout.need), np.int64)
        for slot in reversed(range(len(height))):
            below = round_.rules.raises(slot)
            height[slot] += height[below].max(initial=0)
        depth, players, classes = int(height[0]), len(round_.dice), int(layout.size.max())
        actions, dice = 1 + int(np.diff(layout.first).max()), sum(round_.dice)
        return cls(
            slot=np.zeros(depth, np.int64),
            offset=np.zeros(depth, np.int64),
            edge=np.zeros(depth, np.int64),
            live=np.zeros(depth, np.bool_),
            mass=np.zeros((depth, players)),
            reach=np.zeros((depth, players, classes)),
            value=np.zeros((depth, classes)),
            action=np.zeros((depth, actions, classes)),
            mix=np.zeros((actions, classes)),
            total=np.zeros(classes),
            sums=np.zeros(dice + 2),
            more=np.zeros(dice + 2),
            one=np.zeros(dice + 2),
        )


# --- strategies -----------------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def mix_all(numbers, at, begin, classes, rows, total):
    """Write the strategy that a node's numbers are in proportion to, (actions, classes), from action `begin` on. In place.

    Where all of a class are 0, its actions are equally likely. `rows` may have more columns; `total` is scratch.
    """
    for each in range(classes):
        total[each] = 0.0
        if begin > 0:
            rows[0, each] = 0.0
    for action in range(begin, len(rows)):
        for each in range(classes):
            rows[action, each] = numbers[at + action * classes + each]
            total[each] += rows[action, each]
    for each in range(classes):
        if total[each] > 0.0:
            total[each] = 1.0 / total[each]
        else:
            total[each] = 1.0 / (len(rows) - begin)
            for action in range(begin, len(rows)):
                rows[action, each] = 1.0
    for action in range(begin, len(rows)):
        for each in range(classes):
            rows[action, each] *= total[each]


# --- calls ----------------------------------------------------------------------------------------------------------------


@kernel(allocates=False, merge=True)
def _add_matches(thresholds, at, weights, count, need, scratch):
    """Add a player's matches to `scratch.sums`, how likely others come with 0, 1, 2 … matches together. In place.

    A class of `weights` matches `need` less its threshold, which is no more than its player's dice, so that the sum of all
    is below the entries of `sums`, one for each die in play and two more.
    """
    sums, more, one = scratch.sums, scratch.more, scratch.one
    size = len(sums)
    most = 0
    for k in range(size):
        one[k] = 0.0
        more[k] = 0.0
    for each in range(count):
        match = need - thresholds[at + each]
        one[match] += weights[each]
        most = max(most, match)
    for k in range(size - most):
        if sums[k] > 0.0:
            for match in range(most + 1):
                more[k + match] += sums[k] * one[match]
    for k in range(size):
        sums[k] = more[k]


@kernel(allocates=False, merge=True)
def _sum_matches(layout, scratch, depth, player, leaf, row):
    """Write into `scratch.sums` how likely all but a player come to a call with 0, 1, 2 … or more matches together. In place.

    The call is that of the last bid; or if `leaf` is an edge, that of the bid it leads to. `row` (classes,) is the reach of
    the mover.
    """
    players, slot = len(layout.size), scratch.slot[depth]
    mover = depth % players
    sums = scratch.sums
    for k in range(len(sums)):
        sums[k] = 0.0
    sums[0] = 1.0
    for other in range(players):
        if other != player:
            weights = row if other == mover else scratch.reach[depth, other]
            thresholds, at, need = layout.calls, layout.call_at[other, mover, slot], layout.need[slot]
            if leaf >= 0:
                thresholds, at, need = layout.maps, layout.map_at[other, mover, leaf], layout.need[layout.child[leaf]]
            _add_matches(thresholds, at, weights, layout.size[other, mover, slot], need, scratch)
    for k in range(len(sums) - 2, -1, -1):
        sums[k] += sums[k + 1]


@kernel(allocates=False, merge=True)
def _add_call(layout, scratch, depth, view, leaf, out):
    """Add what the call is worth to the viewer, by class, whose tails are in `scratch.sums`, to `out`. In place.

    The call is as in `_sum_matches`. A threshold is at most one more than the others' dice, and so below the entries of `sums`.
    """
    players, slot = len(layout.size), scratch.slot[depth]
    mover = depth % players
    sums, player = scratch.sums, view.player
    caller, bidder = mover, (mover + players - 1) % players
    thresholds, at = layout.calls, layout.call_at[player, mover, slot]
    if leaf >= 0:
        caller, bidder = (mover + 1) % players, mover
        thresholds, at = layout.maps, layout.map_at[player, mover, leaf]
    holds, fails = view.worth[caller], view.worth[bidder]
    for each in range(layout.size[player, mover, slot]):
        hold = sums[thresholds[at + each]]
        out[each] += hold * holds + (sums[0] - hold) * fails


# --- visits ---------------------------------------------------------------------------------------------------------------


@kernel(allocates=False, merge=True)
def _enter_node(layout, scratch, depth, view):
    """Enter the node at a depth, whose slot, offset and reach are set. In place."""
    players, slot, player = len(layout.size), scratch.slot[depth], view.player
    mover = depth % players
    first, last = layout.first[slot], layout.first[slot + 1]
    classes, begin = layout.size[mover, mover, slot], 1 if slot == 0 else 0
    scratch.edge[depth] = first
    live, action, value = scratch.live[depth], scratch.action[depth], scratch.value[depth]
    rows = action[: 1 + last - first]
    for each in range(layout.size[player, mover, slot]):
        value[each] = 0.0
    if mover == player:
        for place in range(len(rows)):
            for each in range(classes):
                rows[place, each] = 0.0
    else:
        numbers = view.numbers.regrets if view.mode == LEARN else view.numbers.averages
        mix_all(numbers, scratch.offset[depth], begin, classes, rows, scratch.total)
        reach = scratch.reach[depth, mover]
        for place in range(begin, len(rows)):
            for each in range(classes):
                rows[place, each] *= reach[each]
        if view.mode == LEARN and mover == (player + players - 1) % players:
            averages, at = view.numbers.averages, scratch.offset[depth]
            for place in range(begin, len(rows)):
                for each in range(classes):
                    averages[at + place * classes + each] += view.pace.weight * rows[place, each]
    if not live:
        return
    for place in range(begin, len(rows)):
        leaf = first + place - 1 if place > 0 else -1
        if leaf < 0 or must_call(layout, layout.child[leaf]):
            _sum_matches(layout, scratch, depth, player, leaf, rows[place])
            _add_call(layout, scratch, depth, view, leaf, rows[place] if mover == player else value)


@kernel(allocates=False, merge=True)
def _go_below(layout, scratch, depth, edge, view):
    """Write all others' reach at the child that an edge leads to; return whether the walk goes there. In place.

    It does if all others come there, or when learning at least the player whose averages are learnt.
    """
    players, slot, player = len(layout.size), scratch.slot[depth], view.player
    mover, below = depth % players, (depth + 1) % players
    child = layout.child[edge]
    row = scratch.action[depth, 1 + edge - layout.first[slot]]
    live = True
    for other in range(players):
        if other == player:
            continue
        if other == mover:
            scratch.mass[depth + 1, other] = 0.0
            for each in range(layout.size[other, mover, slot]):
                scratch.mass[depth + 1, other] += row[each]
        else:
            scratch.mass[depth + 1, other] = scratch.mass[depth, other]
        live &= scratch.mass[depth + 1, other] > 0.0
    averaged = (player + players - 1) % players
    if not live and (view.mode != LEARN or scratch.mass[depth + 1, averaged] == 0.0):
        return False
    for other in range(players):
        if other == player:
            continue
        reach, to = scratch.reach[depth, other], scratch.reach[depth + 1, other]
        if other == mover:
            reach = row
        for each in range(layout.size[other, below, child]):
            to[each] = 0.0
        at = layout.map_at[other, mover, edge]
        for each in range(layout.size[other, mover, slot]):
            to[layout.maps[at + each]] += reach[each]
    scratch.live[depth + 1] = live
    scratch.slot[depth + 1] = child
    scratch.offset[depth + 1] = scratch.offset[depth] + layout.shift[mover, edge]
    return True


@kernel(allocates=False, merge=True)
def _come_above(layout, scratch, depth, edge, view):
    """Take the values of the child at depth + 1, to which an edge leads, into those of its parent. In place."""
    players, slot = len(layout.size), scratch.slot[depth]
    mover = depth % players
    at, below = layout.map_at[view.player, mover, edge], scratch.value[depth + 1]
    out = scratch.value[depth]
    if mover == view.player:
        out = scratch.action[depth, 1 + edge - layout.first[slot]]
    for each in range(layout.size[view.player, mover, slot]):
        out[each] += below[layout.maps[at + each]]


@kernel(allocates=False, merge=True)
def _leave_node(layout, scratch, depth, view):
    """Leave the node at a depth: one of the viewer gets its values, and new regrets where it learns. In place."""
    slot, player = scratch.slot[depth], view.player
    if depth % len(layout.size) != player or not scratch.live[depth]:
        return
    classes, begin = layout.size[player, player, slot], 1 if slot == 0 else 0
    actions = 1 + layout.first[slot + 1] - layout.first[slot]
    at, value, action = scratch.offset[depth], scratch.value[depth], scratch.action[depth]
    if view.mode == RESPOND:
        for each in range(classes):
            value[each] = action[begin, each]
        for place in range(begin + 1, actions):
            for each in range(classes):
                value[each] = max(value[each], action[place, each])
        return
    numbers = view.numbers.regrets if view.mode == LEARN else view.numbers.averages
    mix_all(numbers, at, begin, classes, scratch.mix[:actions], scratch.total)
    for place in range(begin, actions):
        for each in range(classes):
            value[each] += scratch.mix[place, each] * action[place, each]
    if view.mode == LEARN:
        for place in range(begin, actions):
            for each in range(classes):
                to = at + place * classes + each
                numbers[to] = max(0.0, numbers[to] + view.pace.step * (action[place, each] - value[each]))


@kernel(allocates=False)
def _walk_table(layout, scratch, view):
    """Visit the empty history, whose reach is set, and all below it. In place.

    The path never grows longer than the tree is high, which is the depth that `scratch` has room for.
    """
    depth = 0
    scratch.slot[0] = 0
    scratch.offset[0] = 0
    scratch.live[0] = True
    entered = False
    while True:
        if not entered:
            _enter_node(layout, scratch, depth, view)
            entered = True
        slot, edge = scratch.slot[depth], scratch.edge[depth]
        last = layout.first[slot + 1]
        while edge < last and must_call(layout, layout.child[edge]):
            edge += 1
        if edge < last:
            scratch.edge[depth] = edge + 1
            if _go_below(layout, scratch, depth, edge, view):
                depth += 1
                entered = False
            continue
        _leave_node(layout, scratch, depth, view)
        if depth == 0:
            return
        depth -= 1
        if scratch.live[depth + 1]:
            _come_above(layout, scratch, depth, scratch.edge[depth] - 1, view)


# --- solving --------------------------------------------------------------------------------------------------------------


class TableWalker:
    """Walks a round by strategies that are held as numbers.

    Args:
        round_: the round.
        averages: (numbers,) float64, in proportion to how likely each action is; see `Layout`. Walks compile for this type.
    """

    def __init__(self, round_: Round, averages: np.ndarray) -> None:
        self.round_ = round_
        self.averages = averages
        self.layout = Layout.of(round_)
        self._scratch = _TableScratch.of(round_, self.layout)
        self._numbers = Numbers(np.zeros(0, averages.dtype), averages)
        self._pace = Pace(1.0, 1.0)
        self._chances = [
            np.bincount(classes.of[0, 0], chances) for classes, chances in zip(round_.all_classes, round_.chances, strict=True)
        ]

    def _pass(self, player: int, mode: int, worth: np.ndarray) -> float:
        """Walk once in a player's view, and return what the round is worth to it."""
        scratch = self._scratch
        for other, chances in enumerate(self._chances):
            scratch.reach[0, other, : len(chances)] = chances
        scratch.mass[0] = 1.0
        _walk_table(self.layout, scratch, _TableView(player, mode, worth[player], self._numbers, self._pace))
        return float(scratch.value[0, : len(self._chances[player])] @ self._chances[player])

    def plays(self, worth: np.ndarray) -> np.ndarray:
        """Return what the round is worth to each player if all follow their strategies, (players,) float64.

        Args:
            worth: (players, players) float64: to each player, if each of them loses the die.
        """
        return np.array([self._pass(player, FOLLOW, worth) for player in range(len(self._chances))])

    def responds(self, worth: np.ndarray) -> np.ndarray:
        """Return what it is worth to each player that responds best to all others, (players,) float64."""
        return np.array([self._pass(player, RESPOND, worth) for player in range(len(self._chances))])


class TableSolver(TableWalker):
    """Approaches strategies that no player gains by leaving, iteration by iteration.

    Args:
        round_: the round.
        worth: (players, players) float64: the rest of the game to each player, if each of them loses the die.
        regrets: (numbers,) to begin with, not below 0; None: zeros, which is random play.

    Attributes:
        iterations: number made so far.
    """

    def __init__(self, round_: Round, worth: np.ndarray, regrets: np.ndarray | None = None) -> None:
        size = size_of(round_)
        super().__init__(round_, np.zeros(size))
        self._numbers = Numbers(np.zeros(size) if regrets is None else regrets.astype(np.float64), self.averages)
        self._worth = worth
        self.iterations = 0

    def iterate(self, count: int) -> None:
        """Learn for `count` more iterations."""
        for _ in range(count):
            self.iterations += 1
            if self.iterations > 1:
                self._pace = self._pace.at(self.iterations)
            for player in range(len(self._chances)):
                self._pass(player, LEARN, self._worth)


# --- what is kept ---------------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def _scale_node(numbers, at, classes, actions, most, out):
    """Write a node's numbers, the largest of each class as `most`. In place."""
    for each in range(at, at + classes):
        largest = 0.0
        for place in range(actions):
            largest = max(largest, numbers[each + place * classes])
        for place in range(actions if largest > 0.0 else 0):
            out[each + place * classes] = np.uint16(numbers[each + place * classes] / largest * most + 0.5)


@kernel(allocates=False)
def _quantise_table(layout, slots, edges, offsets, numbers, most, out):
    """Write every node's strategy, the likeliest action of each class as `most`, into `out` (numbers,). In place.

    `slots`, `edges` and `offsets` (depth,) are scratch for the path, which is never longer than the tree is high.
    """
    players, depth = len(layout.size), 0
    slots[0] = edges[0] = offsets[0] = 0
    while depth >= 0:
        slot, at, mover = slots[depth], offsets[depth], depth % players
        if edges[depth] == layout.first[slot]:
            actions = 1 + layout.first[slot + 1] - layout.first[slot]
            _scale_node(numbers, at, layout.size[mover, mover, slot], actions, most, out)
        edge = edges[depth]
        edges[depth] += 1
        if edge == layout.first[slot + 1]:
            depth -= 1
        elif not must_call(layout, layout.child[edge]):
            depth += 1
            slots[depth] = layout.child[edge]
            edges[depth] = layout.first[slots[depth]]
            offsets[depth] = at + layout.shift[mover, edge]


def quantised_table(layout: Layout, numbers: np.ndarray) -> np.ndarray:
    """Round strategies to 65,536 levels, (numbers,) uint16: the likeliest action of each class has the highest."""
    out = np.zeros(len(numbers), np.uint16)
    slots, edges, offsets = np.zeros((3, len(layout.need)), np.int64)  # a path visits each slot once at most
    _quantise_table(layout, slots, edges, offsets, numbers, float(MOST_LEVELS), out)
    return out
