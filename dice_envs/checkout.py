"""Makes the folders `agents` and `experiments` importable as `dice_envs.agents` and `dice_envs.experiments`.

The wheel has them inside this package. In a checkout they lie beside it, where `join_folders` finds them.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

__all__ = ["join_folders"]

_PACKAGE = Path(__file__).resolve().parent
_FOLDERS = {f"{__package__}.{name}": _PACKAGE.parent / name for name in ("agents", "experiments")}


class _Beside(importlib.abc.MetaPathFinder):
    """Finds the two packages beside this one; the ordinary finders go first, and find them inside it."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        folder = _FOLDERS.get(fullname)
        if folder is None or not (folder / "__init__.py").exists():
            return None
        return importlib.util.spec_from_file_location(
            fullname, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )


def join_folders() -> None:
    """Let imports of `dice_envs.agents` and `dice_envs.experiments` find the folders of a checkout."""
    sys.meta_path.append(_Beside())
