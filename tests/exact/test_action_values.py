"""Values of actions compared with independent computations, and odds; neither depends on hidden information."""

import functools
import itertools
from unittest.mock import Mock

import numpy as np
import pytest

import dice_envs.exact.measuring
from dice_envs import Batch, Turn, configure
from dice_envs.agent.specs import make_agent
from dice_envs.core.dice import STREAM
from dice_envs.core.game import OVER, names
from dice_envs.core.work import hinting
from dice_envs.exact import action_values, response_values
from dice_envs.exact.measuring import odds, random_odds
from dice_envs.games.liars_dice.exact import measures as exact_liars_dice
from dice_envs.games.liars_dice.exact import solver as liars_dice_solver
from dice_envs.games.liars_dice.exact.solver import solve
from dice_envs.games.shakes import exact as exact_shakes
from tests.conftest import scaled
from tests.support.subsets import few
from tests.support.variants import random_states, rerolled

KNOWN = {  # variants whose optimal play is known
    "liars_dice": {"num_dice": 1},
    "fatestones": {"hand_size": 3},
    "score_dice": {"pool_a": (6, 6, 4), "pool_b": (6, 6, 6, 4)},
    "shakes": {"num_patients": 4, "goal": 2},
    "thirties": {"num_players": 1, "num_dice": 4, "target": 17},
}


def probabilities(spec, variant, state):
    turn = Turn(variant, np.array([state]), np.zeros(1, np.int64), np.zeros(1, STREAM))
    return make_agent(spec).probabilities(turn)[0]


@few(1, ("step", "sample"), [(40, 20), (7, 50)])
@pytest.mark.parametrize("game", names())
def test_values_are_those_of_legal_actions_and_know_nothing_hidden(game, step, sample):
    random = functools.partial(random_odds, sample=sample)
    for options, values_of in ((KNOWN.get(game), action_values), ({}, odds), ({}, random)):
        if options is None:
            continue
        variant = configure(game, **options)
        for number, state in enumerate(random_states(variant, 3, 1)[:: scaled(step, 80)]):
            before = state.copy()
            found = values_of(variant, state)
            mask = np.zeros(variant.facts.num_actions, np.int8)
            variant.game.legal(variant.params, state, mask)
            assert (np.isfinite(found.values) == (mask != 0)).all()
            if found.mix is not None:
                assert found.mix.sum() == pytest.approx(1)
                assert (found.mix[mask == 0] == 0).all()
            assert state == before
            again = values_of(variant, rerolled(variant, state[None], state["seat"], number)[0])
            for one, other in zip(found, again):
                np.testing.assert_equal(one, other)


def test_nobody_is_advised_once_the_game_is_over():
    variant = configure("thirties")
    state = Batch(variant, 1, seed=1).states[0]
    state["seat"] = OVER
    for ask in (action_values, odds, random_odds):
        with pytest.raises(ValueError, match="the game is over"):
            ask(variant, state)


@pytest.mark.parametrize(
    ("game", "options", "words"),
    [
        ("liars_dice", {"num_players": 3}, "num_players must be 2"),
        ("shakes", {"variation": "competitive"}, "cooperative"),
        ("score_dice", {"ties": "reroll"}, "ties must be 'none' or 'a'"),
        ("score_dice", {"pool_a": (6,) * 13, "pool_b": (6,) * 13}, "at most 12 dice"),
        ("thirties", {"num_faces": 2, "target": 8}, "num_faces=2"),
    ],
)
def test_where_no_optimal_play_is_known(game, options, words):
    variant = configure(game, **options)
    state = Batch(variant, 1, seed=1).states[0]
    with pytest.raises(ValueError, match=words):
        action_values(variant, state)
    assert np.isfinite(random_odds(variant, state, sample=20).values).any()


def ask_in_a_hint(variant, state):
    with hinting():
        return action_values(variant, state)


@pytest.mark.parametrize(
    ("game", "options", "words"),
    [
        ("shakes", {"num_players": 6, "num_patients": 30}, "about 15,358,495 tallies, which takes about 3 min; up to 60 s"),
        ("shakes", {"num_players": 2, "num_patients": 200}, "which takes about .* are waited for"),
        ("liars_dice", {"num_dice": 6}, "7,644,902,912 information sets, which takes about 32 min; up to 60 s"),
        ("liars_dice", {"num_dice": 6, "num_faces": 8, "raise_rule": "either"}, "are waited for"),
    ],
)
def test_what_people_would_wait_for_too_long_is_refused_before_it_begins(game, options, words, monkeypatch):
    began = Mock(side_effect=AssertionError("it has begun"))
    monkeypatch.setattr(exact_shakes.policies, "tallies", began)
    monkeypatch.setattr(liars_dice_solver, "Tree", began)
    variant = configure(game, **options)
    state = Batch(variant, 1, seed=1).states[0]
    with pytest.raises(ValueError, match=words):
        ask_in_a_hint(variant, state)
    with pytest.raises(AssertionError, match="begun"):
        action_values(variant, state)


@few(2, "game", ["thirties", *(name for name in names() if name != "thirties")])
def test_the_usual_games_are_not_refused_for_a_hint(game, monkeypatch):
    """Only the estimated work is checked; nothing is solved."""
    monkeypatch.setattr(exact_liars_dice, "solution_of", lambda options, precision: None)
    variant = configure(game)
    state = Batch(variant, 1, seed=1).states[0]
    if game == "liars_dice":
        with pytest.raises(AttributeError, match="action_values"):  # of the solution that is None
            ask_in_a_hint(variant, state)
    else:
        values = ask_in_a_hint(variant, state).values
        np.testing.assert_array_equal(values, action_values(variant, state).values)


@pytest.mark.parametrize("game", [game for game in KNOWN if game != "liars_dice"])
def test_values_are_those_against_optimal_play_of_which_the_mix_is_one(game):
    """`tests/exact/test_response_values.py` lists what follows choices."""
    variant = configure(game, **KNOWN[game])
    against_optimal_play = response_values(variant)
    for state in random_states(variant, 3, 5):
        found = action_values(variant, state)
        np.testing.assert_array_equal(found.values, against_optimal_play.action_values(state[None])[0])
        assert found.values[found.mix > 1e-9] == pytest.approx(np.nanmax(found.values), abs=1e-9)
        if game in ("fatestones", "score_dice"):
            np.testing.assert_allclose(found.mix, probabilities("nash", variant, state))


def test_liars_dice_has_those_of_its_solution():
    variant = configure("liars_dice", num_dice=1)
    solution = solve(variant, 1e-3, resume=True)
    for state in random_states(variant, 3, 2)[::3]:
        found, its = action_values(variant, state), solution.action_values(state)
        np.testing.assert_array_equal(found.values, its.wins)
        np.testing.assert_allclose(found.mix, probabilities("nash", variant, state))
        assert found.unit.heading == "% of games won"


def test_the_odds_of_bids_by_counting_all_throws():
    variant = configure("liars_dice", num_dice=(2, 1), num_players=2, num_faces=3, wild="ones")
    for state in random_states(variant, 2, 7):
        found = odds(variant, state)
        seat = int(state["seat"])
        unseen = int(state["in_play"]) - int(state["dice"][seat])
        throws = list(itertools.product(range(3), repeat=unseen))
        for action in np.flatnonzero(np.isfinite(found.values)):
            bid = action if action < variant.params.call else int(state["bid"])
            quantity, face = bid // 3 + 1, bid % 3
            faces = {face, 0}
            own = sum(int(state["counts"][seat, each]) for each in faces)
            share = np.mean([own + sum(die in faces for die in throw) >= quantity for throw in throws])
            assert found.values[action] == pytest.approx(1 - share if action == variant.params.call else share)


def test_random_odds_of_a_position_that_chance_decides():
    """One die each, of 6 and 4 faces: the mean return is known, and the same seed gives the same odds."""
    variant = configure("score_dice", pool_a=6, pool_b=4, reward="score")
    state = Batch(variant, 1, seed=3).states[0]
    own = int(state["faces"][0, 0])
    wanted = np.mean([np.sign(own - other) for other in range(1, 5)])
    found = random_odds(variant, state, 5, 400)
    assert abs(found.values[0] - wanted) <= 1.5 * found.errors[0] + 1e-12
    assert random_odds(variant, state, 5, 400).values == found.values
    for wrong in ({"sample": 1}, {"sample": 10**9}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            random_odds(variant, state, **wrong)


def test_random_odds_of_score_dice_in_which_random_play_is_optimal():
    variant, errors = configure("score_dice", **KNOWN["score_dice"], reward="score"), []
    for number, state in enumerate(random_states(variant, 3, 6)[::3]):
        found, sampled = action_values(variant, state), random_odds(variant, state, number, scaled(1000, 50))
        some = np.isfinite(found.values) & (sampled.errors > 0)
        errors += ((found.values - sampled.values)[some] / sampled.errors[some]).tolist()
    assert len(errors) >= 4
    assert np.abs(errors).max() < 2.2, "in units of a 95 % interval"


def test_random_odds_of_a_call_are_those_of_its_bid():
    batch = Batch("liars_dice", 1, seed=1, num_dice=1)
    batch.play([0])
    call, (exact, sampled) = batch.variant.params.call, (ask(batch.variant, batch.states[0]) for ask in (odds, random_odds))
    assert 0 < exact.values[call] < 1
    assert sampled.values[call] == pytest.approx(2 * exact.values[call] - 1, abs=1.5 * sampled.errors[call])


def test_a_game_of_which_nothing_is_known_has_odds(monkeypatch):
    """As for a user's own game: kernels are enough."""
    monkeypatch.setattr(dice_envs.exact.contract.GameExact, "__init__", lambda self, game: None)  # as without a module
    variant = configure("liars_dice", num_dice=1)
    state = Batch(variant, 1, seed=1).states[0]
    with pytest.raises(ValueError, match="no optimal play of liars_dice is known"):
        action_values(variant, state)
    assert odds(variant, state, sample=50).unit == "return"


@pytest.mark.parametrize("name", names())
def test_a_state_may_come_as_a_0d_array(name):
    variant = configure(name)
    state = Batch(variant, 1, seed=1).states[0]
    np.testing.assert_array_equal(odds(variant, np.array(state), 1, 50).values, odds(variant, state, 1, 50).values)
