"""The terminal: the console, errors in one line, and the output of results.

A command ends with `finish`: it prints the table, then writes the files, even if one of these steps fails. A full disk loses
no result: a file that cannot be written goes to standard output, and if that cannot be written, to standard error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from dice_envs.core.game import Variant

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


def print_heading(name: str, title: str) -> None:
    """Print an empty line, then a name in bold and its title."""
    console.print(Text.assemble("\n", (name, "bold"), f"  {title}"))


def print_docstring(text: str, margin: int = 4) -> None:
    """Print a docstring behind a margin. Its lines flow to the terminal's width; each entry of a section begins a line."""
    flowing: list[tuple[int, str]] = []  # indentation and text of what begins a line
    goes_on = False
    for line in inspect.cleandoc(text).splitlines():
        words = line.strip()
        indent = len(line) - len(line.lstrip())
        if goes_on and words and (indent == 0 or indent > flowing[-1][0]):
            flowing[-1] = (flowing[-1][0], f"{flowing[-1][1]} {words}")
        else:
            flowing.append((indent, words))
        goes_on = bool(words) and not words.endswith(":")
    for indent, words in flowing:
        first, others = " " * (margin + indent), " " * (margin + 2 * indent)
        console.print(textwrap.fill(words, console.width, initial_indent=first, subsequent_indent=others))


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
    told = [problem for problem in problems if not isinstance(problem, BrokenPipeError)]
    faults = [problem for problem in told if not isinstance(problem, EXPECTED)]
    if len(told) > 1 and not faults:
        raise OSError("; ".join(map(_in_one_line, told)))
    if problems:
        raise (faults or told or problems)[0]
