"""Values of choices against a fixed opponent: many states in one call, beside calls with one state."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from dice_envs import Batch, action_values, configure, response_values
from dice_envs.core.game import OVER
from dice_envs.experiments.bench import BenchRow, Part, best_rate

__all__ = ["PARTS"]

# By game: the options, and the opponent (None: the player has all seats).
_CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "fatestones": ({}, "nash"),
    "score_dice": ({}, "nash"),
    "shakes": ({}, None),
    "thirties": ({"num_players": 1}, None),
}


def _choices(game: str, quick: bool) -> Iterator[BenchRow]:
    """Time the values of choices in random games."""
    options, opponent = _CASES[game]
    variant = configure(game, **options)
    values = response_values(variant, opponent)
    batch = Batch(variant, 2_000 if quick else 20_000, seed=1)
    mask = np.zeros(variant.facts.num_actions, np.int8)
    variant.kernels.wander(variant.params, batch.states, np.arange(batch.num_games), mask)
    states = batch.states[batch.seats != OVER]
    ours = best_rate(lambda: values.action_values(states), len(states))
    peer = best_rate(lambda: [action_values(variant, state) for state in states[:200]], 200)
    name = f"{game}: values of choices against {opponent}" if opponent else f"{game}: values of choices"
    yield BenchRow(name, ours, "/s", 300_000, peer, "one state a call")


PARTS = tuple(Part(game, functools.partial(_choices, game)) for game in _CASES)
