"""The Shakes: the kept die, tallies, evaluations, optimal play, beside brute force, other libraries and published figures."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import beta

from dice_envs import configure
from dice_envs.agent import Uniform
from dice_envs.experiments.reproduce import printed
from dice_envs.experiments.reproduce.shakes import CHECKED, POLICIES
from dice_envs.games.shakes.exact.chances import Problem, argument_chances, best_of, beta_chances, kept_die, tallies
from dice_envs.games.shakes.exact.policies import as_policy, evaluate, solve
from tests.support.shakes_tools import policy_of, tally, win_by_brute_force
from tests.support.subsets import covering

SMALL = Problem((3, 1), num_patients=5, goal=3)
THREE = Problem((4, 1, 1), num_patients=4, goal=2)
SPECS = ["random", "ucb", "ucb:0.5", "greedy", "greedy:permutations", "thompson", "thompson:permutations", "argument"]


# --- brute force, written from the rules --------------------------------------------------------------------------


def distribution_by_brute_force(problem, policy):
    """The distribution of patients saved, by a walk through every game with every deal, tallies in their own order."""
    n = len(problem.efficacies)
    deals = list(itertools.permutations(problem.efficacies))
    result = np.zeros(problem.num_patients + 1)

    def walk(deal, treated, saved, chance):
        if sum(treated) == problem.num_patients:
            result[sum(saved)] += chance
            return
        for i, choice in enumerate(policy(*tally(treated, saved))[0]):
            if choice > 0:
                more = tuple(t + (j == i) for j, t in enumerate(treated))
                good = tuple(s + (j == i) for j, s in enumerate(saved))
                walk(deal, more, good, chance * choice * deal[i] / 6)
                walk(deal, more, saved, chance * choice * (6 - deal[i]) / 6)

    for deal in deals:
        walk(deal, (0,) * n, (0,) * n, 1 / len(deals))
    return result


@given(treated=st.integers(0, 60), data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_kept_die_is_a_beta_variable_rounded_up(treated, data):
    saved = data.draw(st.integers(0, treated))
    masses = np.diff(beta.cdf(np.arange(7) / 6, saved + 1, treated - saved + 1))
    assert np.allclose([float(p) for p in kept_die(treated, saved)], masses, atol=1e-12)
    assert sum(kept_die(treated, saved)) == 1


def test_the_kept_die_refuses_more_saved_than_treated():
    with pytest.raises(ValueError, match="saved must be a whole number from 0 to treated = 2, not 3"):
        kept_die(2, 3)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=4), st.sampled_from(["again", "random"]))
@settings(max_examples=30, deadline=None)
def test_the_argument_against_all_outcomes(pairs, ties):
    treated, saved = [good + bad for good, bad in pairs], [good for good, _ in pairs]
    dice = [kept_die(t, s) for t, s in zip(treated, saved, strict=True)]
    expected = [float(p) for p in win_by_brute_force(dice, ties)]
    assert np.allclose(argument_chances(*tally(treated, saved), ties)[0], expected, atol=1e-13)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=4))
@settings(max_examples=10, deadline=None)
def test_the_highest_beta_draw_against_numeric_integration(pairs):
    treated, saved = [good + bad for good, bad in pairs], [good for good, _ in pairs]
    drawn = [beta(s + 1, t - s + 1) for t, s in zip(treated, saved, strict=True)]
    chances = beta_chances(*tally(treated, saved))[0]
    assert math.isclose(chances.sum(), 1, abs_tol=1e-12)
    for i, variable in enumerate(drawn):
        others = [other for j, other in enumerate(drawn) if j != i]
        expected, _ = integrate.quad(lambda x: variable.pdf(x) * math.prod(o.cdf(x) for o in others), 0, 1, limit=200)  # noqa: B023
        assert abs(chances[i] - expected) < 1e-7


def test_ties_share_the_choice():
    assert best_of(np.array([[1.0, 3.0, 3.0], [np.inf, 0.0, 5.0]])).tolist() == [[0, 0.5, 0.5], [1, 0, 0]]


@covering(("spec", "problem"), SPECS, [SMALL, THREE])
def test_distributions_against_every_game(problem, spec):
    policy = policy_of(spec, num_players=len(problem.efficacies))
    expected = distribution_by_brute_force(problem, policy)
    for merged in (True, False):
        result = evaluate(problem, policy, merged)
        assert np.allclose(result.distribution, expected, atol=1e-12)
        assert math.isclose(result.saved, expected @ np.arange(len(expected)), abs_tol=1e-12)
        assert math.isclose(result.win, expected[problem.goal :].sum(), abs_tol=1e-12)
        assert math.isclose(result.shares.sum(), 1, abs_tol=1e-12)
        # Patients saved are the sum of the given treatments' efficacies.
        assert math.isclose(result.saved, problem.num_patients * result.shares @ problem.kinds / 6, abs_tol=1e-12)
        assert math.isclose(result.most_dice.sum(), 1, abs_tol=1e-12)
        assert math.isclose(result.most_treated.sum(), 1, abs_tol=1e-12)


FIVE, SIX = (Problem.of(configure("shakes", num_players=number).options) for number in (5, 6))


@pytest.mark.parametrize("problem", [SMALL, THREE, Problem((5, 3, 2), 4, 3), FIVE, pytest.param(SIX, marks=pytest.mark.slow)])
def test_optimal_play_reaches_its_value(problem):
    """That no other play reaches more is a test of `tests/exact/test_response_values.py`."""
    argument = evaluate(problem, argument_chances)
    for reward in ("saved", "win"):
        solution = solve(problem, reward)
        for merged in (True, False) if problem.num_patients < 10 else (True,):
            found = evaluate(problem, solution.chances, merged).reached(reward)
            assert math.isclose(found, solution.value, abs_tol=1e-10)
        assert solution.value > argument.reached(reward)
    assert math.isclose(argument.distribution.sum(), 1, abs_tol=1e-12)


def test_thompson_sampling_matches_chances_and_the_argument_does_not():
    problem = Problem.of(configure("shakes", num_players=4).options)
    assert evaluate(problem, policy_of("thompson:permutations", num_players=4)).matching_gap < 1e-12
    assert evaluate(problem, policy_of("argument", num_players=4)).matching_gap > 0.05


def test_most_dice_counts_the_last_argument():
    # With two patients: one die more than the first patient's maester has treated, which is 1.
    result = evaluate(Problem((3, 1), 2, 1), argument_chances)
    assert result.most_dice.tolist() == [0, 0, 1]
    # The probability that the other maester wins the second patient, given the result of the first.
    win = [argument_chances(*tally([1, 0], [s, 0]))[0, 1] for s in (0, 1)]
    assert math.isclose(result.most_treated[1], win[0] * 2 / 3 + win[1] / 3)


def figures():
    return [pytest.param(*key, text, id=f"{key[1]}-{key[0]}-{key[2]}") for key, text in CHECKED.items()]


@pytest.mark.parametrize(("num_players", "name", "column", "published"), figures())
def test_figures_computed_independently(num_players, name, column, published):
    spec, ties = POLICIES[name]
    problem = Problem.of(configure("shakes", num_players=num_players).options)
    result = evaluate(problem, policy_of(spec, num_players=num_players, ties=ties))
    assert printed("", "", published, getattr(result, column)).agrees


def test_the_notebooks_simulation():
    result = evaluate(
        Problem.of(configure("shakes", num_players=4).options), policy_of("argument", num_players=4, ties="random")
    )
    # 1,000 games: 688 wins, and 272 in which some treatment was given to more than 10 patients.
    for seen, chance in ((688, result.win), (272, result.most_treated[11:].sum())):
        assert abs(seen - 1000 * chance) < 3 * math.sqrt(1000 * chance * (1 - chance))


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="reward must be 'saved' or 'win', not 'lives'"):
        solve(SMALL, "lives")
    with pytest.raises(ValueError, match="2 chances that add up to 1"):
        evaluate(SMALL, lambda treated, saved: np.full(treated.shape, 0.4))
    with pytest.raises(ValueError, match="num_players=6 has too many tallies to tell the treatments apart"):
        tallies(SIX, merged=False)
    with pytest.raises(ValueError, match="the game must be shakes"):
        as_policy(Uniform(), configure("thirties"))
    with pytest.raises(ValueError, match="states no probabilities"):
        evaluate(SMALL, as_policy(object(), configure("shakes", mode="physician")))
