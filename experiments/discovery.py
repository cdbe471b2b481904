"""How the commands find what each game adds: a module or package named like it in `solve`, `reproduce`, `bench`,
`logs` and `sheets`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

import typer

__all__ = ["add_commands", "modules"]


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """The modules and packages inside a package by name, private ones left out."""
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in found}


def add_commands(app: typer.Typer, package: ModuleType, guarded: Callable[..., Any]) -> None:
    """Add the function `main` of each module of the package to the app, under the module's name with hyphens and,
    hidden, with underscores."""
    for name, module in modules(package).items():
        command = guarded(module.main)
        app.command(name.replace("_", "-"), help=module.main.__doc__)(command)
        if "_" in name:
            app.command(name, hidden=True, help=module.main.__doc__)(command)
