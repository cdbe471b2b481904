"""Hints, odds and reviews, as front ends receive them."""

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.agents.hint import values_of
from dice_envs.core.batch import Batch
from dice_envs.core.game import names
from dice_envs.evaluation import percent_of_winning
from dice_envs.exact import ActionValues
from dice_envs.exact.contract import GAMES_WON, RETURN, Unit
from dice_envs.table.advice import figure, give_hint, give_odds, review
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.sittings import finish


def test_figures_have_their_unit():
    shares, returns = (ActionValues(np.array([0.613]), unit, "") for unit in (GAMES_WON, Unit("patients")))
    assert figure(0.613, shares) == "61.3 %"
    assert figure(0.613, shares, 0.02) == "61.3 ± 2.0 %"
    assert figure(-0.5, returns, 0.1) == "-0.500 ± 0.100 patients"
    assert figure(0.5, returns, float("nan"), sign=True) == "+0.500 patients"


@pytest.mark.parametrize("seats", [2, 3])
def test_returns_of_a_won_game_become_percent_of_winning(seats):
    variant = configure("liars_dice", num_players=seats)
    values = ActionValues(np.array([1.0, -1 / (seats - 1), 0.0]), RETURN, "", errors=np.array([0.3, 0.0, 0.0]))
    found = percent_of_winning(variant, values)
    assert found.unit == GAMES_WON
    assert found.values.tolist() == pytest.approx([1, 0, 1 / seats])
    assert found.errors[0] == pytest.approx(0.3 * (seats - 1) / seats)
    dice = configure("liars_dice", reward="dice")
    assert percent_of_winning(dice, values) is values


@pytest.mark.parametrize("game", names())
def test_advice_lists_every_legal_action_the_best_first(game):
    variant = configure(game)
    sitting = Sitting(variant, 1, [PERSON] * variant.facts.num_seats)
    while sitting.variant.game.name == "liars_dice" and len(sitting) < 1:
        sitting.play(20)
    for give in (give_odds,) if game == "liars_dice" else (give_hint, give_odds):
        advice = give(variant, sitting.state, 3)
        assert sorted(row.action for row in advice.rows) == sitting.legal()
        values = [(round(row.value, 3), row.share or 0.0) for row in advice.rows]
        assert values == sorted(values, reverse=True)
        assert all(row.words == variant.describe_action(row.action) and row.text for row in advice.rows)
        assert give(variant, sitting.state, 3) == advice, "the seed repeats it"
        if give is give_hint:
            assert sum(row.share for row in advice.rows) == pytest.approx(1)
    assert advice.meaning == "how likely" or game != "liars_dice"


PERUDO = configure("liars_dice", rules="perudo", num_players=3, num_dice=2)


def bids(monkeypatch):
    """A position of Perudo after two bids, with playouts that take no time."""
    monkeypatch.setattr("dice_envs.agents.hint.MOST_MOVES", 200_000)
    sitting = Sitting(PERUDO, 4, [PERSON] * 3)
    for _ in range(2):
        sitting.play(sitting.legal()[2])
    return sitting


def test_where_no_optimal_play_is_known_a_hint_weighs_hands_by_their_bids(monkeypatch):
    sitting = bids(monkeypatch)
    hint = give_hint(PERUDO, sitting.state, 1)
    assert give_hint(PERUDO, sitting.state, 1) == hint
    assert "the others hold what their bids suggest" in hint.note
    assert hint.meaning == "chance to win"
    assert all("±" in row.text and row.share is None for row in hint.rows)
    assert len(hint.rows) == 5, "of those that were tried, the best"
    assert hint.title.endswith(f"of {len(sitting.legal())} were tried")
    assert not hint.rows[-1].close, "its interval tells the worst of them from the best"
    values, best = values_of(PERUDO, sitting.state, 1), hint.rows[0]
    near = [best.value - row.value <= values.errors[row.action] for row in hint.rows]
    assert [row.close for row in hint.rows] == [True, *near[1:]]
    assert hint.sentence.startswith(f"Bid {best.words}: it ")


def test_a_state_from_outside_is_checked_before_a_playout():
    variant = configure("liars_dice", num_players=3)
    for seat in (5, -1):
        state = Batch(variant, 1, seed=1).states[0]
        state["seat"] = seat
        with pytest.raises(ValueError, match="seat|over"):
            values_of(variant, state, 1)


def test_a_hint_reads_nothing_hidden(monkeypatch):
    sitting = bids(monkeypatch)
    other = sitting.state
    PERUDO.game.reroll_hidden(PERUDO.params, other, int(other["seat"]))
    assert other["counts"].tolist() != sitting.state["counts"].tolist()
    assert give_hint(PERUDO, other, 1) == give_hint(PERUDO, sitting.state, 1)


def test_a_hint_is_the_odds_where_no_sample_tells_choices_apart(monkeypatch):
    monkeypatch.setattr("dice_envs.agents.hint.half_width", lambda *given: 9.0)
    state = bids(monkeypatch).state
    hint, chances = give_hint(PERUDO, state, 1), give_odds(PERUDO, state, 1)
    assert (hint.title, hint.rows) == (chances.title, chances.rows)
    assert hint.note.endswith("nobody knows the best move here, and no sample tells it")


def test_a_cost_is_measured_in_playouts_of_its_own(monkeypatch):
    state = bids(monkeypatch).state
    worst = give_hint(PERUDO, state, 1).rows[-1].action
    values = values_of(PERUDO, state, 1, 200_000, played=worst)
    usual = values_of(PERUDO, state, 1, 200_000)
    assert values.errors[worst] < usual.errors[worst] / 2
    assert np.nanmax(values.values) - values.values[worst] > values.errors[worst]


def test_a_review_without_optimal_play_marks_only_what_a_sample_tells(monkeypatch):
    monkeypatch.setattr("dice_envs.table.advice.MOST_REVIEWED", 1_000_000)
    sitting = finish(Sitting(PERUDO, 2, [PERSON] * 3), np.random.default_rng(1))
    moves = review(sitting).moves
    assert {move.mark for move in moves} >= {"best", "blunder"}
    assert all((move.best == move.action) == (move.cost == 0) for move in moves)
    monkeypatch.setattr("dice_envs.agents.hint.half_width", lambda *given: 9.0)
    assert review(sitting).moves == ()
    assert review(sitting).note == "what these moves have cost is not known"
