"""Archives: arrays in one file, with a checksum of them and of the work that they belong to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dice_envs.core.files import atomic

__all__ = ["read_archive", "write_archive"]

R = TypeVar("R")
_CHECKSUM = "checksum"  # the member that has it


def write_archive(path: Path, work: str, members: Mapping[str, Any]) -> None:
    """Write arrays to a compressed .npz file, whole or not at all. Its folder is made where it is missing.

    Args:
        path: of the file.
        work: identifies the work whose result this is. Under another identity the file counts as damaged.
        members: arrays or numbers by name; no objects.

    Raises:
        OSError: the file cannot be written.
    """
    arrays: dict[str, Any] = {name: np.asarray(member) for name, member in members.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **{**arrays, _CHECKSUM: np.array(_checksum(work, arrays))})


def read_archive(
    path: Path, work: str, read: Callable[[dict[str, np.ndarray]], R], tell: Callable[[str], Any], unchecked: bool = False
) -> R | None:
    """Return what `read` makes of the members, or None where there is no such file or the work has to be done again.

    Args:
        path, work: as given to `write_archive`.
        read: checks the members; whatever it raises counts as damage.
        tell: called with a line that says why an existing file is not used.
        unchecked: accept files of earlier versions, which have no checksum; for content that the caller verifies.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            members = {name: file[name] for name in file.files}
        stated = members.pop(_CHECKSUM, None)
        if stated is None and not unchecked:
            raise ValueError("an earlier version wrote it, without a checksum")
        if stated is not None and str(stated) != _checksum(work, members):
            raise ValueError("its checksum is wrong")
        return read(members)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Exception as problem:  # damage raises in zipfile, zlib, NumPy or Python's parser, each in its own way
        reason = " ".join(str(problem).split())[:100] or type(problem).__name__
        tell(f"{path} is damaged or of other work ({reason}): that work is done again")
        return None


def _checksum(work: str, arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(repr(work).encode())
    for name, array in sorted(arrays.items()):
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds objects, which are not kept")
        digest.update(f"{name} {array.dtype.descr} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
