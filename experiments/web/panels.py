"""Parts of a table's page: the legal moves, and the review of a finished game.

Moves are a row of buttons; for bids a number of dice with a button for each face, and a grid of all. The graph of a review is
inline SVG: the expected result after each move. Its colours are classes of `parts.CSS`, so that they follow the screen's; its
coordinates are those of the view box.
"""

from __future__ import annotations

import dataclasses
import functools
import html
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from nicegui import events, ui

from dice_envs.core.game import Variant
from dice_envs.core.options import check_range
from dice_envs.core.view import Row, as_die
from dice_envs.experiments.web import Place
from dice_envs.experiments.web.parts import FEWER, MORE, TAKEN, button, die, heading, markup, reporting, sentence, words
from dice_envs.table.review import Judged, Point, Review, Split, amount, level

if TYPE_CHECKING:
    from dice_envs.experiments.web.table_page import TablePage

# --- legal moves -------------------------------------------------------------------------------------------------------

FEWEST = 8  # moves of this form that make a grid; fewer are buttons
PAIR = re.compile(r"(\d+) x (\d+)")
LEAST_SHOWN = 0.005  # share of a choice in optimal play from which its button shows it
KEPT_OPEN = "event => event.currentTarget.closest('.moves').classList.toggle('all')"
Add = Callable[..., None]  # adds a move's button: its content, action, classes, name and key


@dataclasses.dataclass(frozen=True)
class BidGrid:
    """Moves of the form `3 x 5`: a number of dice and a face.

    Attributes:
        rows: first numbers of the legal moves, in rising order.
        columns: second numbers of all moves, in rising order.
        actions: (row, column) → action, of legal moves only.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    actions: Mapping[tuple[int, int], int]


def arrange(variant: Variant, legal: Sequence[int]) -> tuple[BidGrid | None, list[int]]:
    """Return the grid of legal actions, None if there is none, and the legal actions outside it."""
    said = [variant.describe_action(action) for action in range(variant.facts.num_actions)]
    pairs = {k: (int(match[1]), int(match[2])) for k, text in enumerate(said) if (match := PAIR.fullmatch(text))}
    if len(pairs) < FEWEST or len(set(pairs.values())) < len(pairs):
        return None, list(legal)
    placed = {pairs[action]: action for action in legal if action in pairs}
    grid = BidGrid(tuple(sorted({row for row, _ in placed})), tuple(sorted({column for _, column in pairs.values()})), placed)
    return (grid if placed else None), [action for action in legal if action not in pairs]


def show_moves(page: TablePage) -> None:
    """Add the buttons of all legal moves of the person to move. After a hint they show how often optimal play takes each."""
    place, moves = page.place, len(page.place.sitting)
    variant, advice = place.sitting.variant, page.advice
    shares = {row.action: row.share or 0.0 for row in advice.rows} if advice else {}
    grid, others = arrange(variant, place.sitting.legal())

    def add(content: str, action: int, classes: str = "move", name: str = "", key: str = "") -> None:
        label, share = variant.describe_action(action), shares.get(action, 0.0)
        if share >= LEAST_SHOWN:
            label += f", optimal play does it {100 * share:.0f} % of the time"
            content += f'<span class="often">{100 * share:.0f} %</span>'
            classes += " optimal"
        name = name or f"action-{action}"
        button(label, lambda: page.play(action, moves), classes, content=content, name=name, key=key)

    dice = _dice_to_choose(place)
    said = {action: variant.describe_action(action) for action in others}
    keys = _first_letters(said) if grid else {action: str(k) for k, action in enumerate(others[:9], 1)}
    if others:
        with ui.element("div").classes("line others"):
            for action, text in said.items():
                number = re.match(r"(?:roll )?die (\d+)", text)
                content = dice.get(number[1], "") if number else ""
                add(content or html.escape(text), action, "move main" if grid else "move", key=keys.get(action, ""))
    if grid:
        _picker(page, grid, page.quantity or _usual_row(grid, shares), add)
        _grid(grid, add)


def _dice_to_choose(place: Place) -> dict[str, str]:
    """Return the dice of the person to move by their numbers in the picture, as HTML; those of a strip are one die's faces."""
    row = next((row for row in place.picture().rows if row.mark), Row(""))
    dice = [each for each in map(as_die, row.dice) if each.face is not None]
    held = {(label := each.label.partition(":"))[0]: f"{die(each.face or 0)}{label[2]}" for each in dice}
    strips = {group.label: "".join(die(as_die(face).face or 0) for face in group.dice) for group in row.groups if group.strip}
    return {**held, **strips}


def _usual_row(grid: BidGrid, shares: Mapping[int, float]) -> int:
    """Return the number of dice of the bid that optimal play takes most often, or the lowest."""
    (row, _), liked = max(grid.actions.items(), key=lambda each: shares.get(each[1], 0.0))
    return row if shares.get(liked) else grid.rows[0]


def _picker(page: TablePage, grid: BidGrid, chosen: int, add: Add) -> None:
    """Add a number of dice to change by one, and the faces to bid with it."""
    at = grid.rows.index(chosen)
    fewer, more = grid.rows[max(at - 1, 0)], grid.rows[min(at + 1, len(grid.rows) - 1)]
    with ui.element("div").classes("picker").props('role=group aria-label="choose a bid"'):
        with ui.element("div").classes("stepper"):
            button("fewer dice", lambda: page.pick(fewer), content="−", enabled=fewer < chosen, name="fewer", key=FEWER)
            words(f"{chosen} ×", "quantity").props("aria-live=polite")
            button("more dice", lambda: page.pick(more), content="+", enabled=more > chosen, name="more", key=MORE)
        with ui.element("div").classes("faces"):
            for column in grid.columns:
                _bid(grid, chosen, column, die(column), add, name=f"face-{column}", key=str(column))
    every = words("All bids", "tool every", "button").props("type=button data-name=all-bids")
    every.on("click", js_handler=KEPT_OPEN)


def _grid(grid: BidGrid, add: Add) -> None:
    columns = f"grid-template-columns: repeat({len(grid.columns)}, minmax(0, 1fr))"
    with ui.element("div").classes("grid").style(columns).props('role=group aria-label="all bids"'):
        for row in grid.rows:
            for column in grid.columns:
                _bid(grid, row, column, f"<span>{row}×</span>{die(column)}", add)


def _bid(grid: BidGrid, row: int, column: int, content: str, add: Add, name: str = "", key: str = "") -> None:
    action = grid.actions.get((row, column))
    if action is None:
        button(f"{row} x {column}, not possible", None, "move", content=content, name=name)
    else:
        add(content, action, name=name, key=key)


def _first_letters(said: Mapping[int, str]) -> dict[int, str]:
    """Return action → the first letter of its words that no other key has."""
    keys: dict[int, str] = {}
    for action, text in said.items():
        letter = next((each for each in text.lower() if each.isalpha() and each not in TAKEN and each not in keys.values()), "")
        keys |= {action: letter} if letter else {}
    return keys


# --- the review --------------------------------------------------------------------------------------------------------


WIDTH, HEIGHT = 380, 210
LEFT, RIGHT, TOP, BOTTOM = 42.0, 370.0, 26.0, 178.0  # the frame in which values are drawn
MOST_STEPS = 400  # of a graph; more have no room
MOST_DOTS = 40  # points with a dot each; more would run into each other
SIGNS = {"best": "★", "fine": "✓", "slip": "?", "blunder": "??"}  # of a move's mark
# Emits the number of moves of the graph's column that was clicked.
GO = "event => { const step = event.target.closest('[data-at]'); if (step) emit(Number(step.dataset.at)) }"


def _chip(mark: str, title: str = "", count: int | None = None) -> str:
    """Return a move's mark as HTML: sign and word, in its colour, with a tooltip. `count`: how many moves have it."""
    text = mark if count is None else f"{count} {mark}{'s' * (count > 1 and mark in ('slip', 'blunder'))}"
    sign = f'<span aria-hidden="true">{SIGNS[mark]}</span>'
    return f'<span class="mark {mark}" title="{html.escape(title or text)}">{sign} {text}</span>'


def _seat_of(page: TablePage, review: Review) -> int | None:
    """Return the seat whose review is shown: the chosen one, that of the person here, or the first."""
    seats = list(review.splits or review.totals)
    wanted = [page.reviewed, page.place.seat, *page.place.sitting.people, *seats]
    return next((seat for seat in wanted if seat in seats), None)


def show_review(page: TablePage, review: Review) -> None:
    """Add the content of the card with a review."""
    place, seat, split = page.place, _seat_of(page, review), None
    heading("Review")
    if seat is not None:
        split, worst = review.splits.get(seat), review.worst.get(seat)
        if len(review.splits) > 1:
            _whose(page, review, seat)
        if split is not None:
            words(sentence(split.text), "split total", "p")
        with ui.element("div").classes("line marks"):
            marks = review.marks[seat]
            markup(" ".join(_chip(mark, count=marks[mark]) for mark in SIGNS if marks[mark]))
        if split is not None and len(split.points) <= MOST_STEPS:
            _graph(page, review, seat)
        if worst is not None:
            with ui.element("div").classes("line"):
                button("Show me the worst move", lambda: page.jump(worst.number - 1), "tool main", name="worst")
    for each, text in review.texts.items():
        if each != seat or split is None:
            words(f"{place.name(each)}: {text if text.startswith('nothing') else f'cost {text}'}", "words total")
    if review.note:
        words(sentence(review.note), "words note")
    words("Save keeps this game. The terminal's command review makes a record of a folder of them.", "words note")


def _whose(page: TablePage, review: Review, seat: int) -> None:
    with ui.element("div").classes("pick small").props('role=group aria-label="whose review"'):
        for each in review.splits:
            classes = "tool chosen" if each == seat else "tool"
            made = button(page.place.name(each), functools.partial(page.choose, each), classes, name=f"of-{each}")
            made.props["aria-pressed"] = str(each == seat).lower()


def _graph(page: TablePage, review: Review, seat: int) -> None:
    """Add the graph of a seat, and its key."""
    place, split = page.place, review.splits[seat]

    def go(event: events.GenericEventArguments) -> None:
        check_range("position", event.args, 0, len(place.sitting))
        page.jump(event.args)

    numbers = {point.number for point in split.points if point.number}
    entries = [entry for number in numbers for entry in place.history(False, number - 1, number)]
    said = {entry.number: f"{place.name(entry.seat)}: {entry.words}" for entry in entries}
    mine = seat == place.seat
    graph = chance_graph(split, said, review.by_number, page.shown, "your" if mine else f"{place.name(seat)}'s")
    markup(graph).classes("graph-box").on("click", reporting(go), js_handler=GO)
    key = {"luck": "dice and others", "play": "your play" if mine else "own play"}
    markup("".join(f'<span class="key {by}">{text}</span>' for by, text in key.items())).classes("words keys")


def show_lesson(page: TablePage, review: Review) -> None:
    """Add the move after the position shown and what would have been better, if the seat of the review moved there."""
    place, at = page.place, page.shown
    move = review.by_number.get(at + 1)
    if move is None or move.seat != _seat_of(page, review):
        return
    split = review.splits.get(move.seat)
    who = "You" if move.seat == place.seat else place.name(move.seat)
    with ui.element("div").classes("lesson").props(f"data-move={move.number}"):
        played = f"{who} played <b>{html.escape(move.words)}</b>{_worth(move.after, split)}."
        markup(f"{_chip(move.mark, move.text)} {played}")
        if move.cost and move.after is None:
            words(f"{_cost_of(move)}.")
        elif move.cost:
            best = html.escape(place.sitting.variant.describe_action(move.best))
            markup(f"Better was <b>{best}</b>{_worth(move.before, split)}.")
        else:
            words("Nothing was better.")
        if place.may_play_on(at):
            title = "this table's game goes on from here; save the finished one first to keep it"
            with ui.element("div").classes("line"):
                button("Play on from here", lambda: place.play_on(at), name="play-on", title=title)


def judged_line(move: Judged) -> str:
    """Return the mark and the cost of a move as HTML, for the history."""
    return f'<span class="notes">{_chip(move.mark, move.text)} {html.escape(_cost_of(move))}</span>'


def _cost_of(move: Judged) -> str:
    """Return the text of a move's cost, without the move."""
    return move.text.removeprefix(f"move {move.number}: {move.words}").lstrip("; ")


def _worth(value: float | None, split: Split | None) -> str:
    return "" if value is None or split is None else f", worth {level(value, split.scale)}"


# --- the graph ---------------------------------------------------------------------------------------------------------


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
    # Points after one move share its width.
    after, seen, xs = Counter(point.number for point in points), Counter[int](), []
    for point in points:
        seen[point.number] += 1
        place = max(point.number - 1 + seen[point.number] / after[point.number], 0.0)
        xs.append(LEFT + place / last * (RIGHT - LEFT))
    ys = [BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP) for value in values]
    what = f"{name} {'chance to win' if shares else f'expected {split.scale.unit}'}"
    parts = [f'<text class="name" x="2" y="12">{html.escape(what)}</text>']
    for tick in np.linspace(0.0, 1.0, 5).tolist():
        y, middle = BOTTOM - tick * (BOTTOM - TOP), shares and tick == 0.5
        parts.append(f'<path class="{"middle" if middle else "tick"}" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(
            f'<text class="value" x="{LEFT - 6}" y="{y + 4:.1f}">{level(low + tick * (high - low), split.scale)}</text>'
        )
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
    ends = f"{level(split.start, split.scale)} at the start, {level(split.result, split.scale)} at the end"
    label, content = html.escape(f"Graph of {what} after each move: {ends}."), "".join((*parts, *marks, *columns))
    return f'<svg class="graph" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{content}</svg>'


def _title(split: Split, k: int, said: Mapping[int, str], name: str) -> str:
    """Return a step of the graph in words: the move, what could be expected then, and what has changed it."""
    before, point = split.points[k - 1 : k + 1]
    cause = f"{name} play" if point.by == "play" else "dice and others"
    move = f"move {point.number}: {said.get(point.number, '')}" if point.number else "before the first move"
    step = amount(point.value - before.value, split.scale)
    return f"{move}\n{level(point.value, split.scale)} ({step}, {cause})"


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
