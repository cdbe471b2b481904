"""The measure of FateStones: against other recursions, against play, against what is known."""

import numpy as np
import pytest

import agents
from dice_envs import configure, measure
from dice_envs.exact.fatestones import draw_hands, evaluate, solve_all, solve_draws
from experiments.arena import play_table
from tests.policies import Noisy

EASY = (111666, 222555, 333444, 123456, 114466, 133356, 233346, 122556)
SMALL = {"dice": EASY, "hand_size": 2}  # 1,680 draws, all of them measured


def by_name(spec, **options):
    return {each.name: each for each in measure("fatestones", spec, **options).measures}


@pytest.mark.parametrize("options", [{"sample": 100}, SMALL, {**SMALL, "scratch": "draw"}, {"hand_size": 5, "sample": 10}])
def test_random_play_scores_0_and_nash_1(options):
    assert measure("fatestones", "random", **options).score == 0
    assert measure("fatestones", "nash", **options).score == pytest.approx(1, abs=1e-9)
    response = by_name("best_response:random", **options)
    assert response["margin against random"].gap == pytest.approx(0, abs=1e-12)
    assert response["edge share"].value > 0.99  # it plans for good play after a tie too


@pytest.mark.slow
def test_figures_are_those_of_the_other_functions():
    whole = solve_all(configure("fatestones", **SMALL))
    random = by_name("random", **SMALL)
    assert random["exploitability"].value == pytest.approx(whole.best_response, abs=1e-12)
    assert random["margin against random"].optimum == pytest.approx(whole.best_response, abs=1e-12)
    assert {each.error for each in random.values()} == {0}
    assert "all 1,680 draws" in random["exploitability"].note

    variant = configure("fatestones")
    hands = draw_hands(variant, 300, 5)
    for spec in ("best_response:random", "nash"):
        found, expected = by_name(spec, sample=300, seed=5), evaluate(variant, agents.make(spec), hands, 5)
        for name, figures in (
            ("exploitability", expected.exploitability()),
            ("edge share", expected.edge_share()),
            ("margin against random", expected.margin()),
        ):
            assert (found[name].value, found[name].error) == pytest.approx(figures, abs=1e-12)
    assert found["margin against random"].optimum == pytest.approx(solve_draws(hands).best_response, abs=1e-12)
    assert "a random sample of 300 draws" in found["exploitability"].note


def first_die(observations, masks):
    return masks * (np.arange(masks.shape[1]) == 0)


def test_every_order_of_a_hand_counts():
    """An agent that always takes its first die is as good as a random one where all orders are measured."""
    found = by_name(first_die, **SMALL)
    assert found["edge share"].value == pytest.approx(0, abs=1e-12)
    assert found["margin against random"].value == pytest.approx(0, abs=1e-12)
    assert found["exploitability"].gap > by_name("random", **SMALL)["exploitability"].gap  # but known in advance


def uniform(observations, masks):
    return masks / masks.sum(axis=1, keepdims=True)


def test_functions_are_measured():
    assert measure("fatestones", uniform, sample=50).score == pytest.approx(0, abs=1e-12)


def test_figures_come_out_in_play():
    """Margin against a random opponent, and a best response that knows the agent, in games of one draw."""
    variant = configure("fatestones", **SMALL, scratch="draw")
    found = by_name("best_response:nash", **SMALL, scratch="draw")
    games = 20_000
    for players, expected in (
        (("best_response:nash", "random"), found["margin against random"].value),
        (("best_response:best_response:nash", "best_response:nash"), found["exploitability"].value),
    ):
        earned = play_table(variant, [agents.make(spec) for spec in players], games, 4)[:, 0]
        assert earned.mean() == pytest.approx(expected, abs=5 * earned.std() / np.sqrt(games))


def test_random_answers_are_averaged_and_said_to_be():
    lost, share, margin = measure("fatestones", Noisy(), **SMALL).measures
    assert lost.note.startswith("a random sample of 50 draws")
    assert "an upper bound, from the mean of 8 random answers at each position; mean of 10 runs" in lost.note
    assert share.value == pytest.approx(0, abs=share.error)
    assert margin.value == pytest.approx(0, abs=margin.error)
    variant = configure("fatestones", **SMALL)
    single, _ = evaluate(variant, Noisy(), draw_hands(variant, 2_000, 1), 1).exploitability()
    assert by_name("random", **SMALL)["exploitability"].value - lost.error < lost.value
    assert lost.value + lost.error < single  # a best response to single answers wins too much


def test_progress_adds_up():
    told = []
    measure("fatestones", "random", **SMALL, done=lambda amount, total: told.append((amount, total)))
    assert sum(amount for amount, _ in told) == 1_680
    assert {total for _, total in told} == {1_680}


def test_dice_that_only_tie_leave_nothing_to_be_measured():
    found = measure("fatestones", "random", dice=(333333,) * 6)
    assert found.score is None
    assert all(each.gap == 0 for each in found.measures)


def test_a_sample_of_one_draw_is_refused():
    with pytest.raises(ValueError, match="sample must be at least 2 draws, not 1"):
        measure("fatestones", "random", sample=1)
