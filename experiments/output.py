"""What the commands share: the console, files written whole or not at all, errors in one line, intervals."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = [
    "Row",
    "Stopped",
    "atomic",
    "check_folder",
    "check_writable",
    "console",
    "figure",
    "one_line_errors",
    "print_rows",
    "progress",
    "remove_left_overs",
    "seed_or_fresh",
    "wilson_half_width",
    "write_json",
    "write_text",
]

# Logs and pipes have no width of their own: give tables room.
console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140)
Z95 = 1.959963984540054  # the normal distribution's 97.5 % point


@dataclasses.dataclass
class Row:
    """A published figure beside ours. `error` is 0 for an exact figure, else the half-width of a 95 % interval."""

    source: str
    figure: str
    published: float | str | None
    ours: float | str | None
    error: float = 0.0
    agrees: bool | None = None  # None: nothing published to agree with
    note: str = ""


def print_rows(title: str, rows: list[Row], digits: int = 4) -> None:
    """The rows as a table on the terminal."""

    def text(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:.{digits}f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
        return "-" if value is None else str(value)

    table = Table(title=title, title_justify="left")
    for heading, justify in (("figure", "left"), ("published", "right"), ("ours", "right"), ("±", "right"), ("agrees", "left")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column("note")
    for row in rows:
        verdict = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}[row.agrees]
        error = text(row.error) if row.error else "exact"
        table.add_row(row.figure, text(row.published), text(row.ours), error, verdict, row.note)
    console.print(table)


class Stopped(KeyboardInterrupt):
    """A signal has stopped the work at a place where all of it is saved; the message says how to go on."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_status = 128 + number  # as shells have it for a process that a signal ended


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Bad input ends a command with one line on standard error and exit status 2; Ctrl-C with 130."""
    try:
        yield
    except (ValueError, OSError, ImportError) as problem:
        text = f"{problem.filename}: {problem.strerror}" if isinstance(problem, OSError) and problem.filename else str(problem)
        typer.echo(f"error: {' '.join(text.split())}", err=True)
        raise typer.Exit(2) from None
    except Stopped as stop:
        typer.echo(str(stop), err=True)
        raise typer.Exit(stop.exit_status) from None
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(130) from None


@contextlib.contextmanager
def progress(what: str, total: float | None) -> Iterator[Any]:
    """A progress bar; call what it yields with the amount done since the last call."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount=1: bar.advance(task, amount)


def seed_or_fresh(seed: int | None) -> int:
    """The seed, or a fresh one; ValueError for a negative one."""
    if seed is None:
        return secrets.randbits(31)
    if seed < 0:
        raise ValueError(f"seed must be a whole number from 0 on, not {seed}")
    return seed


def check_writable(path: Path | None) -> None:
    """Raise OSError now, and not after the work, if the file could not be written."""
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(21, "this is a folder; a file is needed", str(path))
    check_folder(path.parent)


def check_folder(folder: Path | None) -> None:
    """Make the folder if need be; OSError if nothing can be written there."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def remove_left_overs(folder: Path, name: str | None = None, older_than: float = 0.0) -> None:
    """Remove what a kill has left of files that were being written (of the one called `name`, if given).

    Only those that have not been written to for `older_than` seconds; others may be another process's, at work.
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
    """A temporary path that takes the place of `path` when the block ends well. An OSError names `path`."""
    remove_left_overs(path.parent, path.name, older_than=3600)
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


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)


def write_json(path: Path | None, data: Any) -> None:
    """Write JSON whole or not at all; dataclasses and NumPy values become plain ones. No path: nothing."""
    if path is not None:
        write_text(path, json.dumps(data, indent=1, default=_plain, allow_nan=False) + "\n")


@contextlib.contextmanager
def figure(report: Path, name: str, **kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """A matplotlib figure and its axes, saved as `report/name.png` when the block ends well."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawn, axes = plt.subplots(**{"figsize": (8, 5), "layout": "constrained", **kwargs})
    try:
        yield drawn, axes
        with atomic(report / f"{name}.png") as temporary:
            drawn.savefig(temporary, format="png", dpi=120)
    finally:
        plt.close(drawn)
    console.print(f"plot: {report / f'{name}.png'}")


def wilson_half_width(share: float, count: int) -> float:
    """Half the width of the 95 % Wilson interval of a share seen in `count` trials."""
    if count == 0:
        return 1.0
    z2 = Z95 * Z95
    return Z95 / (1 + z2 / count) * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
