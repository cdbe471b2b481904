"""Score sheets to print: a module for each game that has one, of its name.

`sheet(variant, paper)` returns the page as a `Sheet`: shapes in points, within `paper.width` x `paper.height`.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dice_envs import Variant
from dice_envs.core.files import write_text
from dice_envs.core.options import check_choice, shown
from dice_envs.experiments.discovery import modules
from dice_envs.experiments.ui.files import check_writable
from dice_envs.pictures.drawing import Shape
from dice_envs.pictures.render import shapes_svg

__all__ = ["PAPERS", "Paper", "Sheet", "write_sheet"]


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


PAPERS: Mapping[str, Paper] = {
    "a4": Paper(595.28, 841.89, ("210mm", "297mm")),
    "letter": Paper(612, 792, ("8.5in", "11in")),
}
KINDS = (".svg", ".html")


def write_sheet(path: Path, variant: Variant, paper: str = "a4") -> None:
    """Write the variant's score sheet, one page, as SVG or as HTML that prints on one sheet.

    Args:
        path: the file; ends with .svg or .html.
        variant: the game with its options.
        paper: one of PAPERS.

    Raises:
        ValueError: the game has no score sheet, the path has another ending, or the paper is unknown.
        OSError: the file cannot be written.
    """
    check_choice("paper", paper, tuple(PAPERS))
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"a score sheet is written as .svg or .html, not {shown(path.name)}")
    makers = modules(sys.modules[__name__])
    if variant.game.name not in makers:
        raise ValueError(f"{variant.game.name} has no score sheet; those that have: {', '.join(makers)}")
    check_writable(path)
    size = PAPERS[paper]
    width, height = size.css
    sheet = makers[variant.game.name].sheet(variant, size)
    text = shapes_svg(sheet.shapes, (size.width, size.height), sheet.title, sheet.description, size.css)
    if path.suffix.lower() == ".html":
        style = f"@page {{ size: {width} {height}; margin: 0 }} body {{ margin: 0 }} svg {{ display: block }}"
        head = f'<meta charset="utf-8"><title>{html.escape(sheet.title)}</title><style>{style}</style>'
        text = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{text}\n</body></html>'
    write_text(path, text + "\n")
