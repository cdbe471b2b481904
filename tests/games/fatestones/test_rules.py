"""FateStones: rules, options, exact play, logs."""

import itertools
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dice_envs import Batch, configure
from dice_envs.core.game import OVER
from dice_envs.experiments.arena import log_writer, tournament
from dice_envs.games.fatestones import CODES, DIE_OF_CODE, FACES, GONE, MAX_BAG, MAX_DRAWS, duel
from dice_envs.games.fatestones.exact.draws import draw_hands, edges, solve_all, solve_draws
from dice_envs.games.fatestones.log import read_log
from tests.exact.test_matrix_game import value_by_linprog

EASY = (111666, 222555, 333444, 123456, 114466, 133356, 233346, 122556)


def test_the_bags():
    assert len(CODES) == len(set(CODES)) == 462
    assert len(configure("fatestones").params.bag) == 32
    assert len(configure("fatestones", dice="all").params.bag) == 462
    assert (FACES[configure("fatestones").params.bag].mean(axis=1) == 3.5).all()
    assert configure("fatestones", dice=("123456",) * 6).options.dice == (123456,) * 6


def test_the_largest_bag_is_drawn_from_end_to_end():
    """Hands hold indices of the bag while they are drawn. The last indices of a large bag once overflowed."""
    codes = (111111, *(222222,) * (MAX_BAG - 2), 666666)
    batch = Batch("fatestones", 50_000, seed=1, dice=codes, hand_size=5)
    drawn = batch.states["hands"]
    for code in (111111, 666666):  # one place of 32,767 each, 500,000 drawn: 15 expected
        assert 3 < (drawn == DIE_OF_CODE[code]).sum() < 35
    assert np.isin(drawn, [DIE_OF_CODE[code] for code in set(codes)]).all()


@settings(deadline=None)
@given(st.integers(0, 461), st.integers(0, 461))
def test_a_duel_counts_all_36_rolls(one, two):
    rolls = list(itertools.product(FACES[one].tolist(), FACES[two].tolist()))
    assert duel(one, two) == (sum(a > b for a, b in rolls), sum(a == b for a, b in rolls))


@pytest.mark.parametrize(("scratch", "rolls"), [("draw", 3), ("redraw", 3 * MAX_DRAWS)])
def test_dice_that_only_tie_end_in_a_draw(scratch, rolls):
    batch = Batch("fatestones", 4, seed=1, dice=(333333,) * 6, scratch=scratch)
    steps = 0
    while (batch.seats != OVER).any():
        batch.play(np.zeros(4, np.int64))
        steps += 1
    assert steps == 2 * rolls == batch.variant.facts.max_steps
    assert (batch.rewards == 0).all()


def payoffs(own: tuple[int, ...], other: tuple[int, ...], kind: str) -> np.ndarray:
    """Wins minus losses with each pair of dice, those of the game after a tie included."""
    payoff = np.zeros((len(own), len(own)))
    for i, j in itertools.product(range(len(own)), repeat=2):
        rolls = [(a > b) - (a < b) for a in FACES[own[i]].tolist() for b in FACES[other[j]].tolist()]
        tie = Fraction(rolls.count(0), 36)
        rest = slow_value(own[:i] + own[i + 1 :], other[:j] + other[j + 1 :], kind)
        payoff[i, j] = Fraction(sum(rolls), 36) + tie * Fraction(rest)
    return payoff


def slow_value(own: tuple[int, ...], other: tuple[int, ...], kind: str) -> float:
    """An independent recursion, with fractions and SciPy; `kind` is nash, best (against random) or random."""
    if not own:
        return 0.0
    payoff = payoffs(own, other, kind)
    if kind == "best":
        return float(payoff.mean(axis=1).max())
    return float(payoff.mean()) if kind == "random" else value_by_linprog(payoff)


@pytest.mark.thorough
def test_exact_values_against_another_recursion():
    variant = configure("fatestones", dice="all")
    for hands in draw_hands(variant, 8, 2):
        draw = solve_draws(hands[None])
        own, other = (tuple(int(die) for die in hand) for hand in hands)
        best = (slow_value(own, other, "best") + slow_value(other, own, "best")) / 2
        assert draw.best_response == pytest.approx(best, abs=1e-12)
        assert draw.unfairness == pytest.approx(abs(slow_value(own, other, "nash")), abs=1e-8)


def test_the_reference_values_of_the_fair_dice():
    draws = solve_draws(draw_hands(configure("fatestones"), 20_000, 1))
    assert draws.best_response == pytest.approx(0.036, abs=0.001)
    assert draws.nash == pytest.approx(0.019, abs=0.002)


@pytest.mark.thorough
def test_a_whole_bag_is_the_mean_of_its_draws():
    variant = configure("fatestones", dice=EASY, hand_size=2)
    whole = solve_all(variant)
    assert whole.draws == 28 * 15
    bag = [DIE_OF_CODE[code] for code in EASY]
    # In the order of solving, which decides which of several optimal strategies is found.
    draws = [(a, b) for a, b in itertools.combinations(itertools.combinations(bag, 2), 2) if not set(a) & set(b)]
    each = solve_draws(np.array(draws, np.int16))
    assert whole.best_response == pytest.approx(each.best_response, abs=1e-12)
    assert whole.nash == pytest.approx(each.nash, abs=1e-12)
    assert whole.unfairness == pytest.approx(each.unfairness, abs=1e-12)


def test_the_edge_is_measured_against_random_choices_throughout():
    hands = draw_hands(configure("fatestones", dice="all"), 5, 6)
    own = edges(hands, np.full(5, 3))
    assert own[:, :3].sum(axis=1) == pytest.approx(0, abs=1e-12)
    for row, (a, b) in zip(own, hands.tolist(), strict=True):
        worth = payoffs(tuple(a), tuple(b), "random").mean(axis=1)
        assert row[:3] == pytest.approx(worth - worth.mean(), abs=1e-12)


GOOD = "123456,222555,333444,111666,133356,233346,0,2,6,4"


def test_a_log_is_what_was_played(tmp_path):
    path = tmp_path / "log.csv"
    variant = configure("fatestones")
    writer = log_writer(variant, 2)
    result = tournament(variant, ["best_response:random", "random"], 500, seed=2, log=writer)
    path.write_text(writer.text())
    log = read_log(path)
    wins, losses, ties = log.record()
    assert wins + losses == 500
    assert wins / 500 == pytest.approx(result.win_rate[0][1])
    assert ties == len(log.sizes) - 500
    assert ties > 0
    share, _ = log.edge_share()
    assert share == pytest.approx(1, abs=0.01)  # it looks ahead to better play after a tie than the measure assumes
    # After a tie the dice rolled are missing from the next line, and the rest are renumbered.
    for i in np.flatnonzero((log.results[:, 0] == log.results[:, 1]) & (log.sizes == 3)):
        for player in range(2):
            left = np.delete(log.hands[i, player], log.choices[i, player])
            assert log.hands[i + 1, player].tolist() == [*left, GONE]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("123456,222555,333444,111666,133356,233346,0,2,6", "9 columns instead of 10"),
        (GOOD + ",1", "11 columns instead of 10"),
        (GOOD.replace("333444", "333443"), "die '333443' must be a code"),
        (GOOD.replace("333444", "33344"), "die '33344' must be a code"),
        (GOOD.replace("333444", ""), "player 1 has 2 dice, player 2 has 3"),
        (GOOD.replace("222555", ""), "player 1's dice must stand first"),
        (GOOD.replace(",0,2,", ",3,2,"), "player 1's choice must be 0 to 2, not '3'"),
        (GOOD.replace(",0,2,", ",0,x,"), "player 2's choice must be 0 to 2, not 'x'"),
        (GOOD[:-1] + "1", "player 2's result must be a face of die 233346, not '1'"),
        ("", "no rolls in this log"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, reason):
    path = tmp_path / "bad.csv"
    path.write_text(f"{GOOD}\n{line}\n" if line else "\n")
    with pytest.raises(ValueError, match=reason) as caught:
        read_log(path)
    assert str(path) in str(caught.value)
    assert not line or "line 2: " in str(caught.value)


def test_logs_are_of_one_pair_and_of_games_that_have_them():
    with pytest.raises(ValueError, match="one pair"):
        log_writer(configure("fatestones"), 3)
    with pytest.raises(ValueError, match="has no log format"):
        log_writer(configure("liars_dice"), 2)
    with pytest.raises(ValueError, match="hand_size must be at most 3"):
        log_writer(configure("fatestones", hand_size=4), 2)


LOGS = Path(os.environ.get("FATESTONES_LOGS", "fatestones_logs"))


@pytest.mark.skipif(not LOGS.is_dir(), reason="the source's logs are not here; FATESTONES_LOGS names their folder")
def test_the_source_s_logs_recount_to_its_table():
    for name, record, share in (
        ("random_vs_random.csv", (4913, 5031, 2033), -0.004),
        ("mcts10_vs_random.csv", (4951, 5006, 2025), 0.001),
    ):
        log = read_log(LOGS / name)
        assert log.record() == record
        assert log.edge_share()[0] == pytest.approx(share, abs=0.001)
