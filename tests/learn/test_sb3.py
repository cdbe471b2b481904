"""MaskablePPO of SB3-contrib as the learner of a run."""

import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

import dice_envs
import dice_envs.envs.sb3
from dice_envs.learn.presets import LACKS, Preset, plan_of
from dice_envs.learn.sb3 import StockPPO
from tests.learn.test_public_train import ONE_DIE, SMALL
from tests.support.subsets import few


def stock_plan(game="liars_dice", preset="quick", **settings):
    return plan_of(dice_envs.configure(game), preset, settings, "sb3", "cpu")


def test_the_settings_reach_maskable_ppo():
    plan = stock_plan(steps=1024, **SMALL)
    made = StockPPO(dice_envs.configure("liars_dice", **ONE_DIE), plan, "random", 1)
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
    default = getattr(Preset(steps=1), name)
    with pytest.raises(ValueError, match=f"{name} must be {default} for the learner sb3"):
        stock_plan(**{name: 0.25})
    assert stock_plan(**{name: default}) == stock_plan()


@few(1, "game", dice_envs.names())
def test_every_games_preset_can_be_trained_without_what_is_lacking(game):
    for preset in ("quick", "full"):
        plan = stock_plan(game, preset)
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
