"""The measure of FateStones, compared with other recursions and known values."""

import itertools

import numpy as np
import pytest

from dice_envs import Mixture, configure, measure
from dice_envs.agent.specs import make_agent
from dice_envs.games.fatestones import CODES
from dice_envs.games.fatestones.exact import edge_ratio, evaluate
from dice_envs.games.fatestones.exact.draws import circles, draw_hands, margins, solve_all

EASY = (111666, 222555, 333444, 123456, 114466, 133356, 233346, 122556)
SMALL = {"dice": EASY, "hand_size": 2}  # 1,680 draws, all of them measured


def by_name(spec, **options):
    return {each.name: each for each in measure("fatestones", spec, **options).measures}


def test_every_order_of_a_hand_counts():
    """Over all orders of a hand, always taking the first die is as good as random play."""
    found = by_name(lambda observations, masks: masks * (np.arange(masks.shape[1]) == 0), **SMALL)
    assert found["edge share"].value == pytest.approx(0, abs=1e-12)
    assert found["margin against random"].value == pytest.approx(0, abs=1e-12)
    assert found["exploitability"].gap > by_name("random", **SMALL)["exploitability"].gap  # but it is predictable


def test_the_best_response_to_random_play_reaches_all_that_there_is():
    response = by_name("best_response:random", **SMALL)
    assert response["margin against random"].gap == pytest.approx(0, abs=1e-12)
    assert response["edge share"].value > 0.99  # it plans for good play after a tie too


def test_dice_that_only_tie_leave_nothing_to_be_measured():
    found = measure("fatestones", "random", dice=(333333,) * 6)
    assert found.score is None
    assert all(each.gap == 0 for each in found.measures)


def test_a_profile_has_what_each_seat_could_gain():
    """Compared with the measures of its agents, which have other recursions for play against random."""
    alone = {spec: by_name(spec, **SMALL) for spec in ("strongest", "random", "nash")}
    for spec, found in alone.items():
        exploitability, nash_conv, first, second = measure("fatestones", [spec, spec], **SMALL).measures
        assert exploitability.value == pytest.approx(found["exploitability"].value, abs=1e-12)
        assert nash_conv.value == pytest.approx(first.value + second.value, abs=1e-12)
    exploitability, nash_conv, first, second = measure("fatestones", ["strongest", "random"], **SMALL).measures
    won = alone["strongest"]["margin against random"].value
    best = {spec: found["exploitability"].value for spec, found in alone.items()}  # all orders: the same in both seats
    assert first.value == pytest.approx(best["random"] - won, abs=1e-12)
    assert second.value == pytest.approx(best["strongest"] + won, abs=1e-12)
    assert {each.error for each in (exploitability, nash_conv, first, second)} == {0}
    assert measure("fatestones", ["strongest", "nash"], sample=200).measures[0].error > 0
    with pytest.raises(ValueError, match="which agent it faces"):
        measure("fatestones", [Mixture(["random", "nash"]), "nash"])
    with pytest.raises(ValueError, match="at least 2 draws"):
        measure("fatestones", ["random", "nash"], sample=1)


# --- which dice are good ----------------------------------------------------------------------------------------------


def by_hand(one, two):
    """Probability to win minus probability to lose, from all 36 rolls."""
    rolls = list(itertools.product(str(one), str(two)))
    return (sum(a > b for a, b in rolls) - sum(a < b for a, b in rolls)) / 36


def test_margins_are_those_of_all_rolls():
    dice = np.array([0, 17, 200, 333, 461])
    expected = [[by_hand(CODES[a], CODES[b]) for b in dice] for a in dice]
    np.testing.assert_allclose(margins(dice), expected, atol=1e-12)


def test_of_all_dice_111111_is_the_worst_and_666666_the_best():
    mean = margins(np.arange(len(CODES))).mean(axis=1)
    order = mean.argsort()
    assert (CODES[order[0]], CODES[order[-1]]) == (111111, 666666)
    assert mean[order[0]] < mean[order[1]] - 1e-9, "alone in its place"
    assert mean[order[-1]] > mean[order[-2]] + 1e-9


def test_circles_are_all_there_once():
    """Compared with a search among all triples."""
    fair = configure("fatestones").params.bag
    found = circles(fair)
    triples = {each.dice for each in found}
    assert len(triples) == len(found) == 577
    wanted = set()
    for a, b, c in itertools.permutations(fair[:12].tolist(), 3):
        if a < b and a < c and min(by_hand(CODES[x], CODES[y]) for x, y in ((a, b), (b, c), (c, a))) > 0:
            wanted.add((a, b, c))
    few = set(fair[:12].tolist())
    assert {each for each in triples if set(each) <= few} == wanted
    assert [CODES[die] for die in found[0].dice] == [144444, 333336, 222555]
    assert found[0].least == pytest.approx(6 / 36)
    assert found[0].least > found[1].least


# --- the figures ------------------------------------------------------------------------------------------------------


def test_the_interval_of_a_share_of_the_edge_holds_with_few_draws_too():
    """With many it is about that of leaving out each draw; a few in which all is captured do not prove that all is."""
    found = evaluate(configure("fatestones"), make_agent("strongest"), draw_hands(configure("fatestones"), 4000, 1), 0)
    gain, most = found.gain.sum(axis=1), found.best_gain.sum(axis=1)
    rng, share = np.random.default_rng(1), gain.sum() / most.sum()
    for count, runs in ((2, 20), (5, 20), (30, 20), (600, 20)):
        rows = rng.integers(0, len(gain), (runs, count))
        held = [abs(value - share) <= error for value, error in (edge_ratio(gain[each], most[each]) for each in rows)]
        assert np.mean(held) >= 0.95
    without = (share * most.sum() - gain) / (most.sum() - most)
    assert 1 < found.edge_share()[1] / (1.96 * np.sqrt(3999) * without.std()) < 2
    assert measure("fatestones", "strongest", sample=5, seed=0).measures[1].error > 1


def test_figures_are_those_of_all_draws_solved():
    best, random = solve_all(configure("fatestones", **SMALL)).best_response, by_name("random", **SMALL)
    assert random["exploitability"].value == random["margin against random"].optimum == pytest.approx(best, abs=1e-12)
    assert {each.error for each in random.values()} == {0}
    assert "all 1,680 draws" in random["exploitability"].note
    assert "a random sample of 300 draws" in by_name("random", sample=300)["exploitability"].note
