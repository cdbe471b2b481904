"""`games`: the games and their options."""

from __future__ import annotations

from rich.text import Text

from dice_envs import layout, load, names
from dice_envs.experiments.ui.console import console, print_docstring, print_heading

PLACE = 1  # in the list of --help


def main() -> None:
    """List the games, their options, and the parts of their observations."""
    for name in names():
        game = load(name)
        print_heading(name, game.title)
        print_docstring(game.options.__doc__ or "", margin=2)
        console.print(Text.assemble("\n  ", ("observation", "bold"), ", with the default options: entries, block, meaning"))
        console.print("\n".join(f"    {line}" for line in layout(game).splitlines()))
