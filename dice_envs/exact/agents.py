"""The agent as a game's `measure` sees it: an agent that always states probabilities."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.agent import (
    Agent,
    AgentError,
    Turn,
    Uniform,
    ask,
    ask_probabilities,
    check_plays,
    draw_actions,
    fresh_memory,
    name_of,
    resolve,
)
from dice_envs.core.game import Variant

__all__ = ["COMPARED", "Asked", "asked", "is_uniform", "original"]

COMPARED = 64  # positions with a choice at which probabilities are asked for twice, to see whether they are random
STEADY = 8  # answers that agree row by row, before those that differ in another order of the rows are held against the agent
ROUNDING = 1e-5  # a network's float32 probabilities differ by less where it is asked in batches of other sizes
ANSWERS = 64  # how often an agent that states no probabilities is asked at each position, in each repeat


@dataclasses.dataclass(frozen=True, repr=False)
class _Function:
    """A function from (observations, action masks) to action probabilities, as an agent. Errors name the function."""

    function: Callable[[np.ndarray, np.ndarray], Any]

    observes_only = True

    def __repr__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def probabilities(self, turn: Turn) -> Any:
        chances = self.function(turn.observations, turn.legal)
        if hasattr(chances, "detach"):  # a PyTorch tensor, perhaps one that requires gradients
            chances = chances.detach().cpu()
        return chances

    def act(self, turn: Turn) -> np.ndarray:
        return draw_actions(turn.streams, ask_probabilities(self, turn))


class Asked:
    """An agent that always states probabilities.

    For an agent that only acts these are the frequencies of its answers. Two answers are enough as long as they agree.

    Attributes:
        name: the agent's.
        is_random: whether an answer has depended on the agent's random stream. Another run may then give another result.
        memoryless: whether the agent declares that its choice does not depend on how a position came about.
        observes_only: whether the agent declares that it reads observations and legal actions alone.
        looks_back: False if the agent declares that its choice does not depend on past rounds; None without a declaration.
        played_solution: of an agent that plays a stored solution: variant → the solution, which may be read instead of
            asking the agent; else None.
        played_network: of an agent that plays a network: variant → the network, or None; else None. See
            `dice_envs.agent.Agent`.
    """

    def __init__(self, agent: Any, name: str = "") -> None:
        self.agent = agent
        self.name = name
        self.is_random = False
        self._states_probabilities = hasattr(agent, "probabilities")
        self.memoryless = self._states_probabilities and bool(getattr(agent, "memoryless", False))
        self.observes_only = bool(getattr(agent, "observes_only", False))
        self.looks_back = getattr(agent, "looks_back", None)
        self.played_solution = getattr(agent, "played_solution", None)
        self.played_network = getattr(agent, "played_network", None)
        self._compared = 0  # positions with a choice
        self._largest = 0  # rows of a batch that was compared

    def act(self, turn: Turn) -> np.ndarray:
        if hasattr(self.agent, "act"):
            if turn.memory is None:
                turn.memory = fresh_memory(self.agent, len(turn))
            return np.asarray(self.agent.act(turn))
        return draw_actions(turn.streams, self.probabilities(turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        return self._stated(turn) if self._states_probabilities else self._answered(turn)

    def _stated(self, turn: Turn) -> np.ndarray:
        chances = ask_probabilities(self.agent, turn)
        if self._compares(turn):

            def answer(rows: np.ndarray) -> np.ndarray:  # the streams have moved on, so random answers differ
                again = Turn(turn.variant, turn._true_states, turn._index[rows], turn.streams[rows].copy())
                return ask_probabilities(self.agent, again)

            self._compare(answer, chances)
        return chances

    def _answered(self, turn: Turn) -> np.ndarray:
        everywhere = np.arange(len(turn))
        states = turn._true_states[turn._index]

        def answer(rows: np.ndarray) -> np.ndarray:
            chosen = np.zeros((len(turn), turn.variant.facts.num_actions))
            streams = turn.streams[rows]
            chosen[everywhere, ask(self.agent, turn.variant, states[rows], everywhere, streams)] = 1
            turn.streams[rows] = streams
            return chosen

        first = answer(everywhere)
        answers = first + answer(everywhere)
        if self._compares(turn):
            self._compare(answer, first)
        if (answers == 1).any():
            self.is_random = True
            for _ in range(ANSWERS - 2):
                answers += answer(everywhere)
        return answers / answers.sum(axis=1, keepdims=True)

    def _compares(self, turn: Turn) -> bool:
        """Return whether to compare answers at these positions: after few positions with a choice, or in a large batch.

        An answer may depend on the number of rows, so a batch twice as large as any before is compared, too.
        """
        if self.is_random or (self._compared >= COMPARED and len(turn) < 2 * self._largest):
            return False
        self._largest = max(self._largest, len(turn))
        self._compared += int((Turn(turn.variant, turn._true_states, turn._index, turn.streams).legal.sum(axis=1) > 1).sum())
        return True

    def _compare(self, answer: Callable[[np.ndarray], np.ndarray], first: np.ndarray) -> None:
        """Note whether answers to the same positions differ from the first, which makes the agent a random one.

        Args:
            answer: rows in any order → the answers at these positions, (n, num_actions).
            first: the first answers, all rows in their order.

        Raises:
            AgentError: an answer depends on the row of its position in the batch.
        """
        everywhere = np.arange(len(first))

        def differs(rows: np.ndarray) -> bool:
            return bool((np.abs(answer(rows) - first[rows]) > ROUNDING).any())

        if differs(everywhere):
            self.is_random = True
        elif len(first) > 1 and differs(np.random.default_rng(0).permutation(len(first))):
            if not any(differs(everywhere) for _ in range(STEADY)):
                raise AgentError(
                    f"{self.name or name_of(self.agent)}: its answer at a position depends on the row that the position has in "
                    "the batch; it must be the same in every row"
                )
            self.is_random = True


def asked(agent: str | Agent | Callable[[np.ndarray, np.ndarray], Any], variant: Variant) -> Any:
    """Return the agent as a game's `measure` sees it. `agent` is what `dice_envs.measure` takes.

    Raises:
        ValueError: no such agent, or it does not play the variant.
        TypeError: this is no agent.
    """
    if isinstance(agent, str) or hasattr(agent, "act") or hasattr(agent, "probabilities"):
        name = agent if isinstance(agent, str) else name_of(agent)
        player = resolve(agent) if isinstance(agent, str) else agent
        check_plays(player, variant)
        return Asked(player.for_variant(variant) if hasattr(player, "for_variant") else player, name)
    if callable(agent):
        function = _Function(agent)
        return Asked(function, repr(function))
    raise TypeError(f"an agent is a spec, an object with act or probabilities, or a function, not {agent!r}")


def original(agent: Any) -> Any:
    """Return the agent that was given to `dice_envs.measure`, which wraps it."""
    return getattr(agent, "agent", agent)


def is_uniform(agent: Any) -> bool:
    """Return whether the agent plays uniformly at random, or declares it (`uniform`)."""
    player = original(agent)  # a subclass of `Uniform` may state other probabilities
    return bool(getattr(player, "uniform", False)) or getattr(type(player), "probabilities", None) is Uniform.probabilities
