"""Training: a run is saved whole, goes on after a kill, and refuses what is damaged."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import agents
import experiments.train as training
from experiments.__main__ import app
from tests.conftest import ROOT

TINY = training.Preset(
    steps=4096, opponents=("random", "numbers"), num_envs=32, num_steps=16, minibatch=256, epochs=1, hidden=(16,),
    checkpoint_every=1, snapshot_every=2, past_selves=2, threads=1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def tiny_preset(monkeypatch):
    monkeypatch.setitem(training.PRESETS, "liars_dice", {"quick": TINY})


def run(*arguments):
    return CliRunner().invoke(app, ["train", "liars_dice", "--evaluation-games", "50", *map(str, arguments)])


def test_train_saves_and_measures(tmp_path):
    result = run("--out", tmp_path / "run", "--seed", 3, "-o", "num_dice=1", "--json", tmp_path / "result.json")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "run"
    written = {path.name for path in folder.iterdir()}
    assert {"config.json", "checkpoint.pt", "policy.npz", "results.json", "cross_table.png", "learning_curve.png"} <= written
    assert not [name for name in written if name.endswith(".tmp")]
    data = json.loads((tmp_path / "result.json").read_text())
    assert data["table"]["agents"] == ["ppo", "ppo greedy", "random", "numbers"]
    assert data["table"]["games"] == 50
    assert data["steps"] >= 4096
    assert data["curve"]
    assert (folder / "policy.npz").stat().st_size < 2**20
    arena = CliRunner().invoke(
        app, ["arena", "liars_dice", f"ppo:{folder / 'policy.npz'}", "random", "-o", "num_dice=1", "--games", "100"]
    )
    assert arena.exit_code == 0, arena.output


def test_resume_goes_on_from_the_checkpoint(tmp_path):
    folder = tmp_path / "run"
    assert run("--out", folder, "--seed", 3).exit_code == 0
    first = torch.load(folder / "checkpoint.pt", weights_only=True)
    again = run("--out", folder)
    assert again.exit_code == 2
    assert "holds a run already; add --resume" in again.stderr
    assert run("--out", folder, "--resume", "--steps", 8192).exit_code == 0
    second = torch.load(folder / "checkpoint.pt", weights_only=True)
    assert second["num_timesteps"] >= 8192 > first["num_timesteps"]
    assert second["num_selves"] > first["num_selves"] >= 2, "past selves came along"
    assert len(json.loads(second["curve"])) > len(json.loads(first["curve"]))
    other = run("--out", folder, "--resume", "-o", "num_dice=2")
    assert other.exit_code == 2
    assert "holds a run of liars_dice" in other.stderr


def test_resume_restores_the_very_policy(tmp_path):
    folder = tmp_path / "run"
    assert run("--out", folder, "--seed", 3).exit_code == 0
    before = agents.make(f"ppo:{folder / 'policy.npz'}")._policy.layers
    assert run("--out", folder, "--resume").exit_code == 0, "a finished run is measured again"
    after = agents.make(f"ppo:{folder / 'policy.npz'}")._policy.layers
    for (w1, b1), (w2, b2) in zip(before, after, strict=True):
        np.testing.assert_array_equal(w1, w2)
        np.testing.assert_array_equal(b1, b2)


@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_a_damaged_checkpoint_gets_one_line(tmp_path, content):
    folder = tmp_path / "run"
    assert run("--out", folder, "--seed", 3).exit_code == 0
    path = folder / "checkpoint.pt"
    policy = (folder / "policy.npz").read_bytes()
    path.write_bytes(path.read_bytes()[:-500] if content is None else content)
    result = run("--out", folder, "--resume", "--steps", 99999)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert "is damaged or of another run" in result.stderr
    assert (folder / "policy.npz").read_bytes() == policy, "nothing else was touched"


def test_a_checkpoint_cannot_run_code(tmp_path):
    folder = tmp_path / "run"
    assert run("--out", folder, "--seed", 3).exit_code == 0

    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "evil"),))

    torch.save({"policy": Evil()}, folder / "checkpoint.pt")
    assert run("--out", folder, "--resume").exit_code == 2
    assert not (tmp_path / "evil").exists()


@pytest.mark.slow
def test_a_killed_run_loses_no_more_than_a_checkpoint(tmp_path):
    folder = tmp_path / "run"
    code = (
        "import dataclasses, experiments.train as t; from tests.test_train import TINY\n"
        "t.PRESETS['liars_dice'] = {'quick': dataclasses.replace(TINY, steps=10**7)}\n"
        f"t.train('liars_dice', out=__import__('pathlib').Path({str(folder)!r}), seed=1)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = folder / "checkpoint.pt"
    deadline = time.monotonic() + 240
    seen = set()
    while len(seen) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
        if path.exists():
            seen.add(path.stat().st_mtime_ns)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(seen) == 3, "the run wrote no checkpoints"
    state = torch.load(path, weights_only=True)
    assert state["num_timesteps"] >= 3 * TINY.num_envs * TINY.num_steps
    assert agents.make(f"ppo:{folder / 'policy.npz'}")
    goal = state["num_timesteps"] + 2048
    result = run("--out", folder, "--resume", "--steps", goal)
    assert result.exit_code == 0, result.output
    assert torch.load(path, weights_only=True)["num_timesteps"] >= goal


def test_presets_name_known_opponents_and_whole_minibatches():
    for presets in training.PRESETS.values():
        for preset in presets.values():
            assert preset.num_envs * preset.num_steps % preset.minibatch == 0
            for spec in preset.opponents:
                agents.make(spec)
