"""Discovery of the modules and agents of games."""

import pytest

from dice_envs import configure, names
from dice_envs.agent.specs import aliases, factories, for_game, lineup, make_agent, make_players
from dice_envs.core.game import single_seat
from dice_envs.experiments.commands import LISTED
from tests.support.commands import done
from tests.support.policies import save_random_policy


def test_every_agent_is_listed_once():
    anywhere = for_game(None)
    assert set(anywhere) >= {"mcts", "ppo", "random"}
    found = {name: set(for_game(name)) for name in names()}
    assert all(set(anywhere) < playing for playing in found.values())
    own = [name for playing in found.values() for name in playing - set(anywhere)]
    assert sorted(set(anywhere) | set(own)) == sorted(factories())
    assert {"fatestones", "liars_dice"} <= {game for game, playing in found.items() if "nash" in playing}, "listed for each"
    assert set(for_game("score-dice")) - set(anywhere) >= {"highest", "score_response", "shuffled"}
    with pytest.raises(ValueError, match="unknown game 'chess'"):
        for_game("chess")


@pytest.mark.parametrize("game", names())
def test_other_names_are_those_of_a_games_own_agents(game):
    variant = configure(game)
    found = aliases(game)
    assert "heuristic" in found
    assert not set(found) & set(factories())
    for name, spec in found.items():
        assert make_players(variant, [name]) == [make_agent(spec)]


def test_another_name_takes_parameters():
    assert make_agent("binomial:bluff=0.5", "liars_dice") == make_agent("numbers:bluff=0.5")
    with pytest.raises(ValueError, match="unknown agent 'binomial'; agents for fatestones are"):
        make_players(configure("fatestones"), ["binomial"])
    with pytest.raises(ValueError, match="did you mean 'heuristic'"):
        make_players(configure("fatestones"), ["heuristics"])


@pytest.fixture
def policies(tmp_path):
    """Specs of policies by name: a physician, maesters, two physicians, Liar's Dice with two dice."""
    variants = {
        "physician": configure("shakes", mode="physician"),
        "maesters": configure("shakes"),
        "two": configure("shakes", mode="physician", num_players=2),
        "dice": configure("liars_dice", num_dice=2),
    }
    return {name: f"ppo:{save_random_policy(tmp_path / f'{name}.npz', variant)}" for name, variant in variants.items()}


def test_options_that_are_not_given_are_the_policys(policies):
    for usual in (configure, single_seat):
        for name, mode in (("physician", "physician"), ("maesters", "maesters")):
            chosen = lineup("shakes", {}, ["random", policies[name], f"{policies[name]},greedy=true"], usual)
            assert chosen.variant.options.mode == mode
            assert chosen.policy == ("" if usual("shakes").options.mode == mode else policies[name]), "said where it matters"
    assert lineup("shakes", {"num_players": 3}, [policies["physician"]]).variant.options.mode == "physician"
    assert lineup("shakes", {"mode": "physician"}, [policies["two"]]).variant.options.num_players == 2
    assert lineup("shakes", {"mode": "physician"}, [policies["physician"]]).policy == "", "no option was taken from it"
    assert lineup("liars-dice", {}, [policies["dice"], "numbers"]).variant.options.num_dice == 2
    assert lineup("shakes", {}, ["random"]).variant.options.mode == "maesters"
    assert lineup("shakes", {}, ["random"], single_seat).variant.options.mode == "physician"


@pytest.mark.parametrize(
    ("options", "names", "words"),
    [
        ({"mode": "maesters"}, ["physician"], ["physician.npz was trained on shakes with mode=physician; it cannot play mode"]),
        ({"num_players": 4}, ["two"], ["two.npz was trained on shakes with num_players=2", "it cannot play num_players=4"]),
        ({}, ["physician", "maesters"], ["physician.npz was trained on shakes with mode=", "maesters.npz with mode=m"]),
        ({}, ["two", "physician"], ["two.npz was trained on shakes with num_players=2", "physician.npz with num_players=3"]),
        ({}, ["dice"], ["dice.npz was trained on liars_dice (num_dice=2); it cannot play shakes"]),
        ({}, ["physician", "dogmatic"], ["dogmatic is a maester", "physician.npz was trained on shakes (mode=physician) and "]),
        ({}, ["dogmatic", "physician"], ["dogmatic is a maester", "physician.npz was trained on shakes (mode=physician) and "]),
        ({"modes": 1}, ["physician"], ["shakes has no option 'modes'"]),
    ],
)
def test_what_no_policy_can_play_is_refused(options, names, words, policies):
    with pytest.raises(ValueError, match=".") as caught:
        lineup("shakes", options, [policies.get(name, name) for name in names])
    assert all(each in str(caught.value) for each in words), caught.value
    assert len(str(caught.value).splitlines()) == 1


def test_every_command_has_a_heading():
    from typer.main import get_command

    from dice_envs.experiments.__main__ import app

    commands = get_command(app).commands
    assert sorted(commands) == sorted(name for listed in LISTED.values() for name in listed)
    for group, more in (("reproduce", ["all"]), ("solve", [])):
        shown = [name for name, command in commands[group].commands.items() if not command.hidden]
        assert shown == [*more, *(name.replace("_", "-") for name in sorted(names()))]
    told = done("--help")
    assert all(f"│ {name} " in told for name in commands)
