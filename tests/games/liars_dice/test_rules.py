"""Liar's Dice: all rules against plain Python; what a seat sees, odds, positions and Perudo's words by hand."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_envs import liars_dice_v0
from dice_envs.agent import Uniform, ask
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, compile_check, configure
from dice_envs.games.liars_dice import chance_at_least, raises
from dice_envs.games.liars_dice.raises import NO_BID, RULES, bids_after, lowest_quantities
from dice_envs.pictures.drawing import layout
from dice_envs.pictures.render import frame_size
from tests.support import liars_dice_tables
from tests.support.subsets import few


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


# --- the rules in plain Python ----------------------------------------------------------------------------------

CALL, EXACT = "call", "exact"


class Oracle:
    """A game by the words of the docstring. A bid is (quantity, face), both from 1."""

    def __init__(self, options, starter):
        self.options = options
        self.start = list(options.dice_per_seat)
        self.dice = list(self.start)
        self.rights = list(self.start)
        self.had = [False] * len(self.dice)
        self.palifico = False
        self.mover, self.bidder, self.bid = starter, None, None
        self.over = False
        self.said = ""  # of the last call, by the picture

    def after(self, seat):
        while True:
            seat = (seat + 1) % len(self.dice)
            if self.dice[seat]:
                return seat

    def legal(self):
        mover_dice = self.dice[self.mover] if self.palifico else None
        found = set(liars_dice_tables.raises(self.options, sum(self.dice), self.bid, mover_dice))
        if self.bid is not None:
            found.add(CALL)
            if self.options.exact_call and not self.palifico and self.rights[self.mover]:
                found.add(EXACT)
        return found

    def play(self, action, hands):
        """Return what each seat earns; `hands` are the faces of each."""
        earned = [0.0] * len(self.dice)
        if action not in (CALL, EXACT):
            self.bidder, self.bid, self.mover = self.mover, action, self.after(self.mover)
            return earned
        quantity, face = self.bid
        wild = {"ones": 1, "highest": self.options.num_faces, None: None}[None if self.palifico else self.options.wild]
        found = sum(shown in (face, wild) for hand in hands for shown in hand)
        caller, others = self.mover, len(self.dice) - 1
        if action == EXACT:
            loser = None if found == quantity else caller
        else:
            loser = caller if found >= quantity else self.bidder
        end = f", so player {loser} loses a die"
        if loser is None:
            end = "" if self.options.rounds == "single" else f", so player {caller} wins a die back"
        exactly, were = "exactly " * (action == EXACT), "was" if found == 1 else "were"
        self.said = f"player {caller} called {exactly}{quantity} x {face}: there {were} {found}{end}"
        self.bid, self.bidder, self.palifico = None, None, False
        by_die = self.options.reward == "dice"
        if self.options.rounds == "single":
            self.over = True
            if loser is None:
                return earned if by_die else [1.0 if seat == caller else -1 / others for seat in range(others + 1)]
            return [-1.0 if seat == loser else 0.0 if by_die else 1 / others for seat in range(others + 1)]
        if loser is None:
            self.rights[caller] -= 1
            if self.dice[caller] < self.start[caller]:
                self.dice[caller] += 1
                earned[caller] = float(by_die)
            return earned
        self.dice[loser] -= 1
        earned[loser] = -1.0 if by_die else 0.0
        first = loser if self.options.next_starter == "loser" else self.after(caller)
        self.mover = first if self.dice[first] else self.after(first)
        if not self.dice[loser] and not by_die:
            earned[loser] = -1 / others
        if np.count_nonzero(self.dice) == 1:
            self.over = True
            if not by_die:
                earned[self.mover] = 1.0
        elif self.options.palifico and self.dice[loser] == 1 and not self.had[loser]:
            self.palifico = self.had[loser] = True
        return earned


def words(variant, action):
    if action >= variant.params.call:
        return CALL if action == variant.params.call else EXACT
    return action // variant.options.num_faces + 1, action % variant.options.num_faces + 1


GAMES = [
    {"rules": "perudo", "num_dice": 2},
    {"rules": "perudo", "num_players": 4, "num_dice": (3, 1, 2, 2), "num_faces": 3, "reward": "dice"},
    {"rules": "perudo", "num_players": 3, "num_dice": 2, "rounds": "single"},
    {"num_dice": 3, "num_faces": 3, "palifico": True, "wild": "highest"},
    {"num_dice": (3, 2), "num_faces": 4, "wild": "ones"},
    {"num_players": 5, "num_dice": 2, "wild": "highest", "reward": "dice"},
    {"rules": "textarena", "num_players": 4, "num_dice": (2, 1, 3, 2)},
    {"rules": "textarena_1", "num_players": 4, "num_dice": (2, 1, 3, 2)},
    {"num_players": 3, "num_dice": 2, "raise_rule": "reset_quantity", "rounds": "single"},
    {"num_players": 3, "num_dice": 2, "exact_call": True, "raise_rule": "either", "starter": "first"},
    {"num_dice": (3, 2), "raise_rule": "perudo", "wild": "ones", "num_faces": 2, "palifico": True},
]


@few(6, "options", GAMES, ids=range(len(GAMES)))
def test_games_follow_the_rules_in_plain_python(options):
    """Random games: what is legal, by mask and one by one, who moves, the dice left, what is earned and seen."""
    variant = configure("liars_dice", **options)
    params, may_play, seats = variant.params, compile_check(variant.game), variant.facts.num_seats
    batch, streams = Batch(variant, 60, seed=3), new_streams(4, 60)
    oracles = [Oracle(variant.options, int(seat)) for seat in batch.seats]
    seen = set()
    for _ in range(400):
        playing = np.flatnonzero(batch.seats != OVER)
        if not len(playing):
            break
        masks = batch.legal()
        actions = ask(Uniform(), variant, batch.states, playing, streams)
        earned = []
        for i, action in zip(playing, actions, strict=True):
            state, oracle = batch.states[i], oracles[i]
            hands = [np.repeat(np.arange(raises.MAX_FACES) + 1, hand) for hand in state["counts"][:seats]]
            expected, marked = oracle.legal(), np.flatnonzero(masks[i]).tolist()
            assert {words(variant, action) for action in marked} == expected
            assert [a for a in range(-2, len(masks[i]) + 2) if may_play(params, state, a, masks[i].copy())] == marked
            may_bid = {words(variant, raises.nth_raise(params, state, k)) for k in range(raises.count_raises(params, state))}
            assert may_bid == expected - {CALL, EXACT}
            lowest = {raises.nth_lowest(params, state, k) for k in range(raises.count_lowest(params, state))}
            by_face = {raises.lowest_raise(params, state, face) for face in range(params.num_faces)} - {raises.NO_BID}
            assert lowest == by_face
            least = {face: (quantity, face) for quantity, face in sorted(may_bid, reverse=True)}
            assert {words(variant, action) for action in lowest} == set(least.values())
            earned.append(oracle.play(words(variant, int(action)), hands))
            seen.add(words(variant, int(action)) if action >= params.call else "bid")
        batch.play(actions, playing)
        for i, each in zip(playing, earned, strict=True):
            state, oracle = batch.states[i], oracles[i]
            assert batch.rewards[i].tolist() == pytest.approx(each)
            assert (state["seat"] == OVER) == oracle.over
            assert oracle.said in str(variant.picture(state))
            if not oracle.over:
                assert state["seat"] == oracle.mover
                assert state["dice"][:seats].tolist() == oracle.dice
                assert state["palifico"] == oracle.palifico
                assert state["exact_left"][:seats].tolist() == oracle.rights
    assert all(oracle.over for oracle in oracles)
    assert seen == {"bid", CALL} | ({EXACT} if variant.options.exact_call else set())


# --- Perudo by hand --------------------------------------------------------------------------------------------------------


def test_the_longest_round_makes_every_bid_and_its_picture_fits():
    variant = configure("liars_dice", raise_rule="perudo", wild="ones", num_dice=3, rounds="single")
    batch, (height, _) = Batch(variant, 1, seed=1), frame_size(variant)
    others = [((q, 0, f), bid(q, f)) for q in range(1, 7) for f in range(2, 7)]
    ones = [((2 * q, 1, q), bid(q, 1)) for q in range(1, 7)]
    for _, action in sorted(others + ones):
        batch.play(np.array([action]))
    assert np.flatnonzero(batch.legal()[0]).tolist() == [variant.params.call]
    assert batch.states["num_bids"][0] + 1 == variant.facts.max_steps
    assert layout(variant.picture(batch.states[0], 1)).height <= height


@pytest.mark.parametrize(
    ("bids", "action", "words"),
    [
        ([], bid(1, 1), "1 x 1 cannot be the first bid: no bid on 1 is legal now"),
        ([], 25, "there is no bid to call yet"),
        ([bid(3, 2)], bid(1, 1), "1 x 1 does not raise 3 x 2: the lowest bid on 1 is now 2 x 1"),
        ([bid(3, 2), bid(2, 1)], bid(4, 6), "4 x 6 does not raise 2 x 1: no bid on 6 is legal now"),
        ([bid(3, 2), bid(2, 1)], bid(2, 1), "2 x 1 does not raise 2 x 1: the lowest bid on 1 is now 3 x 1"),
        ([bid(3, 4)], bid(3, 2), "3 x 2 does not raise 3 x 4: the lowest bid on 2 is now 4 x 2"),
        ([bid(4, 6), 24, bid(1, 2)], bid(1, 3), "1 x 3 does not raise 1 x 2: no bid on 3 is legal now; in a palifico round"),
        ([bid(4, 6), 24, bid(1, 2)], 25, "no exact call is allowed in a palifico round"),
    ],
    ids=range(8),
)
def test_illegal_actions_are_explained(bids, action, words):
    env = table([[2, 2], [3, 4]], rules="perudo")
    for each in bids:
        env.step(each)
    assert action not in legal(env)
    assert env.variant.why_not(env._states[0], action).reason.startswith(words)


def test_observation_of_what_perudo_adds():
    env = table([[2, 2], [3, 4]], rules="perudo", past_rounds=False)
    names = [block.name for block in env.variant.blocks]
    assert names[-4:] == ["palifico", "had_palifico", "exact_left", "exact_chance"]
    env.step(bid(1, 5))
    seen = env.observe("player_0")["observation"]
    assert seen[-6:] == pytest.approx([0, 0, 0, 1, 1, 2 * (1 / 3) * (2 / 3)])
    env.step(bid(4, 6))
    env.step(24)  # player 1 loses a die
    assert env.observe("player_0")["observation"][-6:] == pytest.approx([1, 0, 1, 1, 1, 0])
    assert env.observe("player_1")["observation"][-6:] == pytest.approx([1, 1, 0, 1, 1, 0])


def test_who_has_been_right_as_often_as_it_had_dice_is_told_so():
    env = table([[5], [2, 3]], exact_call=True)
    env.step(bid(1, 2))
    env._states[0]["exact_left"][1], exact = 0, env.variant.params.call + 1
    assert env.variant.why_not(env._states[0], exact).reason.startswith(
        "a player can be right with 2 exact calls in a game, and"
    )


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize(("dice", "faces"), [(2, 2), (3, 3), (4, 6)])
def test_the_longest_round_of_each_rule(rule, dice, faces):
    (after,) = lowest_quantities(rule, [], dice, faces)

    @functools.cache
    def longest(last):
        return max((1 + longest(each) for each in bids_after(after[last + 1], dice).tolist()), default=0)

    assert RULES[rule].longest(dice, faces) == longest(NO_BID)


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


@given(n=st.integers(0, 30), need=st.integers(-2, 32), faces=st.integers(2, 8), wild=st.booleans())
def test_chance_at_least_is_the_binomial_tail(n, need, faces, wild):
    from scipy.stats import binom

    params = configure("liars_dice", num_faces=faces, wild="ones" if wild else None).params
    p = (2 if wild else 1) / faces
    ours = chance_at_least(params, params.wild, need + 3, 3, n, 1)  # 3 of its own
    assert ours == pytest.approx(binom.sf(need - 1, n, p), abs=1e-9)


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
