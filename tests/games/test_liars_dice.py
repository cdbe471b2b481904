"""Liar's Dice by its rules: every option, checked by hand from the text of the rules."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_envs import liars_dice_v0
from dice_envs.core.batch import Batch
from dice_envs.core.game import OVER, configure
from dice_envs.games.liars_dice import chance_at_least
from dice_envs.games.liars_dice.raises import NO_BID, RULES, bids_after, lowest_quantities


def bid(quantity, face, faces=6):
    return (quantity - 1) * faces + face - 1


def table(dice, **options):
    """A raw_env whose first round has these dice. Seat 0 begins unless the options say otherwise."""
    options.setdefault("num_dice", tuple(len(hand) for hand in dice))
    env = liars_dice_v0.raw_env(num_players=len(dice), starter="first", **options)
    env.reset(seed=1, options={"dice": dice})
    return env


def legal(env):
    return set(np.flatnonzero(env.observe(env.agent_selection)["action_mask"]).tolist())


def call_of(env):
    return env.action_space("player_0").n - 1


# --- who may bid what -------------------------------------------------------------------------------------------


def test_opening_may_be_any_bid_but_no_call():
    env = table([[1, 2], [3, 4]])
    assert legal(env) == set(range(4 * 6))


def test_quantity_rule_wants_more_dice_and_no_lower_face():
    env = table([[1, 2], [3, 4]])
    env.step(bid(2, 4))
    assert legal(env) == {bid(q, f) for q in (3, 4) for f in (4, 5, 6)} | {call_of(env)}


def test_quantity_rule_lets_face_1_follow_the_highest_face():
    env = table([[1, 2], [3, 4]])
    env.step(bid(2, 6))
    assert legal(env) == {bid(q, f) for q in (3, 4) for f in (1, 6)} | {call_of(env)}
    env.step(bid(3, 1))
    assert legal(env) == {bid(4, f) for f in range(1, 7)} | {call_of(env)}


def test_either_rule_wants_more_dice_or_a_higher_face():
    env = table([[1, 2], [3, 4]], raise_rule="either")
    env.step(bid(2, 4))
    higher = {bid(2, 5), bid(2, 6)} | {bid(q, f) for q in (3, 4) for f in range(1, 7)}
    assert legal(env) == higher | {call_of(env)}


def test_nondecreasing_rule_lowers_neither_quantity_nor_face():
    env = table([[1, 2], [3, 4]], raise_rule="nondecreasing")
    assert legal(env) == set(range(4 * 6))
    env.step(bid(2, 4))
    assert legal(env) == {bid(2, 5), bid(2, 6)} | {bid(q, f) for q in (3, 4) for f in (4, 5, 6)} | {call_of(env)}


def test_reset_quantity_rule_wants_more_dice_or_a_higher_face_with_any_quantity():
    env = table([[1, 2], [3, 4]], raise_rule="reset_quantity")
    assert legal(env) == set(range(4 * 6))
    env.step(bid(2, 4))
    assert legal(env) == {bid(3, 4), bid(4, 4)} | {bid(q, f) for q in range(1, 5) for f in (5, 6)} | {call_of(env)}


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize(("dice", "faces"), [(2, 2), (3, 3), (4, 6)])
def test_the_longest_round_of_each_rule(rule, dice, faces):
    (after,) = lowest_quantities(rule, False, dice, faces)

    @functools.cache
    def longest(last):
        return max((1 + longest(each) for each in bids_after(after[last + 1], dice).tolist()), default=0)

    assert RULES[rule].longest(dice, faces) == longest(NO_BID)


@pytest.mark.parametrize("rule", ["quantity", "either"])
def test_when_nothing_can_be_raised_only_the_call_is_legal(rule):
    env = table([[1], [6]], raise_rule=rule)
    env.step(bid(2, 6))
    assert legal(env) == {call_of(env)}


def test_no_bid_exceeds_the_dice_still_in_play():
    env = table([[1, 1], [2, 2]])
    env.step(bid(4, 6))
    env.step(call_of(env))  # the bid fails: player 0 loses a die and begins
    assert env.agent_selection == "player_0"
    assert max(legal(env)) == bid(3, 6)


# --- who loses a die --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("quantity", "loser"), [(1, 1), (2, 1), (3, 1), (4, 0)])
def test_the_caller_loses_a_true_bid_and_the_bidder_a_false_one(quantity, loser):
    env = table([[5, 5, 1], [5, 2, 2]])
    env.step(bid(quantity, 5))
    env.step(call_of(env))
    dice = env._states["dice"][0, :2].tolist()
    assert dice == [3 - (loser == 0), 3 - (loser == 1)]
    assert env.agent_selection == f"player_{loser}", "the loser begins the next round"


@pytest.mark.parametrize(
    ("wild", "face", "total"),
    [(None, 1, 2), (None, 3, 1), (None, 6, 1), ("ones", 3, 3), ("ones", 1, 2), ("highest", 3, 2), ("highest", 6, 1)],
)
def test_wild_dice_count_for_every_face_but_alone_for_their_own(wild, face, total):
    # On the table: 1 1 3 | 2 6 4.
    for quantity in range(1, 7):
        env = table([[1, 1, 3], [2, 6, 4]], wild=wild)
        env.step(bid(quantity, face))
        env.step(call_of(env))
        assert (env._states["loser"][0] == 1) == (total >= quantity)


def test_highest_wild_is_the_highest_face_of_other_dice_too():
    env = table([[4, 1], [2, 2]], wild="highest", num_faces=4)
    env.step(bid(3, 2, faces=4))
    env.step(call_of(env))
    assert env._states["loser"][0] == 1


# --- the whole game ---------------------------------------------------------------------------------------------


def test_when_the_loser_is_out_the_next_seat_with_dice_begins():
    env = table([[1], [2, 2], [3, 3]])
    env.step(bid(1, 2))
    env.step(bid(2, 2))
    env.step(bid(3, 2))
    env.step(call_of(env))  # player 0 calls player 2's false bid
    assert env._states["loser"][0] == 2
    env = table([[1], [2, 2], [3, 3]])
    env.step(bid(5, 6))
    env.step(call_of(env))
    assert env.terminations == {"player_0": True, "player_1": False, "player_2": False}
    assert env.agent_selection == "player_0", "PettingZoo: the agent that has ended steps first"
    assert env.rewards == {"player_0": -0.5, "player_1": 0.0, "player_2": 0.0}
    env.step(None)
    assert env.agents == ["player_1", "player_2"]
    assert env.agent_selection == "player_1"
    assert env.last()[1] == 0


@pytest.mark.parametrize(("bids", "loser", "starter"), [(1, 0, 2), (2, 1, 0), (3, 2, 1)])
def test_the_player_after_the_caller_may_begin_the_next_round(bids, loser, starter):
    """All bids are false, so the last bidder loses; the first one its only die, and then it is passed over."""
    env = table([[1], [2, 2], [3, 3]], next_starter="after_caller")
    for quantity in range(1, bids + 1):
        env.step(bid(quantity, 6))
    env.step(call_of(env))
    assert (env._states["loser"][0], env._states["starter"][0]) == (loser, starter)


def test_a_caller_who_is_out_is_followed_by_the_next_player():
    env = table([[1, 1], [2], [3, 3]], next_starter="after_caller")
    env.step(bid(1, 1))
    env.step(call_of(env))  # player 1 calls a true bid and is out
    assert (env._states["loser"][0], env._states["starter"][0]) == (1, 2)


def test_elimination_pays_the_winner_one_and_shares_the_loss():
    env = table([[1], [2], [3]])
    env.step(bid(3, 6))
    env.step(call_of(env))
    env.step(None)
    env.step(bid(2, 6))  # player 1, with players 1 and 2 left, both with one die: 2 sixes
    held = env._states["counts"][0, 1:3, 5].sum()
    env.step(call_of(env))
    winner = 1 if held == 2 else 2
    assert env.rewards == {f"player_{p}": 1.0 if p == winner else -0.5 for p in (1, 2)}
    assert all(env.terminations.values())


@given(seed=st.integers(0, 10**6), players=st.integers(2, 6))
def test_returns_of_a_whole_game(seed, players):
    batch = Batch("liars_dice", 1, seed=seed, num_players=players, num_dice=2)
    rng = np.random.default_rng(seed)
    returns = np.zeros(players)
    while batch.seats[0] != OVER:
        batch.play(np.array([rng.choice(np.flatnonzero(batch.legal()[0]))]))
        returns += batch.rewards[0]
    assert sorted(returns.round(5)) == sorted([1.0] + [round(-1 / (players - 1), 5)] * (players - 1))
    assert (batch.states["dice"][0] > 0).sum() == 1, "one player has dice left"
    assert returns.argmax() == batch.states["dice"][0].argmax()


def test_single_round_pays_the_loser_of_the_call():
    env = table([[1], [2], [3]], rounds="single")
    env.step(bid(1, 1))
    env.step(bid(2, 1))
    env.step(call_of(env))  # player 2 calls player 1's false bid
    assert env.rewards == {"player_0": 0.5, "player_1": -1.0, "player_2": 0.5}
    assert all(env.terminations.values())


def test_dice_reward_pays_each_lost_die_when_it_is_lost():
    env = table([[1, 1], [2, 2]], reward="dice")
    env.step(bid(1, 1))
    assert env.rewards == {"player_0": 0.0, "player_1": 0.0}
    env.step(call_of(env))
    assert env.rewards == {"player_0": 0.0, "player_1": -1.0}
    assert not any(env.terminations.values())


def test_random_starter_is_each_seat_equally_often():
    seats = Batch("liars_dice", 6000, seed=3, num_players=3).seats
    counts = np.bincount(seats, minlength=3)
    assert ((counts - 2000) ** 2 / 2000).sum() < 20  # chi-square with 2 degrees of freedom; 20 has probability 5e-5
    assert set(Batch("liars_dice", 50, seed=3, starter="first").seats) == {0}


def test_dice_are_fair():
    counts = Batch("liars_dice", 100_000, seed=5, num_dice=5).states["counts"][:, :2, :6].sum(axis=(0, 1))
    expected = counts.sum() / 6
    assert ((counts - expected) ** 2 / expected).sum() < 30  # 5 degrees of freedom; 30 has probability 1.5e-5


def test_no_game_outlasts_the_bound_even_when_all_bid_as_little_as_they_can():
    for options in ({"num_dice": 2}, {"num_dice": (1, 3), "raise_rule": "either", "num_faces": 3}, {"rounds": "single"}):
        variant = configure("liars_dice", **options)
        longest = 0
        for seed in range(40):
            batch = Batch(variant, 1, seed=seed)
            steps = 0
            while batch.seats[0] != OVER:
                batch.play(batch.legal().argmax(axis=1))  # the lowest bid; the call is the last action
                steps += 1
            longest = max(longest, steps)
        assert longest <= variant.facts.max_steps
    assert longest == variant.facts.max_steps, "a single round of least bids is as long as a round can be"


# --- what a seat sees -------------------------------------------------------------------------------------------


def test_observation_by_the_table_of_the_docstring():
    env = table([[6, 6, 1], [2, 3, 3]], num_dice=3)
    env.step(bid(2, 6))
    bids = 36
    seen = env.observe("player_1")["observation"]
    assert seen[:6] == pytest.approx([0, 1 / 3, 2 / 3, 0, 0, 0])
    assert seen[6:8] == pytest.approx([1, 1])
    made = seen[8 : 8 + 2 * bids].reshape(2, bids)
    assert not made[0].any(), "seat 0 of an observation is the observer"
    assert np.flatnonzero(made[1]).tolist() == [bid(2, 6)]
    rest = seen[8 + 2 * bids :]
    assert rest[:2] == pytest.approx([1, 0]), "the observer is to move"
    assert rest[2:8] == pytest.approx([0, 0, 0, 0, 0, 1])
    assert rest[8] == pytest.approx(2 / 6)
    assert rest[9] == pytest.approx(1 - (5 / 6) ** 3 - 3 * (1 / 6) * (5 / 6) ** 2)
    assert rest[10:] == pytest.approx([1 / 2, 0, 1 / 2, 0])


def test_shown_bids_are_remembered_as_honest_or_not():
    env = table([[6, 6, 1], [2, 3, 3]], num_dice=3)
    env.step(bid(1, 1))  # player 0 holds more sixes than ones
    env.step(bid(2, 3))  # player 1 holds threes most
    env.step(call_of(env))
    assert env._states["bids_shown"][0, :2].tolist() == [1, 1]
    assert env._states["bids_honest"][0, :2].tolist() == [0, 1]


def test_past_rounds_can_be_left_out_of_what_is_seen():
    seen = {}
    for past_rounds in (True, False):
        env = table([[6, 6, 1], [2, 3, 3]], num_dice=3, past_rounds=past_rounds)
        for action in (bid(1, 1), bid(2, 3), call_of(env)):
            env.step(action)
        seen[past_rounds] = env.observe(env.agent_selection)["observation"]
    assert len(seen[True]) == len(seen[False]) + 4
    assert seen[True][:-4].tolist() == seen[False].tolist(), "all that is seen of the present round stays"
    with pytest.raises(ValueError, match="past_rounds must be true or false, not 1"):
        configure("liars_dice", past_rounds=1)


@given(
    n=st.integers(0, 30),
    need=st.integers(-2, 32),
    faces=st.integers(2, 8),
    wild=st.booleans(),
)
def test_chance_at_least_is_the_binomial_tail(n, need, faces, wild):
    from scipy.stats import binom

    params = configure("liars_dice", num_faces=faces, wild="ones" if wild else None).params
    p = (2 if wild else 1) / faces
    ours = chance_at_least(params, params.wild, need + 3, 3, n, 1)  # 3 of its own
    assert ours == pytest.approx(binom.sf(need - 1, n, p), abs=1e-9)


# --- options and positions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_players": 7}, "num_players must be a whole number from 2 to 6, not 7"),
        ({"num_dice": 0}, "num_dice must be a whole number from 1 to 6, not 0"),
        ({"num_dice": 7}, "num_dice"),
        ({"num_dice": (5, 5, 5)}, "num_dice must be one number or 2"),
        ({"num_faces": 1}, "num_faces"),
        ({"num_faces": 9}, "num_faces"),
        (
            {"raise_rule": "any"},
            "raise_rule must be one of 'quantity', 'either', 'perudo', 'nondecreasing', 'reset_quantity', not",
        ),
        ({"wild": "sixes"}, "wild"),
        ({"next_starter": "caller"}, "next_starter must be one of 'loser', 'after_caller', not 'caller'"),
        ({"rules": "perudo", "next_starter": "after_caller"}, "next_starter must be 'loser' with palifico=True, not 'after"),
        ({"rules": "textarena", "raise_rule": "either"}, "raise_rule must be 'nondecreasing' with rules=\"textarena\""),
        ({"rounds": "double"}, "rounds"),
        ({"starter": 1}, "starter"),
        ({"reward": None}, "reward"),
        ({"rules": "dudo"}, "rules"),
        ({"rules": "openspiel", "wild": "ones"}, "wild must be 'highest' with rules="),
        ({"num_dices": 5}, "no option 'num_dices'; its options are: num_players"),
        ({"num_players": True}, "num_players"),
        ({"num_players": 2.0}, "num_players"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(ValueError, match="num|rule|wild|rounds|starter|reward") as caught:
        configure("liars_dice", **options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "dice",
    [[[1, 2]], [[1, 2], [3]], [[1, 2], [3, 7]], [[1, 2], [3, 0]], "12", 5, [[1, 2], "34"], [[1, 2], [3, 4.5]]],
)
def test_wrong_positions_change_nothing(dice):
    env = liars_dice_v0.raw_env(num_dice=2)
    env.reset(seed=1)
    before = env._states.copy()
    with pytest.raises(ValueError, match="dice"):
        env.reset(options={"dice": dice})
    assert all((env._states[field] == before[field]).all() for field in before.dtype.names)


def test_positions_are_dealt_in_every_interface():
    import gymnasium

    import dice_envs.envs.sb3

    dice = [[1, 1], [6, 6]]
    env = liars_dice_v0.env(num_dice=2)
    env.reset(options={"dice": dice})
    assert env.unwrapped._states["counts"][0, 0, 0] == 2
    seat = gymnasium.make("dice_envs/LiarsDice-v0", num_dice=2, seat=1, starter="first", rounds="single")
    observation, _ = seat.reset(options={"dice": dice})
    assert observation[5] == 1
    vector = gymnasium.make_vec("dice_envs/LiarsDice-v0", num_envs=3, num_dice=2, seat=1)
    observations, _ = vector.reset(options={"dice": dice})
    assert (observations[:, 5] == 1).all()
    venv = dice_envs.envs.sb3.make_vec_env("liars_dice", 2, num_dice=2, seat=1)
    venv.set_options({"dice": dice})
    assert (venv.reset()[:, 5] == 1).all()
