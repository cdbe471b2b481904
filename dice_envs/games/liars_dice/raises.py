"""Bids of Liar's Dice: the rules of raising, the kinds of round, and which bids are legal.

A rule of raising is one entry of `RULES`. From it follows a table of the lowest quantity of each face after each bid, and
from the table whatever the game, its players and its exact solvers ask. Rounds with rules of their own are a *kind* of round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel

MAX_FACES = 8
NO_BID = -1  # value of a state's `bid` before a round's first bid, and of `shown_bid` before the first call
NEVER = 100  # lowest quantity of a face that no legal bid can name: more than all dice
_RECIPROCALS = np.array([0] + [-(-65536 // divisor) for divisor in range(1, MAX_FACES + 1)])  # 65536 / divisor, rounded up


# --- the rules --------------------------------------------------------------------------------------------------


class RaiseRule(NamedTuple):
    """A rule of raising, and all that depends on which one it is.

    Attributes:
        words: the rule in a sentence for players.
        lowest: (number of faces, quantity, face, to) → the lowest quantity of a bid on the face index `to` that raises a bid of
            `quantity` dice on the face index `face`, or `NEVER`. Arguments and result are int64 arrays of one shape.
        longest: (dice in play, number of faces) → the most bids that can follow each other.
        closed: face indices that the first bid may not name.
    """

    words: str
    lowest: Callable[[int, Any, Any, Any], Any]
    longest: Callable[[int, int], int]
    closed: tuple[int, ...] = ()


def _after_quantity(faces: int, quantity: Any, face: Any, to: Any) -> Any:
    follows = (to >= face) | ((to == 0) & (face == faces - 1))
    return np.where(follows, quantity + 1, NEVER)


def _after_either(faces: int, quantity: Any, face: Any, to: Any) -> Any:
    return np.where(to > face, quantity, quantity + 1)


def _after_perudo(faces: int, quantity: Any, face: Any, to: Any) -> Any:
    after_ones = np.where(to == 0, quantity + 1, 2 * quantity + 1)
    after_others = np.where(to == 0, (quantity + 1) // 2, _after_either(faces, quantity, face, to))
    return np.where(face == 0, after_ones, after_others)


def _after_nondecreasing(faces: int, quantity: Any, face: Any, to: Any) -> Any:
    return np.where(to >= face, _after_either(faces, quantity, face, to), NEVER)


def _after_reset_quantity(faces: int, quantity: Any, face: Any, to: Any) -> Any:
    return np.where(to > face, 1, np.where(to == face, quantity + 1, NEVER))


def _every_bid(dice: int, faces: int) -> int:
    return dice * faces


RULES = {
    "quantity": RaiseRule(
        "Each bid names more dice than the last one, and its face or a higher one; ones may follow the highest face.",
        _after_quantity,
        lambda dice, faces: dice,
    ),
    "either": RaiseRule("Each bid names more dice than the last one, or as many of a higher face.", _after_either, _every_bid),
    "perudo": RaiseRule(
        "Each bid names more dice than the last one, or as many of a higher face. A bid on ones needs only half as many; after "
        "ones it takes more than twice as many, or more ones. Nobody opens on ones.",
        _after_perudo,
        _every_bid,
        closed=(0,),
    ),
    "nondecreasing": RaiseRule(
        "Each bid names more dice than the last one or a higher face, and lowers neither.",
        _after_nondecreasing,
        lambda dice, faces: dice + faces - 1,
    ),
    "reset_quantity": RaiseRule(
        "Each bid names more dice of the last one's face, or any number of a higher face.", _after_reset_quantity, _every_bid
    ),
}
# Kinds of round: values of a state's `palifico`.
USUAL = 0
PALIFICO = 1
ROUND_KINDS = {PALIFICO: "palifico"}  # the option that brings each kind but the usual one
# In palifico rounds: of players with more than one die, and of players with one.
_SAME_FACE = RaiseRule(
    "Each bid names more dice of the same face.",
    lambda faces, quantity, face, to: np.where(to == face, quantity + 1, NEVER),
    lambda dice, faces: dice,
)
_WITH_ONE_DIE = {**RULES, "perudo": RULES["either"]}


def round_kinds(options: Any) -> list[int]:
    """Return the kinds of rounds, other than the usual one, that the options allow."""
    return [kind for kind, option in ROUND_KINDS.items() if getattr(options, option)]


def lowest_quantities(raise_rule: str, kinds: Sequence[int], dice: int, num_faces: int) -> np.ndarray:
    """Return the lowest quantity, minus 1, of each face after each bid, (rules, bids + 1, faces) int8.

    The first index is `rule_number`. The second is a bid plus 1, or 0 before the first bid. Where no legal bid names a face,
    the entry is more than any number of dice. For `kinds` see `round_kinds`.
    """
    rules = [RULES[raise_rule]]
    if PALIFICO in kinds:
        rules += [_WITH_ONE_DIE[raise_rule], _SAME_FACE]
    to = np.arange(num_faces)
    quantity, face = divmod(np.arange(dice * num_faces)[:, None], num_faces)
    found = np.ones((len(rules), dice * num_faces + 1, num_faces), np.int8)
    for rule, after in zip(rules, found, strict=True):
        after[0, list(rule.closed)] = NEVER
        after[1:] = rule.lowest(num_faces, quantity + 1, face, to)
    return found - np.int8(1)


def bids_after(lowest: Sequence[int] | np.ndarray, dice: int) -> np.ndarray:
    """Return the legal bids in rising order, int64, from the lowest quantity, minus 1, of each face."""
    quantity, face = divmod(np.arange(dice * len(lowest)), len(lowest))
    return np.flatnonzero(quantity >= np.asarray(lowest)[face])


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def divide(small, divisor):
    """`small // divisor` for 0 <= small < 1024 and divisors up to MAX_FACES, ten times as fast as a division instruction."""
    return (small * _RECIPROCALS[divisor]) >> 16


@kernel(allocates=False)
def quantity_of(params, bid):
    """The quantity of a bid, minus 1."""
    return divide(np.int64(bid), params.num_faces)


@kernel(allocates=False)
def face_of(params, bid):
    """The face index of a bid, 0 for face 1."""
    return bid - quantity_of(params, bid) * params.num_faces


@kernel(allocates=False)
def rule_number(kind, dice):
    """The first index of `lowest_quantities`, by the kind of round and by the dice of the seat to move."""
    return 0 if kind == USUAL else 1 if dice == 1 else 2


@kernel(allocates=False)
def _lowest(params, state, face):
    """The lowest quantity, minus 1, of a legal bid on a face index; at least `in_play` if there is none."""
    rule = rule_number(state["palifico"], state["dice"][state["seat"]])
    return np.int64(params.lowest[rule, state["bid"] + 1, face])


@kernel(allocates=False)
def lowest_raise(params, state, face):
    """The lowest legal bid on a face index, as an action; NO_BID if there is none."""
    quantity = _lowest(params, state, face)
    return quantity * params.num_faces + face if quantity < state["in_play"] else np.int64(NO_BID)


@kernel(allocates=False)
def is_raise(params, state, bid):
    """Whether a bid, 0 … params.call - 1, is legal."""
    quantity = quantity_of(params, bid)
    return quantity < state["in_play"] and quantity >= _lowest(params, state, face_of(params, bid))


@kernel(allocates=False)
def mark_raises(params, state, mask):
    """Mark the legal bids. Modified in place."""
    if params.any_face is not None:
        _mark_in_order(params, state, mask)
        return
    faces, dice = params.num_faces, np.int64(state["in_play"])
    for face in range(faces):
        lowest = _lowest(params, state, face)
        bid = np.int64(face)
        for quantity in range(dice):
            mask[bid] = quantity >= lowest
            bid += faces


@kernel(allocates=False)
def count_raises(params, state):
    """The number of legal bids. `nth_raise` gives each of them."""
    if params.any_face is not None:
        return _count_in_order(params, state)
    dice = np.int64(state["in_play"])
    raises = np.int64(0)
    for face in range(params.num_faces):
        lowest = _lowest(params, state, face)
        raises += dice - lowest if lowest < dice else 0
    return raises


@kernel(allocates=False)
def nth_raise(params, state, k):
    """The k-th legal bid, from 0, as an action: in rising order with `Params.any_face`, otherwise face by face."""
    if params.any_face is not None:
        return _nth_in_order(params, state, k)
    dice = np.int64(state["in_play"])
    for face in range(params.num_faces):
        lowest = _lowest(params, state, face)
        if k < dice - lowest:
            return (lowest + k) * params.num_faces + face
        k -= dice - lowest if lowest < dice else 0
    return np.int64(NO_BID)


@kernel(allocates=False)
def count_lowest(params, state):
    """The number of faces that can be bid. `nth_lowest` gives the lowest legal bid on each of them."""
    lowest = np.int64(0)
    for face in range(params.num_faces):
        lowest += _lowest(params, state, face) < state["in_play"]
    return lowest


@kernel(allocates=False)
def nth_lowest(params, state, k):
    """The lowest legal bid on the k-th face that can be bid, as an action, in the order of `nth_raise`; k from 0."""
    if params.any_face is not None:
        return _nth_in_order(params, state, k)
    for face in range(params.num_faces):
        lowest = lowest_raise(params, state, face)
        k -= lowest != NO_BID
        if k < 0:
            return lowest
    return np.int64(NO_BID)


# The rules "quantity" and "either" once more, without the table: with it a random move takes up to a third longer, and a mask
# three times as long.


@kernel(allocates=False)
def _faces_after(params, bid):
    """The number of faces that may follow a bid under the rule "quantity"."""
    higher = params.num_faces - face_of(params, bid)
    return higher if higher > 1 else np.int64(2)


@kernel(allocates=False)
def _mark_in_order(params, state, mask):
    faces, bid = params.num_faces, np.int64(state["bid"])
    end = np.int64(state["in_play"]) * faces  # params.call at most, which is within the mask
    if params.any_face or bid == NO_BID:
        mask[bid + 1 : end] = 1
        return
    face = face_of(params, bid)
    for ones in range((quantity_of(params, bid) + 1) * faces, end, faces):  # the bid on face 1 with each higher quantity
        for raised in range(ones + face, ones + faces):
            mask[raised] = 1
        if face == faces - 1:
            mask[ones] = 1


@kernel(allocates=False)
def _count_in_order(params, state):
    dice, bid = np.int64(state["in_play"]), np.int64(state["bid"])
    if params.any_face or bid == NO_BID:
        return dice * params.num_faces - (bid + 1)
    return (dice - quantity_of(params, bid) - 1) * _faces_after(params, bid)


@kernel(allocates=False)
def _nth_in_order(params, state, k):
    bid = np.int64(state["bid"])
    if params.any_face or bid == NO_BID:
        return bid + 1 + k
    width = _faces_after(params, bid)
    more = divide(k, width)
    at = k - more * width
    face = face_of(params, bid)
    if face == params.num_faces - 1:  # from the highest face: face 1 or the highest again
        face *= at
    else:
        face += at
    return (quantity_of(params, bid) + 1 + more) * params.num_faces + face
