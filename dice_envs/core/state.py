"""The fields that the states of all games share, and the kernels that set them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dice_envs.core.kernel import kernel

MAX_SEATS = 6  # the most seats any game has; sizes the per-seat fields of every state
OVER = -1  # value of the field `seat` when the game is over


def state_dtype(fields: Sequence[tuple[Any, ...]]) -> np.dtype[Any]:
    """A game's STATE: the fields that all games share, then the game's own.

    Shared: `rng` (uint64, the game's random stream), `seat` (int8, the seat to move, or OVER), `rewards`
    (float32 per seat, earned since the last step), `out` (int8 per seat, 1 once the game has ended for
    that seat though others may play on).
    """
    shared = [("rng", np.uint64), ("seat", np.int8), ("rewards", np.float32, (MAX_SEATS,)), ("out", np.int8, (MAX_SEATS,))]
    return np.dtype([*shared, *fields], align=True)


@kernel(allocates=False)
def start_game(state):
    """Set all rewards and `out` to 0: the first call in every `deal`. Modified in place."""
    for seat in range(MAX_SEATS):
        state["rewards"][seat] = 0
        state["out"][seat] = 0


@kernel(allocates=False)
def clear_rewards(state):
    """Set all rewards to 0: the first call in every `play`. Modified in place."""
    for seat in range(MAX_SEATS):
        state["rewards"][seat] = 0


@kernel(allocates=False)
def end_game(state, num_seats):
    """End the game for every seat. Modified in place."""
    state["seat"] = OVER
    for seat in range(num_seats):
        state["out"][seat] = 1


@kernel(allocates=False)
def next_seat(seat, num_seats):
    """The seat after this one in turn order."""
    return seat + 1 if seat + 1 < num_seats else 0


@kernel(allocates=False)
def relative_seat(seat, observer, num_seats):
    """The seat's distance from the observer in turn order; 0 for the observer itself."""
    return seat - observer if seat >= observer else seat - observer + num_seats
