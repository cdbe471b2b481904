"""The machine: memory of control groups, cores for threads, one thread for matrix products, PyTorch's devices by name."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from threadpoolctl import threadpool_limits

from dice_envs.core import machine
from dice_envs.core.machine import MOST_THREADS, check_threads, memory_limit, one_thread, torch_device

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
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert [check_threads(number) for number in (1, cores, cores + 1, MOST_THREADS)] == [1, cores, cores, cores]
    for wrong in (0, MOST_THREADS + 1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="jobs must be a whole number from 1 to 256"):
            check_threads(wrong, "jobs")


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
    with ThreadPoolExecutor(1) as pool, pool.submit(one_thread).result():
        assert threads() == {2}


def test_auto_is_the_gpu_where_there_is_one(monkeypatch):
    assert torch_device("cpu") == "cpu"
    for there, device in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert (torch_device("auto"), torch_device(None)) == (device, "cpu")


@pytest.mark.parametrize("device", ["abacus", "", "cuda:99", "meta", 3.5])
def test_a_device_that_is_not_there_is_named(device):
    with pytest.raises(
        ValueError, match=f"device must be one that PyTorch has here, say auto, cpu or cuda, not '?{device}'?: "
    ):
        torch_device(device)
