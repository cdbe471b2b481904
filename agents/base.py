"""What players share: playing one game only, choosing deterministically."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dice_envs.agent import Turn

__all__ = ["Deterministic", "OfOneGame"]


class OfOneGame:
    """A player of one game.

    Attributes:
        plays: the game's name.
    """

    plays: ClassVar[str]

    def check(self, turn: Turn) -> None:
        """Raise ValueError for a turn of another game."""
        if turn.game.name != self.plays:
            from . import factories  # here, because `factories` imports every module of players

            known = [name for name, factory in factories().items() if factory is type(self)]
            raise ValueError(f"{known[0] if known else type(self).__name__} plays {self.plays} only, not {turn.game.name}")


class Deterministic:
    """A player whose policy puts probability 1 on one action."""

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64."""
        raise NotImplementedError

    def probabilities(self, turn: Turn) -> np.ndarray:
        """1 for the action that it plays and 0 for the others, (n, num_actions) float64."""
        chances = np.zeros((len(turn), turn.variant.facts.num_actions))
        chances[np.arange(len(turn)), self.act(turn)] = 1
        return chances
