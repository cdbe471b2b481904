"""Layout of the legal moves on the page: a grid where their words are two numbers, else a row of buttons."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from dice_envs.core.game import Variant

__all__ = ["Grid", "arrange"]

FEWEST = 8  # moves of this form that make a grid; fewer are buttons
PAIR = re.compile(r"(\d+) x (\d+)")


@dataclasses.dataclass(frozen=True)
class Grid:
    """Moves of the form `3 x 5`: a number of dice and a face.

    Attributes:
        rows: first numbers of the legal moves, in rising order.
        columns: second numbers of all moves, in rising order.
        actions: (row, column) → action, of legal moves only.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    actions: Mapping[tuple[int, int], int]


def arrange(variant: Variant, legal: Sequence[int]) -> tuple[Grid | None, list[int]]:
    """Return the grid of legal actions, None if there is none, and the legal actions outside it."""
    words = [variant.describe_action(action) for action in range(variant.facts.num_actions)]
    pairs = {k: (int(match[1]), int(match[2])) for k, said in enumerate(words) if (match := PAIR.fullmatch(said))}
    if len(pairs) < FEWEST or len(set(pairs.values())) < len(pairs):
        return None, list(legal)
    placed = {pairs[action]: action for action in legal if action in pairs}
    grid = Grid(tuple(sorted({row for row, _ in placed})), tuple(sorted({column for _, column in pairs.values()})), placed)
    return (grid if placed else None), [action for action in legal if action not in pairs]
