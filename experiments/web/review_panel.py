"""The review of a finished game on the page of a table: luck and play, the graph, the marks of moves and the worst one."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping

from nicegui import events, ui

from dice_envs.core.options import check_range
from dice_envs.experiments.web.graph import MOST_STEPS, SIGNS, chance_graph, level
from dice_envs.experiments.web.parts import button, heading, reporting, words
from dice_envs.experiments.web.table import Place
from dice_envs.table.review import Judged, Review

__all__ = ["ReviewPanel"]

# Emits the number of moves of the graph's column that was clicked.
GO = "event => { const step = event.target.closest('[data-at]'); if (step) emit(Number(step.dataset.at)) }"


def chip(mark: str, title: str = "", count: int | None = None) -> str:
    """Return a move's mark as HTML: sign and word, in its colour, with a tooltip. `count`: how many moves have it."""
    text = mark if count is None else f"{count} {mark}{'s' * (count > 1 and mark in ('slip', 'blunder'))}"
    sign = f'<span aria-hidden="true">{SIGNS[mark]}</span>'
    return f'<span class="mark {mark}" title="{html.escape(title or text)}">{sign} {text}</span>'


def chips(marks: Mapping[str, int]) -> str:
    """Return the chips of all marks with their counts, without those that no move has."""
    return " ".join(chip(mark, count=marks[mark]) for mark in SIGNS if marks.get(mark))


class ReviewPanel:
    """The parts of a table's page that show its review.

    Args:
        place: the place whose page it is.
        name: seat → its name there.
        look: called with a number of moves: shows the position after them.
        refresh: called to show everything again.
    """

    def __init__(
        self,
        place: Place,
        name: Callable[[int], str],
        look: Callable[[int], None],
        refresh: Callable[[], None],
    ) -> None:
        self.place, self.name, self.look, self.refresh = place, name, look, refresh
        self.chosen: int | None = None  # the seat whose graph is shown; None: the usual one

    @property
    def review(self) -> Review | None:
        """The review of the game, if it is over and has been reviewed."""
        return self.place.table.review if self.place.sitting.over else None

    @property
    def seat(self) -> int | None:
        """The seat whose review is shown: the chosen one, that of the person here, or the first."""
        review, place = self.review, self.place
        seats = [] if review is None else list(review.splits or review.totals)
        wanted = [self.chosen, place.seat, *place.sitting.people, *seats]
        return next((seat for seat in wanted if seat in seats), None)

    # --- the card -----------------------------------------------------------------------------------------------------

    def show(self, at: int | None) -> None:
        """Add the content of the card.

        Args:
            at: number of moves of the position shown; None: all.
        """
        review, seat = self.review, self.seat
        if review is None:
            return
        heading("Review")
        if seat is not None:
            self._seat(review, seat, len(self.place.sitting) if at is None else at)
        for each, text in review.texts.items():
            if each != seat or each not in review.splits:
                words(f"{self.name(each)}: {text if text.startswith('nothing') else f'cost {text}'}", "words total")
        if review.note:
            words(review.note[:1].upper() + review.note[1:], "words note")
        words("Save keeps this game. The terminal's command review makes a record of many saved games.", "words note")

    def _seat(self, review: Review, seat: int, at: int) -> None:
        split, worst = review.splits.get(seat), review.worst(seat)
        if len(review.splits) > 1:
            with ui.element("div").classes("pick small").props('role=group aria-label="whose review"'):
                for each in review.splits:
                    classes = "tool chosen" if each == seat else "tool"
                    made = button(self.name(each), self._chooser(each), classes, name=f"of-{each}")
                    made.props["aria-pressed"] = str(each == seat).lower()
        if split is not None:
            words(split.text[:1].upper() + split.text[1:], "split total", "p")
        with ui.element("div").classes("line marks"):
            ui.html(chips(review.marks(seat)), sanitize=False)
        if split is not None:
            numbers = {point.number for point in split.points if point.number and len(split.points) <= MOST_STEPS}
            entries = [entry for number in numbers for entry in self.place.history(False, number - 1, number)]
            said = {entry.number: f"{self.name(entry.seat)}: {entry.words}" for entry in entries}
            owner = "your" if seat == self.place.seat else f"{self.name(seat)}'s"
            graph = chance_graph(split, said, review.by_number, at, owner)
            made_graph = ui.html(graph, sanitize=False).classes("graph-box")
            made_graph.on("click", reporting(self._go), js_handler=GO)
            key = [("luck", "dice and others"), ("play", "own play" if owner != "your" else "your play")]
            ui.html("".join(f'<span class="key {by}">{text}</span>' for by, text in key), sanitize=False).classes("words keys")
        if worst is not None:
            with ui.element("div").classes("line"):
                button("Show me the worst move", lambda: self.look(worst.number - 1), "tool main", name="worst")

    def _chooser(self, seat: int) -> Callable[[], None]:
        def choose() -> None:
            self.chosen = seat
            self.refresh()

        return choose

    def _go(self, event: events.GenericEventArguments) -> None:
        check_range("position", event.args, 0, len(self.place.sitting))
        self.look(event.args)

    # --- one move -----------------------------------------------------------------------------------------------------

    def lesson(self, at: int | None) -> None:
        """Add what was played at the position shown and what would have been better, if the seat of the review moved there."""
        move = None if at is None or self.review is None else self.review.by_number.get(at + 1)
        if move is None or move.seat != self.seat:
            return
        split = self.review.splits.get(move.seat) if self.review is not None else None
        shares = split is not None and split.scale.is_share
        who = "You" if move.seat == self.place.seat else self.name(move.seat)
        with ui.element("div").classes("lesson").props(f"data-move={move.number}"):
            played = f"{who} played <b>{html.escape(move.words)}</b>{_worth(move.after, shares)}."
            ui.html(f"{chip(move.mark, move.text)} {played}", sanitize=False)
            if move.cost and move.after is None:
                words(f"{_cost_of(move)}.")
            elif move.cost:
                best = html.escape(self.place.sitting.variant.describe_action(move.best))
                ui.html(f"Better was <b>{best}</b>{_worth(move.before, shares)}.", sanitize=False)
            else:
                words("Nothing was better.")
            if self.place.may_play_on(move.number - 1):
                title = "this table's game goes on from here; save the finished one first to keep it"
                with ui.element("div").classes("line"):
                    button(
                        "Play on from here", lambda: self.place.play_on(move.number - 1), "tool", name="play-on", title=title
                    )

    def line(self, move: Judged) -> str:
        """Return the mark and the cost of a move as HTML, for the history."""
        return f'<span class="notes">{chip(move.mark, move.text)} {html.escape(_cost_of(move))}</span>'


def _cost_of(move: Judged) -> str:
    """Return the text of a move's cost, without the move."""
    return move.text.removeprefix(f"move {move.number}: {move.words}").lstrip("; ")


def _worth(value: float | None, shares: bool) -> str:
    return "" if value is None else f", worth {level(value, shares)}"
