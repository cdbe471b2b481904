"""The soak finds what is broken, tries every option, and finds nothing in the games as they are."""

import dataclasses
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dice_envs.core.batch import IllegalActionError
from dice_envs.core.game import configure, load, names
from dice_envs.core.kernel import kernel
from dice_envs.experiments import soak as soaking
from dice_envs.experiments.__main__ import app
from dice_envs.experiments.soak import (
    CALLERS,
    FAULTS,
    VECTOR_GAMES,
    Fault,
    play_aec,
    play_batch,
    play_compiled,
    play_vector,
    random_variant,
    soak,
)


@pytest.mark.parametrize("name", names())
def test_every_option_is_tried(name):
    game, rng = load(name), np.random.default_rng(1)
    options = [dataclasses.asdict(random_variant(game, rng).options) for _ in range(300)]
    for option in options[0]:
        assert len({str(each[option]) for each in options}) > 1, option


def lying(**facts):
    """FateStones that promises something else."""
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


@pytest.mark.slow
@pytest.mark.parametrize("breaks", ["hides", "shows", "masks"])
def test_a_game_that_breaks_the_contract_is_found(breaks):
    game = load("thirties")
    reroll_hidden, observe, legal = game.reroll_hidden, game.observe, game.legal

    @kernel(cache=False)
    def rerolls_what_is_seen(params, state, seat):
        reroll_hidden(params, state, seat)
        state["seat"] = (state["seat"] + 1) % 2

    @kernel(cache=False)
    def shows_too_much(params, state, seat, out):
        observe(params, state, seat, out)
        out[0] = 1.5

    @kernel(cache=False)
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


def test_a_careless_interface_is_found(monkeypatch):
    """One that plays what is not legal, and one that takes too much from the loser."""
    variant, rng = configure("fatestones"), np.random.default_rng(1)
    step = soaking.SeatVectorEnv.step

    def takes_anything(env, actions):
        try:
            return step(env, actions)
        except IllegalActionError:
            return None

    monkeypatch.setattr(soaking.SeatVectorEnv, "step", takes_anything)
    with pytest.raises(Fault, match="is not legal, and was played"):
        play_vector(variant, 5000, rng)
    variant.facts = dataclasses.replace(variant.facts, max_return=0.5)
    with pytest.raises(Fault, match="a return is 1"):
        play_aec(variant, 5000, rng)


def test_what_is_broken_is_listed_and_the_command_fails(monkeypatch, tmp_path):
    def breaks(variant, moves, rng):
        raise Fault(f"nothing holds for {rng.integers(100)}")

    monkeypatch.setattr(soaking, "CALLERS", {"AEC": breaks})
    file = tmp_path / "soak.json"
    ends = [
        CliRunner().invoke(app, ["soak", "thirties", "--moves", "10", "--seed", "5", "--json", str(file)]) for _ in range(2)
    ]
    assert [end.exit_code for end in ends] == [1, 1]
    faults = json.loads(file.read_text())["rows"][0]["faults"]
    assert len(faults) == soaking.ROUNDS * soaking.VARIANTS
    assert faults[0].startswith("thirties (")
    assert faults[0] in " ".join(ends[0].output.split())
    assert "nothing holds for" in faults[0]
    listed = [end.output[: end.output.index("moves in")] for end in ends]
    assert listed[0] == listed[1]  # the same seed finds the same


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:an illegal action has ended a game")
def test_nothing_is_broken():
    rows, memory = soak(names(), 400_000, seed=3)
    assert {(row.game, row.interface) for row in rows} >= {(name, "compiled loop") for name in names()}
    assert {row.interface for row in rows} == set(CALLERS)
    assert [fault for row in rows for fault in row.faults] == []
    assert sum(row.games for row in rows) > 10_000
    assert soaking.grown(memory) <= soaking.LEAVES


def test_games_that_end_are_counted_and_dealt_again():
    """Every game of a physician with four patients takes four moves."""
    variant = configure("shakes", mode="physician", num_patients=4, goal=1)
    assert play_batch(variant, 13 * VECTOR_GAMES, np.random.default_rng(1)) == 3 * VECTOR_GAMES
