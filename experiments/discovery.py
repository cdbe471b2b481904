"""Finding modules by name: commands, each game's module or package in `solve`, `reproduce` and `logs`, parts of `bench`."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import typer


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """Return name → module, of the modules and packages inside a package, private ones left out."""
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in found}


def add_commands(app: typer.Typer, found: Mapping[str, ModuleType], guarded: Callable[..., Any]) -> None:
    """Add modules to the app as commands, wrapped by `guarded`: `main` is a command, `group` makes a group of commands.

    PLACE orders them; those without it come last, by name. A command's name has hyphens for underscores. The name with
    underscores works, too, but is not listed.
    """
    for name, module in sorted(found.items(), key=lambda each: vars(each[1]).get("PLACE", math.inf)):
        if "group" in vars(module):
            app.add_typer(module.group(guarded), name=name)
            continue
        command = guarded(module.main)
        app.command(name.replace("_", "-"))(command)
        if "_" in name:
            app.command(name, hidden=True)(command)
