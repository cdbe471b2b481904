"""Measurements that are stopped because they would take too long."""

import types

import pytest

from dice_envs import measure
from dice_envs.exact import limits
from dice_envs.exact.limits import TooLong, up_to, within


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
    monkeypatch.setattr(limits, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    done = within(1.0)
    now[0] = seconds
    if stops:
        with pytest.raises(TooLong, match="^1,000 positions$"):
            done(amount, 1_000)
    else:
        done(amount, 1_000)
