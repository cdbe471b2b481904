"""Players of score dice: the two that the paper tabulates, of which one is an equilibrium, and best responses to them."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from dice_envs.agent import KernelAgent, Promises, Turn, Uniform
from dice_envs.agent.kernel import AgentKernel
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.games.score_dice import HELD
from dice_envs.games.score_dice.exact.solvers import check_response, values_against_highest

from .base import Deterministic, OfOneGame, fair_kernel


@kernel(allocates=False)
def _choose_highest(params, options, state, stream):
    """Return the place of the highest die in hand, the first of equal ones."""
    seat = np.int64(state["seat"])
    best = -1
    for die in range(params.num_actions):
        if state["status"][seat, die] == HELD and (best < 0 or state["faces"][seat, die] > state["faces"][seat, best]):
            best = die
    return best


@dataclasses.dataclass(frozen=True)
class Highest(OfOneGame, KernelAgent, Deterministic):
    """Score dice: plays the highest die in hand. Two of these play the paper's sorted game."""

    plays = "score_dice"
    promises = Promises(strategy="highest")

    def kernel(self, variant: Variant) -> AgentKernel:
        return fair_kernel(_choose_highest)


@dataclasses.dataclass(frozen=True)
class Shuffled(OfOneGame, Uniform):
    """Score dice: plays a random die in hand. Two of these play the paper's unsorted game.

    It is an equilibrium with any pools and options. Draw the die that each of the opponent's dice will meet before the first
    column, as a random permutation: at every column the die shown is then any of those left with equal probabilities, as
    here. So the opponent decides only in which order its pairs are shown. What they score, and which dice tie and are rolled
    again, is settled by the roll and the permutation, and so on from roll to roll. No play of the opponent, not even one that
    sees all dice, wins more or less than another.
    """

    plays = "score_dice"
    promises = Promises(memoryless=True, strategy="uniform")


@dataclasses.dataclass(frozen=True)
class Response(OfOneGame, Deterministic):
    """Score dice: the exact best response to `highest`. To `shuffled` any player is one.

    It takes the exact expectation over all that the opponent may still hold, for the rest of the game (with open hands, Tian
    Ji's horse race). Computing this takes seconds for 5d6 and grows fast with the dice.
    """

    plays = "score_dice"

    @functools.cached_property
    def promises(self) -> Promises:
        """Pools whose best response takes more than about half a minute are refused."""
        return Promises(needs=self._needs)

    def _needs(self, variant: Variant, positions: int) -> None:
        self.check_variant(variant)
        check_response(variant.options)

    def act(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        values = values_against_highest(turn.variant, turn.states)
        best = values >= np.nanmax(values, axis=1, keepdims=True) - 1e-9
        faces = turn.states["faces"][np.arange(len(turn)), turn.seats, : values.shape[1]]
        return np.where(best, faces, 0).argmax(axis=1)  # ties go to the highest die, then to the largest


LEVELS = {"simple player": "highest", "optimal player": "random"}
ALIASES = {"heuristic": "highest", "score_nash": "shuffled"}
NASH = {"nash": lambda precision: Shuffled()}
AGENTS = {"highest": Highest, "shuffled": Shuffled, "score_response": Response}
