"""Slow work of the pages. Each kind of work has its own threads, so that no kind delays another."""

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
    """Too many jobs of this kind wait already."""


class Unwanted(Exception):
    """The job was dropped, because nobody waits for it any more."""


class Job(Generic[T]):
    """One call: queued, running in a thread, or done.

    Args:
        call: the work.
        wanted: returns whether somebody still waits for it; called in any thread.
        owner: the object that the job is for.
    """

    def __init__(self, call: Callable[[], T], wanted: Callable[[], bool], owner: Any) -> None:
        self.call, self.wanted, self.owner = call, wanted, owner
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    @property
    def begun(self) -> bool:
        """Whether the job runs or is done."""
        return self._future.running() or self._future.done()

    def drop(self) -> bool:
        """Cancel the job unless a thread has begun it. Return whether it is cancelled."""
        return self._future.cancel()

    def run(self) -> Callable[[], None]:
        """Do the work if it is still wanted. Return a function that hands the result to those who wait."""
        if not self.wanted():
            self.drop()
        if not self._future.set_running_or_notify_cancel():
            return lambda: None
        try:
            result = self.call()
        except BaseException as problem:  # raised where the result is awaited; this thread goes on
            return functools.partial(self._future.set_exception, problem)
        return functools.partial(self._future.set_result, result)

    async def result(self) -> T:
        """Return the call's result, or raise its exception; raise Unwanted if the job was cancelled."""
        try:
            return await asyncio.wrap_future(self._future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the waiting task was cancelled, not the job
                raise
            raise Unwanted from None


class Workers:
    """Threads for one kind of work, first come, first served.

    They are daemon threads: the server ends without waiting for an agent that thinks.

    Args:
        kind: the work in words, for messages.
        threads: limit on running jobs.
        waiting: limit on queued jobs.
    """

    def __init__(self, kind: str, threads: int, waiting: int) -> None:
        self.kind, self.threads, self.waiting = kind, threads, waiting
        self._lock = threading.Lock()
        self._queue: collections.deque[Job[Any]] = collections.deque()
        self._running: list[Job[Any]] = []

    def begin(self, call: Callable[[], T], wanted: Callable[[], bool] = lambda: True, owner: Any = None) -> Job[T]:
        """Queue the work for the next free thread.

        Args:
            call: the work.
            wanted: returns whether somebody still waits for it; an unwanted job is not begun.
            owner: the object that the job is for, which may have one job at a time; None: no limit.

        Raises:
            Busy: too many jobs wait, or the owner has a job already.
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
            hand_over = job.run()
            with self._lock:  # before the result is out: its owner may ask for the next job at once
                self._running.remove(job)
                job = self._queue.popleft() if self._queue else None
                if job is not None:
                    self._running.append(job)
            hand_over()


class Work:
    """The workers of a server, one `Workers` for each kind of work.

    Args:
        tables: limit on the tables; one move of an agent may wait for each.

    Attributes:
        moves: moves of agents, on all cores.
        hints: hints and odds.
        reviews: reviews of games.
        deals: new games at new and old tables; making their agents may mean reading or solving much.
        uploads: saved games, whose moves are all played again.
    """

    def __init__(self, tables: int) -> None:
        self.moves = Workers("moves of agents", max(2, os.cpu_count() or 1), tables)
        self.hints = Workers("hints", 2, 20)
        self.reviews = Workers("reviews", 1, 20)
        self.deals = Workers("new games", 2, 20)
        self.uploads = Workers("saved games", 1, 5)
