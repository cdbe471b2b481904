"""RLlib's PettingZooEnv takes the environments. Ray pins another Gymnasium, so this has a job of its own: `make test-rllib`."""

import numpy as np
import pytest

pytest.importorskip("ray.rllib", exc_type=ImportError)

from dice_envs import aec
from dice_envs.game import configure, names


@pytest.mark.library("ray", "RLlib's PettingZooEnv")
@pytest.mark.parametrize("name", [name for name in names() if configure(name).facts.num_seats > 1])
def test_rllib_pettingzoo_env(name):
    from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv

    env = PettingZooEnv(aec.env(name))
    rng = np.random.default_rng(0)
    for seed in range(3):
        observations, _ = env.reset(seed=seed)
        done = {"__all__": False}
        steps = 0
        while not done["__all__"] and steps < 500:
            (agent, observation), *_ = observations.items()
            assert env.get_observation_space(agent).contains(observation)
            legal = np.flatnonzero(observation["action_mask"])
            observations, rewards, done, _, _ = env.step({agent: int(rng.choice(legal)) if len(legal) else None})
            assert all(isinstance(reward, float | int) for reward in rewards.values())
            steps += 1
        assert steps > 0
