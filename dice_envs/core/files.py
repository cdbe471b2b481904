"""Files written whole or not at all, temporary files that killed processes leave behind, and locks on folders."""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import math
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "ABANDONED_AFTER",
    "atomic",
    "behind_links",
    "folder_lock",
    "named_in_errors",
    "read_json",
    "remove_left_overs",
    "write_text",
]

ABANDONED_AFTER = 3600.0  # seconds without a write after which a temporary file has no living writer


def remove_left_overs(folder: Path, name: str | None = None, older_than: float = 0.0) -> None:
    """Remove temporary files that killed processes have left in a folder (if `name` is given, only those for this file).

    Files written to in the last `older_than` seconds stay, since a running process may need them.
    """
    written = r".+" if name is None else re.escape(name)
    left_over = re.compile(rf"\.{written}\.[a-z0-9_]{{8}}\.tmp")  # as `atomic` names them
    for path in folder.iterdir():
        if left_over.fullmatch(path.name):
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
    that the umask leaves.
    """
    target = behind_links(path)
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


@contextlib.contextmanager
def folder_lock(folder: Path, option: str) -> Iterator[None]:
    """Keep other processes that ask for this lock out of a folder while the block runs; remove what killed ones left there.

    The operating system holds the lock, so a process that is killed leaves none behind.

    Args:
        folder: to lock; it exists.
        option: the argument that names the folder, for the message.

    Raises:
        ValueError: another process has the lock; the message names it.
    """
    import filelock  # comes with PyTorch and with the command line, and is not needed elsewhere

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
