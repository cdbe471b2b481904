"""Positions at which players are asked, with the exact value of every move."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs import ActionValues, action_values
from dice_envs.core.game import Variant
from dice_envs.evaluation.games import NO_COST, costs_of
from dice_envs.table.sitting import PERSON, Sitting

__all__ = ["Positions", "positions_of"]

EXPLORES = 0.25  # chance of a move at random in the games from which the positions come
MOST_GAMES = 100  # tried for each position that is wanted


@dataclasses.dataclass(frozen=True)
class Positions:
    """Decisions of a game, each from a game of its own.

    Attributes:
        variant: the game.
        states: (n,) states in which a seat has a choice.
        values: the values of each one's moves, by optimal play afterwards.
    """

    variant: Variant
    states: np.ndarray
    values: tuple[ActionValues, ...]

    def __len__(self) -> int:
        return len(self.states)

    @property
    def unit(self) -> str:
        """The unit of the values: "% of games won", "pips" and so on."""
        return self.values[0].unit

    @property
    def note(self) -> str:
        """What the values assume."""
        return self.values[0].note

    def regrets(self, actions: np.ndarray) -> np.ndarray:
        """Return what each of (n,) actions gives away, (n,) float64: the best move's value less its own."""
        return costs_of(np.array([each.values for each in self.values]), actions)


def positions_of(variant: Variant, number: int, seed: int = 0, done: Callable[[int], Any] = lambda amount: None) -> Positions:
    """Draw positions, the same for the same arguments.

    In each game every move is the solution's, or with a chance of a quarter any legal move. Of the decisions that optimal play
    can reach, and whose moves differ in value, one is drawn. Games without any are passed over.

    Args:
        variant: a game whose optimal play is known.
        number: of positions.
        seed: fixes the games.
        done: progress callback, called with the number of positions found since the last call.

    Raises:
        ValueError: optimal play is not known or takes too long, or too few games have such decisions.
    """
    states, values = [], []
    for game in range(number * MOST_GAMES):
        found = _decision(variant, np.random.default_rng([seed, game]))
        if found is None:
            continue
        states.append(found[0])
        values.append(found[1])
        done(1)
        if len(states) == number:
            return Positions(variant, np.array(states), tuple(values))
    raise ValueError(f"only {len(states)} of {number * MOST_GAMES:,} games of {variant} have a decision that matters")


def _decision(variant: Variant, rng: np.random.Generator) -> tuple[Any, ActionValues] | None:
    """Return one decision of a new game, each one as likely; None if there is none."""
    sitting = Sitting(variant, int(rng.integers(2**53)), [PERSON] * variant.facts.num_seats)
    kept, seen = None, 0
    while not sitting.over:
        state = sitting.state
        values = action_values(variant, state, in_passing=True)
        legal = np.flatnonzero(~np.isnan(values.values))
        if values.reached and np.ptp(values.values[legal]) > NO_COST:
            seen += 1
            if rng.integers(seen) == 0:
                kept = state, values
        sitting.play(int(rng.choice(legal) if rng.random() < EXPLORES else _optimal(values, rng)))
    return kept


def _optimal(values: ActionValues, rng: np.random.Generator) -> int:
    """Draw a move of the solution; without one, the best move."""
    if values.mix is None:
        return int(np.nanargmax(values.values))
    return int(rng.choice(len(values.mix), p=values.mix / values.mix.sum()))
