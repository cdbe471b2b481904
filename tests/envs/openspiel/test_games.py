"""Games in OpenSpiel: its own checks pass, and states agree with the kernels."""

import copy
import dataclasses
import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.integration_tests import api_test
from open_spiel.python.algorithms import get_all_states, sample_some_states

from dice_envs.core.game import load, names
from dice_envs.envs.openspiel import PREFIX, openspiel_game
from tests.core.test_chance import deal_by_fraction
from tests.envs.openspiel.cases import POOLS, QUANTITY, STONES, play_on, play_until_decision
from tests.support.variants import IDS, VARIANTS

# --- OpenSpiel's own checks ---------------------------------------------------------------------------------------


@pytest.mark.library("open_spiel", "random_sim_test")
@pytest.mark.parametrize("name", names())
def test_random_simulations_pass_openspiels_checks(name):
    """OpenSpiel's checks of clones, serialisation, masks, histories, returns and tensor sizes."""
    pyspiel.random_sim_test(pyspiel.load_game(PREFIX + name), num_sims=1, serialize=True, verbose=False)


@pytest.mark.thorough
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


PARTS = [(api_test.EnforceAPIOnPartialTreeBase, name, {}) for name in names()]
WHOLE = [
    (api_test.EnforceAPIOnFullTreeBase, *each) for each in (QUANTITY, POOLS, ("fatestones", {**STONES[1], "hand_size": 1}))
]


@pytest.mark.library("open_spiel", "its API tests")
@pytest.mark.thorough
@pytest.mark.parametrize(("base", "name", "options"), [*PARTS, *WHOLE])
def test_openspiels_api_tests(base, name, options):
    """The tests that OpenSpiel runs on a part of each game's tree, and of small ones on all of it."""
    kind = type("Api", (base,), {})
    kind.game_name, kind.game = PREFIX + name, openspiel_game(name, **options)
    kind.game_type = kind.game.get_type()
    tests = [each for each in dir(kind) if each.startswith("test_")]
    if options:
        states = get_all_states.get_all_states(kind.game, depth_limit=-1, include_terminals=True, include_chance_states=True)
        kind.all_states = set(states.values())
        # The other tests compare numbers of states with a table of OpenSpiel's games.
        tests = [each for each in tests if "number" not in each and "recall" not in each]
        assert api_test._assert_is_perfect_recall(kind.game)
    else:
        kind.some_states = sample_some_states.sample_some_states(kind.game, max_states=60)
    assert len(tests) >= 5
    for test in tests:
        getattr(kind(test), test)()


# --- states -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("perfect_recall", [True, False])
def test_a_game_follows_ours_and_information_states_say_what_was_seen(perfect_recall):
    """With the same draws and actions, seats, legal actions, observations and returns are those of the kernels."""
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
            variant.kernels.observe(record, np.zeros(3, np.int64), everybody, views)
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
            if not state.is_chance_node():  # nothing was drawn, so the compiled kernel gives the same state
                variant.kernels.play(before, np.zeros(1, np.int64), np.array([action]))
                for field in before.dtype.names:
                    np.testing.assert_array_equal(before[field], state.position.record[field])
            while state.is_chance_node():
                outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(int(rng.choice(outcomes, p=chances)))
            total += state.position.record["rewards"][0, :3]
        np.testing.assert_allclose(state.returns(), total, atol=1e-6)
        assert abs(sum(state.returns())) < 1e-9


def test_information_states_tell_own_actions_apart_that_observations_do_not():
    """In FateStones a seat's observation does not show the die it has committed; its information state does."""
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


@pytest.mark.parametrize("chance", ["explicit", "sampled"])
def test_states_and_their_games_can_be_pickled_and_copied(chance):
    """Pickles go on with the random stream where it stood, copies share it."""
    state = play_until_decision(openspiel_game("liars_dice", chance=chance, rng_seed=1))
    state.apply_action(state.legal_actions()[0])
    saved = pickle.dumps(state)
    for again in (copy.copy(state), copy.deepcopy(state), pickle.loads(saved)):
        assert (str(again), again.history(), again.legal_actions()) == (str(state), state.history(), state.legal_actions())
        assert str(again.get_game()) == str(state.get_game())
    ends = [play_on(each, np.random.default_rng(2)) for each in (pickle.loads(saved), pickle.loads(saved), state.clone())]
    assert len({(str(end), tuple(end.history())) for end in ends}) == 1
