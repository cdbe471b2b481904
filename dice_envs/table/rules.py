"""A game in words for people: its rules from the head of its file, and its options by their labels."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import sys
import textwrap
from typing import Any, NamedTuple

from dice_envs.core.game import Game, Variant
from dice_envs.core.options import Label


class RuleSection(NamedTuple):
    """Part of the rules."""

    heading: str  # say "Play"; "" for the first line of the docstring
    # Each in one line. "- " begins an item of a list; one with two blanks in a row is a line of a table, to be shown as it is.
    paragraphs: tuple[str, ...]


def sections(game: Game) -> tuple[RuleSection, ...]:
    """Return the rules of a game from the docstring of its module; none if it has no docstring."""
    found: list[RuleSection] = []
    for first, *lines in _parts(docstring(sys.modules[game.deal.__module__]), after_space=True):
        heading, body = (first, lines) if found else ("", [first, *lines])
        found.append(RuleSection(heading, tuple(_paragraphs(textwrap.dedent("\n".join(body)).splitlines()))))
    return tuple(section for section in found if section.paragraphs)


def _parts(text: str, after_space: bool = False) -> list[list[str]]:
    """Return the lines of a text in parts. One begins with each line that is not indented, or that follows an empty one."""
    parts: list[list[str]] = []
    ends = True
    for line in text.splitlines():
        if line[:1].strip() and (ends or not after_space):
            parts.append([line])
        elif parts:
            parts[-1].append(line)
        ends = not line.strip()
    return parts


def _paragraphs(lines: list[str]) -> list[str]:
    """Join lines to paragraphs. One ends at an empty line, before an item of a list and at a line of a table."""
    paragraphs: list[str] = []
    joins = False
    for line in lines:
        table = is_table(line)
        if line.strip() and joins and not table and not line.startswith("- "):
            paragraphs[-1] += " " + line.strip()
        elif line.strip():
            paragraphs.append(line.rstrip() if table else line.strip())
        joins = bool(line.strip()) and not table
    return paragraphs


def is_table(paragraph: str) -> bool:
    """Return whether a paragraph is a line of a table: it has two blanks in a row."""
    return "  " in paragraph.strip()


def rules_in_short(variant: Variant) -> list[str]:
    """Return the rules in force in a few sentences: the game's own, or what its docstring says under "Play"."""
    if variant.game.rules_in_short is not None:
        return list(variant.game.rules_in_short(variant.options))
    return [paragraph for section in sections(variant.game) if section.heading == "Play" for paragraph in section.paragraphs]


def rules_text(game: Game, width: int = 100) -> str:
    """Return the rules for players as plain text. Lines have at most `width` characters, except in tables."""
    parts = [game.title.upper()]
    for heading, paragraphs in rules_for_players(game):
        parts.append(f"\n{heading}")
        for paragraph in paragraphs:
            if is_table(paragraph):
                parts.append("  " + paragraph)
                continue
            hanging = "    " if paragraph.startswith("- ") else "  "
            parts.append(textwrap.fill(paragraph, width, initial_indent="  ", subsequent_indent=hanging))
    return "\n".join(parts)


def docstring(thing: Any) -> str:
    """Return the docstring of a module, class or function; with `python -OO`, which leaves them out, that of its source."""
    if sys.flags.optimize < 2:
        return inspect.cleandoc(thing.__doc__ or "")
    try:
        source = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, TypeError):  # there is none
        return ""
    return ast.get_docstring(source if inspect.ismodule(thing) else source.body[0]) or ""  # type: ignore[arg-type]


def attributes(thing: Any) -> dict[str, str]:
    """Return name → meaning, in one line, of the entries under `Attributes:` in a class's docstring."""
    _, _, listed = docstring(thing).partition("Attributes:\n")
    lines = itertools.takewhile(lambda line: not line[:1].strip(), listed.splitlines())  # without the sections that follow
    entries = (" ".join(" ".join(part).split()) for part in _parts(textwrap.dedent("\n".join(lines))))
    return {name: meaning for name, _, meaning in (entry.partition(": ") for entry in entries)}


# --- for players --------------------------------------------------------------------------------------------------------

_FOR_PROGRAMS = ("In programs", "Actions")  # headings of what players need not read


def option_words(game: Game) -> dict[str, Label]:
    """Return the game's options as players read them, with all names: name → label."""
    names = {field.name: field.name.removeprefix("num_").replace("_", " ") for field in dataclasses.fields(game.options)}
    labels = {name: game.labels.get(name, Label()) for name in names}
    return {
        name: each._replace(label=each.label or names[name], counted=each.counted or name.startswith("num_"))
        for name, each in labels.items()
    }


def known_as(variant: Variant) -> str:
    """Return the title of a variant: that by which people know its options, such as "Perudo", else the game's."""
    options = vars(variant.options)
    for title, known in variant.game.known_as.items():
        if all(options[name] == value for name, value in known.items()):
            return title
    return variant.game.title


def variant_words(variant: Variant) -> str:
    """Return the options that its title does not say in words: "3 players, 3 dice each"; "" for the usual ones."""
    usual = vars(variant.game.configure(**variant.game.known_as.get(known_as(variant), {})).options)
    words = option_words(variant.game)
    changed = {name: value for name, value in vars(variant.options).items() if value != usual[name]}
    return ", ".join(words[name].value(value) for name, value in changed.items())


def rules_for_players(game: Game) -> tuple[RuleSection, ...]:
    """Return the rules in full without code: how the game is played, where it is from, and how its rules are read."""
    return tuple(section for section in sections(game) if section.heading and section.heading not in _FOR_PROGRAMS)
