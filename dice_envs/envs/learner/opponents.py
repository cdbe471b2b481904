"""Opponents of a learner: agents, pools of agents, and their memories."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from dice_envs.agent import Agent, AgentError, ask, check_plays, fresh_memory, name_of, resolve
from dice_envs.core.game import Variant
from dice_envs.core.options import shown

__all__ = ["Memories", "Opponents", "Pool", "resolve_opponents"]


@dataclasses.dataclass
class Pool:
    """A pool of agents: at the start of each game every opposing seat is given one at random.

    Attributes:
        agents: agents or their specs.
        weights: how often each is drawn, not negative; None: equally often. Both may be changed between games.
    """

    agents: list[Any]
    weights: list[float] | None = None

    def __post_init__(self) -> None:
        if not self.agents:
            raise ValueError("a pool needs at least one agent")
        self.agents = [resolve(agent) for agent in self.agents]
        self.shares()

    def shares(self) -> np.ndarray:
        """Return the probability of each agent, (agents,) float64."""
        weights = np.ones(len(self.agents)) if self.weights is None else np.asarray(self.weights, float)
        if weights.shape != (len(self.agents),) or not (weights >= 0).all() or weights.sum() <= 0:
            raise ValueError(f"weights must be {len(self.agents)} non-negative numbers, not all 0, not {shown(self.weights)}")
        shares: np.ndarray = weights / weights.sum()
        return shares


Opponents: TypeAlias = str | Agent | Sequence[str | Agent] | Pool  # see `SeatGames`


def resolve_opponents(opponents: Opponents, variant: Variant) -> list[Agent]:
    """Return the agents, all of which play the variant; for a pool its own list.

    Raises:
        ValueError: wrong number of agents, an unknown spec, or an agent that does not play the variant.
    """
    others = variant.facts.num_seats - 1
    agents: list[Agent]
    if isinstance(opponents, Pool):
        agents = opponents.agents
    elif isinstance(opponents, Sequence) and not isinstance(opponents, str):
        if len(opponents) != others:
            raise ValueError(
                f"opponents must be one agent, a Pool, or {others} agents, one for each other seat, not {len(opponents)}"
            )
        agents = [resolve(agent, variant.game.name) for agent in opponents]
    else:
        agents = [resolve(opponents, variant.game.name)]
    for agent in agents:
        check_plays(agent, variant)
    return agents


class Memories:
    """Memories of the opponents in n games, see `dice_envs.Agent`.

    Attributes:
        records: (n, seats, bytes) uint8, the record of the agent at each place after the learner's, as bytes of its own data
            type; no bytes if no agent has a memory.
    """

    def __init__(self, agents: Sequence[Agent], num_games: int, num_seats: int) -> None:
        sizes = [memory.itemsize for agent in agents if (memory := fresh_memory(agent, 0)) is not None]
        self.records = np.zeros((num_games, num_seats, max(sizes, default=0)), np.uint8)

    def ask(
        self, agent: Agent, variant: Variant, states: np.ndarray, index: np.ndarray, streams: np.ndarray, learners: np.ndarray
    ) -> np.ndarray:
        """Return the agent's actions in the games of `index`, where it is to move. Updates its records.

        Raises:
            AgentError: an action is malformed or not legal, or the agent's memory is larger than any at the beginning.
        """
        memory = fresh_memory(agent, len(states))
        if memory is None:
            return ask(agent, variant, states, index, streams)
        if memory.itemsize > self.records.shape[2]:
            raise AgentError(f"{name_of(agent)} remembers: it must be among the opponents from the beginning")
        places = (states["seat"][index] - learners[index]) % self.records.shape[1]
        held = self.records[index, places, : memory.itemsize]
        memory[index] = np.ascontiguousarray(held).view(memory.dtype)[:, 0]
        actions = ask(agent, variant, states, index, streams, memory)
        self.records[index, places, : memory.itemsize] = memory[index, None].view(np.uint8)
        return actions
