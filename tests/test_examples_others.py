"""Examples of `experiments/examples` that learn with other libraries of the main environment: each does learn."""

import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def run_example(name, *arguments):
    """What the example prints."""
    command = [sys.executable, "-m", f"experiments.examples.{name}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_torchrl_ppo_learns():
    """Uniformly random play wins 0.10 of the games."""
    pytest.importorskip("torchrl")
    printed = run_example("torchrl_ppo", "--steps", "150000", "--seed", "5")
    assert printed.startswith("seed 5\n")
    (wins, best) = re.findall(r"wins (0\.\d+) of the games against numbers, where a best response wins (0\.\d+)", printed)[0]
    assert 0.5 < float(wins) < float(best) < 1


@pytest.mark.slow
def test_wrong_options_are_named():
    pytest.importorskip("torchrl")
    command = [sys.executable, "-m", "experiments.examples.torchrl_ppo", "--steps", "0"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert re.search(r"--steps must be .*1.*not 0", done.stderr)
