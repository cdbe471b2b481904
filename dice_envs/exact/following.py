"""Progress messages of long computations: to a listener, or to standard error.

A game may have to be solved before an agent moves or a hint is given. `say` reports this from inside; a program that shows
progress elsewhere, such as the page, runs the work within `followed`.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Callable, Iterator
from typing import Any

_listener: contextvars.ContextVar[Callable[[str], Any] | None] = contextvars.ContextVar("listener", default=None)


class Unwanted(Exception):
    """Raised by a listener, or before the work begins: nobody waits for its result any more."""


@contextlib.contextmanager
def followed(listener: Callable[[str], Any]) -> Iterator[None]:
    """Send the lines of computations in this thread to the listener, which may raise an exception to stop them."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_followed() -> bool:
    """Return whether a listener gets the lines."""
    return _listener.get() is not None


def say(line: str) -> None:
    """Hand a line of progress to the listener; without one print it on standard error."""
    listener = _listener.get()
    if listener is None:
        print(line, file=sys.stderr, flush=True)
    else:
        listener(line)
