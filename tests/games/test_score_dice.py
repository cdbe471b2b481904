"""The rules of score dice, and agreement of played games with the published tables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dice_envs import Batch, IllegalActionError, agents, configure, score_dice_v0
from dice_envs.exact.score_dice.distribution import score_distribution
from dice_envs.experiments.arena import play_table
from dice_envs.games.score_dice import DROPPED, HELD, MAX_ROLLS, OUT, Options
from tests.support.chance import assert_distributed
from tests.support.subsets import covering


def test_pools_are_kept_largest_first():
    options = Options(pool_a=[6, 8, 6], pool_b=4, ties=None)
    assert options.pools == ((8, 6, 6), (4,))
    assert options.ties == "none"


def game_of(dice, **options):
    env = score_dice_v0.raw_env(**options)
    env.reset(seed=1, options={"dice": dice})
    return env


def test_pairs_score_by_the_tie_rule():
    for ties, expected in (("none", 0.0), ("a", 1.0)):
        env = game_of([[5, 3], [5, 2]], pool_a=(6, 6), pool_b=(6, 6), ties=ties, reward="score")
        env.step(0)
        assert env.rewards == {"player_0": 0.0, "player_1": 0.0}, "nothing scores before both have chosen"
        env.step(0)
        assert env.rewards == {"player_0": expected, "player_1": -expected}
        env.step(1)
        env.step(1)
        assert env.rewards == {"player_0": 1.0, "player_1": -1.0}
        assert all(env.terminations.values())


def test_spare_lowest_dice_are_dropped():
    env = game_of([[2, 6, 2, 5], [1, 1]], pool_a=(6, 6, 6, 6), pool_b=(6, 6))
    status = env._states[0]["status"][0]
    assert status[:4].tolist() == [DROPPED, HELD, DROPPED, HELD]
    env = game_of([[2, 2, 6, 2], [1, 1]], pool_a=(8, 6, 6, 4), pool_b=(6, 6))
    assert env._states[0]["status"][0][:4].tolist() == [HELD, DROPPED, HELD, DROPPED], "of equal faces the first stays"
    with pytest.raises(IllegalActionError, match="not legal"):
        env.step(1)


def test_tied_dice_are_rolled_again():
    env = game_of([[5, 3, 3], [5, 2, 3]], pool_a=(8, 6, 6), pool_b=(8, 6, 6), ties="reroll")
    for die_a, die_b in ((0, 0), (1, 1), (2, 2)):
        env.step(die_a)
        env.step(die_b)
    state = env._states[0]
    assert (state["rolls"], state["columns"], state["column"], state["score"]) == (2, 2, 0, 1)
    for seat in range(2):
        assert state["status"][seat][:3].tolist() == [HELD, OUT, HELD]
    assert env.agent_selection == "player_0"


def test_when_all_pairs_tie_the_spare_dice_are_rolled_too():
    faces = set()
    for seed in range(30):
        env = score_dice_v0.raw_env(pool_a=(8, 6, 4), pool_b=(8, 6), ties="reroll")
        env.reset(seed=seed, options={"dice": [[5, 3, 1], [5, 3]]})
        for die in (0, 0, 1, 1):
            env.step(die)
        status = env._states[0]["status"][0][:3].tolist()
        assert sorted(status) == [HELD, HELD, DROPPED]
        faces.add((env._states[0]["faces"][0][2], status[2]))
    assert {die_status for _, die_status in faces} == {HELD, DROPPED}
    env = game_of([[5, 3, 1], [5, 2]], pool_a=(8, 6, 4), pool_b=(8, 6), ties="reroll")
    for die in (0, 0, 1, 1):
        env.step(die)
    assert env._states[0]["status"][0][:3].tolist() == [HELD, OUT, OUT]


def test_ties_after_the_last_roll_score_nothing():
    batch = Batch("score_dice", 1, seed=1, pool_a=(6, 6), pool_b=(6, 6), ties="reroll")
    state = batch.states[0]
    state["rolls"] = MAX_ROLLS
    state["faces"][:, :2] = [[4, 4], [4, 3]]
    for die in (0, 0, 1, 1):
        batch.play(np.array([die]))
    assert batch.seats[0] == -1
    assert batch.rewards.tolist() == [[1.0, -1.0]]


def check_against_table(options, agent, games, seed):
    """A's final scores in games of the agent against itself are those of the table."""
    pairing = "sorted" if agent == "highest" else "unsorted"
    exact = score_distribution(options["pool_a"], options["pool_b"], options["ties"], pairing).chances
    player, number = agents.make(agent), np.arange(games)
    returns = play_table(configure("score_dice", reward="score", **options), [player, player], games, seed)
    scores = np.rint(returns[number, number % 2]).astype(int)  # the agent at seat 0 in each game
    assert_distributed(Counter(scores.tolist()), exact)


GAMES = [
    {"pool_a": (6,) * 5, "pool_b": (6,) * 5, "ties": "none"},
    {"pool_a": (6,) * 5, "pool_b": (8, 8, 8, 6, 6), "ties": "a"},
    {"pool_a": (6, 6), "pool_b": (6, 6), "ties": "reroll"},
    {"pool_a": (8, 6, 4), "pool_b": (6, 6, 4), "ties": "reroll"},
    {"pool_a": (6,) * 4, "pool_b": (6,) * 5, "ties": "a"},
    {"pool_a": (8, 6, 4, 3), "pool_b": (6, 3), "ties": "reroll"},
]


@pytest.mark.parametrize("games", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@covering(("agent", "options"), ["highest", "shuffled"], GAMES)
def test_games_come_to_the_tables(options, agent, games):
    check_against_table(options, agent, games, 11)
