"""Values of choices in the game of 30s, for one state and for many."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import ActionValues
from dice_envs.exact.thirties.solution import solve, values_before
from dice_envs.exact.thirties.strategies import Rules, check_alone
from dice_envs.games.thirties import MAX_FACES

__all__ = ["action_values", "response_values", "situations"]

_COUNTED = {"maximize": "pips", "minimize_loss": "points", "thirty_or_over": "turns at the target or over"}


@kernel
def _look_up(states, before, out):
    """Write the value of throwing 0, 1, … of the lowest dice again; NaN for illegal actions. In place."""
    out[:] = np.nan
    for i in range(len(states)):
        state = states[i]
        kept = np.int64(state["score"])  # pips aside after the action
        for k in range(MAX_FACES):
            kept += np.int64(state["counts"][k]) * (k + 1)
        face, left = 0, np.int64(state["counts"][0])
        for again in range(state["thrown"]):  # at most num_dice, the length of a row
            out[i, again] = before[again, kept]
            while left == 0:  # ends: of the dice on the table `again` are counted so far
                face += 1
                left = np.int64(state["counts"][face])
            left -= 1
            kept -= face + 1


def _values(before: np.ndarray, states: np.ndarray) -> np.ndarray:
    out = np.empty((len(states), len(before) - 1))
    _look_up(states, before, out)
    return out


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """Return the value of each choice for the goal of one player, or at a table for the points of the turn.

    See `dice_envs.exact.GameActionValues`.
    """
    options = variant.options
    goal = options.goal if options.num_players == 1 else "optimal"
    rules = Rules.of(options)
    (values,) = _values(values_before(rules, goal), np.array([state]))
    throw = tuple(np.repeat(np.arange(1, MAX_FACES + 1), state["counts"]).tolist())
    mix = np.zeros(variant.facts.num_actions)
    mix[solve(rules, goal)[0].given(throw, int(state["score"]))] = 1.0
    note = f"with the best choices for the goal {goal} afterwards"
    if options.num_players > 1:
        note = "points given to the next player less those got, with the best choices afterwards; ignores the current score"
    unit = _COUNTED.get(goal, "points")
    return ActionValues(values, f"% of {unit}" if goal == "thirty_or_over" else unit, note, mix)


@dataclasses.dataclass(frozen=True)
class GoalValues:
    """Values of one player's choices for the goal; see `dice_envs.exact.ResponseValues`."""

    before: np.ndarray  # see `values_before`
    unit: str
    note: str
    whole_team = True

    def start(self, seat: int) -> float:
        """Return the expected reward with the best choices."""
        return float(self.before[-1, 0])

    def action_values(self, states: np.ndarray) -> np.ndarray:
        """Return the expected reward after each choice, (n, num_dice) float64, NaN for illegal ones."""
        return _values(self.before, states)


def response_values(
    variant: Variant, opponent: Any, /, done: Callable[[float, float], Any] = lambda amount, total: None
) -> GoalValues:
    """Return the values of choices for the goal of one player. See `dice_envs.exact.GameResponseValues`.

    The reward of "optimal" is expected over the second stage, whose throws are therefore luck.

    Raises:
        ValueError: the variant is the table game.
    """
    check_alone(variant, "the values of choices")
    goal = variant.options.goal
    note = f"with the best choices for the goal {goal} afterwards"
    return GoalValues(values_before(Rules.of(variant.options), goal), _COUNTED.get(goal, "points given less points got"), note)


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return headings for decisions: the dice on the table, and whether some are thrown again. See `GameSituations`."""
    dice = np.array(["", "1 die", *(f"{count} dice" for count in range(2, variant.options.num_dice + 1))])
    return {
        "dice on the table": dice[states["thrown"]],
        "choice": np.where(np.asarray(actions) == 0, "keep all", "throw some again"),
    }
