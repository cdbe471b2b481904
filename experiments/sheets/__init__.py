"""Score sheets to print: a module for each game, of its name.

`sheet(variant, paper)` returns the page as a `Sheet`: shapes in points, within `paper.width` x `paper.height`.
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
        description: its purpose, in a sentence.
        shapes: in the order of drawing.
    """

    title: str
    description: str
    shapes: tuple[Shape, ...]
