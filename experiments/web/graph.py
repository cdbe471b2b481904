"""The graph of a review as inline SVG: the expected result after each move.

Colours are classes of `style.CSS`, so that they follow the screen's. All coordinates are those of the view box.
"""

from __future__ import annotations

import collections
import dataclasses
import html
import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from dice_envs.table.review import Judged, Point, Split, amount

__all__ = ["MOST_STEPS", "SIGNS", "chance_graph", "level", "thinned"]

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
    points, shares = split.points, split.scale.is_share
    values = [point.value for point in points]
    low, high = (0.0, 1.0) if shares else (min(values), max(values) + 1e-9)
    last = max(points[-1].number, 1)
    xs = [LEFT + place / last * (RIGHT - LEFT) for place in _places(points)]
    ys = [BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP) for value in values]
    what = f"{name} {'chance to win' if shares else f'expected {split.scale.unit}'}"
    parts = [f'<text class="name" x="2" y="12">{html.escape(what)}</text>']
    for tick in np.linspace(0.0, 1.0, 5).tolist():
        y, middle = BOTTOM - tick * (BOTTOM - TOP), shares and tick == 0.5
        parts.append(f'<path class="{"middle" if middle else "tick"}" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(f'<text class="value" x="{LEFT - 6}" y="{y + 4:.1f}">{level(low + tick * (high - low), shares)}</text>')
    for number in sorted({*np.linspace(0, last, 5).round().astype(int).tolist()}):
        x = LEFT + number / last * (RIGHT - LEFT)
        parts.append(f'<text class="number" x="{x:.1f}" y="{BOTTOM + 16}">{number}</text>')
    parts.append(f'<text class="name end" x="{RIGHT}" y="{BOTTOM + 30}">move</text>')
    if here is not None:
        parts.append(f'<path class="here" d="M{LEFT + here / last * (RIGHT - LEFT):.1f} {TOP}V{BOTTOM}"/>')
    columns = []
    for k in range(1, len(points)):
        parts.append(f'<path class="{points[k].by}" d="M{xs[k - 1]:.1f} {ys[k - 1]:.1f}L{xs[k]:.1f} {ys[k]:.1f}"/>')
        title = html.escape(_title(split, k, said, name))
        box = f'<rect x="{xs[k - 1]:.1f}" y="{TOP}" width="{xs[k] - xs[k - 1]:.1f}" height="{BOTTOM - TOP}"/>'
        columns.append(f'<g class="step" data-at="{points[k].number}"><title>{title}</title>{box}</g>')
    marks = [_mark(x, y, point, judged.get(point.number), len(points)) for x, y, point in zip(xs, ys, points, strict=True)]
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


def _title(split: Split, k: int, said: Mapping[int, str], name: str) -> str:
    """Return a step of the graph in words: the move, what could be expected then, and what has changed it."""
    before, point = split.points[k - 1 : k + 1]
    cause = f"{name} play" if point.by == "play" else "dice and others"
    move = f"move {point.number}: {said.get(point.number, '')}" if point.number else "before the first move"
    if len(split.points) > MOST_STEPS:
        move, cause = f"moves {before.number + 1} to {point.number}", f"mostly {cause}"
    step = amount(point.value - before.value, split.scale)
    return f"{move}\n{level(point.value, split.scale.is_share)} ({step}, {cause})"


def _words(split: Split, what: str) -> str:
    """Return the graph in words, for those who do not see it."""
    shares = split.scale.is_share
    steps = [(point.value - before.value, point) for before, point in itertools.pairwise(split.points)]
    ends = f"{level(split.start, shares)} at the start, {level(split.result, shares)} at the end"
    text = f"Graph of {what} after each move: {ends}."
    for by, cause in (("luck", "dice and others"), ("play", "own play")):
        fall, point = min((each for each in steps if each[1].by == by), key=lambda each: each[0], default=(0.0, None))
        if point is not None and fall < -split.scale.spread / 200:
            text += f" The largest fall by {cause}: {amount(fall, split.scale)} at move {point.number}."
    return text


def _mark(x: float, y: float, point: Point, judged: Judged | None, count: int) -> str:
    """Return the dot of a point; a slip or a blunder has its sign beside it."""
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
