"""Print the test files of what has changed since a commit: `python -m tests.support.changed main`.

Tests lie in the same folders as the code. A module without a test file of its own is tested by the files that import it, or
where there are none by those of the nearest folder.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def importing(path: str) -> set[Path]:
    """The test files that import a file of the project, as a path from the root."""
    module = [part for part in Path(path).with_suffix("").parts if part not in ("dice_envs", "__init__")]
    package, _, name = ".".join(["dice_envs", *module]).rpartition(".")
    imports = re.compile(rf"\b{re.escape(package)}(\.{name}\b| import [^\n]*\b{name}\b)")
    return {test for test in (ROOT / "tests").rglob("test_*.py") if imports.search(test.read_text())}


def tests_of(changed: str) -> set[Path]:
    """The test files of one changed file, as a path from the root."""
    path = Path(changed)
    if path.parts[0] == "tests":
        return {ROOT / path} if path.match("test_*.py") and (ROOT / path).exists() else set()
    if changed in ("README.md", "CONTRIBUTING.md"):
        return {ROOT / "tests" / f"test_{name}.py" for name in ("docs", "project", "readme")}
    if path.parts[:2] == ("docs", "extend"):
        return {ROOT / "tests" / f"test_{name}.py" for name in ("docs", "extend", "project")}
    if path.parts[0] == "docs" or path.suffix == ".md":
        return {ROOT / "tests" / "test_docs.py"}
    if path.suffix != ".py" or path.parts[0] not in ("dice_envs", "agents", "experiments"):
        return {ROOT / "tests" / "test_project.py"}
    inside = Path(*path.parts[1:]) if path.parts[0] == "dice_envs" else path
    own = ROOT / "tests" / inside.parent / f"test_{inside.stem}.py"
    if own.exists():
        return {own}
    near = [ROOT / "tests" / folder for folder in inside.parents]
    return importing(changed) or next(tests for tests in (set(folder.glob("test_*.py")) for folder in near) if tests)


def main(base: str) -> None:
    """Print the files, with paths from the root, on one line."""
    git = (["diff", "--name-only", "--merge-base", base], ["ls-files", "--others", "--exclude-standard"])
    told = [subprocess.run(["git", *each], cwd=ROOT, check=True, capture_output=True, text=True).stdout for each in git]
    print(*sorted({str(test.relative_to(ROOT)) for path in "".join(told).split() for test in tests_of(path)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
