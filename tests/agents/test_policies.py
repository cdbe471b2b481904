"""Policies that come with the package, and what their headers say."""

import json
import re

import numpy as np
import pytest

from dice_envs import Batch, Uniform, agents, configure, measure
from dice_envs.agent.casting import cast
from dice_envs.agents import ppo
from dice_envs.agents.nash import Champion
from dice_envs.agents.ppo import (
    Ppo,
    block_inputs,
    in_half,
    load_policy,
    measures_as_dicts,
    save_policy,
    shipped,
)
from dice_envs.experiments.arena import tournament
from tests.agents.test_ppo import HEADER, reason, write
from tests.support.commands import done
from tests.support.liars_dice_games import winning_probability
from tests.support.policies import random_policy
from tests.support.subsets import few
from tests.support.turns import turn_at

MOST_BYTES = 2**20
QUICK = 3.0  # seconds; policies that take longer to measure are measured by slow tests
TWO = configure("liars_dice", num_dice=2)
ABOUT = {
    "command": "python -m experiments train liars_dice",
    "seed": 3,
    "steps": 1000,
    "minutes": 0.5,
    "measures": [{"name": "exploitability", "value": 0.1, "optimum": 0.0, "gap": 0.1, "error": 0.0, "unit": "return"}],
    "table": {"agents": ["ppo", "numbers"], "win_rate": [[None, 0.6], [0.4, None]], "ci95": 0.01},
    "note": "anything else",
}


def turn_of(variant, n=500, plays=1):
    """A turn of positions after random moves."""
    batch = Batch(variant, n, seed=1)
    for play in range(plays):
        batch.play(Uniform().act(turn_at(variant, batch.states, play)))
        batch.deal(np.flatnonzero(batch.seats < 0))
    return turn_at(variant, batch.states, 3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "policy.npz"


# --- what a file holds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", [False, True])
def test_what_a_policy_says_of_itself_is_kept(half, path):
    policy = random_policy(TWO, ABOUT, floor=0.05)
    save_policy(path, policy, half=half)
    found = load_policy(path)
    assert found.about == json.loads(json.dumps(ABOUT))
    assert found.floor == 0.05
    for ours, theirs in zip((in_half(policy) if half else policy).layers, found.layers, strict=True):
        for our, their in zip(ours, theirs, strict=True):
            assert their.dtype == np.float32
            np.testing.assert_array_equal(our, their)


def test_float16_takes_half_the_room_and_rounds(tmp_path):
    policy = random_policy(TWO)
    sizes = []
    for half in (False, True):
        save_policy(tmp_path / f"{half}.npz", policy, half=half)
        sizes.append((tmp_path / f"{half}.npz").stat().st_size)
    assert sizes[1] < 0.6 * sizes[0]
    rounded = in_half(policy).layers[0][0]
    assert 0 < np.abs(rounded - policy.layers[0][0]).max() < 2e-3
    policy.layers[0][1][0] = 1e6
    with pytest.raises(ValueError, match="float16 holds numbers up to 65,504, and the policy has 1,000,000"):
        save_policy(tmp_path / "large.npz", policy, half=True)
    assert not (tmp_path / "large.npz").exists()


WRONG = [
    ([], "about is []"),
    (None, "about is None"),
    ({"command": 1}, "about.command is 1"),
    ({"seed": 1.5}, "about.seed is 1.5"),
    ({"steps": "many"}, "about.steps is 'many'"),
    ({"steps": "many", "seed": "none", "command": 3}, "about.command is 3"),  # the first of several, whatever the order of sets
    ({"minutes": 10**400}, "about.minutes is a number of about 401 digits"),
    ({"measures": {}}, "about.measures is {}"),
    ({"measures": [{**ABOUT["measures"][0], "value": "0.1"}]}, "about.measures[0].value is '0.1'"),
    ({"greedy_measures": [{}]}, "about.greedy_measures[0].name is None"),
    ({"table": []}, "about.table is []"),
    ({"table": {"agents": "ppo"}}, "about.table.agents is 'ppo'"),
    ({"other": float("inf")}, "about cannot be written as JSON"),
    ({"other": "x" * 2**16}, "about has 65,"),
]


@pytest.mark.parametrize(("about", "words"), WRONG)
def test_what_a_policy_says_of_itself_is_not_trusted(about, words, path):
    write(path, random_policy(TWO).layers, {**HEADER, "about": about})
    assert words in reason(path)
    if about:
        with pytest.raises(ValueError, match=re.escape(words)):
            random_policy(TWO, about)


@pytest.mark.parametrize("floor", [-0.1, 1, "0.1", None, True, float("nan"), 10**400])
def test_a_floor_is_not_trusted(floor, path):
    write(path, random_policy(TWO).layers, {**HEADER, "floor": floor})
    assert "floor" in reason(path)


def test_actions_below_the_floor_are_never_taken():
    turn = turn_of(TWO, 4000)
    plain, cut = random_policy(TWO), random_policy(TWO, floor=0.2)
    wanted = plain.probabilities(turn)
    wanted[wanted < 0.2 * wanted.max(axis=1, keepdims=True)] = 0
    wanted /= wanted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cut.probabilities(turn), wanted, atol=1e-12)
    assert (wanted == 0).sum() > (turn.legal == 0).sum()
    actions = cut.act(turn)
    assert (wanted[np.arange(len(turn)), actions] > 0).all()
    shares = np.bincount(actions, minlength=wanted.shape[1]) / len(turn)
    np.testing.assert_allclose(shares, wanted.mean(axis=0), atol=4 * 0.5 / np.sqrt(len(turn)))


# --- memoryless networks ----------------------------------------------------------------------------------------------


def test_a_network_is_memoryless_if_it_does_not_see_how_a_position_came_about():
    history = block_inputs(TWO, lambda block: block.history)
    assert set(history) == set(block_inputs(TWO, lambda block: block.name in ("bids", "past_bids")))
    assert random_policy(TWO, blind=history).promises.memoryless
    for one in (history[0], history[-1]):
        assert not random_policy(TWO, blind=np.setdiff1d(history, one)).promises.memoryless
    goal = configure("thirties", num_players=1)
    assert len(block_inputs(goal, lambda block: block.history)) == 0
    assert not random_policy(goal).promises.memoryless, "not known to be: the game names no such inputs"


# --- without a path ---------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with three policies, one of them distilled."""
    policies = {
        "liars_dice_two": random_policy(
            TWO, {"measures": ABOUT["measures"]}, blind=block_inputs(TWO, lambda block: block.history)
        ),
        "shakes": random_policy(configure("shakes", mode="physician")),
        "three": random_policy(configure("liars_dice", num_dice=3), {"method": "distill"}),
    }
    for name, policy in policies.items():
        save_policy(tmp_path / f"{name}.npz", policy)
    monkeypatch.setattr(ppo, "POLICIES", tmp_path)
    return tmp_path


@pytest.mark.parametrize("greedy", ["", ",greedy=true"])
def test_without_a_path_ppo_plays_the_packages_policy(greedy, package):
    without, given = agents.make(f"ppo:{greedy[1:]}"), agents.make(f"ppo:{package / 'liars_dice_two.npz'}{greedy}")
    for question in ("act", "probabilities"):
        ours, theirs = (getattr(agent, question)(turn_of(TWO)) for agent in (without, given))
        np.testing.assert_array_equal(ours, theirs)
    ours, theirs = measure(TWO, without), measure(TWO, given)
    assert [each.value for each in ours.measures] == [each.value for each in theirs.measures]
    physician = configure("shakes", mode="physician")
    assert without.act(turn_of(physician, 5, 0)).shape == (5,)
    assert winning_probability(TWO, f"ppo:{greedy[1:]}", "random") == winning_probability(TWO, given, "random")


@pytest.mark.parametrize(
    ("game", "options", "there"),
    [
        ("liars_dice", {}, "liars_dice (num_dice=2)"),
        ("liars_dice", {"num_dice": 3}, "liars_dice (num_dice=2)"),
        ("shakes", {"mode": "maesters"}, "shakes (mode=physician)"),
        ("thirties", {}, "liars_dice (num_dice=2), shakes (mode=physician)"),  # none of its own, so all
    ],
)
def test_without_a_path_it_says_what_it_plays(game, options, there, package):
    variant = configure(game, **options)
    agent = Ppo()
    for question in (
        lambda: agent.check_variant(variant),
        lambda: agent.act(turn_of(variant, 2, 0)),
        lambda: cast(game, options, ["ppo"]),
    ):
        with pytest.raises(ValueError, match=".") as caught:
            question()
        text = str(caught.value)
        assert f"ppo has no policy in the package for {variant}; " in text
        assert f"play {there}; " in text
        assert len(text.splitlines()) == 1


def test_without_a_path_it_brings_no_options(package):
    assert Ppo().promises.variant is None
    assert not Ppo().promises.memoryless
    assert cast("liars_dice", {"num_dice": 2}, ["ppo", "numbers"]).policy == ""
    with_path = f"ppo:{package / 'liars_dice_two.npz'}"
    assert cast("liars_dice", {}, [with_path, "ppo"]).variant.options.num_dice == 2
    assert Ppo().of_variant(TWO).promises.memoryless
    assert repr(Ppo().of_variant(TWO)) == repr(Ppo())


def test_an_empty_package_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(ppo, "POLICIES", tmp_path)
    with pytest.raises(ValueError, match="; none comes with it; ppo:FILE plays one that `train` has saved"):
        Ppo().check_variant(TWO)
    with pytest.raises(ValueError, match="the package is not complete: there is no policy file liars_dice_champion.npz"):
        _ = Champion().policy


def test_the_command_lists_them(package, tmp_path):
    out = tmp_path / "list.json"
    result = done("agents", "--policies", "--json", str(out))
    rows = {row["file"]: row for row in json.loads(out.read_text())["policies"]}
    assert set(rows) == {"liars_dice_two.npz", "shakes.npz", "three.npz"}
    row = rows["liars_dice_two.npz"]
    assert (row["plays"], row["value"], row["optimum"]) == ("liars_dice (num_dice=2)", 0.1, 0.0)
    assert row["bytes"] == (package / "liars_dice_two.npz").stat().st_size
    assert "trained policies" in result


# --- those that are there ---------------------------------------------------------------------------------------------

FILES = sorted(ppo.POLICIES.glob("*.npz"))


def by_time(file):
    about = load_policy(file).about
    marks = [] if about.get("measuring_seconds", 1e9) <= QUICK else [pytest.mark.slow]
    return pytest.param(file, marks=marks, id=file.stem)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_policy_of_the_package_is_small_and_says_how_it_was_made(file):
    assert file.stat().st_size <= MOST_BYTES
    about = load_policy(file).about
    assert about["command"].startswith("python -m experiments ")
    assert f"--seed {about['seed']}" in about["command"]
    assert about.get("measures") or about.get("table")


def test_one_trained_policy_for_each_variant():
    trained = [policy.variant for policy in shipped().values() if policy.about.get("method") != "distill"]
    assert len({str(variant) for variant in trained}) == len(trained)
    for variant in trained:
        Ppo().check_variant(variant)


@few(1, "file", [by_time(file) for file in FILES])
def test_a_policy_of_the_package_is_as_good_as_it_says(file):
    """Exact figures must be the same when measured again, sampled ones within both intervals."""
    policy = load_policy(file)
    about = policy.about
    for field, greedy in (("measures", False), ("greedy_measures", True)):
        if about.get(field):
            found = measures_as_dicts(measure(policy.variant, Ppo(str(file), greedy), seed=about["seed"]))
            assert [each["name"] for each in found] == [each["name"] for each in about[field]]
            for ours, said in zip(found, about[field], strict=True):
                for quantity in ("value", "optimum"):
                    assert ours[quantity] == pytest.approx(said[quantity], abs=1e-6 + ours["error"] + said["error"])
    if not about.get("measures"):
        table = about["table"]
        result = tournament(policy.variant, [f"ppo:{file}", *table["agents"][1:]], games=2000, seed=1)
        said = np.ravel(np.array(table["win_rate"], float))[0]
        ours = result.win_rate[0][0] if policy.variant.facts.num_seats > 2 else result.win_rate[0][1]
        assert abs(ours - said) < 0.05


# --- the champion -----------------------------------------------------------------------------------------------------


def test_the_champion_plays_by_its_probabilities():
    turn = turn_of(configure("liars_dice"), 200, 3)
    chances = agents.make("champion").probabilities(turn)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (chances[np.arange(200), agents.make("champion").act(turn)] > 0).all()


def test_past_rounds_mean_nothing_to_the_champion():
    policy = Champion().policy
    assert not policy.layers[0][0][:, block_inputs(policy.variant, lambda block: block.name == "past_bids")].any()


@pytest.mark.thorough
def test_best_responses_win_little_from_the_champion():
    """By the figures of its file; the slow tests measure it again."""
    (wins,) = [each for each in Champion().policy.about["measures"] if each["name"] == "best response wins"]
    assert 0.5 < wins["value"] < 0.53
    assert wins["error"] == 0
