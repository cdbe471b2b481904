"""Enumerated chance: the same outcomes as the compiled kernels draw, with the same probabilities."""

import collections
import dataclasses

import numpy as np
import pytest

from dice_envs.core import dice
from dice_envs.core.batch import Batch
from dice_envs.core.chance import MAX_LISTED, Drawn, can_be_enumerated
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, configure, load, names, with_expected_rewards
from dice_envs.core.kernel import kernel
from dice_envs.core.state import start_game
from tests.conftest import scaled
from tests.support.chance import assert_distributed, assert_even, every_deal, every_outcome

# Variants with so few deals that all of them can be compared with drawn ones.
SMALL = {
    "fatestones": {"dice": (123456, 111666, 333444, 222555), "hand_size": 2},
    "liars_dice": {"num_dice": (2, 1), "num_faces": 3},
    "score_dice": {"pool_a": (3, 2), "pool_b": (3,)},
    "shakes": {"mode": "physician"},  # tied maesters may argue forever
    "thirties": {"num_players": 1, "num_dice": 3, "num_faces": 4},
}


def key(states, i):
    """A state without its random stream and the padding between its fields."""
    return b"".join(np.ascontiguousarray(states[name][i]).tobytes() for name in states.dtype.names if name != "rng")


def compare(expected, states):
    """Assert that states are drawn with the expected probabilities {key: probability}."""
    assert sum(expected.values()) == pytest.approx(1, abs=1e-12)
    assert_distributed(collections.Counter(key(states, i) for i in range(len(states))), expected)


def summed(outcomes):
    found = collections.Counter()
    for probability, states in outcomes:
        found[key(states, 0)] += probability
    return found


@pytest.mark.parametrize("name", names())
def test_deals_and_what_follows_actions_are_those_that_kernels_draw(name):
    drawn = Drawn(name, **SMALL.get(name, {}))
    variant, games = drawn.variant, scaled(4000, 1000)
    compare(summed(every_deal(drawn)), Batch(variant, games, seed=1).states)
    state = Batch(variant, 1, seed=2).states
    for _ in range(3):
        action = variant.legal_actions(state[0])[0]
        many = np.repeat(state, games)
        many["rng"] = new_streams(3, games)["rng"]
        variant.kernels.play(many, np.arange(games), np.full(games, action))
        before = key(state, 0)
        compare(summed(every_outcome(drawn, state, action)), many)
        assert key(state, 0) == before
        state = many[:1].copy()
        if state["seat"][0] == OVER:
            break


@pytest.mark.parametrize(("num_dice", "num_faces", "first_outcomes"), [(3, 6, 56), (8, 8, 9)])
def test_throws_are_multinomial_whether_listed_or_drawn_face_by_face(num_dice, num_faces, first_outcomes):
    drawn = Drawn("thirties", num_players=1, num_dice=num_dice, num_faces=num_faces)
    assert len(drawn.deal(np.zeros(1, drawn.variant.game.state)[0]).outcomes) == first_outcomes <= MAX_LISTED
    deals = list(every_deal(drawn))
    chances = np.array([chance for chance, _ in deals])
    counts = np.array([state["counts"][0, :num_faces] for _, state in deals])
    assert (counts.sum(axis=1) == num_dice).all()
    np.testing.assert_allclose(chances.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(chances @ counts, num_dice / num_faces, rtol=1e-12)
    np.testing.assert_allclose(chances @ counts**2, num_dice * (num_faces - 1 + num_dice) / num_faces**2, rtol=1e-12)


def test_expected_rewards_are_those_of_the_kernel_that_takes_expectations():
    variant = configure("fatestones")
    drawn, paying = Drawn(variant), with_expected_rewards(variant.game)
    states = Batch(variant, 1, seed=4).states
    for first in range(3):
        committed = states.copy()
        drawn.play(committed[0], first)
        for second in range(3):
            outcomes = list(every_outcome(drawn, committed, second))
            rewards = np.zeros(2)
            averaged, paid = committed.copy(), committed.copy()
            paying.play(variant.params, paid[0], second)
            goes_on = variant.game.expect(variant.params, averaged[0], second, rewards)
            assert sum(chance * float(after["rewards"][0, 0]) for chance, after in outcomes) == pytest.approx(rewards[0])
            assert paid["rewards"][0, :2] == pytest.approx(rewards)
            tied = [(chance, after) for chance, after in outcomes if after["seat"][0] != OVER]
            assert sum(chance for chance, _ in tied) == pytest.approx(goes_on)
            for field in ("hands", "left", "committed", "seat"):
                assert all((after[field] == averaged[field]).all() for _, after in tied)


def test_outcomes_are_checked():
    drawn = Drawn("liars_dice", num_dice=1, starter="first")
    state = np.zeros(1, drawn.variant.game.state)[0]
    assert drawn.deal(state, (2, 3)) is None
    assert state["counts"][0, 2] == state["counts"][1, 3] == 1
    with pytest.raises(ValueError, match="outcome 6 cannot be drawn here; outcomes are 0 to 5"):
        drawn.deal(state, (2, 6))
    with pytest.raises(ValueError, match="1 of 3 outcomes were not drawn"):
        drawn.deal(state, (2, 3, 4))
    assert drawn.deal(state, (1,)).words(4) == "dice 5"


@kernel
def deal_by_fraction(params, state):
    start_game(state)
    state["seat"] = 0 if dice.uniform(state) < 0.5 else 1


@kernel
def deal_past_the_helpers(params, state):
    start_game(state)
    state["rng"] += np.uint64(1)
    state["seat"] = 0


@kernel
def deal_from_many(params, state):
    start_game(state)
    state["seat"] = dice.below(state, 40_000)


@kernel
def deal_by_weights(params, state):
    start_game(state)
    state["seat"] = choose(state)


@kernel
def choose(state):
    return choose_weighted(state, np.array([1.0, 0.0, 3.0]), 3)


choose_weighted = dice.choose_weighted


def test_weighted_choices_are_listed_and_fractions_are_not():
    game = load("liars_dice")
    weighted = dataclasses.replace(game, deal=deal_by_weights)
    assert {int(s["seat"][0]): chance for chance, s in every_deal(Drawn(weighted))} == {0: 0.25, 2: 0.75}
    with pytest.raises(ValueError, match="other means than the helpers of dice_envs.core.dice"):
        Drawn(dataclasses.replace(game, deal=deal_past_the_helpers)).deal(np.zeros(1, game.state)[0])
    with pytest.raises(ValueError, match="a draw from 40000 outcomes is not listed; at most 32768 are"):
        Drawn(dataclasses.replace(game, deal=deal_from_many)).deal(np.zeros(1, game.state)[0])
    fractions = dataclasses.replace(game, deal=deal_by_fraction)
    assert not can_be_enumerated(fractions)
    with pytest.raises(ValueError, match="liars_dice draws fractions"):
        Drawn(fractions)


def test_a_place_that_is_not_taken_is_drawn_with_equal_chances():
    stream = new_streams(5, 1)
    taken = np.array([[4, -1], [0, 2]], np.int16)
    drawn = np.bincount([dice.below_except(stream[0], 6, taken) for _ in range(3000)], minlength=6)
    assert not drawn[[0, 2, 4]].any()
    assert_even(drawn[[1, 3, 5]])
