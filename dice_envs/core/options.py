"""Options of games: how they are declared, checked, shown and parsed."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import itertools
import math
import re
import reprlib
import types
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

# --- options that change words alone ----------------------------------------------------------------------------


def words(default: Any = None) -> Any:
    """A field of an options dataclass that changes words and pictures only: `names: tuple[str, ...] | None = words()`.

    Variants that differ in such options have the same rules, so a policy or a solution of one holds for the other
    (`Variant.same_rules`, `Variant.plain`).
    """
    return dataclasses.field(default=default, metadata={"words": True})


# --- checking and parsing of options ----------------------------------------------------------------------------

MAX_SHOWN = 100  # characters of a value that a message repeats
MAX_ENTRIES = 24  # entries of a list that a message repeats
LONGEST_NUMBER = 100  # characters; a longer number is read as a word, which no option allows


class _Short(reprlib.Repr):
    """reprlib's short representations, and one for whole numbers that are too long for Python to print."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.fillvalue = "…"
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxdict = MAX_ENTRIES
        self.maxstring = self.maxother = self.maxlong = most

    def repr_int(self, x: int, level: int) -> str:
        digits = int(x.bit_length() * math.log10(2)) + 1
        return repr(x) if digits <= self.maxlong else f"a number of about {digits:,} digits"


def shown(value: Any, most: int = MAX_SHOWN) -> str:
    """The value as messages repeat it: its repr in one line, cut to `most` characters, and its length. Never raises."""
    try:
        text = _Short(most).repr(value)
    except Exception:  # the repr of a caller's own class may raise anything
        text = f"<{type(value).__name__}>"
    if len(text.splitlines()) > 1:  # of an array
        text = " ".join(text.split())
    if len(text) > most:
        text = f"{text[: most - 1]}…"
    if "…" in text and isinstance(value, (str, list, tuple)) and len(value) > MAX_ENTRIES:
        text += f" ({len(value):,} {'characters' if isinstance(value, str) else 'entries'})"
    return text


def python_value(value: Any) -> Any:
    """NumPy numbers, alone or in a list, as Python numbers: NumPy's small integers would overflow in arithmetic."""
    if type(value) in (list, tuple):
        return type(value)(python_value(entry) if isinstance(entry, np.generic) else entry for entry in value)
    is_number = isinstance(value, np.generic) and value.dtype.kind not in "mM"  # `item` makes whole numbers of some times
    return value.item() if is_number else value


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy; a bool or a span of time, which they derive from it, is none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def check_range(name: str, value: Any, low: float, high: float, whole: bool = True) -> None:
    """Raise ValueError unless `value` is a number (an int where `whole`) in low … high."""
    is_number = is_whole(value) or (not whole and isinstance(value, (float, np.floating)))
    if not is_number or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{name} must be {kind} from {low} to {high}, not {shown(value)}")


def is_list(value: Any) -> bool:
    """Whether a value is a list, a tuple or an array of at least one dimension."""
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def check_list(name: str, value: Any, count: int | None, entries: str) -> None:
    """Raise ValueError unless `value` is a list of `count` entries (any number if None); the message calls them `entries`."""
    if not is_list(value) or count not in (None, len(value)):
        raise ValueError(f"{name} must be {'a list of' if count is None else count} {entries}, not {shown(value)}")


def check_faces(name: str, value: Any, count: int | None, faces: int | Sequence[int]) -> None:
    """Raise ValueError unless `value` lists the faces shown by `count` dice (any number if None).

    `faces` is the number of faces of every die, or one number for each.
    """
    check_list(name, value, count, "face values")
    for shows, most in zip(value, itertools.repeat(faces) if isinstance(faces, int) else faces):
        check_range(name, shows, 1, most)


def check_seed(seed: Any) -> Any:
    """Return a seed as a Python int, and None as it is.

    Raises:
        ValueError: no whole number from 0 to 2**128 - 1. Larger ones would have the random streams of smaller ones'
            `SeedSequence.spawn`.
    """
    if seed is None:
        return None
    if not is_whole(seed) or not 0 <= int(seed) < 2**128:
        raise ValueError(f"seed must be a whole number from 0 to 2**128 - 1, not {shown(seed)}")
    return int(seed)


def check_reset_options(options: Any) -> None:
    """Raise ValueError unless reset options are None or a mapping. The game checks their content."""
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"options must be a dictionary or None, not {shown(options)}")


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise ValueError unless `value` is one of `allowed` (True is not 1 here)."""
    if not _is_one_of(value, allowed):
        only_truth = all(isinstance(choice, bool) for choice in allowed)
        words = "true or false" if only_truth else f"one of {', '.join(map(repr, allowed))}"
        raise ValueError(f"{name} must be {words}, not {shown(value)}{did_you_mean(value, allowed)}")


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """Return `; did you mean 'numbers'?` for a word that resembles a known one, else an empty text."""
    words = [each for each in known if isinstance(each, str)]
    near = difflib.get_close_matches(value.lower(), words, n=1) if isinstance(value, str) and len(value) <= MAX_SHOWN else []
    return f"; did you mean {near[0]!r}?" if near else ""


def _is_one_of(value: Any, allowed: Sequence[Any]) -> bool:
    return any(type(value) is type(choice) and value == choice for choice in allowed)


# --- checks by type hints -----------------------------------------------------------------------------------------


class Range(NamedTuple):
    """The numbers that an option allows, in its type hint: `num_dice: Annotated[int, Range(1, 6)] = 5`."""

    low: float
    high: float


class Label(NamedTuple):
    """An option as players read it.

    Attributes:
        help: its meaning in a few words.
        label: its name: "dice each" for `num_dice`; "" stands for the option's own name.
        meanings: value → what it means, for those that are explained one by one.
        counted: whether a number stands before the name: "3 dice each". Options whose names begin with num_ are counted.
        one: the name after 1: "die each"; "" if it is the same.
    """

    help: str = ""
    label: str = ""
    meanings: Mapping[str, str] = types.MappingProxyType({})
    counted: bool = False
    one: str = ""

    def value(self, value: Any) -> str:
        """Return the option with a value: "3 dice each", "raise rule: either", "no exact call"."""
        if isinstance(value, bool):
            return self.label if value else f"no {self.label}"
        if isinstance(value, (tuple, list)):
            value = ", ".join(map(str, value))
        if isinstance(value, int) and self.counted:
            return f"{value} {self.one if value == 1 and self.one else self.label}"
        return f"{self.label}: {value}".replace("_", " ")


def check_types(options: Any) -> None:
    """Raise ValueError unless the type hint of each option allows its value. Lists become tuples.

    Called by `__post_init__` of an options dataclass, which then checks the relations between options. A hint is made of
    `bool`, `Literal`, `Annotated[int, Range(low, high)]`, the same with `float`, None, tuples of any length with such entries,
    and unions of these. Options with other hints, such as a plain `int`, are not checked here.
    """
    for name, kinds in option_kinds(options.__class__).items():
        if all(map(_says_all, kinds)):
            object.__setattr__(options, name, _checked(name, vars(options)[name], kinds))


@functools.cache
def option_kinds(options: Any) -> dict[str, tuple[Any, ...]]:
    """The members of each option's type hint: one, unless it is a union."""
    hints = typing.get_type_hints(options, include_extras=True)
    unions = (typing.Union, types.UnionType)
    return {name: typing.get_args(hint) if typing.get_origin(hint) in unions else (hint,) for name, hint in hints.items()}


@functools.cache
def _says_all(kind: Any) -> bool:
    """Whether the type hint alone says which values are allowed."""
    if typing.get_origin(kind) is tuple:
        return _says_all(typing.get_args(kind)[0])
    return kind in (bool, types.NoneType) or typing.get_origin(kind) in (Literal, Annotated)


def _checked(name: str, value: Any, kinds: tuple[Any, ...]) -> Any:
    """The value, with a list as a tuple; ValueError if it fits none of the kinds."""
    choices: list[Any] = [None] if types.NoneType in kinds else []
    for kind in kinds:
        choices += (False, True) if kind is bool else typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
    if _is_one_of(value, choices):
        return value
    for kind in kinds:
        if typing.get_origin(kind) is tuple and is_list(value):
            return tuple(_checked(name, entry, typing.get_args(kind)[:1]) for entry in python_value(list(value)))
    for kind in kinds:
        if typing.get_origin(kind) is Annotated:
            low, high = kind.__metadata__[0]
            check_range(name, value, low, high, whole=typing.get_args(kind)[0] is int)
            return value
    check_choice(name, value, choices)
    return value


_WORDS = {"none": None, "true": True, "false": False}
_WHOLE_NUMBER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_BRACKETS = re.compile(r"[][(){}]")


def _single_value(text: str) -> Any:
    """A number, true, false or none; anything else is a word and is returned as it is."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) <= LONGEST_NUMBER:
        if _WHOLE_NUMBER.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text):
            return float(text)
    return text


def _value_of(name: str, text: str) -> Any:
    """A single value, or a tuple of them where the text is a list."""
    bracketed = text[0] + text[-1] in ("[]", "()")
    if not bracketed and "," not in text:
        return _single_value(text)
    entries = [entry.strip() for entry in (text[1:-1] if bracketed else text).split(",")]
    if not entries[-1]:  # "5," is a list of one, "[]" an empty one
        entries.pop()
    if not all(entries) or any(map(_BRACKETS.search, entries)):
        raise ValueError(
            f"{name[:MAX_SHOWN]} must be a number, a word, true, false, none, or a list of these such as 5,4 or [5,4], "
            f"not {shown(text)}"
        )
    return tuple(map(_single_value, entries))


MOST_IN_NAME = 24  # characters
_NOT_IN_NAMES = ",/=@()[]{}"  # signs with a meaning in lists, in game strings and on the command line


def check_names(name: str, value: Any, count: int, taken: Collection[str] = ()) -> None:
    """Raise ValueError unless `value` lists `count` different names, each a short text in one line.

    Such a list can be typed as an option (`options_text`, `parse_options`). `<`, `&` and quotes are allowed, so code that
    writes names on a page must escape them.

    Args:
        name: the option's name.
        value: the value to check.
        count: the number of names wanted.
        taken: names that are not allowed, in lower case.
    """
    check_list(name, value, count, "names")
    for each in value:
        if not isinstance(each, str) or _single_value(each) is not each:
            raise ValueError(f"{name} must be names that do not read as a number, true, false or none, not {shown(each)}")
        if not 1 <= len(each) <= MOST_IN_NAME or not each.isprintable() or each != " ".join(each.split()):
            raise ValueError(
                f"{name} must be names of 1 to {MOST_IN_NAME} printable characters with single blanks, not {shown(each)}"
            )
        if any(sign in each for sign in _NOT_IN_NAMES):
            raise ValueError(f"{name} must be names without any of {' '.join(_NOT_IN_NAMES)}, not {shown(each)}")
        if each.casefold() in taken:
            raise ValueError(f"{name} must be names other than {', '.join(sorted(taken))}, not {shown(each)}")
    if len({each.casefold() for each in value}) < len(value):
        raise ValueError(f"{name} must all be different, not {shown(value)}")


def option_texts(options: Mapping[str, Any]) -> list[str]:
    """Each option as it is typed, the inverse of `parse_options`: `["num_dice=5,4", "wild=none"]`. Long values are cut."""
    return [f"{name}={_option_text(value)}" for name, value in options.items()]


def options_text(options: Mapping[str, Any]) -> str:
    """Options as messages show them, as they are typed: `num_dice=5,4 wild=none`. Long values are cut."""
    return " ".join(option_texts(options))


def _option_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        text = ",".join(_option_text(entry) for entry in value[: MAX_ENTRIES + 1])
        text += "," if len(value) == 1 else ""
    else:
        text = next((word for word, meaning in _WORDS.items() if meaning is value), str(value))
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def parse_options(pairs: Sequence[str], texts: Collection[str] = ()) -> dict[str, Any]:
    """Read options as they are typed: `["num_dice=5,4", "wild=none"]` → `{"num_dice": (5, 4), "wild": None}`.

    A value is a whole number, a number (0.25, 1e-3), true, false or none in any case, a list such as 5,4 or [5,4] or
    (5,4), or a word, which is anything else. Lists cannot be nested. Options named in `texts`, such as paths, keep their values
    as written.

    Raises:
        ValueError: a pair is not KEY=VALUE, or its value is malformed.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not name or not text:
            raise ValueError(f"an option is written KEY=VALUE, not {shown(pair)}")
        name = " ".join(name.split())  # in one line, for messages
        key = name.replace("-", "_")
        options[key] = text if key in texts else _value_of(name, text)
    return options
