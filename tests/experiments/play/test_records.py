"""The command `review`: saved games, and each player's record."""

import json
import os
import re

import pytest

from dice_envs import configure
from dice_envs.experiments.commands.review import record_of
from dice_envs.table.advice import review
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.commands import done
from tests.support.sittings import save

TURN = configure("thirties", num_players=1)


@pytest.fixture
def turns(tmp_path):
    """Games in a folder, in the order of play, which is not that of their names."""
    folder = tmp_path / "games"
    folder.mkdir()
    paths = [save(folder / f"turn{9 - seed}.json", TURN, seed=seed) for seed in range(5)]
    for seconds, path in enumerate(paths):
        os.utime(path, (seconds, seconds))
    return paths


def test_several_games_make_a_record(turns, tmp_path):
    found, plots = tmp_path / "found.json", tmp_path / "plots"
    folder = turns[0].parent
    Sitting(TURN, 1, [PERSON]).save_to(folder / "unfinished.json")
    result = done("review", folder, "--json", found, "--report", plots)
    (record,) = json.loads(found.read_text())["records"]
    reviews = [review(Sitting.load_from(path)) for path in turns]
    expected = record_of([(each, 0) for each in reviews])
    assert (record["game"], record["options"], record["player"]) == ("thirties", {"num_players": 1}, "person")
    for name in ("games", "given_away", "error", "luck", "luck_error", "trend", "trend_error", "marks"):
        assert record["record"][name] == getattr(expected, name)
    assert record["record"]["unit"] == "pips"
    assert [game["file"] for game in record["games"]] == [str(path) for path in turns]
    for game, each in zip(record["games"], reviews, strict=True):
        assert game["split"]["luck"] == each.splits[0].luck
        assert [move["mark"] for move in game["moves"]] == [move.mark for move in each.moves]
        assert each.worst[0].words.split()[0] in result  # long words fold
    assert f"given away a game: {expected.given_away:.2f} ± {expected.error:.2f} pips" in result
    assert f"luck a game: {expected.luck:+.2f} ± {expected.luck_error:.2f} pips" in result
    assert "which may be none" in result
    assert "95 % interval, 5 games" in result
    (plot,) = plots.glob("*.png")
    assert plot.read_bytes().startswith(b"\x89PNG")
    page = (plots / "index.html").read_text()
    assert f"given away a game: {expected.given_away:.2f} ± {expected.error:.2f} pips" in page
    assert all(str(path) in page for path in turns)
    assert f"review {folder} --json {found} --report {plots}" in page


def test_each_kind_of_game_and_each_player_has_a_record(turns, tmp_path):
    mixed = [
        *turns[:2],
        save(tmp_path / "other.json", configure("thirties", num_players=1, goal="thirty_or_over")),
        save(tmp_path / "two.json", configure("thirties", rounds=1), (PERSON, PERSON)),
    ]
    found = tmp_path / "found.json"
    result = done("review", *mixed, "--json", found)
    records = json.loads(found.read_text())["records"]
    assert [each["player"] for each in records] == ["person", "person", "person at seat 0", "person at seat 1"]
    assert [len(each["games"]) for each in records] == [2, 1, 1, 1]
    assert [each["record"] is None for each in records] == [False, False, True, True]
    assert "luck and play are told apart only" in result
    assert "in one game, which has no interval" in " ".join(result.split())
    assert "trend" not in result


def test_seats_are_chosen(tmp_path):
    path = save(tmp_path / "game.json", configure("liars_dice", num_dice=1, num_faces=3), (PERSON, "random"))
    seats = {}
    for options in ((), ("--agents",), ("--seat", 1)):
        found = tmp_path / "found.json"
        result = done("review", path, "--json", found, *options)
        records = json.loads(found.read_text())["records"]
        seats[options] = [(each["player"], game["seat"]) for each in records for game in each["games"]]
        for game in (game for each in records for game in each["games"]):
            assert game["split"]["result"] in (0.0, 1.0)
    assert seats == {
        (): [("person", 0)],
        ("--agents",): [("person", 0), ("random", 1)],
        ("--seat", 1): [("random", 1)],
    }
    assert re.search(r"luck a game: [+-][0-9.]+ %", result)
