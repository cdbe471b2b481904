"""Result files: checked before the work, written atomically."""

from __future__ import annotations

import dataclasses
import errno
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs.core.files import behind_links, write_text
from dice_envs.core.machine import check_extra
from dice_envs.experiments.ui.console import console


def check_writable(path: Path | None) -> None:
    """Raise OSError before the work if the file cannot be written."""
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; a file is needed", str(path))
    if path.exists() and not path.is_file():  # the result replaces it, and it may be /dev/null
        raise OSError(errno.EINVAL, "this is no plain file", str(path))
    check_folder(behind_links(path).parent)


def check_folder(folder: Path | None) -> None:
    """Create the folder if needed. Raises OSError if nothing can be written there."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "this is a file; a folder is needed", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def check_report(folder: Path | None) -> None:
    """Check a folder of plots as `check_folder` does. Raises ImportError if matplotlib is missing."""
    if folder is not None:
        check_extra("experiments", "--report", "matplotlib")
        check_folder(folder)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)


def write_json(path: Path | None, data: Any) -> None:
    """Write a result as JSON, atomically. Does nothing without a path.

    Dataclasses and NumPy values become plain ones; infinity and NaN become null.

    Raises:
        OSError: the file cannot be written; the JSON went to standard output instead.
    """
    if path is None:
        return
    plain = json.loads(json.dumps(data, default=_plain), parse_constant=lambda name: None)
    text = json.dumps(plain, indent=1)
    try:
        write_text(path, text + "\n")
    except OSError:
        console.whole_line(text)
        raise
