"""Values of choices in Liar's Dice between two players against a fixed opponent, for many states at once.

The values of a round's nodes are those that the walk for a best response finds. What a round is worth in the game follows
from the best responses in the rounds after it.

Each round has a list with a part for each public node, in the order of `_place_all`:

- where the opponent is to move, the chance that the best response wins from there, by its class of hands, times what reaches
  the node: the value of the raise that leads there;
- where the responder is to move, tails of the opponent's reach (see `walk`) for the last bid, then for each
  raise that must be called the reach of the hands whose dice all count for it;
- where the responder must call, the opponent's reach, and that of its hands whose dice all count for the bid.

Only bids of all dice must be called, so these hold if all dice count.

A state's values are then read off along its bids, without a search. Only nodes that the opponent reaches have a part.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import ActionValues, ResponseValues
from dice_envs.exact.contract import RETURN, Unit
from dice_envs.exact.kept import kept
from dice_envs.games.liars_dice import (
    MAX_DICE,
    chance_at_least,
    chance_bid_exact,
    chance_bid_holds,
    legal,
    matching,
    may_call_exactly,
    wild_face,
)
from dice_envs.games.liars_dice.exact.cfr import dtype_of
from dice_envs.games.liars_dice.exact.moves import Nodes, PlayerMoves
from dice_envs.games.liars_dice.exact.round import Round, RoundRules, hand_number, must_call, threshold
from dice_envs.games.liars_dice.exact.seating import first_tables, tables_of
from dice_envs.games.liars_dice.exact.shares import check_measurable, in_both_seats, response_wins, round_at, win_chances_after
from dice_envs.games.liars_dice.exact.sources import SeatComparison, fixed_in_a_round
from dice_envs.games.liars_dice.exact.walk import Others, Winnings
from dice_envs.games.liars_dice.raises import NO_BID, face_of, quantity_of

NONE = -1  # in `ValueTable.number`: no such round
MOST_BYTES = 2 << 30  # of one opponent's values
MOST_KEPT = 1 << 30  # bytes of the values of all opponents that are kept in memory
_WHAT = "the value of a choice"


# --- one round ----------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def _place_all(rules, own, size, shift):
    """Lay out the numbers of all nodes; a node has own[mover, slot] of them. In place. Every raise leads to a higher slot.

    Parents stand before their children and the children in the order of the bids' numbers, each with all that follows it
    before the next. `size` (players, slots) are the numbers of whole subtrees, for `shift` see `RoundValues`.
    """
    for slot in range(len(rules.first) - 2, -1, -1):
        for mover in range(len(own)):
            after = (mover + 1) % len(own)
            at = own[mover, slot]
            for edge in range(rules.first[slot], rules.first[slot + 1]):
                shift[mover, edge] = at
                at += size[after, rules.child[edge]]
            size[mover, slot] = at


@kernel(allocates=False)
def find_place(path, rules, shift):
    """Return where the numbers of the node begin that the bids lead to, and its slot; −1 twice if they are no legal bids."""
    at = 0
    slot = 0
    for k in range(len(path)):
        low = rules.first[slot]
        high = rules.first[slot + 1]
        while low < high:
            middle = (low + high) // 2
            if rules.bid[rules.child[middle]] < path[k]:
                low = middle + 1
            else:
                high = middle
        if low == rules.first[slot + 1] or rules.bid[rules.child[low]] != path[k]:
            return -1, -1
        at += shift[k % len(shift), low]
        slot = rules.child[low]
    return at, slot


@kernel(allocates=False)
def _keep_values(paths, rules, shift, found, others, moves, values):
    """Write the values at the nodes of a batch, and the reach of raises that must be called, to their parts. In place.

    A part has an entry for each class, or two after a bid that must be called.
    """
    for node in range(len(paths)):
        to, _ = find_place(paths[node], rules, shift)
        for k in range(found.at[node], found.at[node + 1]):
            values[to] = found.won[k, 0]
            to += 1
    for leaf in range(len(moves.leaf_node)):
        path, tail = paths[moves.leaf_node[leaf]], others.leaf_tails[leaf]
        to, _ = find_place(path, rules, shift)
        to += shift[len(path) % 2, moves.leaf_edge[leaf]]
        values[to] = tail[0, 0]
        values[to + 1] = tail[len(tail) - 2, 0]


@kernel(allocates=False)
def _keep_reach(paths, rules, shift, others, values):
    """Write tails of the opponent's reach at the nodes of a batch to their parts. In place.

    A part has an entry for each of a tail's and for each raise that must be called.
    """
    leaf = 0
    for node in range(len(paths)):
        to, slot = find_place(paths[node], rules, shift)
        for tail in others.tails[node]:
            values[to] = tail[0]
            to += 1
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            if must_call(rules, rules.child[edge]):
                values[to] = others.leaf_tails[leaf, others.leaf_tails.shape[1] - 2, 0]
                to += 1
                leaf += 1


class RoundValues:
    """The values of a best response in a round, kept while the round is walked.

    Args:
        round_: the round.
        player: the opponent, which is asked.

    Attributes:
        rules: of the round.
        class_of: (slots, hands) int64: the responder's hand → class where the opponent is to move.
        shift: (2, edges) int64: from where a node's numbers begin to where its child's do, by the player to move.
        size: numbers in all.
        values: (size,), for which the caller gives room before the walk.
    """

    def __init__(self, round_: Round, player: int) -> None:
        self.rules = rules = round_.rules
        classes = round_.classes_of((1 - player,), round_.matches[1 - player], is_sure=True)
        self.class_of = classes.of[player]
        last = np.diff(rules.first) == 0
        leaves = [int(last[rules.raises(slot)].sum()) for slot in range(len(last))]
        own, size = np.zeros((2, 2, len(last)), np.int64)
        own[player] = np.where(last, 0, classes.size[player])
        own[1 - player] = np.where(last, 2, round_.dice[player] + 2 + np.array(leaves))
        self.shift = np.zeros((2, len(rules.child)), np.int64)
        _place_all(rules, own, size, self.shift)
        self.size, self.values = int(size[0, 0]), np.zeros(0)

    def keep(self, batch: Nodes, others: Others, found: Winnings, moves: PlayerMoves | np.ndarray) -> None:
        """Keep the values where the opponent is to move, tails of its reach where the responder is: see `walk.Keep`."""
        if isinstance(moves, PlayerMoves):
            _keep_values(batch.paths, self.rules, self.shift, found, others, moves, self.values)
        else:
            _keep_reach(batch.paths, self.rules, self.shift, others, self.values)


# --- all rounds ---------------------------------------------------------------------------------------------------


class ValueTable(NamedTuple):
    """The values of all rounds, for kernels. The first axis of most arrays is the round; rows are padded."""

    number: np.ndarray  # (2, MAX_DICE + 1, MAX_DICE + 1, 2) int64: the round, by the responder's seat, its dice, the
    # opponent's and whether the responder starts; or NONE
    values: np.ndarray  # float64 or float32
    at: np.ndarray  # (rounds,) int64: where the round's part of `values` begins
    ends: np.ndarray  # (rounds, 2) float64: the return after the round is lost, and after it is won
    first: np.ndarray  # (rounds, slots + 1) int64: see `round.RoundRules`
    child: np.ndarray  # (rounds, edges) int64
    bid: np.ndarray  # (rounds, slots) int64
    shift: np.ndarray  # (rounds, 2, edges) int64: see `RoundValues`
    class_of: np.ndarray  # (rounds, slots, hands) int16: the responder's hand → class where the opponent is to move


def _padded(arrays: Sequence[np.ndarray], dtype: type[np.integer]) -> np.ndarray:
    """Stack arrays, padded with zeros to the same shape."""
    shape = np.max([each.shape for each in arrays], axis=0)
    out = np.zeros((len(arrays), *shape), dtype)
    for row, each in zip(out, arrays, strict=True):
        row[tuple(map(slice, each.shape))] = each
    return out


@kernel(allocates=False)
def _write_odds(params, state, mask, out):
    """Write the chance that each legal bid holds, and that a call is right, if all dice not seen are fair. In place.

    `mask` (actions,) is scratch.
    """
    seat = np.int64(state["seat"])
    mask[:] = 0
    legal(params, state, mask)
    unseen = np.int64(state["in_play"]) - np.int64(state["dice"][seat])
    wild = wild_face(params, state)
    for bid in range(params.call):
        if mask[bid] != 0:
            face = face_of(params, bid)
            own = matching(wild, state["counts"][seat], face)
            out[bid] = chance_at_least(params, wild, quantity_of(params, bid) + 1, own, unseen, face)
    if state["bid"] != NO_BID:
        out[params.call] = 1.0 - chance_bid_holds(params, state, seat)
    if may_call_exactly(params, state):
        out[params.call + 1] = chance_bid_exact(params, state, seat)


@kernel(allocates=False)
def _value_reached(params, state, table, number, rules, place, out):
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
    hand = hand_number(params.num_faces, dice, counts)
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
def value_all(params, table, states, mask, out):
    """Write the return of each action at each state if a best response follows. In place; `out` (n, actions) comes as NaN.

    Where the opponent never comes, its dice are fair, and every raise is called. `mask` (actions,) is scratch.
    """
    for i in range(len(states)):
        state = states[i]
        seat = np.int64(state["seat"])
        starts = 1 if state["starter"] == seat else 0
        number = table.number[seat, np.int64(state["dice"][seat]), np.int64(state["dice"][1 - seat]), starts]
        rules = RoundRules(table.first[number], table.child[number], table.bid[number], table.bid[number], table.bid[number])
        place = find_place(state["bids"][: np.int64(state["num_bids"])], rules, table.shift[number])
        if not _value_reached(params, state, table, number, rules, place, out[i]):
            _write_odds(params, state, mask, out[i])
        low, high = table.ends[number, 0], table.ends[number, 1]
        for action in range(params.num_actions):
            out[i, action] = low + (high - low) * out[i, action]


# --- an opponent ----------------------------------------------------------------------------------------------------------


def _action_values(variant: Variant, table: ValueTable, states: np.ndarray) -> np.ndarray:
    """Return the return to expect after each action if a best response follows, (n, num_actions) float64.

    At positions that the opponent never reaches, its dice are taken for fair, and raises as if they were called.
    """
    actions = variant.facts.num_actions
    out = np.full((len(states), actions), np.nan)
    value_all(variant.params, table, states, np.empty(actions, np.int8), out)
    return out


def response_values(variant: Variant, opponent: Any) -> ResponseValues:
    """Return the values of choices against an opponent. See `dice_envs.exact.GameExact.response_values`.

    Results for opponents without a state of their own, whose parameters are plain values, are kept in memory.

    Raises:
        ValueError: the game is not between two players for a win, or too large; the opponent's answers are random, or past
            rounds matter to it; or a best response would rather lose a round than win it.
    """
    check_measurable(variant, _WHAT)
    find = _kept_table if _is_plain(opponent.agent) else _find_table
    table, starts = find(variant, opponent.agent, opponent=opponent)
    note = f"if a best response to {opponent.name} follows"
    return ResponseValues(RETURN, note, starts.__getitem__, functools.partial(_action_values, variant, table))


def _is_plain(agent: Any) -> bool:
    """Return whether equal agents play alike, because their parameters are plain values and name no file."""
    if not dataclasses.is_dataclass(agent) or isinstance(agent, type):
        return False
    files = getattr(agent, "files", ())
    parameters = {field.name: getattr(agent, field.name) for field in dataclasses.fields(agent) if field.compare}
    return all(isinstance(value, bool | int | float | str | None) for value in parameters.values()) and not any(
        parameters.get(name) for name in files
    )


class _Seat:
    """The best response to an opponent in one seat.

    Attributes:
        rounds: table → its values in the round, parts of `values`.
        ends: (rounds, 2) float64: its return after each round is lost, and after it is won.
        expected_return: its return before anything is dealt.
    """

    def __init__(self, variant: Variant, opponent: Any, seat: int, seats: SeatComparison | None) -> None:
        tables = tables_of(variant.options)
        self.rounds = {table: RoundValues(round_at(variant, table.dice), table.place(seat)) for table in tables}
        size = sum(each.size for each in self.rounds.values())
        dtype = dtype_of(size)
        if size * np.dtype(dtype).itemsize > MOST_BYTES:
            most = MOST_BYTES // np.dtype(dtype).itemsize
            raise ValueError(
                f"num_dice={variant.options.num_dice!r} with num_faces={variant.options.num_faces} needs {size:,} numbers "
                f"for {_WHAT}; {most:,} at most are allowed"
            )
        self.values = np.zeros(size, dtype)
        end = 0
        for each in self.rounds.values():
            each.values = self.values[end : end + each.size]
            end += each.size
        known = response_wins(variant, opponent, seat, seats, keep=lambda table: self.rounds[table].keep)
        payoffs = [win_chances_after(variant, table, 1 - seat, known) for table in tables]
        self.ends = np.array([[2 * np.ravel(after)[0] - 1 for after in both] for both in payoffs])
        self.expected_return = float(np.mean([2 * known[table][0] - 1 for table in first_tables(variant.options)]))


def _find_table(variant: Variant, agent: Any, *, opponent: Any) -> tuple[ValueTable, tuple[float, float]]:
    """Return the table of a best response to an agent, which `opponent` asks, and its expected return in each seat."""
    with fixed_in_a_round(variant, [opponent], _WHAT):
        found = in_both_seats(variant, functools.partial(_Seat, variant, opponent))
    number = np.full((2, MAX_DICE + 1, MAX_DICE + 1, 2), NONE, np.int64)
    count = 0
    for seat, each in enumerate(found):
        for played in each.rounds:
            responders = [1 - seat] if len(found) == 2 else [0, 1]
            number[responders, played.dice_of(1 - seat), played.dice_of(seat), int(played.starter != seat)] = count
            count += 1
    rounds = [played for each in found for played in each.rounds.values()]
    rules = [each.rules for each in rounds]
    table = ValueTable(
        number=number,
        values=np.concatenate([each.values for each in found]) if len(found) > 1 else found[0].values,
        at=np.cumsum([0] + [each.size for each in rounds])[:-1].astype(np.int64),
        ends=np.concatenate([each.ends for each in found]),
        first=_padded([each.first for each in rules], np.int64),
        child=_padded([each.child for each in rules], np.int64),
        bid=_padded([each.bid for each in rules], np.int64),
        shift=_padded([each.shift for each in rounds], np.int64),
        class_of=_padded([each.class_of for each in rounds], np.int16),
    )
    # The responder sits opposite the opponent.
    return table, (found[-1].expected_return, found[0].expected_return)


_kept_table = kept(MOST_KEPT, lambda found: found[0].values.nbytes)(_find_table)


# --- without a search -----------------------------------------------------------------------------------------------


_LIKELY = Unit("likely", True, "how likely")


def odds(variant: Variant, state: Any) -> ActionValues:
    """Return the chances that each bid holds, and that a call is right, if all dice that the seat does not see are fair.

    See `dice_envs.exact.GameExact.odds`. The information in the others' bids is left out.
    """
    actions = variant.facts.num_actions
    values = np.full(actions, np.nan)
    _write_odds(variant.params, state, np.empty(actions, np.int8), values)
    return ActionValues(
        values, _LIKELY, "how likely a bid holds and a call is right, with your dice and fair dice of the others"
    )


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return the headings by which decisions are sorted. See `dice_envs.exact.GameExact.situations`.

    They are the round, counted by the dice lost; the own dice and each other player's in order of play; and the kind of
    decision.
    """
    players = variant.options.num_players
    rows, seats = np.arange(len(states)), states["seat"].astype(np.int64)
    left = [states["dice"][rows, (seats + k) % players].astype(str) for k in range(players)]
    dice = [" v ".join(each) for each in zip(*left, strict=True)]
    kinds = np.where(actions == variant.params.call, "call", np.where(states["bid"] == NO_BID, "first bid", "raise"))
    found = {"dice left": np.array(dice, np.str_), "decision": kinds}
    if variant.options.rounds == "single":
        return found
    lost = sum(variant.options.dice_per_seat) - states["in_play"].astype(np.int64)
    return {"round": (lost + 1).astype(str), **found}


def traits(variant: Variant, states: np.ndarray) -> dict[str, np.ndarray]:
    """Return which actions are "bluffs": bids on a face of which the bidder holds no die; wild dice count.

    See `dice_envs.exact.GameExact.traits`.
    """
    params = variant.params
    face_of_bid = [int(face_of(params, np.int64(bid))) for bid in range(params.call)]
    found = np.zeros((len(states), variant.facts.num_actions), np.bool_)
    for row, state in enumerate(states):
        own, wild = state["counts"][state["seat"]], wild_face(params, state)
        lacks = np.array([matching(wild, own, face) == 0 for face in range(params.num_faces)])
        found[row, : params.call] = lacks[face_of_bid]
    return {"bluffs": found}
