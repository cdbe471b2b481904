"""Files written whole or not at all, and the removal of temporary files that killed processes leave behind."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["OLD", "atomic", "named_in_errors", "remove_left_overs", "write_text"]

OLD = 3600.0  # seconds without a write after which the process that wrote a temporary file must be gone


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


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path, renamed to `path` when the block ends without an error. An OSError names `path`."""
    remove_left_overs(path.parent, path.name, older_than=OLD)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as problem:
        problem.filename = problem.filename or str(path)  # a full disk is reported without one
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def named_in_errors(path: Path) -> Iterator[None]:
    """An OSError inside names this file, not a temporary one or none."""
    try:
        yield
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror or str(problem), str(path)) from None


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all. OSError names it."""
    with named_in_errors(path), atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
