"""Best responses to sorted play of score dice and the measure, compared with exhaustive search, assignment and play."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from dice_envs import Batch, configure, measure
from dice_envs.agent.specs import make_agent
from dice_envs.exact import asked
from dice_envs.experiments.arena import play_table, tournament
from dice_envs.games.score_dice import Options
from dice_envs.games.score_dice.exact.solvers import ResponseToHighest, count_situations, deals, hands
from tests.support.awkward import lowest
from tests.support.policies import uneven
from tests.support.subsets import few

SMALL = [
    Options(pool_a=(4, 4), pool_b=(4, 4)),
    Options(pool_a=(3, 3, 3), pool_b=(3, 3, 3), ties="a"),
    Options(pool_a=(3, 3, 3), pool_b=(4, 3, 2), reward="score"),
    Options(pool_a=(4, 3, 2), pool_b=(3, 2, 2), ties="a"),
]
MEASURED = {
    "2d4": {"pool_a": (4, 4), "pool_b": (4, 4)},
    "three kinds": {"pool_a": (4, 3, 3), "pool_b": (4, 3, 2), "ties": "a"},
    "score": {"pool_a": (4, 3, 2), "pool_b": (3, 3, 3), "reward": "score"},
    "spare": {"pool_a": (4, 3), "pool_b": (4, 3, 2), "ties": "a"},
    "open": {"pool_a": (3, 3, 2), "pool_b": (3, 3, 2), "open_hands": True},
    "reroll": {"pool_a": (4, 3), "pool_b": (4, 3, 2), "ties": "reroll", "sample": 300},
    "sample": {"pool_a": (4, 4, 4), "pool_b": (4, 4, 3), "sample": 300},
}


def by_name(agent, **options):
    return {each.name: each for each in measure("score_dice", agent, **options).measures}


@few(1, "name", ["2d4", "three kinds", "score", "spare", "open"])
def test_exploitability_agrees_with_what_is_known(name):
    options = MEASURED[name]
    assert by_name("random", **options)["exploitability"].value == pytest.approx(0, abs=1e-12)
    # The best response to sorted play is computed by an entirely different method.
    responses = [ResponseToHighest(configure("score_dice", **options).options, seat).game_value() for seat in range(2)]
    sorted_play = by_name("highest", **options)
    assert sorted_play["exploitability"].value == pytest.approx(sum(responses) / 2, abs=1e-12)
    assert sorted_play["reward against highest"].value == pytest.approx(0, abs=1e-12)
    assert sorted_play["reward against highest"].optimum == pytest.approx(sum(responses) / 2, abs=1e-12)
    assert {each.error for each in sorted_play.values()} == {0}


@few(2, "name", MEASURED)
def test_reward_against_sorted_play_comes_out_in_play(name):
    found = by_name(uneven, **MEASURED[name])["reward against highest"]

    options = {key: value for key, value in MEASURED[name].items() if key != "sample"}
    games = 4_000
    variant = configure("score_dice", **options)
    earned = play_table(variant, [asked(uneven, variant), make_agent("highest")], games, 8)[:, 0]
    both = earned.reshape(-1, 2).mean(axis=1)  # in every second game it sits at seat 0
    assert found.value == pytest.approx(both.mean(), abs=5 * both.std() / np.sqrt(len(both)) + 2.6 * found.error)


def test_a_sample_agrees_with_the_whole():
    options = {"pool_a": (4, 4, 4), "pool_b": (4, 4, 3), "ties": "a"}
    for agent in (uneven, lambda observations, masks: lowest(observations[:, : masks.shape[1]])):
        (sampled,) = measure("score_dice", agent, **options, sample=1_000).measures
        whole = by_name(agent, **options)["reward against highest"]
        assert (whole.error, whole.note) == (0, "all 2,176 information sets of each seat")
        assert 0 < sampled.error < 0.05
        assert sampled.value == pytest.approx(whole.value, abs=2.6 * sampled.error)
        assert sampled.note.startswith("a random sample of 1,000 games from each seat")
        assert sampled.note.endswith("exploitability is not measured, since a smaller sample is asked for")


def test_the_span_is_what_all_choices_of_a_game_may_cost():
    """Two choices a game, each of which may turn a score of 3 into -3."""
    assert measure("score_dice", "random", **MEASURED["score"]).measures[0].span == 12


def test_tied_dice_that_are_rolled_again_have_a_sample_and_an_exact_optimum():
    options = MEASURED["reroll"]
    (found,) = measure("score_dice", "score_response", **options).measures
    responses = [ResponseToHighest(Options(pool_a=(4, 3), pool_b=(4, 3, 2), ties="reroll"), s).game_value() for s in range(2)]
    assert found.optimum == pytest.approx(sum(responses) / 2)
    assert "exploitability is not measured, since tied dice are rolled again" in found.note


@pytest.mark.parametrize(("own", "other"), [(2, 3), (3, 2), (4, 4), (6, 4)])
def test_one_die_each_is_rolled_again_until_one_wins(own, other):
    faces = list(itertools.product(range(1, own + 1), range(1, other + 1)))
    wins, losses = sum(mine > theirs for mine, theirs in faces), sum(mine < theirs for mine, theirs in faces)
    response = ResponseToHighest(Options(pool_a=(own,), pool_b=(other,), ties="reroll"), 0)
    assert response.game_value() == pytest.approx((wins - losses) / (wins + losses), abs=1e-9)


def test_a_best_response_earns_what_is_computed_though_tied_dice_are_rolled_again():
    options = {"pool_a": (3, 2), "pool_b": (2, 2), "ties": "reroll"}
    values = [ResponseToHighest(Options(**options), seat).game_value() for seat in range(2)]
    result = tournament(configure("score_dice", **options), ["score_response", "highest"], 10_000, 1)
    assert result.matrix("mean_return")[0][1] == pytest.approx(sum(values) / 2, abs=4 / 100)


def test_dice_that_have_tied_are_worth_the_roll_that_follows():
    """A's last die shows 1 and B's 1 or 2, equally likely: it ties too, and all dice are rolled again, or it loses."""
    batch = Batch("score_dice", 1, seed=1, pool_a=(3, 2), pool_b=(2, 2), ties="reroll", reward="score")
    batch.variant.arrange(batch.states[0], {"dice": [[2, 1], [2, 1]]})
    for _ in range(2):
        batch.play([0])
    response = ResponseToHighest(batch.variant.options, 0)
    (values,) = response.action_values(batch.variant, batch.states)
    first, both = response.roll_value((3,), (2,)), response.roll_value((3, 2), (2, 2))
    assert values == pytest.approx([np.nan, (first - 1 + both) / 2], abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    "options",
    [*SMALL, Options(pool_a=(6, 4, 4), pool_b=(6, 5, 4, 3, 3)), Options(pool_a=(4, 4, 4), pool_b=(4, 4, 4), open_hands=True)],
    ids=str,
)
def test_the_bound_on_situations_holds(options):
    for seat in range(2):
        response = ResponseToHighest(options, seat)
        response.game_value()
        assert len(response._values) <= count_situations(options, seat)


def test_situations_are_counted_by_the_hands_that_there_are():
    """A d4 and a d6 each, hands open: 24 hands of both dice and 10 of one, against the same number of other hands."""
    options = configure("score_dice", pool_a=(4, 6), pool_b=(4, 6), open_hands=True, reward="score").options
    assert count_situations(options, 0) == count_situations(options, 1) == 24 + 24 * 24 + 10 * 10


def test_deals_and_hands_are_distributions():
    for pool, keep in (((4, 4, 3), 2), ((6, 4, 4, 2), 1), ((4, 3), 2)):
        assert sum(chance for _, chance in deals(pool, keep)) == pytest.approx(1)
        kept = defaultdict(float)
        for dice, chance in deals(pool, keep):
            for hand, share in hands(dice).items():
                kept[tuple((die.face, die.size) for die in hand)] += chance * share
        expected = defaultdict(float)
        for faces in itertools.product(*(range(1, size + 1) for size in pool)):
            hand = sorted(zip(faces, pool, strict=True), reverse=True)[:keep]
            expected[tuple(hand)] += 1 / math.prod(pool)
        assert dict(kept) == pytest.approx(dict(expected))
