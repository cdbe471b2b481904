"""The command `dice-envs`, the same as `python -m dice_envs`, and as `python -m experiments` in a checkout."""

from __future__ import annotations

import importlib
import os
import sys


def is_starting() -> bool:
    """Return whether this process was started as the command line, rather than importing the package."""
    words = getattr(sys, "argv", None) or [""]
    is_module = words[0] == "-m" and {"dice_envs", "experiments", "dice_envs.experiments"} & set(sys.orig_argv)
    return bool(is_module or os.path.basename(words[0]).partition(".")[0] == "dice-envs")


def main() -> None:
    """Run the command line, or exit with one line that names a missing extra."""
    try:
        commands = importlib.import_module("dice_envs.experiments.__main__")
    except ImportError as problem:
        sys.exit(f"error: {problem}")
    commands.main("dice-envs")
