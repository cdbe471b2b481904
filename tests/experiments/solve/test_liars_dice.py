"""`solve liars-dice` at a table of three."""

import pytest

from tests.support.commands import with_json

TABLE = ("solve", "liars-dice", "-o", "num_players=3", "-o", "num_dice=1", "-o", "num_faces=2")


def test_a_table_is_solved_with_a_line_for_each_round(tmp_path, monkeypatch):
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))
    told, found = with_json(tmp_path, *TABLE, "--report", tmp_path / "report")
    assert "1 v 1 v 1" in told
    assert [each["dice"] for each in found["rounds"]] == [[1, 1], [1, 1, 1]]
    assert sum(found["shares"]) == pytest.approx(1)
    assert found["gain"] == pytest.approx(sum(found["best_responses"]) - sum(found["shares"]))
    assert (tmp_path / "report" / "liars_dice_shares.png").stat().st_size > 1000
