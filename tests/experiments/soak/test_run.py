"""The soak tries every option, lists what is broken, and finds nothing in the games as they are."""

import dataclasses
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dice_envs.core.game import load, names
from dice_envs.experiments.__main__ import app
from dice_envs.experiments.soak import run as soaking
from dice_envs.experiments.soak.callers import CALLERS
from dice_envs.experiments.soak.loop import Fault
from dice_envs.experiments.soak.run import random_variant, soak


@pytest.mark.parametrize("name", names())
def test_every_option_is_tried(name):
    game, rng = load(name), np.random.default_rng(1)
    options = [dataclasses.asdict(random_variant(game, rng).options) for _ in range(300)]
    for option in options[0]:
        assert len({str(each[option]) for each in options}) > 1, option


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


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:an illegal action has ended a game")
def test_nothing_is_broken():
    rows, memory = soak(names(), 400_000, seed=3)
    assert {(row.game, row.interface) for row in rows} >= {(name, "compiled loop") for name in names()}
    assert {row.interface for row in rows} == set(CALLERS)
    assert [fault for row in rows for fault in row.faults] == []
    assert sum(row.games for row in rows) > 10_000
    assert soaking.grown(memory) <= soaking.LEAVES
