"""Work that pages wait for, in threads of its own for each kind: slow work of one kind keeps no other kind waiting."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Busy", "Job", "Unwanted", "Work", "Workers"]

T = TypeVar("T")


class Busy(ValueError):
    """The server has as much work of a kind as may wait."""


class Unwanted(Exception):
    """Nobody waits for the work any more, so it was not done."""


class Job(Generic[T]):
    """One call that waits for a thread, runs in it, or is done.

    Args:
        call: the work.
        wanted: whether somebody still waits for it; asked in any thread.
        owner: who it is for.
    """

    def __init__(self, call: Callable[[], T], wanted: Callable[[], bool], owner: Any) -> None:
        self.call, self.wanted, self.owner = call, wanted, owner
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    @property
    def begun(self) -> bool:
        """Whether a thread has taken it up."""
        return self._future.running() or self._future.done()

    def drop(self) -> bool:
        """Give it up if no thread has taken it up yet. Returns whether it is given up."""
        return self._future.cancel()

    def run(self) -> Callable[[], None]:
        """Do the work, if somebody still waits for it. Returns what tells them that it is done."""
        if not self.wanted():
            self.drop()
        if not self._future.set_running_or_notify_cancel():
            return lambda: None
        try:
            result = self.call()
        except BaseException as problem:  # it belongs to whoever waits; the thread goes on
            return functools.partial(self._future.set_exception, problem)
        return functools.partial(self._future.set_result, result)

    async def result(self) -> T:
        """What the call returns or raises. Unwanted if the job was given up."""
        try:
            return await asyncio.wrap_future(self._future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # it is the waiting that has ended
                raise
            raise Unwanted from None


class Workers:
    """Threads for one kind of work, first come, first served.

    They are daemon threads: nothing waits for them when the server ends, however long an agent thinks.

    Args:
        kind: of the work, in words, for those who are refused.
        threads: the most that run at once.
        waiting: the most jobs that wait for one of them.
    """

    def __init__(self, kind: str, threads: int, waiting: int) -> None:
        self.kind, self.threads, self.waiting = kind, threads, waiting
        self._lock = threading.Lock()
        self._queue: collections.deque[Job[Any]] = collections.deque()
        self._running: list[Job[Any]] = []

    def begin(self, call: Callable[[], T], wanted: Callable[[], bool] = lambda: True, owner: Any = None) -> Job[T]:
        """Let a thread do the work as soon as one is free.

        Args:
            call: the work.
            wanted: whether somebody still waits for it. Jobs that nobody waits for are not begun.
            owner: who it is for; each may have one job at a time. None: nobody in particular.

        Raises:
            Busy: too many jobs wait, or one of the owner's does or runs.
        """
        job = Job(call, wanted, owner)
        with self._lock:
            self._drop_unwanted()
            if owner is not None and any(each.owner is owner for each in (*self._running, *self._queue)):
                raise Busy("the server is busy with what was asked for before; try again in a moment")
            if len(self._running) < self.threads:
                self._running.append(job)
                threading.Thread(target=self._work, args=(job,), name=f"page: {self.kind}", daemon=True).start()
            elif len(self._queue) < self.waiting:
                self._queue.append(job)
            else:
                raise Busy(f"the server is busy: {self.waiting} {self.kind} wait already; try again in a moment")
        return job

    def _drop_unwanted(self) -> None:
        wanted = [job for job in self._queue if job.wanted() or not job.drop()]
        self._queue = collections.deque(wanted)

    def _work(self, job: Job[Any] | None) -> None:
        while job is not None:
            tell = job.run()
            with self._lock:  # before anybody knows, who may ask for more at once
                self._running.remove(job)
                job = self._queue.popleft() if self._queue else None
                if job is not None:
                    self._running.append(job)
            tell()


class Work:
    """All that is done for the pages of a server in threads.

    Args:
        tables: the most that there are; the move of an agent at each may wait.

    Attributes:
        moves: of agents, as many at once as the machine has cores.
        hints: and odds.
        reviews: of games.
        deals: new games, at new tables and at old ones. Their agents may have much to read or to solve.
        uploads: saved games, all of whose moves are played again.
    """

    def __init__(self, tables: int) -> None:
        self.moves = Workers("moves of agents", max(2, os.cpu_count() or 1), tables)
        self.hints = Workers("hints", 2, 20)
        self.reviews = Workers("reviews", 1, 20)
        self.deals = Workers("new games", 2, 20)
        self.uploads = Workers("saved games", 1, 5)
