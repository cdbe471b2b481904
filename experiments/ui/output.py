"""What the commands share: the console, files written whole or not at all, errors in one line, progress, intervals.

A command that ends with a result hands it over by `finish`: the table first, then the files, each whatever becomes of the
others. A result is never lost to a full disk: a file that cannot be written goes to standard output, and what standard
output cannot take goes to standard error.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import errno
import json
import math
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from dice_envs.core.extras import check_extra
from dice_envs.core.files import atomic, named_in_errors, write_text
from dice_envs.core.game import Variant, check_range
from dice_envs.exact import Z95

__all__ = [
    "Finding",
    "Plot",
    "Stopped",
    "check_folder",
    "check_report",
    "check_writable",
    "console",
    "counted",
    "figure_text",
    "finish",
    "logarithmic",
    "one_line_errors",
    "plots_noted",
    "print_heading",
    "print_mode",
    "print_rows",
    "progress",
    "saved_plot",
    "seed_or_fresh",
    "verdict",
    "wilson_half_width",
    "write_json",
]

LONGEST_LINE = 1000  # characters of an error
LARGEST_SEED = 2**32 - 1  # NumPy's older generator, which Stable-Baselines3 seeds, takes no more
FORETELLS_FROM = 0.002  # share of the work from which the time that is left can be told
FIRST_LINE, NEXT_LINE = 10.0, 30.0  # seconds until the first line of progress, and between two of them
EXPECTED = (ValueError, OSError, ImportError, MemoryError)  # what bad input or a bad disk ends in


class _Output:
    """Standard output; once that cannot be written, standard error."""

    def __init__(self) -> None:
        self.failed = False  # whether standard output could not be written

    @property
    def encoding(self) -> str:
        return sys.stdout.encoding

    def isatty(self) -> bool:
        return sys.stdout is not None and sys.stdout.isatty()  # None where whoever started us has closed it

    def flush(self) -> None:
        """Nothing waits: what is written is written at once."""

    def write(self, text: str) -> None:
        stream = sys.stderr if self.failed else sys.stdout
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:  # nobody reads on
            raise
        except OSError as problem:
            if self.failed:
                raise
            self.failed = True
            _discard_unwritten()
            typer.echo(f"error: standard output cannot be written ({problem.strerror}); the rest follows here", err=True)
            self.write(text)


class _Console(Console):
    """Prints what it is given as it stands, brackets and all."""

    def __init__(self, file: Any) -> None:
        width = shutil.get_terminal_size((140, 25)).columns  # logs and pipes have none of their own: give tables room
        super().__init__(file=file, width=width, markup=False, highlight=False, emoji=False)

    def whole_line(self, text: str) -> None:
        """Print one line, however long."""
        self.print(text, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Not rich's to end the command: there may be files to write."""
        raise


_output = _Output()
console = _Console(_output)


def _discard_unwritten() -> None:
    """Send what standard output could not take to nowhere, or Python fails on it again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@dataclasses.dataclass
class Finding:
    """A published figure, if there is one, beside ours.

    `error` is 0 for an exact figure, else the half-width of a 95 % interval.
    """

    source: str
    figure: str
    published: float | str | None
    ours: float | str | None
    error: float = 0.0
    agrees: bool | None = None  # None: nothing published to agree with
    note: str = ""


def figure_text(value: float | str | None, digits: int = 6) -> str:
    """A figure as tables show it: so many decimals at most, a dash for none."""
    if isinstance(value, float):
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
    return "-" if value is None else str(value)


def print_rows(title: str, findings: list[Finding], digits: int = 4) -> None:
    """The findings as a table on the terminal, one a row."""

    def text(value: Any) -> str:
        return figure_text(value, digits)

    table = Table(title=title, title_justify="left")
    for heading, justify in (("figure", "left"), ("published", "right"), ("ours", "right"), ("±", "right"), ("agrees", "left")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column("note")
    for each in findings:
        error = text(each.error) if each.error else "exact"
        table.add_row(each.figure, text(each.published), text(each.ours), error, verdict(each.agrees), each.note)
    console.print(table)


def print_heading(name: str, title: str) -> None:
    """A name in bold and its title, after an empty line."""
    console.print(Text.assemble("\n", (name, "bold"), f"  {title}"))


def print_mode(variant: Variant, policy: str = "") -> None:
    """Say which variant was taken, where that is not plain: from a policy, if one is named; or because commands for one
    seat play the game in another way than those for all seats.

    `shakes as physician, 1 seat (train and measure take mode=physician, arena and play mode=maesters; -o mode=... chooses)`
    """
    if policy:
        console.whole_line(f"{variant}, {_seats(variant)}: what {policy} was trained on")
        return
    usual = type(variant.options)()
    for option, alone in variant.game.gym_options.items():
        value = getattr(variant.options, option)
        taken = f"as {value}" if isinstance(value, str) else f"with {option}={value}"
        console.whole_line(
            f"{variant.game.name} {taken}, {_seats(variant)} (train and measure take {option}={alone}, "
            f"arena and play {option}={getattr(usual, option)}; -o {option}=... chooses)"
        )


def _seats(variant: Variant) -> str:
    return "1 seat" if variant.facts.num_seats == 1 else f"{variant.facts.num_seats} seats"


def verdict(agrees: bool | None) -> Text:
    """A green yes, a red no, or nothing where there is no verdict."""
    return Text("") if agrees is None else Text("yes", "green") if agrees else Text("no", "red")


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
    """A signal has stopped the work at a place where all of it is saved; the message says how to go on."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_status = 128 + number  # as shells have it for a process that a signal ended


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Bad input ends a command with one line on standard error and exit status 2; Ctrl-C with 130.

    A reader of standard output that has had enough (`| head`) ends it without a word: typer sees to that.
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
    """Do every part of handing over a result, whatever becomes of the others; then raise what went wrong.

    Raises:
        OSError: what was expected to go wrong, all in one line; or the only part's own exception.
        Exception: what was not.
    """
    problems: list[Exception] = []
    for part in parts:
        try:
            part()
        except Exception as problem:  # raised below
            problems.append(problem)
    told = [problem for problem in problems if not isinstance(problem, BrokenPipeError)]
    faults = [problem for problem in told if not isinstance(problem, EXPECTED)]
    if len(told) > 1 and not faults:
        raise OSError("; ".join(map(_in_one_line, told)))
    if problems:
        raise (faults or told or problems)[0]


@contextlib.contextmanager
def progress(what: str, total: float, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[..., None]]:
    """A progress bar, or where standard error is no terminal a line now and then.

    Yields:
        What to call with the amount done since the last call, 1 if left out.
    """
    errors = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if not errors.is_terminal:
        yield _Lines(what, total, clock)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount=1: bar.advance(task, amount)


class _Lines:
    """Progress as lines on standard error: `3 × 2,000 games: 25 %, 1,500 of 6,000, about 2 min left`."""

    def __init__(self, what: str, total: float, clock: Callable[[], float]) -> None:
        self.what, self.total, self.clock = what, total, clock
        self.amount = 0.0
        self.start = clock()
        self.next_line = self.start + FIRST_LINE

    def __call__(self, amount: float = 1) -> None:
        self.amount += amount
        now = self.clock()
        if now < self.next_line:
            return
        self.next_line = now + NEXT_LINE
        line = f"{self.what}: {100 * self.amount / self.total:.0f} %, {self.amount:,.0f} of {self.total:,.0f}"
        if self.amount >= FORETELLS_FROM * self.total:
            line += f", about {_duration((now - self.start) * max(0.0, self.total / self.amount - 1))} left"
        with contextlib.suppress(OSError):  # a line that cannot be written must not stop the work
            typer.echo(line, err=True)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def seed_or_fresh(seed: int | None) -> int:
    """The seed, or a fresh one; ValueError for one that not every generator takes."""
    if seed is None:
        return secrets.randbits(31)
    check_range("seed", seed, 0, LARGEST_SEED)
    return seed


def check_writable(path: Path | None) -> None:
    """Raise OSError now, and not after the work, if the file could not be written."""
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; a file is needed", str(path))
    if path.exists() and not path.is_file():  # what is written takes its place, and it may be /dev/null
        raise OSError(errno.EINVAL, "this is no plain file", str(path))
    check_folder(path.parent)


def check_folder(folder: Path | None) -> None:
    """Make the folder if need be; OSError if nothing can be written there."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def check_report(folder: Path | None) -> None:
    """The same for a folder of plots; ImportError if nothing draws them."""
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
    """Write a result as JSON, whole or not at all. No path: nothing.

    Dataclasses and NumPy values become plain ones, and what is infinite or no number becomes null.

    Raises:
        OSError: the file could not be written; the JSON has gone to standard output instead.
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


class Plot(NamedTuple):
    """A plot that was saved, and what it shows."""

    path: Path
    caption: str


_noted: contextvars.ContextVar[list[Plot] | None] = contextvars.ContextVar("noted", default=None)


@contextlib.contextmanager
def plots_noted() -> Iterator[list[Plot]]:
    """The plots that are saved while the block runs, in order; the list grows."""
    plots: list[Plot] = []
    token = _noted.set(plots)
    try:
        yield plots
    finally:
        _noted.reset(token)


# Plots are looked at in half their size: on a page, in two columns.
_STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # a dollar sign in the name of an agent is a dollar sign
    "font.size": 12,
    "axes.titlesize": 13,
    "figure.titlesize": 14,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
}


@contextlib.contextmanager
def saved_plot(report: Path, name: str, caption: str = "", **kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """A matplotlib canvas and its axes, saved as `report/name.png` when the block ends well; `caption` says what it shows."""
    path = report / f"{name}.png"
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(_STYLE):
        canvas, axes = plt.subplots(**{"figsize": (8, 5), "layout": "constrained", **kwargs})
        try:
            yield canvas, axes
            with named_in_errors(path), atomic(path) as temporary:
                canvas.savefig(temporary, format="png", dpi=120)
        finally:
            plt.close(canvas)
    console.whole_line(f"plot: {path}")
    noted = _noted.get()
    if noted is not None:
        noted.append(Plot(path, caption or name.replace("_", " ")))


def counted(axes: Any, which: Literal["x", "y"]) -> None:
    """Label the x or y axis of a plot with whole numbers only: it counts something."""
    from matplotlib.ticker import MaxNLocator

    getattr(axes, f"{which}axis").set_major_locator(MaxNLocator(integer=True))


def logarithmic(axes: Any, which: Literal["x", "y"]) -> None:
    """Make the x or y axis of a plot logarithmic, labelled with 1, 2 and 5 times powers of ten.

    matplotlib's own labels are formulas, which `saved_plot` would show as they are written.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def wilson_half_width(share: float, count: int) -> float:
    """Half the width of the 95 % Wilson interval of a share seen in `count` trials."""
    if count == 0:
        return 1.0
    z2 = Z95 * Z95
    return Z95 / (1 + z2 / count) * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
