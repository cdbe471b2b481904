"""The machine that the process runs on, or the container: installed extras, processor, memory, threads, PyTorch's devices."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import platform
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dice_envs.core.options import check_range, shown

MOST_THREADS = 256
_SHARE = 0.8  # of the memory, that a solver may take
_GROUPS = Path("/sys/fs/cgroup")
_KNOWN_AS = {"PIL": "Pillow"}  # modules whose package has another name


def is_starting() -> bool:
    """Return whether this process was started as the command line, rather than importing the package."""
    words = getattr(sys, "argv", None) or [""]
    is_module = words[0] == "-m" and {"dice_envs", "experiments", "dice_envs.experiments"} & set(sys.orig_argv)
    return bool(is_module or os.path.basename(words[0]).partition(".")[0] == "dice-envs")


# --- optional packages: an error about a missing one names the extra that brings it -----------------------------------


def _missing(extra: str, what: str, module: str) -> ImportError:
    name = module.partition(".")[0]
    cpu = "; before it, for the small build: pip install torch --index-url https://download.pytorch.org/whl/cpu"
    how = f'pip install "dice-envs[{extra}]"{cpu * (name == "torch")}'
    return ImportError(f"{what} needs {_KNOWN_AS.get(name, name)}: {how}", name=name)


def check_extra(extra: str, what: str, *modules: str) -> None:
    """Raise ImportError, with the subject `what`, unless top-level modules of an extra of pyproject.toml are installed."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise _missing(extra, what, module)


@contextlib.contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """A block that imports modules of an extra: an ImportError names the extra, as in `check_extra`."""
    try:
        yield
    except ModuleNotFoundError as problem:
        raise _missing(extra, what, str(problem.name)) from problem


# --- processor, threads, devices and memory ----------------------------------------------------------------------------


def processor() -> str:
    """Return the processor's name, as the system has it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def check_threads(threads: int, name: str = "threads") -> int:
    """Return how many threads or processes to use: as many as asked for, and no more than this process has cores.

    Raises:
        ValueError: not a whole number from 1 to MOST_THREADS; the message calls it `name`.
    """
    check_range(name, threads, 1, MOST_THREADS)
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    return min(int(threads), cores)


_SETTING = threading.Lock()


@contextlib.contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Set the number of PyTorch's threads while a block runs, for the thread that runs it alone.

    PyTorch has a number for each thread. A new thread starts with the number that any thread has set last, so another thread
    sets that again.
    """
    import torch

    def use(wanted: int) -> int:
        with _SETTING, ThreadPoolExecutor(1) as other:
            usual, before = other.submit(torch.get_num_threads).result(), torch.get_num_threads()
            torch.set_num_threads(wanted)
            other.submit(torch.set_num_threads, usual).result()
        return before

    before = use(number)
    try:
        yield
    finally:
        use(before)


@functools.cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped,unused-ignore]

    return ThreadpoolController().select(user_api="blas")  # once, since it takes milliseconds to find them


def one_thread() -> contextlib.AbstractContextManager[object]:
    """Return a context in which NumPy computes matrix products with one thread; outside the main thread it does nothing.

    The threads wait for each other at every product. Beside other busy processes that takes several times as long as many
    small products themselves. The number of threads is the process's, and OpenBLAS lets the main thread alone change it.
    """
    if threading.current_thread() is not threading.main_thread():
        return contextlib.nullcontext()
    return _libraries().limit(limits=1)


def torch_device(device: Any) -> str:
    """Return the name of a device that PyTorch has here: "auto" is "cuda" where there is a GPU, else "cpu"; None is "cpu".

    Raises:
        ValueError: PyTorch has no such device here.
        ImportError: PyTorch is not installed; the message names the extra.
    """
    with needs("sb3", "a device"):
        import torch
    if device is None or device == "auto":
        return "cuda" if device and torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=device).item()  # no value can be read from the device "meta"
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as problem:
        reason = str(problem).partition("\n")[0][:200]
        raise ValueError(
            f"device must be one that PyTorch has here, say auto, cpu or cuda, not {shown(device)}: {reason}"
        ) from None
    return str(torch.device(device))


def memory_limit() -> int:
    """Return the bytes that a solver may take: a share of the machine's memory, or of a smaller limit on its control groups."""
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        installed = 10 * 2**30
    return int(min([installed, *_group_limits(Path("/proc/self/cgroup"), _GROUPS)]) * _SHARE)


def _group_limits(own: Path, mounted: Path) -> Iterator[int]:
    """Yield the memory limits of the control groups that the file `own` lists, and of those above them, of either version."""
    try:
        groups = own.read_text(encoding="utf-8").splitlines()
    except OSError:  # not on Linux
        return
    for line in groups:
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, limit = (mounted / "memory", "memory.limit_in_bytes") if controllers else (mounted, "memory.max")
        inside = Path(name.lstrip("/"))
        for group in (inside, *inside.parents):  # a container may see its own group as the root
            try:
                yield int((root / group / limit).read_text())
            except (OSError, ValueError):  # no such file, or no limit: "max"
                continue
