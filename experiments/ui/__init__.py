"""Input and output of commands: arguments that several share, the terminal, progress, and result files.

`grids` are tables, `pages` has plots and pages.

A command ends with `finish`: it prints the table, then writes the files, even if one of these steps fails. A full disk loses
no result: a file that cannot be written goes to standard output, and if that cannot be written, to standard error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from dice_envs.core.dice import fresh_seed
from dice_envs.core.files import replaceable, write_text
from dice_envs.core.game import Game, Variant, register
from dice_envs.core.machine import check_extra
from dice_envs.core.options import MAX_SHOWN, check_seed, parse_options, shown
from dice_envs.core.own import FORMS, load_own, split_own
from dice_envs.core.work import duration, time_left, work

# --- arguments and options, and the reading of game options ------------------------------------------------------------


MOST_BYTES = 2**20  # of a file that an option is read from


def whole_number(text: str | int) -> int:
    """Read a number as people type large ones: 100000, 100_000 or 1e5. ValueError if it is no whole number."""
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError, OverflowError):
        if (number := int(float(text))) == float(text):
            return number
    raise ValueError(f"{shown(text)} is no whole number; 20000, 20_000 and 2e4 are")


def count_option(*names: str, help: str) -> Any:
    """Declare an option that is a number of games, steps and the like."""
    return typer.Option(*names, help=help, parser=whole_number, metavar="<int>")


GameArgument = Annotated[str, typer.Argument(help="The game, say liars_dice; `games` lists them. Or your own: FILE.py:GAME.")]
AgentsArgument = Annotated[list[str], typer.Argument(help="Agents, say random numbers:bluff=0.25; `agents` lists them.")]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", help="A game option, KEY=VALUE or KEY=@FILE (a list in a file); repeat it. `games` lists them."
    ),
]
GamesOption = Annotated[int, count_option("--games", help="Number of games of each pair, table, or agent that plays alone.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Seed of all random draws; if left out, one is chosen and printed.")
]
DeviceOption = Annotated[
    str, typer.Option("--device", help="PyTorch's device, such as cpu or cuda; auto: cuda where there is a GPU, else cpu.")
]
JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the result here as JSON.")]
RayOption = Annotated[
    str | None,
    typer.Option("--ray", help="Distribute the work over a Ray cluster: local for one on this machine, or its address."),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Continue a stopped run from the parts that it kept beside the file of --json.")
]
ReportOption = Annotated[
    Path | None, typer.Option("--report", help="Write plots into this folder, and a page where there is one (index.html).")
]


def own_game(text: str) -> str:
    """Return the name of a game as typed; load and register a user's own, FILE.py:GAME or PACKAGE.MODULE:GAME. ValueError if it
    cannot be loaded, or another game has its name."""
    named = split_own(text)
    if named is None:
        return text
    where, name, rest = named
    found = load_own(where, name, "game")
    if rest or not isinstance(found, Game):
        raise ValueError(f"a game of your own is written {FORMS}, where NAME is a dice_envs.Game, not {shown(text)}")
    return register(found).name


def game_options(pairs: Sequence[str] | None) -> dict[str, Any]:
    """Read game options as typed: KEY=VALUE, see `dice_envs.core.options.parse_options`, or KEY=@FILE.

    A file holds a list: one value a line, or several separated by commas or blanks. Single digits separated by blanks
    are one value, the FateStones project's notation for dice: `3 3 3 4 4 4` is 333444.

    Raises:
        ValueError: not KEY=VALUE, no such value, or a file that is empty, too long or not text.
        OSError: the file cannot be read.
    """
    return parse_options([_with_file_read(pair) for pair in pairs or ()])


def _with_file_read(pair: str) -> str:
    """Expand KEY=@FILE to KEY=VALUE,VALUE,...; return other text unchanged."""
    name, _, value = (part.strip() for part in pair.partition("="))
    if not name or not value.startswith("@"):
        return pair
    path = value[1:]
    if not path:
        raise ValueError(f"{name[:MAX_SHOWN]}=@ must be followed by the name of a file")
    with Path(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)  # limited: it may be an endless device
    if len(content) > MOST_BYTES:
        raise ValueError(f"{name[:MAX_SHOWN]} is read from {path}, which must hold at most {MOST_BYTES:,} bytes")
    try:
        values = list(_values(content.decode("utf-8-sig")))
    except UnicodeDecodeError as problem:
        raise ValueError(f"{name[:MAX_SHOWN]} is read from {path}, which is not a text file ({problem.reason})") from None
    if not values:
        raise ValueError(f"{name[:MAX_SHOWN]} is read from {path}, which holds no values")
    return f"{name}={','.join(values)},"  # the last comma makes a list of a single value, too


def _values(text: str) -> Iterator[str]:
    for line in text.splitlines():
        for group in line.split(","):
            parts = group.split()
            if len(parts) > 1 and all(len(part) == 1 and part.isdecimal() for part in parts):
                yield "".join(parts)
            else:
                yield from parts


def seed_or_fresh(seed: int | None) -> int:
    """Return the seed, or a fresh one for None. Raises ValueError for a wrong seed."""
    seed = check_seed(seed)
    return fresh_seed() if seed is None else seed


# --- the terminal ------------------------------------------------------------------------------------------------------


LONGEST_LINE = 1000  # characters of an error
EXPECTED = (ValueError, OSError, ImportError, MemoryError)  # raised by bad input or a bad disk


class _Output:
    """Standard output; standard error after a write has failed."""

    def __init__(self) -> None:
        self.failed = False  # whether writing to standard output has failed

    @property
    def encoding(self) -> str:
        return sys.stdout.encoding

    def isatty(self) -> bool:
        return sys.stdout is not None and sys.stdout.isatty()  # None if the parent process closed it

    def flush(self) -> None:
        """No-op: writes are unbuffered."""

    def write(self, text: str) -> None:
        stream = sys.stderr if self.failed else sys.stdout
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:  # the reader has gone
            raise
        except OSError as problem:
            if self.failed:
                raise
            self.failed = True
            _discard_unwritten()
            typer.echo(f"error: standard output cannot be written ({problem.strerror}); the rest follows here", err=True)
            self.write(text)


class _Console(Console):
    """A console that prints text unchanged, brackets included."""

    def __init__(self, file: Any) -> None:
        width = shutil.get_terminal_size((140, 25)).columns  # a log or a pipe has no width: give tables room
        super().__init__(file=file, width=width, markup=False, highlight=False, emoji=False)

    def whole_line(self, text: str) -> None:
        """Print one line without wrapping it."""
        self.print(text, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Raise instead of ending the process, as rich would: there may be files to write."""
        raise


_output = _Output()
console = _Console(_output)


def _discard_unwritten() -> None:
    """Discard the buffer of standard output, or Python fails on it again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_mode(variant: Variant, policy: str = "") -> None:
    """Print which variant is played where that is not obvious.

    It may come from a policy, if one is named, or the game has other options in commands for one seat than in those for all:

    `shakes as physician, 1 seat; -o mode=... changes it (train and measure take physician, arena and play maesters)`
    """
    if policy:
        console.whole_line(f"{variant}, {_seats(variant)}: what {policy} was trained on")
        return
    given, usual = (dataclasses.asdict(options) for options in (variant.options, type(variant.options)()))
    for option, alone in variant.game.gym_options.items():
        value = given[option]
        taken = f"as {value}" if isinstance(value, str) else f"with {option}={value}"
        others = f"train and measure take {alone}, arena and play {usual[option]}"
        console.whole_line(f"{variant.game.name} {taken}, {_seats(variant)}; -o {option}=... changes it ({others})")


def _seats(variant: Variant) -> str:
    return "1 seat" if variant.facts.num_seats == 1 else f"{variant.facts.num_seats} seats"


def _in_one_line(problem: BaseException) -> str:
    if isinstance(problem, OSError) and problem.filename:
        text = f"{problem.filename}: {problem.strerror}"
    elif isinstance(problem, ModuleNotFoundError):
        text = f'{problem}: pip install "dice-envs[experiments]"'
    else:
        text = f"out of memory: {problem}" if isinstance(problem, MemoryError) else str(problem)
    line = " ".join(text.split()) or type(problem).__name__
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


class Stopped(KeyboardInterrupt):
    """A signal stopped the work after it was saved; the message says how to resume."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_status = 128 + number  # the convention of shells for a process ended by a signal


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """End a command with one line on standard error and exit status 2 after bad input, 130 after Ctrl-C.

    If the reader of standard output closes the pipe (`| head`), typer ends the command silently.
    """
    _output.failed = False
    try:
        yield
    except BrokenPipeError:
        raise
    except EXPECTED as problem:
        _discard_unwritten()
        typer.echo(f"error: {_in_one_line(problem)}", err=True)
        raise typer.Exit(2) from None
    except Stopped as stop:
        typer.echo(str(stop), err=True)
        raise typer.Exit(stop.exit_status) from None
    except (KeyboardInterrupt, typer.Abort):  # Abort: Ctrl-C at a prompt, or nothing left to read there
        typer.echo("stopped", err=True)
        raise typer.Exit(130) from None
    if _output.failed:
        raise typer.Exit(2)


def finish(*parts: Callable[[], Any]) -> None:
    """Call every part of writing a result, even if others fail; then raise their errors.

    Raises:
        OSError: all expected errors in one line, if there are several; a single error is raised as it is.
        Exception: the first unexpected error.
    """
    problems: list[Exception] = []
    for part in parts:
        try:
            part()
        except Exception as problem:  # raised below
            problems.append(problem)
    reported = [problem for problem in problems if not isinstance(problem, BrokenPipeError)]
    faults = [problem for problem in reported if not isinstance(problem, EXPECTED)]
    if len(reported) > 1 and not faults:
        raise OSError("; ".join(map(_in_one_line, reported)))
    if problems:
        raise (faults or reported or problems)[0]


def write_all(json: Path | None, data: Any, report: Path | None, draw: Callable[[Path], Any], *more: Callable[[], Any]) -> None:
    """Do `more`, such as showing a table; then, where paths are given, write JSON and draw the report. See `finish`."""
    finish(*more, lambda: write_json(json, data), lambda: draw(report) if report is not None else None)


# --- progress of long work: a bar on a terminal, lines elsewhere -------------------------------------------------------


SOON, LATER = 10.0, 30.0  # seconds before the first line of progress, and between lines once the time left is known


@contextlib.contextmanager
def progress(
    what: str,
    total: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    seconds: float = math.inf,
    most: float = math.inf,
) -> Iterator[work]:
    """Do a block of work (see `dice_envs.core.work.work`) under a progress bar; where standard error is not a terminal it shows
    as occasional lines.

    Args:
        what: the work, as the line names it.
        total: amount of work in all, in pieces that are worth counting, whatever advances on the way; None: only the
            share that is done is shown, in per cent.
        clock: seconds now.
        seconds, most: limits of the work, as for `work`.
    """
    errors = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not (errors.is_interactive and sys.stderr.isatty()):  # FORCE_COLOR makes a terminal of a log, too
        with work(_Lines(what, total, clock), seconds=seconds, most=most) as block:
            yield block
        return
    counted = TaskProgressColumn() if total is None else MofNCompleteColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), counted, TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(what, total=1 if total is None else total)
        with work(
            lambda amount, of: bar.advance(task, amount / (of if total is None else 1)), seconds=seconds, most=most
        ) as block:
            yield block


class _Lines:
    """Progress as lines on standard error: `3 × 2,000 games: 25 %, 1,500 of 6,000, about 2 min left`."""

    def __init__(self, what: str, total: float | None, clock: Callable[[], float]) -> None:
        self.what, self.total, self.clock = what, total, clock
        self.amount = 0.0
        self.left = time_left(clock)
        self.next_line = clock() + SOON

    def __call__(self, amount: float, of: float) -> None:
        self.amount += amount / (of if self.total is None else 1)
        now = self.clock()
        share = self.amount if self.total is None else self.amount / self.total
        seconds = self.left(share)
        if now < self.next_line:
            return
        line = f"{self.what}: {100 * share:.0f} %"
        if self.total is not None:
            line += f", {self.amount:,.0f} of {self.total:,.0f}"
        if seconds is not None:
            line += f", about {duration(seconds)} left"
        self.next_line = now + (SOON if seconds is None else LATER)
        with contextlib.suppress(OSError):  # a line that cannot be written must not stop the work
            typer.echo(line, err=True)


# --- result files: checked before the work, written atomically ----------------------------------------------------------


def check_writable(path: Path | None) -> None:
    """Raise OSError before the work if the file cannot be written."""
    if path is not None:
        check_folder(replaceable(path).parent)


def check_folder(folder: Path | None) -> None:
    """Raise OSError if nothing can be written into a folder. A missing one is made later, when something is written."""
    if folder is None:
        return
    nearest = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "this is a file; a folder is needed", str(nearest))
    with tempfile.TemporaryFile(dir=nearest):
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
