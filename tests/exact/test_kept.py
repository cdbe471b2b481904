"""A cache of results with a limit on its memory."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from dice_envs.exact.kept import kept


def counted(most):
    asked = []

    @kept(most, len)
    def letters(count, sign="a"):
        """Some letters."""
        asked.append((count, sign))
        return sign * count

    return letters, asked


def test_results_are_dropped_by_their_memory():
    letters, asked = counted(10)
    assert letters.__doc__ == "Some letters."
    assert letters(4) == letters(4, "a") == letters(count=4) == "aaaa"
    letters(5)
    letters(4)  # asked for last
    letters(3)
    assert asked == [(4, "a"), (5, "a"), (3, "a")]
    assert (letters.has(4), letters.has(5), letters.has(3)) == (True, False, True)
    assert letters(40) == "a" * 40, "one that is too large is kept alone"
    assert (letters.has(3), letters.has(4), letters.has(40)) == (False, False, True)
    letters(1)
    assert (letters.has(1), letters.has(40)) == (True, False)
    letters.cache_clear()
    assert not letters.has(1)


def test_threads_that_ask_for_the_same_do_not_compute_it_twice():
    gate, asked = threading.Event(), []

    @kept(100, len)
    def slow(text):
        asked.append(text)
        gate.wait(60)
        return text

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(slow, "x") for _ in range(4)]
        gate.set()
        assert [each.result(60) for each in waiting] == ["x"] * 4
    assert asked == ["x"]


def test_threads_with_other_questions_do_not_wait():
    together = threading.Barrier(2, timeout=30)

    @kept(100, len)
    def letters(count):
        together.wait()  # only passed if both threads compute at once
        return "a" * count

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(letters, (1, 2))) == ["a", "aa"]


def test_a_failure_is_not_kept():
    calls = []

    @kept(100, len)
    def letters(count):
        calls.append(count)
        if len(calls) == 1:
            raise ValueError("once")
        return "a" * count

    with pytest.raises(ValueError, match="once"):
        letters(3)
    assert letters(3) == letters(3) == "aaa"
    assert calls == [3, 3]


def test_an_argument_is_held_no_longer_than_its_result():
    class Asker:
        pass

    @kept(1, lambda result: 1)
    def found(asker):
        return 0

    askers = [Asker() for _ in range(3)]
    alive = [weakref.ref(asker) for asker in askers]
    for asker in askers:
        found(asker)
    del asker
    askers.clear()
    gc.collect()
    assert [each() is None for each in alive] == [True, True, False], "the last result is kept, and its argument"
    found.cache_clear()
    gc.collect()
    assert alive[2]() is None
