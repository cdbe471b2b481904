"""Checkpoints: the complete state of a training run in one file, which is read without running code from it.

A run that continues from its checkpoint ends bit for bit like one that was never stopped, on the same machine with the
same versions. The file holds networks, optimizer, games and every random stream, and nothing that can be derived.

Everything read is checked: checksums, versions, types, shapes, ranges. The states of the games are the
exception, beyond their checksum: games do not declare which states are possible. Resume only runs that you trust.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dice_envs.core.files import atomic, parse_json, read_bytes
from dice_envs.core.game import Variant, configure
from dice_envs.core.options import check_range, check_seed
from dice_envs.learn.presets import Preset

FORMAT = 6
MOST_BYTES = 2**33  # several networks of the largest size that `ppo` has


@contextlib.contextmanager
def blamed_on(path: Path) -> Iterator[None]:
    """Raise one ValueError, naming the file, for all errors in a checkpoint's content."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RuntimeError) as problem:
        reason = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem).partition("\n")[0][:200]
        raise ValueError(
            f"{str(path)!r} is damaged or of another run ({reason}); remove it to start anew, or choose another folder"
        ) from None


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
        ValueError: the file is damaged, no plain file, or of another version.
        OSError: it cannot be read.
    """
    content = read_bytes(path, MOST_BYTES)
    import torch

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


def read_config(text: str) -> tuple[Variant, Preset, int, str]:
    """Variant, preset, seed and learner of a run. ValueError, KeyError, TypeError or AttributeError where one is wrong."""
    config = parse_json(text)
    lacking = {field.name for field in dataclasses.fields(Preset)} - config["preset"].keys()
    if lacking:  # they would silently take today's defaults
        raise ValueError(f"another version of dice-envs has written it, without the settings {', '.join(sorted(lacking))}")
    if check_seed(config["seed"]) is None:
        raise ValueError("seed is missing")
    return configure(str(config["game"]), **config["options"]), Preset(**config["preset"]), config["seed"], config["learner"]


def check_like(name: str, found: Any, like: Any) -> None:
    """Raise ValueError unless content `found` has the structure of `like`: the same keys, lengths, shapes, types, all finite.

    `like` has dictionaries, lists and tuples of any depth, with tensors, of which only shape and data type matter, and with
    numbers and strings, which must be equal. The message calls the content `name`.
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


def copied(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Return copies of tensors on the CPU, so that a run can be resumed on another device."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}


def check_curve(curve: Any, score: Any) -> None:
    """Raise ValueError unless these are a learning curve and the scores since its last point."""
    if not isinstance(curve, list) or not all(isinstance(point, dict) and "steps" in point for point in curve):
        raise ValueError("curve is not a list of points")
    if not isinstance(score, dict) or not all(isinstance(sums, list) and len(sums) == 2 and sums[0] for sums in score.values()):
        raise ValueError("score does not hold a number of games, at least 1, and a sum for each opponent")
    for numbers in (*(point.values() for point in curve), *score.values()):
        for number in numbers:
            check_range("a number of the curve", number, -1e15, 1e15, whole=False)
