"""Limits of the machine: memory of control groups, cores for threads."""

import os

import pytest

from dice_envs.core import machine
from dice_envs.core.machine import MOST_THREADS, check_threads, memory_limit

CASES = {  # lines that name the process's groups, limits by file below the mounted folder, those found
    "version 2": ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": "300", "memory.max": "400"}, [300, 400]),
    "version 2 in a container": ("0::/", {"memory.max": "500"}, [500]),
    "version 1": ("9:name=systemd:/c\n4:cpu,memory:/c\n0::/", {"memory/c/memory.limit_in_bytes": "200"}, [200]),
    "version 1, the group's own root": ("4:memory:/x/y", {"memory/memory.limit_in_bytes": "250"}, [250]),
    "none": ("0::/a", {"a/memory.max": "max"}, []),
}


@pytest.mark.parametrize(("groups", "limits", "found"), CASES.values(), ids=CASES)
def test_limits_of_control_groups(tmp_path, groups, limits, found):
    (tmp_path / "groups").write_text(groups + "\n")
    for name, limit in limits.items():
        path = tmp_path / "mounted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(limit + "\n")
    assert list(machine._group_limits(tmp_path / "groups", tmp_path / "mounted")) == found
    assert list(machine._group_limits(tmp_path / "missing", tmp_path)) == []


def test_the_smallest_limit_counts(monkeypatch):
    installed = memory_limit()
    monkeypatch.setattr(machine, "_group_limits", lambda *where: iter([1000, 2000, 2**62]))
    assert memory_limit() == 800 < installed


def test_no_more_threads_than_cores():
    cores = len(os.sched_getaffinity(0))
    assert [check_threads(number) for number in (1, cores, cores + 1, MOST_THREADS)] == [1, cores, cores, cores]
    for wrong in (0, MOST_THREADS + 1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="jobs must be a whole number from 1 to 256"):
            check_threads(wrong, "jobs")
