"""`benchmark learners`: every algorithm learns, is measured exactly, and repeats with its seed."""

import json
import random
import re
import textwrap

import numpy as np
import pyspiel
import pytest
import torch

from dice_envs import configure, measure
from dice_envs.agent import Turn
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.core.machine import processor
from dice_envs.experiments.learners import ALGORITHMS, Budget, learn, make
from dice_envs.experiments.learners.openspiel import StatePolicy, game_of, is_own, tensors_of
from tests.support.commands import done, refusal

SMALL = configure("liars_dice", rules="openspiel", num_dice=1, num_faces=3)
SLOW = ("deep_cfr", "escher", "psro", "equilibrium", "every_hand", "published", "published_mmd", "dqn", "maskable_ppo", "nfsp")


@pytest.mark.parametrize(
    "spec", [pytest.param(each, marks=pytest.mark.thorough if each in SLOW else ()) for each in ALGORITHMS]
)
def test_every_algorithm_learns_and_repeats(spec):
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    steps = {"deep_cfr": 1, "psro": 2, "dqn": 20_000}.get(spec, 40)
    first, again, other = (learn(SMALL, Budget(steps, 10.0), spec, seed) for seed in (1, 1, 2))
    after = random.getstate(), np.random.get_state()[1], torch.get_rng_state()  # noqa: NPY002
    assert before[0] == after[0]
    assert all(np.array_equal(*each) for each in zip(before[1:], after[1:], strict=True))
    for one in (first, again):
        assert (one["name"], one["ended"], one["algorithm"]) == ("exploitability", "steps", spec)
    point = first["points"][-1]
    assert point["steps"] >= steps
    assert point["error"] == 0
    assert -1e-12 <= point["value"] <= 2
    assert again["points"][-1]["value"] == point["value"]
    if spec not in ("cfr_plus", "mmd", "dqn"):  # which draw nothing, or find the equilibrium
        assert other["points"][-1]["value"] != point["value"]


def test_a_policy_of_openspiel_has_the_exploitability_that_openspiel_finds():
    learner = make("external_mccfr", SMALL, 1, 100)
    learner.train(100)
    theirs = pyspiel.exploitability(learner.game, learner.solver.average_policy())
    assert measure(SMALL, learner.policy()).measures[0].value == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("dice", [1, 2, 3])
def test_information_states_are_openspiels(dice):
    variant = configure("liars_dice", rules="openspiel", num_dice=dice, num_faces=4)
    game, batch, rng = game_of(variant), Batch(variant, 64, seed=1), np.random.default_rng(1)
    assert is_own(game)
    while len(going := np.flatnonzero(batch.seats != OVER)):
        turn = Turn(variant, batch.states, going, new_streams(0, len(going)))
        seen = []
        StatePolicy(game, lambda state, seen=seen: seen.append(state.information_state_tensor()) or {}).probabilities(turn)
        np.testing.assert_array_equal(tensors_of(turn, game), np.array(seen, np.float32))
        batch.play((rng.random(turn.legal.shape) * turn.legal).argmax(axis=1), going)


def test_other_games_are_learned_through_openspiel():
    variant = configure("fatestones", dice="fair")
    assert not is_own(game_of(variant))
    (point,) = learn(variant, Budget(20, 10.0), "rpg", 1)["points"]
    assert 0 < point["value"] < 1
    with pytest.raises(ValueError, match="walks the whole game"):
        make("cfr_plus", variant, 1, 10)


OWN = """
    import numpy as np

    class Lazy:
        unit = "naps"

        def __init__(self, variant, seed, steps, legal=1):
            self.legal = legal

        def train(self, steps):
            return steps

        def policy(self):
            return lambda observations, masks: masks / masks.sum(axis=1, keepdims=True)
"""


def test_the_command_writes_what_it_shows_and_resumes(tmp_path):
    own = tmp_path / "own.py"
    own.write_text(textwrap.dedent(OWN))
    file, page = tmp_path / "result.json", tmp_path / "report"
    given = [
        "benchmark",
        "learners",
        "liars_dice",
        f"{own}:Lazy:legal=2",
        "cfr_plus",
        "-o",
        "rules=openspiel",
        "-o",
        "num_dice=1",
    ]
    shown = done(*given, "-o", "num_faces=3", "--steps", "30", "--seeds", "2", "--json", file, "--report", page)
    found = json.loads(file.read_text())
    assert [(each["algorithm"], each["seed"]) for each in found["runs"]] == [
        (spec, seed) for seed in (1, 2) for spec in (f"{own}:Lazy:legal=2", "cfr_plus")
    ]
    assert (found["runs"][0]["unit"], found["runs"][0]["processor"]) == ("naps", processor())
    assert found["runs"][0]["points"][-1]["value"] == pytest.approx(measure(SMALL, "random").measures[0].value)
    assert re.match(r"(seconds of training: .*\n)*cfr_plus ends with the least exploitability 0\.", shown)
    assert f"{found['runs'][1]['points'][-1]['value']:.4f}" in shown
    assert re.search(r"cfr_plus, \S+:Lazy:legal=2: [\d,]+ information sets", " ".join(shown.split()))
    assert (page / "learners.png").exists()
    assert (page / "index.html").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("def policy", "def other"), "it has no policy"),
        (("def train", "def other"), "it has no train"),
        (("seed, steps, legal=1", "seed"), "must take variant, seed, steps"),
        (("return steps", "return None"), "train must return how many steps it took"),
        (("return lambda observations, masks: masks / masks.sum(axis=1, keepdims=True)", "return None"), "an agent is a spec"),
        (("masks / masks.sum(axis=1, keepdims=True)", "masks[:, :3]"), "Lazy: <lambda> in liars_dice: probabilities must have"),
        (("self.legal = legal", "1 / 0"), "has failed: ZeroDivisionError"),
    ],
)
def test_a_faulty_algorithm_of_ones_own_is_named_in_a_line(tmp_path, change, message):
    own = tmp_path / "own.py"
    own.write_text(textwrap.dedent(OWN).replace(*change))
    said = refusal("benchmark", "learners", "liars_dice_openspiel_1", f"{own}:Lazy", "--steps", "5")
    assert message in said
    assert str(own) in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["liars_dice_openspiel_1", "nobody"], "unknown algorithm"),
        (["liars_dice_openspiel_1", "nfsp:layers=3"], "nfsp has no setting"),
        (["liars_dice_openspiel_1", "equilibrium:entrpy=1", "--minutes", "0.01"], "entrpy"),
        (["liars_dice_openspiel_1", "nfsp", "-o", "num_dice=2"], "left out with the task"),
        (["liars_dice_openspiel", "nfsp"], "did you mean 'liars_dice_openspiel_1'"),
        (["liars_dice", "nfsp", "-o", "num_dice=99"], "num_dice must be a whole number from 1 to 6, not 99"),
        (["draughts", "nfsp"], "unknown game"),
        (["liars_dice_openspiel_1", "nfsp", "--minutes", "0"], "minutes"),
        (["liars_dice_openspiel_1", "nfsp", "--jobs", "0"], "jobs"),
    ],
)
def test_bad_input_is_refused(words, message):
    assert message in refusal("benchmark", "learners", *words)
