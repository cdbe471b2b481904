"""A trained response is a lower bound of the best response, with an interval."""

import dataclasses
import itertools
import types

import pytest

from dice_envs import configure, measure
from dice_envs.agent.specs import make_agent
from dice_envs.core.work import work
from dice_envs.experiments import response
from dice_envs.experiments.response import measure_response
from dice_envs.learn import ppo
from dice_envs.learn.presets import Preset
from tests.support.commands import refusal, with_json

SMALL = Preset(
    steps=1000, num_envs=128, num_steps=32, minibatch=1024, epochs=2, learning_rate=3e-3, entropy=0.01, hidden=(32,), threads=1
)  # fmt: skip


@pytest.fixture
def rollouts_of_a_second(monkeypatch):
    """A clock by which each rollout takes a second, so that the same number fits into the time on any machine."""
    seconds = itertools.count()
    monkeypatch.setattr(response, "time", types.SimpleNamespace(perf_counter=lambda: next(seconds)))


@pytest.mark.thorough
def test_it_wins_most_of_what_a_best_response_wins(rollouts_of_a_second):
    variant = configure("liars_dice", rules="openspiel", num_dice=1, num_faces=4)
    player = make_agent("random")
    passed = []
    with work(lambda minutes, of: passed.append(minutes)):
        found = measure_response(variant, "random", player, 1.0, games=4000, seed=1, preset=SMALL)
    returned, wins = found.measures
    best = {each.name: each for each in measure(variant, "random").measures}
    assert returned.gap - returned.error <= best["exploitability"].value, "nothing wins more than a best response"
    assert returned.gap > best["exploitability"].value / 2
    assert wins.value - wins.error <= best["best response wins"].value
    assert returned.error > 0
    assert 1 <= sum(passed) < 2, "the games of the evaluation are no minutes of training"
    assert "a lower bound" in returned.note
    assert found.score is None


@pytest.mark.thorough
def test_it_measures_where_nothing_exact_is_known(rollouts_of_a_second):
    variant = configure("liars_dice", num_players=3, num_dice=1)
    found = measure_response(variant, "random", make_agent("random"), 0.5, games=2000, seed=1, preset=SMALL)
    returned, wins = found.measures
    assert wins.optimum == pytest.approx(1 / 3)
    assert wins.value - wins.error > 1 / 3
    assert returned.value - returned.error > 0


@pytest.mark.thorough
def test_a_response_below_the_even_share_is_no_bound(rollouts_of_a_second):
    """A response that has hardly learned loses to good players, which does not make them unexploitable."""
    variant = configure("liars_dice", num_players=3, num_dice=1)
    worse = dataclasses.replace(SMALL, num_envs=32, num_steps=1, minibatch=32, epochs=1, learning_rate=0.0)
    for each in measure_response(variant, "reader", make_agent("reader"), 1e-3, games=2000, seed=1, preset=worse).measures:
        assert each.value + each.error < each.optimum
        assert each.note.startswith("no bound: the response does not get significantly more than its even share")


def test_refusals_name_what_is_wrong():
    random = make_agent("random")
    with pytest.raises(ValueError, match="has one seat, so nobody can respond to random"):
        measure_response(configure("thirties", num_players=1), "random", random)
    with pytest.raises(ValueError, match=r"minutes must be above 0, not 0"):
        measure_response(configure("liars_dice"), "random", random, minutes=0)
    with pytest.raises(ValueError, match=r"is not zero-sum"):
        measure_response(configure("liars_dice", reward="dice"), "random", random)
    with pytest.raises(ValueError, match=r"games must be"):
        measure_response(configure("liars_dice"), "random", random, games=1)


def test_the_command_says_what_it_found(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "dice_envs.experiments.response.presets_of", lambda game: {"quick": dataclasses.replace(SMALL, num_envs=32)}
    )
    command = ["measure", "liars_dice", "numbers", "-o", "num_players=3", "-o", "num_dice=1", "--seed", "3"]
    result, data = with_json(tmp_path, *command, "--response", "ppo", "--minutes", "0.02", "--games", "500")
    assert "share" in result
    assert "optimal" not in result
    assert "score" not in result
    assert data["measures"][1]["name"] == "trained response wins"
    assert "--response must be" in refusal(*command, "--response", "dqn")


def test_it_learns_with_all_settings_of_train(rollouts_of_a_second, monkeypatch):
    """The learner gets the whole preset, and its schedules follow the time."""
    preset = dataclasses.replace(
        SMALL, num_envs=32, num_steps=4, minibatch=32, entropy=0.1, entropy_end=0.001, learning_rate=1e-3,
        learning_rate_end=1e-4, input_scale=3.0, average_rate=0.1, floor=0.02, kl=0.2, kl_end=0.1, reference_rate=0.05,
        proximal=0.5, settle=True,
    )  # fmt: skip
    shares, made = [], []

    class Kept(ppo.PPO):
        def __init__(self, variant, its_preset, *arguments):
            super().__init__(variant, its_preset, *arguments)
            made.append(self)

        def iterate(self, *arguments, left):
            shares.append(left)
            found = super().iterate(*arguments, left=left)
            assert found["learning_rate"] == pytest.approx(1e-4 + 9e-4 * left)
            return found

    monkeypatch.setattr(ppo, "PPO", Kept)
    variant = configure("liars_dice", rules="openspiel", num_dice=1)
    policies, steps = response.train_response(variant, make_agent("random"), 0.1, 1, preset)
    (model,) = made
    assert model.preset == preset
    assert steps == model.steps == 32 * 4 * 6, "a tenth of a minute at a second each"
    assert shares == pytest.approx([1 - k / 6 for k in range(6)])
    assert set(policies) == {"last", "averaged"}
    assert [policy.floor for policy in policies.values()] == [0.02, 0.02]
