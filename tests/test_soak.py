"""Random play with random options through every interface, checked at every move; FUZZ=1000 makes it run for hours."""

import dataclasses
import itertools
import types
import typing

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dice_envs.core.batch import IllegalActionError
from dice_envs.core.game import configure, load, names
from dice_envs.core.kernel import kernel
from dice_envs.envs.gym import SeatVectorEnv
from tests.conftest import FUZZ
from tests.support.soak_callers import CALLERS, VECTOR_GAMES, play_aec, play_batch, play_vector
from tests.support.soak_loop import FAULTS, Fault, play_compiled

NAMES = ("Ada", "meat", "hot bath", "<b>", "Ł & Co", "x" * 24, '"', "drug 1")  # for options that take names
SMALL = st.integers(1, 8) | st.integers(1, 200)


def values_of(hint):
    """Values of an option's type. Most numbers are small."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return st.one_of(map(values_of, typing.get_args(hint)))
    if typing.get_origin(hint) is typing.Literal:
        return st.sampled_from(typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        faces = st.integers(1, 6) | st.lists(st.integers(1, 6), min_size=6, max_size=6).map(
            lambda each: int("".join(map(str, each)))
        )
        entries = st.sampled_from(NAMES) if typing.get_args(hint)[0] is str else faces
        return st.lists(entries, min_size=1, max_size=8).map(tuple)
    return {bool: st.booleans(), int: SMALL}.get(hint, st.none())


@st.composite
def variants(draw, game):
    """The game with options of the types that their hints allow; those that it refuses are drawn again."""
    hints = typing.get_type_hints(load(game).options)
    chosen = draw(st.fixed_dictionaries({}, optional={name: values_of(hint) for name, hint in hints.items()}))
    try:
        return load(game).configure(**chosen)
    except ValueError:
        assume(False)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:an illegal action has ended a game")
@pytest.mark.parametrize(("game", "caller"), itertools.product(names(), CALLERS))
@settings(max_examples=5 * FUZZ, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nothing_is_broken(game, caller, data):
    variant = data.draw(variants(game))
    if caller == "parallel" and not variant.facts.simultaneous:
        return
    moves = 10_000 if caller == "compiled loop" else 4 * VECTOR_GAMES
    CALLERS[caller](variant, moves, np.random.default_rng(data.draw(st.integers(0, 2**32))))


def test_a_careless_interface_is_found(monkeypatch):
    """One plays illegal actions, and one takes too much from the loser."""
    variant, rng = configure("fatestones"), np.random.default_rng(1)
    step = SeatVectorEnv.step

    def takes_anything(env, actions):
        try:
            return step(env, actions)
        except IllegalActionError:
            return None

    monkeypatch.setattr(SeatVectorEnv, "step", takes_anything)
    with pytest.raises(Fault, match="is not legal, and was played"):
        play_vector(variant, 5000, rng)
    variant.facts = dataclasses.replace(variant.facts, max_return=0.5)
    with pytest.raises(Fault, match="a return is 1"):
        play_aec(variant, 5000, rng)


def test_games_that_end_are_counted_and_dealt_again():
    """Every game of a physician with four patients has four moves."""
    variant = configure("shakes", mode="physician", num_patients=4, goal=1)
    assert play_batch(variant, 13 * VECTOR_GAMES, np.random.default_rng(1)) == 3 * VECTOR_GAMES


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
