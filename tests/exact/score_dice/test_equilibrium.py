"""Play at random is an equilibrium of score dice: against it no play earns more than another, and it has the game's value."""

from __future__ import annotations

import numpy as np
import pytest

from dice_envs import configure, response_values
from dice_envs.core.chance import Drawn
from dice_envs.core.game import OVER
from dice_envs.games.score_dice import HELD, MAX_ROLLS
from tests.support.chance import every_deal, every_outcome
from tests.support.subsets import few

OPTIONS = [
    {"pool_a": (3, 2), "pool_b": (2, 2), "ties": "reroll"},
    {"pool_a": (3, 2), "pool_b": (3, 2), "ties": "a"},
    {"pool_a": (2, 2, 2), "pool_b": (2, 2, 2)},
    {"pool_a": (3, 2), "pool_b": (3, 2, 2), "reward": "score"},
    {"pool_a": (3, 2), "pool_b": (3, 3), "ties": "a", "open_hands": True},
    {"pool_a": (2, 2), "pool_b": (2, 2, 2), "ties": "reroll", "reward": "score", "open_hands": True},
]


def worth_against_random(variant, seat):
    """Return what a seat wins from play at random, after a check that each of its dice wins as much, even if it sees all dice.

    Where ties are rolled again, one more roll is left.
    """
    drawn, known = Drawn(variant), {}

    def pair(states, die_a, die_b):
        ((_, picked),) = every_outcome(drawn, states, die_a)
        return sum(
            chance * (float(after["rewards"][0, seat]) + worth(after)) for chance, after in every_outcome(drawn, picked, die_b)
        )

    def worth(states):
        (state,) = states
        if state["seat"] == OVER:
            return 0.0
        key = b"".join(state[name].tobytes() for name in state.dtype.names if name not in ("rng", "rewards"))
        if key not in known:
            held = [np.flatnonzero(state["status"][who] == HELD).tolist() for who in range(2)]
            won = np.array([[pair(states, die_a, die_b) for die_b in held[1]] for die_a in held[0]])
            own = won.mean(axis=1 - seat)
            assert own == pytest.approx([own[0]] * len(own), abs=1e-12)
            known[key] = float(own.mean())
        return known[key]

    total = 0.0
    for chance, states in every_deal(drawn):
        states["rolls"] = MAX_ROLLS - 1 if variant.params.reroll else 1
        total += chance * worth(states)
    return total


@few(2, "options", OPTIONS, ids=str)
def test_no_play_wins_more_from_play_at_random_than_another(options):
    variant = configure("score_dice", **options)
    won = [worth_against_random(variant, seat) for seat in range(2)]
    assert won[0] == pytest.approx(-won[1], abs=1e-12)
    if variant.options.ties != "reroll":
        assert [response_values(variant).start(seat) for seat in range(2)] == pytest.approx(won, abs=1e-12)
