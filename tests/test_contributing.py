"""The walk-throughs of CONTRIBUTING: the code shown is put in place, and works.

Two more are in tests/test_project.py: a sixth game and a command.
"""

import os
import re
import subprocess
import sys

import pytest

from tests.conftest import COMPILES_SOON, ROOT
from tests.support.walkthrough import shown


def run_with_a_row(tmp_path, path, table, row, places, only):
    """Run tests of a file with one more row in its table and with modules put into packages; return how many passed.

    Modules are added through the packages' paths, because copies of the packages would compile every kernel again.
    """
    source = (ROOT / path).read_text()
    assert source.count(table) == 1
    copy = tmp_path / "test_with_a_row.py"
    copy.write_text(source.replace(table, f"{table}{row}"))
    lines = ["import importlib"]
    lines += [f"importlib.import_module({package!r}).__path__.append({str(folder)!r})" for package, folder in places.items()]
    (tmp_path / "in_place.py").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "in_place", str(copy), "-k", only]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), **COMPILES_SOON}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return int(re.search(r"(\d+) passed", done.stdout)[1])


@pytest.mark.slow
def test_an_agent_from_one_file_and_a_line_of_tests(tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "cautious.py").write_text(shown("How to add an agent", '"""'))
    row = shown("How to add an agent", "    ")
    places = {"dice_envs.agents": tmp_path / "agents"}
    only = "cautious or has_a_row"
    assert run_with_a_row(tmp_path, "tests/agents/test_every_agent.py", "ROWS = {\n", row, places, only) >= 10


@pytest.mark.slow
def test_an_exact_measure_from_one_file_and_a_line_of_tests(tmp_path):
    sources = {"games": shown("How to add a game"), "exact": shown("How to add an exact measure", '"""')}
    for package, source in sources.items():
        (tmp_path / package).mkdir()
        (tmp_path / package / "pig.py").write_text(source)
    row = shown("How to add an exact measure", "    ")
    places = {f"dice_envs.{package}": tmp_path / package for package in sources}
    assert run_with_a_row(tmp_path, "tests/exact/test_measure.py", "SMALL = {\n", row, places, "pig and not awkward") >= 4


OPTIMAL = """
import dice_envs.exact, dice_envs.games
dice_envs.games.__path__.append({games!r})
dice_envs.exact.__path__.append({exact!r})
import numpy as np
from dice_envs.exact.pig import _choices

target = 100
mine = np.zeros((target, target, target + 1))
for _ in range({sweeps}):
    mine = np.maximum(*_choices(target, mine, mine))
print(mine[0, 0, 0])
"""


@pytest.mark.slow
def test_the_measure_that_is_shown_is_right(tmp_path, run_python):
    """In optimal play the first player wins 53.06 %: T. Neller, C. Presser, Optimal Play of the Dice Game Pig (2004)."""
    folders = {}
    for package, section, begins in (("games", "How to add a game", ""), ("exact", "How to add an exact measure", '"""')):
        folders[package] = str(tmp_path / package)
        (tmp_path / package).mkdir()
        (tmp_path / package / "pig.py").write_text(shown(section, begins))
    assert float(run_python(OPTIMAL.format(sweeps=200, **folders))) == pytest.approx(0.5306, abs=1e-4)


def test_a_recipe_is_one_entry(monkeypatch):
    from dice_envs.experiments import sweep

    added = eval(f"{{{shown('How to add a recipe')}}}")
    (name,) = added
    monkeypatch.setattr(sweep, "RECIPES", {**sweep.RECIPES, **added})
    ((run, _, settings, _),) = sweep.runs_of("liars_dice", "equilibrium", {}, [3], [name])
    assert (run, settings) == ("recipe_large_steps_seed_3", added[name])
