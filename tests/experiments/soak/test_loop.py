"""The compiled loop finds every kind of broken promise."""

import dataclasses

import numpy as np
import pytest

from dice_envs.core.game import configure, load
from dice_envs.core.kernel import kernel
from dice_envs.experiments.soak.loop import FAULTS, Fault, play_compiled


def lying(**facts):
    """FateStones with a false promise."""
    variant = configure("fatestones")
    variant.facts = dataclasses.replace(variant.facts, **facts)
    return variant


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ({"max_steps": 1}, "a game outlasts Facts.max_steps"),
        ({"max_return": 0.5}, "a return is not from Facts.min_return to Facts.max_return"),
        ({"num_seats": 1}, "the seat to move does not exist"),
    ],
)
def test_a_broken_promise_is_found(facts, fault):
    assert fault in FAULTS
    with pytest.raises(Fault, match=fault):
        play_compiled(lying(**facts), 2000, np.random.default_rng(1))


def test_returns_that_do_not_add_up_are_found():
    variant = configure("thirties", num_players=1)
    assert play_compiled(variant, 500, np.random.default_rng(1)) > 10
    variant.facts = dataclasses.replace(variant.facts, zero_sum=True)
    with pytest.raises(Fault, match="returns do not sum to 0"):
        play_compiled(variant, 500, np.random.default_rng(1))


@pytest.mark.thorough
@pytest.mark.parametrize("breaks", ["hides", "shows", "masks"])
def test_a_game_that_breaks_the_contract_is_found(breaks):
    game = load("thirties")
    reroll_hidden, observe, legal = game.reroll_hidden, game.observe, game.legal

    @kernel
    def rerolls_what_is_seen(params, state, seat):
        reroll_hidden(params, state, seat)
        state["seat"] = (state["seat"] + 1) % 2

    @kernel
    def shows_too_much(params, state, seat, out):
        observe(params, state, seat, out)
        out[0] = 1.5

    @kernel
    def marks_twice(params, state, mask):
        legal(params, state, mask)
        mask[0] += 2

    changed, fault = {
        "hides": ({"reroll_hidden": rerolls_what_is_seen}, "what is hidden from a seat"),
        "shows": ({"observe": shows_too_much}, "an observation is not from 0 to 1"),
        "masks": ({"legal": marks_twice}, "a mask has entries other than 0 and 1"),
    }[breaks]
    variant = dataclasses.replace(game, name=f"broken_{breaks}", **changed).configure()
    with pytest.raises(Fault, match=fault):
        play_compiled(variant, 2000, np.random.default_rng(1))
