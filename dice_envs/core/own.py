"""The user's own code, named on the command line: `FILE.py:NAME` or `PACKAGE.MODULE:NAME`."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import re
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from dice_envs.core.options import shown

# Digests of the user's own sources by path, as this process has loaded them; those that others of them import included.
FILES: dict[str, str] = {}
_INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
FORMS = "FILE.py:NAME or PACKAGE.MODULE:NAME"
_FILE = r"(?:[A-Za-z]:)?[^:]+\.py"
_MODULE = r"[^\W\d]\w*(?:\.[^\W\d]\w*)+"
_OWN = re.compile(rf"(?P<where>{_FILE}|{_MODULE}):(?P<name>[^\W\d]\w*)(?::(?P<rest>.*))?", re.DOTALL)


def split_own(text: str) -> tuple[str, str, str] | None:
    """Split a text in one of the FORMS into file or module, name, and the rest after the next colon; None for other texts."""
    found = _OWN.fullmatch(text)
    return None if found is None else (found["where"], found["name"], found["rest"] or "")


def load_own(where: str, name: str, what: str) -> Any:
    """Load the object `name` of the user's own from a .py file, which runs once per process, or from a module by dotted name.

    Raises:
        ValueError: it cannot be loaded, whatever the user's code raises; the message names `what`, the kind of object, the text
            and the reason.
    """
    before = set(sys.modules)
    try:
        module = module_of_file(Path(where).resolve()) if where.endswith(".py") else importlib.import_module(where)
        return getattr(module, name)
    except AttributeError as problem:
        reason = f"{where} has no {name}" if problem.name == name else str(problem)
    except Exception as problem:
        reason = str(problem) or type(problem).__name__
    finally:
        loaded = [str(getattr(sys.modules[each], "__file__", None)) for each in sys.modules.keys() - before]
        for file in loaded:
            if file.endswith(".py") and not file.startswith(_INSTALLED):
                FILES.setdefault(file, hashlib.sha256(Path(file).read_bytes()).hexdigest())
    raise ValueError(f"{what} {shown(f'{where}:{name}')} cannot be loaded: {reason}")


@functools.cache
def module_of_file(path: Path) -> ModuleType:
    """The file as a module with a unique name, by which kernels are cached and dataclasses find their module."""
    name = f"own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError("there is no such file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
