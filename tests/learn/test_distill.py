"""Networks distilled from solutions play as these do, and are saved with what is measured."""

import dataclasses
import json

import numpy as np
import pytest

from dice_envs import Batch, configure, measure
from dice_envs.agents.ppo import load_policy, measures_as_dicts
from dice_envs.experiments.commands import distill as command
from dice_envs.experiments.commands.distill import FLOORS, DistillSettings, Learner, TrainingPositions, train
from dice_envs.games.liars_dice.exact.solver import solve
from tests.support.commands import done

pytestmark = pytest.mark.thorough
ONE = {"rules": "openspiel", "num_dice": 1, "num_faces": 3}


@pytest.fixture(scope="module")
def small():
    variant = configure("liars_dice", **ONE)
    return variant, solve(variant, 1e-6)


def test_positions_are_the_solutions(small):
    variant, solution = small
    positions = TrainingPositions(variant, solution, seed=1)
    observations, masks, chances = positions.collect(20_000)
    assert len(observations) == len(masks) == len(chances) >= 20_000
    assert (masks.sum(axis=1) > 1).all()
    assert (chances[masks == 0] == 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)
    again = TrainingPositions(variant, solution, seed=1).collect(20_000)
    np.testing.assert_array_equal(again[0], observations)
    np.testing.assert_array_equal(again[2], chances)
    # The target at a position is the solution's policy.
    states = Batch(variant, 300, seed=5)
    wanted = {
        row.tobytes(): chance for row, chance in zip(states.observe(), solution.probabilities(states.states), strict=True)
    }
    met = 0
    for row, chance in zip(observations, chances, strict=True):
        if row.tobytes() in wanted:
            np.testing.assert_allclose(chance, wanted[row.tobytes()], atol=1e-6)
            met += 1
    assert met > 1000


def test_a_network_learns_the_solution(small):
    variant, solution = small
    learner, losses = Learner(variant, solution.unseen, DistillSettings((32,), steps=250, rate=3e-2), seed=1), []
    made = train(learner, TrainingPositions(variant, solution, seed=1), lambda number, loss: losses.append(loss))
    assert made == len(losses) == 250
    assert np.mean(losses[-20:]) < 0.1 * losses[0]
    assert measure(variant, learner.policy()).score > 0.9
    assert measure(variant, Learner(variant, solution.unseen, DistillSettings((32,)), seed=1).policy()).score < 0.5


def test_distill_saves_what_it_measured(tmp_path):
    option = [f"{name}={value}" for name, value in ONE.items()]
    out, json_path = tmp_path / "policy.npz", tmp_path / "about.json"
    arguments = [
        *("distill", "liars-dice", "--hidden", "16", "--steps", "60", "--rate", "0.01", "--seed", "5", "--precision", "1e-6"),
        *(word for each in option for word in ("-o", each)),
        *("--out", str(out), "--json", str(json_path)),
    ]
    done(*arguments)
    policy = load_policy(out)
    about = policy.about
    assert about == json.loads(json_path.read_text())
    assert policy.floor in FLOORS
    assert (about["seed"], about["steps"], about["method"]) == (5, 60, "distill")
    options = "".join(f" -o {each}" for each in option)
    assert about["command"] == (
        f"dice-envs distill liars_dice{options} --hidden 16 --steps 60 --rate 0.01 --precision 1e-06 --seed 5"
    )
    for field, spec in (("measures", f"ppo:{out}"), ("greedy_measures", f"ppo:{out},greedy=true")):
        found = measures_as_dicts(measure(policy.variant, spec))
        assert [each["value"] for each in found] == pytest.approx([each["value"] for each in about[field]], abs=1e-6)
    done(*arguments)
    assert json.loads(json_path.read_text())["measures"] == about["measures"]


def test_a_limit_of_time_ends_training(small):
    variant, solution = small
    learner = Learner(variant, solution.unseen, DistillSettings((8,), steps=10**9, minutes=1e-3), seed=1)
    made = train(learner, TrainingPositions(variant, solution, seed=1), lambda number, loss: None)
    assert 0 <= made < 10**6


class Watched(DistillSettings):
    """Notes which settings are read."""

    def __getattribute__(self, name):
        object.__getattribute__(self, "__dict__").setdefault("read", set()).add(name)
        return super().__getattribute__(name)


def test_every_setting_is_used_and_part_of_the_command_that_is_kept(small):
    """A new one cannot be forgotten. Only the solver needs the precision."""
    fields = {field.name for field in dataclasses.fields(DistillSettings)}
    (variant, solution), settings = small, Watched((8,), steps=2)
    settings.read.clear()
    positions = TrainingPositions(variant, solution, seed=1)
    assert train(Learner(variant, solution.unseen, settings, seed=1), positions, lambda made, loss: None) == 2
    assert settings.read & fields == fields - {"precision"}
    settings.read.clear()
    assert "--device" not in command._command("liars_dice", [], settings, 1, "cpu")
    assert command._command("liars_dice", [], settings, 1, "cuda").endswith("--seed 1 --device cuda")
    assert settings.read & fields == fields
