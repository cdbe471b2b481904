"""Every command of the README and of the page on the command line runs, with less work than shown."""

import re
import shlex

import pytest

from dice_envs import Measurement, Measures, configure, measure
from dice_envs.experiments.arena.results import Edge, edge_grid
from dice_envs.experiments.train import distances_grid
from tests.conftest import ROOT, python
from tests.support.sittings import save

TEXT = (ROOT / "README.md").read_text()
PAGES = TEXT + (ROOT / "docs" / "command_line.md").read_text()
COMMANDS = sorted(set(re.findall(r"^dice-envs ((?!.*--web)[^#\n]*?)\s*(?:#.*)?$", PAGES, re.M)))  # tests of the page play on it
ONE_DIE = "liars_dice_openspiel_1"
LESS = {  # by command: words to replace, and arguments to add
    **dict.fromkeys(("play", "review", "agents", "sheet", "mcp"), ({}, [])),
    "arena": ({"100000": "200", "ppo:runs/liars_dice_quick": "ppo"}, ["--seed", "1"]),
    "train": ({"num_dice=3": "num_dice=1"}, ["--steps", "2048", "--evaluation-games", "100", "--out", "run"]),
    "measure": ({"num_dice=3": "num_dice=1"}, []),
    "evaluate": ({}, ["--games", "100"]),
    "leaderboard": ({"thirties": "thirties_maximize"}, ["random", "--minutes", "0.2"]),
    "reproduce": ({}, ["--dice", "2", "--games", "1000"]),
    "solve": ({"num_dice=3": "num_dice=2"}, []),
    "learners": ({"5": "0.01"}, ["--seeds", "1"]),
    "language": ({"liars_dice_3": ONE_DIE}, ["--positions", "4", "--games", "4", "--no-references", "numbers"]),
    "bench": ({"liars_dice": "thirties"}, ["--quick"]),
    "distill": ({"num_dice=3": "num_dice=1", "3000": "50"}, ["--out", "distilled.npz"]),
}


def test_there_are_commands():
    assert len(COMMANDS) >= 10
    assert {own_name(command.split()) for command in COMMANDS} <= set(LESS)


def own_name(words):
    return words[words[0] == "benchmark"]


ENDS = {block.splitlines()[0]: block.splitlines() for block in re.findall(r"```text\n(.*?)```", TEXT, re.S)}
FIGURE = r"([\d.]+)(?: ± ([\d.]+))?"


def shows(grid, title, capsys):
    grid.show()
    shown = capsys.readouterr().out.splitlines()
    assert [line.rstrip() for line in shown] == [line.rstrip() for line in ENDS[title]]


@pytest.mark.parametrize(
    ("title", "agent", "digits"),
    [("Games won, % of 20,000 against each", "ppo", 1), ("What is won and what could be, % of games", "mcts:50", 2)],
)
def test_what_was_won_is_as_printed(title, agent, digits, capsys):
    edges = []
    for line in ENDS[title]:
        for name, *cells in re.findall(rf"│ (\S+) +│ +{FIGURE} │ +{FIGURE} │ +{FIGURE} │", line):
            wins, _, best, best_ci95, share, ci95 = (float(cell or 0) / 100 for cell in cells)
            edges.append(Edge(agent, name, wins, best, best_ci95, share, ci95))
    assert edges
    if agent != "ppo":
        assert f"`{agent} beats {name}: it wins {100 * wins:.2f} ± " in TEXT
    shows(edge_grid(edges, title, digits), title, capsys)


def test_the_end_of_make_train_nash_is_as_printed(capsys):
    title = "How far it is from optimal play"
    found = [each for line in ENDS[title] for each in re.findall(rf"│ (.+?) +│ +{FIGURE} │ +{FIGURE} │ +{FIGURE} │", line)]
    rows = [(name, float(own), float(likeliest), float(best)) for name, own, _, likeliest, _, best, _ in found]
    assert rows
    measured = [
        Measures(
            "liars_dice",
            {},
            ("ppo", "its likeliest actions")[k],
            1,
            None,
            tuple(Measurement(row[0], row[1 + k], row[3], 0.0) for row in rows),
        )
        for k in range(2)
    ]
    shows(distances_grid(measured), title, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command, tmp_path):
    words = shlex.split(command)
    other, more = LESS[own_name(words)]
    arguments = [*(other.get(word, word) for word in words), *more]
    if "--exact" in arguments:
        arguments += ["-o", "num_dice=2"]
    if words[0] == "train" and "-o" not in words:
        arguments += ["-o", "num_dice=1"]
    if "--response" in arguments:
        arguments += ["--minutes", "0.01"]
    if "mine.py:Player" in words:  # an agent of one's own
        (tmp_path / "mine.py").write_text("from dice_envs import Uniform\n\n\nclass Player(Uniform):\n    plays = 'thirties'\n")
    if words[0] == "review":
        path = tmp_path / words[1] if words[1].endswith(".json") else tmp_path / words[1] / "game.json"
        path.parent.mkdir(exist_ok=True)
        save(path, configure("thirties", num_players=1))
    done = python("-m", "experiments", *arguments, cwd=tmp_path, input="help\nq\n")
    assert done.returncode == (130 if words[0] == "play" else 0), done.stdout[-2000:] + done.stderr[-2000:]  # q: as Ctrl-C


MEASURED = {  # the variant measured in a row of the table of results, by the row's beginning
    "Liar's Dice, one die each": {"game": "liars_dice", "rules": "openspiel", "num_dice": 1},
    "The Shakes, three players": {"game": "shakes"},
    "Thirties": {"game": "thirties", "num_players": 1},
    "Score dice": {"game": "score_dice"},
}


@pytest.mark.parametrize("row", [row if row != "Score dice" else pytest.param(row, marks=pytest.mark.slow) for row in MEASURED])
def test_random_trained_and_optimal_play_are_as_the_table_says(row):
    (found,) = re.findall(rf"^\| {re.escape(row)}.*?\| ([\d.]+) \| ([\d.]+)[^|:]*(?:: ([\d.]+)\))? \| ([\d.]+) \|$", TEXT, re.M)
    measured = [measure(agent=who, seed=1, **MEASURED[row]).measures[0] for who in ("random", "ppo", "ppo:greedy=true")]
    values = [(each.value, each.error) for each in measured] + [(measured[0].optimum, measured[0].error)]
    for said, (value, error) in zip(found, values, strict=True):
        if said:  # the likeliest actions are shown where they play better
            assert float(said) == pytest.approx(value, abs=0.6 * 10 ** -len(said.partition(".")[2]) + error)
