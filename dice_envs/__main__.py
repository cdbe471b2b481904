"""The command `dice-envs`, the same as `python -m dice_envs`, and in a clone as `python -m experiments`."""

from __future__ import annotations

import importlib
import sys


def main() -> None:
    """Run the command line, or exit with one line that names a missing extra."""
    try:
        commands = importlib.import_module("dice_envs.experiments.__main__")
    except ImportError as problem:
        sys.exit(f"error: {problem}")
    commands.main()


if __name__ == "__main__":
    main()
