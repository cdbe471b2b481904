"""Reviews divide a result into play and luck; records add them up."""

import itertools

import numpy as np
import pytest

from dice_envs import action_values, configure, response_values
from dice_envs.evaluation import Scale
from dice_envs.exact.contract import GAMES_WON, RETURN, Unit
from dice_envs.exact.intervals import half_width
from dice_envs.experiments.commands.review import record_of
from dice_envs.table.advice import FINE, SLIP, Judged, Review, Split, amount, review
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.sittings import finish
from tests.support.subsets import few

WON = Scale(0.5, 0.5, GAMES_WON, 0.0, 1.0)
SAVED = Scale(0.0, 1.0, Unit("patients saved"), 0.0, 12.0)


class Fixed:
    """Values by which the first legal action is always the best, and every other one costs a share of the game."""

    unit, note, whole_team = RETURN, "against nobody", False

    def __init__(self, cost=0.02):
        self.cost = cost

    def start(self, seat):
        return 0.2

    def action_values(self, states):
        legal = np.zeros((len(states), 7), np.int8)
        VARIANT.kernels.legal(states, np.arange(len(states)), legal)
        values = np.where(legal, -2 * self.cost, np.nan)
        values[np.arange(len(states)), legal.argmax(axis=1)] = 0.0
        return values


VARIANT = configure("liars_dice", num_dice=1, num_faces=3, rounds="single")


@pytest.fixture
def played(monkeypatch):
    monkeypatch.setattr("dice_envs.table.advice.response_values", lambda variant: Fixed())
    return finish(Sitting(VARIANT, 3, [PERSON, "random"]))


def test_a_review_says_you_to_the_only_person(played):
    found = review(played)
    assert set(found.splits) == {0}
    assert found.splits[0].start == 0.6
    assert found.splits[0].text.startswith(f"you {'won' if played.returns[0] > 0 else 'lost'}: luck ")
    both = review(played, agents=True).splits
    assert both[1].text.startswith("player 1 ")
    assert [both[seat].result for seat in range(2)] == [(played.returns[seat] + 1) / 2 for seat in range(2)]


@pytest.mark.parametrize(("cost", "mark"), [(0.9 * FINE, "fine"), (FINE, "slip"), (0.9 * SLIP, "slip"), (SLIP, "blunder")])
def test_marks_say_how_much_a_move_cost(played, monkeypatch, cost, mark):
    monkeypatch.setattr("dice_envs.table.advice.response_values", lambda variant: Fixed(cost + 1e-9))
    moves = review(played, agents=True).moves
    assert {move.mark for move in moves if move.cost} == {mark}
    assert {move.mark for move in moves if not move.cost} <= {"best"}


def test_amounts_are_percent_of_winning_or_counts():
    assert amount(-0.314, WON) == "−31 %"
    assert amount(0.02, WON) == "+2 %"
    assert amount(-0.35, SAVED) == "−0.35 patients saved"
    assert [amount(each, WON) for each in (-0.003, -1e-9, 0.0)] == ["−0.3 %", "0 %", "0 %"]


def reviewed(play, luck, scale=WON, marks=("best",)):
    split = Split(0.5, 0.5 + play + luck, play, luck, (), "", scale)
    moves = tuple(Judged(n, 0, 0, "", 0.0, 0, "", mark=mark) for n, mark in enumerate(marks, start=1))
    return Review(moves, {0: -play}, {}, "", {0: split}), 0


def test_a_record_has_means_with_intervals_and_a_trend():
    given = 0.3 - 0.02 * np.arange(12) + np.random.default_rng(1).normal(0, 0.01, 12)
    record = record_of([reviewed(-cost, 0.1, marks=("fine", "blunder")) for cost in given])
    assert record.games == 12
    assert record.given_away == pytest.approx(given.mean())
    assert record.luck == pytest.approx(0.1)
    assert record.error == half_width(given, 0, 1)
    slope, covariance = np.polyfit(np.arange(12), given, 1, cov=True)
    assert record.trend == pytest.approx(slope[0])
    assert record.trend_error == pytest.approx(2.228 * covariance[0, 0] ** 0.5, rel=1e-3)
    assert abs(record.trend + 0.02) < record.trend_error
    assert record.marks == {"fine": 12, "blunder": 12}


def test_few_games_have_no_interval_and_no_trend():
    one, two = (record_of([reviewed(-0.1, 0.0)] * count) for count in (1, 2))
    alike = record_of([reviewed(0.0, 0.0)] * 3)
    assert (one.error, one.trend) == (None, None)
    assert (two.error, two.trend) == (half_width(np.full(2, 0.1), 0, 1), None)
    assert (alike.trend, alike.trend_error) == (0, 0), "and not NaN, as of a regression without residuals"


@few(
    4,
    ("game", "options"),
    [
        ("liars_dice", {"num_dice": 1, "num_faces": 3}),
        ("liars_dice", {"num_dice": 1, "num_players": 3}),
        ("thirties", {"num_players": 1}),
        ("thirties", {"rounds": 1}),  # of points, which are no results
        ("thirties", {"num_players": 1, "goal": "thirty_or_over"}),
        ("liars_dice", {"num_dice": 2}),
        ("fatestones", {}),
        ("score_dice", {"pool_a": (6, 6, 4), "pool_b": (6, 6, 4)}),
        ("shakes", {"mode": "physician"}),
    ],
)
def test_play_and_luck_add_up_in_every_game(game, options):
    variant = configure(game, **options)
    seats = variant.facts.num_seats
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sitting = finish(Sitting(variant, seed, [PERSON] * seats), rng)
        found = review(sitting)
        if not found.splits:
            assert "luck and play are told apart only where optimal play of whole games is known" in found.note
        for move in found.moves:
            assert move.mark in ("best", "fine", "slip", "blunder")
            assert (move.best == move.action) == (move.cost == 0)
            assert f"move {move.number}: {move.words}" in move.text
            assert move.cost == 0 or variant.describe_action(move.best) in move.text
        assert ("what the others did" in found.note) == bool(found.splits and seats > 1)
        for seat, split in found.splits.items():
            assert split.start + split.play + split.luck == pytest.approx(split.result, abs=1e-9)
            assert split.play == pytest.approx(-found.totals[seat], abs=1e-4)
            assert [split.points[0].value, split.points[-1].value] == pytest.approx([split.start, split.result], abs=1e-9)
            for before, after in itertools.pairwise(split.points):
                assert before.number <= after.number
                assert after.by != "play" or (before.number, before.by) == (after.number - 1, "luck")
            moves = [move for move in found.moves if move.seat == seat and move.counted]
            assert [move.before - move.after for move in moves] == pytest.approx([move.cost for move in moves], abs=1e-9)
            assert (found.worst[seat].cost if seat in found.worst else 0.0) == max((move.cost for move in moves), default=0.0)
            got = f"you got {split.result:g} {response_values(variant).unit}: luck "
            assert split.text.startswith(f"{variant.seat_name(seat)} " if seats > 1 else got)
    assert bool(found.splits) == (options not in ({"num_dice": 1, "num_players": 3}, {"rounds": 1}))


def test_moves_after_what_optimal_play_never_does_are_not_counted():
    variant = configure("liars_dice", num_dice=2, num_faces=3, rounds="single")
    for seed in range(20):
        sitting = finish(Sitting(variant, seed, [PERSON, "random"]), np.random.default_rng(seed))
        found = review(sitting)
        known = [action_values(variant, sitting.position(move.number - 1).state) for move in found.moves]
        assert [move.counted for move in found.moves] == [values.reached for values in known]
        costs = [np.nanmax(values.values) - values.values[move.action] for move, values in zip(found.moves, known, strict=True)]
        reached = [move.counted for move in found.moves]
        assert [m.cost for m in found.moves if m.counted] == pytest.approx(list(itertools.compress(costs, reached)))
        assert found.totals[0] == pytest.approx(sum(move.cost for move in found.moves if move.counted))
        assert found.splits[0].play == pytest.approx(-found.totals[0])
        assert found.marks[0].total() == sum(move.counted for move in found.moves)
        uncounted = [move for move in found.moves if not move.counted]
        assert all("not counted" in move.text and move.after is None for move in uncounted)
        if uncounted:
            assert max(costs) > 0
            return
    pytest.fail("no game of random play had such a move")
