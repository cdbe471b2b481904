"""Rollout policies, by which search plays on from a new node: kernels `(params, state, mask) → a legal action`.

A rollout policy receives the whole state of a simulation, hidden dice included. It should use only what the mover sees.
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
    """Return every rollout policy but RANDOM: name → (game, kernel), from the dictionaries `ROLLOUTS` of the modules."""
    found = {}
    for module in pkgutil.iter_modules(importlib.import_module(__package__).__path__):
        for name, policy in vars(importlib.import_module(f"{__package__}.{module.name}")).get("ROLLOUTS", {}).items():
            found[name] = module.name, policy
    return found


def rollout_of(game: Game, name: str) -> Any:
    """Return the game's rollout kernel of this name. ValueError if there is none."""
    known = [RANDOM, *(known for known, (plays, _) in rollouts().items() if plays == game.name)]
    if name not in known:
        raise ValueError(f"rollout must be one of {', '.join(map(repr, known))} for {game.name}, not {shown(name)}")
    return compile_random_action(game) if name == RANDOM else rollouts()[name][1]
