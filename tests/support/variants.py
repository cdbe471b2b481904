"""The variants of each game to test. A game that is not listed is tested with its defaults."""

from typing import Any

import numpy as np
import pytest

from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, names

# Options of a variant of each game whose games are short.
SMALL: dict[str, dict[str, Any]] = {
    "liars_dice": {"num_dice": 2},
    "fatestones": {},
    "score_dice": {"pool_a": (6, 6, 6), "pool_b": (8, 6, 4, 4)},
    "shakes": {"num_patients": 4, "goal": 2},
    "thirties": {"rounds": 1},
}

# Of each game that has them, a variant with rewards on the way: the last reward of a game that is lost must compensate.
REWARDED: list[tuple[str, dict[str, Any]]] = [
    ("liars_dice", {}),
    ("liars_dice", {"num_players": 3, "num_dice": 2, "reward": "dice"}),
    ("fatestones", {}),
    ("score_dice", {"reward": "score"}),
    ("shakes", {}),
    ("shakes", {"mode": "maesters", "num_players": 4}),
    ("thirties", {}),
]

MAESTERS = ("<b>Ada", "Ł & Co", "WWWWWWWWWWW WWWWWWWWWWWW", "a longer name with 5 ws")
# Perudo without what rounds cannot be solved with.
SOLVABLE_PERUDO = {"raise_rule": "perudo", "wild": "ones", "palifico": True}
ALL_OF_PERUDO = {**SOLVABLE_PERUDO, "exact_call": True}
# Variants in addition to the default, which is always tested first.
MORE_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "liars_dice": [
        {"num_players": 6, "num_dice": 6, "num_faces": 8},
        {"num_players": 6, "num_dice": 6, "num_faces": 8, "raise_rule": "either", "reward": "dice"},
        {"num_dice": (6, 1), "num_faces": 2, "wild": "ones", "starter": "first"},
        {"num_players": 4, "num_dice": (3, 1, 2, 2), "num_faces": 4, "raise_rule": "either", "wild": "ones"},
        {"rules": "openspiel", "num_dice": 2},
        {"num_dice": 2, "past_rounds": False},
        {"num_players": 3, "num_dice": 2, "reward": "dice"},
        {"num_players": 3, "num_dice": 1, "rounds": "single", "wild": "highest"},
        {"rules": "perudo", "num_players": 3, "num_dice": 2, "num_faces": 3},
        {"rules": "perudo", "num_players": 6, "num_dice": 6, "num_faces": 8, "reward": "dice"},
        {"num_players": 3, "num_dice": (2, 3, 1), "palifico": True},
        {"num_dice": 2, "exact_call": True, "rounds": "single"},
        {"rules": "textarena", "num_players": 3, "num_dice": 2},
        {"raise_rule": "reset_quantity", "num_dice": 2, "num_faces": 3, "wild": "ones", "exact_call": True},
    ],
    "fatestones": [
        {"dice": "all", "hand_size": 5},
        {"dice": (333333, 333333), "hand_size": 1},
        {"hand_size": 1, "scratch": "draw"},
        {"dice": (123456, 111666, 333444, 222555), "hand_size": 2},
    ],
    "score_dice": [
        {"pool_a": (6,) * 24, "pool_b": (6,) * 24, "ties": "reroll"},
        {"pool_a": (100,) * 24, "pool_b": (20, 8, 2), "reward": "score"},
        {"pool_a": (12, 10, 8, 6, 4, 2), "pool_b": (6, 6, 6)},
        {"pool_a": (2,) * 5, "pool_b": (2,) * 5, "ties": "reroll", "open_hands": True},
        {"pool_a": 6, "pool_b": 6},
        {"pool_a": (8, 6, 4, 3), "pool_b": (6, 3), "ties": "reroll"},
        {"pool_a": (4, 4), "pool_b": (6, 6, 6), "ties": "a", "open_hands": True, "reward": "score"},
    ],
    "shakes": [
        {"num_players": 6, "variation": "competitive", "mode": "maesters", "efficacy": 5, "num_patients": 200},
        {"num_players": 2, "mode": "physician", "reward": "win", "ties": "random", "num_patients": 200, "goal": 150},
        {"num_players": 6, "reward": "win", "ties": "random"},
        {"variation": "competitive", "mode": "maesters"},
        {"num_players": 2, "variation": "competitive", "mode": "maesters", "reward": "saved", "efficacy": 4, "num_patients": 6},
        {"mode": "physician", "num_players": 5},
        {"mode": "physician", "num_players": 2, "num_patients": 3, "goal": 2},
        {"num_players": 5, "open_efficacies": True},
        {"mode": "physician", "reward": "win", "open_efficacies": True},
        {"num_players": 4, "treatments": "rules", "maesters": MAESTERS},
    ],
    "thirties": [
        {"num_players": 1, "goal": "minimize_loss", "num_dice": 8, "num_faces": 8, "target": 64},
        {"num_players": 1, "goal": "thirty_or_over"},
        {"num_players": 1},
        {"num_players": 1, "goal": "optimal", "num_dice": 3, "num_faces": 8, "target": 17},
        {"num_players": 6, "rounds": 1, "num_dice": 8, "num_faces": 2, "target": 12},
        {"num_players": 3, "rounds": 2, "num_dice": 1, "num_faces": 4, "target": 2},
    ],
}

VARIANTS = [(name, options) for name in names() for options in [{}, *MORE_OPTIONS.get(name, [])]]
IDS = [f"{name}-{i}" for name in names() for i in range(1 + len(MORE_OPTIONS.get(name, [])))]
MARKED = [  # `make test` plays two of each game
    pytest.param(name, options, marks=[] if options in ({}, *MORE_OPTIONS.get(name, [])[:1]) else [pytest.mark.thorough])
    for name, options in VARIANTS
]
MARKED_ONCE = [pytest.param(*each, marks=[pytest.mark.thorough] if each[1] else []) for each in VARIANTS]  # the default ones


def played(name: str, options: dict[str, Any], plays: int = 25) -> list[list[Any]]:
    """Everything shown in two games, move by move."""
    batch = Batch(name, 2, seed=31, **options)
    out: list[list[Any]] = []
    for _ in range(plays):
        playing = np.flatnonzero(batch.seats != OVER)
        if not len(playing):
            break
        masks = batch.legal()
        out.append([batch.observe().tolist(), masks.tolist(), batch.rewards.tolist(), batch.states["rng"].tolist()])
        batch.play(np.array([np.flatnonzero(m)[len(out) % m.sum()] for m in masks[playing]]), playing)
    return out


def random_states(variant: Any, games: int, seed: int) -> np.ndarray:
    """The states of random games in which a decision is to be made."""
    batch, rng, found = Batch(variant, games, seed=seed), np.random.default_rng(seed), []
    while (playing := np.flatnonzero(batch.seats != OVER)).size:
        found.append(batch.states[playing].copy())
        batch.play(np.array([rng.choice(np.flatnonzero(mask)) for mask in batch.legal()[playing]]), playing)
    return np.concatenate(found)


def rerolled(variant: Any, states: np.ndarray, seats: Any, seed: int) -> np.ndarray:
    """The states with all that is hidden from these seats drawn again."""
    out, index = np.empty_like(states), np.arange(len(states))
    everybody = np.broadcast_to(np.asarray(seats, np.int64), len(states)).copy()
    variant.kernels.reroll(states, index, everybody, new_streams(seed, len(states)), out)
    return out
