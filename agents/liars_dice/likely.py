"""Hints in Liar's Dice without a known solution: the others' dice are weighed by what their owners have said in the round.

Each owner is a known player or anybody, and sometimes acts at random; given such a player and its dice, the probability of each
of its bids is known. Bayes' rule then gives the probability of each hand and player. Everybody acts on the own dice and on what
all have seen alone, so the others' hands are independent of each other.

A choice is valued by games in which the others hold such hands. The round is played to its end by those players, and by
`reader` for the seat itself. After the round every player is as likely to lose the next die: a race, whose chances are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dice_envs.agent.kernel import AgentKernel
from dice_envs.core.dice import STREAM, next_u64, uniform
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.state import MAX_SEATS, OVER
from dice_envs.core.work import hinting
from dice_envs.games.liars_dice import MAX_DICE, STATE, bidder_after, matching, may_call_exactly, play, wild_face
from dice_envs.games.liars_dice.exact.seating import check_two_players
from dice_envs.games.liars_dice.exact.solver import check_needs
from dice_envs.games.liars_dice.raises import MAX_FACES, NO_BID, count_raises, face_of, lowest_raise, quantity_of

from ..base import fair_kernel
from .players import (
    READING,
    Numbers,
    Reader,
    chance_by_numbers,
    choose_by_numbers,
    choose_by_reading,
    choose_surest,
    read_bids,
)

# --- players of the others' seats ------------------------------------------------------------------------------------

# Those who play by numbers, of whom the last is anybody: at random half of the time. Then a reader.
_BY_NUMBERS = (Numbers(), Numbers(bluff=0.25), Numbers(bluff=0.5), Numbers(bluff=1.0), Numbers(bluff=0.5))
_STYLES = np.array([each.style for each in _BY_NUMBERS])
_READER = len(_BY_NUMBERS)
MODELS = len(_BY_NUMBERS) + 1
_PRIOR = np.array([1 / 12, 1 / 12, 1 / 12, 1 / 12, 1 / 3, 1 / 3])
_SLIPS = np.array([0.05, 0.05, 0.05, 0.05, 0.5, 0.05])  # how often they act at random
_FACTORIALS = np.array([math.factorial(n) for n in range(MAX_DICE + 1)], np.float64)
_WAYS = np.array(
    [[math.comb(dice + faces - 1, dice) if faces else 0 for faces in range(MAX_FACES + 1)] for dice in range(MAX_DICE + 1)]
)


@kernel(allocates=False)
def _next_hand(counts, faces):
    """Go to the next hand with as many dice, in place; the first has all dice on face 1, the last all on the highest face."""
    at = 0
    while counts[at] == 0:
        at += 1
    moved = counts[at]
    counts[at] = 0
    if at + 1 < faces:
        counts[0] = moved - 1
        counts[at + 1] += 1


@kernel(allocates=False)
def _chance_slipped(params, state, action):
    """The probability of an action at random: a call and a raise with 1/2 each where both are legal, raises alike."""
    raises = count_raises(params, state)
    chance = 1.0 if raises == 0 or action >= params.call else 1.0 / raises
    return 0.5 * chance if raises > 0 and state["bid"] != NO_BID else chance


@kernel
def _weigh_hands(params, reading, state, seat, hands, sums):
    """Write all hands of a seat, (hands, MAX_FACES), and running sums of their weights by model, (hands × MODELS,). In place.

    A weight is the chance of the hand and the model, times that of the seat's bids in this round. None becomes 0: a seat makes
    at most 48 bids, and a slip is likelier than 1e-4.
    """
    dice, faces = np.int64(state["dice"][seat]), params.num_faces
    count = _WAYS[dice, faces]
    before = np.empty(1, STATE)
    before[0] = state
    seen = before[0]
    seen["seat"] = seat
    counts = seen["counts"][seat]
    counts[:] = 0
    counts[0] = dice
    for h in range(count):
        chance = _FACTORIALS[dice]
        for face in range(faces):
            hands[h, face] = counts[face]
            chance /= _FACTORIALS[counts[face]]
        for m in range(MODELS):
            sums[h * MODELS + m] = chance * _PRIOR[m]
        _next_hand(counts, faces)
    for i in range(state["num_bids"]):
        if bidder_after(params, state, i) != seat:
            continue
        action = np.int64(state["bids"][i])
        seen["num_bids"] = i
        seen["bid"] = state["bids"][i - 1] if i > 0 else NO_BID
        total = read_bids(params, reading, seen)
        slipped = _chance_slipped(params, seen, action)
        for h in range(count):
            for face in range(faces):
                counts[face] = hands[h, face]
            for m in range(MODELS):
                if m == _READER:
                    chance = 1.0 if choose_surest(params, reading, seen, total) == action else 0.0
                else:
                    chance = chance_by_numbers(params, _STYLES[m], seen, action)
                sums[h * MODELS + m] *= chance * (1.0 - _SLIPS[m]) + slipped * _SLIPS[m]
    for k in range(1, count * MODELS):
        sums[k] += sums[k - 1]


@kernel(allocates=False)
def _draw(sums, count, stream):
    """Return an index below `count`, drawn in proportion to the weights whose running sums these are."""
    at = uniform(stream) * sums[count - 1]
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > at:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def deal_likely(params, reading, state, streams, drawn, models):
    """Write games in which the others' hands are drawn as the bids suggest, and the model of each seat. In place.

    `streams`, `drawn` and `models` (games, MAX_SEATS) have a row for each game.
    """
    me = np.int64(state["seat"])
    most = 0
    for seat in range(params.num_players):
        most = max(most, _WAYS[state["dice"][seat], params.num_faces])
    hands, sums = np.zeros((most, MAX_FACES), np.int8), np.empty(most * MODELS)  # for the seat with the most hands
    for i in range(len(drawn)):
        drawn[i] = state
        drawn[i]["rng"] = next_u64(streams[i])
    for seat in range(params.num_players):
        if seat == me or state["dice"][seat] == 0:
            models[:, seat] = _READER
            continue
        _weigh_hands(params, reading, state, seat, hands, sums)
        for i in range(len(drawn)):
            k = _draw(sums, _WAYS[state["dice"][seat], params.num_faces] * MODELS, streams[i])
            models[i, seat] = k % MODELS
            for face in range(params.num_faces):
                drawn[i]["counts"][seat, face] = hands[k // MODELS, face]


# --- the rest of a game ------------------------------------------------------------------------------------------------
# If every player is as likely to lose the next die, players lose dice as by independent Poisson processes of one rate. The time
# at which a player with d dice is out then has the gamma distribution with shape d, and the last one wins.

_TIMES, _STEPS = np.polynomial.legendre.leggauss(48)
_TIMES, _STEPS = 15.0 * (_TIMES + 1.0), 15.0 * _STEPS  # from 0 to 30, by which 6 dice are lost but for a chance of 1e-8
_DENSITY = np.array(
    [_STEPS * _TIMES ** max(d - 1, 0) * np.exp(-_TIMES) / math.factorial(max(d - 1, 0)) for d in range(MAX_DICE + 1)]
)
_LOST = np.array([_TIMES**k * np.exp(-_TIMES) / math.factorial(k) for k in range(MAX_DICE)])
_OUT = np.array([1.0 - _LOST[:d].sum(axis=0) for d in range(MAX_DICE + 1)])


@kernel(allocates=False)
def race(dice, seat, players):
    """The chance that a seat is the last one with dice, if each player is as likely to lose the next die."""
    if dice[seat] == 0:
        return 0.0
    chance = 0.0
    for k in range(len(_TIMES)):
        term = _DENSITY[dice[seat], k]
        for other in range(players):
            if other != seat:
                term *= _OUT[dice[other], k]
        chance += term
    return chance


@kernel
def _finish_round(params, reading, state, models, seat, action, stream):
    """Play the action and the rest of the round; return what the seat may expect of the game then. In place."""
    play(params, state, action)
    earned = np.float64(state["rewards"][seat])
    while action < params.call:
        model = models[state["seat"]]
        if model == _READER:
            action = choose_by_reading(params, reading, state, stream)
        else:
            action = choose_by_numbers(params, _STYLES[model], state, stream)
        play(params, state, action)
        earned += state["rewards"][seat]
    if state["seat"] == OVER or params.pay_dice or state["dice"][seat] == 0:
        return earned
    chance = race(state["dice"], seat, params.num_players)
    return chance - (1.0 - chance) / (params.num_players - 1)


@kernel
def try_actions(params, reading, drawn, models, actions, streams, earned):
    """Write what the seat to move may expect after each action in each game, (actions, games). In place."""
    state, stream = np.empty(1, STATE), np.empty(1, STREAM)
    seat = np.int64(drawn[0]["seat"])
    for a in range(len(actions)):
        for i in range(len(drawn)):
            state[0] = drawn[i]
            stream[0] = streams[i]
            earned[a, i] = _finish_round(params, reading, state[0], models[i], seat, actions[a], stream[0])


# --- choices worth trying ----------------------------------------------------------------------------------------------

_LIKELY = 0.2  # raises on a face that are likelier to hold than this are tried, as far as _DOWN below the highest of them
_DOWN = 2
MOST_TRIED = MAX_FACES * (_DOWN + 1) + 2


@kernel
def candidates(params, reading, state, actions):
    """Write the actions worth trying, and return their number, MOST_TRIED at most. In place."""
    total = read_bids(params, reading, state)
    counts, wild = state["counts"][state["seat"]], wild_face(params, state)
    found = 0
    if state["bid"] != NO_BID:
        actions[0] = params.call
        found = 1
        if may_call_exactly(params, state):
            actions[1] = params.call + 1
            found = 2
    for face in range(params.num_faces):
        lowest = lowest_raise(params, state, face)
        if lowest == NO_BID:
            continue
        first = lowest // params.num_faces
        last = np.int64(state["in_play"]) - 1
        own = matching(wild, counts, face)
        holds = 0.0
        for number in range(len(total[face]) - 1, max(last + 1 - own, 0) - 1, -1):
            holds += total[face, number]
        while last > first and holds < _LIKELY:
            last -= 1
            if last + 1 - own >= 0:
                holds += total[face, last + 1 - own]
        for quantity in range(max(first, last - _DOWN), last + 1):
            actions[found] = quantity * params.num_faces + face
            found += 1
    return found


# --- what a hint shows, and the player -----------------------------------------------------------------------------------

_MOVES = 30  # of usual games, which take about as long as one of these


@kernel
def _chances(params, drawn, actions, out):
    """Write the share of the games in which each bid holds, or a call is right, (actions,). In place."""
    out[:] = 0.0
    for i in range(len(drawn)):
        state = drawn[i]
        wild, bid = wild_face(params, state), np.int64(state["bid"])
        for a in range(len(actions)):
            claimed = actions[a] if actions[a] < params.call else bid
            found = -1 - quantity_of(params, claimed)
            for seat in range(params.num_players):
                if state["dice"][seat] > 0:
                    found += matching(wild, state["counts"][seat], face_of(params, claimed))
            if actions[a] < params.call:
                out[a] += found >= 0
            else:
                out[a] += found < 0 if actions[a] == params.call else found == 0
    out /= len(drawn)


# --- hints ---------------------------------------------------------------------------------------------------------------

_SEARCH = np.dtype([("reading", READING), ("first", np.int64), ("then", np.int64)])
_FIRST = 40  # games in which all choices are tried
_KEPT = 4  # choices that are tried for long


@kernel
def _choose_by_hint(params, search, state, stream):
    reading, first = search["reading"], search["first"]
    games = first + search["then"]
    actions = np.empty(MOST_TRIED, np.int64)
    count = candidates(params, reading, state, actions)
    drawn, models, streams = np.empty(games, STATE), np.empty((games, MAX_SEATS), np.int64), np.empty(games, STREAM)
    for i in range(games):
        streams[i]["rng"] = next_u64(stream)
    deal_likely(params, reading, state, streams, drawn, models)
    means, earned = np.empty(count), np.empty((count, games))  # more rows than the second trial needs
    try_actions(params, reading, drawn[:first], models[:first], actions[:count], streams[:first], earned[:, :first])
    for a in range(count):
        means[a] = earned[a, :first].mean()
    kept = actions[np.argsort(-means)[:_KEPT]]
    try_actions(params, reading, drawn[first:], models[first:], kept, streams[first:], earned[:, first:])
    best = 0
    for a in range(len(kept)):
        means[a] = earned[a, first:].mean()
        best = a if means[a] > means[best] else best
    return kept[best]


def _is_solved(variant: Variant) -> bool:
    try:
        check_two_players(variant.options)
        with hinting():
            check_needs(variant)
    except ValueError:
        return False
    return True


class LikelyGames:
    """Games of Liar's Dice in which the others hold what their bids suggest, and play on as such players do. See
    `dice_envs.agents.hint.UsualGames`."""

    note = "the others hold what their bids suggest, and after the round every player is as likely to lose the next die"

    def __init__(self, variant: Variant, state: Any) -> None:
        self._variant, self._state, self._reading = variant, state, Reader().reading(variant)
        found = np.empty(MOST_TRIED, np.int64)
        self.actions: list[int] = found[: candidates(variant.params, self._reading, state, found)].tolist()

    def _deal(self, streams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        drawn, models = np.empty(len(streams), STATE), np.empty((len(streams), MAX_SEATS), np.int64)
        deal_likely(self._variant.params, self._reading, self._state, streams, drawn, models)
        return drawn, models

    def play(self, actions: Sequence[int], hidden: np.ndarray, streams: np.ndarray) -> tuple[np.ndarray, int]:
        """Return what the seat may expect after each action, (actions, games) float64, and the work done, in moves."""
        drawn, models = self._deal(hidden.copy())
        earned = np.empty((len(actions), len(streams)))
        try_actions(self._variant.params, self._reading, drawn, models, np.array(actions), streams, earned)
        return earned, _MOVES * earned.size

    def chances(self, streams: np.ndarray) -> np.ndarray:
        """Return the chance that each bid holds, and that a call is right, (num_actions,) float64; NaN where not legal."""
        legal = np.array(self._variant.legal_actions(self._state))
        out = np.full(self._variant.facts.num_actions, np.nan)
        found = np.empty(len(legal))
        _chances(self._variant.params, self._deal(streams.copy())[0], legal, found)
        out[legal] = found
        return out

    @staticmethod
    def kernel(variant: Variant, games: int) -> AgentKernel | None:
        """Return the kernel that finds the best choice by so many games; None where optimal play is known soon."""
        if _is_solved(variant):
            return None
        return fair_kernel(_choose_by_hint, np.array((Reader().reading(variant), _FIRST, games), _SEARCH))
