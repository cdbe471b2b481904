"""Draws a game's picture: as text for terminals, or as an image."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.extras import check_extra
from dice_envs.game import Picture, Row, Variant, shown

__all__ = ["RENDER_FPS", "RENDER_MODES", "ansi", "check_mode", "frame_size", "picture_height", "render", "rgb_array"]

RENDER_MODES = ["human", "ansi", "rgb_array"]
RENDER_FPS = 2  # frames a second in a video: a person reads each of them
MAX_PIPS = 8  # dice with larger faces show numbers

# Where the pips of a face sit on a 3 x 3 grid, row by row.
_PIPS = {
    1: "000010000",
    2: "100000001",
    3: "100010001",
    4: "101000101",
    5: "101010101",
    6: "101101101",
    7: "101111101",
    8: "111101111",
}
_CELL, _DIE, _GAP = 16, 56, 10  # pixels
_TITLE, _CAPTION, _NOTE = 40, 24, 20  # pixels: heights of the title and of a line of text
_MOST_DICE = 12  # in a line
_WIDTH = 816  # pixels: such a line and a gap on each side, as a multiple of 16
_LINE = 112  # characters: a line of text is 7 pixels a character wide, or less
_LONGEST_WORD = 12
MOST_HEIGHT = 1024  # pixels: pictures that need more, such as 200 dice, are drawn smaller
_FELT = (24, 92, 60)


def _die_lines(face: int | None) -> tuple[str, str, str]:
    if face is None:
        return "       ", "   ?   ", "       "
    if face > MAX_PIPS:
        return "       ", f"{face:^7}", "       "
    pips = _PIPS[face].replace("0", " ").replace("1", "●")
    return tuple(f" {' '.join(pips[i : i + 3])} " for i in (0, 3, 6))  # type: ignore[return-value]


def _dice_text(row: Row) -> list[str]:
    drawn = [_die_lines(face) for face in row.dice]
    lines = [" ".join("╭───────╮" for _ in drawn)]
    lines += [" ".join(f"│{die[i]}│" for die in drawn) for i in range(3)]
    return [*lines, " ".join("╰───────╯" for _ in drawn)]


def ansi(picture: Picture) -> str:
    """The picture as lines of text, dice drawn with their pips."""
    bar = "═" * (len(picture.title) + 4)
    lines = [f"╔{bar}╗", f"║  {picture.title}  ║", f"╚{bar}╝"]
    for row in picture.rows:
        lines.append(row.caption)
        if row.dice:
            lines += _dice_text(row)
    return "\n".join([*lines, *picture.notes]) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _LINE) or [""]


def _height(picture: Picture, lines: Callable[[str], int]) -> int:
    rows = sum(_CAPTION * lines(row.caption) + (_DIE + _GAP) * -(-len(row.dice) // _MOST_DICE) for row in picture.rows)
    return _TITLE + rows + _NOTE * sum(map(lines, picture.notes)) + _GAP


def picture_height(picture: Picture) -> int:
    """Pixels that a picture needs at its natural size."""
    return _height(picture, lambda text: len(_wrapped(text)))


def frame_size(variant: Variant) -> tuple[int, int]:
    """Height and width in pixels of every image of the variant: multiples of 16, as video encoders want them."""
    # A line that is broken between words holds more than _LINE - _LONGEST_WORD characters.
    height = _height(variant.full_picture(), lambda text: max(1, -(-len(text) // (_LINE - _LONGEST_WORD))))
    return min(-(-height // 16) * 16, MOST_HEIGHT), _WIDTH


def rgb_array(picture: Picture, size: tuple[int, int] | None = None) -> np.ndarray:
    """The picture as an image, (height, width, 3) uint8. Needs Pillow: `pip install dice-envs[render]`.

    Args:
        picture: what is drawn.
        size: height and width in pixels; a picture that needs more room is made smaller. None: as the picture needs it.

    Raises:
        ImportError: Pillow is not installed.
    """
    check_pillow()
    from PIL import Image, ImageDraw

    needed = picture_height(picture)
    height, width = size or (needed, _WIDTH)
    image = Image.new("RGB", (_WIDTH, max(needed, height)), _FELT)
    draw = ImageDraw.Draw(image)
    draw.text((_GAP, _GAP), picture.title, fill=(255, 215, 90), font_size=18)
    y = _TITLE
    for row in picture.rows:
        for line in _wrapped(row.caption):
            draw.text((_GAP, y), line, fill=(240, 240, 240), font_size=13)
            y += _CAPTION
        for i, face in enumerate(row.dice):
            if i and i % _MOST_DICE == 0:
                y += _DIE + _GAP
            _draw_die(draw, _GAP + i % _MOST_DICE * (_DIE + _GAP), y, face)
        y += _DIE + _GAP if row.dice else 0
    for line in (line for note in picture.notes for line in _wrapped(note)):
        draw.text((_GAP, y), line, fill=(255, 235, 170), font_size=13)
        y += _NOTE
    if image.size != (width, height):
        scale = min(width / image.width, height / image.height)
        small = image.resize((round(image.width * scale), round(image.height * scale)))
        image = Image.new("RGB", (width, height), _FELT)
        image.paste(small)
    return np.asarray(image, dtype=np.uint8).copy()


def _draw_die(draw: Any, x: int, y: int, face: int | None) -> None:
    fill = (150, 40, 40) if face is None else (250, 248, 240)
    draw.rounded_rectangle((x, y, x + _DIE, y + _DIE), radius=9, fill=fill, outline=(20, 20, 20), width=2)
    if face is None or face > MAX_PIPS:
        text = "?" if face is None else str(face)
        ink = (250, 248, 240) if face is None else (20, 20, 20)
        draw.text((x + _DIE / 2, y + _DIE / 2), text, fill=ink, anchor="mm", font_size=22)
        return
    for i, pip in enumerate(_PIPS[face]):
        if pip == "1":
            cx, cy = x + _DIE / 2 + (i % 3 - 1) * _CELL, y + _DIE / 2 + (i // 3 - 1) * _CELL
            draw.ellipse((cx - 4, cy - 4, cx + 4, cy + 4), fill=(20, 20, 20))


def render(variant: Variant, state: Any, viewer: int | None, mode: str | None) -> str | np.ndarray | None:
    """Draw what `viewer` sees of a state (None: everything) in one of RENDER_MODES. `human` prints and returns None.

    `rgb_array` gives images of one size for a variant, (height, width, 3) uint8.
    """
    picture = variant.picture(state, viewer)
    if mode == "ansi":
        return ansi(picture)
    if mode == "rgb_array":
        return rgb_array(picture, frame_size(variant))
    if mode == "human":
        print(ansi(picture))
    return None


def check_mode(mode: str | None) -> None:
    """Raise ValueError for a render mode that does not exist, ImportError for `rgb_array` where Pillow is not installed."""
    if mode is not None and mode not in RENDER_MODES:
        raise ValueError(f"render_mode must be one of {', '.join(RENDER_MODES)} or None, not {shown(mode)}")
    if mode == "rgb_array":
        check_pillow()


def check_pillow() -> None:
    """Raise ImportError, naming the extra, where Pillow is not installed."""
    check_extra("render", "render_mode 'rgb_array'", "PIL")
