"""Parts of a table's page: the legal moves, and the review of a finished game.

Moves are a row of buttons; for bids a number of dice with a button for each face, and a grid of all. A review has a graph of
the expected result after each move. Its colours are those of `parts.CSS`, so that they follow the screen's.
"""

from __future__ import annotations

import dataclasses
import functools
import html
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicegui import events, ui

from dice_envs.core.game import Variant
from dice_envs.core.options import check_range
from dice_envs.core.view import Row, as_die
from dice_envs.experiments.web import TableView
from dice_envs.experiments.web.parts import TAKEN, button, die, heading, markup, reporting, sentence, words
from dice_envs.table.advice import Advice, Judged, Point, Review, Split, amount, level, noted

if TYPE_CHECKING:
    from dice_envs.experiments.web.table_page import TablePage

# --- legal moves -------------------------------------------------------------------------------------------------------

ODDS = "the odds"  # title of advice that does not say what is best
FEWEST = 8  # moves of this form that make a grid; fewer are buttons
LEAST_SHOWN = 0.005  # share of a choice in optimal play from which its button shows it
KEPT_OPEN = "event => event.currentTarget.closest('.moves').classList.toggle('all')"
Add = Callable[..., None]  # adds a move's button: its content, action, classes, name and key


@dataclasses.dataclass(frozen=True)
class BidGrid:
    """Moves of the form `3 x 5`: a number of dice and a face."""

    rows: tuple[int, ...]  # first numbers of the legal moves, in rising order
    columns: tuple[int, ...]  # second numbers of all moves, in rising order
    actions: Mapping[tuple[int, int], int]  # (row, column) → action, of legal moves only
    every: Mapping[tuple[int, int], int]  # the same of all moves of this form


def arrange(variant: Variant, legal: Sequence[int]) -> tuple[BidGrid | None, list[int]]:
    """Return the grid of legal actions, None if there is none, and the legal actions outside it."""
    moves = map(variant.describe_action, range(variant.facts.num_actions))
    pairs = {action: (move.numbers[0], move.numbers[1]) for action, move in enumerate(moves) if move.kind == "bid"}
    if len(pairs) < FEWEST:
        return None, list(legal)
    placed = {pairs[action]: action for action in legal if action in pairs}
    every = {pair: action for action, pair in pairs.items()}
    grid = BidGrid(tuple(sorted({row for row, _ in placed})), tuple(sorted({column for _, column in every})), placed, every)
    return (grid if placed else None), [action for action in legal if action not in pairs]


def show_moves(page: TablePage) -> None:
    """Add the buttons of all legal moves of the person to move. After a hint they show how often optimal play takes each, or
    which is the best; a bid that is not legal says why."""
    view, moves = page.view, len(page.view.sitting)
    variant, advice = view.sitting.variant, page.advice
    shares = {row.action: row.share or 0.0 for row in advice.rows} if advice else {}
    best = advice.rows[0].action if advice and not any(shares.values()) and advice.title != ODDS else None
    grid, others = arrange(variant, view.sitting.legal())

    def add(content: str, action: int, classes: str = "move", name: str = "", key: str = "") -> None:
        label, share = str(variant.describe_action(action)), shares.get(action, 0.0)
        if share >= LEAST_SHOWN:
            label += f", optimal play does it {100 * share:.0f} % of the time"
            content += f'<span class="often">{100 * share:.0f} %</span>'
        if share >= LEAST_SHOWN or action == best:
            classes += " optimal"
        why = _why_not(view, action)
        name = name or ("" if why else f"action-{action}")
        button(label, lambda: page.play(action, moves), classes, content=content, name=name, key=key, why=why)

    dice = _dice_to_choose(view)
    said = {action: variant.describe_action(action) for action in others}
    keys = _first_letters(said) if grid else {action: str(k) for k, action in enumerate(others[:9], 1)}
    if others:
        with ui.element("div").classes("line others"):
            for action, text in said.items():
                number = str(text.numbers[0]) if text.kind == "die" else ""
                content = f'<span class="named">die {number}</span>{dice[number]}' if number in dice else ""
                add(content or html.escape(text), action, "move main" if grid else "move", key=keys.get(action, ""))
    if grid:
        liked = best if best is not None else max(grid.actions.values(), key=lambda each: shares.get(each, 0.0))
        row = next((row for (row, _), each in grid.actions.items() if each == liked and advice), grid.rows[0])
        _picker(page, grid, page.quantity or row, add)
        _grid(grid, add)


def _why_not(view: TableView, action: int | None) -> str:
    """Return why a bid is not legal now, in the game's words; "" if it is, or if there is no such bid."""
    if action is None or action in view.sitting.legal():
        return ""
    return view.sitting.variant.why_not(view.sitting.state, action).text()


def _dice_to_choose(view: TableView) -> dict[str, str]:
    """Return the dice of the person to move by their numbers in the picture, as HTML; those of a strip are one die's faces."""
    row = next((row for row in view.picture().rows if row.mark), Row(""))
    dice = [each for each in map(as_die, row.dice) if each.face is not None]
    held = {(label := each.label.partition(":"))[0]: f"{die(each.face or 0)}{label[2]}" for each in dice}
    strips = {group.label: "".join(die(as_die(face).face or 0) for face in group.dice) for group in row.groups if group.strip}
    return {**held, **strips}


def _picker(page: TablePage, grid: BidGrid, chosen: int, add: Add) -> None:
    """Add a number of dice to change by one, and the faces to bid with it."""
    at = grid.rows.index(chosen)

    def change(content: str, step: int, name: str) -> None:
        within = 0 <= at + step < len(grid.rows)
        to = grid.rows[at + step] if within else chosen + step
        why = "" if within else _why_not(page.view, grid.every.get((to, grid.columns[0])))
        button(f"{name} dice", lambda: page.show(quantity=to), content=content, enabled=within, name=name, why=why)

    with ui.element("div").classes("picker").props('role=group aria-label="choose a bid"'):
        with ui.element("div").classes("stepper"):
            change("−", -1, "fewer")
            words(f"{chosen} ×", "quantity").props("aria-live=polite")
            change("+", 1, "more")
        with ui.element("div").classes("faces"):
            for column in grid.columns:
                if (chosen, column) in grid.every:
                    add(die(column), grid.every[chosen, column], name=f"face-{column}", key=str(column))
    every = words("All bids", "tool every", "button").props("type=button data-name=all-bids")
    every.on("click", js_handler=KEPT_OPEN)


def _grid(grid: BidGrid, add: Add) -> None:
    columns = f"grid-template-columns: repeat({len(grid.columns)}, minmax(0, 1fr))"
    with ui.element("div").classes("grid").style(columns).props('role=group aria-label="all bids"'):
        for row in grid.rows:
            for column in grid.columns:
                if (row, column) in grid.every:
                    add(f"<span>{row}×</span>{die(column)}", grid.every[row, column])


def _first_letters(said: Mapping[int, str]) -> dict[int, str]:
    """Return action → the first letter of its words that no other key has."""
    keys: dict[int, str] = {}
    for action, text in said.items():
        letter = next((each for each in text.lower() if each.isalpha() and each not in TAKEN and each not in keys.values()), "")
        keys |= {action: letter} if letter else {}
    return keys


# --- the review --------------------------------------------------------------------------------------------------------


MOST_STEPS = 400  # of a graph; more have no room
MOST_DOTS = 40  # points with a dot each; more would run into each other
SIGNS = {"best": "★", "fine": "✓", "slip": "?", "blunder": "??"}  # of a move's mark
CAUSES = {"luck": "dice and others", "play": "{} play"}
COLOURS = {"luck": "var(--accent)", "play": "var(--own)", "slip": "var(--slip)", "blunder": "var(--bad)"}
# Emits the number of moves at the place of the graph that was clicked.
GO = """event => {{
  const chart = getElement({id}).chart, box = chart.getDom().getBoundingClientRect();
  const place = [event.clientX - box.left, event.clientY - box.top];
  if (chart.containPixel("grid", place)) emit(Math.max(0, Math.ceil(chart.convertFromPixel("grid", place)[0])));
}}"""


def show_note(found: Advice | Review) -> None:
    """Add what values assume. What was drawn for them is its tooltip."""
    if found.note:
        words(sentence(found.note), "words note").props["title"] = sentence(noted(found))


def _chip(mark: str, title: str = "", count: int | None = None) -> str:
    """Return a move's mark as HTML: sign and word, in its colour, with a tooltip. `count`: how many moves have it."""
    text = mark if count is None else f"{count} {mark}{'s' * (count > 1 and mark in ('slip', 'blunder'))}"
    sign = f'<span aria-hidden="true">{SIGNS[mark]}</span>'
    return f'<span class="mark {mark}" title="{html.escape(title or text)}">{sign} {text}</span>'


def _seat_of(page: TablePage, review: Review) -> int | None:
    """Return the seat whose review is shown: the chosen one, that of the person here, or the first."""
    seats = list(review.splits or review.totals)
    wanted = [page.reviewed, page.view.seat, *page.view.sitting.people, *seats]
    return next((seat for seat in wanted if seat in seats), None)


def show_review(page: TablePage, review: Review) -> None:
    """Add the content of the card with a review."""
    view, seat, split = page.view, _seat_of(page, review), None
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
            words(f"{view.name(each)}: {text}", "words total")
    show_note(review)
    words("Save keeps this game. The terminal's command review makes a record of a folder of them.", "words note")


def _whose(page: TablePage, review: Review, seat: int) -> None:
    with ui.element("div").classes("pick small").props('role=group aria-label="whose review"'):
        for each in review.splits:
            made = button(page.view.name(each), functools.partial(page.show, reviewed=each), "tool", name=f"of-{each}")
            made.props["aria-pressed"] = str(each == seat).lower()


def _graph(page: TablePage, review: Review, seat: int) -> None:
    """Add the graph of a seat. A click on it leads to a position."""
    view, split = page.view, review.splits[seat]

    def go(event: events.GenericEventArguments) -> None:
        check_range("position", event.args, 0, len(view.sitting))
        page.jump(event.args)

    numbers = {point.number for point in split.points if point.number}
    entries = [entry for number in numbers for entry in view.history(False, number - 1, number)]
    said = {entry.number: f"{view.name(entry.seat)}: {entry.words}" for entry in entries}
    owner = "your" if seat == view.seat else f"{view.name(seat)}'s"
    what = f"{owner} {'chance to win' if split.scale.unit.is_share else f'expected {split.scale.unit}'}"
    ends = f"{level(split.start, split.scale)} at the start, {level(split.result, split.scale)} at the end"
    chart = ui.echart(chance_graph(split, said, review.by_number, page.shown, owner) | {"title": _words(what)}, renderer="svg")
    chart.classes("graph").props["role"] = "img"
    chart.props["aria-label"] = f"Graph of {what} after each move: {ends}."
    chart.on("click", reporting(go), js_handler=GO.format(id=chart.id))


def show_lesson(page: TablePage, review: Review) -> None:
    """Add the move after the position shown and what would have been better, if the seat of the review moved there."""
    view, at = page.view, page.shown
    move = review.by_number.get(at + 1)
    if move is None or move.seat != _seat_of(page, review):
        return
    split = review.splits.get(move.seat)
    who = "You" if move.seat == view.seat else view.name(move.seat)
    with ui.element("div").classes("lesson").props(f"data-move={move.number}"):
        played = f"{who} played <b>{html.escape(move.words)}</b>{_worth(move.after, split)}."
        markup(f"{_chip(move.mark, move.text)} {played}")
        if move.cost and move.after is None:
            words(f"{move.verdict}.")
        elif move.cost:
            best = html.escape(view.sitting.variant.describe_action(move.best))
            markup(f"Better was <b>{best}</b>{_worth(move.before, split)}.")
        else:
            words("Nothing was better.")
        if view.may_play_on(at):
            title = "this table's game goes on from here; save the finished one first to keep it"
            with ui.element("div").classes("line"):
                button("Play on from here", lambda: view.play_on(at), name="play-on", title=title)


def judged_line(move: Judged) -> str:
    """Return the mark and the cost of a move as HTML, for the history."""
    return f'<span class="notes">{_chip(move.mark, move.text)} {html.escape(move.verdict)}</span>'


def _worth(value: float | None, split: Split | None) -> str:
    return "" if value is None or split is None else f", worth {level(value, split.scale)}"


# --- the graph ---------------------------------------------------------------------------------------------------------


def chance_graph(split: Split, said: Mapping[int, str], judged: Mapping[int, Judged], here: int, owner: str) -> dict[str, Any]:
    """Return the graph of a seat's expected result after each move, as options of ECharts.

    `said` and `judged` have the words of each move by its number, and the cost of the seat's own. `here` is the number of moves
    of the position shown, `owner` as in `your play`.
    """
    points, shares = split.points, split.scale.unit.is_share
    after, seen = Counter(point.number for point in points), Counter[int]()
    dots: list[dict[str, Any]] = []
    own: list[Any] = []  # steps, with a gap after each
    for k, point in enumerate(points):  # those after one move share its width
        seen[point.number] += 1
        x = max(point.number - 1 + seen[point.number] / after[point.number], 0.0)
        spot = (x, 100 * point.value if shares else point.value)
        own += [dots[-1]["value"], spot, (None, None)] if point.by == "play" else []
        style = _dot(point, judged.get(point.number), len(points))
        dots.append({"value": spot, "name": _title(split, k, said, owner), **style})
    play, luck = CAUSES["play"].format(owner), CAUSES["luck"]
    edge, here_line = {"lineStyle": {"color": "var(--edge)"}}, {"lineStyle": {"color": "var(--ink)", "type": "solid"}}
    mark = {"silent": True, "symbol": "none", "label": {"show": False}, "data": [{"xAxis": here}], **here_line}
    axis = {"type": "value", "axisLabel": {"color": "var(--soft)"}, "splitNumber": 4, "splitLine": edge}
    percent = {"max": 100, "interval": 25, "axisLabel": {"color": "var(--soft)", "formatter": "{value} %"}}
    named = {"name": "move", "nameLocation": "middle", "nameGap": 22, "nameTextStyle": {"color": "var(--soft)"}}
    numbers = {"max": max(points[-1].number, 1), "minInterval": 1, "offset": 8, "splitLine": {"show": False}}
    series = {"type": "line", "emphasis": {"disabled": True}}
    return {
        "animation": False,
        "grid": {"left": 4, "right": 14, "top": 40, "bottom": 54, "containLabel": True},
        "legend": {**_words(), "data": [luck, play], "selectedMode": False, "bottom": 0, "icon": "rect", "itemHeight": 3},
        "tooltip": {**_words(), "trigger": "axis", ":formatter": "all => all[0].name", "backgroundColor": "var(--paper)"},
        "xAxis": {**axis, **named, **numbers},
        "yAxis": {**axis, **(percent if shares else {"scale": True})},
        "series": [
            {**series, "name": luck, "data": dots, "color": COLOURS["luck"], "markLine": mark},
            {**series, "name": play, "data": own, "color": COLOURS["play"], "symbol": "none", "lineStyle": {"width": 3.5}},
        ],
    }


def _words(text: str = "") -> dict[str, Any]:
    style = {"color": "var(--soft)", "fontSize": 13, "fontWeight": "normal"}
    return {"text": text, "left": 0, "confine": True, "textStyle": style}


def _title(split: Split, k: int, said: Mapping[int, str], owner: str) -> str:
    """Return a point of the graph in words, as HTML: the move, what could be expected then, and what has changed it."""
    point, before = split.points[k], split.points[max(k - 1, 0)]
    move = f"move {point.number}: {said.get(point.number, '')}" if point.number else "before the first move"
    step = f"{amount(point.value - before.value, split.scale)}, {CAUSES[point.by].format(owner)}"
    return f"{html.escape(move)}<br>{html.escape(f'{level(point.value, split.scale)} ({step})')}"


def _dot(point: Point, judged: Judged | None, count: int) -> dict[str, Any]:
    """Return the look of a point's dot; a slip or a blunder has its sign beside it."""
    mark = judged.mark if judged is not None and point.by == "play" else ""
    if mark not in ("slip", "blunder"):
        return {"symbolSize": 0 if count > MOST_DOTS else 4, "symbol": "circle", "itemStyle": {"color": COLOURS[point.by]}}
    label = {"show": True, "formatter": SIGNS[mark], "position": "bottom", "color": COLOURS[mark], "fontWeight": "bold"}
    return {"symbolSize": 8, "symbol": "circle", "itemStyle": {"color": COLOURS[mark]}, "label": label}
