"""`dice_envs.train`: training without the command line."""

import dataclasses
import functools
import json

import numpy as np
import pytest
import torch

import dice_envs
from dice_envs.learn.ppo import PPO
from dice_envs.learn.presets import PRESETS, Preset, preset_of
from tests.support.commands import done

ONE_DIE = {"rules": "openspiel", "num_dice": 1, "num_faces": 3}
SMALL = {
    "num_envs": 32, "num_steps": 16, "minibatch": 256, "hidden": (16,), "threads": 1, "measure_every": 2,
    "checkpoint_every": 2,
}  # fmt: skip


class Told(dice_envs.TrainingCallback):
    """Keeps all reports, and stops at a number of steps."""

    def __init__(self, most=10**9):
        self.most, self.steps, self.reports, self.gaps, self.losses = most, 0, [], [], []

    def started(self, steps, until, seed):
        self.began = (steps, until, seed)

    def learned(self, steps, values):
        assert all(np.isfinite(value) for value in values.values())
        self.losses.append(steps)

    def advanced(self, steps):
        self.steps += steps

    def measured(self, steps, minutes, name, gaps):
        assert minutes > 0
        assert name in ("exploitability", "value")
        self.gaps.append({"steps": steps, **gaps})

    def saved(self, steps, speed, scores):
        assert speed > 0
        self.reports.append((steps, scores))

    def stop(self):
        return self.steps >= self.most


def train(game="liars_dice", **arguments):
    options = ONE_DIE if game == "liars_dice" else {}
    given = {"preset": "equilibrium", "steps": 4 * 512, "seed": 3, "settings": SMALL, **options, **arguments}
    return dice_envs.train(game, **given)


def train_sb3(**arguments):
    settings = {**SMALL, "self_share": 0.3, "snapshot_every": 1, **arguments.pop("settings", {})}
    return train(**{"preset": "quick", "learner": "sb3", **arguments}, settings=settings)


BEGIN = {"ppo": train, "sb3": train_sb3}
FILES = ("checkpoint.pt", "policy.npz", "config.json")


def layers(found):
    return [array for layer in found.policy.layers for array in layer]


@pytest.mark.parametrize("learner", BEGIN)
def test_it_returns_a_policy_and_its_measures(tmp_path, monkeypatch, learner):
    monkeypatch.chdir(tmp_path)
    told = Told()
    found = BEGIN[learner](callback=told)
    assert found.steps == told.steps == 4 * 512
    assert (found.learner, found.seed) == (learner, 3)
    met = {"steps", "past selves", *found.preset.opponents} if learner == "sb3" else set()
    assert set().union(*found.curve) == met
    assert told.began == (0, 4 * 512, 3)
    assert list(dict.fromkeys(told.losses)) == [512, 1024, 1536, 2048]
    assert found.minutes > 0
    assert [point["steps"] for point in found.gaps] == [1024, 2048]
    assert told.gaps == found.gaps[:1], "the last one is measured after the training"
    assert [steps for steps, _ in told.reports] == [1024]
    assert not list(tmp_path.iterdir()), "without a folder nothing is written"
    measured = dice_envs.measure("liars_dice", found.policy, **ONE_DIE)
    kept = found.gaps if found.preset.keep == "best" else found.gaps[-1:]
    best = min(gap for point in kept for name, gap in point.items() if name != "steps")
    assert measured.measures[0].gap == pytest.approx(best, abs=1e-9)
    found.save(tmp_path / "policy.npz")
    again = dice_envs.measure("liars_dice", f"ppo:{tmp_path / 'policy.npz'}", **ONE_DIE)
    assert again.measures == measured.measures
    assert all(np.array_equal(a, b) for a, b in zip(layers(found), layers(BEGIN[learner]()), strict=True)), "the seed fixes it"


MIXED = {**SMALL, "self_play": 0.5, "self_share": 0.3, "snapshot_every": 1}


@pytest.mark.parametrize(
    ("learner", "arguments"),
    [
        ("ppo", {"settings": MIXED}),
        ("ppo", {"settings": {**SMALL, "every_hand": True}}),
        ("ppo", {"settings": {**MIXED, "learning_rate": 0.0}}),  # the first policy stays the best
        pytest.param("ppo", {"game": "thirties", "preset": "quick"}, marks=pytest.mark.thorough),
        pytest.param("sb3", {}, marks=pytest.mark.thorough),
    ],
)
def test_it_stops_when_told_and_resumes_as_if_it_had_not(tmp_path, learner, arguments):
    begin = functools.partial(BEGIN[learner], **arguments)
    whole = begin(folder=tmp_path / "whole")
    begun = begin(folder=tmp_path / "run", callback=Told(1024))
    assert begun.steps == 1024
    other = {"ppo": "sb3", "sb3": "ppo"}[learner]
    with pytest.raises(ValueError, match=f"holds a run of the learner {learner}, not of the learner {other}"):
        train(**{"folder": tmp_path / "run", **arguments, "preset": "quick", "settings": SMALL, "learner": other})
    done = begin(folder=tmp_path / "run", seed=None, learner=None)
    assert (done.seed, done.learner) == (3, learner)
    assert done.minutes_at.items() > begun.minutes_at.items()
    assert begun.minutes > 0
    assert done.curve == whole.curve
    assert done.gaps == whole.gaps
    for name in FILES:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    with pytest.raises(ValueError, match="holds a run with seed 3, not with seed 4"):
        begin(folder=tmp_path / "run", seed=4)


@pytest.mark.thorough
@pytest.mark.parametrize("learner", ["ppo", "sb3"])
def test_the_command_makes_the_same_run(tmp_path, monkeypatch, learner):
    monkeypatch.setitem(PRESETS["liars_dice"], "quick", dataclasses.replace(PRESETS["liars_dice"]["quick"], **SMALL))
    options = [word for name, value in ONE_DIE.items() for word in ("-o", f"{name}={value}")]
    command = ["train", "liars_dice", "--out", str(tmp_path / "command"), "--steps", "1024", "--seed", "3", *options]
    done(*command, "--evaluation-games", "10", "--learner", learner)
    found = train(preset="quick", steps=1024, settings={}, folder=tmp_path / "library", learner=learner)
    assert found.preset.steps == found.steps == 1024
    assert found.model.policies().keys() == {"last"}
    assert [name for name, _ in found.opponents.by_name()] == list(found.preset.opponents)
    assert str(found.steps) in json.loads((tmp_path / "library" / "times.json").read_text())
    for name in FILES:
        assert (tmp_path / "command" / name).read_bytes() == (tmp_path / "library" / name).read_bytes()
    results = json.loads((tmp_path / "command" / "results.json").read_text())
    assert results["command"].endswith("--steps 1024 --seed 3" + " --learner sb3" * (learner == "sb3"))
    assert results["table"]["agents"][:2] == ["ppo", "ppo greedy"]


def test_two_trainings_do_not_share_a_folder(tmp_path):
    refused = []

    class Second(Told):
        def advanced(self, steps):
            with pytest.raises(ValueError, match=r"\w is in use by process .+, or choose another folder") as caught:
                train(folder=tmp_path)
            refused.append(caught.value)

    train(folder=tmp_path, steps=1024, callback=Second())
    assert len(refused) == 2
    assert train(folder=tmp_path).steps == 4 * 512, "the lock is gone"


def test_a_run_that_stops_before_a_game_has_ended_goes_on(tmp_path):
    settings = {"num_envs": 2, "num_steps": 2, "minibatch": 2, "epochs": 1, "checkpoint_every": 1, "measure_every": 0}
    game = dice_envs.configure("shakes", mode="physician")
    for steps in (8, 12):
        found = dice_envs.train(game, folder=tmp_path, seed=1, steps=steps, settings={**settings, "hidden": [4], "threads": 1})
        assert found.steps == steps


def test_it_trains_against_opponents_and_alone():
    settings = {**SMALL, "measure_every": 0}
    found = train(preset="quick", opponents=["random", "numbers"], settings=settings)
    assert set(found.curve[-1]) == {"steps", "random", "numbers"}
    assert found.gaps == []
    alone = dice_envs.train("thirties", steps=512, seed=1, settings=settings)
    assert alone.policy.variant.facts.num_seats == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"preset": "fast"}, "unknown preset 'fast'; presets are: quick, full, equilibrium"),
        ({"steps": 0}, "steps must be a whole number from 1"),
        ({"settings": {"clip": 2}}, "clip must be a number from 0 to 1, not 2"),
        ({"opponents": ["nobody"]}, "unknown agent 'nobody'"),
        ({"opponents": []}, "opponents must be one spec or more"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"device": "abacus"}, "device must be one that PyTorch has here"),
        ({"num_dice": 99}, "num_dice must be"),
        ({"learner": "dqn"}, "learner must be one of 'ppo', 'sb3', not 'dqn'"),
        ({"learner": "sb3"}, "the learner sb3 has no self-play: choose a preset against opponents"),
        ({"game": "thirties"}, "self_play must be 0: thirties .* has one seat"),
        ({"settings": {"expected_rewards": True}}, "expected_rewards must be false: liars_dice has no"),
        ({"settings": {"every_hand": True}, "rules": "standard"}, "every_hand must be false for liars.*it takes one round"),
        (
            {"learner": "sb3", "preset": "quick", "settings": {"self_play": 0.5}},
            "self_play must be 0.0 for the learner sb3, which lacks it, not 0.5",
        ),
    ],
)
def test_refusals_name_what_is_wrong(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        train(folder=tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()


def test_every_field_of_a_preset_reaches_the_learner():
    """The learner reads all fields except those of the run, so none can be forgotten."""
    read = set()

    class Watched(Preset):
        def __getattribute__(self, name):
            read.add(name)
            return super().__getattribute__(name)

    variant = dice_envs.configure("liars_dice", **ONE_DIE)
    preset = Watched(**dataclasses.asdict(preset_of("liars_dice", "equilibrium", steps=512, **SMALL)))
    read.clear()
    learner = PPO(variant, preset, "random", 1)
    learner.iterate()
    learner.policy()
    fields = {field.name for field in dataclasses.fields(Preset)}
    of_the_run = {"opponents", "self_share", "past_selves", "snapshot_every", "measure_every", "keep", "checkpoint_every"}
    assert read & fields == fields - of_the_run


@pytest.mark.thorough
@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_learns_from_past_selves_and_a_cpu_goes_on(tmp_path):
    """The pool changes, so rollouts are recorded anew or played without a graph."""
    shares = {"self_share": 0.2, "self_play": 0.3}
    settings = {"num_envs": 256, "minibatch": 2048, "snapshot_every": 9, **shares}
    arguments = {"preset": "quick", "settings": settings, "folder": tmp_path, "seed": None}
    begun = train(steps=500_000, device="cuda", callback=Told(200_000), **arguments)
    assert 200_000 <= begun.steps < 300_000
    ended = train(steps=500_000, device="cuda", **arguments)
    assert (ended.seed, ended.curve[: len(begun.curve)]) == (begun.seed, begun.curve)
    assert ended.curve[-1]["random"] > 0.7
    assert train(steps=530_000, device="cpu", **arguments).steps >= 530_000
