"""Work in parts: done here one after another, or on a Ray cluster, with the same results; finished parts can be kept.

A computation that divides is a function of this project and a list of parts, each with seeds of its own. Which part is
done where, when, or how often makes no difference to what it gives, so neither does the number of workers.
"""

from __future__ import annotations

import contextlib
import io
import json as json_module
import logging
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import agents
from dice_envs.core.extras import needs
from dice_envs.core.files import atomic, folder_lock, write_text
from dice_envs.core.kernel import package_stamp
from dice_envs.core.options import shown
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.options import seed_or_fresh

__all__ = ["HERE", "Done", "Kept", "OnRay", "Workers", "kept_beside", "on_ray", "stamp"]

Done = Callable[[Any], Any]  # told how much of the work has been done since it was told last
KEEP_AFTER = 5.0  # seconds
PLAN = "plan.json"  # what the parts in a folder are of
PART = re.compile(r"[0-9]{3,}_[0-9]{6,}\.(npy|json)")
ON_NODES = __name__  # what a node must be able to import
LOOK_EVERY = 5.0  # seconds between two looks at which nodes are there, while no part is done
MOST_RETRIES = 20  # of a part whose worker has died, before the part is thought to be what kills them


def stamp() -> str:
    """A hash of all sources. Parts that other code has done do not fit."""
    return package_stamp(__file__, agents.__file__)


class Kept:
    """Finished parts in a folder, each in a file of its own, written whole or not at all.

    Nothing is written in the first KEEP_AFTER seconds, since most work is done by then. Where nothing can be written the
    work goes on without, and says so.

    Attributes:
        seed: of the run.
    """

    def __init__(self, folder: Path, seed: int, plan: Mapping[str, Any]) -> None:
        self.folder, self.seed = folder, seed
        self._plan = plan
        self._runs = 0
        self._from = time.monotonic() + KEEP_AFTER
        self._waiting: dict[str, Any] = {}
        self._fails = False
        self._lock = contextlib.ExitStack()
        self._is_open = False

    def open(self) -> None:
        """Begin to write. ValueError if another process does, OSError if nothing can be written."""
        self.folder.mkdir(exist_ok=True)
        self._lock.enter_context(folder_lock(self.folder, "--json"))
        if not (self.folder / PLAN).exists():
            self._remove_parts()  # nobody knows of what
            write_text(self.folder / PLAN, json_module.dumps({**self._plan, "seed": self.seed}))
        self._is_open = True

    def close(self, remove: bool) -> None:
        """Let others in; and remove what is kept."""
        if remove and self._is_open:
            with contextlib.suppress(OSError):  # what cannot be removed stays
                self._remove_parts()
                (self.folder / PLAN).unlink()  # as long as there are parts, it is there: they are not another run's
        self._lock.close()
        if remove and self._is_open:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _remove_parts(self) -> None:
        for path in self.folder.iterdir():
            if PART.fullmatch(path.name):
                path.unlink()

    def of_next_run(self, parts: int) -> tuple[dict[int, Any], Callable[[int, Any], None]]:
        """The parts of the computation's next run that are there, by their numbers; and what keeps one."""
        name = f"{self._runs:03}"
        self._runs += 1
        there = {}
        for number in range(parts if self._is_open else 0):
            file = self.folder / f"{name}_{number:06}"
            with contextlib.suppress(Exception):  # not there, or damaged, which shows in many ways: it is done again
                array = file.with_suffix(".npy")
                text = file.with_suffix(".json")
                if array.exists():
                    with array.open("rb") as stream:
                        there[number] = np.lib.format.read_array(stream, allow_pickle=False)
                else:
                    there[number] = json_module.loads(text.read_text())
        return there, lambda number, result: self._keep(f"{name}_{number:06}", result)

    def _keep(self, name: str, result: Any) -> None:
        self._waiting[name] = result
        if time.monotonic() < self._from or self._fails:
            return
        try:
            if not self._is_open:
                self.open()
            for each, found in self._waiting.items():
                if isinstance(found, np.ndarray):
                    content = io.BytesIO()  # not straight into a file: NumPy does not notice a full disk
                    np.save(content, found, allow_pickle=False)
                    with atomic(self.folder / f"{each}.npy") as temporary:
                        temporary.write_bytes(content.getbuffer())
                else:
                    write_text(self.folder / f"{each}.json", json_module.dumps(found))
            self._waiting = {}
        except OSError as problem:
            self._fails = True
            console.print(f"finished parts are not kept: {problem}")


class Workers:
    """Does parts in this process, one after another.

    Args:
        kept: where finished parts are kept, and taken from.
    """

    def __init__(self, kept: Kept | None = None) -> None:
        self.kept = kept

    def run(
        self,
        function: Callable[..., Any],
        shared: Sequence[Any],
        parts: Sequence[Sequence[Any]],
        sizes: Sequence[float] | None = None,
        done: Done = lambda amount: None,
    ) -> list[Any]:
        """`function(*shared, *part, done)` of each part, in their order.

        Args:
            function: of a module, so that another process finds it by its name. It gives an array, or what JSON holds.
            shared: arguments that are the same for all parts.
            parts: the other arguments of each.
            sizes: how much each part is of what `done` is told; 1 if left out.
            done: told of progress. `function` tells it its part's size in all.
        """
        results, keep = self.kept.of_next_run(len(parts)) if self.kept else ({}, lambda number, result: None)
        size = [1.0] * len(parts) if sizes is None else sizes
        for number in results:
            done(size[number])
        left = [number for number in range(len(parts)) if number not in results]
        for number, result in self._each(function, shared, [(number, parts[number]) for number in left], size, done):
            keep(number, result)
            results[number] = result
        return [results[number] for number in range(len(parts))]

    def as_done(self, function: Callable[..., Any], parts: Sequence[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        """Number of each part and `function(*part, done)` of it, as they are done; who takes them keeps them."""
        return self._each(function, (), list(enumerate(parts)), [1.0] * len(parts), lambda amount: None)

    def map(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
        """As Python's `map`, each call being a part."""
        return self.run(_call, (function,), [(argument,) for argument in arguments])

    def _each(
        self, function: Any, shared: Sequence[Any], parts: Sequence[tuple[int, Any]], sizes: Sequence[float], done: Done
    ) -> Iterator[tuple[int, Any]]:
        """Number and result of each part, as they are done."""
        for number, part in parts:
            yield number, function(*shared, *part, done)


HERE = Workers()


class OnRay(Workers):
    """Does parts on a Ray cluster. One whose worker or node dies is done again elsewhere; those that are finished stay.

    Args:
        address: "local" starts a cluster on this machine, with a worker for each core; else where one runs: "auto",
            HOST:PORT or ray://HOST:PORT. All its nodes need the same sources of this project installed.
        kept: as for Workers.
        cores: that each part takes.

    Raises:
        ImportError: Ray is not installed.
        ValueError: there is no such cluster, none of its nodes has so many cores, or one has no sources or other ones.
    """

    def __init__(self, address: str, kept: Kept | None = None, cores: int = 1) -> None:
        super().__init__(kept)
        self.cores = cores
        with needs("ray", "--ray"):
            import ray
        where: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
        try:
            ray.init(address, **where, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as problem:
            reason = str(problem).partition("\n")[0]
            raise ValueError(
                f"--ray must be local or a cluster's address (auto, HOST:PORT, ray://HOST:PORT), not {shown(address)}: {reason}"
            ) from None
        self._nodes = _living()
        try:
            most = max((int(node["Resources"].get("CPU", 0)) for node in self._nodes.values()), default=0)
            if most < cores:
                raise ValueError(
                    f"--threads must be {most} at most on this cluster, whose nodes have no more cores, not {cores}"
                )
            _check_sources(self._nodes.values())
        except BaseException:
            ray.shutdown()
            raise

    def _each(
        self, function: Any, shared: Sequence[Any], parts: Sequence[tuple[int, Any]], sizes: Sequence[float], done: Done
    ) -> Iterator[tuple[int, Any]]:
        """As of Workers.

        Raises:
            ValueError: a node has other sources of this project.
            RuntimeError: the workers of one part have died again and again.
        """
        import ray

        # "SPREAD": parts are coarse, so it is better to start one on an idle node than where its arguments lie.
        work = ray.remote(num_cpus=self.cores, max_retries=MOST_RETRIES, scheduling_strategy="SPREAD")(_do)
        given, version = ray.put(tuple(shared)), stamp()
        numbers = {work.remote(version, function, given, tuple(part)): number for number, part in parts}
        try:
            while numbers:
                for ready in ray.wait(list(numbers), num_returns=1, timeout=LOOK_EVERY)[0]:
                    result, number = ray.get(ready), numbers.pop(ready)
                    done(sizes[number])
                    yield number, result
                self._tell_of_lost_nodes()
        except ray.exceptions.RayTaskError as problem:
            raise problem.cause from None
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError) as problem:
            reason = str(problem).partition("\n")[0]
            raise RuntimeError(f"a part could not be done, {MOST_RETRIES + 1} workers have died of it: {reason}") from None
        finally:
            for left in numbers:
                ray.cancel(left, force=True)

    def _tell_of_lost_nodes(self) -> None:
        there = _living()
        for lost in self._nodes.keys() - there.keys():
            console.print(f"{_name_of(self._nodes[lost])} is lost; its parts are done again on other nodes")
        self._nodes = there


def _living() -> dict[str, Any]:
    """The cluster's nodes that are alive: number → what Ray tells of it."""
    import ray

    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


def _name_of(node: Mapping[str, Any]) -> str:
    return f"the node {node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {node['NodeID'][:8]})"


def _check_sources(nodes: Iterable[Mapping[str, Any]]) -> None:
    """Raise ValueError, naming the node and the cure, if one has no sources of this project or others than this machine."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    module = ON_NODES

    def its_stamp() -> str:  # sent as it stands and not by its name, which a node without the sources would not find
        import importlib

        try:
            return str(importlib.import_module(module).stamp())
        except ImportError:
            return ""

    found = {
        _name_of(node): ray.remote(num_cpus=0)(its_stamp)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
        .remote()
        for node in nodes
    }
    for name, answer in found.items():
        has = ray.get(answer)
        if has != stamp():
            what = "other sources of dice-envs than this machine" if has else "no sources of dice-envs"
            raise ValueError(f"{name} has {what}: install the same checkout there, with the same extras")


def _call(function: Callable[[Any], Any], argument: Any, done: Done) -> Any:
    result = function(argument)
    done(1)
    return result


def _do(version: str, function: Callable[..., Any], shared: tuple[Any, ...], part: tuple[Any, ...]) -> Any:
    """One part, on a worker."""
    if stamp() != version:
        raise ValueError(f"{socket.gethostname()} has other sources of dice-envs than the machine that gives it work")
    return function(*shared, *part, lambda amount: None)


@contextlib.contextmanager
def on_ray(address: str | None, kept: Kept | None = None, cores: int = 1) -> Iterator[Workers]:
    """The workers of a cluster while the block runs; without an address, this process."""
    if address is None:
        yield Workers(kept)
        return
    workers = OnRay(address, kept, cores)
    try:
        yield workers
    finally:
        import ray

        ray.shutdown()


@contextlib.contextmanager
def kept_beside(json: Path | None, resume: bool, what: Mapping[str, Any], seed: int | None) -> Iterator[Kept | None]:
    """Keep finished parts beside a result's file while the block runs; they are removed when it has ended well.

    Args:
        json: the file of the result; None: nothing is kept.
        resume: go on with the parts that are there, if any.
        what: what is computed, as JSON holds it. Parts of something else are refused.
        seed: None: that of the parts, or a fresh one.

    Raises:
        ValueError: there are parts, but they are not to be taken, or they are of another computation or other sources; or
            `resume` without a file.
    """
    if json is None:
        if resume:
            raise ValueError("--resume goes on with what is kept beside the file of --json: name that file")
        yield None
        return
    folder = json.with_name(json.name + ".parts")
    plan = json_module.loads(json_module.dumps({**what, "sources": stamp()}))
    if (folder / PLAN).exists():
        if not resume:
            raise ValueError(f"{folder} holds parts of a run that was stopped: add --resume to go on with it, or remove it")
        seed = _seed_of(folder, plan, seed)
    kept = Kept(folder, seed_or_fresh(seed), plan)
    well = False
    try:
        if (folder / PLAN).exists():
            kept.open()
        yield kept
        well = True
    finally:
        kept.close(remove=well)


def _seed_of(folder: Path, plan: Mapping[str, Any], seed: int | None) -> int:
    """The seed of the parts in a folder; ValueError if they are not of this plan, or of another seed."""
    try:
        its = json_module.loads((folder / PLAN).read_text())
        its_seed = seed_or_fresh(int(its.pop("seed")))
    except (ValueError, AttributeError, KeyError, TypeError) as problem:
        raise ValueError(f"{folder / PLAN} is damaged ({problem}); remove {folder} to start anew") from None
    for name in {**plan, **its}:
        if plan.get(name) != its.get(name):
            raise ValueError(
                f"{folder} holds parts of a run with other {name} ({shown(its.get(name))}, not {shown(plan.get(name))}); "
                "remove it to start anew"
            )
    if seed not in (None, its_seed):
        raise ValueError(f"{folder} holds parts of a run with seed {its_seed}, not {seed}; remove it to start anew")
    return its_seed
