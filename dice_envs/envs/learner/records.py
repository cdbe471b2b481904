"""Records of a learner's games: the players at the seats, and the result of a turn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dice_envs.core.dice import below, choose_weighted, uniform
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel

__all__ = ["LEARNER", "Finals", "Seats", "Shown", "Start", "Step", "first_rows", "room_for", "seat_players"]

LEARNER = -1  # the learner's number in arrays that list the player of each seat


class Start(NamedTuple):
    """How the players of a game are drawn.

    Attributes:
        num_seats: of the game.
        fixed_seat: the learner's; negative: drawn.
        several: whether each place after the learner's has its own agent.
        weights: probability of each agent of a pool, (agents,) float64; empty without a pool.
        self_play: probability that the learner has every seat.
    """

    num_seats: int
    fixed_seat: int
    several: bool
    weights: np.ndarray
    self_play: float


class Seats(NamedTuple):
    """The players of n games and their rewards.

    Attributes:
        learners: (n,) int64, the learner's seat.
        players: (n, seats) int64, the number of the agent at each seat, or LEARNER.
        shared: (n,) bool, whether the learner has every seat.
        earned: (n, seats) float64, each seat's rewards since the learner's last turn.
        returns: (n, seats) float64, each seat's rewards from the start of its game to the learner's last turn.
    """

    learners: np.ndarray
    players: np.ndarray
    shared: np.ndarray
    earned: np.ndarray
    returns: np.ndarray


@kernel(allocates=False)
def seat_players(state, start, seats, i):
    """Draw the players of game i, whose state this is. Modified in place."""
    learner = below(state, start.num_seats) if start.fixed_seat < 0 else np.int64(start.fixed_seat)
    seats.learners[i] = learner
    for seat in range(start.num_seats):
        if seat == learner:
            seats.players[i, seat] = LEARNER
        elif len(start.weights) > 0:
            seats.players[i, seat] = choose_weighted(state, start.weights, len(start.weights))
        elif start.several:
            seats.players[i, seat] = (seat - learner) % start.num_seats - 1
        else:
            seats.players[i, seat] = 0
    if start.self_play > 0.0:
        seats.shared[i] = uniform(state) < start.self_play
        if seats.shared[i]:
            for seat in range(start.num_seats):
                seats.players[i, seat] = LEARNER


class Shown(NamedTuple):
    """The learner's view of m games.

    Attributes:
        observations: (m, size) float32.
        masks: (m, actions) int8, the legal actions; all 1 where its game has ended, so that a masked softmax has no NaN.
    """

    observations: np.ndarray
    masks: np.ndarray


class Finals(NamedTuple):
    """Ended games as they stood at their end.

    Attributes:
        games: (m,) int64, their numbers.
        learners: (m,) int64.
        players: (m, seats) int64.
        returns: (m, seats) float64.
        shown: one row per ended game.
    """

    games: np.ndarray
    learners: np.ndarray
    players: np.ndarray
    returns: np.ndarray
    shown: Shown


class Step(NamedTuple):
    """Result of a learner's turn in m games.

    Attributes:
        earned: (m, seats) float64, each seat's rewards up to the learner's next turn.
        ended: (m,) bool, whether the learner's game has ended.
        shown: the games as the learners see them now.
        finals: ended games that have been dealt again, as they stood before.
    """

    earned: np.ndarray
    ended: np.ndarray
    shown: Shown
    finals: Finals


def room_for(variant: Variant, count: int) -> Shown:
    """Return empty arrays for the learner's view of `count` games."""
    facts = variant.facts
    return Shown(np.empty((count, facts.observation_size), np.float32), np.empty((count, facts.num_actions), np.int8))


def first_rows(finals: Finals, count: int) -> Finals:
    """Return copies of the first rows, which do not keep the others alive."""
    games, learners, players, returns = (array[:count].copy() for array in finals[:-1])
    return Finals(games, learners, players, returns, Shown(*(array[:count].copy() for array in finals.shown)))
