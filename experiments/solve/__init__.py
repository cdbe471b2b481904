"""`solve GAME`: exact values. A module here, named after the game, offers `main`, a typer command."""

from __future__ import annotations

import sys

import typer

from dice_envs.experiments.commands import add_commands, modules


def group() -> typer.Typer:
    """Return the group of commands."""
    app = typer.Typer(no_args_is_help=True, help="Exact values of a game.")
    add_commands(app, modules(sys.modules[__name__]))
    return app
