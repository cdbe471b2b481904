"""Players of Liar's Dice that play the numbers: binomial chances, and a bluff now and then."""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple

import numpy as np

from dice_envs.agent import Turn
from dice_envs.dice import uniform
from dice_envs.game import check_choice, check_range
from dice_envs.games.liars_dice import (
    MAX_FACES,
    NO_BID,
    chance_at_least,
    count_raises,
    face_of,
    matching,
    nth_raise,
    quantity_of,
)
from dice_envs.kernel import kernel

__all__ = ["AGENTS", "Numbers"]

NO_THRESHOLD = -1.0  # value of `_Style.threshold`: call with the chance that the bid fails
_FAINT = 1e-5  # what the article's program adds to each face's count before it draws a bluff


class _Style(NamedTuple):
    """What the kernels receive."""

    bluff: float
    threshold: float
    more: int  # 1: the chance of one more than the bid, as the article's program has it
    own_faces: bool  # bluffs are drawn in proportion to the own dice, likewise


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
        # One more than it holds itself; it cannot exceed the dice in play, since somebody else has one.
        actions[0] = matching(params, counts, best) * faces + best
        chances[0] = 1.0
        return 1
    raises = 0  # the first legal bids, up to where a face comes again, are the least on each legal face
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
        at = uniform(states[i])
        chosen = count - 1
        for k in range(count):
            at -= chances[k]
            if at < 0:
                chosen = k
                break
        while chances[chosen] == 0.0:  # rounding must not choose what has no chance
            chosen -= 1
        out[i] = actions[chosen]


@kernel
def _probabilities(params, states, style, out):
    actions = np.empty(MAX_FACES + 1, np.int64)
    chances = np.empty(MAX_FACES + 1)
    for i in range(len(states)):
        for k in range(_options(params, states[i], style, actions, chances)):
            out[i, actions[k]] += chances[k]


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Calls by the binomial chance that the bid holds, given its own dice; otherwise raises as little as it can.

    It opens with the face it holds most of and one more than it holds. Ties go to the lower face.
    Source: D. Oehm, "Liar's Dice in R" (2018), section "The agent".

    Attributes:
        bluff: chance that a raise names a random legal face and not the one it holds most of, 0 to 1.
        threshold: call if the chance that the bid holds is below it, 0 to 1; None: call with the chance that it
            does not hold.
        preset: "text": as the article says; "article": as its program does, which differs in the next two.
        chance: "at_least" the quantity bid (text), or "more" than it (article).
        bluff_faces: "uniform" (text), or "own": in proportion to its own dice (article).
    """

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
        _check_game(turn)
        out = np.empty(len(turn), np.int64)
        _act(turn.params, turn.states, self._style, out)
        return out

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        _check_game(turn)
        out = np.zeros((len(turn), turn.variant.facts.num_actions))
        _probabilities(turn.params, turn.states, self._style, out)
        return out


def _check_game(turn: Turn) -> None:
    if turn.game.name != "liars_dice":
        raise ValueError(f"numbers plays liars_dice only, not {turn.game.name}")


AGENTS = {"numbers": Numbers}
