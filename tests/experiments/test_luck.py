"""Luck taken out of the results of pairs."""

import json

import pytest

from dice_envs import configure
from dice_envs.agent import resolve
from dice_envs.experiments import arena
from dice_envs.experiments.arena import known_values, tournament
from tests.evaluation.test_evaluate import SMALL, values
from tests.support.commands import done, run
from tests.support.liars_dice_games import winning_probability
from tests.support.subsets import few

ARENA = ("arena", "liars_dice", "-o", "num_dice=1", "-o", "num_faces=3", "-o", "rounds=single", "--seed", "1")


def known(variant, opponent, done=None):
    """Values against nash alone."""
    if repr(opponent).lower().startswith("nash") or opponent == "nash":
        return values()
    raise ValueError("only against nash")


@pytest.fixture
def only_nash(monkeypatch):
    monkeypatch.setattr(arena, "response_values", known)


def check_pair(found, plain, exact):
    """The same games with and without luck, and the exact share."""
    assert found.plain_win_rate == plain.win_rate
    assert found.plain_ci95 == plain.ci95
    assert found.draws == plain.draws
    assert found.ci95 < plain.ci95
    assert found.variance_ratio > 1
    assert abs(found.win_rate - exact) < 2 * found.ci95  # four standard errors
    assert found.mean_return == pytest.approx(2 * found.win_rate - 1)
    assert found.mean_return_ci95 == pytest.approx(2 * found.ci95)


@few(1, "agents", [("random", "nash"), ("nash", "random")])
def test_one_side_is_enough(agents):
    ways = [values() if spec == "nash" else None for spec in agents]
    plain = tournament(SMALL, agents, 2000, 1)
    found = tournament(SMALL, agents, 2000, 1, values=ways)
    exact = winning_probability(SMALL, *agents)
    check_pair(found.meetings[0], plain.meetings[0], exact)
    check_pair(found.meetings[1], plain.meetings[1], 1 - exact)
    assert found.win_rate[0][1] + found.win_rate[1][0] == pytest.approx(1)


def test_both_sides_are_taken_together():
    plain = tournament(SMALL, ["nash", "nash"], 200, 1)
    found = tournament(SMALL, ["nash", "nash"], 200, 1, values=[values(), values()])
    assert [each.plain_win_rate for each in found.meetings] == [each.win_rate for each in plain.meetings]
    assert found.win_rate[0][1] == pytest.approx(0.5, abs=1e-3)
    assert found.ci95[0][1] == pytest.approx((1 - 0.025 ** (1 / 200)) / 2, rel=0.02)  # either may lose what no game showed
    few = tournament(SMALL, ["nash", "nash"], 20, 1, values=[values(), values()])  # too few to fit coefficients
    assert few.win_rate[0][1] == pytest.approx(0.5, abs=1e-3)


def test_parts_of_matches_are_without_luck():
    found = tournament(SMALL, ["random", "nash"], 2000, 1, match=20, values=[None, values()])
    plain = tournament(SMALL, ["random", "nash"], 2000, 1, match=20)
    exact = winning_probability(SMALL, "random", "nash")
    first, second = found.meetings
    assert [part.first for part in first.parts] == [1, 11]
    for part, other, as_played in zip(first.parts, second.parts, plain.meetings[0].parts, strict=True):
        assert abs(part.win_rate - exact) < 2 * part.ci95
        assert part.ci95 < as_played.ci95
        assert part.win_rate + other.win_rate == pytest.approx(1)


@pytest.mark.thorough
def test_the_option_says_what_was_done(only_nash, tmp_path):
    out, plain = tmp_path / "arena.json", tmp_path / "plain.json"
    agents = ("random", "numbers", "nash")
    result = done(*ARENA, *agents, "--games", 400, "--without-luck", "--json", out, "--report", tmp_path)
    assert "no values against random: only against nash" in result
    assert "as played" in result
    assert (tmp_path / "arena_liars_dice.png").exists()
    found = json.loads(out.read_text())
    done(*ARENA, *agents, "--games", 400, "--json", plain)
    before = json.loads(plain.read_text())
    assert found["without_luck"]
    assert not before["without_luck"]
    assert before["plain_win_rate"] is None
    assert found["win_rate"][0][1] == before["win_rate"][0][1], "numbers are not known here, so this pair is as played"
    assert found["plain_win_rate"][0][1] is None
    assert found["variance_ratio"][0][1] is None
    for row, column in ((0, 2), (1, 2), (2, 0), (2, 1)):
        assert found["plain_win_rate"][row][column] == before["win_rate"][row][column]
        assert found["ci95"][row][column] < found["plain_ci95"][row][column] == before["ci95"][row][column]
    assert len(found["notes"]) == 2
    nothing = run(*ARENA, "random", "numbers", "--games", 400, "--without-luck", "--json", out)
    assert "without luck" not in nothing.output, "no values are known here, so no luck was taken out"
    assert not json.loads(out.read_text())["without_luck"]


def test_who_thinks_by_the_clock_is_named():
    result = run(*ARENA, "random", "mcts:1,seconds=1", "--games", 10)
    assert "MCTS thinks by the clock: the seed does not repeat its games" in result.output


def test_agents_without_fixed_probabilities_have_no_values():
    variant = configure("liars_dice", num_dice=1)
    found, (reason,) = known_values(variant, ["adaptive"], [resolve("adaptive")])
    assert found == [None]
    assert "remembers past games" in reason
