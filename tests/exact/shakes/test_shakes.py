"""The Shakes: exact analysis and agents, against brute force, other libraries, play, and published figures."""

import functools
import itertools
import json
import math
from fractions import Fraction

import icepool
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import beta
from typer.testing import CliRunner

from dice_envs import configure, measure
from dice_envs.agent import AgentError, Turn, Uniform
from dice_envs.agents import factories, make
from dice_envs.agents.shakes import TallyPolicy
from dice_envs.core.dice import new_streams
from dice_envs.exact import Effort
from dice_envs.exact.shakes import (
    Problem,
    argument_chances,
    as_policy,
    as_tally_team,
    as_team,
    best_of,
    beta_chances,
    efficacy_chances,
    evaluate,
    kept_die,
    measures,
    solve,
    success_chances,
    tallies,
)
from dice_envs.experiments.__main__ import app
from dice_envs.experiments.reproduce.shakes import CHECKED, POLICIES, rounds_to
from dice_envs.games.shakes import EFFICACIES
from tests.support.shakes_tools import assert_distributed, states_with

SMALL = Problem((3, 1), num_patients=5, goal=3)
THREE = Problem((4, 1, 1), num_patients=4, goal=2)
SPECS = ["random", "ucb", "ucb:0.5", "greedy", "greedy:permutations", "thompson", "thompson:permutations", "argument"]


def policy_of(spec, **options):
    """A tally policy of the spec, with the game's options fixed."""
    agent, chosen = make(spec), configure("shakes", mode="physician", **options).options
    if isinstance(agent, TallyPolicy):
        return lambda treated, saved: agent.chances(chosen, treated, saved)
    return lambda treated, saved: np.full(treated.shape, 1 / treated.shape[1])


def tally(treated, saved):
    return np.array([treated], np.int16), np.array([saved], np.int16)


# --- brute force, written from the rules --------------------------------------------------------------------------


def win_by_brute_force(dice, ties):
    """Who wins when maester i keeps v with chance dice[i][v]: all outcomes listed, in fractions."""
    n = len(dice)

    @functools.cache
    def wins(tied):
        direct, again = [Fraction(0)] * n, Fraction(0)
        for faces in itertools.product(range(6), repeat=len(tied)):
            chance = math.prod(dice[i][v] for i, v in zip(tied, faces, strict=True))
            top = tuple(i for i, v in zip(tied, faces, strict=True) if v == max(faces))
            if ties == "random" or len(top) == 1:
                for i in top:
                    direct[i] += chance / len(top)
            elif top == tied:
                again += chance
            else:
                for i, share in enumerate(wins(top)):
                    direct[i] += chance * share
        return [share / (1 - again) for share in direct]

    return wins(tuple(range(n)))


def likelihood(efficacies, treated, saved):
    return math.prod(Fraction(e, 6) ** s * Fraction(6 - e, 6) ** (t - s) for e, t, s in zip(efficacies, treated, saved))


def distribution_by_brute_force(problem, policy):
    """Patients saved, by walking through every game with every deal of the efficacies, tallies in their own order."""
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


def optimum_by_brute_force(problem, reward):
    """Bayes-optimal expectation in fractions, over every ordered tally and every deal."""
    n = len(problem.efficacies)
    deals = list(itertools.permutations(problem.efficacies))

    @functools.cache
    def value(treated, saved):
        if sum(treated) == problem.num_patients:
            return Fraction(sum(saved) if reward == "saved" else sum(saved) >= problem.goal)
        weights = [likelihood(deal, treated, saved) for deal in deals]
        best = Fraction(-1)
        for i in range(n):
            p = sum(w * deal[i] for w, deal in zip(weights, deals, strict=True)) / sum(weights) / 6
            more = tuple(t + (j == i) for j, t in enumerate(treated))
            good = tuple(s + (j == i) for j, s in enumerate(saved))
            best = max(best, p * value(more, good) + (1 - p) * value(more, saved))
        return best

    return value((0,) * n, (0,) * n)


# --- closed forms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("treated", range(7))
def test_the_kept_die_against_icepool(treated):
    for saved in range(treated + 1):
        die = icepool.d6.pool(treated + 1)[saved]
        assert kept_die(treated, saved) == [Fraction(die.probability(v)) for v in range(1, 7)]


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


@given(st.integers(2, 6), st.data())
@settings(max_examples=30, deadline=None)
def test_the_posterior_against_bayes_rule(num_players, data):
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=num_players, max_size=num_players))
    treated, saved = [good + bad for good, bad in pairs], [good for good, _ in pairs]
    problem = Problem(EFFICACIES[num_players], 18, 7)
    deals = sorted(set(itertools.permutations(problem.efficacies)))
    weights = [likelihood(deal, treated, saved) for deal in deals]
    chances = efficacy_chances(problem, *tally(treated, saved))[0]
    for i, k in itertools.product(range(num_players), range(len(problem.kinds))):
        with_kind = sum(w for w, deal in zip(weights, deals, strict=True) if deal[i] == problem.kinds[k])
        assert math.isclose(chances[i, k], with_kind / sum(weights), abs_tol=1e-12)
    means = success_chances(problem, *tally(treated, saved))[0]
    assert np.allclose(means, chances @ np.array(problem.kinds) / 6)


def test_ties_share_the_choice():
    assert best_of(np.array([[1.0, 3.0, 3.0], [np.inf, 0.0, 5.0]])).tolist() == [[0, 0.5, 0.5], [1, 0, 0]]


# --- tallies, policies and optimal play ---------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [SMALL, THREE])
def test_every_tally_is_there_once(problem):
    n, patients = len(problem.efficacies), problem.num_patients
    pairs = [(t, s) for t in range(patients + 1) for s in range(t + 1)]
    for count in range(patients + 1):
        ordered = [c for c in itertools.product(pairs, repeat=n) if sum(t for t, _ in c) == count]
        assert len(ordered) == math.comb(count + 2 * n - 1, 2 * n - 1)
        assert len(tallies(problem, merged=False)[count].keys) == len(ordered)
        assert len(tallies(problem)[count].keys) == len({tuple(sorted(c)) for c in ordered})


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("problem", [SMALL, THREE])
def test_distributions_against_every_game(problem, spec):
    policy = policy_of(spec, num_players=len(problem.efficacies))
    expected = distribution_by_brute_force(problem, policy)
    for merged in (True, False):
        result = evaluate(problem, policy, merged)
        assert np.allclose(result.distribution, expected, atol=1e-12)
        assert math.isclose(result.saved, expected @ np.arange(len(expected)), abs_tol=1e-12)
        assert math.isclose(result.win, expected[problem.goal :].sum(), abs_tol=1e-12)
        assert math.isclose(result.shares.sum(), 1, abs_tol=1e-12)
        # What is saved is what the treatments given are worth.
        assert math.isclose(result.saved, problem.num_patients * result.shares @ problem.kinds / 6, abs_tol=1e-12)
        assert math.isclose(result.most_dice.sum(), 1, abs_tol=1e-12)
        assert math.isclose(result.most_treated.sum(), 1, abs_tol=1e-12)


@pytest.mark.parametrize("reward", ["saved", "win"])
@pytest.mark.parametrize("problem", [SMALL, THREE, Problem((4, 2, 1, 1), 4, 2), Problem((5, 3, 2), 4, 3)])
def test_optimal_play_against_brute_force(problem, reward):
    solution = solve(problem, reward)
    assert math.isclose(solution.value, optimum_by_brute_force(problem, reward), abs_tol=1e-12)
    for merged in (True, False):
        result = evaluate(problem, solution.chances, merged)
        assert math.isclose(getattr(result, reward), solution.value, abs_tol=1e-12)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_no_policy_beats_optimal_play(num_players):
    problem = Problem.of(configure("shakes", num_players=num_players).options)
    for reward in ("saved", "win"):
        best = solve(problem, reward).value
        for spec in SPECS:
            assert getattr(evaluate(problem, policy_of(spec, num_players=num_players)), reward) <= best + 1e-12


def test_thompson_sampling_matches_chances_and_the_argument_does_not():
    problem = Problem.of(configure("shakes", num_players=4).options)
    assert evaluate(problem, policy_of("thompson:permutations", num_players=4)).matching_gap < 1e-12
    assert evaluate(problem, policy_of("argument", num_players=4)).matching_gap > 0.05


def test_most_dice_counts_the_last_argument():
    # With two patients: one die more than the first patient's maester has treated, which is 1.
    result = evaluate(Problem((3, 1), 2, 1), argument_chances)
    assert result.most_dice.tolist() == [0, 0, 1]
    # The second patient goes to the other maester with the chance that it wins against what happened on the first.
    win = [argument_chances(*tally([1, 0], [s, 0]))[0, 1] for s in (0, 1)]
    assert math.isclose(result.most_treated[1], win[0] * 2 / 3 + win[1] / 3)


def figures():
    return [pytest.param(*key, text, id=f"{key[1]}-{key[0]}-{key[2]}") for key, text in CHECKED.items()]


@pytest.mark.parametrize(("num_players", "name", "column", "published"), figures())
def test_figures_computed_independently(num_players, name, column, published):
    spec, ties = POLICIES[name]
    problem = Problem.of(configure("shakes", num_players=num_players).options)
    result = evaluate(problem, policy_of(spec, num_players=num_players, ties=ties))
    assert rounds_to(published, getattr(result, column))


def test_the_notebooks_simulation():
    result = evaluate(
        Problem.of(configure("shakes", num_players=4).options), policy_of("argument", num_players=4, ties="random")
    )
    # 1,000 games: 688 wins, and 272 in which some treatment was given to more than 10 patients.
    for seen, chance in ((688, result.win), (272, result.most_treated[11:].sum())):
        assert abs(seen - 1000 * chance) < 3 * math.sqrt(1000 * chance * (1 - chance))


@pytest.mark.parametrize("num_players", [5, pytest.param(6, marks=pytest.mark.slow)])
def test_five_and_six_players_are_solved(num_players):
    problem = Problem.of(configure("shakes", num_players=num_players).options)
    argument = evaluate(problem, argument_chances)
    for reward in ("saved", "win"):
        solution = solve(problem, reward)
        result = evaluate(problem, solution.chances)
        assert math.isclose(getattr(result, reward), solution.value, abs_tol=1e-10)
        assert solution.value > getattr(argument, reward)
    assert math.isclose(argument.distribution.sum(), 1, abs_tol=1e-12)


def test_too_many_tallies_are_refused():
    with pytest.raises(ValueError, match=r"num_patients=40 with num_players=6 has about [\d,]+ tallies"):
        solve(Problem(EFFICACIES[6], 40, 7), "saved")
    with pytest.raises(ValueError, match="num_players=6 has too many tallies to tell the treatments apart"):
        tallies(Problem(EFFICACIES[6], 18, 7), merged=False)


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="reward must be 'saved' or 'win', not 'lives'"):
        solve(SMALL, "lives")
    with pytest.raises(ValueError, match="2 chances that add up to 1"):
        evaluate(SMALL, lambda treated, saved: np.full(treated.shape, 0.4))
    with pytest.raises(ValueError, match='variation="cooperative", not "competitive"'):
        Problem.of(configure("shakes", variation="competitive").options)
    with pytest.raises(ValueError, match='mode="physician"'):
        as_policy(Uniform(), configure("shakes"))
    with pytest.raises(ValueError, match="states no probabilities"):
        evaluate(SMALL, as_policy(object(), configure("shakes", mode="physician")))


# --- measures -----------------------------------------------------------------------------------------------------


class Listener:
    """Argues by an arbitrary function of all that it may see: the tally, the others' dice, its seat and who opened."""

    @staticmethod
    def quarters(treated, saved, strength, seat, opener):
        """The chance that the seat argues, in quarters; seats as they are at the table."""
        heard = 3 * np.asarray(treated) + 5 * np.asarray(saved) + 7 * np.asarray(strength, np.int64)
        return (heard @ np.arange(2, 2 + heard.shape[-1]) + 3 * np.asarray(seat, np.int64) + opener) % 5

    def probabilities(self, turn):
        n, states = turn.params.num_players, turn.states
        seen = [states[name][:, :n] for name in ("treated", "saved", "strength")]
        argues = np.where(turn.legal[:, 0], self.quarters(*seen, states["seat"], states["opener"]) / 4, 1.0)
        return np.stack([1 - argues, argues], axis=1)

    def act(self, turn):
        drawn = turn.rng.random(len(turn))
        return (drawn < self.probabilities(turn)[:, 1]).astype(np.int64)


class Hidden:
    """Plays as another agent does, without its attribute `tally_alone`."""

    def __init__(self, spec):
        self.other = make(spec)

    def act(self, turn):
        return self.other.act(turn)

    def probabilities(self, turn):
        return self.other.probabilities(turn)


def uniformly(observations, masks):
    return masks / masks.sum(axis=1, keepdims=True)


def team_by_brute_force(agent, n, opener, treated, saved, ties):
    """Whose treatment the patient gets: all that the maesters may say and throw, in fractions."""
    dice = [kept_die(t, s) for t, s in zip(treated, saved, strict=True)]
    wins = [Fraction(0)] * n

    def speak(spoken, strength, chance):
        if spoken == n:
            top = [i for i in range(n) if strength[i] == max(strength)]
            again = win_by_brute_force([dice[i] for i in top], "again")
            for i, share in zip(top, again, strict=True):
                wins[i] += chance * (share if ties == "again" else Fraction(1, len(top)))
            return
        seat = (opener + spoken) % n
        forced = spoken == n - 1 and not any(strength)
        argues = Fraction(1) if forced else Fraction(int(agent.quarters(treated, saved, strength, seat, opener)), 4)
        for kept in range(7):
            said = 1 - argues if kept == 0 else argues * dice[seat][kept - 1]
            if said:
                speak(spoken + 1, [*strength[:seat], kept, *strength[seat + 1 :]], chance * said)

    speak(0, [0] * n, Fraction(1))
    return [float(share) for share in wins]


@pytest.mark.parametrize("ties", ["again", "random"])
@pytest.mark.parametrize(("treated", "saved"), [((3, 2), (1, 2)), ((2, 0, 1), (1, 0, 0)), ((4, 1, 3), (4, 0, 2))])
def test_a_tables_policy_against_all_that_may_be_said(treated, saved, ties):
    n, patients = len(treated), sum(treated)
    variant = configure("shakes", num_players=n, ties=ties)
    for first in range(n):
        policy = as_team(Listener(), variant, first)
        expected = team_by_brute_force(Listener(), n, (first + patients) % n, treated, saved, ties)
        assert np.allclose(policy(*tally(treated, saved))[0], expected, atol=1e-13)


def test_what_only_resembles_random_play_is_asked():
    class Last(Uniform):
        def probabilities(self, turn):
            return np.eye(turn.legal.shape[1])[np.full(len(turn), -1)]

    problem = Problem.of(configure("shakes").options)
    always = evaluate(problem, lambda treated, saved: np.eye(3)[np.full(len(treated), 2)], merged=False)
    assert measure("shakes", Last()).measures[1].value == pytest.approx(always.win, abs=1e-12)


@pytest.mark.parametrize("ties", ["again", "random"])
@pytest.mark.parametrize("spec", ["random", "bayes", "thompson", "ucb", "argument", "dogmatic"])
def test_asking_once_a_tally_is_enough_for_agents_that_promise_it(spec, ties):
    variant = configure("shakes", num_players=3, ties=ties, num_patients=5, goal=2)
    levels = tallies(Problem.of(variant.options), merged=False)[:-1]
    treated, saved = (np.concatenate([getattr(level, name) for level in levels]) for name in ("treated", "saved"))
    for first in range(3):
        teams = [each(make(spec), variant, first)(treated, saved) for each in (as_team, as_tally_team)]
        assert np.allclose(*teams, atol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("ties", ["again", "random"])
@pytest.mark.parametrize("agent", ["random", "thompson", Listener()])
def test_the_exact_measure_of_a_table_against_play(agent, ties, monkeypatch):
    options = {"mode": "maesters", "num_players": 3, "num_patients": 4, "goal": 2, "ties": ties}
    exact = measure("shakes", agent, **options)
    monkeypatch.setattr(measures, "MOST_ASKED", 0)
    monkeypatch.setattr(measures, "_merges", lambda variant, agent: False)
    played = measure("shakes", agent, sample=40_000, seed=5, **options)
    for one, other in zip(exact.measures, played.measures, strict=True):
        assert one.error == 0 < other.error < 0.02
        assert (one.name, one.optimum) == (other.name, other.optimum)
        assert other.value == pytest.approx(one.value, abs=2 * other.error)


@pytest.mark.thorough
@pytest.mark.parametrize("num_players", [2, 3])
@pytest.mark.parametrize("mode", ["physician", "maesters"])
@pytest.mark.parametrize("reward", ["saved", "win"])
def test_random_play_scores_0_bayes_1_and_others_between(reward, mode, num_players):
    options = {"reward": reward, "mode": mode, "num_players": num_players}
    assert measure("shakes", "random", **options).score == 0
    assert measure("shakes", uniformly, **options).score == pytest.approx(0, abs=1e-12)
    for spec in ("bayes", f"bayes:{reward}", Hidden("bayes")):
        assert measure("shakes", spec, **options).score == pytest.approx(1, abs=1e-9)
    for spec in ("thompson", "thompson:permutations", "greedy", "ucb", "argument"):
        found = measure("shakes", spec, **options)
        assert 0 < found.score < 1
        assert [each.name for each in found.measures] == ["patients saved", "P(win)"][:: 1 if reward == "saved" else -1]


@pytest.mark.thorough
@pytest.mark.parametrize("num_players", [2, 3, 4, 5])
@pytest.mark.parametrize("ties", ["again", "random"])
def test_a_table_that_always_argues_is_the_argument(num_players, ties):
    problem = Problem.of(configure("shakes", num_players=num_players).options)
    exact = evaluate(problem, lambda treated, saved: argument_chances(treated, saved, ties))
    variant = configure("shakes", num_players=num_players, ties=ties)
    for agent in [make("dogmatic"), make("argument")] + [Hidden("dogmatic")] * (num_players < 4):
        saved, win = measures.measure(variant, agent, Effort())  # without measuring random play too, which is slow
        assert (saved.value, win.value) == pytest.approx((exact.saved, exact.win), abs=1e-12)
        assert saved.error == win.error == 0


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("spec", ["random", "bayes", "thompson", "greedy:permutations"])
def test_a_physicians_measure_is_its_evaluation(spec, num_players):
    for reward in ("saved", "win"):
        options = {"mode": "physician", "num_players": num_players, "reward": reward}
        problem = Problem.of(configure("shakes", **options).options)
        exact = evaluate(problem, policy_of(spec, num_players=num_players, reward=reward))
        for each in measure("shakes", spec, **options).measures:
            name = "saved" if each.name == "patients saved" else "win"
            assert each.value == pytest.approx(getattr(exact, name), abs=1e-12)
            assert each.optimum == solve(problem, name).value
            assert each.gap == pytest.approx(each.optimum - each.value, abs=1e-12)
            assert each.error == 0


@pytest.mark.thorough
def test_where_there_are_too_many_positions_games_are_played():
    options = {"mode": "maesters", "num_players": 5}
    variant = configure("shakes", **options)
    random = measure(variant, "random", sample=2_000)
    assert random.score == 0  # by the same games
    assert measure(variant, "random", sample=2_000) == random
    assert measure(variant, "random", sample=2_000, seed=1).measures != random.measures
    assert "2,000 games played: 42,181,425 positions are too many" in random.measures[0].note
    best = measure(variant, Hidden("bayes"), sample=2_000).measures
    for each in best:
        assert 0 < each.error < 0.2
        assert each.value == pytest.approx(each.optimum, abs=2 * each.error)
    assert measure(variant, "bayes", sample=2_000).score == pytest.approx(1, abs=1e-9)
    physician = measure("shakes", Hidden("random"), num_players=6, sample=2_000)
    assert physician.score == pytest.approx(0, abs=0.05)
    assert measure("shakes", "random", num_players=6).measures[0].error == 0


def test_agents_that_state_probabilities_alone_are_played_too():
    class States:
        def probabilities(self, turn):
            return Uniform().probabilities(turn)

    found = measure("shakes", States(), num_players=6, sample=2_000).measures[0]
    assert found.value == pytest.approx(6, abs=2 * found.error)


def test_illegal_play_names_the_agent():
    class Silent:
        def act(self, turn):
            return np.zeros(len(turn), np.int64)

    with pytest.raises(AgentError, match=r"Silent in shakes, seat \d of game \d+: action 0 \(yield\) is not legal now"):
        measure("shakes", Silent(), mode="maesters", num_players=4, sample=200)


def test_agents_that_only_act_or_answer_at_random_are_measured():
    class Acts:
        def __init__(self, spec):
            self.agent = make(spec)

        def act(self, turn):
            return self.agent.act(turn)

    class Wavers:
        """Sure of the first patient; after that its probabilities are drawn."""

        def probabilities(self, turn):
            drawn = turn.rng.random(turn.legal.shape) if turn.observations[0, -1] < 1 else np.ones(turn.legal.shape)
            return drawn / drawn.sum(axis=1, keepdims=True)

    small = {"num_players": 2, "num_patients": 5, "goal": 3}
    assert measure("shakes", Acts("dogmatic"), mode="maesters", **small).measures == pytest.approx(
        measure("shakes", Hidden("dogmatic"), mode="maesters", **small).measures
    )
    for agent, exact in ((Acts("thompson"), "thompson"), (Wavers(), "random")):
        sampled, known = (measure("shakes", each, **small).measures[0] for each in (agent, exact))
        assert known.error == 0 < sampled.error < 0.1
        assert sampled.value == pytest.approx(known.value, abs=2 * sampled.error)


def test_progress_of_a_measure_is_told():
    told = []
    measure("shakes", uniformly, mode="maesters", done=lambda amount, total: told.append((amount, total)))
    assert {total for _, total in told} == {3 * 12_376}
    assert sum(amount for amount, _ in told) == 3 * 12_376


@pytest.mark.parametrize(
    ("agent", "options", "message"),
    [
        (
            "random",
            {"mode": "maesters", "variation": "competitive"},
            "variation must be 'cooperative' for an exact measure, not",
        ),
        ("random", {"num_players": 6, "num_patients": 40}, r"num_patients=40 with num_players=6 has about [\d,]+ tallies"),
        ("dogmatic", {}, "dogmatic is a maester"),
        (uniformly, {"num_players": 6, "sample": 10}, "sample must be a whole number from 100 to 100000000, not 10"),
    ],
)
def test_what_cannot_be_measured_is_refused(agent, options, message):
    with pytest.raises(ValueError, match=message):
        measure("shakes", agent, **options)


# --- agents -------------------------------------------------------------------------------------------------------

AGENTS = [
    "ucb",
    "greedy",
    "greedy:permutations",
    "thompson",
    "thompson:permutations",
    "argument",
    "bayes",
    "bayes:saved",
    "bayes:win",
]


def turn_of(variant, treated, saved, count, seed=3):
    return Turn(variant, states_with(variant, treated, saved, count, seed), np.arange(count), new_streams(seed, count))


@pytest.mark.parametrize("spec", AGENTS)
@pytest.mark.parametrize(
    ("treated", "saved"), [((0, 0, 0, 0), (0, 0, 0, 0)), ((5, 2, 2, 0), (2, 1, 1, 0)), ((9, 8, 0, 0), (6, 0, 0, 0))]
)
def test_physicians_act_as_they_say(spec, treated, saved):
    variant = configure("shakes", mode="physician", num_players=4)
    agent = make(spec)
    chances = agent.probabilities(turn_of(variant, treated, saved, 1))[0]
    actions = agent.act(turn_of(variant, treated, saved, 10_000))
    counts = np.bincount(actions, minlength=4)
    if (chances > 1 - 1e-12).any():
        assert counts[chances.argmax()] == 10_000
    else:
        assert_distributed(counts, chances)


@given(st.permutations(range(4)), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=4, max_size=4))
@settings(max_examples=25, deadline=None)
def test_policies_go_with_the_treatments_when_they_change_places(order, pairs):
    treated, saved = np.array([[g + b for g, b in pairs]]), np.array([[g for g, _ in pairs]])
    for spec in [*AGENTS, "ucb:0"]:
        policy = policy_of(spec, num_players=4)
        assert np.allclose(policy(treated, saved)[:, order], policy(treated[:, order], saved[:, order]), atol=1e-9)


@pytest.mark.parametrize("spec", [*AGENTS, "dogmatic"])
def test_maesters_always_leave_somebody_who_argues(spec):
    variant = configure("shakes", num_players=4)
    agent = make(spec)
    states = states_with(variant, (5, 2, 2, 0), (2, 1, 1, 0), 4)
    states["seat"] = states["opener"] = range(4)
    chances = agent.probabilities(Turn(variant, states, np.arange(4), new_streams(0, 4)))
    assert np.allclose(chances.sum(axis=1), 1)
    assert math.isclose(chances[:, 1].max(), 1)
    forced = states_with(variant, (5, 2, 2, 0), (2, 1, 1, 0), 4)
    forced["seat"], forced["spoken"], forced["opener"] = range(4), 3, [1, 2, 3, 0]
    assert agent.act(Turn(variant, forced, np.arange(4), new_streams(0, 4))).tolist() == [1] * 4


@pytest.mark.parametrize("spec", [spec for spec in AGENTS if not spec.startswith("bayes")])
def test_policies_play_the_competitive_variation(spec):
    variant = configure("shakes", num_players=3, variation="competitive")
    chances = make(spec).probabilities(turn_of(variant, (30, 3, 0), (2, 1, 0), 1))
    assert np.allclose(chances.sum(axis=1), 1)
    assert ((chances >= -1e-12) & (chances <= 1 + 1e-12)).all()


def test_agents_refuse_what_they_cannot_play():
    liars = configure("liars_dice")
    turn = turn_of(configure("shakes", mode="physician"), (0, 0, 0), (0, 0, 0), 1)
    with pytest.raises(ValueError, match="dogmatic is a maester"):
        make("dogmatic").act(turn)
    states = np.zeros(1, liars.game.state)
    for spec in [*AGENTS, "dogmatic"]:
        with pytest.raises(ValueError, match="plays shakes only, not liars_dice"):
            make(spec).act(Turn(liars, states, np.arange(1), new_streams(0, 1)))
    with pytest.raises(ValueError, match="cooperative"):
        make("bayes").act(turn_of(configure("shakes", variation="competitive"), (0, 0, 0), (0, 0, 0), 1))
    for wrong, message in (
        ("greedy:flat", "posterior must be one of 'beta', 'permutations', not 'flat'"),
        ("thompson:flat", "posterior must be one of"),
        ("ucb:-1", "exploration must be a number from 0 to 1000000.0, not -1"),
        ("bayes:lives", "goal must be one of None, 'saved', 'win', not 'lives'"),
    ):
        with pytest.raises(ValueError, match=message):
            make(wrong)


def test_every_agent_of_this_game_can_be_named():
    assert {"argument", "bayes", "dogmatic", "greedy", "thompson", "ucb"} <= set(factories())


@pytest.mark.slow
def test_a_trained_network_comes_close_to_optimal_play():
    torch = pytest.importorskip("torch")
    learner = pytest.importorskip("sb3_contrib").MaskablePPO
    from dice_envs.envs.sb3 import make_vec_env

    torch.set_num_threads(1)
    variant = configure("shakes", mode="physician", num_players=3)
    problem = Problem.of(variant.options)
    model = learner(
        "MlpPolicy",
        make_vec_env("shakes", 256, seed=1, num_players=3),
        learning_rate=lambda left: 1e-3 * left,
        n_steps=2 * problem.num_patients,
        batch_size=2048,
        n_epochs=4,
        gamma=1.0,
        ent_coef=0.003,
        seed=1,
        device="cpu",
    )
    model.learn(300_000)

    class Trained:
        def act(self, turn):
            return self.probabilities(turn).argmax(axis=1)

        def probabilities(self, turn):
            with torch.no_grad():
                chances = model.policy.get_distribution(torch.as_tensor(turn.observations)).distribution.probs
            return np.eye(chances.shape[1])[chances.numpy().argmax(axis=1)]

    saved = evaluate(problem, as_policy(Trained(), variant), merged=False).saved
    assert saved >= 0.97 * solve(problem, "saved").value
    for spec in ("thompson", "thompson:permutations", "argument"):
        assert saved > evaluate(problem, policy_of(spec, num_players=3)).saved


# --- commands -----------------------------------------------------------------------------------------------------


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize(("policy", "value"), [("optimal", "0.8056"), ("argument", "0.716603")])
def test_solve_writes_value_and_distribution(tmp_path, policy, value):
    path = tmp_path / "value.json"
    result = run("solve", "shakes", "-o", "num_players=4", "--reward", "win", "--policy", policy, "--json", path)
    assert result.exit_code == 0, result.output
    written = json.loads(path.read_text())
    assert rounds_to(value, written["value"])
    assert len(written["distribution"]) == 19
    assert math.isclose(sum(written["distribution"]), 1, abs_tol=1e-12)
    assert math.isclose(sum(written["distribution"][7:]), written["value"], abs_tol=1e-12)


def test_solve_evaluates_any_agent_with_probabilities(tmp_path):
    path = tmp_path / "value.json"
    assert run("solve", "shakes", "--policy", "random", "--json", path).exit_code == 0
    assert math.isclose(json.loads(path.read_text())["value"], 4, abs_tol=1e-12)
    policy = as_policy(make("argument"), configure("shakes", mode="physician"))
    problem = Problem.of(configure("shakes").options)
    assert math.isclose(evaluate(problem, policy, merged=False).saved, evaluate(problem, argument_chances).saved)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--reward", "lives"], "reward must be one of None, 'saved', 'win', not 'lives'"),
        (["-o", "variation=competitive"], 'variation must be "cooperative"'),
        (["--policy", "dogmatic"], "dogmatic is a maester"),
        (["--policy", "wizard"], "unknown agent 'wizard'"),
    ],
)
def test_solve_explains_what_is_wrong(words, message):
    result = run("solve", "shakes", *words)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.slow
def test_reproduce_agrees_with_what_was_checked(tmp_path):
    path = tmp_path / "rows.json"
    result = run("reproduce", "shakes", "--games", 5000, "--seed", 4, "--json", path, "--report", tmp_path)
    assert result.exit_code == 0, result.output
    rows = json.loads(path.read_text())["rows"]
    assert set(rows[0]) == {"source", "figure", "published", "ours", "error", "agrees", "note"}
    # Only the claims that Thompson sampling is optimal, and the argument Thompson sampling, do not hold.
    wrong = {row["figure"].rpartition(", ")[0] for row in rows if row["agrees"] is False}
    assert wrong == {
        "choice v chance to be the best: distance",
        "argument, short of optimal: saved",
        "argument, short of optimal: P(win)",
        "thompson:permutations, short of optimal: saved",
        "thompson:permutations, short of optimal: P(win)",
    }
    assert sum(row["agrees"] is True for row in rows) >= len(CHECKED) + 36
    assert {picture.name for picture in tmp_path.glob("*.png")} == {
        "shakes_agents.png",
        "shakes_distributions.png",
        "shakes_kept_die.png",
    }
