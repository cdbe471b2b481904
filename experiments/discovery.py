"""Finding modules by name: commands, each game's module or package in `solve`, `reproduce` and `logs`, parts of `bench`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import typer

__all__ = ["add_commands", "modules"]


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """Return name → module, of the modules and packages inside a package, private ones left out."""
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in found}


def add_commands(
    app: typer.Typer,
    found: Mapping[str, ModuleType],
    guarded: Callable[..., Any],
    listed: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Add modules to the app as commands, wrapped by `guarded`: `main` is a command, `group` makes a group of commands.

    `listed` has the headings of --help, each with its commands in order; others follow by name. A command's name has
    hyphens for underscores. The name with underscores works, too, but is not listed.
    """
    headings = {name: heading for heading, names in (listed or {}).items() for name in names}
    for name in dict.fromkeys([*headings, *found]):
        module, heading = found[name], headings.get(name)
        if "group" in vars(module):
            app.add_typer(module.group(guarded), name=name, rich_help_panel=heading)
            continue
        command = guarded(module.main)
        app.command(name.replace("_", "-"), rich_help_panel=heading)(command)
        if "_" in name:
            app.command(name, hidden=True)(command)
