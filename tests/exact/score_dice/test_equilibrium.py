"""Equilibria of score dice, compared with random pairings and best responses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dice_envs import Turn, configure
from dice_envs.agents.score_dice import ScoreDiceNash
from dice_envs.core.dice import new_streams
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


@pytest.mark.thorough
@pytest.mark.parametrize("seat", [0, 1])
def test_nothing_can_be_gained_against_the_equilibrium(seat):
    """Checked with the best response for every hand. With two dice a side, only the first choice counts."""
    options = Options(pool_a=(6, 6), pool_b=(8, 6), ties="a")
    variant = configure("score_dice", pool_a=(6, 6), pool_b=(8, 6), ties="a")
    rolls = [list(itertools.product(*(range(1, size + 1) for size in pool))) for pool in options.pools]
    states = np.zeros(len(rolls[1 - seat]), variant.game.state)
    states["rng"] = new_streams(1, len(states))["rng"]
    index = np.arange(len(states))
    variant.kernels.deal(variant.params, states, index)
    for state, roll in zip(states, rolls[1 - seat], strict=True):
        state["faces"][1 - seat, :2] = roll
    if seat == 0:  # the equilibrium moves second, and does not see what was chosen
        variant.kernels.play(variant.params, states, index, np.zeros(len(states), np.int64))
    chances = ScoreDiceNash().probabilities(Turn(variant, states, index, new_streams(2, len(states))))
    assert chances.sum(axis=1) == pytest.approx(1)
    best = 0.0
    for own in rolls[seat]:
        values = []
        for first in (0, 1):
            total = 0.0
            for roll, mix in zip(rolls[1 - seat], chances, strict=True):
                for place in (0, 1):
                    pairs = [(own[first], roll[place]), (own[1 - first], roll[1 - place])]
                    tie = 1 if seat == 0 else -1
                    score = sum((x > y) - (x < y) or tie for x, y in pairs)
                    total += mix[place] * ((score > 0) - (score < 0))
            values.append(total / len(rolls[1 - seat]))
        best += max(values) / len(rolls[seat])
    value = Equilibrium(options).game_value()
    assert best == pytest.approx(value if seat == 0 else -value, abs=1e-9)
