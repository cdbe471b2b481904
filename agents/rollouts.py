"""Rollout policies, by which search continues from a new node: kernels `(params, state, mask) → a legal action`.

A rollout policy gets the whole state of a simulation, hidden dice included. It should use only what the mover sees.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Any

from dice_envs.core.game import Game
from dice_envs.core.loops import compile_random_action
from dice_envs.core.options import shown

__all__ = ["RANDOM", "rollout_of", "rollouts"]

RANDOM = "random"


@functools.cache
def rollouts() -> dict[str, tuple[str, Any]]:
    """Every rollout policy but RANDOM: name → (game, kernel), from the dictionaries `ROLLOUTS` of the games' modules."""
    found = {}
    for module in pkgutil.iter_modules(importlib.import_module(__package__).__path__):
        for name, policy in getattr(importlib.import_module(f"{__package__}.{module.name}"), "ROLLOUTS", {}).items():
            found[name] = module.name, policy
    return found


def rollout_of(game: Game, name: str) -> Any:
    """The rollout kernel of that name. ValueError if the game has none of that name."""
    known = [RANDOM, *(known for known, (plays, _) in rollouts().items() if plays == game.name)]
    if name not in known:
        raise ValueError(f"rollout must be one of {', '.join(map(repr, known))} for {game.name}, not {shown(name)}")
    return compile_random_action(game) if name == RANDOM else rollouts()[name][1]
