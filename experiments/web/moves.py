"""The legal moves on the page: a row of buttons; for bids a number of dice with a button for each face, and a grid of all."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Callable, Mapping, Sequence

from nicegui import ui

from dice_envs.core.game import Variant
from dice_envs.core.view import Row, as_die
from dice_envs.experiments.web import Place
from dice_envs.experiments.web.parts import FEWER, MORE, TAKEN, button, die, words
from dice_envs.table.advice import Advice

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


def show_moves(
    place: Place,
    advice: Advice | None,
    quantity: int | None,
    play: Callable[[int, int], None],
    pick: Callable[[int], None],
) -> None:
    """Add the buttons of all legal moves of the person to move.

    Args:
        place: the person's place.
        advice: a hint for this position; the buttons then show how often optimal play takes each move.
        quantity: the number of dice that was picked for a bid; None: the one that a hint likes best, or the lowest.
        play: called with an action and the number of moves before it.
        pick: called with a number of dice.
    """
    variant, moves = place.sitting.variant, len(place.sitting)
    shares = {row.action: row.share or 0.0 for row in advice.rows} if advice else {}
    grid, others = arrange(variant, place.sitting.legal())

    def add(content: str, action: int, classes: str = "move", name: str = "", key: str = "") -> None:
        label, share = variant.describe_action(action), shares.get(action, 0.0)
        if share >= LEAST_SHOWN:
            label += f", optimal play does it {100 * share:.0f} % of the time"
            content += f'<span class="often">{100 * share:.0f} %</span>'
            classes += " optimal"
        name = name or f"action-{action}"
        button(label, lambda: play(action, moves), classes, content=content, name=name, key=key)

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
        _picker(grid, _usual_row(grid, shares) if quantity is None else quantity, add, pick)
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


def _picker(grid: BidGrid, chosen: int, add: Add, pick: Callable[[int], None]) -> None:
    """Add a number of dice to change by one, and the faces to bid with it."""
    at = grid.rows.index(chosen)
    fewer, more = grid.rows[max(at - 1, 0)], grid.rows[min(at + 1, len(grid.rows) - 1)]
    with ui.element("div").classes("picker").props('role=group aria-label="choose a bid"'):
        with ui.element("div").classes("stepper"):
            button("fewer dice", lambda: pick(fewer), content="−", enabled=fewer < chosen, name="fewer", key=FEWER)
            words(f"{chosen} ×", "quantity").props("aria-live=polite")
            button("more dice", lambda: pick(more), content="+", enabled=more > chosen, name="more", key=MORE)
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
