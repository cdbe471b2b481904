"""Signals around long work: the first one waits, and Ctrl-C ends a process whatever it is doing."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import COMPILES_SOON, ROOT


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_first_signal_is_noted_and_the_second_acts(run_python, name):
    code = f"""
import signal
from dice_envs.experiments.jobs.guard import first_signal_waits

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
    assert run_python(code) == "None\nTrue\nat once\nTrue\n"


def test_signals_that_are_ignored_and_other_threads_are_left_alone(run_python):
    code = """
import signal, threading
from dice_envs.experiments.jobs.guard import first_signal_waits

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
    assert run_python(code) == "True True True\n"


NEVER_ENDS = """
import signal, threading
from dice_envs.core.kernel import kernel
from dice_envs.experiments.jobs.guard import ends_at_once, first_signal_waits

@kernel
def mix(n):
    x = 1
    while x != n:  # it is odd, and n is even
        x = (x * 6364136223846793005 + 1442695040888963406) | 1
    return x

def serve():  # as a server, which has a handler of its own and waits for its threads
    thread = threading.Thread(target=mix, args=(2,))
    thread.start()
    signal.signal(signal.SIGINT, lambda number, frame: None)
    print('begun', flush=True)
    thread.join()

mix(1)
"""


@pytest.mark.parametrize(
    "block",
    [
        "with ends_at_once(): print('begun', flush=True); mix(2)",
        "with ends_at_once(), first_signal_waits(): print('begun', flush=True); mix(2)",
        "with ends_at_once(): serve()",
    ],
    ids=["kernel", "kernel, first signal noted", "server"],
)
def test_ctrl_c_ends_a_process_whose_kernel_does_not_return(block):
    process = subprocess.Popen(
        [sys.executable, "-c", NEVER_ENDS + block], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert told == "stopped\n"


def test_a_ctrl_c_that_is_answered_ends_nothing(run_python):
    """The block may continue for longer than a process that does not react to Ctrl-C would live."""
    code = """
import signal, time
from dice_envs.experiments.jobs import guard

guard.PATIENCE = 0.2
with guard.ends_at_once():
    for _ in range(2):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            time.sleep(1)
    with guard.first_signal_waits() as noted:
        signal.raise_signal(signal.SIGINT)
        time.sleep(1)
        print(noted() == signal.SIGINT)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.set_wakeup_fd(-1))
"""
    assert run_python(code) == "True\nTrue -1\n"


@pytest.mark.thorough
def test_ctrl_c_ends_a_command_while_an_agent_thinks():
    command = [sys.executable, "-m", "experiments", "arena", "liars_dice", "mcts:10000000", "random", "--games", "2"]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **COMPILES_SOON}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(20)  # by then it is compiling or searching
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in told
    assert told.endswith("stopped\n")
