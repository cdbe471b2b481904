"""Values of choices against a fixed opponent in Liar's Dice, compared with plain recursion and with play."""

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.core.batch import Batch
from dice_envs.exact import asked, response_values
from dice_envs.games.liars_dice.exact import values as module
from dice_envs.games.liars_dice.exact.solver import solution_of
from dice_envs.games.liars_dice.exact.values import situations, traits
from tests.exact.test_response_values import played
from tests.support.awkward import Mixed
from tests.support.liars_dice_tables import plain_of, position
from tests.support.policies import Plays, uneven
from tests.support.subsets import covering, few

GAMES = [
    {"num_dice": 1, "num_faces": 4},
    {"num_dice": (2, 1), "num_faces": 3},
    {"num_dice": (1, 2), "num_faces": 3, "wild": "ones", "starter": "first"},
    {"num_dice": 2, "num_faces": 2, "wild": "highest"},
    {"num_dice": (2, 1), "num_faces": 2, "rules": "openspiel"},
    {"num_dice": 1, "num_faces": 3, "raise_rule": "either"},
]
FORGETFUL = {"past_rounds": False}  # so that `uneven` does not observe past rounds
BY_SEAT = Mixed(lambda turn: turn.seats == 0)  # plays at random in one seat only
OPPONENTS = ["nash", "numbers", "numbers:bluff=0.5", "random", uneven, BY_SEAT]


def decisions(variant, opponent, seat):
    """States in which the seat is to move in games of a random player against the opponent."""
    *_, states = played(variant, opponent, 120, 1)
    return states[states["seat"] == seat]


@covering(("options", "opponent"), GAMES, OPPONENTS, most=3)
def test_values_are_those_of_plain_recursion(options, opponent):
    """At each state, of each legal action, foolish ones too."""
    variant = configure("liars_dice", **options, **FORGETFUL)
    found = response_values(variant, opponent)
    for seat in range(2):
        agent = asked(opponent, variant)
        plain, faces = plain_of(variant, agent, agent), variant.options.num_faces
        assert found.start(seat) == pytest.approx(2 * plain.mean("responds", seat) - 1, abs=1e-9)
        states = decisions(variant, opponent, seat)
        assert len(states) >= 50
        for state, values in zip(states, found.action_values(states), strict=True):
            bids = [(bid // faces + 1, bid % faces + 1) for bid in state["bids"][: state["num_bids"]].tolist()]
            dice, hand = state["dice"][:2].tolist(), np.repeat(range(1, 9), state["counts"][seat]).tolist()
            expected, starter = np.full(len(values), np.nan), int(state["starter"])
            for action, value in plain.choices((*dice[starter:], *dice[:starter]), starter, tuple(bids), tuple(hand)).items():
                expected[-1 if action == "call" else (action[0] - 1) * faces + action[1] - 1] = 2 * value - 1
            assert values == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_the_solution_says_the_same():
    """Its action values, which it finds state by state from its own tree, are chances to win against itself."""
    variant = configure("liars_dice", num_dice=2)
    solution = solution_of(variant.options, 1e-3)
    states = decisions(variant, "nash", 0)[:30]
    for state, values in zip(states, response_values(variant, "nash").action_values(states), strict=True):
        expected = 2 * solution.action_values(state).values - 1
        assert values == pytest.approx(expected, abs=2 * max(solution.exploitability, 0) + 1e-9, nan_ok=True)


def test_too_large_a_table_is_refused_before_it_is_filled(monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    with pytest.raises(
        ValueError, match=r"num_dice=2 with num_faces=5 needs [\d,]+ numbers for the value of a choice; 125 at most"
    ):
        response_values("liars_dice", "numbers", num_dice=2, num_faces=5)


def test_equal_opponents_share_a_table():
    variant = configure("liars_dice", num_dice=1, num_faces=3)

    def table(opponent):
        return response_values(variant, opponent).action_values.args[1]

    assert table("numbers:bluff=0.5") is table("numbers:bluff=0.5")
    assert table("numbers:bluff=0.5") is not table("numbers")
    assert table(uneven) is not table(uneven), "a function may change"


def test_progress_ends_where_it_should():
    told = []
    for options in ({"num_dice": 2, "num_faces": 3}, {"num_dice": (2, 1), "num_faces": 3}):
        response_values("liars_dice", uneven, done=lambda amount, total: told.append(amount / total), **options, **FORGETFUL)
        assert sum(told) == pytest.approx(1)
        told.clear()


def test_headings():
    variant = configure("liars_dice", num_dice=(2, 1))
    batch = Batch(variant, 1, 0)
    batch.states["starter"], batch.states["seat"] = 0, 0
    states, actions = [], [0, 6, variant.params.call]
    for action in actions:
        states.append(batch.states[0].copy())
        batch.play(np.array([action]), np.array([0]))
    found = situations(variant, np.array(states), np.array(actions))
    assert {heading: labels.tolist() for heading, labels in found.items()} == {
        "round": ["1"] * 3,
        "dice left": ["2 v 1", "1 v 2", "2 v 1"],
        "decision": ["first bid", "raise", "call"],
    }
    single = configure("liars_dice", num_dice=2, rounds="single")
    assert set(situations(single, np.array(states), np.array(actions))) == {"dice left", "decision"}


@few(
    2,
    ("options", "dice", "faces"),
    [
        ({}, (2, 2, 5), {1, 3, 4, 6}),
        ({"wild": "ones"}, (2, 2, 5), {1, 3, 4, 6}),
        ({"wild": "ones"}, (1, 2, 2), set()),
        ({"wild": "highest"}, (6, 2, 2), set()),
        ({"rules": "perudo"}, (3, 3, 3), {1, 2, 4, 5, 6}),
    ],
)
def test_a_bluff_is_a_bid_on_a_face_of_which_one_holds_none(options, dice, faces):
    variant = configure("liars_dice", num_dice=3, **options)
    state = Batch(variant, 1, 0).states[0].copy()
    state["counts"][state["seat"]] = np.bincount(np.array(dice) - 1, minlength=state["counts"].shape[1])
    (found,) = traits(variant, np.array([state]))["bluffs"]
    words = [variant.describe_action(int(action)) for action in np.flatnonzero(found)]
    assert {int(each.split(" x ")[1]) for each in words} == faces
    assert len(words) == 6 * len(faces)


@pytest.mark.parametrize("options", [{"num_dice": 2, "wild": "ones"}, {"num_dice": (2, 3), "num_faces": 3}], ids=str)
def test_the_solution_is_read_as_it_plays(options):
    """Its numbers, read without asking, against its answers; whichever the walk takes, a best response wins as often."""
    variant = configure("liars_dice", **options)
    by_reading = response_values(variant, "nash")
    assert asked("nash", variant).promises.solution is not None
    by_asking = response_values(variant, Plays("nash", looks_back=False))
    for seat in range(2):
        assert by_reading.start(seat) == pytest.approx(by_asking.start(seat), abs=1e-12)
        states = decisions(variant, "nash", seat)
        expected = by_asking.action_values(states)
        assert by_reading.action_values(states) == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_positions_that_the_opponent_never_reaches():
    """Its dice are taken for fair there, and raises as if they were called. With one die it never bids 1 × 1."""
    variant = configure("liars_dice", num_dice=1, num_faces=3, rounds="single")
    state = position(variant, [[3], [1]], [0])
    values = response_values(variant, "numbers").action_values(state[None])[0]
    assert values == pytest.approx([np.nan] * 3 + [2 / 3 - 1, -1, -1, -1], abs=1e-12, nan_ok=True)
