"""Advice for the player to move: values of the choices, in one form for all front ends."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.exact import ActionValues, action_values
from dice_envs.exact.measuring import MOST_MOVES, odds, random_odds

__all__ = ["Advice", "Row", "figure", "give_hint", "give_odds", "values_of"]


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


def values_of(variant: Variant, state: Any, seed: int, most_moves: int = MOST_MOVES) -> ActionValues:
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
    values = values_of(variant, state, seed)
    return _advice(variant, values, "what each choice is worth" + (", estimated" if values.errors is not None else ""))


def give_odds(variant: Variant, state: Any, seed: int = 0) -> Advice:
    """Return the odds of each choice from what the seat to move may know: the game's own, or those of random play.

    Arguments and errors are those of `give_hint`.
    """
    return _advice(variant, odds(variant, state, seed), "the odds")
