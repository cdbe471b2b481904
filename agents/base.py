"""What players share: base classes of those with checked parameters, of a single game, and of deterministic ones; and `random`
and `mix`, which play any game.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from dice_envs.agent import Turn, Uniform
from dice_envs.agent.kernel import NO_OPTIONS, AgentKernel
from dice_envs.agent.mixture import mix
from dice_envs.agent.specs import factories, for_game, games_of
from dice_envs.core.game import Variant
from dice_envs.core.options import check_types


def check_game(player: Any, variant: Variant) -> None:
    """Raise ValueError unless the player's `plays` names the game."""
    played = games_of(player)
    if variant.game.name not in played:
        known = [name for name, factory in factories().items() if factory is type(player)]
        raise ValueError(
            f"{known[0] if known else type(player).__name__} plays {' and '.join(played)} only, not {variant.game.name}; "
            f"agents for {variant.game.name} are: {', '.join(for_game(variant.game.name))}"
        )


class Checked:
    """Base class of dataclasses whose fields are checked by their type hints: see `dice_envs.core.options.check_types`."""

    def __post_init__(self) -> None:
        check_types(self)


class OfOneGame:
    """A player of one game.

    Attributes:
        plays: the game's name.
    """

    plays: ClassVar[str]

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game. Subclasses also refuse variants that they do not play."""
        check_game(self, variant)


class Deterministic:
    """A player whose policy puts probability 1 on one action."""

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64."""
        raise NotImplementedError

    def probabilities(self, turn: Turn) -> np.ndarray:
        """Return 1 for the chosen action and 0 for the others, (n, num_actions) float64."""
        chances = np.zeros((len(turn), turn.variant.facts.num_actions))
        chances[np.arange(len(turn)), self.act(turn)] = 1
        return chances


def fair_kernel(choose: Callable[..., int], options: np.ndarray = NO_OPTIONS) -> AgentKernel:
    """Return a player's kernel, with the promises that it reads nothing hidden and that its actions are legal."""
    return AgentKernel(choose, options, reads_hidden=False, always_legal=True)


@dataclasses.dataclass(frozen=True)
class Random(Uniform):
    """Plays a uniformly random legal action."""


AGENTS = {"mix": mix, "random": Random}
