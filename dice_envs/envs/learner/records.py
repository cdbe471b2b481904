"""Records of a learner's games: what lasts from turn to turn, what to do in a turn, and what it gives."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np

from dice_envs.core.game import Variant

LEARNER = -1  # the learner's number in arrays that list the player of each seat

Array = TypeVar("Array")  # NumPy's or PyTorch's


class Start(NamedTuple):
    """How new games begin."""

    fixed_seat: int  # the learner's; negative: drawn
    # (seats,) int64, the number of the agent at each place after the learner's; LEARNER at the first, its own.
    places: np.ndarray
    weights: np.ndarray  # probability of each agent of a pool, (agents,) float64, drawn for each place; empty without a pool
    self_play: float  # probability that the learner has every seat
    before: np.ndarray  # (seats,) int64, work space


class Seating(NamedTuple):
    """n games, and who plays them."""

    states: np.ndarray  # (n,) of the game's states
    streams: np.ndarray  # (n,) `dice_envs.core.dice.STREAM`, for the opponents' draws
    memories: np.ndarray  # (n, seats, bytes) uint8, what the agent at each place after the learner's remembers
    learners: np.ndarray  # (n,) int64, the learner's seat; where it has all, the one that is to move or moved last
    players: np.ndarray  # (n, seats) int64, the number of the agent at each seat, or LEARNER
    shared: np.ndarray  # (n,) bool, whether the learner has every seat
    earned: np.ndarray  # (n, seats) float64, each seat's rewards since the learner's last turn
    returns: np.ndarray  # (n, seats) float64, each seat's rewards from the start of its game to the learner's last turn
    lengths: np.ndarray  # (n,) int64, the learner's turns in its game so far; -1 before the first game


class Orders(NamedTuple):
    """What to do in n games.

    Attributes:
        actions: (n,) int64, where one is to be played.
        todo: (n,) int8, one of the codes of `turn`, which changes it.
        restart: whether games that end begin again at once.
        most: turns of the learner after which a game that goes on begins again, too, if `restart`.
        arranged: whether new games stop at their deal, for Python to arrange them. Others that end before the learner's first
            turn, in which it decides nothing, are dealt again.
    """

    actions: np.ndarray
    todo: np.ndarray
    restart: bool
    most: int
    arranged: bool


class Shown(NamedTuple, Generic[Array]):
    """The learner's view of n games."""

    observations: Array  # (n, size) float32
    masks: Array  # (n, actions) int8, the legal actions; all 1 where its game has ended, so that a masked softmax has no NaN


class Step(NamedTuple, Generic[Array]):
    """Result of a learner's turn in n games. In those that begin `earned` and `lengths` are 0.

    Attributes:
        earned: (n, seats) float64, each seat's rewards up to the learner's next turn.
        ended: (n,) bool, whether the learner's game has ended.
        lengths: (n,) int64, the learner's turns in that game so far.
        learners: (n,) int64, the learner's seat in a game that has ended or begins again; with every seat, the one that moved
            last.
        players: (n, seats) int64, who had each seat in it.
        returns: (n, seats) float64, each seat's rewards in it. These three say nothing of games that go on.
        out: (n, seats) int8, 1 where the game is over now for a seat though others may play on.
        shown: the games as the learners see them now.
        finals: games that have begun again, as the learners saw them last. Rows of other games mean nothing, and the next step
            overwrites them; may have no rows.
    """

    earned: Array
    ended: Array
    learners: Array
    players: Array
    returns: Array
    lengths: Array
    out: Array
    shown: Shown[Array]
    finals: Shown[Array]


def room_for(variant: Variant, count: int) -> Shown[np.ndarray]:
    """Return empty arrays for the learner's view of `count` games."""
    facts = variant.facts
    return Shown(np.empty((count, facts.observation_size), np.float32), np.empty((count, facts.num_actions), np.int8))


def empty_step(variant: Variant, count: int) -> Step[np.ndarray]:
    """Return empty arrays for the step of `count` games, without finals."""
    seats = variant.facts.num_seats
    return Step(
        earned=np.empty((count, seats)),
        ended=np.empty(count, bool),
        learners=np.empty(count, np.int64),
        players=np.empty((count, seats), np.int64),
        returns=np.empty((count, seats)),
        lengths=np.empty(count, np.int64),
        out=np.empty((count, seats), np.int8),
        shown=room_for(variant, count),
        finals=room_for(variant, 0),
    )
