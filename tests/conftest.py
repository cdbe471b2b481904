"""Shared fixtures and settings."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side: before anything imports PyTorch

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest
from hypothesis import HealthCheck, settings

from tests.support.libraries import (  # noqa: F401
    pytest_collection_modifyitems,
    pytest_deselected,
    pytest_runtest_logreport,
    pytest_sessionfinish,
)

# Shells start background processes with SIGINT ignored, and child processes inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def scaled(compiled: int, interpreted: int) -> int:
    """A number of games, steps or simulations, smaller if NUMBA_DISABLE_JIT=1 runs kernels hundreds of times slower."""
    return interpreted if numba.config.DISABLE_JIT else compiled


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Keep solutions in a folder of the test run, shared by its processes, not in the user's cache."""
    folder = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DICE_ENVS_CACHE", str((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "solutions"))
        yield


@pytest.fixture
def threads_change_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


# FUZZ=100 in the environment tries a hundred times the usual number of examples.
FUZZ = int(os.environ.get("FUZZ", "1"))
EXAMPLES = scaled(40, 5) * FUZZ
# No test has a deadline: machines are shared and noisy, and the first example compiles kernels.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=EXAMPLES)
# In CI every run tries the same examples; elsewhere each run tries new ones.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

ROOT = Path(__file__).resolve().parent.parent
posix = pytest.mark.skipif(os.name != "posix", reason="needs signals, FIFOs, links or permissions as POSIX has them")

# Random streams and hashes let 64-bit numbers wrap around, of which NumPy warns when kernels run as Python. Nothing else
# may overflow.
WRAPPING_MODULES = ("dice_envs.core.dice", "dice_envs.agents.mcts.tree", "dice_envs.experiments.reproduce.fatestones")


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "error:overflow:RuntimeWarning:agents")
    for module in WRAPPING_MODULES:
        config.addinivalue_line("filterwarnings", f"ignore:overflow encountered in scalar:RuntimeWarning:{module}")


# For subprocesses that only show that something runs: kernels that compile fast, with the same settings as `make test`.
# (Below 1, numba cannot cache what calls other kernels.)
COMPILES_SOON = {"NUMBA_OPT": "1", "NUMBA_BOUNDSCHECK": "1"}


def python(*words: str, path: Path = ROOT, env: Any = (), timeout: float | None = 500, **more: Any) -> Any:
    """Run Python to its end, and return the process with its output as text; `more` are arguments of `subprocess.run`."""
    env = {**os.environ, **COMPILES_SOON, "PYTHONPATH": str(path), **dict(env)}
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True, timeout=timeout, **more)


@pytest.fixture
def run_python(tmp_path):
    """Run Python code in a fresh process (kernels: COMPILES_SOON) and return what it printed; fails if the code fails."""

    def run(code: str, path: Path = ROOT, **env: str) -> str:
        done = python("-c", code, path=path, env=env, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
