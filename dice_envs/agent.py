"""What an agent sees and returns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dice_envs.dice import choose_from_mask
from dice_envs.game import Game, Variant
from dice_envs.kernel import kernel

__all__ = ["Agent", "Turn", "Uniform", "ask", "register_specs", "resolve"]


class Turn:
    """n games in which a seat is to move, as the agent that moves there may see them.

    Everything is computed when first asked for and is valid during `act` only. Asking changes no game.

    Attributes:
        variant: the game with its options; `game`, `params` and `facts` are its parts.
        seats: (n,) int64, the seat that is to move in each game.
        streams: (n,) `dice_envs.dice.STREAM`, the agent's own random stream for each game. Agents draw from
            it in place, so their choices depend on each game's seed and not on which games share a batch.
    """

    def __init__(self, variant: Variant, states: np.ndarray, index: np.ndarray, streams: np.ndarray) -> None:
        self.variant = variant
        self._true_states = states
        self._index = index
        self.seats = states["seat"][index].astype(np.int64)
        self.streams = streams

    def __len__(self) -> int:
        return len(self._index)

    @property
    def game(self) -> Game:
        return self.variant.game

    @property
    def params(self) -> Any:
        return self.variant.params

    @functools.cached_property
    def observations(self) -> np.ndarray:
        """(n, observation_size) float32."""
        out = np.empty((len(self), self.variant.facts.observation_size), np.float32)
        self.variant.kernels.observe(self.params, self._true_states, self._index, self.seats, out)
        return out

    @functools.cached_property
    def legal(self) -> np.ndarray:
        """(n, num_actions) int8, 1 where the action is legal; at least one is."""
        masks = np.empty((len(self), self.variant.facts.num_actions), np.int8)
        self.variant.kernels.legal(self.params, self._true_states, self._index, masks)
        return masks

    @functools.cached_property
    def states(self) -> np.ndarray:
        """(n,) states in which all that the mover cannot see, the dice to come included, is drawn again."""
        out = np.empty(len(self), self.game.state)
        self.variant.kernels.reroll(self.params, self._true_states, self._index, self.seats, self.streams, out)
        return out

    @functools.cached_property
    def rng(self) -> np.random.Generator:
        """A generator seeded from the agent's own streams, for agents that draw with NumPy."""
        seeds = self.streams["rng"].copy()
        self.streams["rng"] += np.uint64(0x9E3779B97F4A7C15)
        return np.random.default_rng(seeds)


@runtime_checkable
class Agent(Protocol):
    """A player. It may also offer `probabilities(turn) -> (n, num_actions) float64`, its stochastic policy."""

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game of the turn, (n,) int64."""
        ...


def ask(agent: Agent, variant: Variant, states: np.ndarray, index: np.ndarray, streams: np.ndarray) -> np.ndarray:
    """The agent's action for each game of `index`, (m,) int64. `streams`, one a game of `states`, is modified in place."""
    own = streams[index]
    actions = np.asarray(agent.act(Turn(variant, states, index, own)))
    streams[index] = own
    if actions.shape != index.shape or actions.dtype.kind not in "iu":
        raise TypeError(
            f"{type(agent).__name__}.act must return {len(index)} integers, not {actions.dtype} of shape {actions.shape}"
        )
    return actions.astype(np.int64, copy=False)


@kernel
def _choose_all(streams, masks, actions):
    for k in range(len(masks)):
        actions[k] = choose_from_mask(streams[k], masks[k])


class Uniform:
    """Plays a uniformly random legal action. Named `random` on the command line."""

    def act(self, turn: Turn) -> np.ndarray:
        actions = np.empty(len(turn), np.int64)
        _choose_all(turn.streams, turn.legal, actions)
        return actions

    def probabilities(self, turn: Turn) -> np.ndarray:
        legal = turn.legal.astype(np.float64)
        return legal / legal.sum(axis=1, keepdims=True)


_make_agent: list[Callable[[str], Agent]] = []  # what turns other specs into agents; `agents` puts its own here


def register_specs(make: Callable[[str], Agent]) -> None:
    """Let environments take agent specs such as "numbers:bluff=0.25": `make` turns one into an agent."""
    _make_agent[:] = [make]


def resolve(agent: str | Agent) -> Agent:
    """An agent from an agent or its spec. `random` is always known; `import agents` adds the others.

    Raises:
        ValueError: the spec names no known agent.
        TypeError: neither a spec nor an object with `act`.
    """
    if isinstance(agent, str):
        if agent == "random":
            return Uniform()
        if not _make_agent:
            raise ValueError(f"unknown agent {agent!r}; without `import agents` only 'random' and Agent objects are known")
        return _make_agent[0](agent)
    if not isinstance(agent, Agent):
        raise TypeError(f"an agent is a spec or an object with an act method, not {agent!r}")
    return agent
