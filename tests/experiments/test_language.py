"""`benchmark language`: fixed positions, exact regrets, players in words, and its results."""

import dataclasses
import json

import numpy as np
import pytest

from dice_envs import TASKS, action_values, configure, make_agent, response_values
from dice_envs.agents.chat import Chat, ChatMeter
from dice_envs.envs.text import InWords
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.commands.benchmark import named_players, players_of, positions_of, score
from tests.experiments.jobs.test_workers import Shuffled
from tests.support.chat_server import lowest, said, serving
from tests.support.commands import done, refusal, run, with_json
from tests.support.progress import progress
from tests.support.subsets import few

ONE_DIE = TASKS["liars_dice_openspiel_1"]
COMMAND = ["benchmark", "language", "--task", ONE_DIE.name, "--positions", "40", "--games", "10"]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def field():
    return ONE_DIE, positions_of(ONE_DIE.variant, 40, 0), response_values(ONE_DIE.variant)


def scored(field, spec, games=20):
    return score(*field, spec, InWords(spec), games)


@few(2, "name", ["liars_dice", "fatestones", "thirties", "shakes"])
def test_positions_are_fixed_and_every_move_has_its_price(name):
    options = {"liars_dice": {"num_dice": 2}, "shakes": {"mode": "physician", "num_patients": 4, "goal": 2}}
    variant = configure(name, **options.get(name, {"num_players": 1} if name == "thirties" else {}))
    with progress() as told:
        one, other = (positions_of(variant, 12, 3) for _ in range(2))
    assert (one.states == other.states).all()
    assert not (positions_of(variant, 12, 4).states == one.states).all()
    assert sum(told) == 24
    assert one.values[0].unit
    for state, values in zip(one.states, one.values, strict=True):
        assert values.reached
        again = action_values(variant, state)
        np.testing.assert_array_equal(values.values, again.values)
        assert np.nanmax(again.values) - np.nanmin(again.values) > 1e-6, "more than rounding"
    best, worst = (np.array([pick(each.values) for each in one.values]) for pick in (np.nanargmax, np.nanargmin))
    np.testing.assert_array_equal(one.regrets(best), np.zeros(12))
    assert (one.regrets(worst) > 0).all()


def test_a_game_without_decisions_that_matter_has_no_positions(monkeypatch):
    monkeypatch.setattr("dice_envs.experiments.commands.benchmark.MOST_GAMES", 2)
    with pytest.raises(ValueError, match="only 0 of 6 games of score_dice .* have a decision that matters"):
        positions_of(TASKS["score_dice_3d6"].variant, 3)


def test_scores_of_scripted_players(field):
    nash, numbers, random = (scored(field, spec) for spec in ("nash", "numbers", "random"))
    assert scored(field, "numbers") == numbers, "the seed repeats it"
    assert nash.regret < 0.01 < numbers.regret < random.regret
    assert nash.wrong < numbers.wrong
    assert abs(nash.result - nash.best) < 0.01
    assert random.result + random.result_error < nash.best
    for each in (nash, numbers, random):
        assert each.tally is None
        assert each.illegal == 0
        assert each.positions == 40
        by = {kind.by for kind in each.kinds}
        assert by == {"decision"}, "one die each: 1 v 1 is the only number of dice"
        assert sum(kind.decisions for kind in each.kinds) == 40
        assert each.regret == pytest.approx(sum(kind.decisions * kind.regret for kind in each.kinds) / 40)
        assert [own.solution for own in each.bluffs] == sorted(own.solution for own in each.bluffs)
    always, never = nash.bluffs[-1], nash.bluffs[0]
    assert never.player < 0.2 < 0.8 < always.player
    assert {own.player for own in scored(field, "numbers:bluff=0").bluffs} == {0.0}


def test_a_language_model_is_counted(field, tmp_path):
    """It plays the first legal move of half of its prompts, and nothing legal else."""
    replies = []

    def answer(body):
        replies.append(len(body["messages"]))
        return said("I pass") if len(replies) % 2 else lowest(body)

    with serving(answer) as server:
        player = Chat("tiny", url=server.url, at_once=1, log=str(tmp_path / "log"))
        found = score(*field, "tiny", player, 4)
    assert found.tally == player.tally
    assert found.tally.moves >= 40
    assert found.tally.illegal == found.tally.moves, "every first reply"
    assert found.tally.random == 0
    assert found.illegal == pytest.approx(0.5)
    assert len((tmp_path / "log").read_text().splitlines()) == found.tally.requests
    assert found.regret > 0


def test_who_plays_a_task(tmp_path):
    named = named_players(["chat:one", "chat:one,temperature=1", "champion", "numbers:bluff=1"], tmp_path / "out.json")
    found = players_of(ONE_DIE, named)
    assert {"random", "nash", "reader", "numbers:bluff=0", "one", "chat:one,temperature=1", "numbers:bluff=1"} <= set(found)
    assert "champion" not in found, "five dice"
    assert found["one"].log == str(tmp_path / "out.replies.jsonl")
    shakes = players_of(TASKS["shakes_3"], named)
    assert {"bayes", "greedy", "ucb", "one"} <= set(shakes)
    assert shakes["one"] is found["one"], "with one budget for all tasks"
    assert set(players_of(ONE_DIE, named_players(["nash"]), references=False)) == {"nash"}
    with pytest.raises(ValueError, match="unknown agent 'wizard'"):
        named_players(["wizard"])
    with pytest.raises(ValueError, match="illegal must be 'random' or 'raise' in this benchmark, not 'lose'"):
        named_players(["chat:one,illegal=lose"])


def test_the_command_writes_tables_a_page_and_json(tmp_path):
    with serving() as server:
        spec = f"chat:tiny,url={server.url}"
        result, found = with_json(tmp_path, *COMMAND, spec, "numbers", "--no-references", "--report", tmp_path)
    for words in ("seed 0", "regret a move", "regret by decision", "how often each bluffs", "tiny", "numbers"):
        assert words in result
    assert [each["player"] for each in found["scores"]] == ["tiny", "numbers"]
    assert found["scores"][0]["tally"]["moves"] > 40
    assert "--no-references" in found["command"]
    assert (tmp_path / "result.replies.jsonl").exists()
    assert (tmp_path / f"bluffs_{ONE_DIE.name}.png").exists()
    assert "players who speak in words" in (tmp_path / "index.html").read_text()


@pytest.mark.thorough
def test_a_stopped_run_goes_on_without_asking_again(tmp_path):
    """Not one reply is asked for twice, although no part was finished."""
    whole, part = tmp_path / "whole.json", tmp_path / "part.json"
    with serving() as server:
        spec = f"chat:tiny,url={server.url},at_once=1,tries=1"
        words = [*COMMAND, spec, "--no-references"]
        done(*words, "--json", whole)
        asked = len(server.asked)
        server.answer = lambda body: (500, {}, b"") if len(server.asked) > asked + 35 else lowest(body)
        assert "no reply from" in refusal(*words, "--json", part)
        server.answer, before = lowest, len(server.asked)
        done(*words, "--json", part, "--resume")
        assert len(server.asked) - before == asked - 35
    scores = [json.loads(file.read_text())["scores"] for file in (whole, part)]
    assert scores[0] == scores[1]


@few(1, "command", [["arena", "liars_dice"], ["evaluate", "liars_dice"]], ids=lambda words: words[0])
def test_other_commands_go_on_too_and_count_all(command, tmp_path):
    """Without a seed, too, and with a server that is not there first: then there is nothing to go on with."""
    file = tmp_path / "out.json"
    other = ["random"] if command[0] == "arena" else ["--against", "random"]
    with serving() as server:
        words = [*command, f"chat:tiny,url={server.url},at_once=1,tries=1", *other, "-o", "num_dice=1", "--games", "6"]
        for answers in (0, 4, 10**6):
            before = len(server.asked)
            server.answer = lambda body, last=before + answers: lowest(body) if len(server.asked) <= last else (500, {}, b"")
            result = run(*words, "--json", file, *(["--resume"] if answers > 4 else []))
            assert (result.exit_code == 0) == (answers > 4), result.output
        asked = len(server.asked) - 2
    assert len((tmp_path / "out.replies.jsonl").read_text().splitlines()) == asked
    assert f"tiny: {asked} moves, 0 replies without a legal move" in " ".join(result.output.split())


def test_what_models_use_elsewhere_is_counted(tmp_path):
    with serving() as server:
        agent = Chat("tiny", url=server.url, price=1.0)
        meter = ChatMeter([agent])
        variant = configure("liars_dice", num_dice=1)
        found = play_table(variant, [agent, make_agent("random")], 12, 1, workers=Shuffled().metered(meter))
        np.testing.assert_array_equal(found, play_table(variant, [agent, make_agent("random")], 12, 1))
    assert dataclasses.astuple(meter.tallies[0]) == pytest.approx(dataclasses.astuple(agent.tally))
    assert agent.tally.cost > 0
