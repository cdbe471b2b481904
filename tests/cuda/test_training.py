"""Training on a device."""

import pytest

import dice_envs

torch = pytest.importorskip("torch", reason="the environment of make test-cuda has no PyTorch; make gpu uses one that has")

GAME = {"rules": "openspiel", "num_dice": 1, "num_faces": 3}
SETTINGS = {"num_envs": 128, "num_steps": 32, "minibatch": 1024, "epochs": 4, "hidden": (64, 64), "measure_every": 10}
SETTINGS |= {"learning_rate": 5e-3, "learning_rate_end": 5e-3, "kl": 0.3, "kl_end": 0.3, "proximal_end": 1.0}
ITERATION = 128 * 32
GPU = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.thorough), pytest.param("cuda", marks=GPU)])
def test_a_run_that_was_stopped_goes_on_to_a_figure(device, tmp_path):
    """Within seconds exploitability falls to a quarter of that of random play."""

    def train(iterations):
        steps = iterations * ITERATION
        arguments = {"preset": "equilibrium", "settings": SETTINGS, "folder": tmp_path, "device": device, "seed": 3}
        found = dice_envs.train("liars_dice", steps=steps, **arguments, **GAME)
        assert found.steps == steps
        return found

    precision = torch.get_float32_matmul_precision()
    half, found = train(20), train(40)
    assert torch.get_float32_matmul_precision() == precision
    assert found.gaps[: len(half.gaps)] == half.gaps != []
    assert found.gaps[-1]["steps"] == 40 * ITERATION
    gap = dice_envs.measure("liars_dice", found.policy, **GAME).measures[0].value
    assert gap < dice_envs.measure("liars_dice", "random", **GAME).measures[0].value / 4
