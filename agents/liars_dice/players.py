"""Players of Liar's Dice: `numbers` plays the odds and may bluff, `reader` learns from the dice that calls have shown."""

from __future__ import annotations

import dataclasses
import functools
from math import comb
from typing import Annotated, Literal

import numpy as np

from dice_envs.agent import Drawing, KernelAgent, Promises, Turn
from dice_envs.agent.kernel import AgentKernel
from dice_envs.core.dice import below, uniform
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import Range
from dice_envs.exact.contract import LEAST_PRECISION
from dice_envs.games.liars_dice import (
    MAX_DICE,
    MAX_SEATS,
    NO_WILD,
    bidder_after,
    chance_at_least,
    chance_bid_exact,
    chance_bid_holds,
    matching,
    may_call_exactly,
    wild_face,
)
from dice_envs.games.liars_dice.exact.seating import check_rounds
from dice_envs.games.liars_dice.exact.solution import Solution
from dice_envs.games.liars_dice.exact.solver import check_needs, solution_of
from dice_envs.games.liars_dice.raises import (
    MAX_FACES,
    NO_BID,
    count_lowest,
    count_raises,
    face_of,
    lowest_raise,
    nth_lowest,
    quantity_of,
)

from ..base import Checked, Deterministic, OfOneGame, fair_kernel

NO_THRESHOLD = -1.0  # value of the style's `threshold`: call with the probability that the bid fails
_FAINT = 1e-5  # the article's program adds this to each face's count before it draws a bluff


STYLE = np.dtype(
    [
        ("bluff", np.float64),
        ("threshold", np.float64),  # or NO_THRESHOLD
        ("more", np.int64),  # 1: the probability of one more than the bid, as in the article's program
        ("own_faces", np.int64),  # 1: bluffs are drawn in proportion to the bidder's dice, as in the article's program
    ]
)


@kernel(allocates=False)
def _most_held(params, state, counts):
    """Return the face most held of those that may be bid now, of equal ones the lowest, and how many dice count for it."""
    wild = wild_face(params, state)
    best = 0
    most = np.int64(-1)
    for face in range(params.num_faces):
        held = matching(wild, counts, face)
        if held > most and lowest_raise(params, state, face) != NO_BID:
            best = face
            most = held
    return best, most


@kernel(allocates=False)
def _opening(params, state, counts):
    """Return the first bid, as in the article's program: the face most held, and one more than is held of it.

    Always legal, because somebody else has a die.
    """
    face, held = _most_held(params, state, counts)
    return held * params.num_faces + face


@kernel(allocates=False)
def _call_chance(params, state, style):
    """Return the probability of calling the last bid."""
    seat = state["seat"]
    face = face_of(params, state["bid"])
    quantity = quantity_of(params, state["bid"]) + 1 + style["more"]
    unseen = state["in_play"] - state["dice"][seat]
    wild = wild_face(params, state)
    holds = chance_at_least(params, wild, quantity, matching(wild, state["counts"][seat], face), unseen, face)
    if style["threshold"] != NO_THRESHOLD:
        return 1.0 if holds < style["threshold"] else 0.0
    return 1.0 - holds


@kernel(allocates=False)
def _bluff_weight(params, state, style, counts, face):
    """Return a weight in proportion to the probability that a bluff names the face; 0 where no raise can."""
    if lowest_raise(params, state, face) == NO_BID:
        return 0.0
    return matching(wild_face(params, state), counts, face) + _FAINT if style["own_faces"] else 1.0


@kernel(allocates=False)
def _total_weight(params, state, style, counts):
    total = 0.0
    for face in range(params.num_faces):
        total += _bluff_weight(params, state, style, counts, face)
    return total


@kernel(allocates=False)
def _bluff(params, state, style, counts, stream):
    """Return the lowest raise on a random face."""
    if not style["own_faces"]:
        return nth_lowest(params, state, below(stream, count_lowest(params, state)))
    at = uniform(stream) * _total_weight(params, state, style, counts)
    chosen = 0
    for face in range(params.num_faces):
        weight = _bluff_weight(params, state, style, counts, face)
        if weight > 0.0:  # rounding must not choose a face of weight 0
            chosen = face
            at -= weight
            if at < 0.0:
                break
    return lowest_raise(params, state, chosen)


@kernel(allocates=False)
def choose_by_numbers(params, style, state, stream):
    """Return the action of `Numbers`; `style` is its parameters."""
    counts = state["counts"][state["seat"]]
    if state["bid"] == NO_BID:
        return _opening(params, state, counts)
    if count_raises(params, state) == 0 or uniform(stream) < _call_chance(params, state, style):
        return np.int64(params.call)
    if uniform(stream) < style["bluff"]:
        return _bluff(params, state, style, counts, stream)
    return lowest_raise(params, state, _most_held(params, state, counts)[0])


@kernel(allocates=False)
def chance_by_numbers(params, style, state, action):
    """Return the probability of an action of `choose_by_numbers`."""
    counts = state["counts"][state["seat"]]
    if state["bid"] == NO_BID:
        return 1.0 if action == _opening(params, state, counts) else 0.0
    call = 1.0 if count_raises(params, state) == 0 else _call_chance(params, state, style)
    if action >= params.call:
        return call if action == params.call else 0.0
    face = face_of(params, action)
    if action != lowest_raise(params, state, face):
        return 0.0
    bluff = style["bluff"] * _bluff_weight(params, state, style, counts, face) / _total_weight(params, state, style, counts)
    honest = 1.0 - style["bluff"] if face == _most_held(params, state, counts)[0] else 0.0
    return (1.0 - call) * (bluff + honest)


@kernel
def _probabilities(params, states, styles, out):
    """Write the probability of each action of `choose_by_numbers`. In place."""
    for i in range(len(states)):
        state = states[i]
        if state["bid"] == NO_BID:
            out[i, _opening(params, state, state["counts"][state["seat"]])] = 1.0
            continue
        out[i, params.call] = chance_by_numbers(params, styles[0], state, params.call)
        for k in range(count_lowest(params, state)):
            action = nth_lowest(params, state, k)
            out[i, action] = chance_by_numbers(params, styles[0], state, action)


@dataclasses.dataclass(frozen=True)
class Numbers(Checked, OfOneGame, KernelAgent):
    """Calls by the binomial probability that the bid holds, given its own dice; otherwise raises as little as possible.

    It opens with the face it holds most of, one more than it holds, under both presets: the article's program does so, and
    the text does not say how an agent opens. Ties go to the lower face. It makes no exact calls, which the article lacks.
    Source: D. Oehm, "Liar's Dice in R" (2018), section "The agent".

    Attributes:
        bluff: probability that a raise names a random legal face instead of the face most held, 0 to 1.
        threshold: call if the probability that the bid holds is below it, 0 to 1; None: call with the probability that the
            bid fails.
        preset: "text": as the article says; "article": as its program does. Sets the defaults of the next two.
        chance: probability of "at_least" the quantity bid (text), or of "more" (article).
        bluff_faces: "uniform" (text), or "own": in proportion to its own dice (article).
    """

    plays = "liars_dice"
    promises = Promises(memoryless=True)

    bluff: Annotated[float, Range(0, 1)] = 0.0
    threshold: Annotated[float, Range(0, 1)] | None = None
    preset: Literal["text", "article"] = "text"
    chance: Literal["at_least", "more"] | None = None
    bluff_faces: Literal["uniform", "own"] | None = None

    @property
    def style(self) -> np.ndarray:
        """The parameters as kernels read them, () of STYLE."""
        article = self.preset == "article"
        more = (self.chance or ("more" if article else "at_least")) == "more"
        own_faces = (self.bluff_faces or ("own" if article else "uniform")) == "own"
        return np.array((self.bluff, NO_THRESHOLD if self.threshold is None else self.threshold, more, own_faces), STYLE)

    def kernel(self, variant: Variant) -> AgentKernel:
        return fair_kernel(choose_by_numbers, self.style)

    def probabilities(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        out = np.zeros((len(turn), turn.variant.facts.num_actions))
        _probabilities(turn.params, turn.states, self.style[None], out)
        return out


# --- learning from what calls have shown ------------------------------------------------------------------------------


@functools.cache
def _ways(dice: int, faces: int, cap: int) -> int:
    """Count the ordered throws of `dice` dice with `faces` faces in which no face shows more than `cap` times."""
    if faces == 0:
        return int(dice == 0)
    return sum(comb(dice, shown) * _ways(dice - shown, faces - 1, cap) for shown in range(min(dice, cap) + 1))


@functools.cache
def chance_blind(num_faces: int, dice: int) -> float:
    """Return the probability that a random face is the one most held, or tied for it, with this number of dice."""
    hits = sum(comb(dice, k) * _ways(dice - k, num_faces - 1, k) for k in range(dice + 1))
    return hits / num_faces**dice


@functools.cache
def chance_most(num_faces: int) -> np.ndarray:
    """Return P(a face is the one most held | k of n dice show it), (MAX_DICE + 1, MAX_DICE + 1) float64 at [n, k].

    The other n - k dice fall evenly on the other faces; a tie counts as half.
    """
    table = np.zeros((MAX_DICE + 1, MAX_DICE + 1))
    others = num_faces - 1
    for n in range(MAX_DICE + 1):
        for k in range(n + 1):
            fewer = _ways(n - k, others, k - 1) if k > 0 else 0
            table[n, k] = (fewer + _ways(n - k, others, k)) / 2 / others ** (n - k)
    return table


@kernel
def honesty(state, seat, blind):
    """Estimate how often the seat deliberately names the face it holds most of, 0 to 1, from the bids that calls have shown.

    `blind` is the probability that a random face is that face. The prior counts as two bids, one of them deliberate.
    """
    share = (state["bids_honest"][seat] + 1.0 + blind) / (state["bids_shown"][seat] + 2.0)
    return max(0.0, (share - blind) / (1.0 - blind))


@kernel
def _weigh_numbers(n, chance, honest, named, face, faces, most, posterior):
    """Write the weight, prior times likelihood, of each number of a seat's n dice that count for the face. In place.

    Each die counts with probability `chance`; `named` is the face that the seat last named, or -1. Return the sum.
    """
    weight = 0.0
    mass = (1.0 - chance) ** n
    for k in range(n + 1):
        if chance < 1.0:
            likelihood = 1.0
            if named == face:
                likelihood = honest * most[n, k] + (1.0 - honest) / faces
            elif named >= 0:
                likelihood = honest * (1.0 - most[n, k]) / (faces - 1) + (1.0 - honest) / faces
            posterior[k] = mass * likelihood
            mass *= chance / (1.0 - chance) * (n - k) / (k + 1)
        else:
            posterior[k] = 1.0 if k == n else 0.0
        weight += posterior[k]
    return weight


@kernel
def believe(params, state, seat, learn, most, blind, named, total):
    """For each face, write the distribution of the number of the others' dice that count for it: total[face, number].

    Each other seat's number has a binomial prior. The likelihood is that of the face last named by the seat in this round:
    with probability `honesty` the face it holds most of, otherwise any face. `named` is work space. In place.
    """
    faces = params.num_faces
    wild = wild_face(params, state)
    named[:] = -1
    for i in range(state["num_bids"]):
        named[bidder_after(params, state, i)] = face_of(params, state["bids"][i])
    posterior = np.empty(MAX_DICE + 1)
    for face in range(faces):
        chance = (2.0 if wild != NO_WILD and wild != face else 1.0) / faces
        row = total[face]
        row[:] = 0.0
        row[0] = 1.0
        reach = 0
        for other in range(params.num_players):
            n = np.int64(state["dice"][other])
            if other == seat or n == 0:
                continue
            honest = honesty(state, other, blind) if learn else 0.5
            weight = _weigh_numbers(n, chance, honest, named[other], face, faces, most, posterior)
            for number in range(reach + n, -1, -1):  # downwards, because `row` is read below `number`
                summed = 0.0
                for k in range(max(0, number - reach), min(n, number) + 1):
                    summed += posterior[k] / weight * row[number - k]
                row[number] = summed
            reach += n


@kernel
def _at_least(row, need):
    tail = 0.0
    for number in range(max(need, 0), len(row)):
        tail += row[number]
    return tail


READING = np.dtype(
    [
        ("learn", np.int64),
        ("nerve", np.float64),
        ("blind", np.float64),  # see `chance_blind`
        ("most", np.float64, (MAX_DICE + 1, MAX_DICE + 1)),  # see `chance_most`
    ]
)


@kernel
def choose_by_reading(params, reading, state, stream):
    """Return the action of `Reader`; `reading` is its parameters."""
    return choose_surest(params, reading, state, read_bids(params, reading, state))


@kernel
def read_bids(params, reading, state):
    """Return what the seat to move believes of the others' dice: see `believe`."""
    total = np.empty((MAX_FACES, MAX_SEATS * MAX_DICE + 1))  # the others hold at most all dice
    named = np.empty(MAX_SEATS, np.int64)
    believe(params, state, np.int64(state["seat"]), reading["learn"] != 0, reading["most"], reading["blind"], named, total)
    return total


@kernel
def choose_surest(params, reading, state, total):
    """Return the action of a reader that believes `total`, given the own dice of the seat to move."""
    faces = params.num_faces
    counts = state["counts"][state["seat"]]
    wild = wild_face(params, state)
    bid = np.int64(state["bid"])
    if bid == NO_BID:
        best = np.int64(NO_BID)
        highest = 0.0
        for face in range(faces):  # the highest quantity that holds with probability `nerve`; ties go to the surest face
            first = lowest_raise(params, state, face)
            if best == NO_BID:  # in case that no bid is likely enough
                best = first
            own = matching(wild, counts, face)
            for quantity in range(1, np.int64(state["in_play"]) + 1 if first != NO_BID else 0):
                holds = _at_least(total[face], quantity - own)
                if holds >= reading["nerve"] and quantity + holds > highest:
                    highest = quantity + holds
                    best = (quantity - 1) * faces + face
        return best
    best = np.int64(params.call)
    face = face_of(params, bid)
    need = quantity_of(params, bid) + 1 - matching(wild, counts, face)
    surest = 1.0 - _at_least(total[face], need)
    if may_call_exactly(params, state):
        exact = _at_least(total[face], need) - _at_least(total[face], need + 1) if need >= 0 else 0.0
        if exact > surest:
            surest = exact
            best = np.int64(params.call + 1)
    for k in range(count_lowest(params, state)):
        action = nth_lowest(params, state, k)
        face = face_of(params, action)
        holds = _at_least(total[face], quantity_of(params, action) + 1 - matching(wild, counts, face))
        if holds > surest:
            surest = holds
            best = action
    return best


@dataclasses.dataclass(frozen=True)
class Reader(Checked, OfOneGame, KernelAgent, Deterministic):
    """Learns how often each opponent bluffs from the dice that calls have shown, and infers dice from bids.

    In its model an opponent names the face it holds most of with some probability, and otherwise any face. The agent
    estimates this probability from the bids that calls have shown. Bayes' rule then gives the opponent's dice from its
    last bid. Of the lowest raises on each face the agent makes the one most likely to hold, or calls if the bid is more
    likely to fail, or exactly right. It does not bluff.
    Source of the idea: D. Oehm, "Liar's Dice in R" (2018), sections "The agent" and "Bots need brains".

    Attributes:
        learn: false: every opponent is assumed to bluff half the time, whatever calls show.
        nerve: opens with the highest bid that holds with at least this probability, 0 to 1.
    """

    plays = "liars_dice"

    learn: bool = True
    nerve: Annotated[float, Range(0, 1)] = 0.5

    @functools.cached_property
    def promises(self) -> Promises:
        """Whether past rounds make a difference."""
        return Promises(looks_back=self.learn)

    def reading(self, variant: Variant) -> np.ndarray:
        """Return the parameters as kernels read them, () of READING."""
        faces = variant.params.num_faces
        known = chance_blind(faces, variant.params.most_dice), chance_most(faces)
        return np.array((self.learn, self.nerve, *known), READING)

    def kernel(self, variant: Variant) -> AgentKernel:
        return fair_kernel(choose_by_reading, self.reading(variant))


# --- optimal play ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class LiarsDiceNash(Checked, OfOneGame, Drawing):
    """Optimal play for two players: no opponent wins more than the game's value, up to the precision. For more an equilibrium.

    Uses the solution that `solve liars_dice` has kept, or solves the game once: for two players up to three dice each in
    seconds, five in a minute or two. At a table of three or more no seat gains much by leaving the strategies that all play;
    how much, the solver says on standard error, since no theorem promises that it comes below the precision.

    Attributes:
        precision: how much best responses may win above the value, for returns of ±1, mean of both seats; with more players
            what all seats together may gain by leaving the strategies, each alone, in shares of wins.
    """

    plays = "liars_dice"

    precision: Annotated[float, Range(LEAST_PRECISION, 1)] = 1e-3

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or a variant that is not played for a win."""
        super().check_variant(variant)
        check_rounds(variant.options)

    @functools.cached_property
    def promises(self) -> Promises:
        """Past rounds make no difference; its probabilities stand in a solution, which is found before the game begins."""
        return Promises(looks_back=False, solution=self.solution, needs=self._needs, prepare=self.solution)

    def _needs(self, variant: Variant, positions: int) -> None:
        self.check_variant(variant)
        check_needs(variant, self.precision)

    def solution(self, variant: Variant) -> Solution:
        """Return the solution of the variant. ValueError if it is not played for a win, or is too large to be solved."""
        self.check_variant(variant)
        return solution_of(variant.options, self.precision)

    def probabilities(self, turn: Turn) -> np.ndarray:
        return self.solution(turn.variant).probabilities(turn.states)


# --- rollouts -------------------------------------------------------------------------------------------------------


@kernel
def roll_out_numbers(params, state, mask):
    """Liar's Dice: call with the probability that the bid fails; otherwise the lowest raise on a random face.

    Where an exact call is allowed, it comes first, with the probability that it is right.
    """
    raises = count_raises(params, state)
    bid = state["bid"]
    seat = state["seat"]
    if may_call_exactly(params, state) and uniform(state) < chance_bid_exact(params, state, seat):
        return params.call + 1
    if raises == 0 or (bid != NO_BID and uniform(state) >= chance_bid_holds(params, state, seat)):
        return params.call
    return nth_lowest(params, state, below(state, count_lowest(params, state)))
