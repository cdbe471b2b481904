"""Signals around long work: they wait until all is saved, and Ctrl-C ends a process whatever it is doing."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["ends_at_once", "first_signal_waits", "writer_errors_name"]

PATIENCE = 3.0  # seconds from Ctrl-C to the end of the process, if no handler runs
_answered = threading.Event()  # whether a handler has seen the last Ctrl-C


@contextlib.contextmanager
def ends_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process while the block runs, even inside a kernel: after PATIENCE seconds, with status 130.

    Python runs signal handlers only between its own instructions, and a kernel call is one of them; a server also waits for
    its threads. A thread therefore watches, and ends the process if no handler has run by then. Like a kill, this loses
    nothing that is finished: files are whole at any time.
    """
    usual = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        _answered.set()
        usual(number, frame)

    watching, written = socket.socketpair()
    written.setblocking(False)
    _answered.clear()
    threading.Thread(target=_watch, args=(watching,), daemon=True).start()
    before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        signal.set_wakeup_fd(before)
        written.close()


def _watch(signals: socket.socket) -> None:
    """End the process if no handler answers a Ctrl-C. `signals` receives the number of each signal as a byte."""
    with signals:
        while number := signals.recv(1):
            if number[0] == signal.SIGINT and not _answered.wait(PATIENCE):
                with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads them
                    sys.stdout.flush()
                    print("stopped", file=sys.stderr, flush=True)
                os._exit(130)
            _answered.clear()


@contextlib.contextmanager
def first_signal_waits() -> Iterator[Callable[[], int | None]]:
    """Let the block stop where its work is whole: the first Ctrl-C or SIGTERM is only noted.

    The second one, and those after the block, act as before. Ignored signals stay ignored. In other threads than the main
    one, which alone receives signals, this does nothing.

    Yields:
        A function that returns the number of the signal that has come, or None.
    """
    noted: list[int] = []
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        _answered.set()
        noted.append(number)
        restore()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) not in (signal.SIG_IGN, None):  # None: set by something other than Python
                before[number] = signal.signal(number, note)
    try:
        yield lambda: noted[0] if noted else None
    finally:
        restore()


@contextlib.contextmanager
def writer_errors_name(log: Path) -> Iterator[None]:
    """Report an OSError of TensorBoard's writer once, with the name of this log.

    Left alone, the writer's thread prints it with a traceback, and it is raised in the block without a file's name.
    """
    print_traceback = threading.excepthook

    def keep_os_errors_back(problem: threading.ExceptHookArgs) -> None:
        if not issubclass(problem.exc_type, OSError):
            print_traceback(problem)

    threading.excepthook = keep_os_errors_back
    try:
        yield
    except OSError as problem:
        problem.filename = problem.filename or str(log)
        raise
    finally:
        threading.excepthook = print_traceback
