"""What the commands find: modules of games and agents of games; and that imports have no cycles."""

import ast
import graphlib

import pytest

import agents
import experiments.bench
import experiments.reproduce
import experiments.solve
from dice_envs import configure, names
from experiments.discovery import agents_by_game, make_players, modules
from tests.conftest import ROOT


def test_modules_and_packages_are_found_alike():
    assert set(modules(experiments.solve)) == {"fatestones", "score_dice", "shakes", "thirties"}
    assert list(modules(experiments.reproduce)) == sorted(names())
    assert {"environments", "exact", "search", "training"} < set(modules(experiments.bench))


def test_every_agent_is_listed_once():
    found = agents_by_game()
    assert list(found) == [None, *names()]
    assert sorted(name for of_game in found.values() for name in of_game) == sorted(agents.factories())
    assert set(found[None]) == {"mcts", "ppo", "random"}
    assert set(found["score_dice"]) == {"highest", "score_nash", "score_response", "shuffled"}


def test_players_of_the_game_and_of_any_are_made():
    assert make_players(configure("liars_dice"), ["numbers:bluff=1", "mcts:5", "random"])[1].simulations == 5
    assert make_players(configure("liars_dice"), []) == []


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nash", "nash plays fatestones only; agents for liars_dice are: mcts, numbers, ppo, random, reader"),
        ("best_response:nash", "best_response plays fatestones only"),
        ("wizard", "unknown agent 'wizard'"),
    ],
)
def test_players_of_other_games_are_refused(spec, words):
    with pytest.raises(ValueError, match=words):
        make_players(configure("liars_dice"), ["random", spec])


def test_experiments_import_each_other_without_circles():
    """No module imports one that imports it; what only starts the command line is imported by nothing."""
    files = {path.relative_to(ROOT).with_suffix(""): path for path in (ROOT / "experiments").rglob("*.py")}
    known = {".".join(name.parts).removesuffix(".__init__"): path for name, path in files.items()}
    imports = {module: set() for module in known}
    for module, path in known.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                imports[module] |= {alias.name for alias in node.names} & set(known)
            elif isinstance(node, ast.ImportFrom):
                submodules = {f"{node.module}.{alias.name}" for alias in node.names}
                imports[module] |= ({node.module} | submodules) & set(known)
    graphlib.TopologicalSorter(imports).prepare()  # CycleError names the circle
    assert not [module for module, used in imports.items() if "experiments.__main__" in used]
