"""Ways of playing Liar's Dice that `adaptive` can tell apart: how somebody opens, how they raise, and when they call.

An opponent may open as one player does, raise as another and call as a third, and each part may be a mixture of two
players. So a few players make many opponents. All of them state their probabilities; best responses to them are exact.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dice_envs.agent import Turn, Uniform, ask_probabilities
from dice_envs.core.kernel import kernel
from dice_envs.games.liars_dice import NO_BID, is_legal, matching

from .liars_dice import Numbers, Reader, chance_blind

__all__ = [
    "LEVELS",
    "NERVES",
    "PARTS",
    "QUARTERS",
    "Anything",
    "Claims",
    "Composed",
    "Lowest",
    "Reading",
    "Style",
    "Way",
    "split",
]

LEVELS = tuple(step / 10 for step in range(11))  # shares of a mixture that it tells apart
MANY = 30_000  # bids shown, so many that a share of honest ones is as exact as an int16 count can make it


# --- players that no spec names -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Lowest:
    """Makes the lowest bid that is legal, and calls with a fixed chance whatever has been bid.

    Attributes:
        call: the chance, 0 to 1; it must call where no bid is left.
    """

    memoryless: ClassVar[bool] = True

    call: float = 0.0

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        rows, calls = np.arange(len(turn)), turn.params.call
        bids = turn.legal[:, :calls]
        may_call, may_bid = turn.legal[:, calls] > 0, bids.any(axis=1)
        out = np.zeros(turn.legal.shape)
        out[:, calls] = np.where(may_bid, self.call * may_call, 1.0)
        out[rows, bids.argmax(axis=1)] += 1.0 - out[:, calls]
        return out


@kernel
def _claims(params, states, more, out):
    """Write the bid that `Claims` would make, or NO_BID where it is not legal. In place."""
    for i in range(len(states)):
        state = states[i]
        counts = state["counts"][state["seat"]]
        most = 0
        for face in range(1, params.num_faces):
            if matching(params, counts, face) > matching(params, counts, most):
                most = face
        quantity = min(max(matching(params, counts, most) + more, 1), np.int64(state["in_play"]))
        action = (quantity - 1) * params.num_faces + most
        out[i] = action if is_legal(params, state, action) else NO_BID


@dataclasses.dataclass(frozen=True)
class Claims:
    """Bids so many more dice than it has of the face that it has most of; where that is too low, as `numbers` raises.

    It never calls, unless no bid is left.
    """

    memoryless: ClassVar[bool] = True

    more: int = 1

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        bids = np.empty(len(turn), np.int64)
        _claims(turn.params, turn.states, self.more, bids)
        _, others = split(Numbers(), turn)
        out = np.zeros(turn.legal.shape)
        out[:, :-1] = others
        claimed = np.flatnonzero(bids != NO_BID)
        out[claimed] = 0
        out[claimed, bids[claimed]] = 1
        out[:, -1] = ~out.any(axis=1)
        return out


@dataclasses.dataclass(frozen=True)
class Anything(Uniform):
    """Any legal action, evenly."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """`reader` while what it believes of its opponent stays as it is.

    Attributes:
        honest: how often, it believes, the other one deliberately names the face that it holds most of, 0 to 1.
    """

    honest: float = 0.5

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
        states = turn.states.copy()
        blind = chance_blind(turn.params.num_faces, turn.params.most_dice)
        states["bids_shown"][:, :2] = MANY
        states["bids_honest"][:, :2] = round(MANY * (blind + self.honest * (1 - blind)))
        return Reader().probabilities(Turn(turn.variant, states, np.arange(len(states)), turn.streams))


# --- mixtures, and an opponent made of three parts ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Way:
    """How somebody opens, raises or calls: as one player does, or with a chance as another.

    Attributes:
        first, second: agents that state their probabilities.
        share: the chance that a decision is made as `second` makes it.
    """

    first: Any
    second: Any = None
    share: float = 0.0

    @property
    def agents(self) -> tuple[Any, ...]:
        """Those whose decisions they are."""
        return (self.first,) if self.second is None or self.share == 0 else (self.first, self.second)

    def split(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """The chance of a call, (n,) float64, and that of each bid if it does not call, (n, bids) float64."""
        call, bids = split(self.first, turn)
        if len(self.agents) == 1:
            return call, bids
        other_call, other_bids = split(self.second, turn)
        return call + self.share * (other_call - call), bids + self.share * (other_bids - bids)


def split(agent: Any, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
    """The chance that an agent calls, (n,) float64, and of each bid if it does not call, (n, bids) float64.

    Where it surely calls it does not say what it would bid: anything legal, then. Zeros where no bid is left.
    """
    chances = ask_probabilities(agent, turn)
    call, bids = chances[:, turn.params.call], chances[:, : turn.params.call]
    total = bids.sum(axis=1, keepdims=True)
    legal = turn.legal[:, : turn.params.call]
    anything = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    return call, np.where(total > 0, bids / np.where(total > 0, total, 1), anything)


@dataclasses.dataclass(frozen=True)
class Composed:
    """Opens, raises and calls as different players do."""

    opening: Way
    raising: Way
    calling: Way

    @property
    def memoryless(self) -> bool:
        ways = (self.raising, self.calling)  # whoever opens has no bids behind it
        return all(getattr(agent, "memoryless", False) for way in ways for agent in way.agents)

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The chance of each action, (n, num_actions) float64."""
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


# --- the family -----------------------------------------------------------------------------------------------------------


class Style(NamedTuple):
    """Players that mix two in any shares, or one player."""

    first: Any
    second: Any = None
    answered: tuple[float, ...] = (0.0,)  # shares of the second to which there are best responses; the nearest is played

    @property
    def levels(self) -> tuple[float, ...]:
        """The shares that are told apart."""
        return LEVELS if self.second is not None else (0.0,)


QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
NERVES = (0.25, 0.5, 0.75)
THRESHOLDS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)

# The first of each tells how `numbers` plays, by the article's text. The openings of `reader` come last, and so do its raises
# and calls. Those hang together, and a best response to them mixed with others takes minutes: they are known as a whole.
OPENINGS = (
    Style(Claims(1), Anything(), (0.0, 0.5, 1.0)),
    Style(Claims(0)),
    Style(Claims(2)),
    Style(Lowest()),
    *(Style(Reader(nerve=nerve)) for nerve in NERVES),
)
RAISES = (
    Style(Numbers(), Numbers(bluff=1.0), (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)),
    # Where its calls give it away, as those of the article's program do, the share of bluffs hardly matters.
    Style(Numbers(preset="article"), Numbers(bluff=1.0, preset="article"), (0.5,)),
    Style(Claims(1)),
    Style(Claims(2)),
    Style(Lowest()),
    Style(Reader()),
)
CALLS = (
    Style(Numbers()),
    Style(Numbers(preset="article")),
    *(Style(Numbers(threshold=threshold)) for threshold in THRESHOLDS),
    Style(Lowest(call=0.0), Lowest(call=1.0), QUARTERS),
    Style(Reader()),
)
PARTS = (OPENINGS, RAISES, CALLS)
