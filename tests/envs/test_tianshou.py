"""Self-play with Tianshou, which has its own virtual environment: `make test-tianshou`."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tianshou")

from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.torch_utils import policy_within_training_step

from dice_envs.experiments.examples.tianshou_self_play import make_algorithm, make_env

ROOT = Path(__file__).parents[2]
RANDOM_PLAY = 0.7807  # its exploitability in the example's game


def run_example(*arguments):
    command = [sys.executable, "-m", "dice_envs.experiments.examples.tianshou_self_play", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.library("tianshou", "example `tianshou_self_play`", game="liars_dice")
def test_it_learns():
    done = run_example("--steps", "10000", "--seed", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("seed 3\n")
    (exploitability,) = re.findall(r"^exploitability from 0\.\d+ to (0\.\d+)", done.stdout, re.M)
    assert float(exploitability) < RANDOM_PLAY - 0.05


def test_wrong_options_are_named():
    done = run_example("--steps", "0")
    assert done.returncode == 2
    assert re.search(r"--steps must be .*1.*not 0", done.stderr)


def test_a_seat_is_paid_what_it_earns_while_another_moves():
    """In every game both seats move, and one of them last. Both seats are paid when the game ends."""
    algorithm = make_algorithm()
    buffer = VectorReplayBuffer(10_000, 4)
    with policy_within_training_step(algorithm.policy):
        Collector(algorithm, DummyVectorEnv([make_env] * 4), buffer).collect(n_episode=50, reset_before_collect=True)
    batch, indices = buffer.sample(0)
    assert batch.terminated.sum() == 50
    seats = algorithm._preprocess_batch(batch, buffer, indices)
    assert sorted(seats.get_keys()) == ["player_0", "player_1"]
    for moves in seats.values():
        assert moves.terminated.sum() == 50
        assert (np.abs(moves.rew) == moves.terminated).all()
        after = np.flatnonzero(~moves.terminated)
        assert np.array_equal(moves.obs_next.obs[after], moves.obs.obs[after + 1])
    ends = [moves.rew[moves.terminated] for moves in seats.values()]
    assert (ends[0] == -ends[1]).all()


def test_illegal_actions_have_no_probability():
    env = make_env()
    observation, _ = env.reset(seed=1)
    env.step(5)
    observation = env.step(9)[0]
    legal = np.array(observation["mask"])
    assert not legal.all()
    seen = Batch(obs=Batch(obs=observation["obs"][None], mask=legal[None]), info={})
    chances = make_algorithm().get_algorithm("player_0").policy(seen).dist.probs[0].detach().numpy()
    assert ((chances > 0) == legal).all()
