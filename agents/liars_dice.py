"""Players of Liar's Dice: one plays the odds and bluffs now and then, one learns from what calls have shown."""

from __future__ import annotations

import dataclasses
import functools
import sys
from math import comb
from typing import Any, Literal, NamedTuple

import numpy as np

from dice_envs.agent import Turn, draw_actions
from dice_envs.dice import below, choose_weighted, uniform
from dice_envs.exact.liars_dice_solution import (
    LEAST_PRECISION,
    ActionValues,
    Progress,
    Solution,
    check_two_players,
    solve,
    throttled,
)
from dice_envs.game import Variant, check_choice, check_range
from dice_envs.games.liars_dice import (
    MAX_DICE,
    MAX_FACES,
    MAX_SEATS,
    NO_BID,
    NO_WILD,
    bidder_after,
    chance_at_least,
    chance_bid_holds,
    count_raises,
    face_of,
    matching,
    nth_raise,
    quantity_of,
)
from dice_envs.kernel import kernel

from .base import Deterministic, OfOneGame

__all__ = ["AGENTS", "ROLLOUTS", "Nash", "Numbers", "Reader", "believe", "chance_blind", "chance_most"]

NO_THRESHOLD = -1.0  # value of `_Style.threshold`: call with the chance that the bid fails
_FAINT = 1e-5  # what the article's program adds to each face's count before it draws a bluff


class _Style(NamedTuple):
    """What the kernels receive."""

    bluff: float
    threshold: float
    more: int  # 1: the chance of one more than the bid, as the article's program has it
    own_faces: bool  # bluffs are drawn in proportion to the bidder's dice, as the article's program has it


@kernel
def _options(params, state, style, actions, chances):
    """Write the moves considered and their chances into rows of MAX_FACES + 1; returns how many. In place."""
    seat = state["seat"]
    counts = state["counts"][seat]
    faces = params.num_faces
    bid = state["bid"]
    if bid == NO_BID:
        best = 0
        for face in range(1, faces):
            if matching(params, counts, face) > matching(params, counts, best):
                best = face
        # One more than it holds. That cannot exceed the dice in play, since somebody else has a die.
        actions[0] = matching(params, counts, best) * faces + best
        chances[0] = 1.0
        return 1
    raises = 0  # the first legal bids, until a face repeats, are the lowest bid on each legal face
    for k in range(min(count_raises(params, state), faces)):
        actions[k] = nth_raise(params, state, k)
        if k > 0 and face_of(params, actions[k]) == face_of(params, actions[0]):
            break
        raises += 1
    actions[raises] = params.call
    if raises == 0:
        chances[0] = 1.0
        return 1
    face = face_of(params, bid)
    unseen = state["in_play"] - state["dice"][seat]
    holds = chance_at_least(params, quantity_of(params, bid) + 1 + style.more, matching(params, counts, face), unseen, face)
    call = 1.0 - holds
    if style.threshold != NO_THRESHOLD:
        call = 1.0 if holds < style.threshold else 0.0
    chances[raises] = call
    best = 0
    total = 0.0
    for k in range(raises):
        face = face_of(params, actions[k])
        held = matching(params, counts, face)
        most = matching(params, counts, face_of(params, actions[best]))
        if held > most or (held == most and face < face_of(params, actions[best])):
            best = k
        chances[k] = held + _FAINT if style.own_faces else 1.0
        total += chances[k]
    for k in range(raises):
        chances[k] *= (1.0 - call) * style.bluff / total
    chances[best] += (1.0 - call) * (1.0 - style.bluff)
    return raises + 1


@kernel
def _act(params, states, style, out):
    actions = np.empty(MAX_FACES + 1, np.int64)
    chances = np.empty(MAX_FACES + 1)
    for i in range(len(states)):
        count = _options(params, states[i], style, actions, chances)
        out[i] = actions[choose_weighted(states[i], chances, count)]


@kernel
def _probabilities(params, states, style, out):
    actions = np.empty(MAX_FACES + 1, np.int64)
    chances = np.empty(MAX_FACES + 1)
    for i in range(len(states)):
        for k in range(_options(params, states[i], style, actions, chances)):
            out[i, actions[k]] += chances[k]


@dataclasses.dataclass(frozen=True)
class Numbers(OfOneGame):
    """Calls by the binomial chance that the bid holds, given its own dice; otherwise raises as little as it can.

    It opens with the face it holds most of and one more than it holds. Ties go to the lower face.
    Source: D. Oehm, "Liar's Dice in R" (2018), section "The agent".

    Attributes:
        bluff: chance that a raise names a random legal face and not the one it holds most of, 0 to 1.
        threshold: call if the chance that the bid holds is below it, 0 to 1; None: call with the chance that it
            does not hold.
        preset: "text": as the article says; "article": as its program does. It sets the defaults of the next two.
        chance: "at_least" the quantity bid (text), or "more" than it (article).
        bluff_faces: "uniform" (text), or "own": in proportion to its own dice (article).
    """

    plays = "liars_dice"
    memoryless = True

    bluff: float = 0.0
    threshold: float | None = None
    preset: Literal["text", "article"] = "text"
    chance: Literal["at_least", "more"] | None = None
    bluff_faces: Literal["uniform", "own"] | None = None

    def __post_init__(self) -> None:
        check_range("bluff", self.bluff, 0, 1, whole=False)
        if self.threshold is not None:
            check_range("threshold", self.threshold, 0, 1, whole=False)
        check_choice("preset", self.preset, ("text", "article"))
        check_choice("chance", self.chance, (None, "at_least", "more"))
        check_choice("bluff_faces", self.bluff_faces, (None, "uniform", "own"))

    @property
    def _style(self) -> _Style:
        article = self.preset == "article"
        return _Style(
            bluff=float(self.bluff),
            threshold=NO_THRESHOLD if self.threshold is None else float(self.threshold),
            more=int((self.chance or ("more" if article else "at_least")) == "more"),
            own_faces=(self.bluff_faces or ("own" if article else "uniform")) == "own",
        )

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64."""
        self.check(turn)
        out = np.empty(len(turn), np.int64)
        _act(turn.params, turn.states, self._style, out)
        return out

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        self.check(turn)
        out = np.zeros((len(turn), turn.variant.facts.num_actions))
        _probabilities(turn.params, turn.states, self._style, out)
        return out


# --- learning from what calls have shown ------------------------------------------------------------------------------


@functools.cache
def _ways(dice: int, faces: int, cap: int) -> int:
    """Ordered throws of `dice` dice on `faces` faces in which no face shows more than `cap` times."""
    if faces == 0:
        return int(dice == 0)
    return sum(comb(dice, shown) * _ways(dice - shown, faces - 1, cap) for shown in range(min(dice, cap) + 1))


@functools.cache
def chance_blind(num_faces: int, dice: int) -> float:
    """The chance that a face named at random is the one most held, or tied for it, with this many dice."""
    hits = sum(comb(dice, k) * _ways(dice - k, num_faces - 1, k) for k in range(dice + 1))
    return hits / num_faces**dice


@functools.cache
def chance_most(num_faces: int) -> np.ndarray:
    """P(a face is the one most held | k of n dice show it), (MAX_DICE + 1, MAX_DICE + 1) float64 at [n, k].

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
def _honesty(state, seat, blind):
    """How often the seat deliberately names the face it holds most of, 0 to 1, from the bids that calls have shown.

    `blind` is how often a random face would be that face too. The prior counts as two bids, one of them deliberate.
    """
    share = (state["bids_honest"][seat] + 1.0 + blind) / (state["bids_shown"][seat] + 2.0)
    return max(0.0, (share - blind) / (1.0 - blind))


@kernel
def believe(params, state, seat, learn, most, blind, named, total):
    """For each face, write the distribution of the number of the others' dice that count for it: total[face, number].

    Each other seat's number has a binomial prior. The likelihood is that of the face it last named in this round: with
    probability `_honesty` the face it holds most of, otherwise any face. `named` is work space. In place.
    """
    faces = params.num_faces
    named[:] = -1
    for i in range(state["num_bids"]):
        named[bidder_after(params, state, i)] = face_of(params, state["bids"][i])
    posterior = np.empty(MAX_DICE + 1)
    for face in range(faces):
        chance = (1.0 if params.wild == NO_WILD or params.wild == face else 2.0) / faces
        row = total[face]
        row[:] = 0.0
        row[0] = 1.0
        reach = 0
        for other in range(params.num_players):
            n = np.int64(state["dice"][other])
            if other == seat or n == 0:
                continue
            weight = 0.0
            mass = (1.0 - chance) ** n
            honest = _honesty(state, other, blind) if learn else 0.5
            for k in range(n + 1):
                if chance < 1.0:
                    likelihood = 1.0
                    if named[other] == face:
                        likelihood = honest * most[n, k] + (1.0 - honest) / faces
                    elif named[other] >= 0:
                        likelihood = honest * (1.0 - most[n, k]) / (faces - 1) + (1.0 - honest) / faces
                    posterior[k] = mass * likelihood
                    mass *= chance / (1.0 - chance) * (n - k) / (k + 1)
                else:
                    posterior[k] = 1.0 if k == n else 0.0
                weight += posterior[k]
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


@kernel
def _act_reader(params, states, learn, nerve, most, blind, out):
    named = np.empty(MAX_SEATS, np.int64)
    total = np.empty((MAX_FACES, MAX_SEATS * MAX_DICE + 1))
    for i in range(len(states)):
        state = states[i]
        seat = np.int64(state["seat"])
        faces = params.num_faces
        counts = state["counts"][seat]
        believe(params, state, seat, learn, most, blind, named, total)
        bid = np.int64(state["bid"])
        best = np.int64(params.call)
        if bid == NO_BID:
            highest = 0.0
            for face in range(faces):  # the greatest quantity that holds with chance `nerve`; of equal ones the surest face
                own = matching(params, counts, face)
                for quantity in range(1, np.int64(state["in_play"]) + 1):
                    holds = _at_least(total[face], quantity - own)
                    if holds >= nerve and quantity + holds > highest:
                        highest = quantity + holds
                        best = (quantity - 1) * faces + face
            out[i] = best if best != params.call else 0
            continue
        face = face_of(params, bid)
        surest = 1.0 - _at_least(total[face], quantity_of(params, bid) + 1 - matching(params, counts, face))
        for k in range(min(count_raises(params, state), faces)):
            action = nth_raise(params, state, k)
            face = face_of(params, action)
            holds = _at_least(total[face], quantity_of(params, action) + 1 - matching(params, counts, face))
            if holds > surest:
                surest = holds
                best = action
        out[i] = best


@dataclasses.dataclass(frozen=True)
class Reader(OfOneGame, Deterministic):
    """Learns how often each opponent bluffs from the dice that calls have shown, and infers dice from its bids.

    In its model an opponent names the face it holds most of with some probability, and otherwise any face. The agent
    estimates this probability from the bids that calls have shown. Bayes' rule then gives the opponent's dice from its
    last bid. The agent compares the lowest raises on each face: it makes the one that is most likely to hold, or calls
    if the bid is more likely to fail. It does not bluff.
    Source of the idea: D. Oehm, "Liar's Dice in R" (2018), sections "The agent" and "Bots need brains".

    Attributes:
        learn: false: every opponent is assumed to bluff half the time, whatever calls show.
        nerve: it opens with the highest bid that holds with at least this chance, 0 to 1.
    """

    plays = "liars_dice"

    learn: bool = True
    nerve: float = 0.5

    def __post_init__(self) -> None:
        check_choice("learn", self.learn, (True, False))
        check_range("nerve", self.nerve, 0, 1, whole=False)

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64."""
        self.check(turn)
        out = np.empty(len(turn), np.int64)
        most = chance_most(turn.params.num_faces)
        blind = chance_blind(turn.params.num_faces, turn.params.most_dice)
        _act_reader(turn.params, turn.states, self.learn, float(self.nerve), most, blind, out)
        return out


# --- optimal play ------------------------------------------------------------------------------------------------------

_SAY_EVERY = 5.0  # seconds between two lines of progress


@functools.lru_cache(maxsize=4)
def _solution(variant: Variant, precision: float) -> Solution:
    """The solution that is kept, or solved first with lines of progress on standard error."""

    def say(progress: Progress) -> None:
        own, others = progress.dice
        print(
            f"nash: solving {own} against {others} dice, {progress.iterations} iterations, off by {progress.width:.1e} "
            f"at most, {progress.rounds_left} rounds left",
            file=sys.stderr,
            flush=True,
        )

    return solve(variant, precision, resume=True, done=throttled(say, _SAY_EVERY))


@dataclasses.dataclass(frozen=True)
class Nash(OfOneGame):
    """Optimal play for two players: nobody wins more from it than the game's value, but for the precision.

    It takes the solution that `solve liars_dice` has kept, or solves the game first: up to three dice each in seconds,
    five in a minute or two, once.

    Attributes:
        precision: how much best responses may win from it above the value, for returns of ±1, mean of both seats.
    """

    plays = "liars_dice"

    precision: float = 1e-3

    def __post_init__(self) -> None:
        check_range("precision", self.precision, LEAST_PRECISION, 1, whole=False)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or a variant without a value."""
        super().check_variant(variant)
        check_two_players(variant.options)

    def solution(self, variant: Variant) -> Solution:
        """What it plays by.

        Raises:
            ValueError: the variant has no value, or is too large to be solved.
        """
        self.check_variant(variant)
        return _solution(variant, self.precision)

    def action_values(self, variant: Variant, state: Any) -> ActionValues:
        """What each action at a state wins against optimal play, and how likely optimal play takes it."""
        return self.solution(variant).action_values(state)

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64."""
        return draw_actions(turn.streams, self.probabilities(turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        return self.solution(turn.variant).probabilities(turn.states)


# --- rollouts -------------------------------------------------------------------------------------------------------


@kernel
def _roll_out_numbers(params, state, mask):
    """Liar's Dice: call with the chance that the bid fails, else the lowest raise on a random face."""
    raises = count_raises(params, state)
    bid = state["bid"]
    if raises == 0 or (bid != NO_BID and uniform(state) >= chance_bid_holds(params, state, state["seat"])):
        return params.call
    least = 1  # number of lowest raises, one on each legal face: until a face repeats
    first = face_of(params, nth_raise(params, state, 0))
    while least < raises and face_of(params, nth_raise(params, state, least)) != first:
        least += 1
    return nth_raise(params, state, below(state, least))


AGENTS = {"numbers": Numbers, "reader": Reader}
ROLLOUTS = {"numbers": _roll_out_numbers}
