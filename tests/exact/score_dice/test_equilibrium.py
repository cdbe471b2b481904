"""Equilibria of score dice, compared with random pairings and best responses."""

from __future__ import annotations

import pytest

from dice_envs import configure
from dice_envs.exact.score_dice.distribution import score_distribution
from dice_envs.exact.score_dice.solvers import Equilibrium
from dice_envs.experiments.arena import tournament
from dice_envs.games.score_dice import Options
from tests.support.subsets import few


def mean_reward(options, pairing):
    result = score_distribution(*options.pools, options.ties, pairing)
    if options.reward == "win":
        return float(result.win_bias) / 100
    return float(sum(score * chance for score, chance in result.chances.items()))


@few(
    2,
    "options",
    [
        Options(pool_a=(6, 6), pool_b=(6, 6), ties="a"),
        Options(pool_a=(4, 4, 4), pool_b=(4, 4, 4), ties="a"),
        Options(pool_a=(4, 3, 2), pool_b=(6, 3, 2), reward="score"),
        Options(pool_a=(6, 4), pool_b=(4, 4), ties="reroll"),
        Options(pool_a=(4, 4), pool_b=(4, 4, 4), ties="a"),
        Options(pool_a=(4, 3), pool_b=(3,), ties="reroll"),
        Options(pool_a=(4, 4), pool_b=(6, 4), ties="a", open_hands=True),
        Options(pool_a=(3, 2), pool_b=(3, 3), ties="reroll", open_hands=True),
    ],
    ids=str,
)
def test_the_equilibrium_is_worth_the_unsorted_game(options):
    """Random choice is an equilibrium, so all equilibria have its value, which the linear programmes must find."""
    assert Equilibrium(options).game_value() == pytest.approx(mean_reward(options, "unsorted"), abs=1e-8)


def test_pools_too_large_for_an_equilibrium_are_refused():
    with pytest.raises(ValueError, match="small pools only"):
        tournament(configure("score_dice"), ["score_nash", "random"], 10, 1)
