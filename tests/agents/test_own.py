"""Users' own agents and games, named by a file or module, wherever an agent or a game can be named."""

import copy

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

import dice_envs
from dice_envs.core.own import split_own
from dice_envs.experiments.__main__ import app
from tests.support.walkthrough import shown

PLAYERS = """
import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Nth:
    n: int = 0
    word: str = ""

    def probabilities(self, turn):
        chances = np.zeros(turn.legal.shape)
        chances[np.arange(len(turn)), self.act(turn)] = 1
        return chances

    def act(self, turn):
        return np.array([np.flatnonzero(row)[min(self.n, row.sum() - 1)] for row in turn.legal])


class Plain:
    def __init__(self, boldness: float = 0.5):
        self.boldness = boldness

    def act(self, turn):
        return turn.legal.argmax(axis=1)


class Nobody:
    pass


def broken():
    raise RuntimeError("on purpose")


NOTHING = 3
"""


@pytest.fixture
def players(tmp_path):
    path = tmp_path / "my_players.py"
    path.write_text(PLAYERS)
    return str(path)


@pytest.fixture
def pig(tmp_path, monkeypatch):
    monkeypatch.setattr("dice_envs.core.game._registered", {})
    path = tmp_path / "my_pig.py"
    path.write_text(shown("How to add a game"))
    return f"{path}:GAME"


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("my.py:Bold", ("my.py", "Bold", "")),
        ("a/b.py:Bold:1", ("a/b.py", "Bold", "1")),
        ("pack.age:Bold:x=1,y=my.py:C", ("pack.age", "Bold", "x=1,y=my.py:C")),
        ("numbers:bluff=0.25", None),
        ("ppo:runs/x.py:y", None),
        ("best_response:opponent=my.py:Bold", None),
        ("my.py", None),
        ("my.py:", None),
        ("numbers", None),
    ],
)
def test_forms(text, parts):
    assert split_own(text) == parts


def test_an_agent_of_ones_own(players):
    agent = dice_envs.make_agent(f"{players}:Nth:1")
    assert (agent.n, agent.word) == (1, "")
    assert dice_envs.make_agent(f"{players}:Nth:n=2,word=1").word == "1", "a text stays as it is written"
    assert dice_envs.make_agent(f"{players}:Nth:1") == agent, "the file is run once"
    assert dice_envs.make_agent(f"{players}:Plain:0.25").boldness == 0.25


def test_in_a_module(players, tmp_path, monkeypatch):
    package = tmp_path / "some_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "players.py").write_text(PLAYERS)
    monkeypatch.syspath_prepend(tmp_path)
    assert dice_envs.make_agent("some_package.players:Nth:n=3").n == 3


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("Missing", r"agent '.*my_players\.py:Missing' cannot be loaded: .*my_players\.py has no Missing"),
        ("Nth:x=1", "Nth has no parameter 'x'; it has: n, word"),
        ("Nobody", "is not an agent: it has no method act"),
        ("Nobody:1", "Nobody takes no parameters, not '1'"),
        ("NOTHING", "is not a class of agents"),
    ],
)
def test_what_cannot_be_had_is_said(players, spec, message):
    with pytest.raises(ValueError, match=message):
        dice_envs.make_agent(f"{players}:{spec}")


def test_a_file_that_is_not_there_or_fails(tmp_path):
    with pytest.raises(ValueError, match="cannot be loaded: there is no such file"):
        dice_envs.make_agent(f"{tmp_path}/nothing.py:Bold")
    (tmp_path / "fails.py").write_text("raise RuntimeError('on purpose')\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot be loaded: on purpose"):
            dice_envs.make_agent(f"{tmp_path}/fails.py:Bold")


def test_in_environments_measures_and_commands(players):
    env = gymnasium.make("dice_envs/LiarsDice-v0", opponents=f"{players}:Nth:1", num_dice=1)
    env.reset(seed=1)
    measured = dice_envs.measure("liars_dice", f"{players}:Nth", rules="openspiel", num_dice=1, num_faces=3)
    assert measured.score is not None
    code, output = run("arena", "liars_dice", f"{players}:Nth:1", "random", "-o", "num_dice=1", "--games", 200, "--seed", 1)
    assert code == 0, output
    code, output = run(
        "measure", "liars_dice", f"{players}:Nth", "-o", "rules=openspiel", "-o", "num_dice=1", "-o", "num_faces=3"
    )
    assert code == 0, output
    assert "score" in output


def test_the_page_runs_no_code_that_its_visitors_name(players, tmp_path):
    gate = pytest.importorskip("dice_envs.experiments.web.gate")
    seen = tmp_path / "seen"
    path = tmp_path / "runs.py"
    path.write_text(f"open({str(seen)!r}, 'w').close()\n{PLAYERS}")
    variant = dice_envs.configure("fatestones")
    for spec in (f"{path}:Nth", f"best_response:opponent={path}:Nth", f"best_response:{path}:Nth"):
        with pytest.raises(ValueError, match="here an agent may name a policy"):
            gate.make_agent(variant, spec)
    assert not seen.exists()
    dice_envs.make_agent(f"best_response:opponent={path}:Nth")
    assert seen.exists()


def test_a_game_of_ones_own_in_commands(pig, players):
    code, output = run("arena", pig, "random", f"{players}:Nth", "--games", 50, "--seed", 1, "-o", "target=20")
    assert code == 0, output
    assert dice_envs.load("pig").title == "Pig"
    code, output = run("play", pig, "random", "--watch", "--seed", 1, "-o", "target=10")
    assert "Pig" in output
    assert "pig" not in dice_envs.names()


def test_what_is_no_game_is_refused_in_one_line(players, pig, tmp_path):
    for given, words in (
        (f"{players}:Nth", "where NAME is a dice_envs.Game"),
        (f"{pig}:1", "where NAME is a dice_envs.Game"),
        (f"{players}:Missing", "game '"),
    ):
        code, output = run("arena", given, "random", "random")
        assert code == 2
        assert words in output
        assert len(output.strip().splitlines()) == 1


def test_names_of_games_are_kept_apart(pig):
    from dice_envs.core.own import load_own

    game = load_own(*split_own(pig)[:2], "game")
    assert dice_envs.register(game) is game is dice_envs.register(game)
    other = copy.copy(game)
    with pytest.warns(UserWarning, match="the game registered as 'pig' before is replaced"):
        dice_envs.register(other)
    assert dice_envs.load("pig") is other
    with pytest.warns(UserWarning, match="replaced"):
        dice_envs.register(game)
    object.__setattr__(other, "name", "thirties")
    with pytest.raises(ValueError, match="there is another game with the name 'thirties'"):
        dice_envs.register(other)
    with pytest.raises(TypeError, match=r"a game must be a dice_envs\.Game, not 3"):
        dice_envs.register(3)


def test_a_name_in_data_runs_nothing(pig, tmp_path):
    """Saved games and policy files name their game, which must not run code."""
    with pytest.raises(ValueError, match="unknown game .* known once the module that registers it is imported, in each worker"):
        dice_envs.configure(pig)
    assert np.size(dice_envs.names())
