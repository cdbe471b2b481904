"""The review of a finished game on the page of a table: luck and play, the graph, the marks of moves and the worst one."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Mapping

from nicegui import events, ui

from dice_envs.core.options import check_range
from dice_envs.experiments.web.graph import MOST_STEPS, SIGNS, chance_graph, level
from dice_envs.experiments.web.parts import button, heading, markup, reporting, sentence, words
from dice_envs.experiments.web.table import Place
from dice_envs.table.review import Judged, Review

__all__ = ["judged_line", "show_lesson", "show_review"]

# Emits the number of moves of the graph's column that was clicked.
GO = "event => { const step = event.target.closest('[data-at]'); if (step) emit(Number(step.dataset.at)) }"


def _chip(mark: str, title: str = "", count: int | None = None) -> str:
    """Return a move's mark as HTML: sign and word, in its colour, with a tooltip. `count`: how many moves have it."""
    text = mark if count is None else f"{count} {mark}{'s' * (count > 1 and mark in ('slip', 'blunder'))}"
    sign = f'<span aria-hidden="true">{SIGNS[mark]}</span>'
    return f'<span class="mark {mark}" title="{html.escape(title or text)}">{sign} {text}</span>'


def _chips(marks: Mapping[str, int]) -> str:
    """Return the chips of all marks with their counts, without those that no move has."""
    return " ".join(_chip(mark, count=marks[mark]) for mark in SIGNS if marks.get(mark))


def _seat_of(review: Review, place: Place, chosen: int | None) -> int | None:
    """Return the seat whose review is shown: the chosen one, that of the person here, or the first."""
    seats = list(review.splits or review.totals)
    wanted = [chosen, place.seat, *place.sitting.people, *seats]
    return next((seat for seat in wanted if seat in seats), None)


def show_review(
    review: Review,
    place: Place,
    at: int | None,
    chosen: int | None,
    choose: Callable[[int], None],
    look: Callable[[int], None],
) -> None:
    """Add the content of the card.

    Args:
        review: of the game at the place.
        place: the place whose page it is.
        at: number of moves of the position shown; None: all.
        chosen: the seat whose graph is shown; None: the usual one.
        choose: called with another seat.
        look: called with a number of moves: shows the position after them.
    """
    seat, split = _seat_of(review, place, chosen), None
    heading("Review")
    if seat is not None:
        split, worst = review.splits.get(seat), review.worst(seat)
        if len(review.splits) > 1:
            _whose(review, place, seat, choose)
        if split is not None:
            words(sentence(split.text), "split total", "p")
        with ui.element("div").classes("line marks"):
            markup(_chips(review.marks(seat)))
        if split is not None:
            _graph(review, place, seat, at, look)
        if worst is not None:
            with ui.element("div").classes("line"):
                button("Show me the worst move", lambda: look(worst.number - 1), "tool main", name="worst")
    for each, text in review.texts.items():
        if each != seat or split is None:
            words(f"{place.name(each)}: {text if text.startswith('nothing') else f'cost {text}'}", "words total")
    if review.note:
        words(sentence(review.note), "words note")
    words("Save keeps this game. The terminal's command review makes a record of a folder of them.", "words note")


def _whose(review: Review, place: Place, seat: int, choose: Callable[[int], None]) -> None:
    with ui.element("div").classes("pick small").props('role=group aria-label="whose review"'):
        for each in review.splits:
            classes = "tool chosen" if each == seat else "tool"
            made = button(place.name(each), functools.partial(choose, each), classes, name=f"of-{each}")
            made.props["aria-pressed"] = str(each == seat).lower()


def _graph(review: Review, place: Place, seat: int, at: int | None, look: Callable[[int], None]) -> None:
    """Add the graph of a seat, and its key."""

    def go(event: events.GenericEventArguments) -> None:
        check_range("position", event.args, 0, len(place.sitting))
        look(event.args)

    split = review.splits[seat]
    numbers = {point.number for point in split.points if point.number and len(split.points) <= MOST_STEPS}
    entries = [entry for number in numbers for entry in place.history(False, number - 1, number)]
    said = {entry.number: f"{place.name(entry.seat)}: {entry.words}" for entry in entries}
    mine = seat == place.seat
    here = len(place.sitting) if at is None else at
    graph = chance_graph(split, said, review.by_number, here, "your" if mine else f"{place.name(seat)}'s")
    markup(graph).classes("graph-box").on("click", reporting(go), js_handler=GO)
    key = {"luck": "dice and others", "play": "your play" if mine else "own play"}
    markup("".join(f'<span class="key {by}">{text}</span>' for by, text in key.items())).classes("words keys")


def show_lesson(review: Review, place: Place, at: int, chosen: int | None) -> None:
    """Add what was played after move `at` and what would have been better, if the seat of the review moved there."""
    move = review.by_number.get(at + 1)
    if move is None or move.seat != _seat_of(review, place, chosen):
        return
    split = review.splits.get(move.seat)
    shares = split is not None and split.scale.is_share
    who = "You" if move.seat == place.seat else place.name(move.seat)
    with ui.element("div").classes("lesson").props(f"data-move={move.number}"):
        played = f"{who} played <b>{html.escape(move.words)}</b>{_worth(move.after, shares)}."
        markup(f"{_chip(move.mark, move.text)} {played}")
        if move.cost and move.after is None:
            words(f"{_cost_of(move)}.")
        elif move.cost:
            best = html.escape(place.sitting.variant.describe_action(move.best))
            markup(f"Better was <b>{best}</b>{_worth(move.before, shares)}.")
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


def _worth(value: float | None, shares: bool) -> str:
    return "" if value is None else f", worth {level(value, shares)}"
