"""How many threads NumPy computes matrix products with."""

from __future__ import annotations

import contextlib
import functools
import threading

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped,unused-ignore]

__all__ = ["one_thread"]


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")  # once, since it takes milliseconds to find them


def one_thread() -> contextlib.AbstractContextManager[object]:
    """Return a context in which NumPy computes matrix products with one thread; outside the main thread it does nothing.

    The threads wait for each other at every product. Beside other busy processes that takes several times as long as many
    small products themselves. The number of threads is the process's, and OpenBLAS lets the main thread alone change it.
    """
    if threading.current_thread() is not threading.main_thread():
        return contextlib.nullcontext()
    context: contextlib.AbstractContextManager[object] = _libraries().limit(limits=1)
    return context
