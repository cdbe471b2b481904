"""The guide of a first game: what to look at and to press next, on the page of the table."""

from __future__ import annotations

from typing import NamedTuple

from nicegui import ui

from dice_envs.experiments.web.parts import button, heading, words
from dice_envs.experiments.web.table import Place
from dice_envs.table.advice import Advice
from dice_envs.table.rules import rules_in_short

__all__ = ["Guide", "Lesson"]


class Lesson(NamedTuple):
    """One step of the guide: its number, a heading and sentences. Steps that lie behind are not shown again."""

    number: int
    title: str
    lines: tuple[str, ...]


STEPS = 5


class Guide:
    """The guide for one person at a table. The steps follow what the person does, so that none can be missed.

    Args:
        place: the person's place.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.hinted = False  # whether a hint has been shown

    def lesson(self, advice: Advice | None) -> Lesson:
        """Return the present step.

        Args:
            advice: the hint shown now, if any.
        """
        place, table = self.place, self.place.table
        self.hinted = self.hinted or advice is not None
        if place.sitting.over:
            return _reviewed() if table.review is not None else _over()
        if not place.to_move:
            return Lesson(3 if self.hinted else 1, "The others move", ("The history lists what they do and roll.",))
        moved = place.person is not None and place.sitting.latest(place.person)
        if not self.hinted:
            return Lesson(
                1,
                "The game",
                (
                    *rules_in_short(place.sitting.variant),
                    "The picture shows all that you may know. It is your move. Press Hint before you choose.",
                ),
            )
        if not moved or advice is not None:
            return Lesson(2, "What a hint says", (*_read(advice), "Now choose one of the moves below the picture."))
        return Lesson(
            3,
            "Play on",
            (
                "The history lists what has happened; click a line to see the table as it was then.",
                "Undo takes your last move back, Odds shows the chances of each choice. Play on to the end.",
            ),
        )

    def show(self, advice: Advice | None) -> None:
        """Add the content of the guide's card."""
        step = self.lesson(advice)
        heading(f"Your first game, {step.number} of {STEPS}: {step.title}")
        with ui.element("ul").classes("rules"):
            for line in step.lines:
                words(line, "words", "li")
        button("Close the guide", self.close, name="close-guide")

    def close(self) -> None:
        """Remove the guide from all pages of the table."""
        self.place.table.guided = False
        self.place.table.changed()


def _read(advice: Advice | None) -> tuple[str, ...]:
    if advice is None:
        return ("Each choice has a worth: what you get if you take it and then play as well as possible.",)
    worth = "The best choice comes first, with what it is worth if you play as well as possible from there."
    if any(row.share for row in advice.rows):
        mixed = "The bars show how often optimal play takes each choice. It mixes them, since others could see through a habit."
        return worth, mixed
    return (worth,)


def _over() -> Lesson:
    return Lesson(
        4, "The end", ("Press Review: it says how much of the result was luck, and what each of your moves has cost.",)
    )


def _reviewed() -> Lesson:
    return Lesson(
        5,
        "What a review says",
        (
            "★ is a best move, ✓ a fine one, ? a slip and ?? a blunder. The graph shows your chance after each move.",
            "Show me the worst move leads to the position before it, where you can play on in another way.",
            "New game deals again. Another game leads to all games, options and opponents.",
        ),
    )
