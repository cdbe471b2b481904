"""A game's picture as text for terminals, as an SVG drawing, or as an image."""

from __future__ import annotations

import functools
import html
import itertools
import re
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from dice_envs.core.game import Variant
from dice_envs.core.machine import check_extra
from dice_envs.core.options import shown
from dice_envs.core.view import Die, Group, Picture, Row, Tone, as_die, write_pictures_by
from dice_envs.pictures import drawing

RENDER_MODES = ["human", "ansi", "rgb_array"]
RENDER_FPS = 2  # frames per second of a video, slow enough to read each frame
MOST_HEIGHT = 1024  # pixels; a picture that needs more, such as one of 200 dice, is scaled down
SMOOTH = 3  # images are drawn this many times larger and then reduced, since Pillow does not smooth edges
MOST_BOXES = 8  # dice drawn in a row of text; more are written as numbers
COLUMNS = 100  # of text


# --- text -----------------------------------------------------------------------------------------------------------


def ansi(picture: Picture) -> str:
    """The picture as lines of text, dice drawn with their pips. [5] is a die that counts, (5) one that does not."""
    bar = "═" * (len(picture.title) + 4)
    lines = [f"╔{bar}╗", f"║  {picture.title}  ║", f"╚{bar}╝"]
    for row in picture.rows:
        lines += textwrap.wrap(_row_text(row), COLUMNS, subsequent_indent="  ", break_long_words=False)
        dice = [] if row.lead else [as_die(die) for die in row.dice]
        if len(dice) > MOST_BOXES:
            lines += _numbered(dice)
        elif dice:
            lines += _boxes(dice)
        lines += [_strip_text(group) for group in row.groups if group.strip]
    return "\n".join([*lines, *picture.notes]) + "\n"


def in_words(picture: Picture) -> str:
    """The picture in one line of words, without its title: "you (to move): 1 4. player 1: 2 hidden dice; 2 × 4"."""
    rows = []
    for row in picture.rows:
        strips = [_strip_words(group) for group in row.groups if group.strip]
        rows.append(f"{_line(row, _counted)}{': ' * bool(strips)}{', '.join(strips)}")
    return ". ".join([*rows, *picture.notes])


def text_lines(picture: Picture) -> list[str]:
    """The picture in lines of words and numbers, without drawings, for readers of plain text such as language models.

    A die with a label is written with it: "die 2 (d8): 5". [5] is a die that counts, (5) one that does not, ? a hidden one.
    """
    lines = []
    for row in picture.rows:
        lines += [_line(row), *(_strip_text(group) for group in row.groups if group.strip)]
    return [*lines, *picture.notes]


def _line(row: Row, say: Callable[[Any], str] | None = None) -> str:
    """A row in words, without its strips; `say` writes its dice."""
    say, dice = say or _numbers, list(map(as_die, row.dice))
    numbers = ", ".join(map(_labelled, dice)) if any(die.label for die in dice) else say(dice)
    parts = [f"{row.lead} {numbers}".strip()] if dice else []
    parts += filter(None, _row_details(row, say))
    mark = f" ({row.mark})" if row.mark else ""
    return f"{row.caption}{mark}" + (f": {'; '.join(parts)}" if parts else "")


def _counted(dice: Any) -> str:
    """Dice as numbers, but hidden ones next to each other by how many they are."""
    words = []
    for number, same in itertools.groupby(map(_number, dice)):
        count = len(run := list(same))
        words.append(f"{count} hidden {'dice' if count > 1 else 'die'}" if number == "?" else " ".join(run))
    return " ".join(words)


def _labelled(die: Die) -> str:
    name, _, kind = die.label.partition(": ")
    return f"die {name} ({kind}): {_number(die)}" if kind else f"die {name}: {_number(die)}"


def _row_details(row: Row, say: Callable[[Any], str] | None = None) -> tuple[str, ...]:
    """A row's description, outcomes, progress and groups in words; "" for those that it lacks. `say` writes dice."""
    outcomes = "".join("●" if good else "○" for good in row.outcomes)
    progress = f"{row.bar.value:g} of {row.bar.goal:g}" if row.bar and not row.detail else ""
    return row.detail, outcomes, progress, ", ".join(_group_text(group, say) for group in row.groups if not group.strip)


def _row_text(row: Row) -> str:
    """A row in words, without its strips, and without its dice unless the row has a `lead`."""
    parts = [f"{row.lead} {_numbers(map(as_die, row.dice))}" if row.lead else "", *_row_details(row)]
    parts = list(filter(None, parts))
    return row.caption + (f": {'; '.join(parts)}" if parts else "") + (f" <- {row.mark}" if row.mark else "")


def _group_text(group: Group, say: Callable[[Any], str] | None = None) -> str:
    return f"{group.label} {(say or _numbers)(map(as_die, group.dice))}".strip()


def _strip_text(group: Group) -> str:
    return f"{'*' if group.tone is Tone.BRIGHT else ' '} {group.label}  {_numbers(map(as_die, group.dice))}"


def _strip_words(group: Group) -> str:
    stands_for = "" if group.label.endswith(":") else " ="
    return f"{'* ' * (group.tone is Tone.BRIGHT)}{group.label}{stands_for} {_numbers(map(as_die, group.dice))}"


def _number(die: Die) -> str:
    face = "?" if die.face is None else str(die.face)
    return {Tone.PLAIN: face, Tone.BRIGHT: f"[{face}]", Tone.FADED: f"({face})"}[die.tone]


def _numbers(dice: Any) -> str:
    return " ".join(map(_number, dice))


def _numbered(dice: list[Die]) -> list[str]:
    """Many dice as numbers with their labels below, in columns of one width: rows that face each other stay in line."""
    width = max(5, *(len(die.label) for die in dice)) + 1
    lines = []
    for start in range(0, len(dice), COLUMNS // width):
        chunk = dice[start : start + COLUMNS // width]
        lines.append("".join(f"{_number(die):>{width}}" for die in chunk))
        if any(die.label for die in chunk):
            lines.append("".join(f"{die.label:>{width}}" for die in chunk))
    return lines


_BOXES = {Tone.PLAIN: tuple("╭─╮│╰╯"), Tone.BRIGHT: tuple("┏━┓┃┗┛"), Tone.FADED: tuple("┌╌┐┆└┘")}


def _boxes(dice: list[Die]) -> list[str]:
    drawn = []
    for die in dice:
        left, across, right, side, below, end = _BOXES[die.tone]
        inside = [f"{side}{line}{side}" for line in _die_lines(die)]
        drawn.append([left + across * 7 + right, *inside, below + across * 7 + end])
        if any(other.label for other in dice):
            drawn[-1].append(f"{die.label:^9}")
    return [" ".join(line).rstrip() for line in zip(*drawn, strict=True)]


def _die_lines(die: Die) -> tuple[str, ...]:
    if die.number or die.face not in drawing.PIPS:
        return " " * 7, f"{'?' if die.face is None else die.face:^7}", " " * 7
    pips = drawing.PIPS[die.face].replace("0", " ").replace("1", "●")
    return tuple(f" {' '.join(pips[i : i + 3])} " for i in (0, 3, 6))


# --- SVG ------------------------------------------------------------------------------------------------------------


def svg(picture: Picture, size: tuple[int, int] | None = None, narrow: bool = False) -> str:
    """The picture as a complete `<svg>` element, for pages, notebooks and papers. Needs nothing but this package.

    Args:
        picture: the picture to draw.
        size: height and width in pixels, as in `rgb_array`. None: the picture's natural size. CSS can scale the element.
        narrow: True for the width of a telephone, with captions above the dice.
    """
    diagram = drawing.layout(picture, width=drawing.NARROW_WIDTH if narrow else drawing.WIDTH)
    height, width, scale = _fitted(diagram, size)
    label = _escaped(picture.title).replace('"', "&quot;")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" '
        f'width="{width}" height="{height}" viewBox="0 0 {_short(width / scale)} {_short(height / scale)}" '
        'font-family="Helvetica, Arial, sans-serif">',
        f"<title>{_escaped(picture.title)}</title>",
        f"<desc>{_escaped(in_words(picture))}</desc>",
        f'<rect width="100%" height="100%" fill="{drawing.PAPER}"/>',
        *map(_element, diagram.shapes),
        "</svg>",
    ]
    return "\n".join(lines)


def _fitted(diagram: drawing.Diagram, size: tuple[int, int] | None) -> tuple[int, int, float]:
    """Height and width in pixels, and the scale at which the drawing fits into them."""
    height, width = size or (diagram.height, diagram.width)
    return height, width, min(width / diagram.width, height / diagram.height)


_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def _escaped(text: str) -> str:
    return html.escape(_NOT_IN_XML.sub("", text), quote=False)


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _attributes(**values: Any) -> str:
    return " ".join(
        f'{name.replace("_", "-")}="{_short(value) if isinstance(value, (int, float)) else value}"'
        for name, value in values.items()
    )


def _element(shape: drawing.Shape) -> str:
    """The shape as an element of SVG."""
    match shape:
        case drawing.Polygon():
            points = " ".join(f"{_short(x)},{_short(y)}" for x, y in shape.points)
            return f'<polygon points="{points}" fill="{shape.fill}"/>'
        case drawing.Text():
            place = _attributes(x=shape.x, y=shape.y, font_size=shape.size, fill=shape.fill)
            place += f' text-anchor="{shape.anchor}"' if shape.anchor != "start" else ""
            place += ' font-weight="bold"' if shape.bold else ""
            first, *more = map(_escaped, shape.lines)
            below = _attributes(x=shape.x, dy=shape.size * drawing.LEADING)
            return f"<text {place}>{first}{''.join(f' <tspan {below}>{line}</tspan>' for line in more)}</text>"
        case _:
            given = {name: value for name, value in shape._asdict().items() if shape.stroke or not name.startswith("stroke")}
            return f"<{type(shape).__name__.lower()} {_attributes(**given)}/>"


# --- images -----------------------------------------------------------------------------------------------------------


def frame_size(variant: Variant) -> tuple[int, int]:
    """Height and width in pixels of every image of the variant: multiples of 16, as video encoders want them."""
    height = drawing.layout(variant.full_picture(), drawing.most_lines).height
    return min(-(-height // 16) * 16, MOST_HEIGHT), drawing.WIDTH


def rgb_array(picture: Picture, size: tuple[int, int] | None = None) -> np.ndarray:
    """The picture as an image, (height, width, 3) uint8. Needs Pillow: `pip install dice-envs[render]`.

    Args:
        picture: the picture to draw.
        size: height and width in pixels; the picture is scaled to fit. None: its natural size.

    Raises:
        ImportError: Pillow is not installed.
    """
    check_pillow()
    from PIL import Image, ImageDraw

    diagram = drawing.layout(picture)
    height, width, scale = _fitted(diagram, size)
    image = Image.new("RGB", (width * SMOOTH, height * SMOOTH), drawing.PAPER)
    draw = ImageDraw.Draw(image)
    for shape in diagram.shapes:
        _paint(shape, draw, scale * SMOOTH)
    return np.asarray(image.reduce(SMOOTH), dtype=np.uint8).copy()


_NOT_IN_FONT = str.maketrans({"×": "x", "−": "-", "…": "..."})  # Pillow's own font lacks these signs


def _corners(left: float, top: float, right: float, bottom: float, stroke: float, scale: float) -> tuple[float, ...]:
    """Pillow's corners, which are inclusive, of a box and its outline. Half the outline lies outside the box, as in SVG."""
    half = stroke / 2
    x, y = round((left - half) * scale), round((top - half) * scale)
    return x, y, max(round((right + half) * scale) - 1, x), max(round((bottom + half) * scale) - 1, y)


def _paint(shape: drawing.Shape, draw: Any, scale: float) -> None:
    """Draw the shape on an image that has `scale` pixels for each pixel of the layout."""
    match shape:
        case drawing.Rect():
            box = _corners(shape.x, shape.y, shape.x + shape.width, shape.y + shape.height, shape.stroke_width, scale)
            radius = (shape.rx + shape.stroke_width / 2) * scale if shape.rx else 0
            draw.rounded_rectangle(box, radius, shape.fill, shape.stroke, max(1, round(shape.stroke_width * scale)))
        case drawing.Circle():
            x, y, r = shape.cx, shape.cy, shape.r
            box = _corners(x - r, y - r, x + r, y + r, shape.stroke_width, scale)
            draw.ellipse(box, shape.fill, shape.stroke, max(1, round(shape.stroke_width * scale)))
        case drawing.Polygon():
            draw.polygon([(x * scale, y * scale) for x, y in shape.points], fill=shape.fill)
        case drawing.Text():
            anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
            thick = {"stroke_width": max(1, round(0.022 * shape.size * scale)), "stroke_fill": shape.fill} if shape.bold else {}
            font = _font(shape.size * scale)
            for i, line in enumerate(shape.lines):
                place = (shape.x * scale, (shape.y + i * drawing.LEADING * shape.size) * scale)
                line = line.translate(_NOT_IN_FONT)
                draw.text(place, line, fill=shape.fill, anchor=anchor, font=font, **thick)


@functools.lru_cache(32)
def _font(size: float) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


# --- render modes -----------------------------------------------------------------------------------------------------


def render(variant: Variant, state: Any, viewer: int | None, mode: str | None) -> str | np.ndarray | None:
    """Draw what `viewer` sees of a state (None: everything) in one of RENDER_MODES, for environments' `render`.

    `human` prints and returns None. `rgb_array` gives images of one size for a variant, (height, width, 3) uint8. Without a
    mode there is a warning, and None.

    Raises:
        ResetNeeded: `state` is None, because no game has been dealt.
    """
    if mode is None:
        warnings.warn("render() does nothing without a render_mode; give one when the environment is made", stacklevel=3)
        return None
    if state is None:
        raise ResetNeeded("call reset before render: no game has begun")
    picture = variant.picture(state, viewer)
    if mode == "ansi":
        return ansi(picture)
    if mode == "rgb_array":
        return rgb_array(picture, frame_size(variant))
    if mode == "human":
        print(ansi(picture))
    return None


def check_mode(mode: str | None) -> None:
    """Raise ValueError if a render mode does not exist, ImportError if it is `rgb_array` and Pillow is not installed."""
    if mode is not None and mode not in RENDER_MODES:
        raise ValueError(f"render_mode must be one of {', '.join(RENDER_MODES)} or None, not {shown(mode)}")
    if mode == "rgb_array":
        check_pillow()


def check_pillow() -> None:
    """Raise ImportError, naming the extra, if Pillow is not installed."""
    check_extra("render", "render_mode 'rgb_array'", "PIL")


write_pictures_by(text=ansi, svg=svg)
