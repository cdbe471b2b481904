"""`solve liars-dice`."""

import re

import pytest

from dice_envs.experiments.solve.liars_dice import line_of
from dice_envs.experiments.ui import console
from dice_envs.games.liars_dice.exact.solver import Progress
from tests.support.commands import done, with_json

TABLE = ("solve", "liars-dice", "-o", "num_players=3", "-o", "num_dice=1", "-o", "num_faces=2")


def test_a_table_is_solved_with_a_line_for_each_round(tmp_path, monkeypatch):
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))
    told, found = with_json(tmp_path, *TABLE, "--report", tmp_path / "report")
    assert "1 v 1 v 1" in told
    assert "-0.00" not in told, "rounding puts gains below 0"
    assert [each["dice"] for each in found["rounds"]] == [[1, 1], [1, 1, 1]]
    assert sum(found["shares"]) == pytest.approx(1)
    assert found["gain"] == pytest.approx(sum(found["best_responses"]) - sum(found["shares"]))
    assert (tmp_path / "report" / "liars_dice_shares.png").stat().st_size > 1000


def test_chances_stay_in_narrow_tables(monkeypatch):
    monkeypatch.setattr(console, "width", 60)
    assert re.search(r"^1 v 1: iterations \S+; seconds \S+$", done("solve", "liars-dice", *TABLE[4:]), re.MULTILINE)


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
