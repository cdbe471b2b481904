"""MaskablePPO of SB3-contrib as the learner of a run."""

import json

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

import dice_envs
import dice_envs.envs.sb3
from dice_envs.learn.presets import LACKS, Preset, preset_of, stock_plan
from dice_envs.learn.sb3 import StockPPO
from tests.learn.test_public_train import ONE_DIE, SMALL, Told, layers
from tests.learn.test_public_train import train_sb3 as train
from tests.support.subsets import few


def test_it_trains_measures_saves_and_plays(tmp_path):
    streams = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    told = Told()
    found = train(folder=tmp_path, callback=told)
    assert torch.equal(torch.get_rng_state(), streams[0])
    assert np.random.get_state()[1].tolist() == streams[1]  # noqa: NPY002
    assert (found.learner, found.steps, told.steps) == ("sb3", 2048, 2048)
    assert json.loads((tmp_path / "config.json").read_text())["learner"] == "sb3"
    assert set(found.curve[-1]) == {"steps", "past selves", *found.preset.opponents}
    assert [point["steps"] for point in found.gaps] == [1024, 2048]
    measured = dice_envs.measure("liars_dice", f"ppo:{tmp_path}", **ONE_DIE)
    assert measured.measures[0].gap == pytest.approx(found.gaps[-1]["last"], abs=1e-9)
    again = train(settings={"learning_rate": 1e-3})
    assert not np.array_equal(layers(found)[0], layers(again)[0])
    assert all(np.array_equal(a, b) for a, b in zip(layers(found), layers(train()), strict=True)), "the seed fixes it"


def test_the_settings_reach_maskable_ppo():
    plan = preset_of("liars_dice", "quick", steps=1024, **SMALL)
    made = StockPPO(dice_envs.configure("liars_dice", **ONE_DIE), stock_plan(plan, {}), "random", 1)
    model = made.model
    assert type(model).__module__.startswith("sb3_contrib"), "no subclass"
    assert (model.n_envs, model.n_steps, model.batch_size, model.n_epochs) == (32, 16, 256, plan.epochs)
    assert (model.gae_lambda, model.gamma, model.clip_range(1)) == (plan.gae_lambda, 1.0, plan.clip)
    rates = []
    for _ in range(2):
        made.iterate(lambda earned, players: None)
        rates.append((model.policy.optimizer.param_groups[0]["lr"], model.ent_coef))
    assert rates == [(plan.learning_rate / 2, pytest.approx((plan.entropy * plan.entropy_end) ** 0.5)), (0, plan.entropy_end)]


@pytest.mark.parametrize("name", LACKS)
def test_each_setting_that_it_lacks_is_named(name):
    plan = preset_of("liars_dice", "quick")
    default = getattr(Preset(steps=1), name)
    with pytest.raises(ValueError, match=f"{name} must be {default} for the learner sb3"):
        stock_plan(plan, {name: 0.25})
    assert stock_plan(plan, {name: default}) == stock_plan(plan, {})


@few(1, "game", dice_envs.names())
def test_every_games_preset_can_be_trained_without_what_is_lacking(game):
    for preset in ("quick", "full"):
        plan = stock_plan(preset_of(game, preset), {})
        assert all(getattr(plan, name) == getattr(Preset(steps=1), name) for name in LACKS)


def test_a_model_is_measured_and_evaluated_as_it_is():
    env = dice_envs.envs.sb3.make_vec_env("thirties", 2, seed=1, num_players=1)
    model = MaskablePPO("MlpPolicy", env, seed=1, device="cpu")

    def policy(observations, masks):
        return model.policy.get_distribution(torch.from_numpy(observations), masks).distribution.probs

    found = dice_envs.measure("thirties", model)
    assert found.agent == "MaskablePPO"
    assert found.measures == dice_envs.measure("thirties", policy).measures
    assert dice_envs.evaluate("thirties", model, games=20, seed=1).agent == "MaskablePPO"
    with pytest.raises(TypeError, match="PPO takes no masks of legal actions"):
        dice_envs.measure("thirties", PPO("MlpPolicy", env, device="cpu"))
