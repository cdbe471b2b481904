"""Files written whole or not at all, and read up to a limit; archives with checksums, left-overs of killed processes, locks.

Only plain files are replaced or read here: a device would be lost, or endless, and a FIFO would wait for another process.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import socket
import stat
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

BEGUN = time.time()  # when the first modules of this package were read
ABANDONED_AFTER = 3600.0  # seconds without a write after which a temporary file has no living writer
PATIENCE = 1.0  # seconds in which a file that another process has open on Windows, say a virus scanner, is replaced again
MOST_JSON = 2**26  # bytes
MOST_UNPACKED = 2**28  # bytes of an archive whose reader does not know how large it may be
R = TypeVar("R")
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # opens a FIFO without waiting for a process that writes to it
_CHECKSUM = "checksum"  # the member that has it
_MOST_MEMBERS = 1000  # of an archive
_MOST_HEADER = 1024  # characters of an array's own header; NumPy writes about 120


NOT_KEPT: set[str] = set()  # environment variables that name folders in which nothing could be kept


def warn_not_kept(variable: str, reason: object) -> None:
    """Warn, once per process, that nothing is kept for later processes in the folder that an environment variable can name."""
    if variable not in NOT_KEPT:
        NOT_KEPT.add(variable)
        message = f"dice_envs computes anew in every process what it cannot keep: {reason} ({variable} can name another folder)"
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def keep_file(path: Path, write: Callable[[Path], object], variable: str) -> bool:
    """Write a file that spares later processes work, whole or not at all. Return whether it was written; nothing is raised.

    `write` writes to the path that it is given. `variable`, for the one warning, is the environment variable that can name
    another folder.
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


def replaceable(path: Path) -> Path:
    """Return the file that a path leads to, which need not exist. OSError if it is no plain file, or links lead in a circle."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; a file is needed", str(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "this is no plain file", str(path))
    return target


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path, renamed to `path` when the block ends without an error. An OSError names `path`.

    A link stays, and the file that it leads to is replaced. What is replaced keeps its permissions, and new files have those
    that the umask leaves. Its folder is made where it is missing.
    """
    target = replaceable(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with named_in_errors(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_left_overs(target.parent, target.name, older_than=ABANDONED_AFTER)
            mode = target.stat().st_mode & 0o777 if target.exists() else None
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode | 0o600))
            yield temporary
            if mode is not None:
                temporary.chmod(mode)
            _replace(temporary, target)
    finally:
        with contextlib.suppress(OSError):  # renamed; or one that cannot be removed, which must not hide an error
            temporary.unlink()


def _replace(temporary: Path, target: Path) -> None:
    """Rename a file, again where that is refused for an instant. EPERM, which Windows does not raise here, is final."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            temporary.replace(target)
            return
        except PermissionError as problem:
            if problem.errno == errno.EPERM or time.monotonic() >= until:
                raise
        time.sleep(PATIENCE / 20)


@contextlib.contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """Make every OSError in the block name this file, in place of a temporary one or none."""
    try:
        yield
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror or str(problem), str(path)) from None


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all. OSError names it."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_bytes(path: Path, most: int) -> bytes:
    """Return what a plain file holds. ValueError if it is none or has more than `most` bytes, OSError if it cannot be read."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _AT_ONCE)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no plain file")
        if status.st_size > most:
            raise ValueError(f"it has {status.st_size:,} bytes, more than {most:,}")
        return file.read()


def read_json(path: Path) -> dict[str, Any]:
    """Read an object of JSON that this project has written. Errors as in `read_bytes` and `parse_json`."""
    return parse_json(read_bytes(path, MOST_JSON))


def parse_json(content: str | bytes) -> dict[str, Any]:
    """Return an object of JSON. ValueError if it is none or a number is not finite."""
    try:
        found = json.loads(content, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no finite number")
    return number


# --- archives ---------------------------------------------------------------------------------------------------------


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays, no objects, to a compressed .npz file, whole or not at all. OSError if that fails."""
    with atomic(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def read_arrays(path: Path, most: int) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name. Untrusted files are safe: sizes are checked first, and no code runs.

    Raises:
        OSError: it cannot be read.
        Exception: it is no plain file, damaged, not as NumPy packs arrays, or it has more than `most` bytes, also unpacked.
            ValueError, or the errors of zipfile and zlib.
    """
    with zipfile.ZipFile(io.BytesIO(read_bytes(path, most))) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if len(members) > _MOST_MEMBERS:
            raise ValueError(f"it has {len(members):,} members, more than {_MOST_MEMBERS:,}")
        if size > most:
            raise ValueError(f"it would unpack to {size:,} bytes, more than {most:,}")
        if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
            raise ValueError("its compression is not one that NumPy uses")
        return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """Return an array of an archive. ValueError if it holds objects, or other bytes than its header says."""
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as stream:
        try:
            version = np.lib.format.read_magic(stream)
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_MOST_HEADER)
        except Exception:  # NumPy's message advises to trust the file
            version = None
        if version != (1, 0):
            raise ValueError(f"{name} does not begin like an array that NumPy writes")
        left = info.file_size - stream.tell()
        if math.prod(shape) * dtype.itemsize != left:
            raise ValueError(f"{name} holds {left} bytes, which is not {shape} of {dtype}")
    with archive.open(info) as stream:  # from the header on, which NumPy reads itself
        return np.lib.format.read_array(stream, max_header_size=_MOST_HEADER)


def write_archive(path: Path, work: str, members: Mapping[str, Any]) -> None:
    """Write arrays or numbers to a compressed .npz file, whole or not at all. Its folder is made where it is missing.

    `work` identifies the work whose result this is: under another identity the file counts as damaged. Raises OSError.
    """
    arrays = {name: np.asarray(member) for name, member in members.items()}
    write_arrays(path, {**arrays, _CHECKSUM: np.array(checksum(work, arrays))})


def read_archive(
    path: Path, work: str, read: Callable[[dict[str, np.ndarray]], R], tell: Callable[[str], Any],
    most: int = MOST_UNPACKED, unchecked: bool = False,
) -> R | None:  # fmt: skip
    """Return what `read` makes of the members, or None where there is no such file or the work has to be done again.

    Args:
        path, work: as given to `write_archive`.
        read: checks the members; whatever it raises counts as damage.
        tell: called with a line that says why an existing file is not used.
        most: bytes of the file and of its members; one with more is not unpacked.
        unchecked: accept files of earlier versions, which have no checksum; for content that the caller verifies.
    """
    try:
        members = read_arrays(path, most)
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

    The operating system holds the lock, so a process that is killed leaves none behind. The folder is made where it is missing.

    Raises:
        ValueError: another process has the lock; the message names it, and `option`, the argument that names the folder.
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
        with contextlib.suppress(OSError):  # another process reads it, where that forbids to remove it
            owner.unlink()
        lock.release()


def _describe(owner: Path) -> str:
    try:
        its = read_json(owner)
        return f"process {its['pid']} on {its['host']}, since {its['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has the lock, but has not written its number yet
        return "another process"
