"""Advice for the player to move, and reviews of finished games: values of the choices, in one form for all front ends."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.exact import ActionValues, action_values
from dice_envs.exact.odds import MOST_MOVES, odds, random_odds
from dice_envs.table.sitting import Sitting

__all__ = ["Advice", "Judged", "Review", "Row", "figure", "give_hint", "give_odds", "review"]

MOST_REVIEWED = 20 * MOST_MOVES  # limit on the moves of all random games of a review together
NO_COST = 5e-10  # a smaller difference is rounding


@dataclasses.dataclass(frozen=True)
class Row:
    """One choice and its value.

    Attributes:
        action, words: the choice.
        worth: its value, in the advice's unit.
        text: the value as people read it, with its unit and, if it is estimated, its 95 % interval.
        share: the solution's probability of this choice; None where there is no solution.
    """

    action: int
    words: str
    worth: float
    text: str
    share: float | None


@dataclasses.dataclass(frozen=True)
class Advice:
    """Values of all legal choices of the seat to move.

    Attributes:
        title: the meaning of the values.
        rows: the best first.
        note: what the values assume.
    """

    title: str
    rows: tuple[Row, ...]
    note: str


def figure(value: float, values: ActionValues, error: float | None = None) -> str:
    """Return a value as people read it, with the unit of `values`: `61.3 % of games won`, `+0.124 return ± 0.020`."""
    share, unit = values.are_shares, values.unit
    text = f"{100 * value:.1f} {unit}" if share else f"{value:+.3f} {unit}"
    if error is None or math.isnan(error):
        return text
    return f"{text} ± {100 * error:.1f}" if share else f"{text} ± {error:.3f}"


def _values(variant: Variant, state: Any, seed: int, most_moves: int = MOST_MOVES) -> ActionValues:
    """Return exact values, or those of random play where exact ones are unknown or too slow; the note then says why."""
    try:
        return action_values(variant, state, in_passing=True)
    except ValueError as problem:
        sampled = random_odds(variant, state, seed, most_moves=most_moves)
        return sampled._replace(note=f"{sampled.note}; optimal play is not shown: {problem}")


def _advice(variant: Variant, values: ActionValues, title: str) -> Advice:
    legal = np.flatnonzero(~np.isnan(values.values))
    best_first = legal[np.argsort(-values.values[legal], kind="stable")]
    rows = []
    for action in best_first.tolist():
        error = None if values.errors is None else float(values.errors[action])
        worth = float(values.values[action])
        share = None if values.mix is None else float(values.mix[action])
        rows.append(Row(action, variant.describe_action(action), worth, figure(worth, values, error), share))
    return Advice(title, tuple(rows), values.note)


def give_hint(variant: Variant, state: Any, seed: int = 0) -> Advice:
    """Return the value of each choice with optimal play afterwards, or with random play where no optimal play is known.

    Only what the seat to move may know is used. Liar's Dice may have to be solved first, which can take a minute. A variant
    that would take longer is not solved for a hint (see `dice_envs.exact.action_values`).

    Args:
        variant: the game.
        state: one record, in which a seat is to move.
        seed: fixes the sample.

    Raises:
        ValueError: the game is over.
    """
    values = _values(variant, state, seed)
    return _advice(variant, values, "what each choice is worth" + (", estimated" if values.errors is not None else ""))


def give_odds(variant: Variant, state: Any, seed: int = 0) -> Advice:
    """Return the odds of each choice from what the seat to move may know: the game's own, or those of random play.

    Arguments and errors are those of `give_hint`.
    """
    return _advice(variant, odds(variant, state, seed), "the odds")


# --- after the game ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Judged:
    """One move of a review.

    Attributes:
        number, seat, action, words: the move, as in `Entry`.
        cost: value of the best action less that of the move, 0 or more; 0 where a sample cannot tell the two apart.
        best: the best action; `action` itself if the cost is 0.
        text: all this in one line.
    """

    number: int
    seat: int
    action: int
    words: str
    cost: float
    best: int
    text: str


@dataclasses.dataclass(frozen=True)
class Review:
    """Costs of the moves of a game.

    Attributes:
        moves: every move of the reviewed seats at which there was a choice.
        totals: seat → cost of all its moves.
        texts: seat → the same as people read it.
        note: what the values assume.
    """

    moves: tuple[Judged, ...]
    totals: dict[int, float]
    texts: dict[int, str]
    note: str


def review(sitting: Sitting, agents: bool = False, done: Callable[[int, int], Any] = lambda moves, of: None) -> Review:
    """Compare every move of a person with the best one, by the values that `give_hint` shows.

    Args:
        sitting: a game that is over; a review shows what was hidden.
        agents: whether to review the agents' moves too.
        done: progress callback, called with (moves reviewed, moves in all).

    Raises:
        ValueError: the game is not over.
    """
    if not sitting.over:
        raise ValueError("a game is reviewed when it is over")
    variant = sitting.variant
    seats = [seat for seat in range(len(sitting.seats)) if agents or seat in sitting.people]
    moves: list[Judged] = []
    note = ""
    found: ActionValues | None = None
    most_moves = min(MOST_MOVES, MOST_REVIEWED // len(sitting))
    for entry in sitting.history():
        done(entry.number, len(sitting))
        state = sitting.position(entry.number - 1).state
        if entry.seat not in seats or entry.action is None or not _has_choice(variant, state):
            continue
        found = _values(variant, state, entry.number, most_moves)
        moves.append(_judged(variant, found, entry.number, entry.seat, entry.action, entry.words))
        note = note or found.note
    totals = {seat: sum(move.cost for move in moves if move.seat == seat) for seat in seats}
    texts = {seat: f"{_sum(total, found)} in all" if found and total else "nothing lost" for seat, total in totals.items()}
    return Review(tuple(moves), totals, texts, note)


def _has_choice(variant: Variant, state: Any) -> bool:
    mask = np.zeros(variant.facts.num_actions, np.int8)
    variant.game.legal(variant.params, state, mask)
    return int(mask.sum()) > 1


def _judged(variant: Variant, found: ActionValues, number: int, seat: int, action: int, words: str) -> Judged:
    best = int(np.nanargmax(found.values))
    cost = float(found.values[best] - found.values[action])
    blur = NO_COST if found.errors is None else math.hypot(found.errors[best], found.errors[action])
    if cost <= blur:
        return Judged(number, seat, action, words, 0.0, action, f"move {number}: {words}; nothing was better")
    better = f"{variant.describe_action(best)} had {figure(float(found.values[best]), found)}"
    return Judged(number, seat, action, words, cost, best, f"move {number}: {words} cost {_cost(cost, found)}; {better}")


def _cost(cost: float, values: ActionValues) -> str:
    return figure(cost, values).removeprefix("+")


def _sum(cost: float, values: ActionValues) -> str:
    """Return the cost of several moves as people read it."""
    return f"{cost:.2f} {values.counted}" if values.counted else _cost(cost, values)
