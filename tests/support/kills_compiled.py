"""Import and compile everything for the commands of `tests.support.kills`, once, in the server that forks them."""

import tempfile
from pathlib import Path

import matplotlib.pyplot  # noqa: F401
import sb3_contrib  # noqa: F401
import torch._dynamo
import torch.utils.tensorboard  # noqa: F401 - but nothing is computed with torch, which then could not be forked

import dice_envs.envs.sb3
import dice_envs.learn.ppo
import tests.support.kills  # noqa: F401
from dice_envs import configure
from dice_envs.experiments.arena import tournament
from dice_envs.games.fatestones.exact.draws import draw_hands, solve_each
from dice_envs.games.liars_dice.exact.solver import solve

solve_each(draw_hands(configure("fatestones"), 2, 1))
tournament(configure("liars_dice", num_dice=2), ["numbers", "mcts:2"], 2, 1)
env = dice_envs.envs.sb3.make_vec_env("liars_dice", 2, opponents="numbers:bluff=0.5", seed=1, num_dice=2)
env.reset()
env.step(env.action_masks().argmax(axis=1))
dice_envs.measure("liars_dice", "numbers", rules="openspiel", num_dice=1)
with tempfile.TemporaryDirectory() as folder:
    solve(configure("liars_dice", num_dice=2), 1e-2, folder=Path(folder))
