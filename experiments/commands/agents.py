"""`agents`: the agents and their parameters."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from dice_envs import load, names
from dice_envs.agents import for_game
from dice_envs.experiments.ui.console import console, print_heading

__all__ = ["PLACE", "main"]

PLACE = 2  # in the list of --help


def main() -> None:
    """List the agents and their parameters, by the game that they play."""
    _print_agents("any game", "", for_game(None))
    for game in names():
        own = {name: factory for name, factory in for_game(game).items() if name not in for_game(None)}
        _print_agents(game, load(game).title, own)


def _print_agents(heading: str, title: str, factories: Mapping[str, Any]) -> None:
    print_heading(heading, title)
    for name, factory in factories.items():
        console.print(Text.assemble("\n  ", (name, "bold")))
        console.print(textwrap.indent(inspect.cleandoc(factory.__doc__ or ""), "    "))
