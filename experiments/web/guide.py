"""The guide of a first game: what to look at and to press next. Its steps follow what the person does."""

from __future__ import annotations

from collections.abc import Sequence

from dice_envs.experiments.web.parts import bullets, button, heading
from dice_envs.experiments.web.table import Place
from dice_envs.table.advice import Advice
from dice_envs.table.rules import rules_in_short

__all__ = ["show_guide"]

STEPS = 5
THEIRS = ("The history lists what they do and roll.",)
LOOK = "The picture shows all that you may know. It is your move. Press Hint before you choose."
WORTH = "A hint says what each choice is worth, such as your chance to win."
BEST = "The best choice comes first, with what it is worth if you play on well from there."
MIXED = "The bars show how often optimal play takes each choice. It mixes them, since others could see through a habit."
CHOOSE = "Now choose one of the moves below the picture."
ONWARD = (
    "The history lists what has happened; click a line to see the table as it was then.",
    "Undo takes your last move back, Odds shows the chances of each choice. Play on to the end.",
)
OVER = ("Press Review: it says how much of the result was luck, and what each of your moves has cost.",)
REVIEWED = (
    "★ is a best move, ✓ a fine one, ? a slip and ?? a blunder. The graph shows your chance after each move.",
    "Show me the worst move leads to the position before it, where you can play on in another way.",
    "New game deals again. Another game leads to all games, options and opponents.",
)


def show_guide(place: Place, hinted: bool, advice: Advice | None) -> None:
    """Add the content of the guide's card: the present step, and a button that ends the guide on all pages of the table.

    Args:
        place: the person's place.
        hinted: whether a hint has been shown.
        advice: the hint shown now, if any.
    """

    def close() -> None:
        place.table.guided = False
        place.table.changed()

    number, title, lines = _step(place, hinted, advice)
    heading(f"Your first game, {number} of {STEPS}: {title}")
    bullets(lines)
    button("Close the guide", close, name="close-guide")


def _step(place: Place, hinted: bool, advice: Advice | None) -> tuple[int, str, Sequence[str]]:
    """Return the number of the present step, its heading and sentences. Steps that lie behind are not shown again."""
    sitting = place.sitting
    if place.table.review is not None:
        return 5, "What a review says", REVIEWED
    if sitting.over:
        return 4, "The end", OVER
    if not place.to_move:
        return 3 if hinted else 1, "The others move", THEIRS
    if not hinted:
        return 1, "The game", (*rules_in_short(sitting.variant), LOOK)
    if advice is None and sitting.latest(sitting.mover):
        return 3, "Play on", ONWARD
    if advice is None:
        return 2, "What a hint says", (WORTH, CHOOSE)
    mixed = [MIXED] if any(row.share for row in advice.rows) else []
    return 2, "What a hint says", (BEST, *mixed, CHOOSE)
