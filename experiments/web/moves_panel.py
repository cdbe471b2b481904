"""The buttons of the legal moves, and for bids a number of dice with a button for each face."""

from __future__ import annotations

import html
from collections.abc import Callable

from nicegui import ui

from dice_envs.experiments.web.moves import Grid, arrange
from dice_envs.experiments.web.parts import button, words
from dice_envs.experiments.web.shortcuts import FEWER, MORE, TAKEN
from dice_envs.experiments.web.style import die
from dice_envs.experiments.web.table import Place
from dice_envs.table.advice import Advice

__all__ = ["MovesPanel"]

LEAST_SHOWN = 0.005  # share of a choice in optimal play from which its button shows it
KEPT_OPEN = "event => event.currentTarget.closest('.moves').classList.toggle('all')"


class MovesPanel:
    """The moves of one browser tab.

    Args:
        place: the target of the link.
        play: called with an action and the number of moves before it.
        refresh: called to show everything again.
    """

    def __init__(self, place: Place, play: Callable[[int, int], None], refresh: Callable[[], None]) -> None:
        self.place, self.play, self.refresh = place, play, refresh
        self.advice: Advice | None = None  # about the present position
        self.quantity: int | None = None  # of the picker; None: the usual one
        self._now = (-1, -1)  # the position of `quantity`

    def show(self, advice: Advice | None) -> None:
        """Add the buttons of all legal moves; after a hint they show how often optimal play takes each."""
        if self._now != self.place.table.now or advice is not self.advice:
            self._now, self.advice, self.quantity = self.place.table.now, advice, None
        variant, legal = self.place.sitting.variant, self.place.sitting.legal()
        grid, others = arrange(variant, legal)
        said = {action: variant.describe_action(action) for action in others}
        keys = _first_letters(said) if grid else {action: str(k) for k, action in enumerate(others[:9], 1)}
        with ui.element("div").classes("line others") as line:
            line.visible = bool(others)
            for action, text in said.items():
                classes = "move main" if grid else "move"
                self._move(html.escape(text), action, classes, f"action-{action}", keys.get(action, ""))
        if grid:
            self._picker(grid)
            self._grid(grid)

    # --- bids ---------------------------------------------------------------------------------------------------------

    def _usual(self, grid: Grid) -> int:
        """Return the number of dice that the picker begins with: of the bid that a hint likes best, or the lowest."""
        placed = {action: row for (row, _), action in grid.actions.items()}
        shares = {row.action: row.share or 0.0 for row in self.advice.rows} if self.advice else {}
        liked = max(placed, key=lambda action: shares.get(action, 0.0))
        return placed[liked] if shares.get(liked) else grid.rows[0]

    def _picker(self, grid: Grid) -> None:
        """Add a number of dice to change by one, and the faces to bid with it."""
        chosen = self._usual(grid) if self.quantity is None else self.quantity
        place = grid.rows.index(chosen)

        def change(by: int) -> Callable[[], None]:
            def run() -> None:
                self.quantity = grid.rows[place + by]
                self.refresh()

            return run

        with ui.element("div").classes("picker").props('role=group aria-label="choose a bid"'):
            with ui.element("div").classes("stepper"):
                button("fewer dice", change(-1), content="−", enabled=place > 0, name="fewer", key=FEWER)
                words(f"{chosen} ×", "quantity").props("aria-live=polite")
                button("more dice", change(1), content="+", enabled=place + 1 < len(grid.rows), name="more", key=MORE)
            with ui.element("div").classes("faces"):
                for column in grid.columns:
                    self._bid(grid, chosen, column, die(column), name=f"face-{column}", key=str(column))
        every = words("All bids", "tool every", "button").props("type=button data-name=all-bids")
        every.on("click", js_handler=KEPT_OPEN)

    def _grid(self, grid: Grid) -> None:
        columns = f"grid-template-columns: repeat({len(grid.columns)}, minmax(0, 1fr))"
        with ui.element("div").classes("grid").style(columns).props('role=group aria-label="all bids"'):
            for row in grid.rows:
                for column in grid.columns:
                    self._bid(grid, row, column, f"<span>{row}×</span>{die(column)}")

    def _bid(self, grid: Grid, row: int, column: int, content: str, name: str = "", key: str = "") -> None:
        action = grid.actions.get((row, column))
        if action is None:
            button(f"{row} x {column}, not possible", _nothing, "move", enabled=False, content=content, name=name)
        else:
            self._move(content, action, "move", name or f"action-{action}", key)

    def _move(self, content: str, action: int, classes: str, name: str, key: str) -> None:
        label, moves = self.place.sitting.variant.describe_action(action), len(self.place.sitting)
        share = next((row.share for row in self.advice.rows if row.action == action), None) if self.advice else None
        if share is not None and share >= LEAST_SHOWN:
            label += f", optimal play does it {100 * share:.0f} % of the time"
            content += f'<span class="often">{100 * share:.0f} %</span>'
            classes += " optimal"
        button(label, lambda: self.play(action, moves), classes, content=content, name=name, key=key)


def _first_letters(said: dict[int, str]) -> dict[int, str]:
    """Return action → the first letter of its words that no other key has."""
    keys: dict[int, str] = {}
    for action, text in said.items():
        letter = next((each for each in text.lower() if each.isalpha() and each not in TAKEN and each not in keys.values()), "")
        keys |= {action: letter} if letter else {}
    return keys


def _nothing() -> None:
    """Action of a disabled button."""
