"""Any agent, playing through words."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dice_envs.agent import Agent, Turn, check_plays, resolve
from dice_envs.core.game import Variant
from dice_envs.envs.text.prompts import prompt
from dice_envs.envs.text.replies import read_reply

__all__ = ["InWords"]


@dataclasses.dataclass(frozen=True)
class InWords:
    """An agent whose every move goes through words: its prompt is written, its move is said, and what is said is read.

    Its moves are those of the agent itself: words lose nothing. So scripted agents can stand beside language models in
    `benchmark language`. It states no probabilities.

    Attributes:
        agent: an agent or its spec.

    Raises:
        ValueError: the spec names no agent.
        Unreadable, IllegalMove: by `act`, if a move in words is not the move.
    """

    agent: str | Agent
    _player: Any = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_player", resolve(self.agent))

    @property
    def remembers(self) -> Any:
        """The agent's memory; see `dice_envs.Agent`."""
        return getattr(self._player, "remembers", None)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for a variant that the agent does not play."""
        check_plays(self._player, variant)

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64."""
        variant, actions = turn.variant, np.asarray(self._player.act(turn), np.int64)
        streams = turn.streams.copy()
        states = turn.states
        turn.streams[:] = streams  # as the agent left them: what prompts show must not change its next draws
        said = [
            f"{prompt(variant, int(seat), state=state)}\n\nMove: {variant.describe_action(int(action))}"
            for seat, state, action in zip(turn.seats, states, actions, strict=True)
        ]
        return np.array([read_reply(variant, state, text) for state, text in zip(states, said, strict=True)], np.int64)
