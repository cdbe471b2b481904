"""Simple players of Liar's Dice, and opponents composed of several: how they open, raise and call.

An opponent may open like one player, raise like another and call like a third, and each part may mix two players, so a few
players make many opponents. All state their probabilities; best responses to them are exact.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from dice_envs.agent import Promises, Turn, Uniform, ask_probabilities, promises_of
from dice_envs.core.kernel import kernel
from dice_envs.games.liars_dice import is_legal, matching, wild_face
from dice_envs.games.liars_dice.raises import NO_BID

from ..liars_dice import Numbers, Reader, chance_blind

_MANY = 30_000  # bids shown: a share of them is as exact as an int16 count allows


@dataclasses.dataclass(frozen=True)
class Lowest:
    """Makes the lowest legal bid, and calls with a fixed probability whatever has been bid.

    Attributes:
        call: this probability, 0 to 1; 1 where no bid is left.
    """

    promises = Promises(memoryless=True)

    call: float = 0.0

    def probabilities(self, turn: Turn) -> np.ndarray:
        rows, calls = np.arange(len(turn)), turn.params.call
        bids = turn.legal[:, :calls]
        may_call, may_bid = turn.legal[:, calls] > 0, bids.any(axis=1)
        out = np.zeros(turn.legal.shape)
        out[:, calls] = np.where(may_bid, self.call * may_call, 1.0)
        out[rows, bids.argmax(axis=1)] += 1.0 - out[:, calls]
        return out


@kernel
def _claims(params, states, more, out):
    """Write the claim of `Claims`, or NO_BID where it is not legal. In place."""
    for i in range(len(states)):
        state = states[i]
        counts = state["counts"][state["seat"]]
        wild = wild_face(params, state)
        most = 0
        for face in range(1, params.num_faces):
            if matching(wild, counts, face) > matching(wild, counts, most):
                most = face
        quantity = min(max(matching(wild, counts, most) + more, 1), np.int64(state["in_play"]))
        action = (quantity - 1) * params.num_faces + most
        out[i] = action if is_legal(params, state, action) else NO_BID


@dataclasses.dataclass(frozen=True)
class Claims:
    """Bids a fixed number of dice more than it holds of the face most held; where that is no raise, bids like `numbers`.

    Calls only where no bid is left.

    Attributes:
        more: this number.
    """

    promises = Promises(memoryless=True)

    more: int = 1

    def probabilities(self, turn: Turn) -> np.ndarray:
        bids = np.empty(len(turn), np.int64)
        _claims(turn.params, turn.states, self.more, bids)
        _, others = _split(Numbers(), turn)
        out = np.zeros(turn.legal.shape)
        out[:, :-1] = others
        claimed = np.flatnonzero(bids != NO_BID)
        out[claimed] = 0
        out[claimed, bids[claimed]] = 1
        out[:, -1] = ~out.any(axis=1)
        return out


@dataclasses.dataclass(frozen=True)
class Anything(Uniform):
    """Plays a uniformly random legal action."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """`reader` with a fixed opinion of its opponent.

    Attributes:
        honest: how often it takes the opponent to name the face most held deliberately, 0 to 1.
    """

    honest: float = 0.5

    def probabilities(self, turn: Turn) -> np.ndarray:
        states = turn.states.copy()
        blind = chance_blind(turn.params.num_faces, turn.params.most_dice)
        states["bids_shown"][:, :2] = _MANY
        states["bids_honest"][:, :2] = round(_MANY * (blind + self.honest * (1 - blind)))
        return Reader().probabilities(Turn(turn.variant, states, np.arange(len(states)), turn.streams))


@dataclasses.dataclass(frozen=True)
class Way:
    """How a player opens, raises or calls: like one agent, or a mixture of two.

    Attributes:
        first, second: agents that state their probabilities.
        share: the probability that a decision is made like `second`.
    """

    first: Any
    second: Any = None
    share: float = 0.0

    @property
    def agents(self) -> tuple[Any, ...]:
        """The agents that have a share."""
        return (self.first,) if self.second is None or self.share == 0 else (self.first, self.second)

    def split(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability of a call, (n,) float64, and of each bid given no call, (n, bids) float64."""
        call, bids = _split(self.first, turn)
        if len(self.agents) == 1:
            return call, bids
        other_call, other_bids = _split(self.second, turn)
        return call + self.share * (other_call - call), bids + self.share * (other_bids - bids)


def _split(agent: Any, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
    """Return an agent's probability of a call, (n,) float64, and of each bid given no call, (n, bids) float64.

    Where the agent always calls, bids are uniform over the legal ones. Zeros where no bid is left.
    """
    chances = ask_probabilities(agent, turn)
    call, bids = chances[:, turn.params.call], chances[:, : turn.params.call]
    total = bids.sum(axis=1, keepdims=True)
    legal = turn.legal[:, : turn.params.call]
    anything = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    return call, np.where(total > 0, bids / np.where(total > 0, total, 1), anything)


@dataclasses.dataclass(frozen=True)
class Composed:
    """Opens, raises and calls like different players."""

    opening: Way
    raising: Way
    calling: Way

    @functools.cached_property
    def promises(self) -> Promises:
        """It is memoryless if those are that it raises and calls like: no bids come before an opening."""
        ways = (self.raising, self.calling)
        return Promises(memoryless=all(promises_of(agent).memoryless for way in ways for agent in way.agents))

    def probabilities(self, turn: Turn) -> np.ndarray:
        rows, states = np.arange(len(turn)), turn.states
        opens = states["bid"] == NO_BID
        out = np.zeros((len(turn), turn.variant.facts.num_actions))
        for which, way in ((rows[opens], self.opening), (rows[~opens], self.raising)):
            if len(which):
                part = Turn(turn.variant, states, which, turn.streams[which])
                out[which, :-1] = way.split(part)[1]
        later = rows[~opens]
        if len(later):
            part = Turn(turn.variant, states, later, turn.streams[later])
            call = np.where(part.legal[:, :-1].any(axis=1), self.calling.split(part)[0], 1.0)
            out[later, :-1] *= (1.0 - call)[:, None]
            out[later, -1] = call
        return out
