"""A game's options as fields of a form, read from the type hints of its options dataclass."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from dice_envs.core.game import Game, Variant
from dice_envs.core.options import options_text, parse_options, shown
from dice_envs.table.rules import OptionWords, option_words

__all__ = ["Field", "fields_of", "follows", "in_labels", "options_of", "whole"]

NO_WORDS = OptionWords("", "", {})


@dataclasses.dataclass(frozen=True)
class Field:
    """One option.

    Attributes:
        name: the option's name.
        kind: "choice", "switch", "number", or "text", which is parsed as on the command line.
        default: the default value, as the field shows it.
        choices: for a choice: value → words.
        low, high: for a number: the `Range` in its type hint; None without one. Other options may narrow it.
        optional: whether a number may be left empty, which means None.
        words: the option as players read it.
    """

    name: str
    kind: Literal["choice", "switch", "number", "text"]
    default: Any
    choices: Mapping[Any, str] = dataclasses.field(default_factory=dict)
    low: int | None = None
    high: int | None = None
    optional: bool = False
    words: OptionWords = NO_WORDS

    def meaning(self, value: Any) -> str:
        """Return what a value of the option means."""
        return self.words.meanings.get(str(value), self.words.help)


def fields_of(game: Game) -> list[Field]:
    """Return a field for each option of the game, in its order."""
    hints = typing.get_type_hints(game.options, include_extras=True)
    words = option_words(game)
    return [_field(each, hints[each.name], words[each.name]) for each in dataclasses.fields(game.options)]


def _field(option: dataclasses.Field[Any], hint: Any, words: OptionWords) -> Field:
    name, default = option.name, option.default
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    optional = type(None) in parts
    parts = tuple(part for part in parts if part is not type(None))
    if len(parts) == 1 and typing.get_origin(parts[0]) is Literal:
        values = [*typing.get_args(parts[0]), *([None] if optional else [])]
        choices = {value: "none" if value is None else str(value).replace("_", " ") for value in values}
        return Field(name, "choice", default, choices, words=words)
    if parts == (bool,):
        return Field(name, "switch", default, words=words)
    if parts == (int,):
        return Field(name, "number", default, optional=optional, words=words)
    if len(parts) == 1 and typing.get_origin(parts[0]) is Annotated and typing.get_args(parts[0])[0] is int:
        low, high = map(int, parts[0].__metadata__[0])
        return Field(name, "number", default, low=low, high=high, optional=optional, words=words)
    return Field(name, "text", _typed(default), words=words)


def _typed(value: Any) -> str:
    return options_text({"": value}).removeprefix("=")


def options_of(game: Game, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a filled-in form, without those left at their defaults.

    Args:
        game: the game.
        values: name → content of its field. Browsers send numbers as float.

    Raises:
        ValueError: a number or a text is malformed; the message names the option. Choices are checked by the game.
    """
    options: dict[str, Any] = {}
    for field in fields_of(game):
        value = values.get(field.name, field.default)
        if field.kind == "text":
            value = str(value).strip()
            if value != field.default:
                options |= parse_options([f"{field.name}={value}"])
            continue
        if field.kind == "number":
            value = None if value in (None, "") else whole(field.name, value)
            if value is None and not field.optional:
                raise ValueError(f"{field.name} must be a number; it is empty")
        if value != field.default:
            options[field.name] = value
    return options


def whole(name: str, value: Any) -> int:
    """Return a whole number from a form, where it may be a float. ValueError, naming the field, for anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(f"{name} must be a whole number, not {shown(value)}")
    return int(value)


def follows(variant: Variant, values: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a variant that are no choice: name → value.

    They are `fixed` ones, and those that another option sets, as `rules="perudo"` does: they differ from `values`, the content
    of the fields. Numbers that may be left empty are a choice in any case.
    """
    asked = {**vars(variant.game.options()), **options_of(variant.game, values)}
    free = {field.name for field in fields_of(variant.game) if field.optional}
    found = {name: value for name, value in vars(variant.options).items() if value != asked[name] and name not in free}
    return {**found, **fixed}


def in_labels(game: Game, problem: str) -> str:
    """Return an error with the names of options as their fields are labelled."""
    for name, words in option_words(game).items():
        problem = re.sub(rf"\b{name}\b", words.label, problem)
    return problem
