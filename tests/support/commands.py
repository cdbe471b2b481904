"""The command line in this process, and Python in another one."""

import subprocess
import sys
from typing import Any

from typer.testing import CliRunner

from dice_envs.experiments.__main__ import app
from tests.conftest import ROOT


def run(*words: Any, **more: Any) -> Any:
    """Run a command, whatever its end; `more` are arguments of `CliRunner.invoke`, such as `input`."""
    return CliRunner().invoke(app, [str(word) for word in words], **more)


def done(*words: Any, **more: Any) -> str:
    """Run a command that must succeed, and return its output."""
    result = run(*words, **more)
    assert result.exit_code == 0, result.output
    return result.output


def refusal(*words: Any, **more: Any) -> str:
    """Run a command that must be refused, and return its error, which must be one line on standard error."""
    return error_of(run(*words, **more))


def error_of(result: Any) -> str:
    """Return the error of a command that must have been refused, with one line on standard error."""
    assert result.exit_code == 2, result.output
    assert not result.exception or isinstance(result.exception, SystemExit)
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("error: ")
    return line


def process(*words: Any, **more: Any) -> Any:
    """Start Python in the project's folder, with pipes; `more` are arguments of `subprocess.Popen`, such as other streams."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, *map(str, words)], text=True, **{"cwd": ROOT, **streams, **more})
