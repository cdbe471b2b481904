"""`solve GAME`: what it prints and writes, its words for progress, and refusals."""

import math
import re
import time

import pytest

from dice_envs import Variant, configure, load
from dice_envs.agent.specs import make_agent
from dice_envs.exact.contract import Solved
from dice_envs.experiments.commands import solve
from dice_envs.experiments.ui import console
from dice_envs.games.liars_dice.exact.report import line_of
from dice_envs.games.liars_dice.exact.solver import Progress
from dice_envs.games.shakes.exact.chances import Problem, argument_chances
from dice_envs.games.shakes.exact.policies import as_policy, evaluate
from tests.support.commands import done, with_json
from tests.support.golden import FOLDER, SOLVE_COMMANDS, SOLVED, solve_text

ONE_DIE = ("-o", "num_dice=1", "-o", "num_faces=3")


@pytest.mark.parametrize(("number", "command"), enumerate(SOLVE_COMMANDS))
def test_output_and_files(number, command):
    recorded = (FOLDER / f"{SOLVED}.txt").read_text(encoding="utf-8").split("\n\n")
    assert solve_text(command).strip() == recorded[number].strip()


def test_chances_stay_in_narrow_tables(monkeypatch):
    monkeypatch.setattr(console, "width", 60)
    assert re.search(r"^1 v 1: iterations \S+; seconds \S+$", done("solve", "liars-dice", *ONE_DIE), re.MULTILINE)


def test_progress_in_words():
    """Rounds of two players have bounds, by a linear programme where that is done; those of more have what players gain."""
    said = {
        Progress((1, 2), 0, 1e-3, True, 0): "  1 v 2 dice: done, bounds 1.0e-03 apart by a linear programme",
        Progress((5, 5), 1200, 2e-2, False, 3): "  5 v 5 dice: bounds 2.0e-02 apart after 1,200 iterations; 3 to go",
        Progress(
            (1, 1, 1), 0, -1e-9, False, 1
        ): "  1 v 1 v 1 dice: the players gain 0.0e+00 in all after 0 iterations; 1 to go",
    }
    assert {each: line_of(each) for each in said} == said


def test_any_agent_with_probabilities_is_a_policy(tmp_path):
    begun = time.perf_counter()
    told, written = with_json(tmp_path, "solve", "shakes", "--policy", "random")
    assert float(re.search(r"exact, in ([\d.]+) s", told)[1]) < time.perf_counter() - begun + 0.1, "it is rounded"
    assert math.isclose(written["value"], 4, abs_tol=1e-12)
    policy = as_policy(make_agent("argument"), configure("shakes", mode="physician"))
    problem = Problem.of(configure("shakes").options)
    assert math.isclose(evaluate(problem, policy, merged=False).saved, evaluate(problem, argument_chances).saved)


def test_a_precision_that_is_not_reached_is_named():
    told = done("solve", "liars-dice", "-o", "num_players=3", *ONE_DIE, "-o", "rounds=single", "--precision", "1e-12")
    assert "not reached: a gain of 1.0e-12 in all" in told


def test_brackets_in_help_are_shown():
    assert "1 / √E[score²]" in " ".join(done("solve", "score-dice", "--help").split())
    assert "[default: 0.0001, of a table 0.001]" in " ".join(
        done("solve", "liars-dice", "--help", env={"COLUMNS": "300"}).split()
    )


def test_a_game_that_asks_for_a_seed_alone_gets_one(monkeypatch, capsys):
    def solve_game(variant: Variant, seed: int) -> Solved:
        return Solved([f"{variant}: {type(seed).__name__}"], {})

    monkeypatch.setattr(solve, "offered", lambda game, function: solve_game)
    solve.command_of(load("thirties"))(option=None, json=None, seed=None)
    assert capsys.readouterr().out == "thirties (num_players=1): int\n"
