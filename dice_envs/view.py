"""What a seat sees of a game: the layout of its observation, and pictures for people."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["Block", "Picture", "Row", "offsets", "seat_labels", "seat_name"]


class Block(NamedTuple):
    """Consecutive entries of an observation with one meaning; a game lists its blocks in order.

    Entries lie in [0, 1]. An entry of 0 stands for the number `low`, an entry of 1 for `high`; or, where `half` is
    given, the entry n / (n + half) stands for n. `labels` holds one sequence with a label for each entry, or several:
    then every combination labels an entry, and the last sequence varies fastest.
    """

    name: str
    size: int  # number of entries; 0 if the block is absent with these options
    meaning: str
    labels: tuple[Sequence[Any], ...] = ()
    low: float = 0.0
    high: float = 1.0
    half: float | None = None
    flags: bool = False  # every entry is 0 or 1, for no or yes
    history: bool = False  # tells how the position came about, which the other blocks do not; see `Agent.memoryless`


def offsets(blocks: Sequence[Block]) -> tuple[int, ...]:
    """Where each block begins, in the order given: `observe` adds its indices to these. Absent blocks have one too."""
    return tuple(itertools.accumulate((block.size for block in blocks[:-1]), initial=0))


def seat_labels(num_seats: int) -> tuple[str, ...]:
    """Labels for blocks with an entry for each seat, in turn order, the observer first."""
    return "you", *(f"seat +{i}" for i in range(1, num_seats))


class Row(NamedTuple):
    """One line of a picture: a caption and dice (a face value each, None for a hidden die)."""

    caption: str
    dice: tuple[int | None, ...] = ()


class Picture(NamedTuple):
    """What a viewer sees of a state: a title, rows of dice, and closing lines of text."""

    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def seat_name(seat: int, viewer: int | None, kind: str = "player") -> str:
    """How a picture names a seat to its viewer: "you", or say "player 1"."""
    return "you" if seat == viewer else f"{kind} {seat}"
