"""The benchmark: the parts that a name selects, and the contents of a row."""

import pytest

from dice_envs import names
from dice_envs.experiments.bench import BenchPart, BenchRow, best_seconds, chosen_parts, training


def test_the_name_of_a_game_stands_for_all_that_is_about_it():
    everything = chosen_parts([])
    assert {part.game for part in everything} == {"", *names()}
    for game in names():
        assert chosen_parts([game]) == [part for part in everything if part.game == game]
    assert chosen_parts(["liars-dice"]) == chosen_parts(["liars_dice"])


def test_another_device_has_the_parts_that_run_on_it():
    assert {part.game for part in chosen_parts(["tensors"], "cuda")} == set(names())
    assert chosen_parts(["training"], "cuda") == list(training.PARTS)
    with pytest.raises(ValueError, match="device must be cpu for .*search.*; tensors and training run on others"):
        chosen_parts(["search"], "cuda")


@pytest.mark.thorough
def test_on_a_device_the_command_train_is_measured(monkeypatch):
    small = ["--steps", "1024", "-o", "num_dice=1", "--evaluation-games", "10"]
    small += [f"--set={each}" for each in ("num_envs=32", "num_steps=16", "minibatch=256", "hidden=8")]
    trained = training._trained
    monkeypatch.setattr(training, "_trained", lambda preset, device, *more: trained(preset, device, *small))
    whole, match = training._commands(True, "cpu")
    assert whole.ours > match.ours > 0
    assert "against numbers" in whole.note
    assert match.note.endswith("%, exact")


def test_more_is_better_in_every_ratio():
    assert BenchRow("faster", 20.0, "M/s", peer=10.0).ratio == BenchRow("sooner", 1.0, "s", peer=2.0).ratio == 2.0
    assert BenchRow("alone", 1.0, "s").ratio is None


def test_a_part_yields_rows():
    (part,) = [part for part in chosen_parts(["environments"]) if part.game == ""]
    assert isinstance(part, BenchPart)
    (row,) = part.rows(True)
    assert row.unit == "M/s"


def test_the_least_of_several_times_counts_after_one_that_does_not(monkeypatch):
    clock = iter((10.0, 13.0, 20.0, 22.0, 30.0, 35.0))
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    done = []
    assert best_seconds(lambda: done.append(1)) == 2.0
    assert len(done) == 4
