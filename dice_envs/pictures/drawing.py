"""Layout of pictures: `layout` turns a Picture into shapes, which `render` writes as SVG or image.

All measures are pixels at the picture's natural size. Letters are counted, not measured, so that a layout needs no font.
"""

from __future__ import annotations

import functools
import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from dice_envs.core.view import Bar, Die, Group, Picture, Row, Tone, as_die

WIDTH = 640  # of every image: a multiple of 16, and readable at half the size
NARROW_WIDTH = 380  # for telephones
MARGIN, PAD, SPACE = 16, 10, 8  # around the picture, above and below a row's content, and between rows
OPPOSITE = 6  # between dice that face each other
INDENT = 15  # of a row's content
CAPTION = 150  # width of the column of captions
LEAST_BESIDE = 520  # width from which captions have a column; in narrower pictures they stand above the content
DIE, DIE_GAP = 40, 8
SMALL, SMALL_GAP = 22, 3  # dice in groups, and in rows with too many dice for a line of large ones
CELL = 20  # one face of a strip
GROUP_GAP = 14
DOT, DOT_GAP = 16, 5
BAR = 14
TRACK = 34  # height of a bar with the numbers below it
TITLE_SIZE, CAPTION_SIZE, DETAIL_SIZE, NOTE_SIZE, LABEL_SIZE = 20, 15, 12.5, 14, 11.0  # of letters
LEAD_SIZE = 22
LEADING = 1.3  # height of a line of text / the size of its letters
LETTER = 0.57  # width of most letters / their size
NARROW, WIDE = " .,:;'!|()[]iljtfr", "mwMW×"
BOLD = 1.12  # how much wider bold letters are

PAPER, PANEL, EDGE, INK, SOFT = "#ffffff", "#f6f7f9", "#d5dae1", "#1d2733", "#5f6b7a"
FAINT, FAINT_EDGE = "#8d97a5", "#b8c0cb"  # of rows and dice that no longer count
ACCENT, ACCENT_PANEL = "#2463c9", "#eef4fd"  # of the player to move
GOLD, GOLD_EDGE = "#ffe9a8", "#c98a00"  # of dice that count
HIDDEN, HIDDEN_EDGE = "#66758a", "#46536a"
GOOD, BAD = "#2e9e6b", "#d4536a"

# Where the pips of a face sit on a 3 x 3 grid, row by row; larger faces show numbers.
PIPS = {
    1: "000010000",
    2: "100000001",
    3: "100010001",
    4: "101000101",
    5: "101010101",
    6: "101101101",
    7: "101111101",
    8: "111101111",
}


class Rect(NamedTuple):
    """A rectangle with round corners. Its fields, and those of a circle, have the names of SVG's attributes."""

    x: float
    y: float
    width: float
    height: float
    rx: float
    fill: str
    stroke: str | None = None
    stroke_width: float = 0.0


class Circle(NamedTuple):
    """A circle around (cx, cy)."""

    cx: float
    cy: float
    r: float
    fill: str
    stroke: str | None = None
    stroke_width: float = 0.0


class Polygon(NamedTuple):
    """A filled polygon."""

    points: tuple[tuple[float, float], ...]
    fill: str


class Text(NamedTuple):
    """Lines of one text, each `LEADING` below the other; `y` is the first one's baseline, `x` where `anchor` says."""

    x: float
    y: float
    lines: tuple[str, ...]
    size: float
    fill: str
    anchor: str = "start"  # or "middle", "end"
    bold: bool = False


Shape = Rect | Circle | Polygon | Text


class Diagram(NamedTuple):
    """A picture laid out: shapes in the order in which they are drawn, within `width` x `height`."""

    width: int
    height: int
    shapes: tuple[Shape, ...]


class _Page(NamedTuple):
    """The widths of a picture and of its column of captions, 0 where captions stand above a row's content."""

    width: int
    caption: int

    @property
    def content(self) -> int:
        """The width that a row's content can have."""
        return self.width - 2 * MARGIN - 2 * INDENT - self.caption


class _Item(NamedTuple):
    """A piece of a row's content that cannot be broken: its size, and a function that draws it with its upper left corner at
    (x, y)."""

    width: float
    height: float
    gap: float  # to the next item in the line
    draw: Callable[[float, float], list[Shape]]


class _Cluster(NamedTuple):
    """Items that stay in one line if they fit."""

    items: tuple[_Item, ...]
    column: float = 0.0  # width reserved for it, the same for all groups of a row

    @property
    def width(self) -> float:
        return sum(item.width + item.gap for item in self.items) - self.items[-1].gap if self.items else 0.0


class _Line(NamedTuple):
    height: float
    items: tuple[tuple[float, _Item], ...]  # x and item


Wrap = Callable[[str, int], tuple[str, ...]]


def wrapped(text: str, letters: int) -> tuple[str, ...]:
    """The text broken into lines of at most `letters` letters."""
    return tuple(textwrap.wrap(text, letters)) or ("",)


def most_lines(text: str, letters: int) -> tuple[str, ...]:
    """The text, once for each line that any text of the same length may take."""
    return (text,) * (1 if len(text) <= letters else max(len(wrapped(text, letters)), math.ceil(len(text) / (0.8 * letters))))


def layout(picture: Picture, wrap: Wrap = wrapped, width: int = WIDTH) -> Diagram:
    """Lay out a picture, `width` pixels wide. With `wrap=most_lines` it is high enough for any words of the same length."""
    page = _Page(width, CAPTION if width >= LEAST_BESIDE else 0)
    shapes: list[Shape] = [Text(MARGIN, MARGIN + TITLE_SIZE, (picture.title,), TITLE_SIZE, INK, bold=True)]
    y: float = MARGIN + TITLE_SIZE * LEADING + SPACE
    rows = list(picture.rows)
    has_content = any(row.dice or row.outcomes or row.groups or row.bar for row in rows)
    least = float(DIE) if has_content else 0.0  # height of a row, so that rows keep their places without dice
    while rows:
        taken = 2 if rows[0].facing and len(rows) > 1 else 1
        panel, height = _panel(page, rows[:taken], y, least, wrap)
        shapes += panel
        y += height + SPACE
        del rows[:taken]
    for note in picture.notes:
        lines = wrap(note, _letters(width - 2 * MARGIN, NOTE_SIZE))
        shapes.append(Text(MARGIN, y + NOTE_SIZE, lines, NOTE_SIZE, SOFT))
        y += NOTE_SIZE * LEADING * len(lines)
    return Diagram(width, round(y + MARGIN - SPACE / 2), tuple(shapes))


def _letters(width: float, size: float) -> int:
    return int(width / (LETTER * size))


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The approximate width of a short text, in any font."""
    letters = sum(0.34 if letter in NARROW else 0.85 if letter in WIDE else LETTER for letter in text)
    return letters * size * (BOLD if bold else 1.0)


# --- rows -----------------------------------------------------------------------------------------------------------


def _panel(page: _Page, rows: list[Row], top: float, least: float, wrap: Wrap) -> tuple[list[Shape], float]:
    """A panel with a row, or with two that face each other, and its height."""
    contents = [_lines(page, _content(page, row)) for row in rows]
    # Each block: a row, lines of it, whether they are its first, and whether the next block faces them.
    blocks = [(rows[0], contents[0], True, False)]
    if len(rows) == 2:
        pairs = enumerate(itertools.zip_longest(*contents, fillvalue=_Line(0.0, ())))
        blocks = [(rows[i], [line], k == 0, i == 0) for k, pair in pairs for i, line in enumerate(pair)]
    shapes: list[Shape] = []
    y = top + PAD
    for row, lines, first, above in blocks:
        words, words_height = _words(page, row, bool(lines), wrap) if first else ([], 0.0)
        content_height = sum(line.height + SPACE for line in lines) - SPACE if lines else 0.0
        if page.caption:
            height = max(words_height, content_height, least if len(rows) == 1 else 0.0)
            words_y, below = y + (height - words_height) / 2, y + (height - content_height) / 2
        else:
            words_y, below = y, y + words_height + (PAD if words and lines else 0)
            height = below + content_height - y
        shapes += [text._replace(y=text.y + words_y) for text in words]
        if first and row.mark:
            middle = y + height / 2
            shapes.append(Polygon(((MARGIN, middle - 8), (MARGIN + 8, middle), (MARGIN, middle + 8)), ACCENT))
        for line in lines:
            for x, item in line.items:
                shapes += item.draw(MARGIN + INDENT + page.caption + x, below + (line.height - item.height) / 2)
            below += line.height + SPACE
        y += height
        bottom = y + PAD
        y += OPPOSITE if above else SPACE + PAD
    height = bottom - top
    fill, edge = (ACCENT_PANEL, ACCENT) if any(row.mark for row in rows) else (PANEL, EDGE)
    return [Rect(MARGIN, top, page.width - 2 * MARGIN, height, 8, fill, edge, 1.5), *shapes], height


def _words(page: _Page, row: Row, beside: bool, wrap: Wrap) -> tuple[list[Text], float]:
    """A row's caption, mark and detail, from y = 0, and their height. `beside` the content, they stand in a column."""
    x = MARGIN + INDENT
    width = page.caption - PAD if beside and page.caption else page.width - 2 * x
    caption = wrap(row.caption, _letters(width, CAPTION_SIZE * 1.05))
    texts = [Text(x, CAPTION_SIZE, caption, CAPTION_SIZE, FAINT if row.faded else INK, bold=True)]
    height = CAPTION_SIZE * LEADING * len(caption)
    below = []
    if row.mark:
        if (
            len(caption) == 1
            and text_width(row.caption, CAPTION_SIZE, True) + text_width(row.mark, DETAIL_SIZE, True) + 8 <= width
        ):
            right = x + (page.caption - PAD - 4 if page.caption else width)
            texts.append(Text(right, CAPTION_SIZE, (row.mark,), DETAIL_SIZE, ACCENT, "end"))
        else:
            below.append((row.mark, ACCENT))
    if row.detail:
        below.append((row.detail, FAINT if row.faded else SOFT))
    for text, colour in below:
        lines = wrap(text, _letters(width, DETAIL_SIZE))
        texts.append(Text(x, height + DETAIL_SIZE, lines, DETAIL_SIZE, colour))
        height += DETAIL_SIZE * LEADING * len(lines)
    return texts, height


def _content(page: _Page, row: Row) -> Iterator[_Cluster]:
    """A row's content: all but its words."""
    if row.outcomes:
        yield _Cluster(tuple(_Item(DOT, DOT, DOT_GAP, functools.partial(_draw_dot, good)) for good in row.outcomes))
    if row.dice:
        dice = [as_die(die) for die in row.dice]
        fit = len(dice) * (DIE + DIE_GAP) - DIE_GAP <= page.content  # large ones, in a line
        size, gap = (DIE, DIE_GAP) if fit else (SMALL, SMALL_GAP)
        items = [_die_item(die, size, gap, row.faded) for die in dice]
        if row.lead:
            width = text_width(row.lead, LEAD_SIZE, True)
            items.insert(0, _Item(width, size, gap, functools.partial(_draw_words, row.lead, LEAD_SIZE, size, INK, True)))
        yield _Cluster(tuple(items))
    if row.bar:
        yield _Cluster((_Item(page.content, TRACK, 0, functools.partial(_draw_bar, row.bar, page.content)),))
    groups = [_Cluster(tuple(_group_items(group, row.faded))) for group in row.groups]
    widest = max((group.width for group in groups), default=0)
    yield from (group._replace(column=widest) for group in groups)


def _die_item(die: Die, size: float, gap: float, faded: bool = False) -> _Item:
    if faded:
        die = die._replace(tone=Tone.FADED)
    height = size + (LABEL_SIZE * LEADING if die.label else 0)
    return _Item(size, height, gap, functools.partial(_draw_die, die, size))


def _group_items(group: Group, faded: bool) -> Iterator[_Item]:
    dice = [as_die(die) for die in group.dice]
    tone = Tone.FADED if faded else group.tone
    if group.label:
        colour = {Tone.PLAIN: SOFT, Tone.BRIGHT: INK, Tone.FADED: FAINT}[tone]
        draw = functools.partial(_draw_words, group.label, DETAIL_SIZE, SMALL, colour, tone is Tone.BRIGHT)
        yield _Item(text_width(group.label, DETAIL_SIZE, tone is Tone.BRIGHT), SMALL, 5, draw)
    if group.strip:
        yield _Item(CELL * len(dice), CELL, 0, functools.partial(_draw_strip, dice, tone))
        return
    for die in dice:
        yield _die_item(die._replace(tone=tone) if tone is not Tone.PLAIN else die, SMALL, SMALL_GAP)


def _lines(page: _Page, parts: Iterable[_Cluster]) -> list[_Line]:
    """Break a row's content into lines. A cluster that does not fit begins a new line; only one wider than a line is broken."""
    lines: list[list[tuple[float, _Item]]] = [[]]
    begin = 0.0
    for part in parts:
        if lines[-1] and begin + part.width > page.content:
            lines.append([])
            begin = 0.0
        x = begin
        for item in part.items:
            if lines[-1] and x + item.width > page.content:
                lines.append([])
                x = begin = 0.0
            lines[-1].append((x, item))
            x += item.width + item.gap
        begin += max(part.column, part.width) + GROUP_GAP
    return [_Line(max(item.height for _, item in line), tuple(line)) for line in lines if line]


# --- the parts --------------------------------------------------------------------------------------------------------


def _centred(text: str, x: float, y: float, size: float, fill: str, bold: bool = False) -> Text:
    return Text(x, y + 0.35 * size, (text,), size, fill, "middle", bold)


def _face(die: Die, x: float, y: float, size: float, ink: str) -> list[Shape]:
    """Pips, or a number, on a face with its upper left corner at (x, y)."""
    cx, cy = x + size / 2, y + size / 2
    face = die.face
    if face is None:
        return [_centred("?", cx, cy, 0.5 * size, ink, bold=True)]
    if die.number or face not in PIPS:
        text = str(face)
        return [_centred(text, cx, cy, (0.5 if len(text) < 3 else 0.4) * size, ink, bold=True)]
    return [
        Circle(cx + (i % 3 - 1) * 0.27 * size, cy + (i // 3 - 1) * 0.27 * size, 0.088 * size, ink)
        for i, pip in enumerate(PIPS[face])
        if pip == "1"
    ]


_COLOURS = {  # of a die's face, its edge and its pips
    Tone.PLAIN: (PAPER, INK, INK),
    Tone.BRIGHT: (GOLD, GOLD_EDGE, INK),
    Tone.FADED: (PANEL, FAINT_EDGE, FAINT),
}


def _draw_die(die: Die, size: float, x: float, y: float) -> list[Shape]:
    fill, edge, ink = _COLOURS[die.tone]
    if die.face is None:
        fill, edge, ink = (FAINT_EDGE, FAINT_EDGE, PAPER) if die.tone is Tone.FADED else (HIDDEN, HIDDEN_EDGE, PAPER)
    stroke = 1.6 if size >= DIE else 1.2
    half = stroke / 2  # the line lies within the die
    shapes: list[Shape] = [
        Rect(x + half, y + half, size - stroke, size - stroke, 0.2 * size, fill, edge, stroke),
        *_face(die, x, y, size, ink),
    ]
    if die.label:
        shapes.append(Text(x + size / 2, y + size + LABEL_SIZE, (die.label,), LABEL_SIZE, SOFT, "middle"))
    return shapes


def _draw_strip(dice: list[Die], tone: Tone, x: float, y: float) -> list[Shape]:
    """All faces of one die as a bar of cells."""
    fill, edge, ink = _COLOURS[tone]
    within = CELL - 1.2  # the lines lie within the bar
    shapes: list[Shape] = [Rect(x + 0.6, y + 0.6, CELL * (len(dice) - 1) + within, within, 4, fill, edge, 1.2)]
    shapes += [Rect(x + i * CELL - 0.4, y + 0.6, 0.8, within, 0, edge) for i in range(1, len(dice))]
    for i, die in enumerate(dice):
        if die.tone is Tone.BRIGHT:
            shapes.append(Rect(x + i * CELL + 0.6, y + 0.6, within, within, 4, GOLD, GOLD_EDGE, 1.6))
        shapes += _face(die, x + i * CELL, y, CELL, INK if die.tone is Tone.BRIGHT else ink)
    return shapes


def _draw_words(text: str, size: float, height: float, colour: str, bold: bool, x: float, y: float) -> list[Shape]:
    return [Text(x, y + height / 2 + 0.35 * size, (text,), size, colour, bold=bold)]


def _draw_dot(good: bool, x: float, y: float) -> list[Shape]:
    """A full circle for a good outcome, a ring for a bad one: they differ even without colours."""
    middle = DOT / 2
    if good:
        return [Circle(x + middle, y + middle, middle, GOOD)]
    return [Circle(x + middle, y + middle, middle - 1, PAPER, BAD, 2)]


def _draw_bar(bar: Bar, width: float, x: float, y: float) -> list[Shape]:
    scale = width / max(bar.most, bar.goal, 1e-9)
    value = min(max(bar.value, 0.0), bar.most)
    reached = bar.value >= bar.goal
    shapes: list[Shape] = [Rect(x, y, width, BAR, BAR / 2, EDGE)]
    if value > 0:
        shapes.append(Rect(x, y, max(value * scale, BAR), BAR, BAR / 2, GOOD if reached else ACCENT))
    at = x + bar.goal * scale
    shapes.append(Rect(at - 1, y - 3, 2, BAR + 6, 0, INK))
    text = f"{bar.goal:g}"
    right = x + width - text_width(text, LABEL_SIZE) / 2
    shapes.append(Text(min(at, right), y + BAR + 5 + LABEL_SIZE, (text,), LABEL_SIZE, SOFT, "middle"))
    return shapes
