"""Work that somebody waits for: progress goes to who is meant, limits hold on the way and before, compiling does not count."""

import contextvars
import functools
import threading

import numpy as np
import pytest
from numba.core import event

from dice_envs import action_values, configure, evaluate, measure, response_values
from dice_envs.core import work as module
from dice_envs.core.batch import Batch
from dice_envs.core.work import TooLong, advance, counting, foretold, hinting, is_heard, limits, needs, say, work
from dice_envs.games.liars_dice.exact import solver


class Stop(Exception):
    pass


def test_lines_go_to_the_listener_of_their_thread(capsys):
    heard = []
    with work(say=heard.append):
        assert is_heard()
        with work(), counting(3):
            say("one")
        other = threading.Thread(target=say, args=("two",))
        other.start()
        other.join()
        own = threading.Thread(target=contextvars.copy_context().run, args=(say, "three"))
        own.start()
        own.join()
    say("four")
    assert heard == ["one", "three"]
    assert capsys.readouterr().err == "two\nfour\n"


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

    with work(say=listen), pytest.raises(Stop):
        action_values(variant, state)
    assert heard[-1].startswith("nash: solved 1 of 3 rounds; 1 against 1 dice")
    del heard[:]
    with work(say=heard.append):
        action_values(variant, state)
    assert "solved 3 of 3 rounds" in heard[-1]


def noted(told):
    return lambda amount, of: told.append((amount, of))


def test_progress_is_that_of_the_innermost_block_and_counted_as_its_share():
    outer, inner = [], []
    advance(1, 2)  # nobody waits
    with work(noted(outer)):
        advance(1, 8)
        with work(noted(inner)):
            advance(2)
        with work():
            advance(3)
        with counting(whole=40, share=0.5), counting(share=0.25) as part:
            advance(4, 10)
            advance(5, 10)
        part.undo()
    assert inner == [(2, 1)]
    assert outer == [(1, 8), (4, 80), (5, 80), (-9, 80)]


def test_nothing_inside_a_public_call_or_an_agents_answer_is_progress_of_the_work_around_it():
    told, own, games = [], [], []
    with work(noted(told)):
        measure("thirties", "thirties", done=noted(own))
        response_values("thirties")
        evaluate("thirties", "thirties", games=4, seed=1, done=noted(games))
        evaluate("thirties", "thirties", games=4, seed=1)
    assert not told
    assert sum(amount / of for amount, of in own) == pytest.approx(1)
    assert sum(amount for amount, _ in games) == 4
    assert {of for _, of in games} == {4}


def test_up_to_a_number_of_positions():
    told = []
    with work(noted(told), most=1_000):
        advance(400, 1_000)
        with pytest.raises(TooLong, match="^1,001 positions$"):
            advance(1, 1_001)
        with pytest.raises(TooLong, match="^2,000 positions$"), counting(whole=500, share=0.25):
            advance(1)
        with pytest.raises(TooLong, match="positions$"), work(most=1):
            measure("thirties", "random")
    assert told == [(400, 1_000)]


@pytest.mark.parametrize(
    ("seconds", "amount", "stops"), [(61, 999, True), (59, 999, False), (1.9, 0, False), (2.1, 0, True), (30, 9, True)]
)
@pytest.mark.parametrize("within", [False, True])
def test_within_a_time(monkeypatch, seconds, amount, stops, within):
    now = [0.0]
    monkeypatch.setattr(module, "clock", lambda: now[0])
    with work(seconds=60), work() if within else counting():
        now[0] = seconds
        if stops:
            with pytest.raises(TooLong, match="^1,000 positions$"):
                advance(amount, 1_000)
        else:
            advance(amount, 1_000)


def test_what_needs_more_than_the_limits_around_it_is_refused_with_both_numbers():
    needs("7 games", seconds=1e9, memory=1e12)
    assert limits() == (np.inf, np.inf)
    with work(seconds=600, memory=2**30), hinting(), work(seconds=300):
        assert limits() == (60, 2**29)
        needs("7 games", seconds=60, memory=2**29)
        with pytest.raises(ValueError, match=r"^7 games, which takes about 2 min; up to 60 s are waited for$"):
            needs("7 games", seconds=120)
        with pytest.raises(TooLong, match=r"^7 games, which takes about 3\.0 GiB; up to 0\.5 may be taken$"):
            needs("7 games", memory=3 * 2**30)


@pytest.mark.parametrize("name", ["perf_counter", "process_time"])
def test_time_in_which_kernels_compile_does_not_count(monkeypatch, name):
    now = [0.0]
    monkeypatch.setattr(module.time, name, lambda: now[0])
    before = module.clock(name)
    with event.trigger_event("numba:compile"):
        now[0] += 10
        with event.trigger_event("numba:compile"):
            now[0] += 20
    now[0] += 2
    assert module.clock(name) - before == pytest.approx(2)


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


def test_measure_says_so_unless_somebody_follows_or_limits_it(capsys, monkeypatch):
    monkeypatch.setattr(module, "SILENT", 0.0)
    run = functools.partial(measure, "liars_dice", "random", num_dice=2)
    run(done=lambda amount, total: None)
    with work(most=1e9):
        run()
    assert capsys.readouterr().err == ""
    run()
    assert capsys.readouterr().err.startswith("measuring: ")
