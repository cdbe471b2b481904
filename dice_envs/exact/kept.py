"""A cache of results within a limit on their memory."""

from __future__ import annotations

import collections
import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def kept(most: int, size: Callable[[Any], int]) -> Callable[[Callable[P, R]], Kept[P, R]]:
    """Decorator that caches a function's results and drops the least recently used first.

    Calls that differ in keyword-only arguments alone have the same result. `most` limits the
    bytes of all results together, by their `size`; the last one is kept even if it takes more.
    """
    return lambda function: Kept(function, most, size)


class Kept(Generic[P, R]):
    """A function with its cache; see `kept`.

    Threads that ask for the same result at once compute it once; those that ask for others do not wait for it.
    """

    def __init__(self, function: Callable[P, R], most: int, size: Callable[[Any], int]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._most, self._size = function, most, size
        self._signature = inspect.signature(function)
        self._results: dict[Any, tuple[R, int]] = {}  # most recently used last
        self._lock = threading.Lock()
        self._computing: dict[Any, threading.RLock] = collections.defaultdict(threading.RLock)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the function's result."""
        key = self._key(*args, **kwargs)
        with self._lock:
            computing = self._computing[key]
        with computing:
            try:
                return self._found(key, *args, **kwargs)
            finally:
                with self._lock:
                    # A key may hold an agent. Who waits finds the result or, after an error, computes it.
                    self._computing.pop(key, None)

    def _found(self, key: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the cached result, or compute and keep it."""
        with self._lock:
            if key in self._results:
                self._results[key] = self._results.pop(key)
                return self._results[key][0]
        result = self._function(*args, **kwargs)
        with self._lock:
            self._results[key] = result, self._size(result)
            total = sum(size for _, size in self._results.values())
            while total > self._most and len(self._results) > 1:
                total -= self._results.pop(next(iter(self._results)))[1]
        return result

    def has(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Return whether the result is cached."""
        with self._lock:
            return self._key(*args, **kwargs) in self._results

    def cache_clear(self) -> None:
        """Drop all results."""
        with self._lock:
            self._results.clear()

    def _key(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args
