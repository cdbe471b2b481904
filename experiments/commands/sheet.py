"""`sheet`: a score sheet to print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dice_envs import configure
from dice_envs.experiments.sheet import write_sheet
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.options import GameArgument, OptionOption, game_options

__all__ = ["PLACE", "main"]

PLACE = 13  # in the list of --help


def main(
    game: GameArgument,
    file: Annotated[Path, typer.Argument(help="Where it is written, as .svg or .html.")],
    option: OptionOption = None,
    paper: Annotated[str, typer.Option(help="a4 or letter.")] = "a4",
) -> None:
    """Write a score sheet to print, one page: a game with real dice. The Shakes has one.

    It follows from the options: who plays, what the treatments are called, how many patients come, and the rules in short.

    Example: sheet shakes sheet.html -o treatments=rules -o maesters=Ada,Ben,Cleo -o open_efficacies=true
    """
    write_sheet(file, configure(game, **game_options(option)), paper)
    console.whole_line(f"wrote {file}")
