"""Styles of opening, raising and calling that the agent distinguishes, and their numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..liars_dice import Numbers, Reader
from .players import Anything, Claims, Lowest

__all__ = [
    "CALLING",
    "KINDS",
    "KINDS_OF",
    "NERVES",
    "OPENING",
    "PARTS",
    "QUARTERS",
    "RAISING",
    "SIZES",
    "Style",
]

_LEVELS = tuple(step / 10 for step in range(11))  # shares of a mixture that are distinguished


class Style(NamedTuple):
    """A family of players: mixtures of two in any shares, or a single one."""

    first: Any
    second: Any = None
    answered: tuple[float, ...] = (0.0,)  # shares of `second` to which best responses are computed; the nearest is played

    @property
    def levels(self) -> tuple[float, ...]:
        """The shares that are distinguished."""
        return _LEVELS if self.second is not None else (0.0,)


QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
NERVES = (0.25, 0.5, 0.75)
_THRESHOLDS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)

# The first style of each part is `numbers` by the article's text; the last ones are `reader`. Its raises and calls depend on
# each other, and a best response to them mixed with other styles takes minutes, so they are known as a whole only.
_OPENINGS = (
    Style(Claims(1), Anything(), (0.0, 0.5, 1.0)),
    Style(Claims(0)),
    Style(Claims(2)),
    Style(Lowest()),
    *(Style(Reader(nerve=nerve)) for nerve in NERVES),
)
_RAISES = (
    Style(Numbers(), Numbers(bluff=1.0), (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)),
    # The calls of the article's program give it away, so its share of bluffs hardly matters.
    Style(Numbers(preset="article"), Numbers(bluff=1.0, preset="article"), (0.5,)),
    Style(Claims(1)),
    Style(Claims(2)),
    Style(Lowest()),
    Style(Reader()),
)
_CALLS = (
    Style(Numbers()),
    Style(Numbers(preset="article")),
    *(Style(Numbers(threshold=threshold)) for threshold in _THRESHOLDS),
    Style(Lowest(call=0.0), Lowest(call=1.0), QUARTERS),
    Style(Reader()),
)
PARTS = (_OPENINGS, _RAISES, _CALLS)
OPENING, RAISING, CALLING = range(3)  # parts of play

# Kinds of a part: each style at each of its levels, then optimal play, then unknown. All kinds form one row.
SIZES = tuple(sum(len(style.levels) for style in styles) + 2 for styles in PARTS)
_ENDS = np.cumsum(SIZES).tolist()
KINDS_OF = tuple(slice(end - size, end) for end, size in zip(_ENDS, SIZES, strict=True))  # of each part
KINDS = _ENDS[-1]
