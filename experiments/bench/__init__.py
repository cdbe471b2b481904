"""Speed beside peers in the same run. A module here offers `rows(quick)`, which yields `BenchRow`s one by one."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

__all__ = ["BenchRow", "best_rate", "best_seconds"]


@dataclasses.dataclass
class BenchRow:
    """One figure. `ratio` is how many times as fast as the peer we are (for seconds: peer / ours)."""

    name: str
    ours: float
    unit: str  # "/s", "M/s" or "s"
    aim: float | None = None  # what the project aims at
    peer: float | None = None
    peer_name: str = ""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's, so that more is better."""
        if not self.peer:
            return None
        return self.peer / self.ours if self.unit == "s" else self.ours / self.peer


def best_seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """The least time of several runs after one that does not count: what the machine can do when left alone."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def best_rate(work: Callable[[], Any], amount: float, repeats: int = 3) -> float:
    """How much of `amount` gets done a second."""
    return amount / best_seconds(work, repeats)
