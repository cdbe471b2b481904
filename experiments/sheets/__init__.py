"""Score sheets to print: one module a game, named like it.

`sheet(variant, paper)` is the page as a `Sheet`: what is drawn on it, in points, within `paper.width` x `paper.height`.
`dice_envs.experiments.sheet` writes it into a file.
"""

from __future__ import annotations

from typing import NamedTuple

from dice_envs.pictures.drawing import Shape

__all__ = ["Paper", "Sheet"]


class Paper(NamedTuple):
    """A size of paper, in points of 1/72 inch; `css` is its width and height for browsers."""

    width: float
    height: float
    css: tuple[str, str]


class Sheet(NamedTuple):
    """One page.

    Attributes:
        title: of the page.
        description: what it is for, in a sentence.
        shapes: what is on it, in the order in which it is drawn.
    """

    title: str
    description: str
    shapes: tuple[Shape, ...]
