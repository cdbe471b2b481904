"""Hands of Liar's Dice: all of them with their chances, the dice that count for a bid, and the number of each hand."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.games.liars_dice import MAX_DICE, NO_WILD, matching
from dice_envs.games.liars_dice.raises import MAX_FACES

__all__ = ["Hands", "hand_number", "hands_of", "matches_of", "numbered_hands"]


def hands_of(variant: Variant, dice: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all hands, (hands, MAX_FACES) int8: how many dice show each face; and their chances, (hands,) float64."""
    faces = variant.params.num_faces
    thrown = list(itertools.combinations_with_replacement(range(faces), dice))
    hands = np.array([[throw.count(face) for face in range(MAX_FACES)] for throw in thrown], np.int8)
    ways = [math.factorial(dice) / math.prod(map(math.factorial, hand.tolist())) for hand in hands]
    return hands, np.array(ways) / faces**dice


@kernel
def _match_all(wild, hands, out):
    for i in range(len(hands)):
        for face in range(out.shape[1]):
            out[i, face] = matching(wild, hands[i], face)


def matches_of(variant: Variant, hands: np.ndarray, palifico: bool = False) -> np.ndarray:
    """Count the dice of each hand that count for a bid on each face, (hands, faces) int64."""
    out = np.zeros((len(hands), variant.params.num_faces), np.int64)
    _match_all(NO_WILD if palifico else variant.params.wild, hands, out)
    return out


class Hands(NamedTuple):
    """The number of each hand, for kernels."""

    first: np.ndarray  # (MAX_DICE + 2,) int64: where the hands of each number of dice begin
    key: np.ndarray  # int64: see `_key`; rising for each number of dice
    number: np.ndarray  # int64: the hand's place in `hands_of`


@kernel(allocates=False)
def _key(counts):
    """Return a number that tells a hand apart from all others, from its dice by face."""
    key = np.int64(0)
    for face in range(len(counts)):
        key = key * (MAX_DICE + 1) + np.int64(counts[face])
    return key


@kernel(allocates=False)
def hand_number(hands, dice, counts):
    """Return the place of a hand in `hands_of`, from its dice by face; −1 if it has another number of dice."""
    key = _key(counts)
    low = hands.first[dice]
    high = end = hands.first[dice + 1]
    while low < high:
        middle = (low + high) // 2
        if hands.key[middle] < key:
            low = middle + 1
        else:
            high = middle
    return hands.number[low] if low < end and hands.key[low] == key else -1


def numbered_hands(variant: Variant, most: int) -> Hands:
    """Return the numbers of all hands of up to `most` dice."""
    keys, numbers = [], []
    for dice in range(MAX_DICE + 1):
        dealt = hands_of(variant, dice)[0] if 0 < dice <= most else np.zeros((0, MAX_FACES), np.int8)
        key = np.array([_key(hand) for hand in dealt], np.int64)
        order = np.argsort(key)
        keys.append(key[order])
        numbers.append(order.astype(np.int64))
    first = np.concatenate([[0], np.cumsum([len(each) for each in keys])]).astype(np.int64)
    return Hands(first, np.concatenate(keys), np.concatenate(numbers))
