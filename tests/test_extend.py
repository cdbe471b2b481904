"""The walk-throughs of docs/extend: the code shown is put in place, and works."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, python
from tests.support.walkthrough import PAGES, shown


def project_with(folder, files):
    """Make a copy of the project with these files, texts by path. The rest are links, so no kernel is compiled again."""
    where = ("dice_envs/__init__.py", "tests/conftest.py")  # find the project by where they are
    texts = {Path(path): text for path, text in ({path: (ROOT / path).read_text() for path in where} | files).items()}
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for parent in {parent for path in texts for parent in path.parents}:
        for each in (ROOT / parent).glob("*"):  # none in a folder that is new
            if not (folder / parent / each.name).exists() and each.name != "__pycache__" and each.name[0] != ".":
                (folder / parent / each.name).symlink_to(each)
    return folder


def with_row(path, table, row):
    """A file of tests with one more row in a table."""
    source = (ROOT / path).read_text()
    assert source.count(table) == 1
    return source.replace(table, f"{table}{row}")


def run_in(folder, *words):
    """Run a Python module in a copy of the project, and return what it printed."""
    done = python("-m", *words, path=folder, cwd=folder)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def number_passed(folder, only, *files):
    """The number of tests that have passed, of which all must."""
    return int(re.search(r"(\d+) passed", run_in(folder, "pytest", "-q", "-x", "-n", "0", *files, "-k", only))[1])


@pytest.mark.slow
def test_a_sixth_game_from_one_file(tmp_path, run_python):
    """It gets every interface without further changes."""
    copy = project_with(tmp_path / "copy", {"dice_envs/games/pig.py": shown("game")})
    run_python(
        "import gymnasium, dice_envs\nfrom dice_envs import pig_v0\nimport dice_envs.envs.sb3\n"
        "gymnasium.make('dice_envs/Pig-v0').reset(seed=1)\n"
        "gymnasium.make_vec('dice_envs/Pig-v0', num_envs=3).reset(seed=1)\n"
        "dice_envs.envs.sb3.make_vec_env('pig', 2).reset()\n"
        "from dice_envs.experiments.arena import tournament\n"
        "print(tournament(dice_envs.configure('pig'), ['random', 'random'], 50, 1).win_rate)",
        copy,
    )
    # Also in the browser, if there is one.
    names = ("games/test_conformance", "agents/test_every_agent", "agents/mcts/test_room", "envs/test_frames")
    files = [f"tests/{name}.py" for name in (*names, "experiments/web/test_page")]
    assert number_passed(copy, "pig and not torchrl and not videos", *files) >= 60


@pytest.mark.slow
def test_an_agent_from_one_file_and_a_line_of_tests(tmp_path):
    path = "tests/agents/test_every_agent.py"
    row = with_row(path, "ROWS = {\n", shown("agent", "    "))
    copy = project_with(tmp_path / "copy", {"agents/cautious.py": shown("agent", '"""'), path: row})
    assert number_passed(copy, "cautious or has_a_row", path) >= 10


@pytest.mark.slow
def test_an_exact_measure_from_one_file_and_a_line_of_tests(tmp_path):
    """In optimal play the first player wins 53.06 %: T. Neller, C. Presser, Optimal Play of the Dice Game Pig (2004)."""
    path = "tests/exact/test_measure.py"
    files = {
        "dice_envs/games/pig/__init__.py": shown("game"),
        "dice_envs/games/pig/exact.py": shown("measure", '"""') + shown("measure", "from typing import Annotated\n"),
        path: with_row(path, "VARIANTS = {\n", shown("measure", "    ")),
    }
    copy = project_with(tmp_path / "copy", files)
    assert number_passed(copy, "pig and not awkward", path) >= 4
    assert "Steps of value iteration." in run_in(copy, "experiments", "solve", "pig", "--help")
    assert run_in(copy, "experiments", "solve", "pig") == "the player who begins wins 53.06 % of games\n"


def changed(source, diff):
    """A text with the changes of a diff, each of which has a place of its own."""
    for hunk in diff.split("@@\n"):
        lines = [(line[:1], line[1:]) for line in hunk.splitlines()]
        before, after = ("\n".join(line for sign, line in lines if sign != left) for left in "+-")
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    return source


def test_another_rule_of_a_game(tmp_path, run_python):
    """It changes what it says, and nothing where it is off."""
    game, exact = re.findall(r"```diff\n(.*?)```", (PAGES / "rule.md").read_text(), re.S)
    files = {
        "dice_envs/games/pig/__init__.py": changed(shown("game"), game),
        "dice_envs/games/pig/exact.py": changed(shown("measure", '"""'), exact),
        "dice_envs/games/plain.py": shown("game").replace('name="pig"', 'name="plain"'),
    }
    code = """
import numpy as np
from dice_envs import Batch, Uniform, measure

for ruinous in (False, True):
    pig, plain = Batch("pig", 1, seed=4, ruinous=ruinous), Batch("plain", 1, seed=4)
    lost = same = moves = 0
    while moves < 100 and pig.seats[0] >= 0 <= plain.seats[0]:
        before = pig.states["scores"].sum()
        for batch in (pig, plain):
            batch.play(batch.legal().argmax(1) if moves % 3 else 1 - batch.legal()[:, ::-1].argmax(1))
        lost += pig.states["scores"].sum() < before
        same += np.array_equal(pig.observe(), plain.observe())
        moves += 1
    print(ruinous, lost > 0, same == moves)
    try:
        print(measure("pig", Uniform(), target=10, ruinous=ruinous).measures[0].name)
    except ValueError as problem:
        print(problem)
"""
    assert run_python(code, project_with(tmp_path / "copy", files)).splitlines() == [
        "False False True",
        "games won from a best response",
        "True True False",
        "ruinous must be False for an exact result, not True",
    ]


def test_figures_are_made_without_make():
    """The commands are those of the Makefile."""
    page, makefile = (path.read_text() for path in (PAGES / "releasing.md", ROOT / "Makefile"))
    (commands,) = re.findall(r"### Without make\n.*?```sh\n(.*?)```", page, re.S)
    (checked,) = re.findall(r"^CHECKED = (.*)$", makefile, re.M)
    ours = dict(re.findall(r"^FIGURES_(\w+) = (.*)$", makefile, re.M))
    wanted = [ours[name] for name in ("pages", "golden", "stubs", "pictures", "libraries")]
    assert commands.splitlines() == [each.replace("$(CHECKED)", checked).replace("$(BIN)/", "") for each in wanted]


def test_a_recipe_is_one_entry(monkeypatch):
    from dice_envs.experiments import sweep

    added = eval(f"{{{shown('recipe')}}}")
    (name,) = added
    monkeypatch.setattr(sweep, "RECIPES", {**sweep.RECIPES, **added})
    ((run, _, settings, _),) = sweep.runs_of("liars_dice", "equilibrium", {}, [3], [name])
    assert (run, settings) == ("recipe_large_steps_seed_3", added[name])


@pytest.mark.thorough
def test_a_command_from_one_file(tmp_path):
    copy = project_with(tmp_path / "copy", {"experiments/commands/luck.py": shown("command", '"""')})
    arguments = ["liars_dice", "-o", "num_dice=1", "--games", "200", "--seed", "1", "--json", "out.json"]
    printed = run_in(copy, "experiments", "luck", *arguments)
    assert re.fullmatch(r"the first of two wins \d+\.\d\d ± \d\.\d\d %, seed 1\n", printed)
    assert json.loads((copy / "out.json").read_text())["games"] == 200
    listed = run_in(copy, "experiments", "--help")
    assert listed.index("│ sheet ") < listed.index("│ reproduce ") < listed.index("│ luck ")
