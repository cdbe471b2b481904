"""The project as a package: contents of the wheel, order of imports, a sixth game from one file."""

import ast
import contextlib
import functools
import graphlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest
from packaging.specifiers import SpecifierSet

from dice_envs import names
from tests.conftest import COMPILES_SOON, ROOT

CONSTRAINTS = ROOT / "constraints" / "dev.txt"


def built(kind, folder):
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return built("wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_one_package(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"dice_envs"}
    assert {"dice_envs/py.typed", "dice_envs/v0_modules.pyi"} <= set(names)
    assert {
        "dice_envs/experiments/ui/page.html",
        "dice_envs/experiments/web/page.js",
        "dice_envs/experiments/web/style.css",
    } <= set(names)
    modules = (
        "games/liars_dice/raises",
        "games/liars_dice/exact/measures",
        "agents/liars_dice/players",
        "experiments/commands/leaderboard",
    )
    assert {f"dice_envs/{module}.py" for module in modules} <= set(names)
    assert not [name for name in names if name.startswith(("dice_envs/experiments/bench", "dice_envs/experiments/examples"))]
    policies = {f"dice_envs/agents/policies/{path.name}" for path in (ROOT / "agents" / "policies").glob("*.npz")}
    assert policies
    assert policies <= set(names)
    assert not [name for name in names if name.endswith((".nbc", ".nbi", ".pyc"))]


BEFORE_IMPORT = """
import sys
import gymnasium
assert "dice_envs" not in sys.modules
env = gymnasium.make("dice_envs:dice_envs/LiarsDice-v0", num_dice=2)
env.reset(seed=1)
many = gymnasium.make_vec("dice_envs:dice_envs/LiarsDice-v0", num_envs=3)
many.reset(seed=1)
"""
INSTALLED = """
import sys
import gymnasium
import dice_envs
assert dice_envs.__file__.startswith({folder!r}), dice_envs.__file__
env = gymnasium.make("dice_envs/LiarsDice-v0", opponents="numbers:bluff=0.25")
env.reset(seed=1)
gymnasium.make("dice_envs/LiarsDice-v0", opponents="champion").reset(seed=1)
opponents = ["numbers", "reader", "mcts:10"]
gymnasium.make("dice_envs/LiarsDice-v0", num_players=4, opponents=opponents).reset(seed=1)
gymnasium.make("dice_envs/FateStones-v0", opponents="nash").reset(seed=1)
measured = dice_envs.measure("liars_dice", "numbers", rules="openspiel", num_dice=1)
print(round(measured.score, 6))
assert not {{"agents", "experiments"}} & {{module.split(".")[0] for module in sys.modules}}
"""
PROGRAM = """
import dice_envs
from dice_envs.agents.ppo import load_policy
from dice_envs.experiments.arena import tournament
game = {"rules": "openspiel", "num_dice": 1, "num_faces": 3}
small = {"num_envs": 32, "num_steps": 16, "minibatch": 256, "hidden": (8,), "threads": 1}
found = dice_envs.train("liars_dice", preset="equilibrium", steps=1024, seed=1, settings=small, **game)
found.save("policy.npz")
measured = dice_envs.measure("liars_dice", load_policy("policy.npz"), **game)
table = tournament(dice_envs.configure("liars_dice", **game), ["ppo:policy.npz", "random"], 200, 1)
print(found.steps, found.gaps[-1]["steps"], 0 < measured.measures[0].value < 2, table.games)
"""


def run_apart(command, folder):
    """Run a command without access to the checkout; returns what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | COMPILES_SOON
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_serves_a_fresh_environment(wheel, tmp_path):
    """First with its requirements only, then with the extra for the command line, then with those for the page and learning."""
    programs = tmp_path / "fresh" / "bin"
    subprocess.run([sys.executable, "-m", "venv", str(programs.parent)], check=True)
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--no-compile", "-c", str(CONSTRAINTS)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    code = BEFORE_IMPORT + INSTALLED.format(folder=str(programs.parent))
    assert run_apart([str(programs / "python"), "-c", code], tmp_path) == "0.409\n"
    subprocess.run([*install, f"{wheel}[commands]"], check=True, capture_output=True)
    assert "liars_dice" in run_apart([str(programs / "dice-envs"), "games"], tmp_path)
    listed = run_apart([str(programs / "dice-envs"), "--help"], tmp_path)
    assert ("reproduce" in listed, "bench" in listed.replace("benchmark", "")) == (True, False)
    subprocess.run([*install, f"{wheel}[web,sb3]"], check=True, capture_output=True)
    assert run_apart([str(programs / "python"), "-c", PROGRAM], tmp_path) == "1024 1024 True 200\n"
    run_apart([str(programs / "dice-envs"), "measure", "liars_dice", "ppo:policy.npz", "--json", "found.json"], tmp_path)
    assert json.loads((tmp_path / "found.json").read_text())["measures"][0]["name"] == "exploitability"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("package", "first"),
    [
        pytest.param(True, "", id="packages"),
        pytest.param(True, "import agents, experiments\n", id="imported before", marks=pytest.mark.slow),
        pytest.param(False, "", id="folders", marks=pytest.mark.slow),
    ],
)
def test_folders_of_ones_own_named_agents_and_experiments_do_no_harm(run_python, tmp_path, package, first):
    """An editable install puts the checkout on the import path, after the working directory."""
    for name in ("agents", "experiments"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ("__init__.py" if package else "mine.py")).write_text("MINE = True\n")
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    by_name = """
print(round(dice_envs.measure("liars_dice", "numbers", rules="openspiel", num_dice=1).score, 6))
import agents, experiments
assert agents.__path__[0].startswith(FOLDER) == experiments.__path__[0].startswith(FOLDER) == PACKAGE
"""
    printed = run_python(first + program + by_name.replace("FOLDER", repr(str(tmp_path))).replace("PACKAGE", repr(package)))
    assert "exploitability" in printed
    assert printed.splitlines()[-1] == "0.409"


@pytest.mark.slow
def test_the_source_distribution_holds_what_a_checkout_does(tmp_path):
    """Everything except files for git and CI, so that it can be set up, tested and read."""
    with tarfile.open(built("sdist", tmp_path)) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"constraints/{path.name}" for path in (ROOT / "constraints").glob("*.txt")} <= held
    assert {"Makefile", "LICENSE", "README.md", "pyproject.toml", "docs/ppo.md", "tests/golden/thirties.txt"} <= held
    for module, path in project_modules().items():
        assert str(path.relative_to(ROOT)) in held, module
    assert not [name for name in held if name.endswith((".nbc", ".nbi", ".pyc"))]


def requirements(texts):
    """Versions by name, from requirements with one lower bound or one exact version."""
    found = {}
    for text in texts:
        name, bound = re.fullmatch(r"([A-Za-z0-9_.-]+)(?:>=|==)([0-9.]+)(?:,<[0-9.]+)?", text).groups()
        found[name] = tuple(map(int, bound.split(".")))
    return found


def test_the_lowest_versions_are_those_of_pyproject():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"]
    required = [text for name in ("render", "sb3", "commands", "experiments") for text in extras[name]]
    tools = [text for text in extras["test"] if re.match("pytest|hypothesis", text)]
    listed = (ROOT / "constraints" / "lowest.txt").read_text().splitlines()
    lowest = requirements(line for line in listed if not line.startswith("#"))
    declared = requirements(text for text in (*project["dependencies"], *required, *tools) if not text.startswith("dice-envs["))
    pinned = requirements(line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("torch=="))
    assert lowest == {**declared, **pinned}


def test_pinned_versions_run_on_the_first_release_of_the_lowest_python():
    """Debian 12 has Python 3.11.2. A pin that requires a later one fails there with an unclear message."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        lowest = re.match(r">=(\d+\.\d+),", tomllib.load(file)["project"]["requires-python"]).group(1) + ".0"
    asked = {}
    for line in CONSTRAINTS.read_text().splitlines():
        name, pinned, _ = line.partition("==")
        if pinned:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                asked[name] = importlib.metadata.metadata(name)["Requires-Python"]
    assert len(asked) > 100
    assert {name: python for name, python in asked.items() if python and lowest not in SpecifierSet(python)} == {}


FOLDERS = ("dice_envs", "agents", "experiments", "tests")


@functools.cache
def project_modules():
    """The paths of the project's modules by their names."""
    found = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if path.name == "__init__.py" else parts)
            found[name if folder in ("dice_envs", "tests") else f"dice_envs.{name}"] = path
    return found


@functools.cache
def imports_of(module, path):
    """A module's imports at any place, except those only for type checkers: a list of (module, name in it or None)."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def walk(node):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            yield from ((".".join([*above, *filter(None, [node.module])]), alias.name) for alias in node.names)
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            for child in ast.iter_child_nodes(node):
                yield from walk(child)

    return list(walk(ast.parse(path.read_text())))


# A package may import those of the rows above; within its row only itself.
ORDER = (
    ("core",),
    ("games", "pictures", "agent", "tasks"),
    ("exact",),
    ("games.exact",),
    ("evaluation",),
    ("table",),
    ("envs",),
    ("agents",),
    ("learn",),
    ("experiments",),
)


def floor_of(module):
    """The package of a module as ORDER names it: a game's answers are above what is true of all games' answers."""
    parts = module.split(".")
    if parts[0] != "dice_envs" or len(parts) < 2:
        return None
    return "games.exact" if parts[1] == "games" and parts[3:4] in (["exact"], ["log"], ["sheet"]) else parts[1]


def test_packages_depend_one_way():
    row = {package: number for number, packages in enumerate(ORDER) for package in packages}
    for module, path in project_modules().items():
        own = floor_of(module)
        if own not in row:
            continue
        for imported, name in imports_of(module, path):
            assert not imported.startswith("tests"), f"{module} imports {imported}"
            other = floor_of(imported if imported != "dice_envs" else f"{imported}.{name}")
            if other in row and other != own:
                assert row[other] < row[own], f"{module} imports {imported}"


def test_what_is_for_every_game_imports_none():
    """A game has files in its folder, and those named after it among agents and programs."""
    for module, path in project_modules().items():
        parts = module.split(".")[1:]
        if module.startswith("tests"):
            continue
        for imported, _ in imports_of(module, path):
            game = (re.match(r"dice_envs\.(?:games|agents)\.(\w+)", imported) or [None, None])[1]
            assert game not in names() or game in parts, f"{module} imports {imported}"


def test_private_names_stay_in_their_module():
    for module, path in project_modules().items():
        for imported, name in imports_of(module, path):
            private = [part for part in (*imported.split("."), name or "") if re.match("_[^_]", part)]
            assert not private or imported.split(".")[0] not in FOLDERS, f"{module} imports {private[0]} from {imported}"


def test_imports_go_round_in_no_circle():
    modules = project_modules()
    graph = {module: set() for module in modules}
    for module, path in modules.items():
        for imported, name in imports_of(module, path):
            graph[module].add(f"{imported}.{name}" if f"{imported}.{name}" in modules else imported)
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as problem:
        pytest.fail(f"imports in a circle: {' ← '.join(problem.args[1])}")


HEAVY = "torch", "stable_baselines3", "sb3_contrib", "matplotlib", "scipy.optimize", "icepool", "pyspiel", "tensorboard"


@pytest.mark.parametrize("module", ["dice_envs", "dice_envs.experiments.__main__"])
def test_import_leaves_heavy_libraries_alone(module, run_python):
    heavy = (*HEAVY, *(["dice_envs.agents"] if module == "dice_envs" else []))
    assert run_python(f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])") == "[]\n"


def test_make_targets_of_readme_and_contributing_are_there():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split()
    others = {f"test-{name}" for name in re.findall(r"^(?:define )?TEST_([a-z]+)", makefile, re.M)}
    used = set(re.findall(r"`?make ([a-z-]+)", (ROOT / "README.md").read_text()))
    for page in (ROOT / "CONTRIBUTING.md", *(ROOT / "docs" / "extend").glob("*.md")):
        used |= set(" ".join(re.findall(r"^make ([a-z -]+)", page.read_text(), re.M)).split())
    assert {"play", "train", "test", "types", "figures", "test-newest"} <= used <= {*targets, *others}
    assert len(targets) <= 15, "what a contributor types"


@pytest.mark.skipif(not (ROOT / ".github").exists(), reason="a source distribution has no workflow")
def test_other_systems_run_what_make_test_does():
    fast = re.search(r"^FAST = (.+)$", (ROOT / "Makefile").read_text(), re.M)[1]
    assert f"-m pytest -n auto --dist loadfile {fast}\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="looks at what git keeps")
def test_git_keeps_files_of_the_project_alone():
    entries = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    modes = {line.split("\t")[1]: line.split()[0] for line in entries.splitlines()}
    # Neither links nor other repositories.
    assert {path: mode for path, mode in modes.items() if mode not in ("100644", "100755")} == {}
    ignored = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(ignored, cwd=ROOT, capture_output=True, text=True, check=True).stdout == ""
