"""The Shakes with open efficacies, as on the rules' score sheet: observations, and exact values beside brute force."""

import re

import numpy as np
import pytest

from dice_envs import Batch, configure, describe, measure
from dice_envs.agent import Uniform
from dice_envs.agent.specs import make_agent
from dice_envs.exact import asked
from dice_envs.experiments.arena import play_table
from dice_envs.games.shakes import EFFICACIES
from dice_envs.games.shakes.exact.chances import Problem, best_of
from dice_envs.games.shakes.exact.policies import as_policy, evaluate, evaluate_open, open_optimum, solve
from dice_envs.pictures.render import ansi
from tests.support.commands import run
from tests.support.subsets import few

OPEN = {"open_efficacies": True}


@pytest.mark.parametrize("mode", ["physician", "maesters"])
def test_every_seat_sees_the_efficacies(mode):
    variant, hidden = (configure("shakes", mode=mode, **options) for options in (OPEN, {}))
    assert variant.facts.observation_size == hidden.facts.observation_size + 3
    batch, other = Batch(variant, 50, seed=1), Batch(hidden, 50, seed=1)
    for seat in range(variant.facts.num_seats):
        seen = batch.observe(np.full(50, seat))
        assert (seen[:, :-3] == other.observe(np.full(50, seat))).all(), "the rest is as it was"
        for state, observation in zip(batch.states, seen, strict=True):
            (efficacy,) = (reading for reading in describe(variant, observation) if reading.name == "efficacy")
            assert efficacy.numbers == pytest.approx(np.roll(state["efficacy"][:3], -seat))
            assert "efficacy 4" in ansi(variant.picture(state, seat))
            assert "efficacy" not in ansi(hidden.picture(state, seat))


@pytest.mark.parametrize("reward", ["saved", "win"])
def test_games_are_played_as_with_hidden_ones(reward):
    variants = [configure("shakes", mode="physician", reward=reward, **options) for options in (OPEN, {})]
    returns = [play_table(variant, [make_agent("thompson")], 300, 4) for variant in variants]
    assert (returns[0] == returns[1]).all()


def test_it_is_an_option_of_the_cooperative_variation():
    with pytest.raises(ValueError, match='open_efficacies must be false with variation="competitive"'):
        configure("shakes", variation="competitive", **OPEN)
    with pytest.raises(ValueError, match="open_efficacies must be true or false, not 1"):
        configure("shakes", open_efficacies=1)
    plain, ours = configure("shakes"), configure("shakes", **OPEN)
    assert plain.differences(ours) == ("open_efficacies=false", "open_efficacies=true")


def for_the_best(efficacies):
    """The policy that knows the efficacies and gives all patients the most effective treatment."""
    return lambda treated, saved: np.tile(best_of(efficacies[None]), (len(treated), 1))


def sheet(observations, size=3):
    return observations[:, -size:]


def argues_if_best(observations, masks):
    """A maester that argues if its own treatment is the best."""
    best = sheet(observations)[:, 0] == sheet(observations).max(axis=1)
    chances = np.stack([~best, best], axis=1) * masks
    return np.where(chances.sum(axis=1, keepdims=True) > 0, chances, masks)


def argues_as_effective(observations, masks):
    """A maester that argues with the probability that its own treatment saves."""
    own = sheet(observations)[:, 0]
    chances = np.stack([1 - own, own], axis=1) * masks
    return chances / chances.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("reward", ["saved", "win"])
def test_who_knows_the_efficacies_is_measured_exactly(reward):
    found = measure("shakes", lambda observations, masks: best_of(sheet(observations).astype(float)), reward=reward, **OPEN)
    assert found.score == pytest.approx(1)
    assert all(each.gap == pytest.approx(0, abs=1e-12) and not each.error for each in found.measures)
    worst = measure("shakes", lambda observations, masks: best_of(-sheet(observations).astype(float)), **OPEN)
    assert {each.name: each.value for each in worst.measures}["patients saved"] == pytest.approx(2)
    table = measure("shakes", argues_if_best, mode="maesters", reward=reward, **OPEN)
    assert table.score == pytest.approx(1)


def test_a_table_that_uses_its_sheet_in_part_agrees_with_games():
    variant = configure("shakes", mode="maesters", num_patients=4, goal=2, **OPEN)
    found = measure(variant, argues_as_effective)
    assert "all 3 deals" in found.measures[0].note

    returns = play_table(variant, [asked(argues_as_effective, variant)] * 3, 20_000, 5)[:, 0]
    assert abs(returns.mean() - found.measures[0].value) < 4 * returns.std() / np.sqrt(len(returns))


@few(1, "options", [{}, {"mode": "maesters"}, {"num_players": 6}, {"mode": "maesters", "num_players": 6}])
def test_bayes_is_optimal(options):
    for reward in ("saved", "win"):
        variant = configure("shakes", **{"mode": "physician", "reward": reward, **options, **OPEN})
        found = measure(variant, "bayes")
        assert found.score == pytest.approx(1)
        assert all(each.gap == pytest.approx(0, abs=1e-12) and not each.error for each in found.measures)
        returns = play_table(variant, [make_agent("bayes")] * variant.facts.num_seats, 4000, 5)[:, 0]
        assert abs(returns.mean() - found.measures[0].value) < 4 * returns.std() / np.sqrt(len(returns)) + 1e-9


@few(2, "spec", ["random", "greedy", "thompson", "thompson:permutations", "greedy:permutations", "argument"])
def test_who_looks_at_the_tally_alone_does_as_well_as_with_hidden_ones(spec):
    hidden, ours = (measure("shakes", spec, **options) for options in ({}, OPEN))
    for before, now in zip(hidden.measures, ours.measures, strict=True):
        assert now.value == pytest.approx(before.value, abs=1e-12)
        assert now.optimum > before.optimum
        assert not now.error
    asked = evaluate_open(
        Problem.of(configure("shakes", **OPEN).options),
        lambda efficacies: as_policy(make_agent(spec), configure("shakes", mode="physician", **OPEN), efficacies=efficacies),
    )
    assert asked.saved == pytest.approx(ours.measures[0].value, abs=1e-12)


@pytest.mark.thorough
def test_evaluation_of_many_patients():
    """More than 64 bits hold: five treatments and 100 patients."""
    problem = Problem(EFFICACIES[5], 100, 60, True)
    known = evaluate_open(problem, for_the_best)
    assert known.saved == pytest.approx(open_optimum(problem, "saved"))
    assert known.win == pytest.approx(open_optimum(problem, "win"))


def test_nothing_is_silently_wrong():
    variant = configure("shakes", mode="physician", **OPEN)
    with pytest.raises(ValueError, match="open_efficacies must be false to solve by tallies"):
        solve(Problem.of(variant.options), "saved")
    with pytest.raises(ValueError, match="open_efficacies must be false for choices by the tally alone"):
        make_agent("bayes").chances(variant.options, np.zeros((1, 3), int), np.zeros((1, 3), int))
    for agent in (make_agent("mcts:2"), make_agent("bayes")):
        with pytest.raises(ValueError, match="open_efficacies: what this agent does depends on the efficacies"):
            as_policy(agent, variant)
    with pytest.raises(ValueError, match="open_efficacies: what this agent does"):
        as_policy(make_agent("bayes"), configure("shakes", **OPEN))
    as_policy(make_agent("thompson"), variant)
    with pytest.raises(ValueError, match="a policy must give 3 chances"):
        evaluate_open(Problem.of(variant.options), lambda efficacies: lambda treated, saved: treated * 0.0)
    with pytest.raises(ValueError, match="too many tallies that this policy reaches"):
        evaluate_open(
            Problem.of(variant.options), lambda efficacies: lambda treated, saved: np.full(treated.shape, 1 / 3), most=1000
        )


def test_an_agent_that_reaches_too_many_positions_is_played():
    class Spread:
        def probabilities(self, turn):
            return Uniform().probabilities(turn) * 1.0

    found = measure("shakes", Spread(), num_players=5, sample=2000, **OPEN)
    assert "2,000 games played" in found.measures[0].note
    assert abs(found.measures[0].value - 6) < 3 * found.measures[0].error


@few(2, ("policy", "value"), [("optimal", 8.0), ("random", 4.0), ("bayes", 8.0), ("thompson", None)])
def test_solve(policy, value):
    results = [run("solve", "shakes", "--policy", policy, *more) for more in ([], ["-o", "open_efficacies=true"])]
    hidden, ours = (float(re.search(r"patients saved ([\d.]+)", result.output)[1]) for result in results)
    assert ours == pytest.approx(hidden if value is None else value, abs=1e-6)


@pytest.mark.thorough
def test_evaluation_of_all_deals():
    problem = Problem(EFFICACIES[3], 6, 3, True)
    known = evaluate_open(problem, for_the_best)
    assert known.shares.tolist() == [1, 0]
    assert known.matching_gap == 0
    assert known.most_dice[6] == known.most_treated[6] == 1
    even = evaluate_open(problem, lambda efficacies: lambda treated, saved: np.full(treated.shape, 1 / 3))
    same = evaluate(problem, lambda treated, saved: np.full(treated.shape, 1 / 3))
    for field in ("distribution", "saved", "win", "shares", "most_dice", "most_treated"):
        assert np.allclose(getattr(even, field), getattr(same, field), atol=1e-12)
