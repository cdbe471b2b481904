"""Progress of what is solved while people wait, and measurements that take long: they say so, or are stopped."""

import threading
import types

import pytest

from dice_envs import action_values, configure, measure
from dice_envs.core.batch import Batch
from dice_envs.exact import progress
from dice_envs.exact.liars_dice import solver
from dice_envs.exact.progress import TooLong, followed, foretold, is_followed, say, up_to, within


class Stop(Exception):
    pass


def test_lines_go_to_the_listener_of_their_thread(capsys):
    heard = []
    with followed(heard.append):
        assert is_followed()
        say("one")
        other = threading.Thread(target=say, args=("two",))
        other.start()
        other.join()
    say("three")
    assert heard == ["one"]
    assert capsys.readouterr().err == "two\nthree\n"


def test_a_solver_can_be_followed_and_stopped(tmp_path, monkeypatch):
    """What it has solved is kept, and it goes on from there."""
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))
    monkeypatch.setattr(solver, "_FOLLOWED_EVERY", 0.0)
    variant = configure("liars_dice", num_dice=2, num_faces=5)
    state = Batch(variant, 1, seed=1).states[0]
    heard = []

    def listen(line):
        heard.append(line)
        if "solved 1 of 3" in line:
            raise Stop

    with followed(listen), pytest.raises(Stop):
        action_values(variant, state)
    assert heard[-1].startswith("nash: solved 1 of 3 rounds; 1 against 1 dice")
    del heard[:]
    with followed(heard.append):
        action_values(variant, state)
    assert "solved 3 of 3 rounds" in heard[-1]


def test_up_to_a_number_of_positions():
    told = []
    done = up_to(1_000, lambda amount, total: told.append((amount, total)))
    done(400, 1_000)
    assert told == [(400, 1_000)]
    with pytest.raises(TooLong, match="^1,001 positions$"):
        done(1, 1_001)
    with pytest.raises(TooLong, match="positions$"):
        measure("thirties", "random", done=up_to(1))


@pytest.mark.parametrize(
    ("seconds", "amount", "stops"), [(61, 999, True), (59, 999, False), (1.9, 0, False), (2.1, 0, True), (30, 9, True)]
)
def test_within_a_time(monkeypatch, seconds, amount, stops):
    now = [0.0]
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    done = within(1.0)
    now[0] = seconds
    if stops:
        with pytest.raises(TooLong, match="^1,000 positions$"):
            done(amount, 1_000)
    else:
        done(amount, 1_000)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([(9.0, 50), (11.0, 0), (12.0, 50), (300.0, 700)], "measuring: 5 % of 2,000 positions, about 2 min left\n"),
        ([(60.0, 1)], ""),  # too little to tell
    ],
)
def test_a_long_measurement_says_once_how_long_it_takes(told, said, capsys):
    now = 0.0
    done = foretold(lambda: now)
    for now, amount in told:  # noqa: B007 — read by the clock
        done(amount, 2_000)
    assert capsys.readouterr().err == said


def test_measure_says_so_unless_progress_is_followed(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SILENT", 0.0)
    measure("liars_dice", "random", num_dice=2, done=lambda amount, total: None)
    assert capsys.readouterr().err == ""
    measure("liars_dice", "random", num_dice=2)
    assert capsys.readouterr().err.startswith("measuring: ")
