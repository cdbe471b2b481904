"""The graph of a review as inline SVG: the expected result after each move.

Colours are classes of `style.CSS`, so that they follow the screen's. All coordinates are those of the view box.
"""

from __future__ import annotations

import collections
import dataclasses
import html
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dice_envs.table.review import Judged, Point, Split

__all__ = ["MOST_STEPS", "SIGNS", "chance_graph", "change", "level", "thinned"]

WIDTH, HEIGHT = 380, 210
LEFT, RIGHT, TOP, BOTTOM = 42.0, 370.0, 26.0, 178.0  # the frame in which values are drawn
MOST_STEPS = 400  # of a graph; more have no room, and a browser would draw them at each change
MOST_DOTS = 40  # points with a dot each; more would run into each other
SIGNS = {"best": "★", "fine": "✓", "slip": "?", "blunder": "??"}  # of a move's mark


def level(value: float, shares: bool) -> str:
    """Return a value in words: `41 %`, or in the game's unit."""
    if shares:
        return f"{100 * value:.0f} %"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def change(value: float, shares: bool) -> str:
    """Return a difference in words: `−8 points`, which are hundredths of the games, or in the game's unit."""
    text = f"{100 * value:+.0f} points" if shares else f"{value:+.2f}"
    return text.replace("-", "−") if float(text.split()[0]) else text.replace("+", "").replace("-", "")


def thinned(split: Split) -> Split:
    """Return a split for a graph: where there are more than MOST_STEPS points, each stands for several changes.

    Such a point has the cause of the larger part of them.
    """
    points = split.points
    if len(points) <= MOST_STEPS:
        return split
    values = np.array([point.value for point in points])
    own = np.array([point.by == "play" for point in points])
    by_play = np.cumsum(np.where(own, np.diff(values, prepend=values[0]), 0.0))
    kept = np.linspace(0, len(points) - 1, MOST_STEPS + 1).round().astype(int)
    merged = [points[0]]
    for before, at in itertools.pairwise(kept.tolist()):
        play = by_play[at] - by_play[before]
        luck = values[at] - values[before] - play
        merged.append(points[at]._replace(by="play" if abs(play) > abs(luck) else "luck"))
    return dataclasses.replace(split, points=tuple(merged))


class _Scale(NamedTuple):
    """Maps values to heights, and the places of points to widths."""

    low: float
    high: float
    steps: float

    def y(self, value: float) -> float:
        return BOTTOM - (value - self.low) / (self.high - self.low) * (BOTTOM - TOP)

    def x(self, place: float) -> float:
        return LEFT + place / max(self.steps, 1.0) * (RIGHT - LEFT)


def chance_graph(
    split: Split,
    said: Mapping[int, str],
    judged: Mapping[int, Judged],
    here: int | None = None,
    name: str = "your",
) -> str:
    """Return the graph of a seat's expected result after each move.

    A click column has the attribute `data-at`: the number of moves after which its position is.

    Args:
        split: of the seat.
        said: number of a move → the move in words, for the titles.
        judged: number of a move → its cost, for the seat's own moves.
        here: number of moves of the position shown; None: no line for it.
        name: the owner of the graph, as in `your chance to win`.
    """
    points, places, shares = split.points, _places(split.points), split.scale.is_share
    values = [point.value for point in points]
    low, high, ticks = (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]) if shares else _ticks(min(values), max(values))
    last = points[-1].number
    scale = _Scale(low, high, last)
    knots = [(scale.x(place), scale.y(value)) for place, value in zip(places, values, strict=True)]
    what = f"{name} {'chance to win' if shares else f'expected {split.scale.unit}'}"
    parts = [_axes(scale, ticks, shares, what, last), _area(knots)]
    if here is not None:
        parts.append(f'<path class="here" d="M{scale.x(here):.1f} {TOP}V{BOTTOM}"/>')
    columns = []
    for (x0, y0), (x1, y1), before, point in zip(knots, knots[1:], points, points[1:], strict=False):
        parts.append(f'<path class="{point.by}" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>')
        step = change(point.value - before.value, shares)
        cause = f"{name} play" if point.by == "play" else "dice and others"
        move = f"move {point.number}: {said.get(point.number, '')}" if point.number else "before the first move"
        if len(points) > MOST_STEPS:
            move, cause = f"moves {before.number + 1} to {point.number}", f"mostly {cause}"
        title = f"{move}\n{level(point.value, shares)} ({step}, {cause})"
        columns.append(_column(x0, x1, (x1, y1), point.number, title))
    marks = [_mark(knot, point, judged.get(point.number), len(points)) for knot, point in zip(knots, points, strict=True)]
    label, content = html.escape(_words(split, what)), "".join((*parts, *marks, *columns))
    return f'<svg class="graph" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{content}</svg>'


def _places(points: Sequence[Point]) -> list[float]:
    """Return where each point is, in moves: several after one move divide its width, and the start has none."""
    counts = collections.Counter(point.number for point in points)
    seen: collections.Counter[int] = collections.Counter()
    places = []
    for number in (point.number for point in points):
        seen[number] += 1
        places.append(max(number - 1 + seen[number] / counts[number], 0.0))
    return places


def _words(split: Split, what: str) -> str:
    """Return the graph in words, for those who do not see it."""
    shares = split.scale.is_share
    steps = [(point.value - before.value, point) for before, point in itertools.pairwise(split.points)]
    ends = f"{level(split.start, shares)} at the start, {level(split.result, shares)} at the end"
    text = f"Graph of {what} after each move: {ends}."
    for by, cause in (("luck", "dice and others"), ("play", "own play")):
        worst = min((each for each in steps if each[1].by == by), key=lambda each: each[0], default=None)
        if worst is not None and change(worst[0], shares).startswith("−"):
            text += f" The largest fall by {cause}: {change(worst[0], shares)} at move {worst[1].number}."
    return text


def _axes(scale: _Scale, ticks: Sequence[float], shares: bool, what: str, last: int) -> str:
    parts = [f'<text class="name" x="2" y="12">{html.escape(what)}</text>']
    for tick in ticks:
        y = scale.y(tick)
        parts.append(f'<path class="{"middle" if shares and tick == 0.5 else "tick"}" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(f'<text class="value" x="{LEFT - 6}" y="{y + 4:.1f}">{level(tick, shares)}</text>')
    parts += [f'<text class="number" x="{scale.x(number):.1f}" y="{BOTTOM + 16}">{number}</text>' for number in _rounds(last)]
    parts.append(f'<text class="name end" x="{RIGHT}" y="{BOTTOM + 30}">move</text>')
    return "".join(parts)


def _area(knots: Sequence[tuple[float, float]]) -> str:
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in knots)
    return f'<path class="area" d="M{knots[0][0]:.1f} {BOTTOM}L{line}V{BOTTOM}Z"/>'


def _column(x0: float, x1: float, dot: tuple[float, float], number: int, title: str) -> str:
    """Return a column that shows its title, and a dot, under the pointer."""
    middle = f'<circle class="under" cx="{dot[0]:.1f}" cy="{dot[1]:.1f}" r="5"/>'
    box = f'<rect x="{x0:.1f}" y="{TOP}" width="{x1 - x0:.1f}" height="{BOTTOM - TOP}"/>'
    return f'<g class="step" data-at="{number}"><title>{html.escape(title)}</title>{box}{middle}</g>'


def _mark(knot: tuple[float, float], point: Point, judged: Judged | None, count: int) -> str:
    """Return the dot of a point; a slip or a blunder has its sign beside it."""
    x, y = knot
    mark = judged.mark if judged is not None and point.by == "play" else ""
    wrong = mark in ("slip", "blunder")
    if not wrong and count > MOST_DOTS:
        return ""
    dot = f'<circle class="{point.by} {mark}" cx="{x:.1f}" cy="{y:.1f}" r="{3.5 if mark else 2}"/>'
    if not wrong:
        return dot
    below = y < BOTTOM - 20  # else to the upper right: the line comes from the left, and from above
    left, top = (x, y + 17) if below else (x + 11, y - 6)
    return dot + f'<text class="sign {mark}" x="{left:.1f}" y="{top:.1f}">{SIGNS[mark]}</text>'


def _rounds(last: int) -> list[int]:
    """Return the numbers below the graph of `last` moves: 0, at most five more, equally spaced."""
    step = next(size * ten for ten in (10**power for power in range(9)) for size in (1, 2, 5) if last / (size * ten) <= 6)
    return list(range(0, last + 1, step))


def _ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Return the ends of an axis that holds both values, and its ticks: 1, 2 or 5 times a power of ten apart."""
    span = (high - low) or abs(high) or 1.0
    size = 10.0 ** math.floor(math.log10(span / 3))
    step = next(size * factor for factor in (1, 2, 5, 10) if span / (size * factor) <= 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    ticks = [round(step * k, 12) for k in range(first, last + 1)]
    return ticks[0], ticks[-1], ticks
