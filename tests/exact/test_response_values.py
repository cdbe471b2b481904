"""Values of choices against a fixed opponent: what holds in every game, by a list of all that follows and by random play."""

from collections import defaultdict

import numpy as np
import pytest

from dice_envs import Turn, Uniform, configure
from dice_envs.agent import ask, draw_actions, resolve
from dice_envs.core.chance import Drawn
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.exact import asked, offered, response_values
from tests.conftest import scaled
from tests.support.chance import every_deal, every_outcome
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
    variant.kernels.deal(variant.params, states, index)
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
        variant.kernels.play(variant.params, states, playing, actions[playing])
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
    variant.kernels.legal(variant.params, states, index, masks)
    values_of, before = response_values(variant, opponent).action_values, states.copy()
    values = values_of(states)
    assert (states == before).all()
    assert (np.isfinite(values) == (masks != 0)).all()
    np.testing.assert_array_equal(values, np.concatenate([values_of(states[i : i + 1]) for i in index]))
    headings = (offered(variant.game, "situations") or (lambda *arguments: {}))(variant, states, masks.argmax(axis=1))
    assert all(len(labels) == len(states) and labels.dtype.kind == "U" for labels in headings.values())


def listed(drawn, opponent, seat, values):
    """All that can happen to the seat: by what it sees, its values there, and by its action what follows with which weight.

    Values that knew anything hidden would not be the means of what follows in all states that look alike.

    Returns: what it sees → (values, {action: [(weight, reward + best value that follows)]}); and what the game is worth.
    """
    variant, one = drawn.variant, np.zeros(1, np.int64)
    seen, first = {}, []

    def observed(state):
        out = np.zeros((1, variant.facts.observation_size), np.float32)
        variant.kernels.observe(variant.params, state, one, np.array([seat]), out)
        return out.tobytes()

    def play(state, action, weight, came, reward):
        for chance, after in every_outcome(drawn, state, action):
            follow(after, weight * chance, came, reward + float(after["rewards"][0, seat]))

    def follow(state, weight, came, reward):
        """`came` is the list of what follows the seat's last action, to which its next decision belongs."""
        if state["seat"][0] == OVER:
            came.append((weight, reward))
        elif state["seat"][0] == seat:
            if (key := observed(state)) not in seen:
                seen[key] = values.action_values(state)[0], defaultdict(list)
            found, actions = seen[key]
            came.append((weight, reward + np.nanmax(found)))
            for action in np.flatnonzero(np.isfinite(found)):
                play(state, action, weight, actions[action], 0.0)
        else:
            (chances,) = opponent.probabilities(Turn(variant, state, one, new_streams(1, 1)))
            for action in np.flatnonzero(chances):
                play(state, action, weight * chances[action], came, reward)

    for chance, state in every_deal(drawn):
        follow(state, chance, first, 0.0)
    return seen, sum(weight * value for weight, value in first)


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
def test_values_of_choices_are_the_means_of_what_follows(game, options, opponent):
    variant = configure(game, **options)
    values = response_values(variant, opponent)
    for seat in range(variant.facts.num_seats):
        seen, start = listed(Drawn(variant), resolve(opponent or "random"), seat, values)
        assert values.start(seat) == pytest.approx(start, abs=1e-12)
        for found, actions in seen.values():
            for action, followed in actions.items():
                weights, worth = np.array(followed).T
                assert found[action] == pytest.approx(weights @ worth / weights.sum(), abs=1e-12)
