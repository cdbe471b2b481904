"""The programs of experiments/examples run, learn, measure the result, and say how to run them."""

import ast
import importlib
import os
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT, python
from tests.support.subsets import covering

PATHS = {path.stem: path for path in (ROOT / "experiments" / "examples").glob("*.py") if path.stem != "__init__"}
MAKEFILE = (ROOT / "Makefile").read_text()
OWN_VENVS = re.search(r"^OWN_VENVS = (.*)", MAKEFILE, re.M).group(1).split()
HERE = sorted(name for name in PATHS if not name.startswith(tuple(f"{own}_" for own in OWN_VENVS)))

# Options for a run of a few seconds, and patterns and bounds of the figures in its last lines.
RUNS = [
    ("cleanrl_ppo", "--steps 16384", {r"wins ([\d.]+) of": (0.01, 0.86), r"exploitability ([\d.]+)": (0.2, 1.0)}),
    ("sb3_ppo", "--steps 8192", {r"with masks ([\d.]+) of": (24.5, 30.152)}),
    ("sb3_ppo", "--steps 8192 --game liars_dice", {r"with masks wins ([\d.]+) of": (0.3, 0.8576)}),
    ("sb3_ppo", "--steps 8192 --algorithm ppo", {r"with masks ([\d.]+) of": (6.0, 30.152)}),
    ("sb3_ppo", "--steps 8192 --algorithm dqn", {r"with masks ([\d.]+) of": (6.0, 30.152)}),
    ("torchrl_ppo", "--steps 100000", {r"wins ([\d.]+) of": (0.3, 0.86)}),
    ("learn_from_words", "--steps 10", {r"exploitability ([\d.]+) after": (0.3, 0.76)}),
]

# The row in docs/libraries.md of those that show how a library is used.
LIBRARIES = {
    "cleanrl_ppo": ("gymnasium", "liars_dice"),
    "sb3_ppo": ("stable-baselines3", "thirties"),
    "torchrl_ppo": ("torchrl", "liars_dice"),
}
MARKS = {name: [pytest.mark.library(library, f"example `{name}`", game=game)] for name, (library, game) in LIBRARIES.items()}
EXAMPLES = [pytest.param(name, *run, id=f"{name} {run[0]}", marks=MARKS.get(name, ())) for name, *run in RUNS]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options", "figures"), EXAMPLES)
def test_examples_end_with_measured_figures(name, options, figures):
    done = python("-m", f"dice_envs.experiments.examples.{name}", "--seed", "1", *options.split(), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("seed 1\n")
    for pattern, (low, high) in figures.items():
        found = re.search(pattern, "".join(done.stdout.splitlines(keepends=True)[-2:]))
        assert found, done.stdout
        assert low <= float(found.group(1)) <= high, done.stdout


def test_every_example_of_the_main_environment_is_run():
    assert {name for name, _, _ in RUNS} == set(HERE)


WRONG = {
    "--steps 0": "--steps must be a whole number from 1 to 10000000000, not 0",
    "--steps many": "argument --steps: invalid int value: 'many'",
    "--seed -1": "--seed must be a whole number from 0 to 4294967295, not -1",
    "--threads 0": "--threads must be a whole number from 1 to 256, not 0",
}


@covering(("name", "options"), HERE, WRONG)
def test_bad_options_are_told_in_one_line(name, options, monkeypatch, capsys):
    example = importlib.import_module(f"dice_envs.experiments.examples.{name}")
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *options.split()])
    with pytest.raises(SystemExit) as stopped:
        example.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"{name}.py: error: {WRONG[options]}\n"


def test_an_unknown_algorithm_is_told_with_those_there_are(monkeypatch, capsys):
    from dice_envs.experiments.examples import sb3_ppo

    monkeypatch.setattr(sys, "argv", ["sb3_ppo.py", "--algorithm", "a2c"])
    with pytest.raises(SystemExit):
        sb3_ppo.main()
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in ("--algorithm", "'a2c'", "maskable_ppo", "ppo", "dqn"))


@pytest.mark.parametrize("name", sorted(PATHS))
def test_headers_say_how_to_run_an_example(name):
    source = PATHS[name].read_text()
    shared = (ROOT / "experiments" / "examples" / "__init__.py").read_text()
    command = re.search(r"^    make example NAME=(\S+)(?: ARGS=\"(.*)\")?$", ast.get_docstring(ast.parse(source)), re.M)
    assert command, f"{name}'s header has no line `    make example NAME={name}`"
    assert command.group(1) == name
    for option in re.findall(r"--[a-z-]+", command.group(2) or ""):
        assert f'"{option}"' in source + shared, f"{name} has no option {option}"
    assert f"| `{name}` |" in (ROOT / "docs" / "interfaces.md").read_text(), f"docs/interfaces.md does not list {name}"


def test_make_example_takes_the_environment_that_the_name_says():
    def planned(*arguments):
        command = ["make", "--no-print-directory", "--dry-run", "--always-make", "example", "VENV=.venv", *arguments]
        # Not as a part of another `make`, such as `make play ARGS=...`.
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "ARGS"))}
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)

    lines = planned("NAME=sb3_ppo", "ARGS=--algorithm dqn").stdout.splitlines()
    assert lines[-1] == ".venv/bin/python -m experiments.examples.sb3_ppo --algorithm dqn"
    for own in OWN_VENVS:
        lines = planned(f"NAME={own}_some").stdout.splitlines()
        assert lines[-1].strip() == f".venv-{own}/bin/python -m experiments.examples.{own}_some"
    refused = planned()
    assert refused.returncode != 0
    assert all(name in refused.stderr for name in PATHS)
