"""Players of score dice: the two that the paper tabulates, best responses to them, and Nash equilibria."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Literal

import numpy as np

from dice_envs.agent import Drawing, KernelAgent, Promises, Turn, Uniform
from dice_envs.agent.kernel import AgentKernel
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_choice
from dice_envs.exact.score_dice.solvers import (
    NONE_TIED,
    Equilibrium,
    Rolled,
    Tied,
    check_response,
    known_ranges,
    response_to_highest,
)
from dice_envs.games.score_dice import HELD, PLAYED, Options, highest_held

from .base import Deterministic, OfOneGame, fair_kernel


@kernel(allocates=False)
def _choose_highest(params, options, state, stream):
    return highest_held(params, state, np.int64(state["seat"]))


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

    Every pairing of dice is equally likely, whatever the opponent plays. No opponent can gain or lose by its choices, so this
    is an equilibrium strategy with any pools.
    """

    plays = "score_dice"
    promises = Promises(memoryless=True, strategy="uniform")

    def probabilities(self, turn: Turn) -> np.ndarray:
        """Return equal probabilities of all dice in hand, (n, num_actions) float64."""
        self.check(turn)
        return super().probabilities(turn)


@functools.lru_cache(maxsize=16)
def _equilibrium(options: Options) -> Equilibrium:
    return Equilibrium(options)


def _tied_so_far(options: Options, state: Any, seat: int) -> Tied:
    """Return the sizes of the dice that tied in this roll, the seat's and the other's; none if ties are not rolled again."""
    if options.ties != "reroll":
        return NONE_TIED
    tied: tuple[list[int], list[int]] = ([], [])
    for column in range(state["column"]):
        places = state["shown"][:, column]
        if state["faces"][0, places[0]] == state["faces"][1, places[1]]:
            for who, sizes in enumerate(tied):
                side = seat if who == 0 else 1 - seat
                sizes.append(options.pools[side][places[side]])
    return tuple(sorted(tied[0], reverse=True)), tuple(sorted(tied[1], reverse=True))


@dataclasses.dataclass(frozen=True)
class Response(OfOneGame, Deterministic):
    """Score dice: the exact best response to `highest` or to `shuffled`.

    Against `highest` it takes the exact expectation over all that the opponent may still hold, for the rest of the game
    (with open hands, Tian Ji's horse race). Computing this takes seconds for 5d6 and grows fast with the dice.

    Against `shuffled`, which makes every pairing equally likely, every strategy is a best response; this one plays its
    highest die.

    Attributes:
        to: the opponent, "highest" or "shuffled".
    """

    plays = "score_dice"

    to: Literal["highest", "shuffled"] = "highest"

    def __post_init__(self) -> None:
        check_choice("to", self.to, ("highest", "shuffled"))

    def check_in_passing(self, variant: Variant, asked: int = 1) -> None:
        """Raise ValueError for pools whose best response takes more than about half a minute to compute."""
        self.check_variant(variant)
        if self.to == "highest":
            check_response(variant.options)

    def act(self, turn: Turn) -> np.ndarray:
        self.check(turn)
        if self.to == "shuffled":
            return Highest().act(turn)
        out = np.empty(len(turn), np.int64)
        for seat in range(2):
            mine = turn.seats == seat
            states = turn.states[mine]
            values = response_to_highest(turn.variant.options, seat).action_values(turn.variant, states)
            best = values >= values.max(axis=1, keepdims=True) - 1e-9
            faces = states["faces"][:, seat, : values.shape[1]]
            out[mine] = np.where(best, faces, 0).argmax(axis=1)  # ties go to the highest die, then to the largest
        return out


@dataclasses.dataclass(frozen=True)
class ScoreDiceNash(OfOneGame, Drawing):
    """Score dice: a Nash equilibrium, for small pools (about 3d6 against 3d6; 4 dice a side with open hands).

    Its mixed strategy is computed by linear programming, roll by roll, when first needed. ValueError if the pools are too
    large. `shuffled` is another equilibrium, with pools of any size. Both have the same value, as all equilibria of a
    zero-sum game do.
    """

    plays = "score_dice"

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or pools that are too large."""
        super().check_variant(variant)
        _equilibrium(variant.options)

    def probabilities(self, turn: Turn) -> np.ndarray:
        self.check(turn)
        out = np.zeros((len(turn), turn.variant.facts.num_actions))
        for i, state in enumerate(turn.states):
            seat = int(turn.seats[i])
            held = np.flatnonzero(state["status"][seat] == HELD).tolist()
            dice = _dice(turn, state, seat)
            chances = self._chances(turn, state, seat)
            for place in held:
                alike = sum(dice[other] == dice[place] for other in held)
                out[i, place] = chances[dice[place]] / alike if chances else 1 / len(held)
        return out

    def _chances(self, turn: Turn, state: Any, seat: int) -> dict[Rolled, float]:
        """Return the probability of each distinct die; empty if all are equally good."""
        options = turn.variant.options
        solver = _equilibrium(options)
        columns = range(state["column"])
        left = int(state["columns"]) - len(columns)
        tied = _tied_so_far(options, state, 0)
        score = int(state["score"])
        if left == 1 or solver.decided(score, left + len(tied[0])):
            return {}
        dice = _dice(turn, state, 0), _dice(turn, state, 1)
        if options.open_hands:
            held = state["status"] == HELD
            hand_a, hand_b = (
                tuple(sorted((die for place, die in dice[who].items() if held[who, place]), reverse=True)) for who in range(2)
            )
            _, mix_a, mix_b = solver.open_column(hand_a, hand_b, score, tied)
            return mix_b if seat else mix_a
        past = tuple((dice[0][int(state["shown"][0, column])], dice[1][int(state["shown"][1, column])]) for column in columns)
        score -= sum(solver.points(a.face, b.face) for a, b in past)  # at the start of the roll
        known_a, known_b = (
            tuple(known for _, known in known_ranges(turn.variant, state, who, (HELD, PLAYED))) for who in range(2)
        )
        hand = tuple(sorted(dice[seat].values(), reverse=True))
        return solver.solution(known_a, known_b, score).behaviours[seat][hand, past]


def _dice(turn: Turn, state: Any, seat: int) -> dict[int, Rolled]:
    """Return the seat's dice in this roll, by place. Unshown dice of a hidden hand are samples and must not be used."""
    ranges = known_ranges(turn.variant, state, seat, (HELD, PLAYED))
    return {
        place: Rolled(int(state["faces"][seat, place]), known.size, 1 if turn.variant.options.open_hands else known.low)
        for place, known in ranges
    }


LEVELS = {"simple player": "highest", "optimal player": "random"}
ALIASES = {"heuristic": "highest"}
AGENTS = {"highest": Highest, "shuffled": Shuffled, "score_response": Response, "score_nash": ScoreDiceNash}
