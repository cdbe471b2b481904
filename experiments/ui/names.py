"""Short names of agents: letters as headings, long names cut in the middle, and a legend."""

from __future__ import annotations

import string
from collections.abc import Sequence

__all__ = ["LONGEST", "joined", "legend", "letters", "short"]

LONGEST = 30  # characters of a name in a table


def letters(count: int) -> list[str]:
    """Return A, B, … Z, AA, AB, …"""
    found = []
    for number in range(count):
        text = ""
        while number >= 0:
            text, number = string.ascii_uppercase[number % 26] + text, number // 26 - 1
        found.append(text)
    return found


def short(name: str, most: int = LONGEST) -> str:
    """Cut a name in the middle to `most` characters: paths differ at their ends, agents at their beginnings."""
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def legend(names: Sequence[str], most: int = LONGEST) -> list[str]:
    """Return `A = NAME` for each name that `short` cuts, with its letter among all names."""
    return [f"{letter} = {name}" for letter, name in zip(letters(len(names)), names, strict=True) if len(name) > most]


def joined(names: Sequence[str]) -> str:
    """Join the names at one table: `bayes + 2 × random`."""
    counts = {name: names.count(name) for name in names}
    return " + ".join(f"{count} × {short(name)}" if count > 1 else short(name) for name, count in counts.items())
