"""A game in words for people: its rules from the head of its file, and its options by their labels."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
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
    text = docstring(sys.modules[game.deal.__module__])
    found: list[RuleSection] = []
    for part in re.split(r"\n\s*\n(?=\S)", text):
        lines = part.splitlines()
        heading, body = ("", lines) if not found else (lines[0], lines[1:])
        found.append(RuleSection(heading, tuple(_paragraphs(textwrap.dedent("\n".join(body)).splitlines()))))
    return tuple(section for section in found if section.paragraphs)


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
    return re.search(r"\S {2,}\S", paragraph) is not None


def rules_in_short(variant: Variant) -> list[str]:
    """Return the rules in force in a few sentences: the game's own, or what its docstring says under "Play"."""
    if variant.game.rules_in_short is not None:
        return list(variant.game.rules_in_short(variant.options))
    return [paragraph for section in sections(variant.game) if section.heading == "Play" for paragraph in section.paragraphs]


def rules_text(game: Game, width: int = 100) -> str:
    """Return the rules as plain text. Lines have at most `width` characters, except in tables."""
    parts = [game.title.upper()]
    for heading, paragraphs in sections(game):
        if heading:
            parts.append(f"\n{heading}")
        indent = "  " if heading else ""
        for paragraph in paragraphs:
            if is_table(paragraph):
                parts.append(indent + paragraph)
                continue
            hanging = indent + ("  " if paragraph.startswith("- ") else "")
            parts.append(textwrap.fill(paragraph, width, initial_indent=indent, subsequent_indent=hanging))
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
    listed = re.split(r"\n(?=\S)", listed)[0]  # without the sections that follow
    entries = re.split(r"\n(?=\S)", textwrap.dedent(listed).strip())
    return {name: " ".join(meaning.split()) for name, _, meaning in (entry.partition(":") for entry in entries) if name}


# --- for players --------------------------------------------------------------------------------------------------------

_FOR_PROGRAMS = re.compile(r"[`*]|\w_\w|\w=|[gG]ymnasium|PettingZoo|environment|episode")


def option_words(game: Game) -> dict[str, Label]:
    """Return the game's options as players read them, with all names: name → label."""
    names = {field.name: field.name.removeprefix("num_").replace("_", " ") for field in dataclasses.fields(game.options)}
    labels = {name: game.labels.get(name, Label()) for name in names}
    return {name: each._replace(label=each.label or names[name]) for name, each in labels.items()}


def without_code(text: str) -> str:
    """Return a paragraph of a docstring without what only programs need: parentheses that hold code, and from the first
    sentence on that has code elsewhere, all that follows, since it may refer to that."""
    text = re.sub(r"\s*\([^()]*(?:[`=]|seat \d)[^()]*\)", "", text)
    return ". ".join(itertools.takewhile(lambda each: not _FOR_PROGRAMS.search(each), text.split(". ")))


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
    found = []
    for heading, paragraphs in sections(game):
        plain = [without_code(each) for each in paragraphs if heading in ("Play", "Source", "Sources", "Readings")]
        found.append(RuleSection(heading, tuple(f"{each.removesuffix('.')}." for each in plain if each)))
    return tuple(section for section in found if section.paragraphs)
