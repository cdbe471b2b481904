"""Reviews as text: the marks of moves, results as play and luck, and the chance to win along the game as a line of blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import typer

from dice_envs.experiments.play.words import width
from dice_envs.experiments.ui.progress import progress
from dice_envs.table.review import Judged, Review, Split, review
from dice_envs.table.sitting import Sitting

__all__ = ["graph_lines", "level", "make_review", "review_lines"]

BLOCKS = "▁▂▃▄▅▆▇█"
SIGNS = {"best": "=", "fine": "~", "slip": "?", "blunder": "!"}  # of a mark, in one column
COLOURS = {"best": "green", "fine": "green", "slip": "yellow", "blunder": "red"}
LEGEND = f"+ - luck; own moves: {', '.join(f'{sign} {mark}' for mark, sign in SIGNS.items())}"
LEAST_LUCK = 0.005  # share of the graph's range; the sign of a smaller change is left out


def make_review(sitting: Sitting, agents: bool) -> Review:
    """Return the review of a game, with a progress bar."""
    with progress("reviewing, moves", len(sitting)) as advance:
        before = 0

        def done(moves: int, of: int) -> None:
            nonlocal before
            advance(moves - before)
            before = moves

        return review(sitting, agents, done)


def review_lines(found: Review, sitting: Sitting, viewer: int | None, commands: bool = True) -> Iterator[str]:
    """Yield the lines of a review, in colours.

    Args:
        found: the review.
        sitting: the game.
        viewer: the seat that is called "you"; None: none is.
        commands: whether to name commands of the terminal.
    """
    for move in found.moves:
        mark = typer.style(f"[{move.mark}]", fg=COLOURS[move.mark])
        yield f"{sitting.variant.seat_name(move.seat, viewer)}, {move.text}  {mark}"
    for seat, text in found.texts.items():
        yield f"{sitting.variant.seat_name(seat, viewer)}: {text}"
        split, worst = found.splits.get(seat), found.worst(seat)
        if split is not None:
            yield split.text
            yield from graph_lines(split, [move for move in found.moves if move.seat == seat])
        if worst is not None:
            onward = f"; `from {worst.number}` plays on from there" if commands and seat in sitting.people else ""
            yield f"the worst move: {worst.number}, {worst.words}{onward}"
    if found.note:
        yield f"({found.note})"


def graph_lines(split: Split, moves: Sequence[Judged]) -> Iterator[str]:
    """Yield the expected result along a game: a line of blocks, and below it the cause of each change.

    Args:
        split: of a seat.
        moves: its own in the review.
    """
    values = [point.value for point in split.points]
    low, high = (0.0, 1.0) if split.scale.is_share else (min(values), max(values))
    span = max(high - low, 1e-9)
    marks = {move.number: move.mark for move in moves}
    columns = [(BLOCKS[_height((values[0] - low) / span)], " ", "")]
    for before, point in itertools.pairwise(split.points):
        change = (point.value - before.value) / span
        mark = marks[point.number] if point.by == "play" else None
        sign = SIGNS[mark] if mark else " " if abs(change) < LEAST_LUCK else "+" if change > 0 else "-"
        columns.append((BLOCKS[_height((point.value - low) / span)], sign, COLOURS[mark] if mark else "blue"))
    what = "chance to win" if split.scale.is_share else f"expected {split.scale.unit}"
    yield f"{what}: {level(split.start, split)} at the start, {level(split.result, split)} at the end   ({LEGEND})"
    most = width() - 2
    for first in range(0, len(columns), most):
        part = columns[first : first + most]
        yield "  " + "".join(typer.style(block, fg=colour or None) for block, _, colour in part)
        yield "  " + "".join(typer.style(sign, fg=colour or None) for _, sign, colour in part)


def level(value: float, split: Split) -> str:
    """Return a result as people read it: `41 %`, or a number in the game's unit."""
    return f"{100 * value:.0f} %" if split.scale.is_share else f"{value:.2f}"


def _height(share: float) -> int:
    return min(len(BLOCKS) - 1, max(0, int(share * len(BLOCKS))))
