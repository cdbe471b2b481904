"""Type checkers know exactly the games' modules and their options."""

import pytest

from dice_envs import liars_dice_v0
from tests.conftest import ROOT
from tests.support.stubs import PATH, stub

RIGHT = """
import dice_envs
from dice_envs import score_dice_v0

env = dice_envs.liars_dice_v0.env(num_players=3, num_dice=[5, 4, 4], wild="ones")
raw = dice_envs.fatestones_v0.raw_env(hand_size=2, render_mode="ansi").variant
both = score_dice_v0.parallel_env(pool_a=(6, 6), max_cycles=10)
opponents: dice_envs.envs.learner.Opponents = dice_envs.Mixture(["random"])
one = dice_envs.SeatEnv("liars_dice", opponents=["numbers", dice_envs.Uniform()], num_players=3)
"""
WRONG = """
import dice_envs
from dice_envs import lairs_dice_v0
dice_envs.mesure
dice_envs.lairs_dice_v0
dice_envs.liars_dice_v0.env(num_dices=3)
dice_envs.liars_dice_v0.env(wild="twos")
dice_envs.liars_dice_v0.parallel_env()
dice_envs.SeatEnv("liars_dice", opponents=3)
"""


def test_the_stub_says_what_the_games_do():
    with open(PATH, encoding="utf-8") as file:
        assert file.read() == stub(), "a game's options have changed; `make figures NAME=stubs` writes the stub anew"


def test_options_are_in_the_signature():
    with pytest.raises(TypeError):
        liars_dice_v0.env("liars_dice")
    assert list(liars_dice_v0.env.__signature__.parameters)[:2] == ["num_players", "num_dice"]


@pytest.mark.slow
def test_mypy_finds_what_is_misspelt(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    arguments = ["--config-file", "", "--follow-imports", "silent", "--ignore-missing-imports", "--strict", "--no-pretty"]
    files = [str(tmp_path / name) for name in ("right.py", "wrong.py")]
    report, _, _ = api.run([*arguments, "--cache-dir", str(tmp_path / "cache"), *files])
    found = [line.split(":")[:2] for line in report.splitlines() if ": error:" in line]
    wrong = len(WRONG.splitlines())
    assert [(name.rsplit("/", 1)[-1], int(line)) for name, line in found] == [
        ("wrong.py", line) for line in range(3, wrong + 1)
    ], report
