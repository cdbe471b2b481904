"""Draws a game's picture: as text for terminals, or as an image."""

from __future__ import annotations

from typing import Any

import numpy as np

from dice_envs.game import Picture, Row, shown

__all__ = ["RENDER_MODES", "ansi", "render", "rgb_array"]

RENDER_MODES = ["human", "ansi", "rgb_array"]
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


def rgb_array(picture: Picture) -> np.ndarray:
    """The picture as an image, (height, width, 3) uint8. Needs Pillow: `pip install dice-envs[render]`."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise ImportError('rgb_array needs Pillow: pip install "dice-envs[render]"') from None
    height = 40 + sum(24 + (_DIE + _GAP if row.dice else 0) for row in picture.rows) + 20 * len(picture.notes) + _GAP
    longest = max((len(text) for text in (picture.title, *picture.notes, *(row.caption for row in picture.rows))), default=0)
    width = max(320, 2 * _GAP + 7 * longest, *(2 * _GAP + len(row.dice) * (_DIE + _GAP) for row in picture.rows))
    image = Image.new("RGB", (width, height), (24, 92, 60))
    draw = ImageDraw.Draw(image)
    draw.text((_GAP, _GAP), picture.title, fill=(255, 215, 90), font_size=18)
    y = 40
    for row in picture.rows:
        draw.text((_GAP, y), row.caption, fill=(240, 240, 240), font_size=13)
        y += 24
        for i, face in enumerate(row.dice):
            _draw_die(draw, _GAP + i * (_DIE + _GAP), y, face)
        y += _DIE + _GAP if row.dice else 0
    for note in picture.notes:
        draw.text((_GAP, y), note, fill=(255, 235, 170), font_size=13)
        y += 20
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


def render(picture: Picture, mode: str | None) -> str | np.ndarray | None:
    """Draw in one of RENDER_MODES. `human` prints and returns None."""
    if mode == "ansi":
        return ansi(picture)
    if mode == "rgb_array":
        return rgb_array(picture)
    if mode == "human":
        print(ansi(picture))
    return None


def check_mode(mode: str | None) -> None:
    """Raise ValueError for a render mode that does not exist."""
    if mode is not None and mode not in RENDER_MODES:
        raise ValueError(f"render_mode must be one of {', '.join(RENDER_MODES)} or None, not {shown(mode)}")
