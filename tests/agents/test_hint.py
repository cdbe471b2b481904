"""The player of hints: its beliefs and its race by brute force, its games, and its words."""

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.agent import Turn
from dice_envs.agent.matches import pieces_of, play_pieces
from dice_envs.agent.specs import make_agent
from dice_envs.agents import hint
from dice_envs.agents.liars_dice import Reader, likely
from dice_envs.core.batch import Batch
from dice_envs.core.dice import STREAM, new_streams
from dice_envs.core.view import how_often, in_letters
from dice_envs.table.advice import give_hint, review
from dice_envs.table.sitting import PERSON, Sitting

SMALL = configure("liars_dice", rules="perudo", num_players=3, num_dice=2, num_faces=4)
HANDS = list(itertools.combinations_with_replacement(range(4), 2))


def bids(*actions, variant=SMALL, seed=4):
    sitting = Sitting(variant, seed, [PERSON] * variant.facts.num_seats)
    for action in actions:
        sitting.play(action)
    return sitting.state


def chance_of(state, seat, hand):
    """The weight of a hand by each model, from probabilities that the players state."""
    weights = (1 if hand[0] == hand[1] else 2) * likely._PRIOR
    for k in range(state["num_bids"]):
        before = np.array([state])
        before["num_bids"], before["bid"] = k, state["bids"][k - 1] if k else -1
        before["seat"] = mover = (state["starter"] + k) % 3
        if mover != seat:
            continue
        before["counts"][0, seat] = np.bincount(hand, minlength=8)
        turn = Turn(SMALL, before, np.zeros(1, np.int64), np.zeros(1, STREAM))
        legal = np.flatnonzero(turn.legal[0])
        raises = int((legal < SMALL.params.call).sum())
        slip = (0.5 if SMALL.params.call in legal else 1.0) / raises  # of a raise, at random
        stated = np.array([player.probabilities(turn)[0] for player in (*likely._BY_NUMBERS, Reader())])
        action = state["bids"][k]
        weights = weights * (stated[:, action] * (1 - likely._SLIPS) + slip * likely._SLIPS)
    return weights


def test_hands_are_weighed_by_what_was_bid_as_by_brute_force():
    state = bids(5, 6, 9, 10)  # 2 × 2, 2 × 3, 3 × 2, 3 × 3
    for seat in set(range(3)) - {int(state["seat"])}:
        hands, sums = np.zeros((10, 8), np.int8), np.zeros(10 * likely.MODELS)
        likely._weigh_hands(SMALL.params, Reader().reading(SMALL), state, seat, hands, sums)
        found = np.diff(sums, prepend=0.0).reshape(10, likely.MODELS)
        faces = [tuple(np.repeat(np.arange(8), hand)) for hand in hands]
        assert sorted(faces) == HANDS
        wanted = np.array([chance_of(state, seat, hand) for hand in faces])
        assert found / found.sum() == pytest.approx(wanted / wanted.sum())


def test_dealt_hands_are_those_weights_and_leave_the_own_dice():
    state = bids(5, 6)
    games = 20_000
    drawn, models = np.empty(games, SMALL.game.state), np.empty((games, 6), np.int64)
    likely.deal_likely(SMALL.params, Reader().reading(SMALL), state, new_streams(1, games), drawn, models)
    me = int(state["seat"])
    assert (drawn["counts"][:, me] == state["counts"][me]).all()
    seat = (me + 1) % 3
    weights = np.array([chance_of(state, seat, hand) for hand in HANDS]).sum(axis=1)
    held = np.array([(drawn["counts"][:, seat] == np.bincount(hand, minlength=8)).all(axis=1).mean() for hand in HANDS])
    assert held == pytest.approx(weights / weights.sum(), abs=4.5 * 0.5 / games**0.5)


@cache
def wins(seat, dice):
    left = [k for k, each in enumerate(dice) if each]
    if len(left) == 1:
        return Fraction(int(left[0] == seat))
    return sum(wins(seat, tuple(each - (j == k) for j, each in enumerate(dice))) for k in left) / len(left)


@pytest.mark.parametrize("dice", [(6, 6), (5, 4), (1, 6), (0, 3, 2), (5, 5, 5), (1, 2, 3, 4), (6, 1, 1, 2, 5, 3)])
def test_the_race_is_that_of_equal_chances(dice):
    for seat in range(len(dice)):
        assert likely.race(np.array(dice), seat, len(dice)) == pytest.approx(float(wins(seat, dice)), abs=1e-6)


@pytest.mark.parametrize(("seats", "others"), [(2, ["reader"]), (3, ["numbers", "reader"])])
def test_it_wins_more_than_its_share(seats, others):
    variant = configure("liars_dice", rules="perudo", num_players=seats)
    agents = [make_agent("hint:games=40"), *map(make_agent, others)]
    won = play_pieces(variant, agents, 1, pieces_of(60, seats, np.random.SeedSequence(1), 60))[:, 0, 0] > 0
    assert won.mean() > 1.5 / seats  # more than five standard errors above even shares


def test_chances_are_how_often_a_claim_is_true():
    state = bids(5, 6)
    games = likely.LikelyGames(SMALL, state)
    chances = games.chances(new_streams(1, 4_000))
    legal = SMALL.legal_actions(state)
    assert np.flatnonzero(~np.isnan(chances)).tolist() == sorted(legal)
    call = SMALL.params.call
    assert chances[call + 1] <= 1 - chances[call], "a bid that is exactly right holds"
    assert (np.diff(chances[[10, 14, 18]]) <= 0).all(), "more threes are less likely"


@pytest.mark.parametrize(
    ("chance", "words"),
    [
        (0.02, "hardly ever holds"),
        (0.24, "holds one time in four"),
        (0.66, "holds two times in three"),
        (0.97, "almost always holds"),
    ],
)
def test_chances_in_words(chance, words):
    assert how_often("holds", chance) == words


def test_a_hint_begins_with_a_sentence():
    variant = configure("liars_dice", rules="perudo")
    state = bids(7 * 6 + 3, variant=variant)  # 8 × 4
    own = int(state["counts"][state["seat"], [0, 3]].sum())
    advice = give_hint(variant, state, 1)
    assert advice.rows[0].words == "call"
    assert f"needs {in_letters(8 - own)} more fours or ones, and " in advice.sentence
    assert advice.sentence.startswith("Call: player ")
    assert "hardly ever has them" in advice.sentence or "time" in advice.sentence


def test_who_calls_every_bid_sees_the_cost(monkeypatch):
    monkeypatch.setattr("dice_envs.table.advice.MOST_REVIEWED", 1_000_000)
    variant = configure("liars_dice", rules="perudo", num_players=4)
    sitting = Sitting(variant, 1, [PERSON, *["numbers:bluff=0.25"] * 3])
    while not sitting.over:
        legal = sitting.legal()
        if sitting.mover == 0:
            sitting.play(variant.params.call if variant.params.call in legal else legal[0])
        else:
            sitting.step()
    found = review(sitting, agents=True)
    calls = [move for move in found.moves if move.seat == 0 and move.words == "call"]
    assert sum(move.mark == "blunder" for move in calls) >= 2
    assert found.worst[0].cost > 0.05
    assert all(0 <= total <= 1 for total in found.totals.values()), "at most the whole game"
    assert all(text == "gave nothing away" or text.endswith("% of the chances to win") for text in found.texts.values())


def test_where_the_opponent_leaves_optimal_play_no_shares_are_shown(monkeypatch):
    monkeypatch.setattr("dice_envs.agents.hint.MOST_MOVES", 200_000)
    variant, off = configure("liars_dice", num_dice=2), 0
    batch = Batch(variant, 8, seed=1)
    for state in batch.states:
        played = np.array([state])
        variant.kernels.checked_play(played, np.zeros(1, np.int64), np.array([3 * 6 + 3]))  # 4 × 4 of four dice
        found = give_hint(variant, played[0], 1)
        off += found.rows[0].share is None
        outlined = [row for row in found.rows if (row.share or 0) >= hint.LEAST_SHARE]
        assert all(found.rows[0].value - row.value <= 0.02 for row in outlined)
    assert off == 8
    on = hint.values_of(variant, batch.states[0], 1)
    assert on.mix is not None
    assert on.errors is None


def test_it_answers_alike_where_it_observes_the_same(monkeypatch):
    """Its observation seeds what it tries, not what the others hold, nor its random stream."""

    def guess(variant, state, seed):
        return hint.ActionValues(np.random.default_rng(seed).random(variant.facts.num_actions), "reward", "a guess")

    monkeypatch.setattr(hint, "values_of", guess)
    variant, games = configure("liars_dice", num_dice=1), np.arange(12)
    states = np.concatenate([Batch(variant, 6, seed=1).states] * 2)
    for state in states[6:]:
        other = 1 - state["seat"]
        state["counts"][other, :6] = np.roll(state["counts"][other, :6], 1)
    chosen = [hint.Hint().act(Turn(variant, states, games, new_streams(seed, 12))).reshape(2, 6) for seed in range(3)]
    assert (np.array(chosen) == chosen[0][0]).all()
    assert len(set(chosen[0][0])) > 1
