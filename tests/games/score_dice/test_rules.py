"""The rules of score dice, and agreement of played games with the published tables."""

from collections import Counter

import numpy as np
import pytest

from dice_envs import Batch, configure
from dice_envs.agent.specs import make_agent
from dice_envs.experiments.arena import play_table
from dice_envs.games.score_dice import MAX_ROLLS, Options
from dice_envs.games.score_dice.exact.distribution import score_distribution
from tests.support.chance import assert_distributed
from tests.support.subsets import covering


def test_pools_are_kept_largest_first():
    options = Options(pool_a=[6, 8, 6], pool_b=4, ties=None)
    assert options.pools == ((8, 6, 6), (4,))
    assert options.ties == "none"
    with pytest.raises(ValueError, match="dice of A must be a whole number from 1 to 6, not 8"):
        configure("score_dice", pool_a=(6, 8, 6), pool_b=4).arrange(None, {"dice": [[8, 6, 8], [4]]})


def test_ties_after_the_last_roll_score_nothing():
    batch = Batch("score_dice", 1, seed=1, pool_a=(6, 6), pool_b=(6, 6), ties="reroll")
    state = batch.states[0]
    state["rolls"] = MAX_ROLLS
    state["faces"][:, :2] = [[4, 4], [4, 3]]
    for die in (0, 0, 1, 1):
        batch.play(np.array([die]))
    assert batch.seats[0] == -1
    assert batch.rewards.tolist() == [[1.0, -1.0]]


GAMES = [
    {"pool_a": (6,) * 5, "pool_b": (6,) * 5, "ties": "none"},
    {"pool_a": (6,) * 5, "pool_b": (8, 8, 8, 6, 6), "ties": "a"},
    {"pool_a": (6, 6), "pool_b": (6, 6), "ties": "reroll"},
    {"pool_a": (8, 6, 4), "pool_b": (6, 6, 4), "ties": "reroll"},
    {"pool_a": (6,) * 4, "pool_b": (6,) * 5, "ties": "a"},
    {"pool_a": (8, 6, 4, 3), "pool_b": (6, 3), "ties": "reroll"},
]


@covering(("agent", "options"), ["highest", "shuffled"], GAMES)
def test_games_come_to_the_tables(options, agent):
    """A's final scores in games of the agent against itself are those of the table."""
    pairing = "sorted" if agent == "highest" else "unsorted"
    exact = score_distribution(options["pool_a"], options["pool_b"], options["ties"], pairing).chances
    player, number = make_agent(agent), np.arange(20_000)
    returns = play_table(configure("score_dice", reward="score", **options), [player, player], 20_000, 11)
    scores = np.rint(returns[number, number % 2]).astype(int)  # the agent at seat 0 in each game
    assert_distributed(Counter(scores.tolist()), exact)
