"""Shared parts of all games' states: rewards, ends and turn order."""

import numpy as np
import pytest

from dice_envs.core.dice import counts_of, faces_of
from dice_envs.core.state import (
    MAX_SEATS,
    OVER,
    clear_rewards,
    end_game,
    next_seat,
    relative_seat,
    start_game,
    state_dtype,
)


def test_rewards_and_ends():
    state = np.ones(1, state_dtype([("own", np.int8)]))[0]
    start_game(state)
    assert state["rewards"].tolist() == state["out"].tolist() == [0] * MAX_SEATS
    state["rewards"] = 1
    clear_rewards(state)
    end_game(state, 2)
    assert not state["rewards"].any()
    assert state["out"].tolist() == [1, 1, 0, 0, 0, 0]
    assert state["seat"] == OVER
    assert (state["rng"], state["own"]) == (1, 1)


@pytest.mark.parametrize("num_seats", range(1, MAX_SEATS + 1))
def test_turn_order(num_seats):
    for observer in range(num_seats):
        order = [observer]
        for _ in range(num_seats - 1):
            order.append(next_seat(order[-1], num_seats))
        assert sorted(order) == list(range(num_seats))
        assert [relative_seat(seat, observer, num_seats) for seat in order] == list(range(num_seats))
        assert next_seat(order[-1], num_seats) == observer


def test_faces_and_counts():
    assert faces_of([0, 2, 0, 1]) == (2, 2, 4)
    assert counts_of([4, 2, 2]).tolist() == [0, 2, 0, 1, 0, 0, 0, 0]
    assert counts_of([]).tolist() == [0] * 8
