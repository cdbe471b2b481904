"""Missing optional dependencies: an error names the extra, and only when it is needed."""

import re
import tomllib

import pytest

from dice_envs.core.machine import check_extra, needs
from tests.conftest import ROOT

WITHOUT = """
import importlib, sys
for name in ("torch", "stable_baselines3", "sb3_contrib", "PIL", "typer", "rich", "matplotlib", "filelock"):
    sys.modules[name] = None
import dice_envs
from dice_envs import liars_dice_v0
env = dice_envs.SeatEnv("liars_dice", opponents="numbers", render_mode="ansi")
env.reset(seed=1)
env.render()
liars_dice_v0.env().reset(seed=1)
print(round(dice_envs.measure("liars_dice", "numbers", rules="openspiel", num_dice=1).score, 3))
parts = ("envs.sb3", "learn.ppo", "experiments", "experiments.arena")
try:
    dice_envs.train("thirties")
except ImportError as problem:
    print(problem)
for module in (f"dice_envs.{part}" for part in parts):
    try:
        importlib.import_module(module)
    except ImportError as problem:
        print(problem)
"""


CPU = "; before it, for the small build: pip install torch --index-url https://download.pytorch.org/whl/cpu"


@pytest.mark.thorough
def test_without_any_extra(run_python):
    assert run_python(WITHOUT).splitlines() == [
        "0.409",
        f'dice_envs.train needs torch: pip install "dice-envs[sb3]"{CPU}',
        'dice_envs.envs.sb3 needs stable_baselines3: pip install "dice-envs[sb3]"',
        f'dice_envs.learn.ppo needs torch: pip install "dice-envs[sb3]"{CPU}',
        'the command line needs typer: pip install "dice-envs[commands]"',
        'the command line needs typer: pip install "dice-envs[commands]"',
    ]


PAGE = """
import importlib, sys
for name in ("torch", "stable_baselines3", "sb3_contrib", "tensorboard", "matplotlib", "PIL", "pyspiel", "ray"):
    sys.modules[name] = None
from typer.testing import CliRunner
from dice_envs.experiments.__main__ import app
for module in ("parts", "start_page", "table_page"):
    importlib.import_module(f"dice_envs.experiments.web.{module}")
for arguments, typed in (
    ("play liars_dice ppo -o rules=openspiel -o num_dice=1 --seed 1", "hint\\nq\\n"),
    ("arena liars_dice random numbers --games 10 --report report", ""),
):
    result = CliRunner().invoke(app, arguments.split(), input=typed)
    print(result.exit_code, "optimal play does it" in result.output, result.output.splitlines()[-1])
"""


@pytest.mark.thorough
def test_the_page_needs_its_own_extra_only(run_python, tmp_path):
    pytest.importorskip("nicegui")
    game, report = run_python(PAGE).splitlines()
    assert game == "130 True stopped"
    assert report == '2 False error: --report needs matplotlib: pip install "dice-envs[experiments]"'
    assert not list(tmp_path.iterdir()), "nothing was made before the error"


def test_every_extra_that_is_named_is_there():
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    sources = "".join(path.read_text() for folder in ("dice_envs", "experiments") for path in (ROOT / folder).rglob("*.py"))
    named = set(re.findall(r"\b(?:needs|check_extra)\(\"(\w+)\"", sources))
    learning = {"cuda", "experiments", "learners", "ray", "sb3"}
    assert learning | {"commands", "mcp", "render", "textarena", "verifiers", "web"} == named
    assert named <= set(extras)


def test_check_and_needs():
    check_extra("render", "a picture", "json")
    with pytest.raises(ImportError, match=r'^a picture needs nothing_like_it: pip install "dice-envs\[render\]"$') as caught:
        check_extra("render", "a picture", "json", "nothing_like_it")
    assert caught.value.name == "nothing_like_it"
    words = r'^a game needs nothing_like_it: pip install "dice-envs\[sb3\]"$'
    with pytest.raises(ImportError, match=words), needs("sb3", "a game"):
        import nothing_like_it.inside
    with pytest.raises(ImportError, match="cannot import name"), needs("sb3", "a game"):  # an error of another kind
        from json import nothing_like_it  # noqa: F401
