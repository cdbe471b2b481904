"""`solve liars-dice` at a table of three."""

import json

import pytest

from tests.support.commands import done

TABLE = ("solve", "liars-dice", "-o", "num_players=3", "-o", "num_dice=1", "-o", "num_faces=2")


def test_a_table_is_solved_with_a_line_for_each_round(tmp_path, monkeypatch):
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))
    written = tmp_path / "result.json"
    assert "1 v 1 v 1" in done(*TABLE, "--json", written, "--report", tmp_path / "report")
    found = json.loads(written.read_text())
    assert [each["dice"] for each in found["rounds"]] == [[1, 1], [1, 1, 1]]
    assert sum(found["shares"]) == pytest.approx(1)
    assert found["gain"] == pytest.approx(sum(found["best_responses"]) - sum(found["shares"]))
    assert (tmp_path / "report" / "liars_dice_shares.png").stat().st_size > 1000
