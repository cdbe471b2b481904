"""A game's options as the parameters of an OpenSpiel game, and back.

OpenSpiel's parameters are whole numbers, truth values and text. Where commas separate parameters, `/` separates the entries
of a list: `6/6/8`, and `6/` for a list of one. `more` holds the options whose value is not of their parameter's type.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, NamedTuple, get_args, get_type_hints

from dice_envs.core.game import Game, Variant
from dice_envs.core.options import parse_options, shown

__all__ = ["PREFIX", "Settings", "default_parameters", "options_of", "parameters_of"]

PREFIX = "dice_envs_"  # of the registered names
_NOT_GIVEN = -(2**31)  # the default of parameters for whole numbers that are None by default
_READ_AS_NUMBER = re.compile(r"[-+0-9.]*|[Tt]rue|[Ff]alse")  # text that OpenSpiel takes for a number or a truth value


class Settings(NamedTuple):
    """Parameters of every registered game beside its options, as `openspiel_game` explains them; `chance` "" for None."""

    chance: str = ""
    perfect_recall: bool = True
    rng_seed: int = -1


def default_parameters(game: Game) -> dict[str, Any]:
    """Return every parameter of a game with its default: whole numbers and truth values as such, other options as text."""
    defaults = dataclasses.asdict(game.options())
    settings = {"more": "", **Settings()._asdict()}
    clash = sorted(defaults.keys() & settings.keys())
    if clash:
        raise ValueError(f"{game.name}: the option {clash[0]} has the name of a setting of dice_envs.envs.openspiel")
    kinds = get_type_hints(game.options)
    made = {name: value if isinstance(value, (bool, int)) else _text(value) for name, value in defaults.items()}
    numbers = [name for name, value in defaults.items() if value is None and int in get_args(kinds[name])]
    return made | dict.fromkeys(numbers, _NOT_GIVEN) | settings


def parameters_of(variant: Variant, settings: Settings) -> dict[str, Any]:
    """Return the parameters that differ from their defaults: with them `pyspiel.load_game` makes the same game."""
    made: dict[str, Any] = {}
    more = []
    defaults = default_parameters(variant.game)
    for name, value in variant.changed_options().items():
        if type(value) is type(defaults[name]):
            made[name] = value
        elif isinstance(defaults[name], str) and not _READ_AS_NUMBER.fullmatch(_text(value)):
            made[name] = _text(value)
        else:
            more.append(f"{name}:{_text(value)}")
    others = {"more": " ".join(more), **settings._asdict()}
    return made | {name: value for name, value in others.items() if value != defaults[name]}


def options_of(game: Game, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a complete dict of OpenSpiel's parameters gives.

    Raises:
        ValueError: `more` is not written as it should be.
    """
    options = {
        name: _value(name, given[name]) if isinstance(default, str) else given[name]
        for name, default in default_parameters(game).items()
        if name not in ("more", *Settings._fields) and given[name] != default
    }
    for pair in given["more"].split():
        name, colon, text = pair.partition(":")
        if not name or not colon or not text:
            raise ValueError(f"more must be words such as num_dice:2/1, not {shown(given['more'])}")
        options[name] = _value(name, text)
    return options


def _text(value: Any) -> str:
    """Write an option's value as text."""
    if isinstance(value, tuple):
        return "/".join(map(str, value)) + "/" * (len(value) == 1)
    return "none" if value is None else str(value)


def _value(name: str, text: str) -> Any:
    """Read an option's value that `_text` has written."""
    return parse_options([f"{name}={text.replace('/', ',')}"])[name]
