"""MaskablePPO of SB3-contrib as the learner of a run."""

import io
import pickle

import gymnasium
import pytest
import torch
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecNormalize

import dice_envs
import dice_envs.envs.sb3
from dice_envs.experiments.arena import tournament
from dice_envs.learn.presets import LACKS, Preset, plan_of
from dice_envs.learn.sb3 import StockPPO
from tests.learn.test_public_train import ONE_DIE, SMALL
from tests.support.interfaces import remember
from tests.support.subsets import few


def stock_plan(game="liars_dice", preset="quick", **settings):
    return plan_of(dice_envs.configure(game), preset, settings, learner="sb3").preset


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


ENV = dice_envs.envs.sb3.make_vec_env("liars_dice", 4, seed=1, **ONE_DIE)
INSIDE = gymnasium.wrappers.RescaleObservation(gymnasium.make("dice_envs/LiarsDice-v0", **ONE_DIE), 0, 1)


def trained(env=ENV, **own):
    return MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=32, policy_kwargs=own, seed=1, device="cpu").learn(64)


def normalised():
    return trained(VecMonitor(VecNormalize(ENV, norm_reward=False)))


def loaded(model, env=None):
    model.save(file := io.BytesIO())
    return MaskablePPO.load(file, env, device="cpu")


def state(model):
    tensors = {name: tensor.tolist() for name, tensor in model.policy.state_dict().items()}
    return tensors, [each.training for each in model.policy.modules()], remember(getattr(model.env, "obs_rms", None))


def results(variant, player):
    met = tournament(variant, ["it", "random"], 50, 1, agents=[player, dice_envs.Uniform()])
    return dice_envs.measure(variant, player), dice_envs.evaluate(variant, player, games=20, seed=1), met.win_rate


@pytest.mark.parametrize(
    "make",
    [
        normalised,
        lambda: pickle.loads(pickle.dumps(trained(VecNormalize(ENV)))),
        lambda: loaded(model := normalised(), model.env),
        lambda: trained(share_features_extractor=False),
        lambda: trained(activation_fn=torch.nn.Dropout),
        lambda: trained(activation_fn=lambda: torch.nn.BatchNorm1d(64)),
    ],
)
def test_a_model_plays_as_it_predicts_and_is_left_as_it_was(make):
    model, variant = make(), dice_envs.configure("liars_dice", **ONE_DIE)
    model.policy.value_net.eval()  # the rest is in training mode
    before, twin, wrapper = state(model), loaded(model).policy.eval(), model.get_vec_normalize_env()

    def policy(observations, masks):
        seen = observations if wrapper is None else wrapper.normalize_obs(observations)
        return twin.get_distribution(torch.from_numpy(seen), masks).distribution.probs

    policy.__name__ = "MaskablePPO"
    assert results(variant, model) == results(variant, policy)
    assert state(model) == before


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PPO("MlpPolicy", ENV), "PPO takes no masks of legal actions; train MaskablePPO of SB3-contrib, or give a"),
        (lambda: RecurrentPPO("MlpLstmPolicy", ENV), "RecurrentPPO takes no masks of legal actions; train MaskablePPO of SB3"),
        (lambda: DQN("MlpPolicy", ENV), "DQN takes no masks .* and states no probabilities, only the best action; train Mask"),
        (lambda: trained().policy, "MaskableActorCriticPolicy does not know how its environment changed .*: give the model"),
        (lambda: trained(VecFrameStack(ENV, 2)), r"are \(56,\) and Discrete\(7\), not \(28,\) and .*; name the options"),
        (lambda: trained(VecFrameStack(ENV, 1)), "VecFrameStack may have changed its observations; a function or an ag"),
        (lambda: trained(INSIDE), "a Gymnasium wrapper changed its observations; a function or an agent of your own can"),
        (lambda: loaded(normalised()), "out of 0 to 1; load it with env=, its environment in wrappers"),
    ],
)
def test_a_model_whose_probabilities_are_not_known_is_refused_with_the_cure(make, words):
    model, variant = make(), dice_envs.configure("liars_dice", **ONE_DIE)
    for let in (dice_envs.measure, dice_envs.evaluate, lambda game, agent: dice_envs.SeatEnv(game, opponents=agent)):
        with pytest.raises((TypeError, ValueError), match=words):
            let(variant, model)
