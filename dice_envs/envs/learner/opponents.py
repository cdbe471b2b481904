"""The agents that a learner plays against."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from dice_envs.agent import Agent, check_plays, resolve
from dice_envs.core.game import Variant
from dice_envs.core.options import shown


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
    else:
        listed = opponents if isinstance(opponents, Sequence) and not isinstance(opponents, str) else [opponents]
        if listed is opponents and len(listed) != others:
            raise ValueError(
                f"opponents must be one agent, a Pool, or {others} agents, one for each other seat, not {len(listed)}"
            )
        agents = [resolve(agent, variant.game.name) for agent in listed]
    for agent in agents:
        check_plays(agent, variant)
    return agents
