"""PyTorch devices by name."""

import pytest
import torch

from dice_envs.core.machine import torch_device


def test_auto_is_the_gpu_where_there_is_one(monkeypatch):
    assert torch_device("cpu") == "cpu"
    for there, device in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert torch_device("auto") == device


@pytest.mark.parametrize("device", ["abacus", "", "cuda:99", "meta", 3.5])
def test_a_device_that_is_not_there_is_named(device):
    with pytest.raises(
        ValueError, match=f"device must be one that PyTorch has here, say auto, cpu or cuda, not '?{device}'?: "
    ):
        torch_device(device)
