"""Do the tests notice small faults? `python -m tests.mutants` puts random ones into the code and runs the tests on each.

A mutant is the committed project with one change: a comparison, a sign or a small constant. The tests nearest to the changed
module run first, then all fast ones, and with `--slow` the slow ones that import the module. A mutant that every test lets
live is a survivor: it changes nothing that anybody could see, or a test is missing.

    python -m tests.mutants --seed 1 --count 100 --results build/mutants.jsonl

Results are appended mutant by mutant, and those of an earlier run with the same file are not run again.
"""

from __future__ import annotations

import argparse
import ast
import collections
import dataclasses
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("dice_envs", "agents", "experiments")
LARGEST = 10  # constant that is changed
FAR = 99  # imports between a test and a module that it does not import
NEAREST = 6  # test files that run first
TEST_LIMIT = 300  # seconds after which a test counts as one that never ends; kernels have to be compiled anew
SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+"}
WRITTEN = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Add: "+", ast.Sub: "-"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: `new` in place of `old`, which stands at `offset` bytes of the file."""

    path: str
    line: int
    offset: int
    old: str
    new: str
    text: str  # the line as it is

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old} → {self.new}: {self.text}"

    def apply(self, root: Path) -> None:
        """Write the change into a copy of the project."""
        file = root / self.path
        content = file.read_bytes()
        old = self.old.encode()
        assert content[self.offset : self.offset + len(old)] == old
        file.write_bytes(content[: self.offset] + self.new.encode() + content[self.offset + len(old) :])

    def undo(self, root: Path) -> None:
        """Take the change back."""
        subprocess.run(["git", "checkout", "-q", "--", self.path], cwd=root, check=True)


# --- mutants ----------------------------------------------------------------------------------------------------------


def mutants_of(path: str) -> Iterator[Mutant]:
    """Every mutant of a file."""
    content = (ROOT / path).read_bytes()
    lines = content.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def mutant(line: int, offset: int, old: str, new: str) -> Mutant:
        return Mutant(path, line, offset, old, new, lines[line - 1].decode().strip())

    def between(left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[Mutant]:
        first = starts[(left.end_lineno or 0) - 1] + (left.end_col_offset or 0)
        last = starts[right.lineno - 1] + right.col_offset
        old = WRITTEN.get(type(operator), "")
        if old and content[first:last].count(old.encode()) == 1:  # parentheses and comments may stand there too
            yield mutant(left.end_lineno or 0, first + content[first:last].index(old.encode()), old, SWAPPED[old])

    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Compare):
            for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators):
                yield from between(left, operator, right)
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.op, node.right)
        elif isinstance(node, ast.Constant) and type(node.value) is int and node.value <= LARGEST:
            old = content[starts[node.lineno - 1] + node.col_offset : starts[node.lineno - 1] + (node.end_col_offset or 0)]
            if old.decode() == str(node.value):
                yield mutant(node.lineno, starts[node.lineno - 1] + node.col_offset, old.decode(), str(node.value + 1))


def sources() -> list[str]:
    """The project's files that are mutated."""
    return committed(*PACKAGES)


def committed(*folders: str) -> list[str]:
    """The Python files in some folders that git knows."""
    command = ["git", "ls-files", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if path.endswith(".py")]


def draw(count: int, seed: int) -> list[Mutant]:
    """Random mutants, all equally likely."""
    everyone = [mutant for path in sources() for mutant in mutants_of(path)]
    return random.Random(seed).sample(everyone, count)


# --- tests ------------------------------------------------------------------------------------------------------------


def module_of(path: str) -> str:
    """The name by which a file is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports_of(path: str, modules: dict[str, str]) -> set[str]:
    """The project's files that a file imports, anywhere in it."""
    module, found = module_of(path), set()
    package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    for node in ast.walk(ast.parse((ROOT / path).read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return {modules[name] for name in found if name in modules}


def tests_by_distance() -> dict[str, list[str]]:
    """For every source the test files, the nearest first: those named for it, then by the number of imports in between."""
    listed = subprocess.run(
        ["git", "ls-files", "tests", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    files = [path for path in listed.splitlines() if path.endswith(".py")]
    modules = {module_of(path): path for path in files}
    imported = {path: imports_of(path, modules) for path in files}
    tests = [path for path in files if Path(path).name.startswith("test_") and not path.startswith("tests/web/")]
    distances = {test: _distances(test, imported) for test in tests}

    def rank(test: str, source: str) -> tuple[int, int, int]:
        """Of two at the same distance, the one that imports less looks closer."""
        return -_likeness(test, source), distances[test].get(source, FAR), len(distances[test])

    return {source: sorted(tests, key=lambda test: rank(test, source)) for source in sources()}


def _distances(start: str, imported: dict[str, set[str]]) -> dict[str, int]:
    distances, todo = {start: 0}, collections.deque([start])
    while todo:
        path = todo.popleft()
        for other in imported[path] - set(distances):
            distances[other] = distances[path] + 1
            todo.append(other)
    return distances


def _likeness(test: str, source: str) -> int:
    """2 if the test is named for the module, 1 if one name begins with the other, 0 otherwise."""
    name = Path(test).stem.removeprefix("test_")
    parts = module_of(source).split(".")
    if name in (parts[-1], "_".join(parts[-2:])):
        return 2
    short = name.removeprefix("exact_").removeprefix("reproduce_")
    return int(any(part.startswith(short) or short.startswith(part) for part in parts[1:]))


def judge(mutant: Mutant, root: Path, tests: list[str], slow: bool) -> dict[str, object]:
    """Run the tests on a mutant until one fails."""
    begun = time.monotonic()
    fast = "not slow and not web"
    stages = [("nearest", fast, tests[:NEAREST]), ("fast", fast, tests[NEAREST:])]
    if slow:
        stages.append(("slow", "slow and not web", tests))
    killers: dict[str, str | None] = {}
    mutant.apply(root)
    try:
        for stage, mark, files in stages:
            killers[stage] = run_tests(root, mark, files)
            if killers[stage] is not None:
                break
    finally:
        mutant.undo(root)
    stage, killer = killers.popitem()
    return {
        **dataclasses.asdict(mutant),
        "killed": killer is not None,
        "stage": stage,
        "by": killer,
        "seconds": round(time.monotonic() - begun),
    }


def run_tests(root: Path, mark: str, files: list[str]) -> str | None:
    """Run test files in a copy of the project. Returns what failed; None if nothing did."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", mark, *files]
    command += ["-o", f"faulthandler_timeout={TEST_LIMIT}", "-o", "faulthandler_exit_on_timeout=true"]
    environment = {**os.environ, "PYTHONPATH": str(root), "NUMBA_OPT": "1", "CI": "true"}  # the same examples each time
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    if done.returncode in (0, 5):  # 5: no test has this mark
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return " ".join(failed) if failed else f"status {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"


# --- the run ----------------------------------------------------------------------------------------------------------


def main() -> None:
    """Read the command line, run the mutants, print the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="fixes which mutants are drawn")
    parser.add_argument("--count", type=int, default=100, help="how many mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants that are tested at the same time")
    parser.add_argument("--results", type=Path, default=Path("build/mutants.jsonl"), help="one JSON object a line and mutant")
    parser.add_argument("--slow", action="store_true", help="run the slow tests too, on those that the fast ones let live")
    parser.add_argument("--list", action="store_true", help="only print the mutants")
    options = parser.parse_args()
    mutants = draw(options.count, options.seed)
    print(f"{len(mutants)} mutants, seed {options.seed}")
    if options.list:
        print(*mutants, sep="\n")
        return
    options.results.parent.mkdir(parents=True, exist_ok=True)
    results = run(mutants, options.jobs, options.results, options.slow)
    survivors = [result for result in results if not result["killed"]]
    print(f"{len(results) - len(survivors)} of {len(results)} killed; survivors:")
    for result in survivors:
        print(f"  {result['path']}:{result['line']}: {result['old']} → {result['new']}: {result['text']}")


def run(mutants: list[Mutant], jobs: int, file: Path, slow: bool) -> list[dict[str, object]]:
    """Judge the mutants that the results file does not hold yet; all their results."""
    done = (
        {(r["path"], r["offset"], r["new"]): r for r in map(json.loads, file.read_text().splitlines())} if file.exists() else {}
    )
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        if (mutant.path, mutant.offset, mutant.new) not in done:
            waiting.put(mutant)
    order, lock = tests_by_distance(), threading.Lock()

    def work(root: Path) -> None:
        subprocess.run(["git", "clone", "-q", str(ROOT), str(root)], check=True)
        while not waiting.empty():
            mutant = waiting.get()
            result = judge(mutant, root, order[mutant.path], slow)
            with lock:
                done[mutant.path, mutant.offset, mutant.new] = result
                with file.open("a") as results:
                    results.write(json.dumps(result) + "\n")
                print(f"{'killed' if result['killed'] else 'LIVES'} after {result['seconds']} s: {mutant}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        workers = [threading.Thread(target=work, args=(Path(folder) / f"copy{k}",)) for k in range(jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return [done[mutant.path, mutant.offset, mutant.new] for mutant in mutants]


if __name__ == "__main__":
    main()
