"""Docstrings as text for people: a game's rules, from the head of its file, and the meaning of options and settings."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from typing import NamedTuple

from dice_envs.core.game import Game, Variant

__all__ = ["Section", "attributes", "is_table", "rules_in_short", "rules_text", "sections"]


class Section(NamedTuple):
    """Part of the rules.

    Attributes:
        heading: say "Play"; "" for the first line of the docstring.
        paragraphs: each in one line. "- " begins an item of a list. A paragraph with two blanks in a row is a line of a table,
            to be shown as it is.
    """

    heading: str
    paragraphs: tuple[str, ...]


def sections(game: Game) -> tuple[Section, ...]:
    """Return the rules of a game from the docstring of its module; none if it has no docstring."""
    text = inspect.cleandoc(sys.modules[game.deal.__module__].__doc__ or "")
    found: list[Section] = []
    for part in re.split(r"\n\s*\n(?=\S)", text):
        lines = part.splitlines()
        heading, body = ("", lines) if not found else (lines[0], lines[1:])
        found.append(Section(heading, tuple(_paragraphs(textwrap.dedent("\n".join(body)).splitlines()))))
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


def attributes(docstring: str) -> dict[str, str]:
    """Return name → meaning, in one line, of the entries under `Attributes:` in a docstring."""
    _, _, listed = inspect.cleandoc(docstring).partition("Attributes:\n")
    listed = re.split(r"\n(?=\S)", listed)[0]  # without the sections that follow
    entries = re.split(r"\n(?=\S)", textwrap.dedent(listed).strip())
    return {name: " ".join(meaning.split()) for name, _, meaning in (entry.partition(":") for entry in entries) if name}
