"""Values of choices in FateStones, for one state and for many, against optimal play."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.agent import promises_of
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import ActionValues
from dice_envs.exact.fatestones.positions import nash, new_work
from dice_envs.games.fatestones import MAX_HAND

__all__ = ["action_values", "response_values", "situations"]


@kernel(allocates=False)
def _same_hands(one, other):
    same = True
    for seat in range(2):
        for i in range(MAX_HAND):
            same &= one["hands"][seat, i] == other["hands"][seat, i]
    return same


@kernel
def _against_nash(states, values, mix):
    """Write what each die of the seat to move wins against the other's optimal strategy, and its own strategy.

    NaN and 0 beyond the hand, whose dice are at most the length of a row. In place.
    """
    work = new_work()
    values[:] = np.nan
    mix[:] = 0.0
    for n in range(len(states)):
        state = states[n]
        size = np.int64(state["left"])
        if n == 0 or not _same_hands(state, states[n - 1]):  # else `work` still holds these hands
            nash(state["hands"], size, work)
        for k in range(size):
            values[n, k] = 0.0
            for other in range(size):
                if state["seat"] == 0:
                    values[n, k] += work.payoff[k, other] * work.second[other]
                else:
                    values[n, k] -= work.payoff[other, k] * work.first[other]
            mix[n, k] = work.first[k] if state["seat"] == 0 else work.second[k]


def _values(states: np.ndarray, num_actions: int) -> tuple[np.ndarray, np.ndarray]:
    values, mix = np.empty((len(states), num_actions)), np.empty((len(states), num_actions))
    _against_nash(states, values, mix)
    return values, mix


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """Return what each die wins against the other's optimal mix, given optimal choices after a tie.

    See `dice_envs.exact.GameActionValues`.
    """
    (values,), (mix,) = _values(np.array([state]), variant.facts.num_actions)
    return ActionValues(values, "wins minus losses per draw", "against optimal play; a scratch counts 0", mix)


@dataclasses.dataclass(frozen=True)
class ValuesAgainstNash:
    """Values of choices against the equilibrium; see `dice_envs.exact.ResponseValues`.

    A best response to an equilibrium wins the value of every position, no more. The game is fair before the dice are drawn,
    so its value is 0, and so is that of another draw after a scratch.
    """

    num_actions: int
    unit: str = "return"
    note: str = "against optimal play, with optimal choices after a tie"
    whole_team = False

    def start(self, seat: int) -> float:
        """Return 0: both seats draw from one bag and choose at the same time."""
        return 0.0

    def action_values(self, states: np.ndarray) -> np.ndarray:
        """Return wins minus losses with each die, (n, hand_size) float64, NaN for dice that are gone."""
        return _values(states, self.num_actions)[0]


def response_values(
    variant: Variant, opponent: Any, /, done: Callable[[float, float], Any] = lambda amount, total: None
) -> ValuesAgainstNash:
    """Return the values of choices against the agent `nash`. See `dice_envs.exact.GameResponseValues`.

    Raises:
        ValueError: another opponent.
    """
    if promises_of(opponent).strategy != "equilibrium":
        raise ValueError(
            f"opponent must be nash for the values of choices, not {opponent.name}: what a best response to another wins "
            "before the dice are drawn is not known, since there are too many draws"
        )
    return ValuesAgainstNash(variant.facts.num_actions)


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return a heading for decisions: the dice left in each hand. See `dice_envs.exact.GameSituations`."""
    dice = np.array(["", "1 die each", *(f"{count} dice each" for count in range(2, MAX_HAND + 1))])
    return {"dice left": dice[states["left"]]}
