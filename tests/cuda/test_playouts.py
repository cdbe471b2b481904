"""Random games on a device end in the states of a CPU. Without a GPU a few of them run on numba's simulator of one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is in the environment of make test-cuda")

from numba import cuda

from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, compile_random_action, configure, names


def start(variant, games):
    states = np.zeros(games, variant.game.state)
    states["rng"], states["seat"] = new_streams(1, games)["rng"], OVER
    return states


def play_on_device(variant, games, steps):
    rules, params = variant.game, variant.params
    deal, play, random_action = rules.deal, rules.play, compile_random_action(rules)

    @cuda.jit
    def playouts(states, masks, steps):
        i = cuda.grid(1)
        if i < states.shape[0]:
            state = states[i]
            for _ in range(steps):
                if state["seat"] == OVER:
                    deal(params, state)
                play(params, state, random_action(params, state, masks[i]))

    states, masks = cuda.to_device(start(variant, games)), cuda.to_device(np.zeros((games, params.num_actions), np.int8))
    playouts[(games + 31) // 32, 32](states, masks, steps)
    return states.copy_to_host()


def check(variant, found, steps):
    expected = start(variant, len(found))
    variant.kernels.playouts(variant.params, expected, steps)
    assert len(np.unique(expected["rng"])) == len(expected)
    for field in variant.game.state.names:
        np.testing.assert_array_equal(found[field], expected[field], field)


@pytest.mark.cuda
@pytest.mark.skipif(not cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("game", names())
def test_a_gpu(game):
    variant = configure(game)
    check(variant, play_on_device(variant, 2048, 200), 200)


@pytest.mark.parametrize("game", ["liars_dice", "thirties"])
def test_the_simulator(game, tmp_path):
    """It runs kernels as Python, in a process of its own."""
    path = tmp_path / "states.npy"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-m", __name__, game, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    check(configure(game), np.load(path), 25)


if __name__ == "__main__":
    np.save(Path(sys.argv[2]), play_on_device(configure(sys.argv[1]), 64, 25))
