"""Environments of other libraries treat illegal actions as ours do; `tests/test_errors.py` has our own."""

import gymnasium
import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3 import A2C, DQN, PPO

import dice_envs.envs.sb3
from dice_envs import SeatEnv, SeatVectorEnv
from dice_envs.core.game import load
from tests.support.interfaces import remember
from tests.support.subsets import covering
from tests.support.turns import random_actions
from tests.support.variants import REWARDED


@pytest.mark.library("gymnasium", "the same as SyncVectorEnv, illegal actions too", game=lambda each: each["case"][0])
@covering(("mode", "case"), ["NextStep", "SameStep", "Disabled"], REWARDED)
@pytest.mark.filterwarnings("ignore:an illegal action")
def test_vector_env_is_gymnasiums_sync_vector_env(case, mode):
    """The same observations, rewards, ends and `infos`, with some illegal actions and a limit on steps."""
    name, options = case[0], {**load(case[0]).gym_options, **case[1]}
    limit = 3 if name in ("liars_dice", "shakes", "thirties") else None
    mode = gymnasium.vector.AutoresetMode(mode)
    made = {"num_envs": 4, "illegal_action": "lose", "max_episode_steps": limit, **options}
    vector = gymnasium.make_vec(f"dice_envs/{load(name).env_name}-v0", autoreset_mode=mode, **made)

    def single():
        env = SeatEnv(name, illegal_action="lose", **options)
        return gymnasium.wrappers.TimeLimit(env, limit) if limit else env

    sync = gymnasium.vector.SyncVectorEnv([single] * 4, autoreset_mode=mode)
    assert vector.metadata["autoreset_mode"] is mode
    rng = np.random.default_rng(1)
    seed = [3, 9, 4, 8] if mode is gymnasium.vector.AutoresetMode.DISABLED else 3
    ours, theirs = vector.reset(seed=seed), sync.reset(seed=seed)
    illegal = cut = 0
    for _ in range(60):
        assert remember(ours) == remember(theirs)
        masks = ours[-1]["action_mask"]
        assert masks.any(axis=1).all(), "a masked softmax has a sum of 1 everywhere"
        actions = random_actions(rng, masks, mistakes=0.1)
        ours, theirs = vector.step(actions), sync.step(actions)
        illegal += ours[-1].get("final_info", ours[-1])["illegal_action"].sum()
        cut += ours[3].sum()
        ended = ours[2] | ours[3]
        if mode is gymnasium.vector.AutoresetMode.DISABLED and ended.any():
            assert remember(ours) == remember(theirs)
            ours, theirs = (env.reset(options={"reset_mask": ended.copy()}) for env in (vector, sync))
            # Gymnasium's infos then cover only newly dealt games, ours all; the masks of the new ones agree.
            np.testing.assert_array_equal(ours[1]["action_mask"][ended], theirs[1]["action_mask"][ended])
            theirs = (theirs[0], ours[1])
    assert illegal > 5
    assert bool(cut) == bool(limit)


@pytest.mark.parametrize(("name", "options"), REWARDED)
@pytest.mark.filterwarnings("ignore:an illegal action")
def test_sb3_env_is_the_vector_env_with_same_step_reset(name, options):
    """The same observations, rewards, ends, masks, terminal observations and returns, with some illegal actions."""
    venv = dice_envs.envs.sb3.make_vec_env(name, 6, seed=4, illegal_action="lose", **options)
    vector = SeatVectorEnv(name, 6, illegal_action="lose", autoreset_mode="SameStep", **options)
    theirs, infos = vector.reset(seed=venv.seed(4))
    ours, rng, earned, lasting = venv.reset(), np.random.default_rng(2), np.zeros(6), []
    for _ in range(40):
        np.testing.assert_array_equal(ours, theirs)
        masks = infos["action_mask"]
        np.testing.assert_array_equal(np.stack(venv.env_method("action_masks")), masks.astype(bool))
        actions = random_actions(rng, masks, mistakes=0.2)
        ours, rewards, dones, told = venv.step(actions)
        theirs, their_rewards, ended, _, infos = vector.step(actions)
        np.testing.assert_array_equal(rewards, their_rewards.astype(np.float32))
        np.testing.assert_array_equal(dones, ended)
        earned += rewards
        for i, info in enumerate(told):
            assert info.get("illegal_action") == vector.games.illegal.get(i)
            if ended[i]:
                lasting.append((info["terminal_observation"], infos["final_obs"][i], infos["final_obs"][i].copy()))
                assert info["episode"]["r"] == pytest.approx(earned[i], abs=1e-5)
                earned[i] = 0
    for own, other, then in lasting:  # also after later steps
        np.testing.assert_array_equal([own, other], [then, then])
    assert venv.has_attr("action_masks")
    assert venv.get_attr("render_mode") == [None] * 6


@pytest.mark.library("torchrl", "GymEnv of many games reads the mask", game="liars_dice")
@pytest.mark.filterwarnings("ignore:an illegal action")
def test_torchrl_reads_infos():
    """Of several games at once, some of which end, also by illegal actions."""
    wrapper = pytest.importorskip("torchrl.envs").GymWrapper
    games = [lambda: SeatEnv("liars_dice", num_dice=1)] * 3
    env = wrapper(gymnasium.vector.SyncVectorEnv(games, autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED))
    done = env.auto_register_info_dict().rollout(20, break_when_any_done=False)
    assert done["next", "illegal_action"].any()
    assert done["action_mask"].any(-1).all()
    assert done["next", "action_mask"].any(-1).all()


WITHOUT_MASKS = pytest.mark.library("stable-baselines3", "PPO, A2C and DQN learn without masks", game="liars_dice")
WITH_MASKS = pytest.mark.library("sb3-contrib", "MaskablePPO learns", game="liars_dice")
SETTINGS = {
    MaskablePPO: {"n_steps": 64, "batch_size": 512, "learning_rate": 2e-3},
    PPO: {"n_steps": 64, "batch_size": 512, "learning_rate": 1e-3, "ent_coef": 0.01},
    A2C: {"n_steps": 16, "learning_rate": 1e-3},
    DQN: {"learning_starts": 500, "exploration_fraction": 0.3, "learning_rate": 1e-3, "gradient_steps": 4},
}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:an illegal action")
@pytest.mark.parametrize(
    "algorithm", [pytest.param(each, marks=WITH_MASKS if each is MaskablePPO else WITHOUT_MASKS) for each in SETTINGS]
)
def test_sb3_learners_learn(algorithm):
    """Without masks they learn which actions are legal; they win more games than they lose against random play."""
    venv = dice_envs.envs.sb3.make_vec_env("liars_dice", 16, seed=0, illegal_action="lose", num_dice=1)
    model = algorithm("MlpPolicy", venv, gamma=1.0, seed=0, device="cpu", **SETTINGS[algorithm])

    def play():
        """The shares of games lost by illegal actions and of games won."""
        venv.seed(99)
        observations = venv.reset()
        ends = []
        for _ in range(200):
            masks = {"action_masks": get_action_masks(venv)} if algorithm is MaskablePPO else {}
            actions, _ = model.predict(observations, **masks)
            observations, _, dones, infos = venv.step(actions)
            ends += [("illegal_action" in infos[i], infos[i]["episode"]["r"] > 0) for i in np.flatnonzero(dones)]
        return np.mean(ends, axis=0)

    illegal_before, won_before = play()
    model.learn(40_000)
    illegal, won = play()
    assert illegal <= min(0.1, illegal_before)
    assert won > max(0.65 if algorithm is MaskablePPO else 0.55, won_before)
