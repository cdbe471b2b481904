"""`solve GAME`: exact values; a module of `dice_envs.experiments.solve` for each game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

import dice_envs.experiments.solve
from dice_envs.experiments.discovery import add_commands, modules


def group(guarded: Callable[..., Any]) -> typer.Typer:
    """Return the group of commands, each wrapped by `guarded`."""
    app = typer.Typer(no_args_is_help=True, help="Exact values of a game.")
    add_commands(app, modules(dice_envs.experiments.solve), guarded)
    return app
