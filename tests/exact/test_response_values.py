"""Values of choices against a fixed opponent: what holds in every game, by a list of all that follows and by random play."""

import numpy as np
import pytest

from dice_envs import Turn, Uniform, configure
from dice_envs.agent import ask, draw_actions
from dice_envs.agent.specs import resolve
from dice_envs.core.chance import Drawn
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.exact import asked, offered, response_values
from tests.conftest import scaled
from tests.support.chance import best_response
from tests.support.subsets import few

SMALL = {"num_players": 1, "num_dice": 4, "target": 17}

CASES = [  # `make test` runs the first six
    ("liars_dice", {"num_dice": 2}, "numbers:bluff=0.5"),
    ("thirties", {"num_players": 1}, None),
    ("fatestones", {}, "nash"),
    ("score_dice", {}, "nash"),
    ("shakes", {"mode": "physician"}, None),
    ("shakes", {}, None),
    *(("thirties", {**SMALL, "goal": goal}, None) for goal in ("minimize_loss", "thirty_or_over", "optimal")),
    ("fatestones", {"scratch": "draw", "dice": (111666, 222555, 333444, 123456, 114466, 133356), "hand_size": 2}, "nash"),
    ("score_dice", {"pool_a": (6, 6, 4), "pool_b": (6, 6, 6, 4), "ties": "a"}, "random"),
    ("score_dice", {"reward": "score", "open_hands": True}, "shuffled"),
    ("score_dice", {"pool_a": (6, 6, 4), "pool_b": (6, 6, 6, 4), "ties": "a"}, "highest"),
    ("score_dice", {"pool_a": 4, "pool_b": (4, 4), "ties": "reroll"}, "highest"),
    ("shakes", {"mode": "physician", "reward": "win", "open_efficacies": True}, None),
    ("shakes", {"num_players": 4, "num_patients": 5, "goal": 2, "reward": "win", "ties": "random"}, None),
]


def played(variant, opponent, games, seed):
    """Games of a random player; even ones from seat 0, odd ones from seat 1 if the player has one seat.

    Returns: (games,) the player's returns, the values before the deal, what its choices gave away; and its decisions.
    """
    values = response_values(variant, opponent)
    other = asked(opponent, variant) if opponent else None
    index = np.arange(games)
    seats = np.zeros(games, np.int64) if values.whole_team else index % 2
    dealt, own = (new_streams(each, games) for each in np.random.SeedSequence(seed).spawn(2))
    states = np.zeros(games, variant.game.state)
    states["rng"] = dealt["rng"]
    variant.kernels.deal(states, index)
    returns, lost = np.zeros(games), np.zeros(games)
    decisions = []
    while (playing := index[states["seat"] != OVER]).size:
        mine = playing if values.whole_team else playing[states["seat"][playing] == seats[playing]]
        theirs = np.setdiff1d(playing, mine)
        actions = np.zeros(games, np.int64)
        if mine.size:
            decisions.append(states[mine])
            q = values.action_values(states[mine])
            actions[mine] = ask(Uniform(), variant, states, mine, own)
            lost[mine] += np.nanmax(q, axis=1) - q[np.arange(len(mine)), actions[mine]]
        if theirs.size:
            turn = Turn(variant, states, theirs, own[theirs])
            actions[theirs] = draw_actions(turn.streams, other.probabilities(turn))
        variant.kernels.play(states, playing, actions[playing])
        returns[playing] += states["rewards"][playing, seats[playing]]
    return returns, np.array([values.start(seat) for seat in seats.tolist()]), lost, np.concatenate(decisions)


@few(6, ("game", "options", "opponent"), CASES)
def test_a_return_is_the_best_one_less_what_choices_gave_away_plus_luck(game, options, opponent):
    variant = configure(game, **options)
    returns, start, lost, states = played(variant, opponent, scaled(20_000, 200), 1)
    assert (lost >= 0).all()
    indifferent = game == "score_dice" and (opponent != "highest" or options["ties"] == "reroll")
    assert (lost.max() > 1e-12) == (not indifferent)
    luck = returns - start + lost
    assert abs(luck.mean()) < 4 * luck.std() / np.sqrt(len(luck))
    states = states[:: 1 + len(states) // 200]
    index, masks = np.arange(len(states)), np.zeros((len(states), variant.facts.num_actions), np.int8)
    variant.kernels.legal(states, index, masks)
    values_of, before = response_values(variant, opponent).action_values, states.copy()
    values = values_of(states)
    assert (states == before).all()
    assert (np.isfinite(values) == (masks != 0)).all()
    np.testing.assert_array_equal(values, np.concatenate([values_of(states[i : i + 1]) for i in index]))
    headings = (offered(variant.game, "situations") or (lambda *arguments: {}))(variant, states, masks.argmax(axis=1))
    assert all(len(labels) == len(states) and labels.dtype.kind == "U" for labels in headings.values())


PAIRS, OPEN = {"pool_a": (3, 2), "pool_b": (3, 2)}, {"reward": "score", "open_hands": True}
PATIENTS = {"mode": "physician", "num_patients": 3, "goal": 2}
LISTED = [  # `make test` runs the first eight
    ("thirties", {"num_players": 1, "num_dice": 3, "num_faces": 4, "target": 8}, None),
    ("fatestones", {"dice": (111666, 222555, 333444, 123456), "hand_size": 2, "scratch": "draw"}, "nash"),
    ("score_dice", {"pool_a": (3, 2), "pool_b": (3, 3, 2), "ties": "a"}, "highest"),
    ("shakes", {**PATIENTS, "reward": "win"}, None),
    ("shakes", {**PATIENTS, "open_efficacies": True}, None),
    ("shakes", {**PATIENTS, "open_efficacies": True, "reward": "win"}, None),
    *(("score_dice", {**PAIRS, **more}, spec) for spec in ("random", "highest") for more in ({}, OPEN)),
    *(("thirties", {**SMALL, "num_dice": 3, "target": 11, "goal": goal}, None) for goal in ("minimize_loss", "thirty_or_over")),
    ("score_dice", {"pool_a": (3, 2, 2), "pool_b": (2, 2, 2), "reward": "score"}, "highest"),
    ("shakes", PATIENTS, None),
    ("shakes", {**PATIENTS, "num_players": 4, "num_patients": 2}, None),
]


@few(8, ("game", "options", "opponent"), LISTED)
def test_values_of_choices_are_those_of_a_list_of_all_that_follows(game, options, opponent):
    """The same in all states that look alike: they know nothing hidden."""
    variant = configure(game, **options)
    values = response_values(variant, opponent)

    def look(states, known):
        found = values.action_values(states)
        expected = [[known.get(action, np.nan) for action in range(found.shape[1])]] * len(states)
        assert found == pytest.approx(np.array(expected), abs=1e-12, nan_ok=True)

    for seat in range(variant.facts.num_seats):
        start = best_response(Drawn(variant), resolve(opponent or "random"), seat, look)
        assert values.start(seat) == pytest.approx(start, abs=1e-12)
