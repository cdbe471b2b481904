"""The article's worked examples, its posterior of the win rate and its run times, beside ours."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from dice_envs.experiments.bench import environments as bench
from dice_envs.experiments.reproduce import Finding
from dice_envs.experiments.reproduce.liars_dice import PUBLISHED, answer, posterior_rows, worked_examples


@pytest.fixture(scope="module")
def examples():
    return {row.figure: row for row in worked_examples()}


def test_the_worked_example_is_called_as_often_as_the_article_says(examples):
    row = examples["25 dice, seven 3s bid, two in hand: % called, its text"]
    assert row.published == 77
    assert row.ours == pytest.approx(100 * binom.cdf(4, 20, 1 / 6))
    assert row.agrees
    program = examples["25 dice, seven 3s bid, two in hand: % called, its program"]
    assert program.ours == pytest.approx(100 * binom.cdf(5, 20, 1 / 6))


def test_the_second_example_by_the_article_and_by_bayes(examples):
    known = examples["the same bid, one 3 of the bidder's known: % that four of 19 other dice show it"]
    assert known.ours == pytest.approx(100 * binom.sf(3, 19, 1 / 6))
    assert known.agrees
    assert known.ours > 100 * binom.sf(4, 20, 1 / 6)
    draws = np.random.default_rng(3).integers(1, 7, (400_000, 20))
    threes = draws == 3
    counts = np.stack([(draws[:, :5] == face).sum(axis=1) for face in range(1, 7)], axis=1)
    holds = threes.sum(axis=1) >= 5
    some, most = counts[:, 2] > 0, counts[:, 2] == counts.max(axis=1)
    tied = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1  # which counts as half
    at_least_one = examples["the same, the bidder has at least one 3: % that the bid holds, by Bayes' rule"]
    held_most = examples["the same, the bidder has most 3s: % that the bid holds, by Bayes' rule"]
    assert at_least_one.ours == pytest.approx(100 * holds[some].mean(), abs=0.4)
    assert held_most.ours == pytest.approx(100 * np.average(holds[most], weights=np.where(tied, 0.5, 1)[most]), abs=0.6)


def test_two_of_three_cases_of_who_loses_are_backwards_in_the_text(examples):
    rows = [row for row in examples.values() if row.figure.startswith("the rule's sentence")]
    assert [row.agrees for row in rows] == [False, True, False]
    assert all(row.note for row in rows if not row.agrees)
    played = [row for row in examples.values() if row.figure.startswith("the game it tells")]
    assert len(played) == 2
    assert all(row.agrees for row in played)


def test_the_posterior_is_that_of_the_counts_printed():
    wins = [(1, 49.34, 49.13), (0, 50.66, 50.87)]
    ours = [Finding("", f"2 players, its program: % won by bluff {bluff}", *each, 0.098) for bluff, *each in wins]
    rows = {row.figure: row for row in posterior_rows(ours)}
    draws = np.random.default_rng(5).beta(*PUBLISHED[1.0, 0.0][::-1], 200_000)
    mean = rows["posterior of the share won by bluff 0, as the article draws it: mean, %"]
    assert mean.ours == pytest.approx(100 * draws.mean(), abs=0.01)
    assert mean.error == pytest.approx(100 * np.diff(np.quantile(draws, [0.025, 0.975]))[0] / 2, abs=0.02)
    above = rows["the same: % that bluff 0 wins more than half"]
    assert above.ours == pytest.approx(100 * (draws > 0.5).mean(), abs=0.4)
    inside = rows["the same: % that it wins more than it wins of our games"]
    assert inside.ours == pytest.approx(100 * (draws > 0.5087).mean(), abs=0.6)


def test_both_of_the_articles_run_times_are_peers(monkeypatch):
    seats = []
    monkeypatch.setattr(bench, "best_seconds", lambda work, repeats: 1.0)
    monkeypatch.setattr(bench, "play_table", lambda variant, players, games, seed: seats.append(len(players)))
    rows = list(bench._article_games(True))
    assert [row.peer for row in rows] == pytest.approx([37.1997, 69.870840])
    assert [row.ours for row in rows] == [1.0, 1.0]


def test_first_bids_are_shares_of_all():
    rows = answer.findings(answer.work_out(1, 1e-2))
    assert sum(row.ours for row in rows if "% of first bids that are" in row.figure) == pytest.approx(100)


def test_a_die_more_is_worth_something_where_there_are_two():
    chances = {(1, 1): 0.75, (1, 2): 0.25, (2, 1): 0.875, (2, 2): 0.625}  # that the starter wins
    values = {dice: SimpleNamespace(value=chance) for dice, chance in chances.items()}
    one, two = (answer._about_values(SimpleNamespace(dice=most, values=values)) for most in (1, 2))
    assert one == "Being first with 1 die each is worth +25.00 points of winning chance."
    assert two.endswith(" worth +12.50 points of winning chance; 2 dice against 1 are worth +31.25, mean over both starters.")
