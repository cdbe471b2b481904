"""The command line: `dice-envs COMMAND`."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import typer

import dice_envs
from dice_envs.experiments.commands import LISTED, add_commands, commands
from dice_envs.experiments.jobs.guard import ends_at_once

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train, evaluate, solve and play the dice games. Start with: train liars_dice --preset quick",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dice-envs {dice_envs.__version__}")
        raise typer.Exit


VersionOption = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")]


@app.callback()
def _options(version: VersionOption = False) -> None:
    pass


add_commands(app, commands(), LISTED)


def main() -> None:
    """Run the command line."""
    for stream, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, stream) is None:  # closed by the calling process
            setattr(sys, stream, open(os.devnull, mode))  # noqa: SIM115
        # A result must not fail on a character that the terminal does not have, nor a game on one that nobody can read.
        getattr(sys, stream).reconfigure(errors="backslashreplace")
    warnings.formatwarning = lambda message, *place: f"{message}\n"  # the place is in the package, which is nothing to people
    with ends_at_once():
        app(prog_name="dice-envs")


if __name__ == "__main__":
    main()
