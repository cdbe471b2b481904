"""Means without luck: unbiased, with intervals that hold, never much wider than the plain ones."""

import math

import numpy as np
import pytest

from dice_envs.evaluation.estimate import LEAST_ADJUSTED, LEAST_FITTED, adjust, is_fair
from tests.support.subsets import few


def in_turn(games):
    return np.arange(games) % 2


def games_of(rng, games, skill, slope=1.0):
    """Results of games, in two seats of which one is worth 0.2 more; only `slope` of the luck is known as such."""
    expected = np.where(in_turn(games) == 0, 0.6, 0.4)
    lost = rng.exponential(skill, games)
    luck = rng.normal(0, 0.5, games) / slope**0.5
    return expected - lost + luck, expected, lost + (slope - 1) * luck, in_turn(games)


@few(1, "runs", [100, 300])
@pytest.mark.parametrize("slope", [1.0, 0.8])
def test_intervals_hold_the_true_mean_as_often_as_they_say(slope, runs):
    rng = np.random.default_rng(1)
    found = [adjust(*games_of(rng, 100, 0.1, slope)) for _ in range(runs)]
    truth = 0.5 - 0.1
    for value, error in (("value", "error"), ("plain", "plain_error")):
        held = sum(abs(getattr(each, value) - truth) <= getattr(each, error) for each in found)
        assert 0.95 * runs - 4 * math.sqrt(0.95 * 0.05 * runs) <= held  # the plain interval is too wide: seats are no luck
    values = np.array([each.value for each in found])
    assert abs(values.mean() - truth) < 4 * values.std() / math.sqrt(runs)


def test_the_coefficient_is_the_slope_of_results_on_luck():
    found = adjust(*games_of(np.random.default_rng(2), 20_000, 0.01, slope=0.8))
    assert found.coefficient == pytest.approx(1 / 0.8, rel=0.01)
    assert found.variance_ratio > 1000


@few(1, "runs", [40, 300])
def test_coefficients_come_from_other_games(runs):
    """With luck that tells nothing, a coefficient fitted to the same games would always narrow the interval."""
    rng, flat = np.random.default_rng(3), np.zeros(LEAST_FITTED)
    found = []
    for _ in range(runs):
        results = rng.normal(size=flat.shape)
        found.append(
            math.log(adjust(results, flat, rng.normal(size=flat.shape) - results, in_turn(LEAST_FITTED)).variance_ratio)
        )
    assert np.mean(found) < -2 * np.std(found) / math.sqrt(len(found))


@pytest.mark.parametrize(
    ("games", "most", "coefficient"), [(LEAST_FITTED - 1, None, 1), (LEAST_ADJUSTED - 1, None, 0), (LEAST_ADJUSTED - 1, 0.5, 1)]
)
def test_few_games_have_no_coefficient_of_their_own(games, most, coefficient):
    """Of very few nothing is taken out, unless no game can be given away as a whole."""
    assert adjust(*games_of(np.random.default_rng(3), games, 0.1), most_lost=(most,)).coefficient == coefficient


@pytest.mark.parametrize("most", [1.0, 0.2, 0.0])
def test_a_player_who_loses_nothing_has_no_luck_left(most):
    rng = np.random.default_rng(4)
    found = adjust(rng.integers(0, 2, 200).astype(float), np.full(200, 0.5), np.zeros(200), in_turn(200), most_lost=(most,))
    assert found.value == pytest.approx(0.5, abs=1e-12)
    assert found.error == pytest.approx(
        most * (1 - 0.025 ** (1 / 200)), rel=0.01
    )  # a loss that no game showed may be this rare
    assert found.variance_ratio is None
    assert found.variance_interval is None
    assert found.plain_error > 0.06


def test_games_that_all_end_alike_prove_little():
    flat = np.zeros(10_000)
    lost = np.random.default_rng(6).uniform(0, 1, flat.shape)
    found = adjust(flat, flat + 0.5, lost, in_turn(10_000))
    assert (found.value, found.plain, found.variance_ratio) == (0.0, 0.0, 1.0)
    assert found.error == found.plain_error == pytest.approx(1 - 0.025 ** (1 / 10_000), rel=0.005)  # of no win in 10,000
    assert adjust(flat, flat + 0.5, lost, in_turn(10_000), high=2.0).error == pytest.approx(2 * found.error)


@few(1, "runs", [40, 300])
def test_the_interval_of_the_ratio_holds_it(runs):
    rng, held = np.random.default_rng(5), 0
    for _ in range(runs):
        luck, lost = rng.normal(0, 0.5, 400), rng.normal(0.2, 0.1, 400)
        low, high = adjust(0.5 - lost + luck, np.full(400, 0.5), lost, in_turn(400)).variance_interval
        held += low <= (0.5**2 + 0.1**2) / 0.1**2 <= high
    assert held > 0.95 * runs - 4 * math.sqrt(0.95 * 0.05 * runs)


def test_what_a_seat_is_worth_is_no_luck():
    """Five dice against one: luck hardly varies, so a slope that also explains the seats would be huge."""
    rng = np.random.default_rng(8)
    strong = in_turn(200) == 0
    expected = np.where(strong, 0.9994, 0.0006)
    results = np.where(rng.random(200) < 0.0006, ~strong, strong).astype(float)
    found = adjust(results, expected, rng.exponential(1e-5, 200) * (rng.random(200) < 0.1), in_turn(200))
    assert found.value == pytest.approx(0.5, abs=1e-4)
    assert found.error < 0.02


def test_an_odd_number_of_games_counts_seats_alike():
    expected = np.where(in_turn(3) == 0, 0.66, 0.34)
    found = adjust(expected, expected, np.zeros(3), in_turn(3))
    assert found.value == found.plain == pytest.approx(0.5)
    assert found.error > 0.3


def test_values_stay_where_results_can_be():
    flat = np.zeros(20)
    found = adjust(flat, flat + 0.5, np.linspace(0.8, 2, 20), in_turn(20))
    assert found.value == 0
    assert 0 < found.error <= 1


def test_luck_by_the_opponents_losses():
    """Both players know what the other lost: either alone leaves the loser's noise, both together nothing."""
    rng = np.random.default_rng(9)
    own, other = rng.exponential(0.1, (2, 400))
    luck, half = rng.normal(0, 0.2, 400), np.full(400, 0.5)
    starts, lost = np.stack([half + 0.1, half - 0.1]), np.stack([own, other])
    found = adjust(half - own + other + luck, starts, lost, in_turn(400), most_lost=(None, None), losers=(1, -1))
    assert abs(found.value - 0.5) <= found.error < 0.05


@pytest.mark.parametrize("chance", [0.5, 0.05, 0.002])
def test_luck_is_fair_unless_its_mean_is_not_0(chance):
    """Rare luck is told from unfair one: where the rare case was never seen, the mean proves nothing."""
    rng = np.random.default_rng(10)
    luck = (rng.random((200, 500)) < chance) - chance
    assert all(is_fair(each, 1.0) for each in luck)
    assert sum(is_fair(each + 0.25, 1.0) for each in luck) < 10


def test_intervals_for_all_looks_see_earlier_results_alone():
    """What was seen at a look stays as it was: later games change neither coefficients nor bounds of earlier ones."""
    rng, half, seat = np.random.default_rng(12), np.full(2001, 0.5), in_turn(2001)
    lost = rng.uniform(0, 0.4, 2001)
    games = (rng.random(2001) < half - lost).astype(float), half, lost, seat
    alone, among = (adjust(*(each[:count] for each in games), anytime=True) for count in (2000, 2001))
    assert alone == among  # a whole round of the seats
    assert abs(alone.value - 0.3) < alone.error < alone.plain_error / 2
    assert 1.4 < alone.error / adjust(*games).error < 2.2
