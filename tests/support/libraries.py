"""The table of docs/libraries.md: which library was run with which game, recorded by the tests that run them.

Tests that run another project's code have the mark `library(distribution, what, game=...)`. The game is the test's parameter
`name` by default; it can be given, also as a function of the parameters. With LIBRARIES=FOLDER in the environment, a test
session stores its outcomes in FOLDER, and which of these tests it left out. `python -m tests.support.libraries write FOLDER`
makes the page from all sessions. `check` compares it with the existing page, except for versions; tests that every session
left out are taken to pass.
"""

import importlib.metadata
import json
import os
import re
import sys
from pathlib import Path

from dice_envs.core.game import load, names

PAGE = Path(__file__).resolve().parents[2] / "docs" / "libraries.md"
LEFT_OUT = "left out"
HEADING = """# Tested libraries

Code of other libraries that CI runs with each game. ✓ passed, ✗ failed, blank not run. Every run of `.ci/run` compares what
it ran with this table and fails if they differ; some of it runs at night (`make nightly`). Versions are those of the runs that
wrote the page; pyproject.toml has the lowest versions.

"""
_found: list[list[str]] = []


def _marked(item):
    """Distribution, what is run, and game of each mark of a test."""
    for mark in item.iter_markers("library"):
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        game = mark.kwargs.get("game", parameters.get("name", ""))
        yield [*mark.args, game(parameters) if callable(game) else game]


def pytest_collection_modifyitems(items):
    """Runs on the workers of pytest-xdist; `user_properties` are sent with the report."""
    for item in items:
        item.user_properties += [("library", marked) for marked in _marked(item)]


def pytest_deselected(items):
    """Runs on the workers as well, each of which leaves out the same tests."""
    _found.extend([*marked, LEFT_OUT] for item in items for marked in _marked(item))


def pytest_runtest_logreport(report):
    if not report.skipped and (report.when == "call" or report.failed):
        for kind, value in report.user_properties:
            if kind == "library":
                _found.append([*value, report.outcome])


def pytest_sessionfinish(session):
    folder = os.environ.get("LIBRARIES")
    if not folder or not _found:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    # What is left out need not be installed.
    rows = [[*row, "" if row[-1] == LEFT_OUT else importlib.metadata.version(row[0])] for row in _found]
    (Path(folder) / f"{os.getpid()}.json").write_text(json.dumps(rows))


def read(folder: Path) -> tuple[dict[tuple[str, str], dict[str, set[str]]], dict[tuple[str, str], set[str]]]:
    """Outcomes in each game, and versions, of each library and what was run, from all sessions."""
    outcomes: dict[tuple[str, str], dict[str, set[str]]] = {}
    versions: dict[tuple[str, str], set[str]] = {}
    for file in sorted(folder.glob("*.json")):
        for library, what, game, outcome, version in json.loads(file.read_text()):
            outcomes.setdefault((library, what), {}).setdefault(game, set()).add(outcome)
            versions.setdefault((library, what), set()).update({version} - {""})
    return outcomes, versions


def page(folder: Path) -> str:
    """The page, from the outcomes that all sessions have stored in a folder."""
    outcomes, versions = read(folder)
    games = names()
    lines = ["| library | versions | what was run | " + " | ".join(load(game).title for game in games) + " |"]
    lines.append("|---" * 3 + "|:-:" * len(games) + "|")
    for key in sorted(outcomes, key=lambda key: (key[0].lower(), key[1])):
        found = [outcomes[key].get(game, set()) for game in games]
        cells = ["✗" if "failed" in each else "✓" if each else "" for each in found]
        ordered = sorted(versions[key], key=lambda version: [int(part) for part in re.findall(r"\d+", version)])
        lines.append(f"| {key[0]} | {', '.join(ordered)} | {key[1]} | " + " | ".join(cells) + " |")
    return HEADING + "\n".join(lines) + "\n"


def _without_versions(text: str) -> str:
    return re.sub(r"^(\| [^|]* \|)[^|]*\|", r"\1 |", text, flags=re.MULTILINE)


def main(command: str, folder: str) -> None:
    made = page(Path(folder))
    if command == "write":
        found, _ = read(Path(folder))
        if waiting := [f"{library}: {what}" for (library, what), games in found.items() if {LEFT_OUT} in games.values()]:
            sys.exit(f"`make nightly` runs what `.ci/run` left out and comes first: {'; '.join(waiting)}")
        PAGE.write_text(made)
    elif _without_versions(PAGE.read_text()) != _without_versions(made):
        sys.exit(f"{PAGE.name} is not what the jobs have found; `make figures NAME=libraries` writes it anew:\n{made}")


if __name__ == "__main__":
    main(*sys.argv[1:])
