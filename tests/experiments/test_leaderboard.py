"""The board: named tasks, agents' results, and agents written by users."""

import json
import math
import re
from unittest.mock import Mock

import numpy as np
import pytest

from dice_envs import TASKS, Task, configure, response_values
from dice_envs.agent.specs import factories, make_agent
from dice_envs.core.work import TooLong
from dice_envs.experiments.arena import elo_gap
from dice_envs.experiments.commands import leaderboard
from dice_envs.experiments.commands.leaderboard import as_markdown, board, chosen, sections, usual_agents
from dice_envs.experiments.ui.grids import short
from dice_envs.experiments.ui.pages import About, render
from tests.experiments.ui.test_page import parsed, shown
from tests.support.commands import done, refusal, run, with_json
from tests.support.liars_dice_games import winning_probability

ONE_DIE = "liars_dice_openspiel_1"


def test_tasks_are_what_they_say():
    assert 12 <= len(TASKS) <= 15
    for name, task in TASKS.items():
        assert task.name == name
        assert task.variant.game.name == task.game
        assert task.asks
        assert name not in factories(), "a word on the command line is a task or an agent"
        assert len(task.field) in (0, task.variant.facts.num_seats - 1)
        for spec in task.field:
            make_agent(spec)
    assert {task.options["goal"] for task in TASKS.values() if task.game == "thirties"} == {
        "maximize", "minimize_loss", "thirty_or_over", "optimal",
    }  # fmt: skip


# The exact agent of each game, and its tolerance where it is optimal only within a precision.
EXACT = {
    "thirties": ("thirties:goal", 1e-9),
    "liars_dice": ("nash", 5e-3),
    "fatestones": ("nash", 5e-3),
    "shakes": ("bayes", 1e-9),
    "score_dice": ("score_response", 1e-9),
}
FAST = ("thirties_maximize", ONE_DIE)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in FAST else pytest.mark.thorough if task.game == "thirties" else pytest.mark.slow)
        for name, task in TASKS.items()
        if not task.field and name != "liars_dice_5"
    ],
)
def test_random_play_has_0_and_exact_play_1(name):
    spec, short = EXACT[TASKS[name].game]
    (place,) = board([name], [spec], seed=1).tasks
    best, worst = place.standings
    assert (best.agent, worst.agent) == (spec, "random")
    assert worst.score == 0
    assert worst.gap > 0
    assert best.score == pytest.approx(1, abs=short + (best.score_error or best.error or 0.0))
    assert best.alone_ms > 0
    assert best.batch_ms > 0
    assert best.optimum == worst.optimum


def test_agents_that_cannot_be_measured_are_evaluated_without_luck(monkeypatch):
    monkeypatch.setattr(leaderboard, "measure", Mock(side_effect=TooLong("5 positions")))
    monkeypatch.setattr(leaderboard, "response_values", lambda *given: response_values(*given))  # without a time limit
    options = {"num_dice": 1, "num_faces": 3, "rounds": "single"}
    found = board([Task("small", "liars_dice", options, "exploitability", "x")], [], seed=1, minutes=600)
    (random,) = found.tasks[0].standings
    exact = winning_probability(configure("liars_dice", **options), "random", "nash")
    assert abs(random.wins - exact) < 2 * random.wins_error
    assert 0 < random.wins_error < 0.02, "as played it is about 0.025"
    share = f"{100 * random.wins:.2f} ± {100 * random.wins_error:.2f} %"
    assert random.missing.startswith(f"wins {share} against nash (1,000 games")
    assert random.missing.endswith("but it would take more than 600 minutes: there are 5 positions to evaluate")
    assert random.missing in as_markdown(found, "command")
    (summary,) = sections(found)[0].grids
    figures = [heading for number, heading in enumerate(summary.headings) if number not in summary.words]
    assert figures == ["random play", "optimal play"]


@pytest.mark.parametrize("share", [0.5, 0.9, 0.999, 0.001])
def test_the_interval_of_elo_holds_the_true_one(share, monkeypatch):
    """Of all numbers of wins in 100 games, those whose interval holds it have a chance of 95 % or more."""
    task, chance = Task("small", "liars_dice", {}, "share of wins", "x", ("random",)), 0.0
    for wins in range(101):
        monkeypatch.setattr(leaderboard, "play_table", Mock(return_value=np.repeat([[1, -1], [-1, 1]], [wins, 100 - wins], 0)))
        leaderboard._against_field(found := leaderboard.Standing("small", "x"), task, task.variant, "x", 1, 100, 1.0)
        low, high = found.elo_interval
        assert low < found.elo < high
        assert (math.isfinite(low), math.isfinite(high)) == (wins > 0, wins < 100)
        chance += math.comb(100, wins) * share**wins * (1 - share) ** (100 - wins) * (low <= elo_gap(share) <= high)
    assert 0.95 <= chance < 0.999
    assert elo_gap(10 / 11) == pytest.approx(400)


@pytest.mark.thorough
def test_a_field_gives_elo():
    task = Task("small", "liars_dice", {"num_players": 3, "num_dice": 1}, "share of wins", "x", ("random", "random"))
    (place,) = board([task], ["numbers", "bayes"], seed=1, sample=4000).tasks
    first, second, third = place.standings
    assert (first.agent, second.agent) == ("numbers", "random")
    assert first.elo_interval[0] > 0
    assert second.elo_interval[0] < 0 < second.elo_interval[1], "random against random"
    assert leaderboard._grid(place).rows[0][3] == f"{first.elo:.0f} ({first.elo_interval[0]:.0f}…{first.elo_interval[1]:.0f})"
    assert second.value == pytest.approx(1 / 3, abs=2 * second.error)
    assert (first.score, first.optimum) == (None, None)
    assert third.missing.startswith("bayes plays shakes only")


def test_agents_that_need_no_parameters_are_usual():
    assert {"random", "mcts:30", "nash", "champion", "reader", "ppo"} <= set(usual_agents("liars_dice"))
    for game in ("thirties", "shakes", "score_dice"):
        for spec in usual_agents(game):
            make_agent(spec)


def test_words_are_tasks_games_or_agents():
    tasks, specs = chosen(["score-dice", "mcts:5", "random", ONE_DIE, "mcts:5"])
    assert [task.name for task in tasks] == ["score_dice_3d6", "score_dice_5d6_mixed", ONE_DIE]
    assert specs == ["mcts:5", "random"]
    assert chosen([]) == (list(TASKS.values()), [])
    for word, words in (("wizard", "'wizard' is no task and no agent; tasks are: liars_dice_"), ("mcts:x=1", "has no")):
        with pytest.raises(ValueError, match=words):
            chosen([word])
    with pytest.raises(ValueError, match="there is no task 'chess'"):
        board(["chess"])


@pytest.mark.thorough
def test_the_board_in_all_forms(tmp_path):
    text, report = tmp_path / "board.md", tmp_path / "report"
    command = ["leaderboard", "thirties_maximize", ONE_DIE, "random", "numbers", "--seed", 3, "--markdown", text]
    result, data = with_json(tmp_path, *command, "--report", report)
    assert data["seed"] == 3
    missing = [each["missing"] for each in data["tasks"][0]["standings"] if each["agent"] == "numbers"]
    assert "numbers plays liars_dice only" in missing[0]
    assert "– numbers: numbers plays liars_dice only" in result
    tree = parsed((report / "index.html").read_text())
    assert len(list(tree.iter("img"))) == len(list(report.glob("*.png"))) == 1
    assert "numbers" in shown(tree)
    assert "--seed 3" in data["command"] in text.read_text()
    assert "| numbers |" in text.read_text()
    assert text.read_text().count("| random |") >= 2


def test_an_agent_of_ones_own_that_plays_against_the_rules_is_named(tmp_path):
    (tmp_path / "mine.py").write_text("class Wrong:\n    def act(self, turn):\n        return [10_000] * len(turn)\n")
    wrong = f"{tmp_path / 'mine.py'}:Wrong"
    assert "10000" in refusal("leaderboard", "thirties_maximize", "random", wrong, "--json", tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_an_agent_alone_gets_a_line_and_a_row_of_each_task_that_it_plays(tmp_path, monkeypatch):
    tasks = {name: TASKS[name] for name in ("thirties_maximize", "shakes_3", ONE_DIE)}
    monkeypatch.setattr("dice_envs.experiments.commands.leaderboard.TASKS", tasks)
    mine = tmp_path / "mine.py"
    mine.write_text(
        "class Lowest:\n    def check_variant(self, variant):\n        if variant.game.name == 'shakes':\n"
        "            raise ValueError('no medicine')\n    def act(self, turn):\n        return turn.legal.argmax(axis=1)\n"
    )
    result, data = with_json(tmp_path, "leaderboard", f"{mine}:Lowest", "--seed", 1)
    assert [(place["name"], len(place["standings"])) for place in data["tasks"]] == [("thirties_maximize", 1), (ONE_DIE, 1)]
    for place in data["tasks"]:
        (own,) = place["standings"]
        assert own["score"] < 0
        assert f"\n{place['name']}: |  | {short(own['agent'])} | {own['value']:.6f} ± " in result
        assert re.search(
            rf"│ {place['name']} +│ {place['headline']} +│ +{own['value']:.4f} ± .* │ +{own['score']:.4f} ± ", result
        )
    assert "--minutes" not in data["command"], "a minute each is usual for one agent"
    nothing = tmp_path / "nothing.py"
    nothing.write_text(mine.read_text().replace("== 'shakes'", ""))
    assert "measured on none of these tasks; on thirties_maximize: no medicine" in refusal("leaderboard", f"{nothing}:Lowest")


def test_what_takes_too_long_is_left_out_with_the_reason(monkeypatch):
    monkeypatch.setattr("dice_envs.core.work.LOOKS", 0.0)
    found = board(["thirties_maximize"], ["random"], seed=1, minutes=0)
    (standing,) = found.tasks[0].standings
    assert standing.missing.startswith("it would take more than 0 minutes: there are ")
    assert standing.value is None
    assert "– random: it would take more" in as_markdown(found, "x")
    assert "it would take more" in shown(parsed(render("t", [], sections(found), About("c", {}))))


@pytest.mark.thorough
def test_a_stopped_board_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("dice_envs.experiments.jobs.KEEP_AFTER", 0.0)
    out = tmp_path / "board.json"
    command = ["thirties_maximize", "thirties:goal", "--seed", 1, "--json", out]
    asked = []
    real = leaderboard.measure

    def measured(variant, agent, **given):
        asked.append(agent)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return real(variant, agent, **given)

    monkeypatch.setattr("dice_envs.experiments.commands.leaderboard.measure", measured)
    assert run("leaderboard", *command).exit_code == 130
    assert run("leaderboard", *command).exit_code == 2
    done("leaderboard", *command, "--resume")
    assert asked == ["random", "thirties:goal", "thirties:goal"], "the first was kept"
    assert [each["agent"] for each in json.loads(out.read_text())["tasks"][0]["standings"]] == ["thirties:goal", "random"]
