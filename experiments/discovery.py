"""How the command line finds its commands, and they find what each game adds: a module or package named like it in `solve`,
`reproduce`, `bench`, `logs` and `sheets`.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import typer

__all__ = ["add_commands", "modules"]


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """The modules and packages inside a package by name, private ones left out."""
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in found}


def add_commands(app: typer.Typer, found: Mapping[str, ModuleType], guarded: Callable[..., Any]) -> None:
    """Add modules by name to the app as commands, each wrapped by `guarded`: the function `main` as a command, or what `group`
    makes as a group of commands. PLACE orders them; those without it come last, by name.

    A command's name has hyphens for underscores; it is also known, but not listed, with underscores.
    """
    for name, module in sorted(found.items(), key=lambda each: getattr(each[1], "PLACE", math.inf)):
        if hasattr(module, "group"):
            app.add_typer(module.group(guarded), name=name)
            continue
        command = guarded(module.main)
        app.command(name.replace("_", "-"), help=module.main.__doc__)(command)
        if "_" in name:
            app.command(name, hidden=True, help=module.main.__doc__)(command)
