"""`sheet`: a score sheet to print, one page in HTML with lines and boxes to fill in. The Shakes has one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from dice_envs import configure, names
from dice_envs.core.files import write_text
from dice_envs.core.game import part_of
from dice_envs.core.options import check_choice, shown
from dice_envs.experiments import ui
from dice_envs.experiments.ui.pages import filled

PAPERS: Mapping[str, tuple[str, str]] = {"a4": ("210mm", "297mm"), "letter": ("8.5in", "11in")}  # width and height


def main(
    game: ui.GameArgument,
    file: Annotated[Path, typer.Argument(help="The file to write, .html.")],
    option: ui.OptionOption = None,
    paper: Annotated[str, typer.Option(help="a4 or letter.")] = "a4",
) -> None:
    """Write a score sheet for a game with real dice, one page to print. The Shakes has one.

    The options determine the players, the names of the treatments, the number of patients, and the rules in short.

    Example: sheet shakes sheet.html -o treatments=rules -o maesters=Ada,Ben,Cleo -o open_efficacies=true
    """
    variant = configure(game, **ui.game_options(option))
    check_choice("paper", paper, tuple(PAPERS))
    if file.suffix.lower() != ".html":
        raise ValueError(f"a score sheet is written as .html, not {shown(file.name)}")
    found = part_of(variant.game.name, "sheet")
    if found is None:
        having = ", ".join(name for name in names() if part_of(name, "sheet"))
        raise ValueError(f"{variant.game.name} has no score sheet; those that have: {having}")
    ui.check_writable(file)
    text = filled(found.TEMPLATE, paper=PAPERS[paper], **found.values(variant))
    write_text(file, text)
    ui.console.whole_line(f"wrote {file}")
