"""Work in parts: done in this process, in several or on a Ray cluster, with the same results; finished parts can be kept.

A divisible computation is a function of this project and a list of parts, each with its own seeds. Results do not depend on
where, when or how often a part is done, and so not on the number of workers.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import functools
import hashlib
import json as json_module
import logging
import multiprocessing
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol, Self

import numpy as np

import dice_envs
from dice_envs import agents
from dice_envs.core.files import BEGUN, folder_lock, read_archive, read_json, write_archive, write_text
from dice_envs.core.machine import needs
from dice_envs.core.options import shown
from dice_envs.core.own import FILES
from dice_envs.core.work import advance, work
from dice_envs.experiments.jobs.guard import follow_parent, held_back
from dice_envs.experiments.ui import console, seed_or_fresh

KEEP_AFTER = 5.0  # seconds
PLAN = "plan.json"  # describes the computation whose parts a folder holds
ON_NODES = __name__  # the module that every node must be able to import
LOOK_EVERY = 5.0  # seconds between two checks for lost nodes, while no part ends
MOST_RETRIES = 20  # of a part whose worker has died; then the part itself is taken to be the cause


@functools.cache
def stamp() -> str:
    """A hash of all sources of this project. Parts computed by other versions of the code are rejected."""
    roots = [Path(file).resolve().parent for file in (str(dice_envs.__file__), str(agents.__file__), Path(__file__).parent)]
    files = {str(path.relative_to(root.parent)): path for root in roots for path in root.rglob("*.py")}
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
        # One that has changed since this process began may not be what it runs: no hash fits that.
        if path.stat().st_ctime > BEGUN:
            digest.update(secrets.token_bytes())
    return digest.hexdigest()[:16]


class KeptParts:
    """Finished parts in a folder, each in a file of its own, written whole or not at all.

    Nothing is written in the first KEEP_AFTER seconds, because most work ends before that. Where nothing can be written, a
    message says so and the work goes on.

    Attributes:
        seed: the computation's.
    """

    def __init__(self, folder: Path, seed: int, plan: Mapping[str, Any]) -> None:
        self.folder, self.seed, self._plan = folder, seed, plan
        self._runs = 0
        self._from = time.monotonic() + KEEP_AFTER
        self._waiting: dict[str, Any] = {}
        self._fails = self._is_open = False
        self._lock = contextlib.ExitStack()

    def open(self) -> None:
        """Begin to write. ValueError if another process uses the folder, OSError if nothing can be written."""
        self._lock.enter_context(folder_lock(self.folder, "--json"))
        if not (self.folder / PLAN).exists():
            plan = {**self._plan, "seed": self.seed}
            write_text(self.folder / PLAN, json_module.dumps({**plan, "checksum": _checksum(plan)}))
        self._is_open = True

    def close(self, remove: bool) -> None:
        """Release the folder, and remove it with the kept parts if asked to."""
        if remove and self._is_open:
            with contextlib.suppress(OSError):  # files that cannot be removed stay; each says of which work it is
                (self.folder / PLAN).unlink()
        self._lock.close()
        if remove and self._is_open:
            shutil.rmtree(self.folder, ignore_errors=True)

    def of_next_run(self, parts: int) -> tuple[dict[int, Any], Callable[[int, Any], None]]:
        """The kept parts of the next call of `Workers.run`, by number, and a function that keeps another one."""
        name = f"{self._runs:03}"
        self._runs += 1
        there = {}
        for number in range(parts if self._is_open else 0):
            kept = read_archive(*self._of(f"{name}_{number:06}"), _result, console.whole_line)
            if kept is not None:
                (there[number],) = kept
        return there, lambda number, result: self._keep(f"{name}_{number:06}", result)

    def _of(self, part: str) -> tuple[Path, str]:
        """A part's file, and the work that it is: this part of this plan."""
        return self.folder / f"{part}.npz", f"{part} of {_checksum({**self._plan, 'seed': self.seed})}"

    def _keep(self, name: str, result: Any) -> None:
        self._waiting[name] = result
        if time.monotonic() < self._from or self._fails:
            return
        try:
            if not self._is_open:
                self.open()
            for each, found in self._waiting.items():
                text = b"" if isinstance(found, np.ndarray) else json_module.dumps(found).encode()
                write_archive(*self._of(each), {"json": np.frombuffer(text, np.uint8)} if text else {"array": found})
            self._waiting = {}
        except OSError as problem:
            self._fails = True
            console.print(f"finished parts are not kept: {problem}")


def _result(members: Mapping[str, np.ndarray]) -> tuple[Any]:
    """The result in a part's file."""
    return (members["array"] if "array" in members else json_module.loads(members["json"].tobytes()),)


def _checksum(plan: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_module.dumps(plan, sort_keys=True).encode()).hexdigest()


class Meter(Protocol):
    """Counts what is used in parts of a computation. It is pickled with a part, and there counts what that uses."""

    def __len__(self) -> int:
        """Return how many users of something there are."""
        ...

    def read(self) -> Sequence[Sequence[float]]:
        """Return what each has used so far in this process, a row of numbers."""
        ...

    def add(self, used: Sequence[Sequence[float]]) -> None:
        """Take note of what each has used for a part."""
        ...

    def recorded(self) -> int:
        """Return how much of what is used has been recorded in files; it grows with every use."""
        ...


class Workers:
    """Computes parts in this process, one after another.

    Args:
        kept: keeps finished parts, and returns those of a stopped run; None: nothing is kept.

    Attributes:
        meter: adds up what parts have used, also before a stop; None: nothing is.
    """

    def __init__(self, kept: KeptParts | None = None) -> None:
        self.kept = kept
        self.meter: Meter | None = None

    def metered(self, meter: Meter | None) -> Self:
        """Return the same workers with a meter."""
        twin = copy.copy(self)
        twin.meter = meter or None
        return twin

    def run(
        self,
        function: Callable[..., Any],
        shared: Sequence[Any],
        parts: Sequence[Sequence[Any]],
        sizes: Sequence[float] | None = None,
    ) -> list[Any]:
        """Return `function(*shared, *part)` of each part, in the order of the parts.

        Args:
            function: a module's, so that other processes find it by name. It returns an array, or what JSON can hold.
            shared: arguments that are the same for all parts.
            parts: the other arguments of each part.
            sizes: each part's amount of work, by which `function` advances (see `dice_envs.core.work`); 1 if left out.
        """
        size = [1.0] * len(parts) if sizes is None else sizes
        work = functools.partial(function, *shared)
        meter, kept = self.meter, self.kept
        if meter is None:
            return self._kept_or_done(work, parts, size)
        recorded = meter.recorded()
        new = kept if kept is not None and not (kept.folder / PLAN).exists() else None
        if new is not None:
            new.open()  # before a part is finished: what the meter counts is recorded, and a resumed run needs the seed
        try:
            metered = self._kept_or_done(functools.partial(_metered, work, meter), parts, size)
        except BaseException:
            if new is not None and meter.recorded() == recorded:
                new.close(remove=True)  # nothing was used: there is nothing to resume
            raise
        for part in metered:
            meter.add(part["used"])
        return [np.array(part["found"]) if isinstance(part["found"], list) else part["found"] for part in metered]

    def _kept_or_done(self, work: Any, parts: Sequence[Any], size: Sequence[float]) -> list[Any]:
        """Return the result of each part, in the order of the parts: a kept one, or one that is done and kept now."""
        results, keep = self.kept.of_next_run(len(parts)) if self.kept else ({}, lambda number, result: None)
        for number in results:
            advance(size[number])
        left = {number: part for number, part in enumerate(parts) if number not in results}
        for number, result in self._each(work, left, size):
            keep(number, result)
            results[number] = result
        return [results[number] for number in range(len(parts))]

    def as_done(self, function: Callable[..., Any], parts: Sequence[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        """Yield each part's number and `function(*part)` as parts finish. They are not kept: that is up to the caller."""
        return self._each(function, dict(enumerate(parts)), [1.0] * len(parts))

    def map(self, function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
        """Like Python's `map`; each call is a part."""
        return self.run(_call, (function,), [(argument,) for argument in arguments])

    def _each(self, work: Any, parts: Mapping[int, Any], sizes: Sequence[float]) -> Iterator[tuple[int, Any]]:
        """Yield the number and result of each part as parts finish."""
        return ((number, work(*part)) for number, part in parts.items())


HERE = Workers()


class Processes(Workers):
    """Computes parts in `number` processes of this machine at once, which are started for each computation."""

    def __init__(self, number: int, kept: KeptParts | None = None) -> None:
        super().__init__(kept)
        self.number = number

    def _each(self, work: Any, parts: Mapping[int, Any], sizes: Sequence[float]) -> Iterator[tuple[int, Any]]:
        # Spawned, because a fork would copy locks that threads of PyTorch and numba hold.
        context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
        pool = concurrent.futures.ProcessPoolExecutor(self.number, context, follow_parent)
        try:
            with held_back():  # Ctrl-C is this process's alone
                numbers = {pool.submit(work, *part): number for number, part in parts.items()}
            for ready in concurrent.futures.as_completed(numbers):
                result, number = ready.result(), numbers[ready]
                advance(sizes[number])
                yield number, result
        except BaseException:  # not to wait for parts that nobody wants any more
            for child in set(multiprocessing.active_children()) - others:
                child.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


class OnRay(Workers):
    """Computes parts on a Ray cluster. A part whose worker or node dies is done again elsewhere; finished parts stay.

    Args:
        address: "local" starts a cluster on this machine, with a worker for each core; "auto", HOST:PORT or
            ray://HOST:PORT is one that runs already. All its nodes need the same sources of this project.
        kept: as for Workers.
        cores: of each part.

    Raises:
        ValueError: there is no such cluster, no node has enough cores, or a node has no sources or other ones.
    """

    def __init__(self, address: str, kept: KeptParts | None = None, cores: int = 1) -> None:
        super().__init__(kept)
        import ray

        self.cores = cores
        where: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
        try:
            ray.init(address, **where, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as problem:
            reason = str(problem).partition("\n")[0]
            raise ValueError(
                f"--ray must be local or a cluster's address (auto, HOST:PORT, ray://HOST:PORT), not {shown(address)}: {reason}"
            ) from None
        self._nodes = _living()
        most = max((int(node["Resources"].get("CPU", 0)) for node in self._nodes.values()), default=0)
        if most < cores:
            raise ValueError(f"--threads must be {most} at most on this cluster, the cores of its largest node, not {cores}")
        _check_sources(self._nodes.values())

    def _each(self, work: Any, parts: Mapping[int, Any], sizes: Sequence[float]) -> Iterator[tuple[int, Any]]:
        """As for Workers. After an error, parts that are still computed end with the connection, in `on_ray`.

        They are not cancelled: Ray 2.60 aborts the process when a part that is cancelled ends at that moment.

        Raises:
            ValueError: a node has other sources of this project.
            RuntimeError: the workers of one part died too often.
        """
        import ray

        # "SPREAD": parts are coarse, so an idle node is better than the one that holds the arguments.
        compute = ray.remote(num_cpus=self.cores, max_retries=MOST_RETRIES, scheduling_strategy="SPREAD")(_do)
        given, version = ray.put(work), stamp()
        numbers = {compute.remote(version, given, tuple(part)): number for number, part in parts.items()}
        try:
            while numbers:
                for ready in ray.wait(list(numbers), num_returns=1, timeout=LOOK_EVERY)[0]:
                    result, number = ray.get(ready), numbers.pop(ready)
                    advance(sizes[number])
                    yield number, result
                there = _living()
                for lost in self._nodes.keys() - there.keys():
                    console.print(f"{_name_of(self._nodes[lost])} is lost; its parts are done again on other nodes")
                self._nodes = there
        except ray.exceptions.RayTaskError as problem:
            raise problem.cause from None
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError) as problem:
            reason = str(problem).partition("\n")[0]
            raise RuntimeError(f"a part failed, {MOST_RETRIES + 1} workers died while computing it: {reason}") from None


def _living() -> dict[str, Any]:
    """Ray's descriptions of the cluster's living nodes, by their id."""
    import ray

    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


def _name_of(node: Mapping[str, Any]) -> str:
    return f"the node {node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {node['NodeID'][:8]})"


def _check_sources(nodes: Iterable[Mapping[str, Any]]) -> None:
    """Raise ValueError, naming the node and the remedy, if one has no sources of this project or other ones."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    module = ON_NODES

    def its_stamp() -> str:  # sent as code: a node without the sources would not find its name
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


def _metered(work: Callable[..., Any], meter: Meter, *part: Any) -> dict[str, Any]:
    """Return the result of a part in the form of JSON, and what has been used for it."""
    before = meter.read()
    found = work(*part)
    used = [[late - early for early, late in zip(*each, strict=True)] for each in zip(before, meter.read(), strict=True)]
    return {"found": found.tolist() if isinstance(found, np.ndarray) else found, "used": used}


def _call(function: Callable[[Any], Any], argument: Any) -> Any:
    with work():
        result = function(argument)
    advance()
    return result


def _do(version: str, work: Callable[..., Any], part: tuple[Any, ...]) -> Any:
    """Compute a part on a node, which must have the same sources."""
    if stamp() != version:
        raise ValueError(f"{socket.gethostname()} has other sources of dice-envs than the machine that sends it work")
    return work(*part)


@contextlib.contextmanager
def on_ray(address: str | None, kept: KeptParts | None = None, cores: int = 1) -> Iterator[Workers]:
    """Yield a cluster's workers, for as long as the block runs; without an address, this process.

    Raises:
        ImportError: Ray is not installed.
        ValueError: as for `OnRay`.
    """
    if address is None:
        yield Workers(kept)
        return
    with needs("ray", "--ray"):
        import ray
    try:
        yield OnRay(address, kept, cores)
    finally:
        ray.shutdown()


@contextlib.contextmanager
def kept_beside(json: Path | None, resume: bool, what: Mapping[str, Any], seed: int | None) -> Iterator[KeptParts | None]:
    """Keep finished parts beside a result's file while the block runs, and remove them when it ends without an error.

    Args:
        json: the file of the result; None: nothing is kept.
        resume: use the parts that are there, if any.
        what: a description of the computation, in what JSON can hold. Parts of another one are refused.
        seed: the computation's; None: that of the parts, or a fresh one.

    Raises:
        ValueError: there are parts without `resume`, or parts of another computation or other sources; or `resume` without
            a file.
    """
    if json is None:
        if resume:
            raise ValueError("--resume needs --json: finished parts are kept beside its file")
        yield None
        return
    folder = json.with_name(json.name + ".parts")
    plan = json_module.loads(json_module.dumps({**what, "sources": stamp(), "own_code": _checksum(FILES)[:16]}))
    if (folder / PLAN).exists():
        if not resume:
            raise ValueError(f"{folder} holds parts of a run that was stopped: add --resume to go on with it, or remove it")
        seed = _seed_of(folder, plan, seed)
    kept = KeptParts(folder, seed_or_fresh(seed), plan)
    well = False
    try:
        if (folder / PLAN).exists():
            kept.open()
        yield kept
        well = True
    finally:
        kept.close(remove=well)


@contextlib.contextmanager
def resumable(
    json: Path | None,
    resume: bool,
    what: Mapping[str, Any],
    seed: int | None,
    ray: str | None = None,
    meter: Meter | None = None,
) -> Iterator[tuple[int, Workers]]:
    """Yield the seed and the workers, with the meter, of a command that keeps finished parts (`kept_beside`) and may run on a
    cluster."""
    with kept_beside(json, resume, what, seed) as kept, on_ray(ray, kept) as workers:
        yield (kept.seed if kept else seed_or_fresh(seed)), workers.metered(meter)


def _seed_of(folder: Path, plan: Mapping[str, Any], seed: int | None) -> int:
    """The seed of the parts in a folder; ValueError if they are of another plan or seed, or the plan is damaged."""

    def refuse(reason: str) -> NoReturn:
        raise ValueError(f"{folder} holds parts of a run with {reason}; remove it to start anew")

    try:
        its = read_json(folder / PLAN)
        if its.pop("checksum", None) != _checksum(its):
            raise ValueError("its checksum is wrong")
        its_seed = seed_or_fresh(int(its.pop("seed")))
    except (ValueError, KeyError, TypeError) as problem:
        refuse(f"a damaged {PLAN} ({problem})")
    for name in {**plan, **its}:
        if plan.get(name) != its.get(name):
            refuse(f"other {name} ({shown(its.get(name))}, not {shown(plan.get(name))})")
    if seed not in (None, its_seed):
        refuse(f"seed {its_seed}, not {seed}")
    return its_seed
