"""The command `dice-envs`: what `python -m experiments` is in a checkout."""

from __future__ import annotations

import importlib
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say in one line which extra it needs."""
    try:
        commands = importlib.import_module("dice_envs.experiments.__main__")
    except ImportError as problem:
        sys.exit(f"error: {problem}")
    commands.main("dice-envs")
