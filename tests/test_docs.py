"""The documentation names only existing things, its code runs, and generated pages agree with the code."""

import ast
import collections
import dataclasses
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from dice_envs import TASKS, configure, load, names
from dice_envs.agent.specs import for_game, parameters_of
from dice_envs.core.game import single_seat
from dice_envs.learn.presets import Preset
from tests.conftest import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.name not in ("libraries.md", "notebook.md"))


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_as_they_are_made(generate):
    for path, text in generate.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make figures`"


@pytest.mark.parametrize("name", names())
def test_a_games_page_holds_its_rules_options_observation_and_picture(name):
    variant, page = configure(name), (DOCS / "games" / f"{name}.md").read_text()
    for option in variant.game.options.__dataclass_fields__:
        assert f"| `{option}` |" in page
    for section in ("Play", "Make it", "Actions and observations", "Train", "What is known exactly", "Source"):
        assert re.search(rf"^## {section}", page, re.M), section
    entries = 0
    for first, last in re.findall(r"^\| (\d+)(?: … (\d+))? \| `\w+` \|", page, re.M):
        assert int(first) == entries
        entries = int(last or first) + 1
    assert entries == single_seat(variant.game).facts.observation_size
    for task in TASKS.values():
        assert (f"| {task.name} |" in page) == (task.game == name)
    picture = DOCS / "games" / f"{name}.gif"
    assert picture.stat().st_size < 300_000
    assert Image.open(picture).n_frames > 2


@pytest.mark.thorough
@pytest.mark.parametrize("name", names())
def test_training_on_a_games_page_reaches_its_figure(generate, run_python, name):
    """Processors round otherwise, so that training ends elsewhere: no farther than seeds do, or their intervals."""
    each = generate.TRAINED[name]
    (found,) = re.findall(r"^trained: .*? ([\d.]+) ", run_python(generate.program(load(name))), re.M)
    spread = max(3 * (max(each.reached) - min(each.reached)), 3 * each.error, 0.01 * each.reached[0])
    assert float(found) == pytest.approx(each.reached[0], abs=spread)


def test_the_agents_page_has_every_agent_and_parameter(generate):
    page = generate.agents_page()
    for game in (None, *names()):
        for name, factory in for_game(game).items():
            assert re.search(rf"^### {name}\b", page, re.M)
            for parameter in parameters_of(factory):
                assert f"| `{parameter}` |" in page, (name, parameter)


def test_the_presets_page_has_every_setting_with_its_meaning(generate):
    page = generate.presets_page()
    (meanings,) = re.findall(r"\| setting \| meaning \|\n(?:\|.*\n)+", page)
    for setting in dataclasses.fields(Preset):
        assert re.search(rf"^\| `.*\b{setting.name}\b.*` \| \S", meanings, re.M), setting.name
    for name in names():
        assert f"## {load(name).title}\n" in page


def test_rules_become_lists_and_tables(generate):
    made = ["Throw dice.\n\nTwice.", "- One.\n- Two.", "|  |  |\n| :-- | :-- |\n| 0 | hold |\n| 1 | roll |"]
    assert list(generate._markdown(["Throw dice.", "Twice.", "- One.", "- Two.", "0    hold", "1    roll"])) == made


def test_pages_name_what_is_there():
    from typer.main import get_command

    from dice_envs.experiments.__main__ import app

    commands = get_command(app).commands
    for page in [ROOT / "README.md", *PAGES]:
        for line in re.findall(r"(?:^|`)dice-envs ([^`\n]*)", page.read_text(), re.M):
            words = line.split("#")[0].split()
            if not words or words[0] == "COMMAND":
                continue
            assert words[0] in commands, f"{page.name}: {line}"
            command = commands[words[0]]
            if hasattr(command, "commands") and words[1:]:  # `reproduce` and `solve` have one for each game
                assert words[1] in (*command.commands, "GAME", "SOURCE"), f"{page.name}: {line}"
                command = command.commands.get(words[1])
            known = {option for parameter in command.params for option in parameter.opts} if command else set()
            for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", line.split("#")[0]):
                assert not known or option in known, f"{page.name}: {option} in {line}"
        for name in re.findall(r"make example NAME=(\w+)", page.read_text()):
            assert (ROOT / "experiments" / "examples" / f"{name}.py").exists(), f"{page.name}: {name}"


def anchors(page: Path) -> set[str]:
    """The anchors that a repository's host gives to the headings of a page."""
    found: collections.Counter[str] = collections.Counter()
    slugs = set()
    for heading in re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        slugs.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return slugs


def test_every_link_leads_to_a_file_of_the_repository():
    """As somebody follows it who reads the files on a repository's host: nothing is there that only a build makes."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a clone")
    kept, lost = set(listed.stdout.splitlines()), []
    for page in [ROOT / name for name in kept if re.fullmatch(r"(docs/.*|[A-Z]+)\.md", name)]:
        text = re.sub(r"^```python.*?^```", "", page.read_text(), flags=re.S | re.M)
        for link in re.findall(r"\]\(\s*<?([^)\s>]+)", text) + re.findall(r'(?:src|href)="([^"]+)"', text):
            path, _, anchor = link.partition("#")
            there = (page.parent / path).resolve() if path else page
            if not re.match(r"(https?|mailto):", link) and not (
                there.relative_to(ROOT).as_posix() in kept and (not anchor or anchor in anchors(there))
            ):
                lost.append(f"{page.relative_to(ROOT)}: {link}")
    assert not lost


# The blocks of docs/extend are files of the project: tests/test_extend.py puts them in place.
PROGRAMS = [ROOT / "README.md", *(page for page in PAGES if page.parent.name != "extend")]


@pytest.mark.thorough
@pytest.mark.parametrize("page", PROGRAMS, ids=lambda path: path.name)
def test_python_blocks_run(run_python, page: Path):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        elsewhere = re.search('^import (textarena|verifiers)|likeliest actions"\\)$', block, re.M)  # tested elsewhere
        if not elsewhere:
            run_python(block)


def test_the_page_of_libraries_names_what_the_tests_run():
    """A run of all of CI compares the page with what ran; this finds a row that nobody wrote, or that is left over, at once."""
    marks = [
        mark
        for path in (ROOT / "tests").rglob("test_*.py")
        for mark in re.findall(r'mark\.library\(\s*"([^"]+)", "([^"]+)"', path.read_text())
    ]
    rows = re.findall(r"^\| ([\w_-]+) \| [^|]+ \| ([^|]+) \|", (DOCS / "libraries.md").read_text(), re.M)
    named = {row for row in rows if "example `" not in row[1]}  # examples are named by the parameters of their test
    assert {mark for mark in marks if "example `" not in mark[1]} == named - {("library", "what was run")}


SOURCES = [path for folder in ("dice_envs", "agents", "experiments") for path in (ROOT / folder).rglob("*.py")]


def attributes_of_classes():
    found = collections.defaultdict(set)
    for path in SOURCES:
        for owner in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)):
            for node in ast.walk(owner):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    found[owner.name].add(node.name)
                elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
                    found[owner.name].add(node.attr if isinstance(node, ast.Attribute) else node.id)
    return found


def is_there(name):
    """Whether a dotted name leads to a module, and what follows stands in it."""
    words = name.split(".")
    place = ROOT / (words.pop(1) if words[1] in ("agents", "experiments") else "dice_envs")
    words = words[1:]
    while words and ((place / words[0] / "__init__.py").exists() or (place / f"{words[0]}.py").exists()):
        place /= words.pop(0)
    module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return not words or re.search(rf"\b{words[0]}\b", module.read_text()) is not None


def test_texts_name_modules_and_attributes_that_are_there():
    known, missing = attributes_of_classes(), set()
    for path in [*SOURCES, *PAGES]:
        text = path.read_text()
        missing |= {name for name in re.findall(r"`(dice_envs(?:\.\w+)+)`", text) if not is_there(name)}
        for owner, name in re.findall(r"`([A-Z]\w+)\.([a-z_]+)`", text):
            if owner in known and name not in known[owner]:
                missing.add(f"{owner}.{name}")
    assert missing == set()
    assert not is_there("dice_envs.games.liars_dice.exact.multiplayer")
    assert "width" not in known["SolvedRound"]
