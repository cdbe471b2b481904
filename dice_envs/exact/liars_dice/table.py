"""Values of a best response to a fixed opponent at all nodes of Liar's Dice, and their use for many states at once.

Each round has a list with a part for each public node, in the order of `sources.Places`:

- where the opponent is to move, the chance that the best response wins from there, by its class of hands, times what reaches
  the node: the value of the raise that leads there;
- where the responder is to move, the opponent's reach as `moves.Moves` describes tails, for the last bid, then for each raise
  that must be called the reach of the hands whose dice all count for it;
- where the responder must call, the opponent's reach, and that of its hands whose dice all count for the bid.

Only bids of all dice must be called, so these hold if all dice count.

A state's values are then read off along its bids, without a search. Only nodes that the opponent reaches have a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.hands import Hands, hand_number
from dice_envs.exact.liars_dice.moves import Batch, Held, Moves
from dice_envs.exact.liars_dice.round import Round, Rules, must_call, threshold
from dice_envs.exact.liars_dice.sources import Places, find_place
from dice_envs.exact.liars_dice.walk import Winnings, write_tails
from dice_envs.games.liars_dice import chance_at_least, matching, wild_face
from dice_envs.games.liars_dice.raises import face_of, quantity_of

__all__ = ["NONE", "RoundValues", "ValueLayout", "ValueTable", "table_of", "value_all"]

NONE = -1  # in `ValueTable.number`: no such round


# --- one round ----------------------------------------------------------------------------------------------------


class ValueLayout:
    """Where the values of a best response in a round stand.

    Attributes:
        round_: the round.
        player: the opponent, which is asked.
        places: of the nodes.
        size: numbers in all.
    """

    def __init__(self, round_: Round, player: int) -> None:
        self.round_, self.player = round_, player
        rules = round_.rules
        raises = np.diff(rules.first)
        last = np.array([must_call(rules, slot) for slot in range(len(raises))])
        leaves = [int(last[rules.raises(slot)].sum()) for slot in range(len(raises))]
        own = np.zeros((2, len(raises)), np.int64)
        own[player] = np.where(last, 0, round_.classes[1 - player].size[player])
        own[1 - player] = np.where(last, 2, round_.dice[player] + 2 + np.array(leaves))
        self.places = Places.of(rules, own)
        self.size = int(self.places.size[0, 0])


@kernel(allocates=False)
def _keep_values(paths, rules, shift, found, moves, values):
    """Write the values at the nodes of a batch, and the reach of raises that must be called, to their parts. In place.

    A part has an entry for each class, or two after a bid that must be called.
    """
    for node in range(len(paths)):
        to, _ = find_place(paths[node], rules, shift)
        for k in range(found.at[node], found.at[node + 1]):
            values[to] = found.won[k, 0]
            to += 1
    for leaf in range(len(moves.leaf_node)):
        path, tail = paths[moves.leaf_node[leaf]], moves.leaf_tail[leaf]
        to, _ = find_place(path, rules, shift)
        to += shift[len(path) % 2, moves.leaf_edge[leaf]]
        values[to] = tail[0, 0]
        values[to + 1] = tail[len(tail) - 2, 0]


@kernel(allocates=False)
def _keep_reach(slots, paths, rules, shift, held, tail, values):
    """Write tails of the opponent's reach at the nodes of a batch to their parts. In place.

    A part has an entry for each of a tail's and for each raise that must be called. `tail` (dice + 2, 1) is scratch.
    """
    for node in range(len(slots)):
        to, _ = find_place(paths[node], rules, shift)
        write_tails(held, node, rules.face[slots[node]], tail)
        for k in range(len(tail)):
            values[to] = tail[k, 0]
            to += 1
        for edge in range(rules.first[slots[node]], rules.first[slots[node] + 1]):
            if must_call(rules, rules.child[edge]):
                write_tails(held, node, rules.face[rules.child[edge]], tail)
                values[to] = tail[len(tail) - 2, 0]
                to += 1


class RoundValues:
    """Keeps the values at the nodes of a round while it is walked. See `walk.Keep`.

    Args:
        layout: of the round.
        values: (layout.size,) zeros, to be filled.
    """

    def __init__(self, layout: ValueLayout, values: np.ndarray) -> None:
        self._layout, self._values = layout, values
        self._tail = np.zeros((layout.round_.dice[layout.player] + 2, 1))

    def keep_values(self, batch: Batch, found: Winnings, moves: Moves) -> None:
        layout = self._layout
        _keep_values(batch.paths, layout.round_.rules, layout.places.shift, found, moves, self._values)

    def keep_reach(self, batch: Batch, held: Held) -> None:
        layout = self._layout
        _keep_reach(batch.slots, batch.paths, layout.round_.rules, layout.places.shift, held, self._tail, self._values)


# --- all rounds ---------------------------------------------------------------------------------------------------


class ValueTable(NamedTuple):
    """The values of all rounds, for kernels. The first axis of most arrays is the round; rows are padded."""

    number: np.ndarray  # (2, MAX_DICE + 1, MAX_DICE + 1, 2) int64: the round, by the responder's seat, its dice, the
    # opponent's and whether the responder starts; or NONE
    hands: Hands
    values: np.ndarray  # float64 or float32
    at: np.ndarray  # (rounds,) int64: where the round's part of `values` begins
    ends: np.ndarray  # (rounds, 2) float64: the return after the round is lost, and after it is won
    first: np.ndarray  # (rounds, slots + 1) int64: see `round.Rules`
    child: np.ndarray  # (rounds, edges) int64
    bid: np.ndarray  # (rounds, slots) int64
    shift: np.ndarray  # (rounds, 2, edges) int64: see `Places`
    class_of: np.ndarray  # (rounds, slots, hands) int16: the responder's hand → class where the opponent is to move


def _padded(arrays: Sequence[np.ndarray], dtype: type[np.integer]) -> np.ndarray:
    """Stack arrays, padded with zeros to the same shape."""
    shape = np.max([each.shape for each in arrays], axis=0)
    out = np.zeros((len(arrays), *shape), dtype)
    for row, each in zip(out, arrays, strict=True):
        row[tuple(map(slice, each.shape))] = each
    return out


def table_of(
    number: np.ndarray, hands: Hands, layouts: Sequence[ValueLayout], values: np.ndarray, ends: np.ndarray
) -> ValueTable:
    """Return the table of rounds whose values stand one after another in a list."""
    rules = [each.round_.rules for each in layouts]
    return ValueTable(
        number=number,
        hands=hands,
        values=values,
        at=np.cumsum([0] + [each.size for each in layouts])[:-1].astype(np.int64),
        ends=ends,
        first=_padded([each.first for each in rules], np.int64),
        child=_padded([each.child for each in rules], np.int64),
        bid=_padded([each.bid for each in rules], np.int64),
        shift=_padded([each.places.shift for each in layouts], np.int64),
        class_of=_padded([each.round_.classes[1 - each.player].of[each.player] for each in layouts], np.int16),
    )


@kernel(allocates=False)
def _value_fair(params, state, rules, slot, out):
    """Write each action's chance to win the round if the other's dice are fair and every raise is called. In place."""
    seat = np.int64(state["seat"])
    bid = np.int64(state["bid"])
    unseen = np.int64(state["in_play"]) - np.int64(state["dice"][seat])
    wild = wild_face(params, state)
    if slot > 0:
        face = face_of(params, bid)
        own = matching(wild, state["counts"][seat], face)
        out[params.call] = 1.0 - chance_at_least(params, wild, quantity_of(params, bid) + 1, own, unseen, face)
    for edge in range(rules.first[slot], rules.first[slot + 1]):
        to = rules.bid[rules.child[edge]]
        face = face_of(params, to)
        own = matching(wild, state["counts"][seat], face)
        out[to] = chance_at_least(params, wild, quantity_of(params, to) + 1, own, unseen, face)


@kernel(allocates=False)
def _value(params, state, table, number, rules, place, out):
    """Write each action's chance to win round `number`. In place; return False if the opponent never reaches the state.

    `place` is the state's part and slot: see `find_place`.
    """
    seat = np.int64(state["seat"])
    dice, others = np.int64(state["dice"][seat]), np.int64(state["dice"][1 - seat])
    counts = state["counts"][seat]
    wild = wild_face(params, state)
    bids = np.int64(state["num_bids"])
    shift = table.shift[number]
    part, slot = place
    at = table.at[number] + part
    reach = np.float64(table.values[at])
    if reach <= 0.0:
        return False
    if slot > 0:
        bid = np.int64(state["bid"])
        needed = threshold(quantity_of(params, bid) + 1, matching(wild, counts, face_of(params, bid)), others)
        if must_call(rules, slot):
            holds = table.values[at + 1] if needed == others else 0.0
        else:
            holds = table.values[at + needed]
        out[params.call] = (reach - holds) / reach
    hand = hand_number(table.hands, dice, counts)
    all_match = at + others + 2
    for edge in range(rules.first[slot], rules.first[slot + 1]):
        to = rules.child[edge]
        bid = rules.bid[to]
        if must_call(rules, to):  # a bid of all dice
            held = matching(wild, counts, face_of(params, bid)) == dice
            out[bid] = table.values[all_match] / reach if held else 0.0
            all_match += 1
        else:
            out[bid] = table.values[at + shift[bids % 2, edge] + table.class_of[number, to, hand]] / reach
    return True


@kernel(allocates=False)
def value_all(params, table, states, out):
    """Write the return of each action at each state if a best response follows. In place; `out` (n, actions) comes as NaN."""
    for i in range(len(states)):
        state = states[i]
        seat = np.int64(state["seat"])
        starts = 1 if state["starter"] == seat else 0
        number = table.number[seat, np.int64(state["dice"][seat]), np.int64(state["dice"][1 - seat]), starts]
        rules = Rules(table.first[number], table.child[number], table.bid[number], table.bid[number], table.bid[number])
        place = find_place(state["bids"][: np.int64(state["num_bids"])], rules, table.shift[number])
        if not _value(params, state, table, number, rules, place, out[i]):
            _value_fair(params, state, rules, place[1], out[i])
        low, high = table.ends[number, 0], table.ends[number, 1]
        for action in range(params.num_actions):
            out[i, action] = low + (high - low) * out[i, action]
