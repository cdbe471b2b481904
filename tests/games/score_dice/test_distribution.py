"""Exact score distributions, compared with icepool, brute force and the published tables."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import pytest

from dice_envs.experiments.bench import score_dice as icepool_tables
from dice_envs.experiments.reproduce.score_dice import TABLES
from dice_envs.games.score_dice.exact.distribution import ScoreDistribution, pool_name, score_distribution
from tests.support.commands import with_json
from tests.support.progress import progress

pytest.importorskip("icepool")


def test_tables_equal_those_of_icepool():
    for table, dice in zip(TABLES, icepool_tables.tables(TABLES), strict=True):
        for (name, *_), result, die in zip(table.rows, table.compute(), dice, strict=True):
            assert result.chances == icepool_tables.chances(die), (table.section, name)


# --- brute force: the rules again, roll by roll ---------------------------------------------------------------------


def rolls(pool):
    """Every roll of the pool, highest die first (of equal faces the larger die), as (face, size)."""
    for faces in itertools.product(*(range(1, size + 1) for size in pool)):
        yield sorted(zip(faces, pool, strict=True), reverse=True)


def one_roll(a, b, ties, pairing):
    """Probabilities of one roll: {(score, tied of a, tied of b): probability}."""
    columns = min(len(a), len(b))
    found = defaultdict(Fraction)
    orders = [tuple(range(columns))] if pairing == "sorted" else list(itertools.permutations(range(columns)))
    each = Fraction(1, math.prod(a) * math.prod(b) * len(orders))
    for hand_a, hand_b, order in itertools.product(rolls(a), rolls(b), orders):
        pairs = [(hand_a[i], hand_b[order[i]]) for i in range(columns)]
        score = sum((x[0] > y[0]) - (x[0] < y[0]) + (x[0] == y[0] and ties == "a") for x, y in pairs)
        tied = [(x[1], y[1]) for x, y in pairs if x[0] == y[0]] if ties == "reroll" else []
        found[score, tuple(sorted(x for x, _ in tied)), tuple(sorted(y for _, y in tied))] += each
    return found


def by_hand(a, b, ties, pairing):
    final = defaultdict(Fraction)
    again = Fraction(0)
    for (score, tied_a, tied_b), chance in one_roll(a, b, ties, pairing).items():
        if len(tied_a) == min(len(a), len(b)):
            again += chance
        elif tied_a:
            for more, rest in by_hand(tied_a, tied_b, ties, pairing).items():
                final[score + more] += chance * rest
        else:
            final[score] += chance
    return {score: chance / (1 - again) for score, chance in sorted(final.items())}


BY_HAND = [
    ((4, 3), (3, 2)), ((4, 4), (4,)), ((2,), (5, 3)), ((4, 3, 2), (4, 2)), ((2, 3), (4, 3, 3)), ((3, 2, 2), (3, 3, 2)),
    ((4, 2, 2), (3,)), ((2, 2, 2), (2, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("pairing", ["sorted", "unsorted"])
@pytest.mark.parametrize("ties", ["none", "a", "reroll"])
@pytest.mark.parametrize(("a", "b"), BY_HAND, ids=str)
def test_small_pools_equal_brute_force(a, b, ties, pairing):
    assert score_distribution(a, b, ties, pairing).chances == by_hand(a, b, ties, pairing)


@pytest.mark.parametrize(
    ("a", "b"), [((6,) * 9, (8,) * 8), pytest.param((6,) * 20, (6,) * 20, marks=pytest.mark.slow)], ids=["9d6-8d8", "20d6"]
)
def test_large_pools_equal_icepool(a, b):
    peer = icepool_tables.sorted_pairs(icepool_tables.evaluators()["none"], a, b)
    assert score_distribution(a, b).chances == icepool_tables.chances(peer)


def test_metrics():
    result = ScoreDistribution({-1: Fraction(1, 2), 0: Fraction(1, 6), 2: Fraction(1, 3)})
    assert result.win_bias == Fraction(-50, 3)
    assert result.tie_percentage == Fraction(50, 3)
    assert result.closeness == pytest.approx((1 / 2 + 4 / 3) ** -0.5)
    assert ScoreDistribution({0: Fraction(1)}).closeness == math.inf


@pytest.mark.parametrize("pairing", ["sorted", "unsorted"])
def test_progress_ends_where_it_should(pairing):
    with progress() as told:
        score_distribution((6, 4, 3), (6, 6, 4, 2), "reroll", pairing)
    assert len(told) > 5
    assert sum(told) == pytest.approx(1)


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="pairing must be one of 'sorted', 'unsorted', not 'shuffled'"):
        score_distribution((6,), (6,), pairing="shuffled")
    with pytest.raises(ValueError, match="ties must be one of"):
        score_distribution((6,), (6,), "b")
    with pytest.raises(ValueError, match="pool_b must be"):
        score_distribution((6,), ())


def test_pools_have_names():
    assert pool_name((8, 8, 6, 10)) == "1d6/2d8/1d10"


def test_reproduce_command(tmp_path):
    answer, data = with_json(tmp_path, "reproduce", "score-dice")
    assert len(data["rows"]) == 3 * sum(len(table.rows) for table in TABLES) + 3
    assert all(row["agrees"] and row["error"] == 0 for row in data["rows"])
    assert "| 5d6          |     0.00 |  9.91 |     0.340 |" in answer
