"""Hints, odds and reviews, as front ends receive them."""

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.core.game import names
from dice_envs.exact import ActionValues, action_values
from dice_envs.table.advice import figure, give_hint, give_odds
from dice_envs.table.review import review
from dice_envs.table.sitting import PERSON, Sitting


def test_figures_have_their_unit():
    shares, returns = (ActionValues(np.array([0.613]), unit, "") for unit in ("% of games won", "return"))
    assert figure(0.613, shares) == "61.3 % of games won"
    assert figure(0.613, shares, 0.02) == "61.3 % of games won ± 2.0"
    assert figure(-0.5, returns, 0.1) == "-0.500 return ± 0.100"
    assert figure(-0.5, returns, float("nan")) == "-0.500 return"
    assert (shares.counted, returns.counted) == ("games won", None)


@pytest.mark.parametrize("game", names())
def test_advice_lists_every_legal_action_the_best_first(game):
    variant = configure(game, **({"num_players": 3} if game == "liars_dice" else {}))
    sitting = Sitting(variant, 1, [PERSON] * variant.facts.num_seats)
    for give in (give_hint, give_odds):
        advice = give(variant, sitting.state, 3)
        assert sorted(row.action for row in advice.rows) == sitting.legal()
        worths = [row.worth for row in advice.rows]
        assert worths == sorted(worths, reverse=True)
        assert all(row.words == variant.describe_action(row.action) and row.text for row in advice.rows)
        assert give(variant, sitting.state, 3) == advice, "the seed repeats it"
    hint = give_hint(variant, sitting.state)
    if game == "liars_dice":
        assert "optimal play is not shown: num_players must be 2" in hint.note
        assert all("±" in row.text and row.share is None for row in hint.rows)
        assert all(row.text.endswith("% likely") for row in give_odds(variant, sitting.state).rows)
    else:
        assert sum(row.share for row in hint.rows) == pytest.approx(1)


def test_a_review_adds_up_what_moves_cost():
    variant = configure("thirties", num_players=1, goal="maximize")
    sitting = Sitting(variant, 2, [PERSON])
    with pytest.raises(ValueError, match="when it is over"):
        review(sitting)
    rng = np.random.default_rng(1)
    while not sitting.over:
        sitting.play(int(rng.choice(sitting.legal())))
    found = review(sitting)
    costs = []
    for entry in sitting.history():
        values = action_values(variant, sitting.position(entry.number - 1).state).values
        costs.append(np.nanmax(values) - values[entry.action])
    assert found.totals[0] == pytest.approx(sum(costs))
    assert [move.cost for move in found.moves] == pytest.approx([costs[move.number - 1] for move in found.moves])
    assert max(costs) > 0
    for move in found.moves:
        assert (move.best == move.action) == (move.cost == 0)
        assert f"move {move.number}: {move.words}" in move.text
        assert move.cost == 0 or variant.describe_action(move.best) in move.text


def test_shares_of_a_game_add_up_to_games():
    variant = configure("thirties", num_players=1, goal="thirty_or_over")
    sitting = Sitting(variant, 1, [PERSON])
    while not sitting.over:
        sitting.play(sitting.legal()[0])  # the turn ends with the faces of the first throw
    found = review(sitting)
    assert found.totals[0] > 0
    assert found.texts[0] == f"{found.totals[0]:.2f} turns at the target or over in all"


def test_optimal_play_costs_nothing():
    variant = configure("thirties", num_players=1, goal="maximize")
    sitting = Sitting(variant, 2, ["thirties"])
    while not sitting.over:
        sitting.step()
    assert review(sitting).moves == ()
    assert review(sitting, agents=True).totals == {0: 0.0}


def test_what_a_sample_cannot_tell_apart_costs_nothing():
    """In random play against random play, all dice have the same value."""
    variant = configure("score_dice", pool_a=(6, 6), pool_b=(6, 6), ties="reroll")
    sitting = Sitting(variant, 2, [PERSON, "random"])
    while not sitting.over:
        if sitting.mover == 0:
            sitting.play(sitting.legal()[-1])
        else:
            sitting.step()
    found = review(sitting)
    assert found.moves
    assert found.texts[0] == "nothing lost" or found.totals[0] < 0.2
    assert "95 % intervals" in found.note


def test_a_hint_that_would_take_long_falls_back_to_random_play_and_says_why():
    variant = configure("shakes", num_players=6, num_patients=30)
    sitting = Sitting(variant, 1, [PERSON] * 6)
    hint = give_hint(variant, sitting.state)
    assert hint.title.endswith("estimated")
    assert all("±" in row.text for row in hint.rows)
    assert "15,358,495 tallies; optimal play is found in passing up to 500,000" in hint.note


def test_a_review_of_a_long_game_plays_fewer_random_games_for_each_move(monkeypatch):
    variant = configure("liars_dice", num_players=3, num_dice=2)
    sitting = Sitting(variant, 1, [PERSON] * 3)
    while not sitting.over:
        sitting.play(sitting.legal()[0])
    usual = review(sitting)
    monkeypatch.setattr("dice_envs.table.review.MOST_REVIEWED", 100 * variant.facts.max_steps * len(sitting))
    assert "100 games for each action" in review(sitting).note
    assert "100 games for each action" not in usual.note
