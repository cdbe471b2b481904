"""`sheet`: a score sheet to print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dice_envs import configure
from dice_envs.experiments.sheets import write_sheet
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.options import GameArgument, OptionOption, game_options

PLACE = 13  # in the list of --help


def main(
    game: GameArgument,
    file: Annotated[Path, typer.Argument(help="The file to write, .html.")],
    option: OptionOption = None,
    paper: Annotated[str, typer.Option(help="a4 or letter.")] = "a4",
) -> None:
    """Write a score sheet for a game with real dice, one page to print. The Shakes has one.

    The options determine the players, the names of the treatments, the number of patients, and the rules in short.

    Example: sheet shakes sheet.html -o treatments=rules -o maesters=Ada,Ben,Cleo -o open_efficacies=true
    """
    write_sheet(file, configure(game, **game_options(option)), paper)
    console.whole_line(f"wrote {file}")
