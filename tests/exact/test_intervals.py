"""Intervals hold as often as they say, with few values too and where rare ones are large."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import beta, binom, t

from dice_envs.exact.intervals import (
    MANY,
    anytime_half_width,
    half_width,
    mean_interval,
    ratio_half_width,
    results_half_width,
    share_half_width,
    t95,
)
from tests.support.subsets import few

FEW = arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1, width=16))


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 1000, 10**6])
def test_shares_have_the_limits_of_clopper_and_pearson(count):
    for wins in sorted({0, 1, count // 3, count // 2, count - 1, count}):
        lower, upper = mean_interval(np.array([0.0, 1.0]), 0, 1, np.array([count - wins, wins]))
        exact = (
            beta.ppf(0.025, wins, count - wins + 1) if wins else 0,
            beta.isf(0.025, wins + 1, count - wins) if wins < count else 1,
        )
        share = wins / count
        assert 0.9999 * (share - exact[0]) <= share - lower <= 1.005 * (share - exact[0])
        assert 0.9999 * (exact[1] - share) <= upper - share <= 1.005 * (exact[1] - share)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 10, 999, 1000, 1001, 10**6])
def test_students_points(degrees):
    assert t95(degrees) == pytest.approx(t.ppf(0.975, degrees), rel=1e-8)


@pytest.mark.parametrize("count", [3, 10, 40])
def test_other_samples_have_the_limits_of_weights_drawn_from_the_simplex(count):
    rng = np.random.default_rng(count)
    values = rng.exponential(0.1, count).clip(0, 1)
    weights = rng.dirichlet(np.ones(count + 1), 200_000)
    lower, upper = mean_interval(values, -0.2, 1.5)
    assert upper == pytest.approx(np.quantile(weights @ np.append(values, 1.5), 0.975), rel=0.01)
    assert lower == pytest.approx(np.quantile(weights @ np.append(values, -0.2), 0.025), rel=0.02, abs=0.001)


@pytest.mark.parametrize("count", [2, 10, 30])
def test_rare_losses_are_held_as_often_as_promised(count):
    """Enumerated: a large loss with chance p, or else none; and a small one besides."""
    wins = np.arange(count + 1)
    for small in (0.0, 0.1):
        limits = np.array([mean_interval(np.array([small, 1.0]), 0, 1, np.array([count - k, k])) for k in wins])
        for chance in (0.001, 0.01, 0.05, 0.1, 0.3, 0.6):
            mean = chance + (1 - chance) * small
            held = (limits[:, 0] <= mean) & (mean <= limits[:, 1])
            assert binom.pmf(wins, count, chance) @ held >= 0.95


@given(FEW, st.floats(0, 2), st.floats(0, 2))
@example(np.zeros(1), 5e-324, 0.0)
@example(np.full(3, 5e-324), 1e-313, 5e-324)
def test_limits_lie_around_the_mean_and_grow_with_what_is_possible(values, more_below, more_above):
    lower, upper = mean_interval(values, 0, 1)
    mean = values.mean()
    assert 0 <= lower <= mean + 1e-12
    assert mean - 1e-12 <= upper <= 1
    wider = mean_interval(values, -more_below, 1 + more_above)
    assert wider[0] <= lower + 1e-5
    assert wider[1] >= upper - 1e-5
    assert mean_interval(-values, -1, 0) == pytest.approx((-upper, -lower), abs=1e-5)
    assert mean_interval(np.repeat(values, 2), 0, 1) == mean_interval(values, 0, 1, np.full(len(values), 2))


def test_many_values_have_the_interval_of_the_normal_distribution():
    values = np.random.default_rng(1).beta(2, 3, 100_000)
    assert half_width(values, 0, 1) == pytest.approx(1.96 * values.std() / 100_000**0.5, rel=0.01)


@pytest.mark.parametrize("high", [1e-4, 0.1, 2000.0])
@pytest.mark.parametrize("count", [1, 5, 22, 29])
def test_values_that_are_all_as_large_as_possible_but_for_rounding(high, count):
    values = high * (1 + np.arange(count) % 5 * 2.0**-52)
    lower, upper = mean_interval(values, 0, high)
    assert upper == pytest.approx(high, rel=1e-12)
    assert high - lower == pytest.approx(high * (1 - 0.025 ** (1 / count)), rel=0.01)


@pytest.mark.parametrize("scale", [1e-6, 1e9])
def test_limits_grow_in_proportion_to_the_values(scale):
    values, counts = np.random.default_rng(1).random(20), np.full(20, 10**7)
    lower, upper = mean_interval(values, 0, 1, counts)
    mean = values.mean()
    found = mean_interval(scale * (values + 1000), 1000 * scale, 1001 * scale, counts)
    assert np.array(found) / scale - 1000 - mean == pytest.approx([lower - mean, upper - mean], rel=1e-3)


def test_without_values_everything_is_possible():
    assert mean_interval(np.array([]), -1, 1) == (-1, 1)
    assert half_width(np.array([]), -1, 1) == 2
    assert share_half_width(0.0, 0) == 1


@pytest.mark.parametrize(("size", "same"), [(MANY - 1, True), (MANY, False)])
def test_many_results_are_trusted(size, same):
    """The largest deviation seen, doubled, takes the place of a possible one that is far larger; not where all are alike."""
    values = np.random.default_rng(1).beta(2, 3, size)
    assert (results_half_width(values, 0, 1000) == half_width(values, 0, 1000)) == same
    assert results_half_width(values, 0, 1) == half_width(values, 0, 1)
    alike = values * 1e-9
    assert results_half_width(alike, 0, 1) == half_width(alike, 0, 1) == pytest.approx(3.69 / size, rel=0.01)
    if not same:
        assert results_half_width(values, 0, 1000) == pytest.approx(1.96 * values.std() / size**0.5, rel=0.2)


@few(1, ("chance", "size", "runs"), [(0.5, 1.0, 40), (0.5, 1.0, 400), (0.2, 0.1, 400), (0.01, 0.3, 400)])
def test_intervals_at_any_time_hold_at_all_looks(chance, size, runs):
    """Looking often and stopping when it is significant: usual intervals err in more than one run of ten."""
    rng, looks, wrong, usual = np.random.default_rng(2), range(50, 3001, 50 if runs > 40 else 150), 0, 0
    for _ in range(runs):
        values, mean = size * (rng.random(3000) < chance), size * chance
        off = [(abs(values[:count].mean() - mean), values[:count]) for count in looks]
        wrong += any(far > anytime_half_width(seen, 0, 1) for far, seen in off)
        usual += any(far > half_width(seen, 0, size) for far, seen in off)
    assert wrong <= 0.05 * runs
    assert usual > runs / 10


def test_intervals_at_any_time_are_not_much_wider():
    rng = np.random.default_rng(3)
    for count in (1000, 10_000):
        assert 1.5 < anytime_half_width(values := rng.integers(0, 2, count), 0, 1) / half_width(values, 0, 1) < 1.9
    assert anytime_half_width(np.array([]), 0, 1) == 1
    assert anytime_half_width(np.zeros(5), 0, 0) == 0


def test_a_share_of_all_but_for_rounding_has_an_interval():
    wholes = np.random.default_rng(1).random(100)
    assert ratio_half_width(wholes - 1e-17, wholes, 2.0) == pytest.approx(ratio_half_width(wholes, wholes, 2.0))
