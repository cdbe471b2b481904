"""`games`: the games and their options."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from dice_envs import configure, layout, names
from dice_envs.core.options import options_text
from dice_envs.experiments.ui.console import console, print_heading
from dice_envs.table.rules import attributes, rules_in_short


def main(game: Annotated[str | None, typer.Argument(help="A game, to see its rules, options and observation.")] = None) -> None:
    """List the games, their environments, and their options with the defaults.

    With a game: its rules in short, the meaning of each option, and the observation.

    Example: games liars_dice
    """
    for name in [game] if game else names():
        variant = configure(name)
        defaults = vars(variant.options)
        print_heading(name, variant.game.title)
        if name in names():  # Gymnasium and PettingZoo do not know a game of one's own
            _flow(f"Gymnasium: dice_envs/{variant.game.env_name}-v0; PettingZoo: dice_envs.{name}_v0")
        if not game:
            _flow(f"options: {options_text(defaults)}")
            continue
        console.print("\n  Rules")
        for sentence in rules_in_short(variant):
            _flow(sentence, 4)
        console.print("\n  Options, with their defaults")
        meanings = attributes(variant.options.__doc__ or "")
        for option, value in defaults.items():
            _flow(": ".join(filter(None, (options_text({option: value}), meanings.get(option)))), 4)
        console.print("\n  Observation, with these options: entries, block, meaning")
        for line in layout(variant).splitlines():
            _flow(line, 4, 8)
    if not game:
        console.print("\n`games GAME` says what each option means.")


def _flow(text: str, margin: int = 2, hanging: int = 6) -> None:
    console.print(textwrap.fill(text, console.width, initial_indent=" " * margin, subsequent_indent=" " * hanging))
