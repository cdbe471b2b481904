"""One thread for matrix products."""

import contextlib
import threading

import pytest
from threadpoolctl import threadpool_limits

from dice_envs.core import machine
from dice_envs.core.machine import one_thread


def threads():
    return {library["num_threads"] for library in machine._libraries().info()}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("NumPy's matrix products have no threads here")
        yield


def test_the_setting_is_restored_even_after_an_error(two_threads):
    with contextlib.suppress(KeyError), one_thread():
        assert threads() == {1}
        raise KeyError
    assert threads() == {2}


def test_another_thread_leaves_the_setting_alone(two_threads):
    inside, done = threading.Event(), threading.Event()

    def wait():
        with one_thread():
            inside.set()
            done.wait()

    other = threading.Thread(target=wait)
    with one_thread():
        other.start()
        inside.wait()
    assert threads() == {2}
    done.set()
    other.join()
    assert threads() == {2}
