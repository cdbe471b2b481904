"""Our games in OpenSpiel: its own checks pass, and its measures and solutions agree with ours."""

import dataclasses
import importlib
import pickle
import sys

import numpy as np
import pyspiel
import pytest
from open_spiel.integration_tests import api_test
from open_spiel.python import policy as policies
from open_spiel.python.algorithms import (
    cfr,
    expected_game_score,
    exploitability,
    external_sampling_mccfr,
    get_all_states,
    sample_some_states,
)

from dice_envs.agent import Turn, Uniform
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import load, names
from dice_envs.envs.openspiel import PREFIX, AgentPolicy, DiceGame, PolicyAgent, estimate_positions, openspiel_game
from dice_envs.exact import measure
from dice_envs.experiments.arena import tournament
from tests.core.test_chance import deal_by_fraction
from tests.support.variants import IDS, VARIANTS

QUANTITY = ("liars_dice", {"num_dice": 1, "num_faces": 3})
EITHER = ("liars_dice", {"rules": "openspiel", "num_dice": 1, "num_faces": 3})
ONE_ROUND = ("liars_dice", {**QUANTITY[1], "rounds": "single", "starter": "first"})
TWO_ROUNDS = ("liars_dice", {"num_dice": (2, 1), "num_faces": 2, "past_rounds": False})
STONES = ("fatestones", {"dice": (111444, 333333, 222266, 113456), "hand_size": 2, "scratch": "draw"})
POOLS = ("score_dice", {"pool_a": (3, 2), "pool_b": (2, 2)})
GAMES = {
    "quantity": QUANTITY,
    "one round": ONE_ROUND,
    "either": EITHER,
    "two rounds": TWO_ROUNDS,
    "stones": STONES,
    "pools": POOLS,
}


def gap_of(name, agent, options):
    """How much a best response wins from the agent, both seats on average, as `measure` has it."""
    (found,) = [each for each in measure(name, agent, **options).measures if each.name == "exploitability"]
    return found.gap


def play_on(state, rng):
    """Play at random to the end."""
    while not state.is_terminal():
        state.apply_action(int(rng.choice(state.legal_actions())))
    return state


# --- OpenSpiel's own checks ---------------------------------------------------------------------------------------


@pytest.mark.library("open_spiel", "random_sim_test")
@pytest.mark.parametrize("name", names())
def test_random_simulations_pass_openspiels_checks(name):
    """Clones, serialisation, masks, histories, returns and the sizes of tensors, as OpenSpiel checks its own games."""
    pyspiel.random_sim_test(pyspiel.load_game(PREFIX + name), num_sims=1, serialize=True, verbose=False)


@pytest.mark.slow
@pytest.mark.parametrize("chance", ["explicit", "sampled"])
@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=IDS)
def test_random_simulations_of_every_variant(name, options, chance):
    game = openspiel_game(name, chance=chance, **options)
    # OpenSpiel cannot serialise sampled chance of games in Python.
    pyspiel.random_sim_test(game, num_sims=3, serialize=chance == "explicit", verbose=False)
    again = pyspiel.load_game(str(game))
    assert str(again) == str(game)
    assert again.variant.options == game.variant.options
    assert (again.chance, again.perfect_recall) == (game.chance, game.perfect_recall)


@pytest.mark.library("open_spiel", "its API tests")
@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_openspiels_api_tests(name):
    """Those that OpenSpiel runs on a part of each of its games' trees."""
    kind = type("Api", (api_test.EnforceAPIOnPartialTreeBase,), {})
    kind.game_name, kind.game = PREFIX + name, pyspiel.load_game(PREFIX + name)
    kind.some_states = sample_some_states.sample_some_states(kind.game, max_states=60)
    kind.game_type = kind.game.get_type()
    tests = [each for each in dir(kind) if each.startswith("test_")]
    assert len(tests) >= 5
    for test in tests:
        getattr(kind(test), test)()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [QUANTITY, POOLS, ("fatestones", {**STONES[1], "hand_size": 1})])
def test_openspiels_api_tests_of_a_whole_tree(name, options):
    kind = type("Api", (api_test.EnforceAPIOnFullTreeBase,), {})
    kind.game_name, kind.game = PREFIX + name, openspiel_game(name, **options)
    kind.all_states = set(
        get_all_states.get_all_states(kind.game, depth_limit=-1, include_terminals=True, include_chance_states=True).values()
    )
    # The others compare the numbers of states with a table of OpenSpiel's games.
    for test in (each for each in dir(kind) if each.startswith("test_") and "number" not in each and "recall" not in each):
        getattr(kind(test), test)()
    assert api_test._assert_is_perfect_recall(kind.game)


# --- agreement with our measures and solutions --------------------------------------------------------------------


@pytest.mark.parametrize("which", ["quantity", *(pytest.param(each, marks=pytest.mark.slow) for each in ("either", "pools"))])
def test_exploitability_of_random_play_is_what_measure_finds(which):
    name, options = GAMES[which]
    game = openspiel_game(name, **options)
    assert pyspiel.exploitability(game, pyspiel.UniformRandomPolicy(game)) == pytest.approx(gap_of(name, "random", options))


@pytest.mark.library("open_spiel", "exploitability, as measure finds it", game=lambda test: GAMES[test["which"]][0])
@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "agent"),
    [
        ("quantity", "numbers:bluff=0.25"),
        ("quantity", "nash"),
        ("either", "numbers"),
        ("either", "nash"),
        ("two rounds", "random"),
        ("two rounds", "numbers:bluff=0.5"),
        ("two rounds", "nash"),
        ("stones", "random"),
        ("stones", "nash"),
        ("stones", "best_response"),
        ("pools", "highest"),
    ],
)
@pytest.mark.parametrize("perfect_recall", [True, False])
def test_exploitability_of_agents_is_what_measure_finds(which, agent, perfect_recall):
    name, options = GAMES[which]
    game = openspiel_game(name, perfect_recall=perfect_recall, **options)
    theirs = exploitability.exploitability(game, AgentPolicy(game, agent))
    assert theirs == pytest.approx(gap_of(name, agent, options), abs=1e-9)


@pytest.mark.library("open_spiel", "CFR finds what measure confirms", game=lambda test: GAMES[test["which"]][0])
@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "solution", "iterations"),
    [
        ("one round", "nash", 30),
        ("either", "nash", 30),
        ("two rounds", "nash", 8),
        ("stones", "nash", 8),
        ("pools", "random", 8),  # any random choice is an equilibrium
    ],
)
def test_cfr_finds_solutions_that_measure_confirms(which, solution, iterations):
    """The average policy as one of our agents: `measure` finds the exploitability that OpenSpiel does, and it is small."""
    name, options = GAMES[which]
    # An agent sees nothing of past rounds but what is in its observation, so information sets must not either.
    game = openspiel_game(name, perfect_recall=which in ("one round", "either", "pools"), **options)
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    theirs = pyspiel.exploitability(game, average)
    assert gap_of(name, PolicyAgent(game, average), options) == pytest.approx(theirs, abs=1e-9)
    assert theirs < 0.05
    ours = expected_game_score.policy_value(game.new_initial_state(), [AgentPolicy(game, solution)] * 2)
    assert sum(ours) == pytest.approx(0, abs=1e-9)
    # Each side may be off the value by no more than a best response wins from it: the sum of both seats'.
    assert pyspiel.expected_returns(game.new_initial_state(), average, -1, True)[0] == pytest.approx(
        ours[0], abs=2 * theirs + 1e-9
    )


def test_openspiels_own_game_and_ours_have_the_same_exploitability():
    """Random play under OpenSpiel's rules, in its own `liars_dice` and in ours."""
    theirs = pyspiel.load_game("liars_dice(players=2,numdice=1,dice_sides=3)")
    ours = openspiel_game(EITHER[0], **EITHER[1])
    expected = pyspiel.exploitability(theirs, pyspiel.UniformRandomPolicy(theirs))
    assert pyspiel.exploitability(ours, pyspiel.UniformRandomPolicy(ours)) == pytest.approx(expected)


@pytest.mark.slow
def test_python_algorithms_run_with_either_kind_of_chance():
    name, options = ONE_ROUND
    game = openspiel_game(name, **options)
    solver = cfr.CFRSolver(game)
    for _ in range(5):
        solver.evaluate_and_update_policy()
    theirs = exploitability.exploitability(game, solver.average_policy())
    assert gap_of(name, PolicyAgent(game, solver.average_policy()), options) == pytest.approx(theirs, abs=1e-9)
    assert theirs < gap_of(name, "random", options)
    sampled = openspiel_game("liars_dice", num_players=3, num_dice=1, num_faces=3, chance="sampled", rng_seed=1)
    traverser = external_sampling_mccfr.ExternalSamplingSolver(sampled)
    for _ in range(20):
        traverser.iteration()
    assert traverser.average_policy().action_probabilities(play_until_decision(sampled))


def play_until_decision(game):
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    return state


# --- states -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("perfect_recall", [True, False])
def test_a_game_follows_ours_and_information_states_say_what_was_seen(perfect_recall):
    """With the same draws and actions: seats, legal actions, observations and returns are those of the kernels."""
    game = openspiel_game("liars_dice", num_players=3, num_dice=2, num_faces=3, perfect_recall=perfect_recall)
    variant = game.variant
    facts = variant.facts
    rng = np.random.default_rng(1)
    for _ in range(5):
        state = play_until_decision(game)
        seen = [[] for _ in range(3)]
        total = np.zeros(3)
        while True:
            record = state.position.record
            everybody = np.arange(3)
            views = np.empty((3, facts.observation_size), np.float32)
            variant.kernels.observe(variant.params, record, np.zeros(3, np.int64), everybody, views)
            for seat in range(3):
                seen[seat].append(views[seat])
                assert state.observation_tensor(seat) == [*np.eye(3)[seat], *views[seat]]
                told = np.array(state.information_state_tensor(seat))[3:]
                if perfect_recall:
                    rows = told.reshape(facts.max_steps + 1, -1)[:, : facts.observation_size]
                    np.testing.assert_array_equal(rows[: len(seen[seat])], seen[seat])
                    assert not rows[len(seen[seat]) :].any()
                else:
                    np.testing.assert_array_equal(told, views[seat])
            if state.is_terminal():
                break
            assert state.current_player() == record["seat"][0]
            before, action = record.copy(), int(rng.choice(state.legal_actions()))
            state.apply_action(action)
            if not state.is_chance_node():  # nothing was drawn, so the compiled kernel leads to the same
                variant.kernels.play(variant.params, before, np.zeros(1, np.int64), np.array([action]))
                for field in before.dtype.names:
                    np.testing.assert_array_equal(before[field], state.position.record[field])
            while state.is_chance_node():
                outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(int(rng.choice(outcomes, p=chances)))
            total += state.position.record["rewards"][0, :3]
        np.testing.assert_allclose(state.returns(), total, atol=1e-6)
        assert abs(sum(state.returns())) < 1e-9


def test_information_states_tell_own_actions_apart_that_observations_do_not():
    """Who has committed a die in FateStones sees no trace of it, but remembers which it was."""
    game = openspiel_game(STONES[0], **STONES[1])
    state = play_until_decision(game)
    one, other = state.child(0), state.child(1)
    assert one.observation_string(0) == other.observation_string(0)
    assert one.information_state_string(0) != other.information_state_string(0)
    assert one.information_state_string(1) == other.information_state_string(1)


def test_sampled_chance_draws_anew_in_every_copy_and_repeats_with_its_seed():
    def dealt(seed):
        game = openspiel_game("liars_dice", chance="sampled", rng_seed=seed)
        start = game.new_initial_state()
        assert start.chance_outcomes() == [(0, 1.0)]
        return [start.child(0).information_state_string(0) for _ in range(20)]

    assert len(set(dealt(1))) > 10
    assert dealt(1) == dealt(1) != dealt(2)


def test_a_game_that_draws_fractions_has_sampled_chance():
    game = dataclasses.replace(load("liars_dice"), deal=deal_by_fraction)
    assert openspiel_game(game).chance == "sampled"
    with pytest.raises(ValueError, match="chance must be 'sampled' for liars_dice, whose chance cannot be enumerated"):
        openspiel_game(game, chance="explicit")


def test_states_and_games_can_be_pickled():
    game = openspiel_game("liars_dice", num_dice=(2, 1), num_faces=3)
    state = game.new_initial_state()
    state.apply_action(state.legal_actions()[-1])
    for each in (state, play_until_decision(game), play_on(state.clone(), np.random.default_rng(1))):
        _, again = pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, each))
        assert (str(again), again.history(), again.legal_actions()) == (str(each), each.history(), each.legal_actions())
        assert again.is_terminal() or again.child(again.legal_actions()[0])
    assert str(pickle.loads(pickle.dumps(game))) == str(game)


# --- names, parameters, errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("liars_dice", {"num_dice": 1, "raise_rule": "either"}, "dice_envs_liars_dice(num_dice=1,raise_rule=either)"),
        ("liars_dice", {"num_dice": (2, 1), "wild": "ones"}, "dice_envs_liars_dice(more=num_dice:2/1,wild=ones)"),
        ("liars_dice", {"past_rounds": False}, "dice_envs_liars_dice(past_rounds=False)"),
        ("score_dice", {"pool_a": 6, "pool_b": (8, 6)}, "dice_envs_score_dice(pool_a=6/,pool_b=8/6)"),
        ("shakes", {"num_patients": 7}, "dice_envs_shakes(num_patients=7)"),
        ("shakes", {"treatments": ("hot bath", "<b> & Co", "meat")}, "dice_envs_shakes(treatments=hot bath/<b> & Co/meat)"),
        ("thirties", {"chance": "sampled", "rng_seed": 3}, "dice_envs_thirties(chance=sampled,rng_seed=3)"),
        ("fatestones", {"perfect_recall": False}, "dice_envs_fatestones(perfect_recall=False)"),
    ],
)
def test_games_have_names_that_load_them(name, options, text):
    game = openspiel_game(name, **options)
    assert str(game) == text
    loaded = pyspiel.load_game(text)
    assert isinstance(loaded, DiceGame)
    assert (loaded.variant.options, loaded.chance) == (game.variant.options, game.chance)


def test_wrong_options_and_settings_are_named():
    with pytest.raises(ValueError, match="chance must be one of None, 'explicit', 'sampled', not 'none'"):
        openspiel_game("liars_dice", chance="none")
    with pytest.raises(ValueError, match="rng_seed must be a whole number from -1"):
        openspiel_game("liars_dice", rng_seed=-2)
    with pytest.raises(ValueError, match="perfect_recall must be true or false, not 1"):
        openspiel_game("liars_dice", perfect_recall=1)
    with pytest.raises(ValueError, match="num_dice must be a whole number from 1 to 6, not 9"):
        pyspiel.load_game("dice_envs_liars_dice(num_dice=9)")
    with pytest.raises(ValueError, match="more must be words such as num_dice:2/1, not 'num_dice'"):
        pyspiel.load_game("dice_envs_liars_dice(more=num_dice)")
    with pytest.raises(ValueError, match="observers take no parameters"):
        openspiel_game("liars_dice").make_py_observer(None, {"a": 1})


def test_without_openspiel_the_error_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "dice_envs.envs.openspiel")
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(ImportError, match=r"pip install 'dice-envs\[openspiel\]'"):
        importlib.import_module("dice_envs.envs.openspiel")


# --- agents and policies ------------------------------------------------------------------------------------------


def test_agents_and_policies_are_the_same_players():
    name, options = QUANTITY
    game = openspiel_game(name, **options)
    bluffer = AgentPolicy(game, "numbers:bluff=0.25")
    back = PolicyAgent(game, bluffer)
    assert gap_of(name, back, options) == pytest.approx(gap_of(name, "numbers:bluff=0.25", options), abs=1e-9)
    played = tournament(game.variant, ["back", "random"], 50, 1, agents=[back, Uniform()])
    assert played.win_rate[0][1] > 0.5
    state = play_until_decision(game)
    assert sum(bluffer.action_probabilities(state).values()) == pytest.approx(1)
    assert list(bluffer.action_probabilities(state)) == state.legal_actions()
    seen = AgentPolicy(game, lambda observations, masks: masks / masks.sum(axis=1, keepdims=True))
    assert seen.action_probabilities(state) == policies.UniformRandomPolicy(game).action_probabilities(state)


def test_a_policy_plays_games_of_any_size_without_recall():
    game = openspiel_game("liars_dice", perfect_recall=False)
    agent = PolicyAgent(game, policies.UniformRandomPolicy(game))
    batch = Batch(game.variant, 8, seed=1)
    turn = Turn(game.variant, batch.states, np.arange(8), new_streams(2, 8))
    np.testing.assert_allclose(agent.probabilities(turn), Uniform().probabilities(turn))


def test_positions_are_estimated():
    """Beside the number that a walk counts."""
    game = openspiel_game("liars_dice", num_dice=1, num_faces=3)
    counted, waiting = 0, [game.new_initial_state()]
    while waiting:
        state = waiting.pop()
        counted += 1
        waiting += [] if state.is_terminal() else [state.child(action) for action in state.legal_actions()]
    assert estimate_positions(game) == pytest.approx(counted, rel=0.2)


@pytest.mark.parametrize("name", ["fatestones", "liars_dice", "shakes"])
def test_a_tree_too_large_to_walk_is_refused_with_its_size(name):
    game = openspiel_game(name)
    with pytest.raises(ValueError, match=rf"^{name}.* has about \de\+\d+ positions, .* 10,000,000 are allowed"):
        PolicyAgent(game, policies.UniformRandomPolicy(openspiel_game("liars_dice", num_dice=1, num_faces=3)))


def test_what_a_policy_cannot_play_is_said():
    name, options = QUANTITY
    game = openspiel_game(name, **options)
    agent = PolicyAgent(game, policies.UniformRandomPolicy(game))
    with pytest.raises(ValueError, match=r"the policy plays liars_dice \(num_dice=1 num_faces=3\), not liars_dice"):
        measure("liars_dice", agent, num_dice=1)
    with pytest.raises(ValueError, match="chance must be 'explicit'"):
        PolicyAgent(openspiel_game(name, chance="sampled", **options), policies.UniformRandomPolicy(game))
    with pytest.raises(ValueError, match="unknown agent 'nobody'"):
        AgentPolicy(game, "nobody")


class Rememberer(policies.Policy):
    """Plays its first legal action where it has seen an even number of things, else its last."""

    def action_probabilities(self, state, player_id=None):
        legal = state.legal_actions()
        even = len(state.information_state_string()) % 2 == 0
        return {action: float(action == legal[0 if even else -1]) for action in legal}


@pytest.mark.slow
def test_a_policy_that_needs_its_memory_is_no_agent():
    game = openspiel_game(TWO_ROUNDS[0], **TWO_ROUNDS[1])
    with pytest.raises(ValueError, match="plays in two ways where player . sees the same"):
        PolicyAgent(game, Rememberer(game, [0, 1]))
