"""PyTorch devices by name."""

from __future__ import annotations

from dice_envs.core.extras import needs
from dice_envs.core.options import shown

__all__ = ["torch_device"]


def torch_device(device: str) -> str:
    """Return the name of a device that PyTorch has here; "auto" stands for "cuda" where there is a GPU, else for "cpu".

    Raises:
        ValueError: PyTorch has no such device here.
        ImportError: PyTorch is not installed; the message names the extra.
    """
    with needs("sb3", "a device"):
        import torch
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=device).item()  # no value can be read from the device "meta"
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as problem:
        reason = str(problem).partition("\n")[0][:200]
        raise ValueError(
            f"device must be one that PyTorch has here, say auto, cpu or cuda, not {shown(device)}: {reason}"
        ) from None
    return str(device)
