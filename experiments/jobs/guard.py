"""Signals around long work: they wait until all is saved, and Ctrl-C ends a process whatever it is doing."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

PATIENCE = 0.8  # seconds from Ctrl-C to the end of the process, unless something answers it
_answered = threading.Event()  # whether something has answered the last Ctrl-C
_interrupted = threading.Event()  # whether it has raised KeyboardInterrupt, and nothing has answered that yet


@contextlib.contextmanager
def ends_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process, which does nothing after the block: after PATIENCE seconds at the latest, with status 130.

    KeyboardInterrupt comes too late in a kernel, since Python runs signal handlers only between its own instructions, and
    whatever passes it on may wait for threads. A thread therefore watches, and ends the process. Like a kill, this loses
    nothing that is finished: files are whole at any time.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        _interrupted.set()
        signal.default_int_handler(number, frame)

    watching, written = socket.socketpair()
    written.setblocking(False)
    _answered.clear()
    threading.Thread(target=_watch, args=(watching,), daemon=True).start()
    fd = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if _interrupted.is_set():  # the process may still wait for its threads
            written.send(bytes([signal.SIGINT]))  # again: asyncio takes what would be written to its own socket
        else:
            signal.set_wakeup_fd(fd)
            written.close()


def _watch(signals: socket.socket) -> None:
    """End the process if nothing answers a Ctrl-C. `signals` receives the number of each signal as a byte."""
    with signals:
        while number := signals.recv(1):
            if number[0] == signal.SIGINT and not _answered.wait(PATIENCE):
                _end()
            _answered.clear()


def _end() -> None:
    """End the process and those that it has started for its work."""
    for child in multiprocessing.active_children():
        child.kill()
    with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads them
        sys.stdout.flush()
        if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:  # else the command has said so
            print("stopped", file=sys.stderr, flush=True)
    os._exit(130)


def answer_interrupt() -> None:
    """Say that the last Ctrl-C has had its effect: the process goes on."""
    _interrupted.clear()
    _answered.set()


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold SIGINT back until the end of the block. Processes that begin there never receive it."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows, where nothing does that
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def follow_parent() -> None:
    """End this process, which another one has started for its work, when that one ends, however it does."""

    def follow() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


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
        answer_interrupt()
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
