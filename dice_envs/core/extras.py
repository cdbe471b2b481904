"""Optional dependencies: an error about a missing one names the extra that brings it."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator

_KNOWN_AS = {"PIL": "Pillow"}  # modules whose package has another name


def _missing(extra: str, what: str, module: str) -> ImportError:
    name = module.partition(".")[0]
    return ImportError(f'{what} needs {_KNOWN_AS.get(name, name)}: pip install "dice-envs[{extra}]"', name=name)


def check_extra(extra: str, what: str, *modules: str) -> None:
    """Raise ImportError unless top-level modules of an extra are installed.

    Args:
        extra: its name in pyproject.toml.
        what: the subject of the message, which needs them.
        modules: their names.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise _missing(extra, what, module)


@contextlib.contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """A block that imports modules of an extra: an ImportError names the extra, as in `check_extra`."""
    try:
        yield
    except ModuleNotFoundError as problem:
        raise _missing(extra, what, str(problem.name)) from problem
