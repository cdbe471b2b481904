"""Rewards that are the mean over the roll: the same game in the mean, with less luck."""

import math

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.agent import resolve
from dice_envs.batch import Batch
from dice_envs.chance import Drawn
from dice_envs.game import names
from dice_envs.sb3 import make_vec_env
from dice_envs.seat import SeatGames
from tests.test_seat import random_actions

TELLING = [name for name in names() if configure(name).game.expect is not None]


class Asked:
    """`random`, asked by Python move by move."""

    def __init__(self):
        self.own = resolve("random")

    def act(self, turn):
        return self.own.act(turn)


def returns_of(expected, opponents="random", steps=300):
    """Returns of ended games of random play, one row for each, and what was paid in each step."""
    env = make_vec_env("fatestones", 256, opponents, seed=3, expected_rewards=expected)
    env.reset()
    rng = np.random.default_rng(4)
    returns, paid = [], []
    for _ in range(steps):
        _, rewards, _, infos = env.step(random_actions(rng, env.masks))
        paid.append(rewards)
        returns += [info["episode"]["r"] for info in infos if "episode" in info]
    return np.array(returns), np.concatenate(paid)


def test_some_game_tells_what_a_roll_is_worth():
    assert "fatestones" in TELLING


@pytest.mark.parametrize("name", TELLING)
def test_a_step_pays_the_mean_over_its_roll(name):
    """Of every roll that can follow, enumerated with its probability."""
    variant = configure(name)
    drawn = Drawn(variant)
    games = SeatGames(variant, 1, seat=1, expected_rewards=True)
    games.seed_games(np.arange(1), [7])
    games.start(np.arange(1))
    for _ in range(12):
        before = games.states.copy()
        outcomes = list(drawn.every_outcome(before, 0))
        done = games.advance(np.zeros(1, np.int64), np.zeros(1, bool), restart=True)
        for seat in range(variant.facts.num_seats):
            mean = sum(chance * float(after["rewards"][0, seat]) for chance, after in outcomes)
            assert done.earned[0, seat] == pytest.approx(mean, abs=1e-6)


def test_returns_have_the_same_mean_and_much_less_luck():
    plain, _ = returns_of(False)
    steady, paid = returns_of(True)
    assert len(plain) > 50_000
    assert set(np.unique(plain)) == {-1.0, 1.0}
    assert np.abs(paid).max() < 1
    assert steady.std() < 0.15 < plain.std() / 5
    error = math.sqrt(plain.var() / len(plain) + steady.var() / len(steady))
    assert abs(plain.mean() - steady.mean()) < 5 * error
    # As many games end in a step: what goes on is drawn with the same odds.
    assert len(steady) == pytest.approx(len(plain), rel=0.02)


def test_one_compiled_loop_and_asking_move_by_move_pay_the_same():
    loop, asked = returns_of(True, steps=50), returns_of(True, Asked(), steps=50)
    np.testing.assert_array_equal(loop[0], asked[0])
    np.testing.assert_array_equal(loop[1], asked[1])


def test_self_play_pays_both_seats():
    games = SeatGames(configure("fatestones"), 64, self_play=1.0, expected_rewards=True)
    games.start(np.arange(64))
    for _ in range(20):
        done = games.advance(np.zeros(64, np.int64), np.zeros(64, bool), restart=True)
        np.testing.assert_allclose(done.earned.sum(axis=1), 0, atol=1e-6)
        assert np.abs(done.earned).max() < 1


@pytest.mark.parametrize("name", [name for name in names() if name not in TELLING])
def test_a_game_that_does_not_tell_is_refused(name):
    with pytest.raises(ValueError, match=f"expected_rewards must be false: {name} has no kernel `expect`"):
        SeatGames(configure(name), 4, expected_rewards=True)


def test_other_environments_pay_what_is_rolled():
    """The game itself is as it was."""
    returns_of(True, steps=2)
    batch = Batch("fatestones", 64, seed=1)
    for _ in range(2):
        batch.play(np.zeros(64, np.int64))
    assert set(np.unique(batch.rewards)) <= {-1.0, 0.0, 1.0}
