"""The agent that plays the strategies of the game of 30s, see `dice_envs.games.thirties.exact.strategies`."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.agent import KernelAgent, Turn
from dice_envs.agent.kernel import AgentKernel
from dice_envs.core.dice import counts_of, faces_of
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import shown
from dice_envs.core.own import FORMS, split_own
from dice_envs.games.thirties import MAX_DICE, MAX_FACES, Options
from dice_envs.games.thirties.exact.strategies import NAMES, Rules, Strategy, custom, named, throws

from .base import Deterministic, OfOneGame, fair_kernel


@functools.lru_cache(maxsize=64)
def _chooser(rules: Rules, strategy: str | Strategy | Callable[..., int]) -> Callable[[np.ndarray], int]:
    """Return a strategy's choice at a state record. It is asked once for each throw with what it sees of the dice aside."""
    if isinstance(strategy, str):
        strategy = named(rules, strategy)
    known = strategy if isinstance(strategy, Strategy) else custom(strategy)

    @functools.cache
    def choose(throw: bytes, aside: bytes, total: int) -> int:
        return known.given(faces_of(throw), faces_of(aside) if known.sees == "aside" else total)

    def choose_at(state: Any) -> int:
        aside = state["aside"].tobytes() if known.sees == "aside" else b""
        return choose(state["counts"].tobytes(), aside, int(state["score"]) if known.sees == "total" else 0)

    return choose_at


# C(n, k) at [n, k], 0 where k > n.
_WAYS = np.array([[math.comb(n, k) for k in range(MAX_FACES + 1)] for n in range(MAX_DICE + MAX_FACES + 1)])


@kernel(allocates=False)
def _place_of(counts, num_dice, num_faces):
    """Return the number of a throw of up to `num_dice` dice, given its counts: all such throws are numbered from 0."""
    place = np.int64(0)
    left = np.int64(num_dice)
    for face in range(num_faces):
        others = num_faces - face  # the faces that follow, and one place for dice not thrown
        place += _WAYS[left + others, others] - _WAYS[left - counts[face] + others, others]
        left -= counts[face]
    return place


@kernel(allocates=False)
def _choose_by_throw(params, options, state, stream):
    return np.int64(options["again"][_place_of(state["counts"], options["num_dice"], options["num_faces"])])


@functools.lru_cache(maxsize=64)
def _kernel_of(rules: Rules, name: str) -> AgentKernel | None:
    """Return the kernel of a named strategy, which looks up each throw; None for one that depends on the dice aside."""
    strategy = named(rules, name)
    if not strategy.simple:
        return None
    possible = [throw for count in range(rules.num_dice) for throw, _ in throws(count + 1, rules.num_faces)]
    again = np.zeros(len(possible) + 1, np.int8)  # and no dice at all
    for throw in possible:
        again[_place_of(counts_of(throw), rules.num_dice, rules.num_faces)] = strategy(throw)
    kind = np.dtype([("num_dice", np.int64), ("num_faces", np.int64), ("again", np.int8, again.shape)])
    return fair_kernel(_choose_by_throw, np.array((rules.num_dice, rules.num_faces, again), kind))


@dataclasses.dataclass(frozen=True)
class Thirties(OfOneGame, KernelAgent, Deterministic):
    """Plays the game of 30s by a strategy: how many of the lowest dice to throw again.

    Attributes:
        strategy: "sixes", "fives_and_sixes", "beginner", "heuristic"; the best strategy for a goal: "maximize",
            "minimize_loss", "thirty_or_over", "optimal"; "goal": the best for the environment's goal, with several players
            "optimal"; or FILE.py:NAME or PACKAGE.MODULE:NAME, a function of the throw, or of throw and dice aside. From
            Python also the function itself or a `Strategy`.
    """

    plays = "thirties"

    strategy: str | Strategy | Callable[..., int] = "goal"

    def __post_init__(self) -> None:
        if isinstance(self.strategy, str):
            if self.strategy not in (*NAMES, "goal") and split_own(self.strategy) is None:
                raise ValueError(f"strategy must be one of goal, {', '.join(NAMES)}, or {FORMS}, not {shown(self.strategy)}")
        elif not isinstance(self.strategy, Strategy):
            custom(self.strategy)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or rules under which the strategy does not exist."""
        super().check_variant(variant)
        self._chooser(variant.options)

    def _strategy(self, options: Options) -> str | Strategy | Callable[..., int]:
        if self.strategy == "goal":
            return options.goal if options.num_players == 1 else "optimal"
        return self.strategy

    def _chooser(self, options: Options) -> Callable[[np.ndarray], int]:
        return _chooser(Rules.of(options), self._strategy(options))

    def kernel(self, variant: Variant) -> AgentKernel | None:
        """Return the kernel of a named strategy that depends on the throw alone; other strategies run in Python."""
        strategy = self._strategy(variant.options)
        known = isinstance(strategy, str) and strategy in NAMES
        return _kernel_of(Rules.of(variant.options), str(strategy)) if known else None

    def act(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        if self.kernel(turn.variant) is not None:
            return super().act(turn)
        return np.array(list(map(self._chooser(turn.variant.options), turn.states)), np.int64)


AGENTS = {"thirties": Thirties}
ALIASES = {"heuristic": "thirties:heuristic"}
LEVELS = {"beginner": "thirties:beginner", "sensible player": "thirties:heuristic", "strong player": "thirties"}
