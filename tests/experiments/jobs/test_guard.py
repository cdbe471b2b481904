"""Signals around long work: the first one waits, and Ctrl-C ends a process whatever it is doing."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from dice_envs.core.machine import is_starting
from tests.conftest import ROOT, posix
from tests.support.commands import process
from tests.support.subsets import few

pytestmark = posix
# `guard` by itself, without the package, which takes seconds to import
ALONE = f"import sys; sys.path.insert(0, {str(ROOT / 'experiments' / 'jobs')!r})"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_first_signal_is_noted_and_the_second_acts(run_python, name):
    code = f"""
import signal
from guard import first_signal_waits

number = signal.{name}
signal.signal(signal.SIGTERM, signal.default_int_handler)
with first_signal_waits() as noted:
    print(noted())
    signal.raise_signal(number)
    print(noted() == number)
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt:
        print("at once")
with first_signal_waits() as noted:
    pass
print(all(signal.getsignal(n) is signal.default_int_handler for n in (signal.SIGINT, signal.SIGTERM)))
"""
    assert run_python(ALONE + code) == "None\nTrue\nat once\nTrue\n"


@pytest.mark.thorough
def test_signals_that_are_ignored_and_other_threads_are_left_alone(run_python):
    code = """
import signal, threading
from guard import first_signal_waits

def watch(result):
    with first_signal_waits() as noted:
        result += [noted(), *map(signal.getsignal, (signal.SIGINT, signal.SIGTERM))]

signal.signal(signal.SIGINT, signal.SIG_IGN)
here, there = [], []
watch(here)
thread = threading.Thread(target=watch, args=(there,))
thread.start()
thread.join()
print(here[:2] == [None, signal.SIG_IGN], callable(here[2]), there == [None, signal.SIG_IGN, signal.SIG_DFL])
"""
    assert run_python(ALONE + code) == "True True True\n"


NEVER_ENDS = """
import hashlib, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from guard import ends_at_once, first_signal_waits

def mix(n):  # like a kernel: machine code without the GIL
    hashlib.pbkdf2_hmac("sha512", b"", b"", 2**31 - 1)

def serve():  # as a server, which has a handler of its own and waits for its threads
    thread = threading.Thread(target=mix, args=(2,))
    thread.start()
    signal.signal(signal.SIGINT, lambda number, frame: None)
    print('begun', flush=True)
    thread.join()

def leave():  # as a command that is stopped: its line, then Python waits for all threads
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        print('stopped', file=sys.stderr)

def loop():  # as asyncio, which has signals written to a socket of its own
    threading.Thread(target=mix, args=(2,)).start()
    signal.set_wakeup_fd(-1)
    print('begun', flush=True)
    leave()

signal.signal(signal.SIGINT, signal.SIG_DFL)
"""


@few(
    1,
    "block",
    [
        "with ends_at_once(): print('begun', flush=True); mix(2)",
        "with ends_at_once(), first_signal_waits(): print('begun', flush=True); mix(2)",
        "with ends_at_once(): serve()",
        "with ends_at_once(): loop()",
        "with ends_at_once(), ThreadPoolExecutor(2) as pool: print('begun', flush=True); list(pool.map(mix, [2, 2]))",
        "with ends_at_once(): threading.Thread(target=mix, args=(2,)).start(); print('begun', flush=True); leave()",
    ],
    ids=["kernel", "kernel, first signal noted", "server", "loop", "threads waited for", "threads at the end"],
)
def test_ctrl_c_ends_a_process_whose_kernel_does_not_return(block):
    begun = process("-c", ALONE + NEVER_ENDS + block)
    assert begun.stdout.readline() == "begun\n"
    time.sleep(0.5)
    begun.send_signal(signal.SIGINT)
    _, told = begun.communicate(timeout=300)
    assert begun.returncode == 130
    assert told == "stopped\n"


@pytest.mark.thorough
def test_a_ctrl_c_that_is_answered_ends_nothing(run_python):
    """The block may continue for longer than a process that does not react to Ctrl-C would live."""
    code = """
import signal, time
import guard

guard.PATIENCE = 0.2
with guard.ends_at_once():
    for _ in range(2):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            guard.answer_interrupt()
            time.sleep(0.5)
    with guard.first_signal_waits() as noted:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.5)
        print(noted() == signal.SIGINT)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.set_wakeup_fd(-1))
"""
    assert run_python(ALONE + code) == "True\nTrue -1\n"


def endless(number):
    """A part of work that says its process and never ends."""
    print("process", os.getpid(), flush=True)
    time.sleep(600)


def is_running(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_no_process_outlives_the_one_that_started_it(name):
    code = (
        "from dice_envs.experiments.jobs.guard import ends_at_once\nfrom dice_envs.experiments.jobs import Processes\n"
        "from tests.experiments.jobs.test_guard import endless\n"
        "if __name__ == '__main__':\n    with ends_at_once():\n        list(Processes(2).as_done(endless, [(0,), (1,)]))\n"
    )
    parent = process("-c", code)
    children = [int(parent.stdout.readline().split()[1]) for _ in range(2)]
    assert all(map(is_running, children))
    parent.send_signal(getattr(signal, name))
    _, told = parent.communicate(timeout=300)  # until nobody has its streams
    while any(map(is_running, children)):  # they have closed their streams and are about to end
        time.sleep(0.05)
    assert told.count("Traceback") == (name == "SIGINT")  # its own, since no command catches KeyboardInterrupt here


@few(
    2,
    ("words", "original", "is_command"),
    [
        (["/usr/bin/dice-envs", "arena"], [], True),
        (["-m"], ["python", "-m", "experiments", "arena"], True),
        (["-m"], ["python", "-m", "pytest"], False),
        (["arena.py"], ["python", "arena.py", "experiments"], False),
        ([], [], False),
    ],
)
def test_only_the_command_leaves_ctrl_c_to_the_system_while_it_starts(monkeypatch, words, original, is_command):
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(sys, "orig_argv", original)
    assert is_starting() is is_command
