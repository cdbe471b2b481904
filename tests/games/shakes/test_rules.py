"""The Shakes: the rules, in environments."""

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dice_envs import Batch, IllegalActionError, configure, shakes_v0
from dice_envs.agent.specs import make_agent
from dice_envs.core.game import OVER
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.reproduce.shakes import play_maesters, play_physician
from dice_envs.games.shakes import ARGUE, FACES, YIELD, argue, argue_all
from dice_envs.games.shakes.exact.chances import Problem, argument_chances
from dice_envs.games.shakes.exact.policies import evaluate
from tests.support.chance import assert_distributed
from tests.support.shakes_tools import states_with
from tests.support.subsets import covering
from tests.support.turns import turn_at


@pytest.mark.parametrize("num_players", range(2, 7))
def test_the_rules_numbers(num_players):
    options = configure("shakes", num_players=num_players).options
    assert (options.patients, options.to_win) == ((12, 5) if num_players <= 3 else (18, 7))
    assert sum(options.efficacies) == 2 * num_players
    competitive = configure("shakes", num_players=num_players, variation="competitive").options
    assert competitive.efficacies == (2,) * num_players
    assert (competitive.to_win, competitive.pays) == (3, "win")


@given(treated=st.integers(0, 200), failed=st.integers(0, 200), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_the_lowest_die_left_is_kept(treated, failed, seed):
    saved = max(0, treated - failed)
    state = np.zeros(1, configure("shakes").game.state)[0]
    state["rng"] = seed
    state["treated"][2], state["saved"][2] = treated, saved
    argue(state, 2)
    thrown = np.repeat(np.arange(1, 9), state["dice"][2])
    assert len(thrown) == treated + 1
    assert thrown.max() <= FACES
    assert state["strength"][2] == thrown[saved:].min()


@pytest.mark.parametrize("ties", ["again", "random"])
@pytest.mark.parametrize(("treated", "saved"), [((0, 0, 0), (0, 0, 0)), ((5, 2, 0), (1, 2, 0)), ((9, 1, 1), (9, 0, 1))])
def test_who_wins_the_argument(ties, treated, saved):
    variant = configure("shakes", ties=ties)
    states = states_with(variant, treated, saved, 20_000)
    counts = np.zeros(3)
    for state in states[:300]:  # from Python one by one, as a reader would
        counts[argue_all(variant.params, state)] += 1
    actions = make_agent("argument").act(turn_at(configure("shakes", mode="physician", ties=ties), states[300:]))
    counts += np.bincount(actions, minlength=3)
    assert_distributed(counts, argument_chances(np.array([treated]), np.array([saved]), ties)[0])


@pytest.mark.parametrize("num_players", [3, 5])
def test_maesters_speak_in_turn_and_one_who_argues_treats_the_patient(num_players):
    """Random games. If all others have yielded, the last to speak must argue."""
    variant, games = configure("shakes", num_players=num_players, reward="win"), np.arange(50)
    batch, rng = Batch(variant, len(games), seed=3), np.random.default_rng(1)
    opener, treated = batch.seats, np.zeros((len(games), num_players))
    for _ in range(variant.options.patients):
        argued = np.zeros((len(games), num_players), bool)
        for spoken in range(num_players):
            seats = (opener + spoken) % num_players  # the next seat opens on the next patient
            np.testing.assert_array_equal(batch.seats, seats)
            must = ~argued.any(axis=1) & (spoken == num_players - 1)
            np.testing.assert_array_equal(batch.legal(), np.column_stack([~must, np.ones(len(games))]))
            if must.any():
                with pytest.raises(IllegalActionError, match="yield"):
                    batch.play(np.full(len(games), YIELD))
            argued[games, seats] = must | (rng.random(len(games)) < 0.5)
            batch.play(np.where(argued[games, seats], ARGUE, YIELD))
        winners = batch.states["last_seat"]
        assert argued[games, winners].all()
        treated[games, winners] += 1
        opener = (opener + 1) % num_players
    np.testing.assert_array_equal(batch.states["treated"][:, :num_players], treated)
    assert (batch.seats == OVER).all()
    won = batch.states["saved"].sum(axis=1) >= variant.options.to_win
    assert 0 < won.mean() < 1
    assert (batch.rewards == won[:, None]).all()


@covering(("num_players", "reward"), [2, 6], ["win", "saved"])
def test_competitive_games_end_with_a_winner(num_players, reward):
    variant = configure("shakes", num_players=num_players, variation="competitive", reward=reward)
    returns = play_table(variant, [make_agent("dogmatic")] * num_players, 2000, 1)
    if reward == "win":
        assert np.allclose(returns.sum(axis=1), 0, atol=1e-6)
        assert np.allclose(np.sort(returns, axis=1)[:, -1], 1)
        assert abs(returns.mean(axis=0)).max() < 4 * returns.std() / np.sqrt(2000)  # seats are alike
    else:
        assert (returns.max(axis=1) == 3).all()
        assert ((returns == 3).sum(axis=1) == 1).all()


def test_competitive_records_are_observed_within_one():
    """Patients treated have no limit: n are seen as n / (n + 6). Patients saved are a share of the three that win."""
    batch = Batch("shakes", 1, seed=1, variation="competitive", num_players=3)
    batch.states["treated"][0, :3], batch.states["saved"][0, :3] = (6, 2, 0), (1, 2, 0)
    treated, saved = np.split(batch.observe(np.zeros(1, np.int64))[0, :6], 2)
    assert treated == pytest.approx([0.5, 0.25, 0])
    assert saved == pytest.approx([1 / 3, 2 / 3, 0])


@pytest.mark.parametrize(("num_players", "num_patients"), [(2, 4), (3, 7), (6, 20)])
def test_the_longest_competitive_game(num_players, num_patients):
    variant = configure("shakes", num_players=num_players, variation="competitive", num_patients=num_patients)
    batch = Batch(variant, 2000, seed=2)
    index, steps = np.arange(2000), np.zeros(2000, int)
    while len(index):
        batch.play(np.full(len(index), ARGUE), index)
        steps[index] += 1
        index = index[batch.seats[index] != OVER]
    won = batch.states["saved"].max(axis=1) == 3
    longest = num_players * num_patients
    assert variant.facts.max_steps == longest
    assert steps.max() == longest  # the bound is reached, and only by games without a winner or won at the last patient
    assert (steps[~won] == longest).all()
    assert 0 < won.mean() < 1
    assert (batch.rewards[~won] == 0).all()
    assert (batch.rewards[won].max(axis=1) == 1).all()


def test_a_move_cap_truncates_a_competitive_game():
    env = shakes_v0.raw_env(variation="competitive", num_players=3, max_cycles=4)
    env.reset(seed=0)
    for _ in range(4):
        assert not any(env.truncations.values())
        env.step(ARGUE)
    assert all(env.truncations.values())
    assert not any(env.terminations.values())


def test_competitive_efficacy_is_an_option():
    variant = configure("shakes", num_players=2, variation="competitive", efficacy=5)
    batch = Batch(variant, 4000, seed=0)
    batch.play(np.ones(4000, int))
    batch.play(np.ones(4000, int))
    saved = int(batch.states["saved"].sum())
    assert_distributed([saved, 4000 - saved], [5 / 6, 1 / 6])


def test_the_physician_sees_the_tally_of_efficacies_that_reset_can_deal():
    env = gymnasium.make("dice_envs/Shakes-v0", num_players=3)
    observation, info = env.reset(seed=1, options={"efficacies": [1, 4, 1]})
    assert env.unwrapped.games.states["efficacy"][0, :3].tolist() == [1, 4, 1]
    assert observation.tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert info["action_mask"].tolist() == [1, 1, 1]
    saved = np.zeros(3)
    for patient in range(12):
        observation, reward, ended, truncated, _ = env.step(patient % 2)
        saved[patient % 2] += reward
        assert not truncated
        assert ended == (patient == 11)
    assert np.allclose(observation * 12, [6, 6, 0, *saved, 0])


@pytest.mark.parametrize("play", [play_physician, play_maesters])
def test_games_agree_with_the_exact_distribution(play):
    exact = evaluate(Problem.of(configure("shakes", num_players=4).options), argument_chances)
    assert_distributed(play(4, 20_000, 11), exact.distribution)
