"""Many processes and threads at once get the same results as alone, and leave nothing behind."""

import concurrent.futures
import functools
import json

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.core.game import names
from dice_envs.experiments.arena import tournament
from tests.support.interfaces import CALLERS, moves

PROCESSES = 16
THREADS = 8
SEED = 1

# Processes without compiled kernels, released at the same moment; then threads of one process that has loaded nothing yet.
# The first argument is their number.
COLD = """
import concurrent.futures, hashlib, json, multiprocessing
from dice_envs import Batch, configure
from dice_envs.core.dice import below, new_streams, roll

variant = configure("thirties", num_players=1)

def work():
    stream = new_streams({seed}, 1)[0]
    drawn = [int(below(stream, 10)) for _ in range(5)] + [int(roll(stream, 6)) for _ in range(5)]
    batch = Batch(variant, 4, seed={seed})
    return [drawn, hashlib.sha256(batch.states.tobytes() + batch.legal().tobytes()).hexdigest()]

def child(barrier, results):
    barrier.wait()
    results.put(work())

if {processes}:
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier({processes}), context.Queue()
    crowd = [context.Process(target=child, args=(barrier, results)) for _ in range({processes})]
    for process in crowd:
        process.start()
    found = [results.get(timeout=240) for _ in crowd]
    for process in crowd:
        process.join()
    assert [process.exitcode for process in crowd] == [0] * {processes}
else:
    found = []
with concurrent.futures.ThreadPoolExecutor({threads}) as pool:
    found += [each.result() for each in [pool.submit(work) for _ in range({threads})]]
print(json.dumps(found))
"""


@pytest.mark.thorough
def test_a_cold_kernel_cache_is_filled_by_a_crowd(tmp_path, run_python):
    cache = tmp_path / "cache"
    environment = {"NUMBA_CACHE_DIR": str(cache)}
    crowd = json.loads(run_python(COLD.format(seed=SEED, processes=PROCESSES, threads=THREADS), **environment))
    assert len(crowd) == PROCESSES + THREADS
    files = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    assert {path.suffix for path in files} == {".nbc"}, "nothing half-written is left"
    alone = json.loads(run_python(COLD.format(seed=SEED, processes=0, threads=1), **environment))
    assert crowd == alone * len(crowd), f"seed {SEED}"
    assert {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()} == files, "all of it was whole, and is used"


def through(way, name, seed):
    caller = CALLERS[way](name)
    caller.reset(seed)
    return moves(caller, 60, seed)


def in_a_tournament(name, seed):
    variant = configure(name)
    return tournament(variant, ["random"] * max(2, variant.facts.num_seats), 200, seed).as_dict()


def against_agents(name, seed):
    return tournament(configure(name), ["numbers:bluff=0.5", "mcts:20", "reader"], 40, seed).as_dict()


KINDS = (functools.partial(through, "SeatEnv"), functools.partial(through, "env"), in_a_tournament)


@pytest.mark.thorough
def test_threads_play_what_each_would_play_alone(threads_change_often):
    """For every kind of environment of every game, and tournaments, at the same time."""
    tasks = [(kind, name, SEED + number) for name in names() for kind in KINDS for number in range(2)]
    tasks += [(against_agents, "liars_dice", SEED + number) for number in range(4)]
    np.random.default_rng(SEED).shuffle(tasks)
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        together = [each.result() for each in [pool.submit(kind, name, seed) for kind, name, seed in tasks]]
    for (kind, name, seed), found in zip(tasks, together, strict=True):
        assert kind(name, seed) == found, f"{kind}, {name}, seed {seed}"
