"""One node of a round of Liar's Dice: the strategy that its numbers stand for, and the steps of a walk there.

`Kinds` describes the layout of a node's numbers. Rows of actions have the call first, then a raise for each edge. The empty
history has a dummy call, which is never taken and wins nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.tree import LEAF, Tree

__all__ = ["FOLLOW", "LEARN", "RESPOND", "Numbers", "Pace", "Scratch", "View", "enter", "leave", "mix_at", "strategy_at"]

LEARN, RESPOND, FOLLOW = 0, 1, 2  # of `View.mode`: the player learns, plays best, plays the average


class Numbers(NamedTuple):
    """One number for each class and action of each node, as `Kinds` lays them out."""

    regrets: np.ndarray  # (numbers,) float: never below 0
    averages: np.ndarray  # (numbers,) of any type: in proportion to how likely each action is


class Pace(NamedTuple):
    """The weight of an iteration relative to the first one: the inverse of the discounts of what came before."""

    weight: float  # of the strategies in their averages
    step: float  # of regrets

    def at(self, t: int) -> Pace:
        """Return the pace of iteration t, from 2 on, after that of the one before.

        Brown and Sandholm's discounts: before iteration t + 1 the regrets are multiplied by t^α/(t^α + 1); before iteration t
        the averages by ((t - 1)/t)^γ. α grows from 1 to 3 and γ falls from 6 to 3.
        """
        alpha, gamma = min(3.0, 1 + 2 * t / 200), max(3.0, 6 - 3 * t / 200)
        return Pace(self.weight * (t / (t - 1)) ** gamma, self.step * (1 + (t - 1) ** -alpha))


class View(NamedTuple):
    """How a walk goes: in whose view, and by which numbers."""

    player: int
    mode: int  # LEARN, RESPOND or FOLLOW; in the last two the other player follows its average
    numbers: Numbers
    pace: Pace


class Scratch(NamedTuple):
    """Work space of a walk for the nodes on its path. The first axis of most arrays is the depth."""

    kind: np.ndarray  # (depth,) int64
    offset: np.ndarray  # (depth,) int64: where the node's numbers begin
    edge: np.ndarray  # (depth,) int64: the next to follow
    reach: np.ndarray  # (depth, classes) float64: of the other player
    value: np.ndarray  # (depth, classes) float64: the chance that the player wins, times the other's reach
    action: np.ndarray  # (depth, actions, classes) float64: at the player's nodes the value of an action, at the
    # other's the chance that it comes there and takes it
    mix: np.ndarray  # (actions, classes) float64: the player's strategy at one node
    total: np.ndarray  # (classes,) float64
    nothing: np.ndarray  # (classes,) float64: zeros
    matched: np.ndarray  # (quantities,) float64

    @classmethod
    def of(cls, tree: Tree) -> Scratch:
        """Return room for walks of a tree."""
        kinds = tree.kinds
        height = np.ones(len(kinds.mover), np.int64)
        for kind in reversed(range(len(height))):
            below = kinds.child[kinds.first_edge[kind] : kinds.first_edge[kind + 1]]
            height[kind] += max((height[child] for child in below if child != LEAF), default=0)
        depth, classes = int(height[0]), int(kinds.classes.max())
        actions = 1 + int(np.diff(kinds.first_edge).max())
        return cls(
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


# --- strategies ---------------------------------------------------------------------------------------------------


@kernel(allocates=False, inline=True)
def mix_at(kinds, kind, offset, numbers, rows, total):
    """Write the strategy that a node's numbers are in proportion to, (actions, active classes). In place.

    Where all of a class are 0, its actions are equally likely. `total` is scratch.
    """
    active = kinds.active[kind]
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    for each in range(active):
        rows[0, each] = numbers[offset + each] if kind != 0 else 0.0
        total[each] = rows[0, each]
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
    for place in range(1 + last - first):
        for each in range(active):
            rows[place, each] *= total[each]
    if unknown:
        for each in range(active):
            if total[each] == 0.0:
                _mix_evenly(kinds, kind, each, rows)


@kernel(allocates=False)
def _number_of(kinds, offset, edge, each):
    """Return where an active class's number of a raise stands; −1 if the class may not make it."""
    if kinds.child[edge] != LEAF:
        return offset + kinds.entry[edge] + each
    for k in range(kinds.allowed_at[edge], kinds.allowed_at[edge + 1]):
        if kinds.allowed[k] == each:
            return offset + kinds.entry[edge] + k - kinds.allowed_at[edge]
    return -1


@kernel(allocates=False)
def _mix_evenly(kinds, kind, each, rows):
    """Make the actions of one class equally likely. In place."""
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    rows[0, each] = 1.0 if kind != 0 else 0.0
    choices = rows[0, each]
    for edge in range(first, last):
        rows[1 + edge - first, each] = 1.0 if _number_of(kinds, 0, edge, each) >= 0 else 0.0
        choices += rows[1 + edge - first, each]
    for place in range(1 + last - first):
        rows[place, each] /= choices


@kernel(allocates=False)
def strategy_at(kinds, kind, offset, numbers, each, call, bids, out):
    """Write how likely one active class takes each action at a node into `out` (actions,), which holds zeros. In place.

    `bids` (edges,) has the action of each edge, `call` is the call.
    """
    total = 0.0
    for even in range(2):  # a class that the strategy never brings here takes its actions evenly
        if even == 1 and total > 0.0:
            break
        if kind != 0:
            out[call] = 1.0 if even == 1 else numbers[offset + each]
            total += out[call]
        for edge in range(kinds.first_edge[kind], kinds.first_edge[kind + 1]):
            at = _number_of(kinds, offset, edge, each)
            if at >= 0:
                out[bids[edge]] = 1.0 if even == 1 else numbers[at]
                total += out[bids[edge]]
    for action in range(len(out)):
        out[action] /= total


# --- visits -------------------------------------------------------------------------------------------------------


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
def _enter_other(kinds, scratch, depth, view):
    """Enter a node of the other player: write the chances of its actions and the value of its calls. In place."""
    player, other = view.player, 1 - view.player
    kind, offset = scratch.kind[depth], scratch.offset[depth]
    reach, value, action = scratch.reach[depth], scratch.value[depth], scratch.action[depth]
    active = kinds.active[kind]
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    classes = kinds.classes[kind, player]
    if active > 0:
        numbers = view.numbers.regrets if view.mode == LEARN else view.numbers.averages
        mix_at(kinds, kind, offset, numbers, action, scratch.total)
        for place in range(1 + last - first):
            for each in range(active):
                action[place, each] *= reach[each]
        if view.mode == LEARN:
            _add(kinds, kind, offset, view.numbers.averages, view.pace.weight, action, scratch.nothing)
    for each in range(active, kinds.classes[kind, other]):
        action[0, each] = reach[each]
    _call_chances(kinds, kind, other, action[0], scratch.matched)
    at = kinds.match_at[kind, player]
    for each in range(classes):  # the player has made the bid and wins if it holds
        value[each] = scratch.matched[kinds.needed[kind] - kinds.match[at + each]]
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
def _enter_own(kinds, scratch, depth, view):
    """Enter a node of the player: write the value of a call and of the bids that are called for certain. In place."""
    player, other = view.player, 1 - view.player
    kind, reach, action = scratch.kind[depth], scratch.reach[depth], scratch.action[depth]
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    _call_chances(kinds, kind, other, reach, scratch.matched)
    at = kinds.match_at[kind, player]
    for each in range(kinds.classes[kind, player]):  # the call wins if the bid fails
        action[0, each] = scratch.matched[0] - scratch.matched[kinds.needed[kind] - kinds.match[at + each]]
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
def enter(kinds, scratch, depth, view):
    """Enter the node at a depth, whose kind, offset and reach are set. In place."""
    kind = scratch.kind[depth]
    scratch.edge[depth] = kinds.first_edge[kind]
    if kinds.mover[kind] == view.player:
        _enter_own(kinds, scratch, depth, view)
    else:
        _enter_other(kinds, scratch, depth, view)


@kernel(allocates=False, inline=True)
def leave(kinds, scratch, depth, view):
    """Leave the node at a depth: one of the player gets its values, and new regrets where the player learns. In place."""
    kind, offset = scratch.kind[depth], scratch.offset[depth]
    if kinds.mover[kind] != view.player:
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
        for place in range(actions):
            for each in range(active):
                value[each] = max(value[each], action[place, each])
        return
    numbers = view.numbers.regrets if view.mode == LEARN else view.numbers.averages
    mix_at(kinds, kind, offset, numbers, scratch.mix, scratch.total)
    for place in range(actions):
        for each in range(active):
            value[each] += scratch.mix[place, each] * action[place, each]
    if view.mode == LEARN:
        _add(kinds, kind, offset, view.numbers.regrets, view.pace.step, action, value)
