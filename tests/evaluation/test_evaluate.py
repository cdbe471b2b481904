"""Evaluation without luck: the same means as exact results, from fewer games."""

import functools
import json

import numpy as np
import pytest

from dice_envs import configure, evaluate, response_values
from dice_envs.agent.matches import GAMES_ASKED
from dice_envs.evaluation import check_games
from tests.support.liars_dice_games import winning_probability
from tests.support.policies import uniform

SMALL = configure("liars_dice", num_dice=1, num_faces=3, rounds="single")


@functools.cache
def values():
    return response_values(SMALL)


@pytest.fixture
def played():
    return evaluate(SMALL, "random", "nash", 2000, seed=1, values=values())


def test_value_agrees_with_the_exact_one(played):
    exact = winning_probability(SMALL, "random", "nash")
    assert abs(played.value - exact) < 2 * played.error  # four standard errors
    assert abs(played.plain - exact) < 2 * played.plain_error
    assert played.error < played.plain_error
    assert played.variance_ratio > 1


def test_it_prints_as_a_line(played):
    with_luck = f"{played.plain:.3f} ± {played.plain_error:.2g} with luck"
    result = f"{played.value:.3f} ± {played.error:.2g} games won, by 2,000 games ({with_luck})"
    assert str(played) == f"random against nash: {result}"


@pytest.mark.parametrize("match", [1, 10])
def test_losses_add_up_to_what_is_given_away(match):
    """They are those of a game, also where games are played in matches."""
    played, given = evaluate(SMALL, "random", "nash", 2000, seed=1, match=match, values=values()), {}
    for loss in played.losses:
        given[loss.by] = given.get(loss.by, 0.0) + loss.loss
        assert 0 <= loss.wrong <= loss.decisions
        assert loss.error >= 0
    assert len(set(np.round(list(given.values()), 9))) == 1
    assert abs(played.best - next(iter(given.values())) - played.value) < 2 * played.error
    costs = [each.cost for each in played.worst]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 0
    assert all(each.played != each.better and each.position for each in played.worst)


def test_games_are_those_of_the_seed_however_they_are_divided(played):
    def backwards(function, shared, parts, sizes):
        assert sum(sizes) == 2000
        assert len(parts) == -(-2000 // GAMES_ASKED)
        found = [json.loads(json.dumps(function(*shared, *part))) for part in parts[::-1]]
        return found[::-1]

    again = evaluate(SMALL, "random", "nash", 2000, seed=1, values=values(), run=backwards)
    assert again == played
    assert evaluate(SMALL, "random", "nash", 2000, seed=2, values=values()) != played
    assert json.loads(played.json())["variance_ratio"] == played.variance_ratio


def test_optimal_play_loses_nothing(played):
    found = evaluate(SMALL, "nash", "nash", 200, values=values())
    assert abs(found.best - 0.5) < 1e-3
    assert abs(found.value - 0.5) <= 1e-3
    assert found.error == pytest.approx(1 - 0.025 ** (1 / 200), rel=0.01)  # it may yet lose what none of 200 games showed
    assert found.error < found.plain_error


def test_a_match_counts_once():
    found = evaluate(SMALL, "random", "nash", 2000, seed=1, match=10, values=values())
    assert found.match == 10
    assert found.coefficient != 1
    for games, match in ((1, 1), (10, 3), (5, 5)):
        with pytest.raises(ValueError, match="games must be"):
            check_games(games, match)


def test_an_agent_may_be_a_function_or_any_object_with_act():
    class First:
        def act(self, turn):
            return turn.legal.argmax(axis=1)

    assert evaluate(SMALL, uniform, "nash", 100, values=values()).agent == "uniform"
    assert evaluate(SMALL, First(), "nash", 100, values=values()).agent == "First"


def test_opponents_are_refused_where_there_are_none():
    with pytest.raises(ValueError, match="opponent must be left out, not numbers"):
        evaluate("thirties", "random", "numbers")
