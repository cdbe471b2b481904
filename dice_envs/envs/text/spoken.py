"""Any agent, playing through words."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from dice_envs.agent import Agent, Promises, Turn, check_plays, promises_of, resolve
from dice_envs.core.game import Variant
from dice_envs.envs.text.replies import read_move

__all__ = ["InWords"]


@dataclasses.dataclass(frozen=True)
class InWords:
    """An agent whose every move goes through words: it is said, and what is said is read.

    Its moves are those of the agent itself: words lose nothing. So scripted agents can stand beside language models in
    `benchmark language`. It states no probabilities.

    Attributes:
        agent: an agent or its spec.

    Raises:
        ValueError: the spec names no agent.
        Unreadable: by `act`, if the words of a move name none.
    """

    agent: str | Agent
    _player: Any = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_player", resolve(self.agent))

    @functools.cached_property
    def promises(self) -> Promises:
        """The agent's memory."""
        return Promises(remembers=promises_of(self._player).remembers)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for a variant that the agent does not play."""
        check_plays(self._player, variant)

    def act(self, turn: Turn) -> np.ndarray:
        said = (f"Move: {turn.variant.describe_action(int(action))}" for action in self._player.act(turn))
        return np.array([read_move(turn.variant, reply) for reply in said], np.int64)
