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
import concurrent.futures
import dataclasses
import itertools
import json
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from coverage import CoverageData

from tests.support.changed import ROOT, importing, tests_of

PACKAGES = ("dice_envs", "agents", "experiments")
EVERY_AGENT = "tests/agents/test_every_agent.py"  # takes as long as all other test files together
SHORT = "not slow and not web"
LARGEST = 10  # largest constant that is changed
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
    text: str  # the original line

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old} → {self.new}: {self.text}"

    @property
    def key(self) -> tuple[str, int, str]:
        """What tells mutants apart."""
        return self.path, self.offset, self.new


def mutants_of(path: str) -> Iterator[Mutant]:
    """All mutants of a file as it is committed, which is what is tested."""
    content = subprocess.run(["git", "show", f"HEAD:{path}"], cwd=ROOT, capture_output=True, check=True).stdout
    lines = content.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]

    def mutant(line: int, offset: int, old: str, new: str) -> Mutant:
        return Mutant(path, line, offset, old, new, lines[line - 1].decode().strip())

    def between(left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[Mutant]:
        first = starts[(left.end_lineno or 0) - 1] + (left.end_col_offset or 0)
        gap = content[first : starts[right.lineno - 1] + right.col_offset].decode()
        old = WRITTEN.get(type(operator), "")
        if old and gap.count(old) == 1:  # the gap may also have parentheses and comments
            yield mutant(left.end_lineno or 0, first + len(gap.partition(old)[0].encode()), old, SWAPPED[old])

    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Compare):
            for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators):
                yield from between(left, operator, right)
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.op, node.right)
        elif isinstance(node, ast.Constant) and type(node.value) is int and node.value <= LARGEST:
            first, old = starts[node.lineno - 1] + node.col_offset, str(node.value)
            if content[first : starts[node.lineno - 1] + (node.end_col_offset or 0)].decode() == old:
                yield mutant(node.lineno, first, old, str(node.value + 1))


def draw(count: int, seed: int) -> list[Mutant]:
    """Draw random mutants of the committed files, all equally likely."""
    command = ["git", "ls-tree", "-r", "--name-only", "HEAD", *PACKAGES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    everyone = [mutant for path in listed if path.endswith(".py") for mutant in mutants_of(path)]
    return random.Random(seed).sample(everyone, count)


def changes_kernels(mutant: Mutant) -> bool:
    """Whether a change can reach machine code: in a kernel, in code that builds one, or in a constant beside kernels."""
    content = (ROOT / mutant.path).read_text()
    for statement in ast.parse(content).body:
        inside = statement.lineno <= mutant.line <= (statement.end_lineno or 0)
        if inside and isinstance(statement, ast.FunctionDef | ast.ClassDef):
            content = ast.unparse(statement)
    return mutant.path == "dice_envs/core/kernel.py" or re.search(r"^\s*@.*kernel", content, re.M) is not None


def tests_for(mutant: Mutant, coverage: CoverageData) -> list[str]:
    """The tests of the mutant's file, then those that reach its line.

    Coverage sees neither kernels nor code that runs at import. For these, use all tests that reach the module, and the
    files that import it.
    """
    measured = next((file for file in coverage.measured_files() if file.endswith(f"/{mutant.path}")), "")
    by_line = {line: set(contexts) for line, contexts in coverage.contexts_by_lineno(measured).items()}
    reaching = by_line.get(mutant.line, set()) - {""}
    files = tests_of(mutant.path)
    if changes_kernels(mutant) or not reaching:
        reaching = set().union(*by_line.values()) - {""}
        files |= importing(mutant.path)
    own = {str(file.relative_to(ROOT)) for file in files}
    return [*sorted(own), *sorted({context.rpartition("|")[0] for context in reaching})]


def run_pytest(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    command += ["-o", f"faulthandler_timeout={TEST_LIMIT}", "-o", "faulthandler_exit_on_timeout=true"]
    environment = {**os.environ, "PYTHONPATH": str(copy), "NUMBA_OPT": "1"}
    environment["CI"] = "true"  # Hypothesis tries the same examples each time
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)


def cover(copy: Path) -> CoverageData:
    """Run all fast tests, which compiles their kernels, and return the lines that each reaches."""
    measured = [*(f"--cov={package}" for package in PACKAGES), "--cov-context=test", "--cov-report="]
    fast = f"{SHORT} and not thorough"
    done = run_pytest(copy, "-n", "auto", "--dist", "loadfile", "-m", fast, f"--ignore={EVERY_AGENT}", *measured)
    if done.returncode:
        sys.exit(f"the tests fail without a mutant:\n{done.stdout[-3000:]}")
    found = CoverageData(str(copy / ".coverage"))
    found.read()
    return found


def judge(copy: Path, mutant: Mutant, tests: list[str]) -> dict[str, object]:
    """Run tests on a mutant until one fails."""
    begun, file = time.monotonic(), copy / mutant.path
    content, old, killer = file.read_bytes(), mutant.old.encode(), ""
    assert content[mutant.offset :].startswith(old)
    file.write_bytes(content[: mutant.offset] + mutant.new.encode() + content[mutant.offset + len(old) :])
    listed = copy / "tests_of_mutant.txt"
    listed.write_text("\n".join(tests))
    done = run_pytest(copy, "-x", "-m", SHORT, f"@{listed.name}")
    file.write_bytes(content)
    if done.returncode not in (0, 5):  # 5: no test has this mark
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        killer = " ".join(failed) or f"status {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"
    seconds = round(time.monotonic() - begun)
    return {**dataclasses.asdict(mutant), "killed": bool(killer), "by": killer, "tests": len(tests), "seconds": seconds}


def run(mutants: list[Mutant], jobs: int, file: Path) -> list[dict[str, object]]:
    """Test the mutants that the results file does not have yet, each in one of several copies; return the results of all.

    Only kernels that a change reaches are compiled anew.
    """
    lines = file.read_text().splitlines() if file.exists() else []
    done = {(result["path"], result["offset"], result["new"]): result for result in map(json.loads, lines)}
    lock, free = threading.Lock(), queue.SimpleQueue[Path]()

    def work(mutant: Mutant, tests: list[str]) -> None:
        copy = free.get()
        result = done[mutant.key] = judge(copy, mutant, tests)
        free.put(copy)
        with lock, file.open("a") as results:
            results.write(json.dumps(result) + "\n")
            print(f"{'killed' if result['killed'] else 'LIVES'} after {result['seconds']} s: {mutant}", flush=True)

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        first = Path(folder) / "copy"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(first)], check=True)
        coverage = cover(first)
        for number in range(jobs):
            free.put(shutil.copytree(first, Path(folder) / f"copy{number}"))
        waiting = [(mutant, tests_for(mutant, coverage)) for mutant in mutants if mutant.key not in done]
        for tested in [pool.submit(work, *each) for each in waiting]:
            tested.result()
    return [done[mutant.key] for mutant in mutants]


def main() -> None:
    """Read the command line, run the mutants, print the survivors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="fixes which mutants are drawn")
    parser.add_argument("--count", type=int, default=100, help="how many mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants that are tested at the same time")
    parser.add_argument("--results", type=Path, default=Path("build/mutants.jsonl"), help="one JSON object a line and mutant")
    options = parser.parse_args()
    print(f"{options.count} mutants, seed {options.seed}")
    options.results.parent.mkdir(parents=True, exist_ok=True)
    results = run(draw(options.count, options.seed), options.jobs, options.results)
    survivors = [result for result in results if not result["killed"]]
    print(f"{len(results) - len(survivors)} of {len(results)} killed; survivors:")
    for result in survivors:
        print(f"  {result['path']}:{result['line']}: {result['old']} → {result['new']}: {result['text']}")


if __name__ == "__main__":
    main()
