"""Advice for whoever is to move, and a review of a game: what is known of each choice, in one form for all front ends."""

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

MOST_REVIEWED = 20 * MOST_MOVES  # moves that all random games of a review may take together
NO_COST = 5e-10  # below this, choices are equally good but for rounding


@dataclasses.dataclass(frozen=True)
class Row:
    """What is known of one choice.

    Attributes:
        action, words: the choice.
        worth: its value, in the advice's unit.
        text: the value as people read it, with its unit and, if it is estimated, its 95 % interval.
        share: how often the solution takes it, 0 to 1; None where there is no solution.
    """

    action: int
    words: str
    worth: float
    text: str
    share: float | None


@dataclasses.dataclass(frozen=True)
class Advice:
    """What is known of every legal choice of the seat to move.

    Attributes:
        title: what the figures are.
        rows: the best first.
        note: what the figures assume.
    """

    title: str
    rows: tuple[Row, ...]
    note: str


def figure(value: float, unit: str, error: float | None = None) -> str:
    """A value with its unit: `61.3 % of games won`, `+0.124 return ± 0.020`."""
    share = unit.startswith("%")
    scaled = 100 * value if share else value
    text = f"{scaled:.1f} {unit}" if share else f"{scaled:+.3f} {unit}"
    if error is None or math.isnan(error):
        return text
    return f"{text} ± {100 * error:.1f}" if share else f"{text} ± {error:.3f}"


def _values(variant: Variant, state: Any, seed: int, most_moves: int = MOST_MOVES) -> ActionValues:
    """The exact values, or those of random play where none are known or they take too long; the note says why."""
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
        rows.append(Row(action, variant.describe_action(action), worth, figure(worth, values.unit, error), share))
    return Advice(title, tuple(rows), values.note)


def give_hint(variant: Variant, state: Any, seed: int = 0) -> Advice:
    """What each choice is worth: with optimal play afterwards, or with random play where no optimal play is known.

    It depends on what the seat to move may know alone. Liar's Dice may have to be solved first, which can take a minute; what
    would take longer is not solved for a hint (see `dice_envs.exact.action_values`).

    Args:
        variant: the game.
        state: one record, in which a seat is to move.
        seed: fixes what is sampled.

    Raises:
        ValueError: the game is over.
    """
    values = _values(variant, state, seed)
    return _advice(variant, values, "what each choice is worth" + (", estimated" if values.errors is not None else ""))


def give_odds(variant: Variant, state: Any, seed: int = 0) -> Advice:
    """The odds of each choice, from what the seat to move may know: the game's own, or those of random play. As `give_hint`."""
    return _advice(variant, odds(variant, state, seed), "the odds")


# --- after the game ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Judged:
    """One move of a review.

    Attributes:
        number, seat, action, words: the move, as in `Entry`.
        cost: how much less than the best it was worth, 0 or more; 0 too where a sample cannot tell the two apart.
        best: the best action, which is `action` if it cost nothing.
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
    """What the moves of a game have cost.

    Attributes:
        moves: every move of the seats in question at which there was a choice.
        totals: seat → what its moves have cost together.
        texts: seat → the same as people read it.
        note: what the figures assume.
    """

    moves: tuple[Judged, ...]
    totals: dict[int, float]
    texts: dict[int, str]
    note: str


def review(sitting: Sitting, agents: bool = False, done: Callable[[int, int], Any] = lambda moves, of: None) -> Review:
    """What every move of a person cost against the best one, by the values that `give_hint` shows.

    Args:
        sitting: a game that is over: before that, the review would show what seats know.
        agents: agents' moves too.
        done: called with progress, as (moves looked at, moves in all).

    Raises:
        ValueError: the game is not over.
    """
    if not sitting.over:
        raise ValueError("a game is reviewed when it is over")
    variant = sitting.variant
    seats = [seat for seat in range(len(sitting.seats)) if agents or seat in sitting.people]
    moves, note, unit = [], "", ""
    most_moves = min(MOST_MOVES, MOST_REVIEWED // len(sitting))
    for entry in sitting.history():
        done(entry.number, len(sitting))
        state = sitting.position(entry.number - 1).state
        if entry.seat not in seats or entry.action is None or not _has_choice(variant, state):
            continue
        found = _values(variant, state, entry.number, most_moves)
        moves.append(_judged(variant, found, entry.number, entry.seat, entry.action, entry.words))
        note, unit = note or found.note, found.unit
    totals = {seat: sum(move.cost for move in moves if move.seat == seat) for seat in seats}
    texts = {seat: f"{_sum(total, unit)} in all" if total else "nothing lost" for seat, total in totals.items()}
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
    better = f"{variant.describe_action(best)} had {figure(float(found.values[best]), found.unit)}"
    return Judged(number, seat, action, words, cost, best, f"move {number}: {words} cost {_cost(cost, found.unit)}; {better}")


def _cost(cost: float, unit: str) -> str:
    return figure(cost, unit).removeprefix("+")


def _sum(cost: float, unit: str) -> str:
    """Of several moves. Shares of a game add up to games: a sum may be more than 100 %."""
    return f"{cost:.2f} {unit.removeprefix('% of ')}" if unit.startswith("% of ") else _cost(cost, unit)
