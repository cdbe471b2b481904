"""The commands: a module each, of the command's name, or the package that does its work. `main` is the command, whose arguments
are the options.

A module with `COMMANDS` holds those named there. `GROUP` is the help of a group, of the commands in `COMMANDS` and those of the
modules inside a package; `wrapped` wraps each of them.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import typer
from rich.markup import escape

from dice_envs.core.options import check_seed
from dice_envs.experiments.ui import check_report, check_writable, one_line_errors, own_game
from dice_envs.table.rules import docstring

PACKAGES = ("arena", "bench", "reproduce")  # that are commands themselves; a wheel has no bench
# The list of --help, by heading; commands that no heading names follow as “More”.
LISTED = {
    "Games and players": ("games", "agents"),
    "Train": ("train", "distill"),
    "Compare and measure": ("arena", "measure", "evaluate", "leaderboard", "benchmark"),
    "Play": ("play", "review", "sheet", "mcp"),
    "Exact and published figures, and speed": ("solve", "reproduce", "bench"),
}


def commands() -> dict[str, Any]:
    """Return every command: name → function, module or package."""
    there = [f"dice_envs.experiments.{name}" for name in PACKAGES if importlib.util.find_spec(f"dice_envs.experiments.{name}")]
    found: dict[str, Any] = {name.rpartition(".")[2]: importlib.import_module(name) for name in there}
    for name, module in modules(sys.modules[__name__]).items():
        found |= {name: module} if "GROUP" in vars(module) else vars(module).get("COMMANDS", {name: module})
    return found


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """Return name → module, of the modules and packages inside a package, private ones left out."""
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in found}


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command: bad input and Ctrl-C end it with one line, and its help flows to the terminal's width.

    The parameters `game`, `seed`, `json` and `report` are checked here, before the work.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with one_line_errors():
            if isinstance(kwargs.get("game"), str):
                kwargs["game"] = own_game(kwargs["game"])
            check_seed(kwargs.get("seed"))
            check_writable(kwargs.get("json"))
            check_report(kwargs.get("report"))
            return command(*args, **kwargs)

    # Brackets would be taken for a style.
    run.__doc__ = escape("\n\n".join(" ".join(each.split()) for each in docstring(command).split("\n\n")))
    return run


def add_commands(
    app: typer.Typer,
    found: Mapping[str, Any],
    listed: Mapping[str, Sequence[str]] | None = None,
    wrapped: Callable[..., Any] = lambda command: command,
) -> None:
    """Add functions and modules to the app as commands, `guarded` and `wrapped`: a module's `main`, or its group.

    `listed` has the headings of --help, each with its commands in order; others follow by name. A command's name has
    hyphens for underscores. The name with underscores works, too, but is not listed.
    """
    headings = {name: heading for heading, names in (listed or {}).items() for name in names}
    for name in (each for each in dict.fromkeys([*headings, *found]) if each in found):
        module, heading = found[name], headings.get(name, "More" if listed else None)
        if "GROUP" in (its := vars(module)):
            group = typer.Typer(no_args_is_help=True, help=its["GROUP"])
            group.callback()(lambda: None)  # without it, typer takes an only command for the group
            inside = {**its.get("COMMANDS", {}), **(modules(module) if "__path__" in its else {})}
            add_commands(group, inside, wrapped=its.get("wrapped", wrapped))
            app.add_typer(group, name=name, rich_help_panel=heading)
            continue
        command = guarded(wrapped(its.get("main", module)))
        app.command(name.replace("_", "-"), rich_help_panel=heading)(command)
        if "_" in name:
            app.command(name, hidden=True)(command)
