"""A game's options as fields of a form, read from its options dataclass alone."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from dice_envs.core.game import Game
from dice_envs.core.options import check_choice, options_text, parse_options, shown
from dice_envs.table.rules import attributes

__all__ = ["Field", "fields_of", "options_of", "whole"]

MOST = 2**12  # ranges are sought up to here


@dataclasses.dataclass(frozen=True)
class Field:
    """One option.

    Attributes:
        name: of the option.
        kind: "choice", "switch", "number", or "text", which is read as the command line reads options.
        default: its value.
        choices: for a choice: value → words.
        low, high: for a number: what the game takes with all other options at their defaults; None where that is unknown.
        optional: whether a number may be left out, which means None.
        help: what the game says about it.
    """

    name: str
    kind: Literal["choice", "switch", "number", "text"]
    default: Any
    choices: Mapping[Any, str] = dataclasses.field(default_factory=dict)
    low: int | None = None
    high: int | None = None
    optional: bool = False
    help: str = ""


def fields_of(game: Game) -> list[Field]:
    """A field for each option of the game, in its order."""
    hints = typing.get_type_hints(game.options)
    helps = attributes(game.options.__doc__ or "")
    return [_field(game, each, hints[each.name], helps.get(each.name, "")) for each in dataclasses.fields(game.options)]


def _field(game: Game, option: dataclasses.Field[Any], hint: Any, text: str) -> Field:
    name, default = option.name, option.default
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    optional = type(None) in parts
    parts = tuple(part for part in parts if part is not type(None))
    if len(parts) == 1 and typing.get_origin(parts[0]) is Literal:
        values = [*typing.get_args(parts[0]), *([None] if optional else [])]
        return Field(name, "choice", default, {value: "none" if value is None else str(value) for value in values}, help=text)
    if parts == (bool,):
        return Field(name, "switch", default, help=text)
    if parts == (int,):
        low, high = _range(game, name, default)
        return Field(name, "number", default, low=low, high=high, optional=optional, help=text)
    return Field(name, "text", _typed(default), help=text)


def _typed(value: Any) -> str:
    return options_text({"": value}).removeprefix("=")


def _range(game: Game, name: str, default: Any) -> tuple[int | None, int | None]:
    """The least and the greatest number around the default that the game takes, everything else left as it is."""

    def taken(value: int) -> bool:
        try:
            game.configure(**{name: value})
        except ValueError:
            return False
        return True

    start = default if default is not None else next((value for value in range(257) if taken(value)), None)
    if start is None:
        return None, None
    low = high = start
    while low > -MOST and taken(low - 1):
        low -= 1
    while high < MOST and taken(high + 1):
        high += 1
    return (None if low == -MOST else low), (None if high == MOST else high)


def options_of(game: Game, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a filled-in form means, without those left at their defaults.

    Args:
        game: the game.
        values: name → what its field holds; numbers may come as float, as browsers send them.

    Raises:
        ValueError: a text or a number is malformed; it names the option.
    """
    options: dict[str, Any] = {}
    for field in fields_of(game):
        value = values.get(field.name, field.default)
        if field.kind == "text":
            value = str(value).strip()
            if value != field.default:
                options |= parse_options([f"{field.name}={value}"])
            continue
        if field.kind == "number" and value is not None and value != "":
            value = whole(field.name, value)
        if value == "" and field.kind == "number":
            value = None
        if value is None and field.kind == "number" and not field.optional:
            raise ValueError(f"{field.name} must be a number; it is empty")
        if field.kind == "choice":
            check_choice(field.name, value, tuple(field.choices))
        if field.kind == "switch":
            check_choice(field.name, value, (False, True))
        if value != field.default:
            options[field.name] = value
    return options


def whole(name: str, value: Any) -> int:
    """A number of a form, which may come as float. ValueError, which names the field, for anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(f"{name} must be a whole number, not {shown(value)}")
    return int(value)
