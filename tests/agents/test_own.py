"""Users' own agents and games, named by a file or module, wherever an agent or a game can be named."""

import copy
import dataclasses
import json
import warnings
from pathlib import Path

import gymnasium
import pytest

import dice_envs
from dice_envs.core.own import load_own, split_own
from dice_envs.experiments.web import make_agent
from dice_envs.learn.presets import PRESETS, Plan
from dice_envs.table.sitting import Sitting
from tests.support.commands import done, refusal, run
from tests.support.sittings import finish
from tests.support.subsets import covering
from tests.support.walkthrough import shown

PLAYERS = """
import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Nth:
    n: int = 0
    word: str = ""

    def probabilities(self, turn):
        return np.eye(turn.legal.shape[1])[self.act(turn)]

    def act(self, turn):
        return np.array([np.flatnonzero(row)[min(self.n, row.sum() - 1)] for row in turn.legal])


class Plain:
    def __init__(self, boldness: float = 0.5):
        self.boldness = boldness

    def act(self, turn):
        return turn.legal.argmax(axis=1)


class Nobody:
    pass


class Fails:
    def __init__(self):
        raise KeyError("no weights")


NOTHING = 3
def loads(): return lambda observations, masks: masks / masks.sum(axis=1, keepdims=True)
"""


@pytest.fixture
def players(tmp_path):
    path = tmp_path / "my_players.py"
    path.write_text(PLAYERS)
    (tmp_path / "fails.py").write_text("raise RuntimeError('on purpose')\n")
    return str(path)


@pytest.fixture
def pig(tmp_path, monkeypatch):
    monkeypatch.setattr("dice_envs.core.game._registered", {})
    path = tmp_path / "my_pig.py"
    path.write_text(shown("game"))
    return f"{path}:GAME"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("my.py:Bold", ("my.py", "Bold", "")),
        ("a/b.py:Bold:1", ("a/b.py", "Bold", "1")),
        ("pack.age:Bold:x=1,y=my.py:C", ("pack.age", "Bold", "x=1,y=my.py:C")),
        *((other, None) for other in ("numbers:bluff=0.25", "ppo:runs/x.py:y", "best_response:opponent=my.py:Bold")),
        *((other, None) for other in ("my.py", "my.py:", "numbers")),
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
    assert repr(dice_envs.make_agent(f"{players}:loads")) == "<lambda>", "a function that makes one, as an agent"


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
        ("my_players.py:Missing", r"agent '.*my_players\.py:Missing' cannot be loaded: .*my_players\.py has no Missing"),
        ("my_players.py:Nth:x=1", "Nth has no parameter 'x'; it has: n, word"),
        ("my_players.py:Nobody", "is not an agent: it has no method act"),
        ("my_players.py:Nobody:1", "Nobody takes no parameters, not '1'"),
        ("my_players.py:NOTHING", "is not a class of agents"),
        ("my_players.py:Fails", "has failed: KeyError: 'no weights'"),
        ("nothing.py:Bold", "cannot be loaded: there is no such file"),
        ("fails.py:Bold", "cannot be loaded: on purpose"),
    ],
)
def test_what_cannot_be_had_is_said(players, tmp_path, spec, message):
    for _ in range(2):  # also of a file that has failed before
        with pytest.raises(ValueError, match=message):
            dice_envs.make_agent(f"{tmp_path}/{spec}")


def test_in_environments_measures_and_commands(players):
    env = gymnasium.make("dice_envs/LiarsDice-v0", opponents=f"{players}:Nth:1", num_dice=1)
    env.reset(seed=1)
    measured = dice_envs.measure("liars_dice", f"{players}:Nth", rules="openspiel", num_dice=1, num_faces=3)
    assert measured.score is not None
    done("arena", "liars_dice", f"{players}:Nth:1", "random", "-o", "num_dice=1", "--games", 200, "--seed", 1)
    measure = ["measure", "liars_dice", f"{players}:Nth", "-o", "rules=openspiel", "-o", "num_dice=1", "-o", "num_faces=3"]
    assert "score" in done(*measure)


# --- what others have written -----------------------------------------------------------------------------------------

SECRETS = "chat:m,url=http://127.0.0.1:9/v1,key=SOMEBODYS_SECRET"
HARMFUL = ("{path}:Nth", "best_response:opponent={path}:Nth", "some.package:Nth", "thirties:os.path:abspath", SECRETS, "chat:m",
           "mcts:10,rollout=chat:m", "ppo:{path}", "best_response:ppo:/etc/passwd")  # fmt: skip


def upload(game):
    return Sitting.load(game, make_agent)


def assist(game):
    pytest.importorskip("mcp")
    from dice_envs.experiments.assistant import Games

    Games().new_game(game["game"], game["seats"][1])


def resume(game):
    pytest.importorskip("torch")
    from dice_envs.learn.checkpoint import write_checkpoint
    from dice_envs.learn.run import open_run

    preset = dataclasses.asdict(PRESETS["liars_dice"]["quick"]) | {"opponents": game["seats"][1:]}
    config = {"game": "liars_dice", "options": {}, "preset": preset, "seed": 1, "learner": "ppo"}
    write_checkpoint(Path("checkpoint.pt"), {"config": json.dumps(config)})
    open_run(Path(), Plan(dice_envs.configure("liars_dice"), PRESETS["liars_dice"]["quick"]))


def play(*more):
    def reader(game):
        Path("game.json").write_text(json.dumps(game))
        raise ValueError(refusal("play", "--load", "game.json", *more))

    return reader


@covering(
    ("reader", "harmful"),
    [Sitting.load, upload, assist, resume, play(), play("--web", "--no-browser"), play("--replay")],
    HARMFUL,
)
def test_what_others_have_written_runs_no_code_and_reaches_no_address(reader, harmful, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "runs_it.py"
    path.write_text(f"open({str(tmp_path / 'seen')!r}, 'w').close()\n{PLAYERS}")
    game = finished({"seats": ["person", harmful.format(path=path)]})
    with pytest.raises(ValueError, match="here an agent may name a policy"):
        reader(game)
    assert not (tmp_path / "seen").exists()


def finished(changes):
    sitting = finish(Sitting(dice_envs.configure("liars_dice", num_dice=1), 1, ["random", "random"]))
    return {**sitting.save(), **changes}


def test_a_person_at_the_terminal_names_who_plays_instead(players, tmp_path):
    path = tmp_path / "game.json"
    path.write_text(json.dumps(finished({"seats": ["person", SECRETS]})))
    assert f"play GAME AGENT --load {path}" in refusal("play", "--load", path)
    for agent in ("numbers", f"{players}:Nth"):
        assert f"player 1: {agent}" in done("play", "liars_dice", agent, "--load", path).replace("\n", "")  # long paths fold
    refused = refusal("play", "liars_dice", "random", "numbers", "--load", path)
    assert "agents: the saved game has 1; name as many, or one for all, not 2" in refused
    done("review", path)


@pytest.mark.thorough
def test_a_game_of_ones_own_in_commands(pig, players):
    done("arena", pig, "random", f"{players}:Nth", "--games", 50, "--seed", 1, "-o", "target=20")
    assert dice_envs.load("pig").title == "Pig"
    assert "Pig" in run("play", pig, "random", "--watch", "--seed", 1, "-o", "target=10").output
    assert "pig" not in dice_envs.names()


def test_a_game_of_ones_own_is_listed_with_what_there_is_of_it(pig):
    listed = done("games", pig)
    assert "target=" in listed
    assert "Gymnasium: dice_envs/Pig-v0\n" in listed


def test_gymnasium_knows_a_registered_game_by_its_id(pig):
    game = load_own(*split_own(pig)[:2], "game")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dice_envs.register(game) is game is dice_envs.register(game)
    env = gymnasium.make("dice_envs/Pig-v0", target=20)
    assert (env.unwrapped.variant.game, env.unwrapped.variant.options.target) == (game, 20)
    assert gymnasium.make_vec("dice_envs/Pig-v0", 3, target=20).reset(seed=1)[0].shape == (3, 4)
    other = dataclasses.replace(dice_envs.load("thirties"), name="slower_thirties")
    dice_envs.register(other)  # its env_name is that of the old game, which keeps its id
    assert gymnasium.make("dice_envs/slower_thirties-v0").unwrapped.variant.game is other
    assert gymnasium.make("dice_envs/Thirties-v0").unwrapped.variant.game is dice_envs.load("thirties")


def test_what_is_no_game_is_refused_in_one_line(players, pig, tmp_path):
    for given, words in (
        (f"{players}:Nth", "where NAME is a dice_envs.Game"),
        (f"{pig}:1", "where NAME is a dice_envs.Game"),
        (f"{players}:Missing", "game '"),
    ):
        assert words in refusal("arena", given, "random", "random")


def test_names_of_games_are_kept_apart(pig):
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


def test_a_name_in_data_runs_nothing(pig):
    """Saved games and policy files name their game, which must not run code."""
    with pytest.raises(ValueError, match="unknown game .* known once the module that registers it is imported, in each worker"):
        dice_envs.configure(pig)
    with pytest.raises(ValueError, match="game: unknown game"):
        Sitting.load(finished({"game": pig}))
