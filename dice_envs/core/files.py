"""Files written whole or not at all, archives with checksums, temporary files that killed processes leave, locks on folders."""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import json
import math
import os
import re
import secrets
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

BEGUN = time.time()  # when the first modules of this package were read
ABANDONED_AFTER = 3600.0  # seconds without a write after which a temporary file has no living writer
R = TypeVar("R")
_CHECKSUM = "checksum"  # the member that has it


NOT_KEPT: set[str] = set()  # environment variables that name folders in which nothing could be kept


def warn_not_kept(variable: str, reason: object) -> None:
    """Warn, once per process, that nothing is kept for later processes in the folder that an environment variable can name."""
    if variable not in NOT_KEPT:
        NOT_KEPT.add(variable)
        message = f"dice_envs computes anew in every process what it cannot keep: {reason} ({variable} can name another folder)"
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def keep_file(path: Path, write: Callable[[Path], object], variable: str) -> bool:
    """Write a file that spares later processes work, whole or not at all. Return whether it was written; nothing is raised.

    Args:
        path: of the file; its folder is made.
        write: writes to the path that it is given.
        variable: the environment variable that can name another folder, for the one warning.
    """
    try:
        with atomic(path) as temporary:
            write(temporary)
    except OSError as problem:  # a read-only or full disk, or a file where the folder would be
        warn_not_kept(variable, problem)
        return False
    return True


def remove_left_overs(folder: Path, name: str | None = None, older_than: float = 0.0) -> None:
    """Remove temporary files that killed processes have left in a folder (if `name` is given, only those for this file).

    Files written to in the last `older_than` seconds stay, since a running process may need them; what cannot be removed, too.
    """
    written = r".+" if name is None else re.escape(name)
    left_over = re.compile(rf"\.{written}\.[a-z0-9_]{{8}}\.tmp")  # as `atomic` names them
    with contextlib.suppress(OSError):  # there is no folder that we may read
        for path in [path for path in folder.iterdir() if left_over.fullmatch(path.name)]:
            with contextlib.suppress(OSError):  # not ours to remove, or gone already
                if time.time() - path.stat().st_mtime >= older_than:
                    path.unlink()


def behind_links(path: Path) -> Path:
    """Return the file that a path leads to, which need not exist. OSError if links lead in a circle."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return target


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path, renamed to `path` when the block ends without an error. An OSError names `path`.

    A link stays, and the file that it leads to is replaced. What is replaced keeps its permissions, and new files have those
    that the umask leaves. Its folder is made where it is missing.
    """
    target = behind_links(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_left_overs(target.parent, target.name, older_than=ABANDONED_AFTER)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode | 0o600))
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except OSError as problem:
        problem.filename = problem.filename or str(path)  # a full disk is reported without one
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Make every OSError in the block name this file, in place of a temporary one or none."""
    try:
        yield
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror or str(problem), str(path)) from None


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all. OSError names it."""
    with named_in_errors(path), atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read JSON that this project has written. ValueError if it is none or a number is not finite, OSError without the file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no finite number")
    return number


# --- archives ---------------------------------------------------------------------------------------------------------


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
    with atomic(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **{**arrays, _CHECKSUM: np.array(checksum(work, arrays))})


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
        if stated is not None and str(stated) != checksum(work, members):
            raise ValueError("its checksum is wrong")
        return read(members)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Exception as problem:  # damage raises in zipfile, zlib, NumPy or Python's parser, each in its own way
        reason = " ".join(str(problem).split())[:100] or type(problem).__name__
        tell(f"{path} is damaged or of other work ({reason}): that work is done again")
        return None


def checksum(work: Any, arrays: Mapping[str, np.ndarray]) -> str:
    """Return a digest of arrays and of the `repr` of the work that they belong to."""
    digest = hashlib.sha256(repr(work).encode())
    for name, array in sorted(arrays.items()):
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds objects, which are not kept")
        digest.update(f"{name} {array.dtype.descr} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


# --- locks ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def folder_lock(folder: Path, option: str) -> Iterator[None]:
    """Keep other processes that ask for this lock out of a folder while the block runs; remove what killed ones left there.

    The operating system holds the lock, so a process that is killed leaves none behind.

    Args:
        folder: to lock; it is made where it is missing.
        option: the argument that names the folder, for the message.

    Raises:
        ValueError: another process has the lock; the message names it.
    """
    import filelock  # comes with PyTorch and with the command line, and is not needed elsewhere

    folder.mkdir(parents=True, exist_ok=True)
    owner = folder / ".owner.json"  # beside the lock and not in it: filelock may empty a lock file that it waits for
    lock = filelock.FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise ValueError(f"{folder} is in use by {_describe(owner)}; wait for its end, or choose another {option}") from None
    try:
        remove_left_overs(folder)
        since = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
        write_text(owner, json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}))
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def _describe(owner: Path) -> str:
    try:
        its = read_json(owner)
        return f"process {its['pid']} on {its['host']}, since {its['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has the lock, but has not written its number yet
        return "another process"
