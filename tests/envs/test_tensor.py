"""`dice_envs.TensorEnv`: in lock-step with the environment of Stable-Baselines3."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import dice_envs
from dice_envs.envs.sb3 import make_vec_env

GAMES = [
    ("liars_dice", {"num_dice": 2}, {"opponents": "numbers"}),
    ("liars_dice", {"num_players": 3, "num_dice": 2}, {"self_play": 0.5}),
    ("thirties", {"num_players": 1}, {}),
    ("fatestones", {}, {"expected_rewards": True}),
]


@pytest.mark.parametrize(("game", "options", "arguments"), GAMES)
def test_it_plays_the_games_of_the_other_environment(game, options, arguments):
    ours = dice_envs.TensorEnv(game, 16, **arguments, **options)
    theirs = make_vec_env(game, 16, seed=5, **arguments, **options)
    ours.reset(5)
    observations = theirs.reset()
    held = [ours.observations, ours.masks, ours.seats, ours.out]
    places = [tensor.data_ptr() for tensor in held]
    random = np.random.default_rng(0)
    for step in range(60):
        np.testing.assert_array_equal(ours.observations.numpy(), observations)
        np.testing.assert_array_equal(ours.masks.numpy(), theirs.masks)
        np.testing.assert_array_equal(ours.seats.numpy(), theirs.seats)
        np.testing.assert_array_equal(ours.state().numpy(), theirs.state())
        if step == 30:
            kept = ours.snapshot()
            ours.reset(6)
            ours.restore(kept)
        actions = np.array([random.choice(np.flatnonzero(mask)) for mask in theirs.masks])
        done = ours.step(torch.from_numpy(actions))
        observations, _, ended, infos = theirs.step(actions)
        np.testing.assert_array_equal(done.earned.numpy(), theirs.earned.astype(np.float32))
        np.testing.assert_array_equal(done.ended.numpy(), ended)
        np.testing.assert_array_equal(ours.out.numpy(), theirs.games.states["out"][:, : ours.variant.facts.num_seats])
        for i in np.flatnonzero(ended):
            np.testing.assert_array_equal(done.players[i].numpy(), infos[i]["players"])
            assert infos[i]["episode"]["l"] == done.lengths[i]
            assert np.isclose(infos[i]["episode"]["r"], done.returns[i].numpy()).any()
    assert [tensor.data_ptr() for tensor in held] == places


def test_a_wrong_step_changes_nothing():
    env = dice_envs.TensorEnv("liars_dice", 4)
    with pytest.raises(RuntimeError, match="call reset before step"):
        env.step(torch.zeros(4, dtype=torch.int64))
    env.reset(1)
    before = env.snapshot()
    with pytest.raises(dice_envs.IllegalActionError):
        env.step(torch.full((4,), 10**6))
    for name, array in env.snapshot().items():
        np.testing.assert_array_equal(array, before[name])


def test_pytorch_is_imported_when_it_is_needed():
    code = "import sys, dice_envs; assert 'torch' not in sys.modules; dice_envs.TensorEnv; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
