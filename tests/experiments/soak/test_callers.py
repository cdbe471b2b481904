"""The callers find interfaces that are careless, and count games."""

import dataclasses

import numpy as np
import pytest

from dice_envs.core.batch import IllegalActionError
from dice_envs.core.game import configure
from dice_envs.envs.gym import SeatVectorEnv
from dice_envs.experiments.soak.callers import VECTOR_GAMES, play_aec, play_batch, play_vector
from dice_envs.experiments.soak.loop import Fault


def test_a_careless_interface_is_found(monkeypatch):
    """One plays illegal actions, and one takes too much from the loser."""
    variant, rng = configure("fatestones"), np.random.default_rng(1)
    step = SeatVectorEnv.step

    def takes_anything(env, actions):
        try:
            return step(env, actions)
        except IllegalActionError:
            return None

    monkeypatch.setattr(SeatVectorEnv, "step", takes_anything)
    with pytest.raises(Fault, match="is not legal, and was played"):
        play_vector(variant, 5000, rng)
    variant.facts = dataclasses.replace(variant.facts, max_return=0.5)
    with pytest.raises(Fault, match="a return is 1"):
        play_aec(variant, 5000, rng)


def test_games_that_end_are_counted_and_dealt_again():
    """Every game of a physician with four patients has four moves."""
    variant = configure("shakes", mode="physician", num_patients=4, goal=1)
    assert play_batch(variant, 13 * VECTOR_GAMES, np.random.default_rng(1)) == 3 * VECTOR_GAMES
