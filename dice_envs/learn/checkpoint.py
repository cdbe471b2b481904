"""Checkpoints: the complete state of a training run in one file, which is read without running code from it.

A run that continues from its checkpoint ends bit for bit like one that was never stopped, on the same machine with the
same versions. The file holds networks, optimizer, games and every random stream, and nothing that can be derived.

Everything read is checked: checksums, versions, types, shapes, ranges. The exception are the states of the games, because
games do not declare which states are possible: resume only runs that you trust.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs.core.files import atomic
from dice_envs.core.options import check_range

__all__ = ["check_like", "model_state", "read_checkpoint", "restore_model", "write_checkpoint"]

FORMAT = 4


def write_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Write a dictionary of tensors and plain values whole or not at all; OSError where it cannot be written."""
    import torch

    content = io.BytesIO()  # not directly to a file: torch reports a full disk as a RuntimeError without a reason
    torch.save({"format": FORMAT, **state}, content)
    with atomic(path) as temporary:
        temporary.write_bytes(content.getbuffer())


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a file of `write_checkpoint`. It is never unpacked to more than its size.

    Raises:
        ValueError: the file is damaged, or of another version.
        OSError: it cannot be read.
    """
    import torch

    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > len(content):
                raise ValueError("it unpacks to more than its size")
            damaged = archive.testzip()  # torch does not check them
            if damaged is not None:
                raise ValueError(f"the checksum of {damaged} is wrong")
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as problem:  # zipfile, torch and its unpickler raise many types for damaged files
        raise ValueError(str(problem) or type(problem).__name__) from None
    check_like("the file", {"format": state.get("format") if isinstance(state, dict) else None}, {"format": FORMAT})
    return state


def check_like(name: str, found: Any, like: Any) -> None:
    """Raise ValueError unless `found` has the structure of `like`: the same keys, lengths, shapes and data types, all finite.

    Args:
        name: of `found`, for the message.
        found: content of a checkpoint.
        like: dictionaries, lists and tuples of any depth, with tensors, of which only shape and data type matter, and with
            numbers and strings, which must be equal.
    """
    import torch

    if isinstance(like, torch.Tensor):
        if not isinstance(found, torch.Tensor) or found.layout != torch.strided or found.device.type != "cpu":
            raise ValueError(f"{name} is not an array")
        if found.dtype != like.dtype or found.shape != like.shape:
            raise ValueError(f"{name} is {found.dtype} {tuple(found.shape)}, not {like.dtype} {tuple(like.shape)}")
        if found.is_floating_point() and not torch.isfinite(found).all():
            raise ValueError(f"{name} is not finite")
    elif isinstance(like, (dict, list, tuple)):
        keys: Any = like.keys() if isinstance(like, dict) else range(len(like))
        kind = dict if isinstance(like, dict) else (list, tuple)
        if not isinstance(found, kind) or (found.keys() if isinstance(found, dict) else range(len(found))) != keys:
            raise ValueError(f"{name} has other parts than {', '.join(map(str, keys)) or 'none'}")
        for key in keys:
            check_like(f"{name} {key}", found[key], like[key])
    elif type(found) is not type(like) or found != like:
        raise ValueError(f"{name} is of another version")


def model_state(model: Any) -> dict[str, Any]:
    """The complete state of a RegularisedPPO at the start of a rollout, with its SeatVecEnv and all random streams."""
    import torch

    return {
        "num_timesteps": model.num_timesteps,
        **{name: _on_cpu(dict(policy.state_dict())) for name, policy in _policies(model).items()},
        "optimizer": _on_cpu(model.policy.optimizer.state_dict()["state"]),
        "env": _bytes_of(model.env.snapshot()),
        "episode_starts": torch.from_numpy(model._last_episode_starts),
        "draws": model._draws.get_state(),
    }


def _on_cpu(found: Any) -> Any:
    """Nested dictionaries with their tensors on the CPU, so that a run can be resumed on another device."""
    if isinstance(found, dict):
        return {key: _on_cpu(value) for key, value in found.items()}
    return found.cpu()


def _policies(model: Any) -> dict[str, Any]:
    """The policy that learns, and those that follow it."""
    policies = {name: getattr(model, name) for name in ("policy", "reference_policy", "average_policy")}
    return {name: policy for name, policy in policies.items() if policy is not None}


def restore_model(model: Any, state: Mapping[str, Any]) -> None:
    """Set a new model to the state of one built alike, as `model_state` returned it.

    Raises:
        ValueError: it is no such state.
    """
    import torch

    steps, rollout = state["num_timesteps"], model.n_steps * model.n_envs
    check_range("num_timesteps", steps, 0, 10**15)
    if steps % rollout:
        raise ValueError(f"num_timesteps must be a multiple of {rollout}, not {steps}")
    for name, policy in _policies(model).items():
        check_like(name, state[name], _on_cpu(dict(policy.state_dict())))
    moments = {
        number: {"step": torch.tensor(0.0), "exp_avg": parameter.cpu(), "exp_avg_sq": parameter.cpu()}
        for number, parameter in enumerate(model.policy.parameters())
        if parameter.requires_grad  # the optimizer has no state of the others
    }
    check_like("optimizer", state["optimizer"], moments if steps else {})
    if any((part["exp_avg_sq"] < 0).any() or part["step"] < 0 for part in state["optimizer"].values()):
        raise ValueError("optimizer has means of squares or steps below 0")
    starts = torch.ones(model.n_envs, dtype=torch.bool)
    check_like("episode_starts", state["episode_starts"], starts)
    arrays = model.env.snapshot()
    check_like("env", state["env"], _bytes_of(arrays))
    check_like("draws", state["draws"], model._draws.get_state())
    try:
        model._draws.set_state(state["draws"])
    except RuntimeError as problem:
        raise ValueError(f"draws: {problem}") from None

    model.num_timesteps = steps
    model._n_updates = steps // rollout * model.n_epochs
    for name, policy in _policies(model).items():
        policy.load_state_dict(state[name])
    groups = model.policy.optimizer.state_dict()["param_groups"]
    model.policy.optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})
    # With observations set, `learn` continues the games instead of resetting the environment.
    model._last_obs = model.env.restore(_arrays_of(state["env"], arrays))
    model._last_episode_starts = state["episode_starts"].numpy()


def _bytes_of(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[str, Any]]:
    """Each array as its data type in words and its bytes, (bytes,) uint8: torch has few of NumPy's data types."""
    import torch

    return {
        name: (str(np.lib.format.dtype_to_descr(array.dtype)), torch.from_numpy(array.reshape(-1).view(np.uint8)))
        for name, array in arrays.items()
    }


def _arrays_of(parts: Mapping[str, tuple[str, Any]], like: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays that `_bytes_of` was given, with the data types and shapes of `like`."""
    return {name: parts[name][1].contiguous().numpy().view(array.dtype).reshape(array.shape) for name, array in like.items()}
