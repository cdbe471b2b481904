"""Expected rewards: the same mean return as drawn rewards, with less variance."""

from typing import Any

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.core.chance import Drawn
from dice_envs.core.game import names, with_expected_rewards
from dice_envs.core.state import OVER
from dice_envs.envs.learner import SeatGames
from dice_envs.envs.sb3 import make_vec_env
from tests.support.chance import every_deal, every_outcome
from tests.support.subsets import few
from tests.support.turns import begun

GAMES = {name: configure(name).game for name in names()}
TELLING = [name for name, game in GAMES.items() if game.expect is not None or game.play_expected is not None]

# The Shakes with few patients and every kind of reward. Ties that are rolled again have infinitely many outcomes.
SHAKES = [
    {"num_players": 2, "mode": "physician", "num_patients": 4, "goal": 2},
    {"num_players": 3, "mode": "physician", "num_patients": 3, "goal": 2, "reward": "win"},
    {"num_players": 2, "mode": "physician", "num_patients": 4, "goal": 1, "reward": "win"},
    {"num_players": 3, "mode": "physician", "num_patients": 2, "goal": 1, "open_efficacies": True},
    {"num_players": 2, "num_patients": 2, "goal": 1, "ties": "random"},
    {"num_players": 2, "num_patients": 2, "goal": 1, "reward": "win", "ties": "random"},
    {"num_players": 2, "variation": "competitive", "num_patients": 2, "goal": 1, "ties": "random"},
    {"num_players": 2, "variation": "competitive", "num_patients": 2, "goal": 1, "reward": "saved", "ties": "random"},
]


@few(2, "options", SHAKES, ids=str)
def test_a_patient_pays_the_mean_over_all_efficacies_that_may_be(options):
    """The mean over all enumerated deals and continuations with the same results so far and the same action."""
    variant = configure("shakes", **options)
    drawn, paying = Drawn(variant), Drawn(with_expected_rewards(variant.game), **options)
    seats = variant.facts.num_seats
    seen = variant.options.competitive or variant.options.open_efficacies
    known = [field for field in variant.game.state.names if field != "efficacy" or seen]
    positions = merged(every_deal(drawn))
    compared = 0
    while positions:
        # (the mover's knowledge, action, winning treatment) → [1, drawn reward, expected reward], each times the probability.
        summed: dict[Any, np.ndarray] = {}
        after = []
        for chance, state in positions:
            for action in variant.legal_actions(state[0]):
                rolls = zip(every_outcome(drawn, state, action), every_outcome(paying, state, action), strict=True)
                for (odds, became), (same_odds, steady) in rolls:
                    assert odds == same_odds
                    row = np.concatenate([[1], became["rewards"][0, :seats], steady["rewards"][0, :seats]])
                    key = bytes_of(state, known), action, became["treated"].tobytes()
                    summed[key] = summed.get(key, 0) + chance * odds * row
                    became["rewards"] = steady["rewards"] = 0
                    assert bytes_of(became) == bytes_of(steady), "all but the rewards is the same"
                    if became["seat"][0] != OVER:
                        after.append((chance * odds, became))
        for row in summed.values():
            np.testing.assert_allclose(row[1 + seats :] / row[0], row[1 : 1 + seats] / row[0], atol=1e-6)
        compared += len(summed)
        positions = merged(after)
    assert compared > 10


def merged(positions):
    """Merge (probability, state) pairs whose states differ only in fields for display."""
    found = {}
    for chance, state in positions:
        state["dice"] = state["last_strength"] = 0
        before, _ = found.get(bytes_of(state), (0, None))
        found[bytes_of(state)] = before + chance, state
    return list(found.values())


def bytes_of(state, fields=None):
    """The contents of a state, without padding bytes."""
    return b"".join(state[field].tobytes() for field in fields or state.dtype.names)


def test_self_play_pays_both_seats():
    games = begun(configure("fatestones"), "random", 64, self_play=1.0, expected_rewards=True)
    for _ in range(20):
        done = games.advance(np.zeros(64, np.int64), np.zeros(64, bool), restart=True)
        np.testing.assert_allclose(done.earned.sum(axis=1), 0, atol=1e-6)
        assert np.abs(done.earned).max() < 1


@pytest.mark.parametrize("name", [name for name in names() if name not in TELLING])
def test_a_game_that_does_not_tell_is_refused(name):
    with pytest.raises(ValueError, match=f"expected_rewards must be false: {name} has no kernel `expect` or `play_expected`"):
        SeatGames(configure(name), 4, expected_rewards=True)


@pytest.mark.parametrize("expected", [False, True])
def test_an_environment_pays_as_it_is_asked_to(expected):
    env = make_vec_env("fatestones", 64, seed=3, expected_rewards=expected)
    env.reset()
    _, rewards, _, _ = env.step(env.action_masks().argmax(axis=1))
    assert (set(rewards.tolist()) <= {-1.0, 0.0, 1.0}) != expected
