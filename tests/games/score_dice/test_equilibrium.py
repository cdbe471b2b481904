"""Play at random is an equilibrium of score dice: against it no play earns more than another, and it has the game's value."""

import pytest

from dice_envs import Uniform, configure, response_values
from dice_envs.core.chance import Drawn
from dice_envs.games.score_dice import MAX_ROLLS
from tests.support.chance import best_response, every_deal
from tests.support.subsets import few

OPTIONS = [
    {"pool_a": (3, 2), "pool_b": (2, 2), "ties": "reroll"},
    {"pool_a": (3, 2), "pool_b": (3, 2), "ties": "a"},
    {"pool_a": (2, 2, 2), "pool_b": (2, 2, 2)},
    {"pool_a": (3, 2), "pool_b": (3, 2, 2), "reward": "score"},
    {"pool_a": (3, 2), "pool_b": (3, 3), "ties": "a"},
    {"pool_a": (2, 2), "pool_b": (2, 2, 2), "ties": "reroll", "reward": "score"},
]


def dealt(drawn):
    """All deals; where ties are rolled again, one more roll is left."""
    for chance, states in every_deal(drawn):
        states["rolls"] = MAX_ROLLS - 1 if drawn.variant.params.reroll else 1
        yield chance, states


def alike(states, values):
    assert [*values.values()] == pytest.approx([*values.values()][:1] * len(values), abs=1e-12)


@few(2, "options", OPTIONS, ids=str)
def test_no_play_wins_more_from_play_at_random_than_another(options):
    """Not even with open hands."""
    variant = configure("score_dice", open_hands=True, **options)
    drawn = Drawn(variant)
    won = [best_response(drawn, Uniform(), seat, alike, dealt(drawn)) for seat in range(2)]
    assert won[0] == pytest.approx(-won[1], abs=1e-12)
    if variant.options.ties != "reroll":
        assert [response_values(variant).start(seat) for seat in range(2)] == pytest.approx(won, abs=1e-12)
