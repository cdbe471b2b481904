"""One round of Liar's Dice: what may be bid, all hands, and classes of hands that no later call tells apart.

Player 0 is the round's starter; the others follow in the order of play.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.games.liars_dice import MAX_DICE, matching, set_kind, thrown, wild_in
from dice_envs.games.liars_dice.exact.seating import kind_of
from dice_envs.games.liars_dice.raises import MAX_FACES, NO_BID, bids_after, face_of, quantity_of, rule_number

# _HANDS[d, m]: the number of hands of d dice with m + 1 faces.
_HANDS = np.array([[math.comb(dice + more, dice) for more in range(MAX_FACES)] for dice in range(MAX_DICE)])
CALL = -1  # in `Classes.maps`: the hand calls instead of making the raise; in a choice: it calls


class RoundRules(NamedTuple):
    """The bids of a round, for kernels.

    Slot 0 is the empty history. A *slot* is a last bid, and with it the player to move if that makes a difference. Raises lead
    to higher slots.
    """

    first: np.ndarray  # (slots + 1,) int64: where the raises after a slot begin in `child`
    child: np.ndarray  # (edges,) int64: the slots that raises lead to, for each slot in the order of the bids' numbers
    need: np.ndarray  # (slots,) int64: quantity of the bid; 0 at slot 0
    face: np.ndarray  # (slots,) int64: face index of the bid; 0 at slot 0
    bid: np.ndarray  # (slots,) int64: the bid, an action; NO_BID at slot 0

    def raises(self, slot: int) -> np.ndarray:
        """Return the slots that the raises after a slot lead to."""
        return self.child[self.first[slot] : self.first[slot + 1]]


class Classes(NamedTuple):
    """Hands of a responder at each slot, [0] where player 0 is to move, [1] where player 1 is …, merged into classes.

    A threshold is the number of the others' dice that must count for a bid to hold. If their dice cannot reach the
    threshold, that is their number plus 1.
    """

    of: np.ndarray  # (players, slots, hands) int64: hand → class
    size: np.ndarray  # (players, slots) int64: how many classes
    call_at: np.ndarray  # (players, slots) int64: where the thresholds of the slot's bid begin, by class
    calls: np.ndarray  # int64
    map_at: np.ndarray  # (players, edges) int64: where the edge's part of `maps` begins, by the parent's class
    maps: np.ndarray  # int64: the child's class, or CALL; for a raise that must be called: the threshold of that bid


def raises_of(variant: Variant, dice: tuple[int, ...], kind: int) -> dict[tuple[int, int], np.ndarray]:
    """Return (bid, player to move) → the bids that may follow, in the order of their numbers, int64; NO_BID: the first ones.

    Bids are sorted: each comes after all that it may raise, and lower ones first where that leaves a choice.
    """
    bids, players = range(NO_BID, sum(dice) * variant.params.num_faces), range(len(dice))
    after = functools.cache(lambda bid, rule: bids_after(variant.params.lowest[rule, bid + 1], sum(dice)))
    found = {(bid, mover): after(bid, rule_number(kind, dice[mover])) for bid in bids for mover in players}
    movers = players if _depends_on_mover(kind, dice) else players[:1]
    waits_for = Counter(higher for bid in bids for mover in movers for higher in found[bid, mover].tolist())
    ready, ordered = [bid for bid in bids if not waits_for[bid]], []
    while ready:
        ordered.append(heapq.heappop(ready))
        for higher in (each for mover in movers for each in found[ordered[-1], mover].tolist()):
            waits_for[higher] -= 1
            if not waits_for[higher]:
                heapq.heappush(ready, higher)
    return {(bid, mover): found[bid, mover] for bid in ordered for mover in players}


def _depends_on_mover(kind: int, dice: tuple[int, ...]) -> bool:
    """Return whether players may raise differently in a round."""
    return len({rule_number(kind, number) for number in dice}) > 1


def _rules(variant: Variant, raises: Mapping[tuple[int, int], np.ndarray], turns: int) -> RoundRules:
    # The last bid and the player to move; 0 stands for anybody where the legal raises do not depend on that.
    keys = [(bid, mover) for bid, mover in raises if mover < (1 if bid == NO_BID else turns)]
    slot_of = {key: slot for slot, key in enumerate(keys)}
    slots = [[slot_of[higher, (mover + 1) % turns] for higher in raises[bid, mover].tolist()] for bid, mover in keys]
    bids = [bid for bid, _ in keys]
    return RoundRules(
        first=np.cumsum([0] + [len(each) for each in slots], dtype=np.int64),
        child=np.array([slot for each in slots for slot in each], np.int64),
        need=np.array([0] + [quantity_of(variant.params, bid) + 1 for bid in bids[1:]], np.int64),
        face=np.array([0] + [face_of(variant.params, bid) for bid in bids[1:]], np.int64),
        bid=np.array(bids, np.int64),
    )


class Round:
    """One round: what may be bid, and the hands.

    Attributes:
        variant: the game.
        kind: of the round; see `raises.ROUND_KINDS`.
        wild: index of the wild face, or NO_WILD.
        dice: each player's, the starter's first; those of the argument `seated` are each seat's, 0 for players who are out.
        places: of each player, counted in seats from the starter.
        raises: see `raises_of`.
        rules: the bids.
        hands: each player's, (hands, MAX_FACES) int8: how many dice show each face.
        chances: each player's, (hands,) float64.
        matches: each player's, (hands, faces) int64: dice that count for a bid on the face.
        decisions: (players, slots) float64: nodes with a choice in the subtree of a slot, by how many players after the slot's
            mover theirs is.
        nodes: sequences of bids, the empty one and those that must be called included.
    """

    def __init__(self, variant: Variant, seated: tuple[int, ...]) -> None:
        self.variant = variant
        self.kind = kind = kind_of(variant.options, seated)
        self.wild = int(wild_in(variant.params, kind))
        self.places = tuple(place for place, number in enumerate(seated) if number > 0)
        self.dice = dice = tuple(seated[place] for place in self.places)
        self.raises = raises_of(variant, dice, kind)
        self.rules = rules = _rules(variant, self.raises, len(dice) if _depends_on_mover(kind, dice) else 1)
        slots = len(rules.need)
        self.decisions = np.zeros((len(dice), slots))
        nodes = np.ones(slots)
        for slot in range(slots - 1, -1, -1):
            nodes[slot] += nodes[rules.raises(slot)].sum()
            if len(rules.raises(slot)):
                self.decisions[:, slot] = np.roll(self.decisions[:, rules.raises(slot)].sum(axis=1), 1)
                self.decisions[0, slot] += 1
        self.nodes = float(nodes[0])
        self.hands, self.chances, self.matches = zip(*(hands_of(variant, number, self.wild) for number in dice), strict=True)
        self._classes: dict[tuple[tuple[int, ...], bool], Classes] = {}

    def information_sets(self, player: int) -> float:
        """Return the number of pairs of a node and a hand at which the player has a choice."""
        return float(self.decisions[player, 0]) * len(self.hands[player])

    def classes_of(self, members: tuple[int, ...], matches: np.ndarray, is_sure: bool) -> Classes:
        """Merge the hands of players who respond as one to all others.

        Hands of a class have the same threshold at a slot, and the same follows each raise: slot by slot from the last.
        `matches`, (hands, faces) int64, are the dice of their joint hands that count for a bid on the face; `is_sure` says
        whether they call every bid that cannot hold, as one of two players who wants to win the round does.
        """
        if (members, is_sure) in self._classes:
            return self._classes[members, is_sure]
        rules = self.rules
        turns = len(self.dice) if is_sure else 1  # else classes are the same whoever is to move
        slots, most = len(rules.need), sum(number for player, number in enumerate(self.dice) if player not in members)
        thresholds = np.clip(rules.need[:, None] - matches.T[rules.face], 0, most + 1)
        of = np.zeros((turns, *thresholds.shape), np.int64)
        size = np.zeros((turns, slots), np.int64)
        calls: dict[tuple[int, int], np.ndarray] = {}  # (mover, slot) → the slot's part
        maps: dict[tuple[int, int], np.ndarray] = {}
        for slot, mover in itertools.product(reversed(range(slots)), range(turns)):
            below = rules.raises(slot)
            is_last = rules.first[below] == rules.first[below + 1]
            after = np.where(is_last[:, None], thresholds[below], of[(mover + 1) % turns, below])
            if is_sure and mover in members and slot > 0:
                after[:, thresholds[slot] > most] = CALL
            ids: dict[bytes, int] = {}
            rows, width = np.vstack([thresholds[slot], after]).T.astype(np.int32).tobytes(), 4 * (1 + len(below))
            of[mover, slot] = [ids.setdefault(rows[at : at + width], len(ids)) for at in range(0, len(rows), width)]
            size[mover, slot] = len(ids)
            some = np.empty(len(ids), np.int64)  # a hand of each class
            some[of[mover, slot]] = np.arange(len(matches))
            calls[mover, slot], maps[mover, slot] = thresholds[slot, some], after[:, some]
        edges = np.diff(rules.first)
        by_edge = np.concatenate([np.repeat(each, edges) for each in size])
        alike = len(self.dice) // turns
        found = Classes(
            of=np.broadcast_to(of, (len(self.dice), *of.shape[1:])),
            size=np.tile(size, (alike, 1)),
            call_at=np.tile((np.cumsum(size) - size.ravel()).reshape(size.shape), (alike, 1)),
            calls=np.concatenate([calls[key] for key in sorted(calls)]),
            map_at=np.tile((np.cumsum(by_edge) - by_edge).reshape(turns, -1), (alike, 1)),
            maps=np.concatenate([maps[key].ravel() for key in sorted(maps)]),
        )
        if len(members) < 2:  # those of several players take much memory
            self._classes[members, is_sure] = found
        return found

    def dealt(self, starter: int) -> np.ndarray:
        """Return one state in which the game's first round has just been dealt with these dice; the seat begins."""
        state = np.zeros(1, self.variant.game.state)
        self.variant.kernels.deal(state, np.zeros(1, np.int64))
        state["dice"] = 0
        for place, number in zip(self.places, self.dice, strict=True):
            state["dice"][0, (starter + place) % self.variant.params.num_players] = number
        state["in_round"][0] = state["dice"][0] > 0
        state["in_play"] = sum(self.dice)
        state["seat"] = state["starter"] = starter
        set_kind(state[0], starter, self.kind)
        return state


# --- for kernels ----------------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def must_call(rules, slot):
    """Return whether nothing can be raised after a slot."""
    return rules.first[slot] == rules.first[slot + 1]


@kernel(allocates=False)
def threshold(need, matching, most):
    """Return how many of the others' `most` dice must count for a bid to hold, at most one more than there are."""
    return min(max(need - matching, 0), most + 1)


# --- hands --------------------------------------------------------------------------------------------------------------


@kernel
def _match_all(wild, hands, out):
    for i in range(len(hands)):
        for face in range(out.shape[1]):
            out[i, face] = matching(wild, hands[i], face)


@functools.lru_cache(maxsize=32)
def hands_of(variant: Variant, dice: int, wild: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all hands of a number of dice, with their chances and matches, as in `Round`. They are shared: do not write."""
    hands, chances = thrown(dice, variant.params.num_faces)
    matches = np.zeros((len(hands), variant.params.num_faces), np.int64)
    _match_all(wild, hands, matches)
    return hands, chances, matches


@kernel(allocates=False)
def hand_number(faces, dice, counts):
    """Return the place of a hand in `hands_of`, from its dice by face; −1 if it has another number of dice."""
    number, left = 0, dice
    for face in range(faces):
        left -= np.int64(counts[face])
        if left > 0:  # hands with more dice of this face, and the same of those before, come first
            number += _HANDS[left - 1, faces - 1 - face]
    return number if left == 0 else -1
