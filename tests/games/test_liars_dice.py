"""Liar's Dice: rounds, pay, what a seat sees and options, by hand; `test_perudo` compares all rules with a plain program."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_envs import liars_dice_v0
from dice_envs.core.game import configure
from dice_envs.games.liars_dice import chance_at_least
from dice_envs.games.liars_dice.raises import NO_BID, RULES, bids_after, lowest_quantities


def bid(quantity, face, faces=6):
    return (quantity - 1) * faces + face - 1


def table(dice, **options):
    """A raw_env whose first round has these dice. Seat 0 begins unless the options say otherwise."""
    options.setdefault("num_dice", tuple(len(hand) for hand in dice))
    env = liars_dice_v0.raw_env(num_players=len(dice), starter="first", **options)
    env.reset(seed=1, options={"dice": dice})
    return env


def legal(env):
    return set(np.flatnonzero(env.observe(env.agent_selection)["action_mask"]).tolist())


def call_of(env):
    return env.action_space("player_0").n - 1


# --- rounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize(("dice", "faces"), [(2, 2), (3, 3), (4, 6)])
def test_the_longest_round_of_each_rule(rule, dice, faces):
    (after,) = lowest_quantities(rule, False, dice, faces)

    @functools.cache
    def longest(last):
        return max((1 + longest(each) for each in bids_after(after[last + 1], dice).tolist()), default=0)

    assert RULES[rule].longest(dice, faces) == longest(NO_BID)


# --- what a seat sees -------------------------------------------------------------------------------------------


def test_observation_by_the_table_of_the_docstring():
    env = table([[6, 6, 1], [2, 3, 3]], num_dice=3)
    env.step(bid(2, 6))
    bids = 36
    seen = env.observe("player_1")["observation"]
    assert seen[:6] == pytest.approx([0, 1 / 3, 2 / 3, 0, 0, 0])
    assert seen[6:8] == pytest.approx([1, 1])
    made = seen[8 : 8 + 2 * bids].reshape(2, bids)
    assert not made[0].any(), "seat 0 of an observation is the observer"
    assert np.flatnonzero(made[1]).tolist() == [bid(2, 6)]
    rest = seen[8 + 2 * bids :]
    assert rest[:2] == pytest.approx([1, 0]), "the observer is to move"
    assert rest[2:8] == pytest.approx([0, 0, 0, 0, 0, 1])
    assert rest[8] == pytest.approx(2 / 6)
    assert rest[9] == pytest.approx(1 - (5 / 6) ** 3 - 3 * (1 / 6) * (5 / 6) ** 2)
    assert rest[10:] == pytest.approx([1 / 2, 0, 1 / 2, 0])


def test_shown_bids_are_remembered_as_honest_or_not():
    env = table([[6, 6, 1], [2, 3, 3]], num_dice=3)
    env.step(bid(1, 1))  # player 0 holds more sixes than ones
    env.step(bid(2, 3))  # player 1 holds threes most
    env.step(call_of(env))
    assert env._states["bids_shown"][0, :2].tolist() == [1, 1]
    assert env._states["bids_honest"][0, :2].tolist() == [0, 1]


def test_past_rounds_can_be_left_out_of_what_is_seen():
    seen = {}
    for past_rounds in (True, False):
        env = table([[6, 6, 1], [2, 3, 3]], num_dice=3, past_rounds=past_rounds)
        for action in (bid(1, 1), bid(2, 3), call_of(env)):
            env.step(action)
        seen[past_rounds] = env.observe(env.agent_selection)["observation"]
    assert len(seen[True]) == len(seen[False]) + 4
    assert seen[True][:-4].tolist() == seen[False].tolist(), "all that is seen of the present round stays"
    with pytest.raises(ValueError, match="past_rounds must be true or false, not 1"):
        configure("liars_dice", past_rounds=1)


@given(
    n=st.integers(0, 30),
    need=st.integers(-2, 32),
    faces=st.integers(2, 8),
    wild=st.booleans(),
)
def test_chance_at_least_is_the_binomial_tail(n, need, faces, wild):
    from scipy.stats import binom

    params = configure("liars_dice", num_faces=faces, wild="ones" if wild else None).params
    p = (2 if wild else 1) / faces
    ours = chance_at_least(params, params.wild, need + 3, 3, n, 1)  # 3 of its own
    assert ours == pytest.approx(binom.sf(need - 1, n, p), abs=1e-9)


# --- options and positions --------------------------------------------------------------------------------------


def test_positions_are_dealt_in_every_interface():
    import gymnasium

    import dice_envs.envs.sb3

    dice = [[1, 1], [6, 6]]
    env = liars_dice_v0.env(num_dice=2)
    env.reset(options={"dice": dice})
    assert env.unwrapped._states["counts"][0, 0, 0] == 2
    seat = gymnasium.make("dice_envs/LiarsDice-v0", num_dice=2, seat=1, starter="first", rounds="single")
    observation, _ = seat.reset(options={"dice": dice})
    assert observation[5] == 1
    vector = gymnasium.make_vec("dice_envs/LiarsDice-v0", num_envs=3, num_dice=2, seat=1)
    observations, _ = vector.reset(options={"dice": dice})
    assert (observations[:, 5] == 1).all()
    venv = dice_envs.envs.sb3.make_vec_env("liars_dice", 2, num_dice=2, seat=1)
    venv.set_options({"dice": dice})
    assert (venv.reset()[:, 5] == 1).all()
