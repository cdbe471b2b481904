"""Mutation testing: `python -m tests.support.mutants` puts random small faults into the code and runs the tests.

A mutant is the committed project with one change: a comparison, a sign or a small constant. First all fast tests run once with
coverage. Then each mutant is tested by those that reach its line, or its module if the line is in a kernel, which coverage
cannot see into. A mutant that passes all of them is a survivor: either it changes no visible behaviour, or a test is missing.

    python -m tests.support.mutants --seed 1 --count 100 --results build/mutants.jsonl

Results are appended mutant by mutant. Mutants that the results file already has are not run again.
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
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("dice_envs", "agents", "experiments")
KEPT = ("old", "new", "column", "text")  # identify a mutant in its file even if lines have moved
LARGEST = 10  # largest constant that is changed
FAR = 99  # distance between a test and a module that it does not import
TEST_LIMIT = 300  # seconds after which a test counts as endless; kernels may have to be compiled
SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+"}
WRITTEN = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Add: "+", ast.Sub: "-"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: `new` instead of `old`, at byte `offset` of the file."""

    path: str
    line: int
    offset: int
    old: str
    new: str
    column: int
    text: str  # the original line

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
        """Undo the change."""
        subprocess.run(["git", "checkout", "-q", "--", self.path], cwd=root, check=True)


# --- mutants ----------------------------------------------------------------------------------------------------------


def mutants_of(path: str) -> Iterator[Mutant]:
    """All mutants of a file."""
    content = (ROOT / path).read_bytes()
    lines = content.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def mutant(line: int, offset: int, old: str, new: str) -> Mutant:
        return Mutant(path, line, offset, old, new, offset - starts[line - 1], lines[line - 1].decode().strip())

    def between(left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[Mutant]:
        first = starts[(left.end_lineno or 0) - 1] + (left.end_col_offset or 0)
        last = starts[right.lineno - 1] + right.col_offset
        old = WRITTEN.get(type(operator), "")
        if old and content[first:last].count(old.encode()) == 1:  # the gap may also have parentheses and comments
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
    """The files of the project to mutate."""
    return committed(*PACKAGES)


def committed(*folders: str) -> list[str]:
    """The Python files below the folders that git tracks."""
    command = ["git", "ls-files", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if path.endswith(".py")]


def draw(count: int, seed: int) -> list[Mutant]:
    """Draw random mutants, all equally likely."""
    everyone = [mutant for path in sources() for mutant in mutants_of(path)]
    return random.Random(seed).sample(everyone, count)


def survivors_of(results: Path) -> list[Mutant]:
    """Survivors of an earlier run, located in the current code. Those whose line has changed are printed and left out."""
    found = []
    for result in map(json.loads, results.read_text().splitlines()):
        if result["killed"]:
            continue
        same = [each for each in mutants_of(result["path"]) if all(getattr(each, key) == result[key] for key in KEPT)]
        if same:
            found.append(min(same, key=lambda each: abs(each.line - result["line"])))
        else:
            print(f"gone: {result['path']}:{result['line']}: {result['text']}")
    return found


# --- tests ------------------------------------------------------------------------------------------------------------


def module_of(path: str) -> str:
    """The import name of a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports_of(path: str, modules: dict[str, str]) -> set[str]:
    """The project's files that a file imports, at any place."""
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


class Tests:
    """The tests for each mutant.

    Args:
        coverage: the file that `Copy.run_all` wrote.
    """

    def __init__(self, coverage: Path) -> None:
        self._coverage = CoverageData(str(coverage))
        self._coverage.read()
        files = committed("tests", *PACKAGES)
        modules = {module_of(path): path for path in files}
        imported = {path: imports_of(path, modules) for path in files}
        self._tests = [
            path for path in files if Path(path).name.startswith("test_") and not path.startswith("tests/experiments/web/")
        ]
        self._distances = {test: _distances(test, imported) for test in self._tests}

    def fast(self, mutant: Mutant) -> list[str]:
        """Tests that reach the line, and test files named after its module, the nearest first.

        Coverage sees neither kernels nor code that runs at import. For these, use all tests that reach the module, and the
        files that import it.
        """
        by_line, nearest = self._reaching(mutant.path), self.nearest(mutant.path)
        reaching = by_line.get(mutant.line, set())
        seen = not changes_kernels(mutant) and bool(reaching - {""})
        contexts = reaching if seen else set().union(*by_line.values())
        tests = {context.rpartition("|")[0] for context in contexts} - {""}
        tests |= {file for file in nearest if _likeness(file, mutant.path) == 2}
        tests |= {file for file in nearest if not seen and self._distances[file].get(mutant.path) == 1}
        order = {file: place for place, file in enumerate(nearest)}
        return sorted(tests, key=lambda test: (order.get(test.partition("::")[0], FAR), test))

    def _reaching(self, path: str) -> dict[int, set[str]]:
        for file in self._coverage.measured_files():
            if file.endswith(f"/{path}"):
                return {line: set(contexts) for line, contexts in self._coverage.contexts_by_lineno(file).items()}
        return {}

    def nearest(self, source: str) -> list[str]:
        """Test files: first those named after the module, then by the number of imports in between."""
        return sorted(self._tests, key=lambda test: self._rank(test, source))

    def _rank(self, test: str, source: str) -> tuple[int, int, int]:
        """Among files at the same distance, prefer the one that imports less."""
        return -_likeness(test, source), self._distances[test].get(source, FAR), len(self._distances[test])


def _distances(start: str, imported: dict[str, set[str]]) -> dict[str, int]:
    distances, todo = {start: 0}, collections.deque([start])
    while todo:
        path = todo.popleft()
        for other in imported[path] - set(distances):
            distances[other] = distances[path] + 1
            todo.append(other)
    return distances


def _likeness(test: str, source: str) -> int:
    """2 if the test is named after the module, 1 if one name begins with the other, 0 otherwise."""
    name = Path(test).stem.removeprefix("test_")
    parts = module_of(source).split(".")
    if name in (parts[-1], "_".join(parts[-2:])):
        return 2
    short = name.removeprefix("exact_").removeprefix("reproduce_")
    return int(any(part.startswith(short) or short.startswith(part) for part in parts[1:]))


SHORT = "not slow and not web"


class Copy:
    """A clone of the project in which mutants are tested. Only kernels that a change reaches are compiled anew."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def clone(self) -> None:
        """Clone the committed project."""
        subprocess.run(["git", "clone", "-q", str(ROOT), str(self.root)], check=True)

    def run_all(self, coverage: Path) -> None:
        """Run all fast tests, which compiles their kernels, and record the lines that each reaches."""
        measured = [f"--cov={package}" for package in PACKAGES]
        command = [
            "-n",
            "auto",
            "--dist",
            "loadfile",
            "-m",
            f"{SHORT} and not thorough",
            f"--ignore={EVERY_AGENT}",
            *measured,
            "--cov-context=test",
            "--cov-report=",
        ]
        done = self._pytest(command)
        if done.returncode:
            sys.exit(f"the tests fail without a mutant:\n{done.stdout[-3000:]}")
        shutil.copy(self.root / ".coverage", coverage)

    def judge(self, mutant: Mutant, tests: list[str]) -> dict[str, object]:
        """Run the tests on a mutant until one fails."""
        begun = time.monotonic()
        mutant.apply(self.root)
        try:
            killer = self.run(tests)
        finally:
            mutant.undo(self.root)
        found = {"killed": killer is not None, "by": killer, "tests": len(tests), "seconds": round(time.monotonic() - begun)}
        return {**dataclasses.asdict(mutant), **found}

    def run(self, tests: list[str]) -> str | None:
        """Run tests. Returns the failure, or None."""
        if not tests:
            return None
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
            listed.write("\n".join(tests))
            listed.flush()
            done = self._pytest(["-x", "-m", SHORT, f"@{listed.name}"])
        if done.returncode in (0, 5):  # 5: no test has this mark
            return None
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return " ".join(failed) if failed else f"status {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"

    def _pytest(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        command += ["-o", f"faulthandler_timeout={TEST_LIMIT}", "-o", "faulthandler_exit_on_timeout=true"]
        environment = {**os.environ, "PYTHONPATH": str(self.root), "NUMBA_OPT": "1"}
        environment["CI"] = "true"  # Hypothesis tries the same examples each time
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True)


EVERY_AGENT = "tests/agents/test_every_agent.py"  # takes as long as all other test files together


def changes_kernels(mutant: Mutant) -> bool:
    """Whether a change can reach machine code: in a kernel, in code that builds one, or in a constant beside kernels."""
    content = (ROOT / mutant.path).read_text()
    if mutant.path == "dice_envs/core/kernel.py":
        return True
    for statement in ast.parse(content).body:
        if statement.lineno <= mutant.line <= (statement.end_lineno or 0):
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                return "@kernel" in (ast.get_source_segment(content, statement) or "") or _decorated(statement)
            return "@kernel" in content
    return True


def _decorated(statement: ast.FunctionDef | ast.ClassDef) -> bool:
    return any("kernel" in ast.unparse(decorator) for decorator in statement.decorator_list)


# --- the run ----------------------------------------------------------------------------------------------------------


def main() -> None:
    """Read the command line, run the mutants, print the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="fixes which mutants are drawn")
    parser.add_argument("--count", type=int, default=100, help="how many mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants that are tested at the same time")
    parser.add_argument("--results", type=Path, default=Path("build/mutants.jsonl"), help="one JSON object a line and mutant")
    parser.add_argument("--again", type=Path, help="those that lived in these results, in place of random ones")
    options = parser.parse_args()
    mutants = draw(options.count, options.seed) if options.again is None else survivors_of(options.again)
    print(f"{len(mutants)} mutants, {f'seed {options.seed}' if options.again is None else f'of {options.again}'}")
    options.results.parent.mkdir(parents=True, exist_ok=True)
    results = run(mutants, options.jobs, options.results)
    survivors = [result for result in results if not result["killed"]]
    print(f"{len(results) - len(survivors)} of {len(results)} killed; survivors:")
    for result in survivors:
        print(f"  {result['path']}:{result['line']}: {result['old']} → {result['new']}: {result['text']}")


def run(mutants: list[Mutant], jobs: int, file: Path) -> list[dict[str, object]]:
    """Test the mutants that the results file does not have yet; returns the results of all."""
    lines = file.read_text().splitlines() if file.exists() else []
    done = {(result["path"], result["offset"], result["new"]): result for result in map(json.loads, lines)}
    waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        if (mutant.path, mutant.offset, mutant.new) not in done:
            waiting.put(mutant)
    lock = threading.Lock()

    def work(copy: Copy, tests: Tests) -> None:
        while not waiting.empty():
            mutant = waiting.get()
            result = copy.judge(mutant, tests.fast(mutant))
            with lock:
                done[mutant.path, mutant.offset, mutant.new] = result
                with file.open("a") as results:
                    results.write(json.dumps(result) + "\n")
                print(f"{'killed' if result['killed'] else 'LIVES'} after {result['seconds']} s: {mutant}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        first, coverage = Copy(Path(folder) / "copy0"), Path(folder) / "coverage"
        first.clone()
        first.run_all(coverage)
        copies = [first, *(Copy(Path(folder) / f"copy{number}") for number in range(1, jobs))]
        for copy in copies[1:]:
            shutil.copytree(first.root, copy.root)
        workers = [threading.Thread(target=work, args=(copy, Tests(coverage))) for copy in copies]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return [done[mutant.path, mutant.offset, mutant.new] for mutant in mutants]


if __name__ == "__main__":
    main()
