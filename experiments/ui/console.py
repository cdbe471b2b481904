"""The terminal: the console, errors in one line, and results that are handed over whatever goes wrong.

A command that ends with a result hands it over by `finish`: the table first, then the files, each whatever becomes of the
others. A result is never lost to a full disk: a file that cannot be written goes to standard output, and what standard
output cannot take goes to standard error.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from dice_envs.core.game import Variant

__all__ = ["Stopped", "console", "finish", "one_line_errors", "print_heading", "print_mode"]

LONGEST_LINE = 1000  # characters of an error
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
