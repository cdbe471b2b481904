"""Commands in separate processes that die at chosen points of their writing, or whose disk is full.

A server, started once with everything imported and compiled, forks the processes, so that starting is fast.
"""

import dataclasses
import multiprocessing
import os
import signal
import sys
import time

import pytest

from dice_envs.experiments import jobs
from dice_envs.experiments.__main__ import app
from dice_envs.learn.presets import PRESETS

resource = pytest.importorskip("resource", reason="only POSIX has forks, SIGKILL and limits on files")
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.support.kills_compiled"])
LONGEST = 300  # seconds allowed for a process

WAYS = MOMENT, HALF, BEFORE, REMOVING, FULL = "at a moment", "half written", "before", "removing", "disk full"


@dataclasses.dataclass(frozen=True)
class Death:
    """The way in which a process ends early.

    Attributes:
        way: "at a moment": killed from outside; "half written", "before": kills itself when it puts the `count`th file in its
            place; "removing": when it removes the `count`th file; "disk full": files hold at most `count` bytes.
        count: as above; for "at a moment", milliseconds.
    """

    way: str
    count: int


class Disk:
    """Counts a process's changes to a folder, as Python audits them, and kills it before one of them."""

    def __init__(self, folder: str, death: Death | None) -> None:
        self.folder, self.death = folder, death
        self.counts = {BEFORE: 0, REMOVING: 0}
        self.largest = 0
        sys.addaudithook(self.audit)

    def audit(self, event: str, arguments: tuple) -> None:
        if event == "os.rename" and os.path.abspath(arguments[1]).startswith(self.folder):
            source, size = arguments[0], os.path.getsize(arguments[0])
            self.largest = max(self.largest, size)
            if self.change(BEFORE, (BEFORE, HALF)):
                os.truncate(source, size // 2 if self.death.way == HALF else size)
                os.kill(os.getpid(), signal.SIGKILL)
        elif event == "os.remove":
            path, folder = arguments  # `rmtree` names files relative to an open folder
            where = os.path.abspath(path) if folder == -1 else os.readlink(f"/proc/self/fd/{folder}")
            if where.startswith(self.folder) and self.change(REMOVING, (REMOVING,)):
                os.kill(os.getpid(), signal.SIGKILL)

    def change(self, kind: str, ways: tuple[str, ...]) -> bool:
        """Count a change; return whether the process dies before it."""
        self.counts[kind] += 1
        return self.death is not None and self.death.way in ways and self.death.count == self.counts[kind]


def _run(arguments, folder, death, changes, told) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(os.open(os.path.join(folder, "errors.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    os.environ["DICE_ENVS_CACHE"] = os.path.join(folder, "cache")
    os.chdir(folder)
    jobs.KEEP_AFTER = 0.0  # keep parts from the first one on
    for game, preset in changes.items():
        PRESETS[game] = {"quick": preset}
    disk = Disk(folder, death)
    if death is not None and death.way == FULL:
        sys.dont_write_bytecode = True  # Python 3.11 keeps what the limit has cut short
        resource.setrlimit(resource.RLIMIT_FSIZE, (death.count, death.count))
    told.send(None)
    try:
        app(arguments)
    finally:
        told.send((disk.counts, disk.largest))


@dataclasses.dataclass
class End:
    """The end of a process: exit status (negative: the signal), errors, seconds, and its changes to the disk."""

    status: int
    errors: str
    seconds: float
    counts: dict
    largest: int


def run(arguments, folder, death=None, changes=None) -> End:
    """Run a command of `experiments` in a process, with all its files in one folder, until it ends or is killed."""
    folder.mkdir(exist_ok=True)
    (folder / "errors.txt").unlink(missing_ok=True)
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_run, args=([*map(str, arguments)], str(folder), death, changes or {}, theirs))
    process.start()
    theirs.close()
    try:
        ours.recv()
        start = time.monotonic()
        process.join(death.count / 1000 if death is not None and death.way == MOMENT else LONGEST)
        seconds = time.monotonic() - start
        is_late = process.is_alive()
        if is_late:
            process.kill()
            process.join()
        if is_late and (death is None or death.way != MOMENT):
            raise TimeoutError(f"{arguments} has not ended within {LONGEST} s")
        counts, largest = ours.recv() if process.exitcode in (0, 2) else ({}, 0)
    finally:
        process.kill()
        process.join()
    return End(process.exitcode, (folder / "errors.txt").read_text(), seconds, counts, largest)
