"""Players of FateStones: an optimal mixed strategy, the best response to an opponent, and a rule of thumb."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np

from dice_envs.agent import Agent, Drawing, KernelAgent, Promises, Turn, check_needs, check_plays, is_stochastic
from dice_envs.agent.kernel import AgentKernel
from dice_envs.agent.specs import resolve
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import shown
from dice_envs.games.fatestones import MAX_HAND, duel
from dice_envs.games.fatestones.exact import nash_strategies, replies

from .base import Deterministic, OfOneGame, fair_kernel

MOST_NESTED = 8  # levels of best responses to best responses
MOST_NESTED_WAITING = 2  # each further level takes several times as long: with five dice in hand eight seconds a move
ASKED = 500  # positions in which the opponent is asked for one move, about: the number with five dice in hand


@dataclasses.dataclass(frozen=True)
class FateStonesNash(OfOneGame, Drawing):
    """Plays an exact Nash equilibrium of FateStones: no opponent beats it on average."""

    plays = "fatestones"
    promises = Promises(strategy="equilibrium")

    def probabilities(self, turn: Turn) -> np.ndarray:
        self.check_variant(turn.variant)
        return nash_strategies(turn.states, turn.variant.facts.num_actions)


@dataclasses.dataclass(frozen=True)
class BestResponse(OfOneGame, Deterministic):
    """The exact best response to one opponent in FateStones, whose strategy it knows.

    Attributes:
        opponent: spec of the agent that it responds to, such as `random` or `nash`; the agent must state its probabilities.
    """

    plays = "fatestones"

    opponent: str = "random"
    _agent: Agent = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if str(self.opponent).count("best_response") > MOST_NESTED:
            raise ValueError(f"opponent must nest best_response at most {MOST_NESTED} times, not {shown(self.opponent)}")
        agent = resolve(self.opponent, self.plays)
        if not is_stochastic(agent):
            raise ValueError(f"opponent must be an agent that states its probabilities, not {shown(self.opponent)}")
        object.__setattr__(self, "_agent", agent)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or a variant that the opponent does not play."""
        super().check_variant(variant)
        check_plays(self._agent, variant)

    @functools.cached_property
    def promises(self) -> Promises:
        """It needs what its opponent does."""
        return Promises(needs=self._needs)

    def _needs(self, variant: Variant, positions: int) -> None:
        """Raise ValueError for an opponent that takes too long, or best responses nested too deeply."""
        if str(self.opponent).count("best_response") > MOST_NESTED_WAITING:
            raise ValueError(
                f"opponent must nest best_response at most {MOST_NESTED_WAITING} times where people wait for a move, "
                f"not {shown(self.opponent)}"
            )
        try:
            check_needs(self._agent, variant, positions * ASKED)
        except ValueError as problem:
            raise ValueError(f"opponent, which is asked in about {positions * ASKED:,} positions: {problem}") from None

    def gains(self, turn: Turn) -> np.ndarray:
        """Return the expected wins minus losses with each die, (n, MAX_HAND) float64; −2 beyond the hand."""
        self.check_variant(turn.variant)
        out = np.full((len(turn), MAX_HAND), -2.0)
        left = turn.states["left"]
        for seat, size in itertools.product(range(2), range(1, MAX_HAND + 1)):
            mine = np.flatnonzero((turn.seats == seat) & (left == size))
            if len(mine):
                hands = np.ascontiguousarray(turn.states["hands"][mine][:, :, :size])
                streams = turn.streams[mine]
                out[mine] = replies(turn.variant, self._agent, hands, 1 - seat, streams)
                turn.streams[mine] = streams
        return out

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64: of equally good ones the first."""
        return self.gains(turn).argmax(axis=1)


@kernel(allocates=False)
def _strongest(state):
    """Return the mover's die with the most wins minus losses against the opponent's dice; of equal ones the first."""
    seat = np.int64(state["seat"])
    own, other = state["hands"][seat], state["hands"][1 - seat]
    best = 0
    best_margin = -1_000_000
    for i in range(state["left"]):
        margin = 0
        for j in range(state["left"]):
            wins, ties = duel(own[i], other[j])
            margin += 2 * wins + ties
        if margin > best_margin:
            best = i
            best_margin = margin
    return best


@kernel(allocates=False)
def _choose_strongest(params, options, state, stream):
    return _strongest(state)


@kernel
def _roll_out_strongest(params, state, mask):
    """FateStones: plays as the agent `strongest`."""
    return _strongest(state)


@dataclasses.dataclass(frozen=True)
class Strongest(OfOneGame, KernelAgent, Deterministic):
    """FateStones: plays the die with the most wins minus losses against a random one of the opponent's dice.

    Against random play this is best for the current roll; `best_response` also weighs what follows a tie.
    """

    plays = "fatestones"
    promises = Promises(memoryless=True)

    def kernel(self, variant: Variant) -> AgentKernel:
        return fair_kernel(_choose_strongest)


AGENTS = {"best_response": BestResponse, "strongest": Strongest}
LEVELS = {"beginner": "random", "simple player": "strongest", "optimal player": "nash"}
ALIASES = {"heuristic": "strongest"}
ROLLOUTS = {"strongest": _roll_out_strongest}
NASH = {"nash": lambda precision: FateStonesNash()}
