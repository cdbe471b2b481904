"""A player that is one of several agents in each game: what PSRO, fictitious play and pools of past selves learn."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from dice_envs.agent import (
    Agent,
    Promises,
    Turn,
    as_agent,
    ask_probabilities,
    check_plays,
    draw_actions,
    fresh_memory,
    is_stochastic,
    name_of,
    promises_of,
)
from dice_envs.agent.specs import resolve
from dice_envs.core.batch import as_array
from dice_envs.core.game import Variant
from dice_envs.core.options import check_list, shown

FORM = "WEIGHT*AGENT+WEIGHT*AGENT"
_PARTS = re.compile(r"\+(?=[\d.]+(?:e[-+]?\d+)?\*)")


@dataclasses.dataclass(eq=False, repr=False)
class Mixture:
    """A player that draws one of several agents at the beginning of each game, and keeps it to the end of the game.

    It remembers its draw, and what its agents remember. `dice_envs.measure` takes it. As the opponents of a learner each seat
    draws an agent of its own; agents and weights may then be changed between games.

    Attributes:
        agents: whatever `dice_envs.measure` takes. Mixtures among them are taken apart.
        weights: how often each is drawn, not negative; None: equally often.

    Raises:
        ValueError: no agents, an unknown spec, or wrong weights.
        TypeError: one of them is no agent.
    """

    agents: list[Any]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        check_list("agents", self.agents, None, "agents")
        if not len(self.agents):
            raise ValueError("agents must be one or more, not none")
        given, agents = self.agents, [as_agent(each) for each in self.agents]
        self.agents = [each if is_stochastic(each) else resolve(each) for each in agents]
        self._specs = [pair for pair in zip(self.agents, given, strict=True) if isinstance(pair[1], str)]
        shares = self.shares()
        if any(isinstance(each, Mixture) for each in self.agents):
            parts = [(share, each) for share, each in zip(shares, self.agents, strict=True)]
            whole = [Mixture([each]) if not isinstance(each, Mixture) else each for _, each in parts]
            self.weights = [share * inner for (share, _), each in zip(parts, whole, strict=True) for inner in each.shares()]
            self.agents = [inner for each in whole for inner in each.agents]
            self._specs += [pair for each in whole for pair in each._specs]

    def __repr__(self) -> str:
        names = [next((spec for agent, spec in self._specs if agent is each), name_of(each)) for each in self.agents]
        return "mix:" + "+".join(f"{share:.4g}*{name}" for share, name in zip(self.shares(), names, strict=True))

    def shares(self) -> np.ndarray:
        """Return the probability of each agent, (agents,) float64. ValueError for wrong weights."""
        weights = np.ones(len(self.agents)) if self.weights is None else as_array("weights", self.weights)
        odd = weights.dtype.kind not in "biuf" or weights.shape != (len(self.agents),)
        if odd or not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
            raise ValueError(f"weights must be {len(self.agents)} non-negative numbers, not all 0, not {shown(self.weights)}")
        shares: np.ndarray = weights / weights.sum()
        return shares

    @property
    def promises(self) -> Promises:
        """It remembers which agent it is in this game, and what each agent remembers."""
        resigns = any(promises_of(each).resigns for each in self.agents)
        memories = enumerate(fresh_memory(each, 0) for each in self.agents)
        notes = [(f"of {number}", memory.dtype) for number, memory in memories if memory is not None]
        return Promises(remembers=np.dtype([("game", np.int32), *notes]), resigns=resigns)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError if one of the agents does not play the variant."""
        for each in self.agents:
            check_plays(each, variant)

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64. `turn.memory` is modified in place."""
        memory = np.zeros(len(turn), self.promises.remembers) if turn.memory is None else turn.memory
        new = np.flatnonzero(memory["game"] == 0)
        if len(new):
            streams = turn.streams[new]
            memory["game"][new] = 1 + draw_actions(streams, np.tile(self.shares(), (len(new), 1)))
            turn.streams[new] = streams
        actions = np.empty(len(turn), np.int64)
        for number in np.unique(memory["game"]) - 1:
            rows, agent, notes = np.flatnonzero(memory["game"] == number + 1), self.agents[number], f"of {number}"
            own = memory[notes][rows] if notes in (memory.dtype.names or ()) else None
            part = Turn(turn.variant, turn._true_states, turn._index[rows], turn.streams[rows], own)
            if hasattr(agent, "act"):
                actions[rows] = agent.act(part)
            else:
                actions[rows] = draw_actions(part.streams, ask_probabilities(agent, part))
            turn.streams[rows] = part.streams
            if own is not None:
                memory[notes][rows] = own
        return actions


def mix(agents: str) -> Mixture:
    """Draws one of several agents at the beginning of each game, and keeps it to the end of the game.

    Attributes:
        agents: WEIGHT*AGENT+WEIGHT*AGENT, such as 0.7*nash+0.3*random.
    """
    pairs = [part.partition("*") for part in _PARTS.split(agents)]
    try:
        weights = [float(weight) for weight, _, _ in pairs]
    except ValueError:
        raise ValueError(f"a mix is written mix:{FORM}, such as mix:0.7*nash+0.3*random, not {shown(agents)}") from None
    return Mixture([spec for _, _, spec in pairs], weights)


mix.takes_text = True  # type: ignore[attr-defined]  # its parameter is the rest of the spec, commas included


# --- a learner's opponents --------------------------------------------------------------------------------------------


Opponents: TypeAlias = str | Agent | Sequence[str | Agent] | Mixture  # see `dice_envs.envs.learner.SeatGames`


def resolve_opponents(opponents: Opponents, variant: Variant) -> list[Agent]:
    """Return the agents, all of which play the variant; for a Mixture its own list. ValueError for a wrong number of agents, an
    unknown spec, a Mixture among several agents, or an agent that does not play the variant."""
    others = variant.facts.num_seats - 1
    agents: list[Agent]
    if isinstance(opponents, Mixture):
        agents = opponents.agents
    else:
        listed = opponents if isinstance(opponents, Sequence) and not isinstance(opponents, str) else [opponents]
        if listed is opponents and len(listed) != others:
            raise ValueError(
                f"opponents must be one agent, a Mixture, or {others} agents, one for each other seat, not {len(listed)}"
            )
        agents = [resolve(agent, variant.game.name) for agent in listed]
        if any(isinstance(agent, Mixture) for agent in agents):
            raise ValueError("opponents must be one Mixture alone, from which each seat draws, or agents without any")
    for agent in agents:
        check_plays(agent, variant)
    return agents
