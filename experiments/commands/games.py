"""`games`: the games and their options."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Annotated

import typer

from dice_envs import configure, layout, names
from dice_envs.core.options import options_text
from dice_envs.experiments.ui.console import console, print_heading
from dice_envs.table.rules import attributes, rules_in_short


def main(game: Annotated[str | None, typer.Argument(help="One game, of which more is told.")] = None) -> None:
    """List the games, their environments, and their options with the defaults.

    Of one game, also its rules in short, what each option means, and what an agent observes.

    Example: games liars_dice
    """
    for name in [game] if game else names():
        variant = configure(name)
        defaults = {field.name: field.default for field in dataclasses.fields(variant.options)}
        print_heading(name, variant.game.title)
        _flow(f"Gymnasium: dice_envs/{variant.game.env_name}-v0; PettingZoo: dice_envs.{name}_v0")
        if not game:
            _flow(f"options: {options_text(defaults)}")
            continue
        console.print("\n  Rules")
        for sentence in rules_in_short(variant):
            _flow(sentence, 4)
        console.print("\n  Options, with their defaults")
        for option, meaning in attributes(variant.options.__doc__ or "").items():
            _flow(f"{options_text({option: defaults[option]})}: {meaning}", 4)
        console.print("\n  Observation, with these options: entries, block, meaning")
        for line in layout(variant).splitlines():
            _flow(line, 4, 8)
    if not game:
        console.print("\n`games GAME` says what each option means.")


def _flow(text: str, margin: int = 2, hanging: int = 6) -> None:
    console.print(textwrap.fill(text, console.width, initial_indent=" " * margin, subsequent_indent=" " * hanging))
