"""Wrong options of each game are refused by name, with the value and what is allowed."""

import itertools
import typing

import pytest

from dice_envs import configure, load, names
from dice_envs.core.game import single_seat
from dice_envs.core.options import option_kinds
from dice_envs.games.liars_dice.raises import ROUND_KINDS

WRONG = {
    "fatestones": [
        ({"dice": "odd"}, "dice must be 'fair', 'all' or a list"),
        ({"dice": (123456, 654321, 111111, 111111, 111111, 111111)}, "654321 is no such code"),
        ({"dice": (123456,) * 5}, "at least 2 * hand_size = 6 codes, not 5"),
        ({"dice": 123456}, "dice must be"),
        ({"dice": (123456,) * 32_768}, "dice must list at most 32767 codes, not 32768"),
        ({"dice": [123456] * 10**6}, "dice must list at most 32767 codes, not 1000000"),
        ({"dice": ("1" * 5000,) * 6}, "(5,000 characters) is no such code"),
        ({"hand_size": 0}, "hand_size must be a whole number from 1 to 5, not 0"),
        ({"scratch": "stop"}, "scratch must be one of"),
    ],
    "liars_dice": [
        ({"num_players": 7}, "num_players must be a whole number from 2 to 6, not 7"),
        ({"num_dice": 0}, "num_dice must be a whole number from 1 to 6, not 0"),
        ({"num_dice": (5, 5, 5)}, "num_dice must be one number or 2"),
        ({"num_faces": 1}, "num_faces"),
        (
            {"raise_rule": "any"},
            "raise_rule must be one of 'quantity', 'either', 'perudo', 'nondecreasing', 'reset_quantity', not",
        ),
        ({"wild": "sixes"}, "wild"),
        ({"next_starter": "caller"}, "next_starter must be one of 'loser', 'after_caller', not 'caller'"),
        ({"rules": "perudo", "next_starter": "after_caller"}, "next_starter must be 'loser' with rules=\"perudo\", not 'after"),
        *(
            ({option: True, "next_starter": "after_caller"}, f"{option} must be false with next_starter='after_caller'")
            for option in ROUND_KINDS.values()
        ),
        ({"rules": "textarena", "raise_rule": "either"}, "raise_rule must be 'nondecreasing' with rules=\"textarena\""),
        ({"rounds": "double"}, "rounds"),
        ({"starter": 1}, "starter"),
        ({"reward": None}, "reward"),
        ({"rules": "dudo"}, "rules"),
        ({"rules": "openspiel", "wild": "ones"}, "wild must be 'highest' with rules="),
        ({"num_dices": 5}, "no option 'num_dices'; its options are: num_players"),
        ({"raise_rule": "perudo"}, "raise_rule must not be 'perudo' with wild=None: it needs wild='ones'"),
        ({"rules": "perudo", "wild": "highest"}, "wild must be 'ones' with rules=\"perudo\", not 'highest'"),
        *(({option: 1}, f"{option} must be true or false, not 1") for option in ROUND_KINDS.values()),
        ({"exact_call": "yes"}, "exact_call must be true or false, not 'yes'"),
    ],
    "score_dice": [
        ({"pool_a": ()}, "pool_a must be 1 to 24 sizes"),
        ({"pool_b": (6,) * 25}, "pool_b must be 1 to 24 sizes"),
        ({"pool_a": (6, 1)}, "pool_a must be a whole number from 2 to 100, not 1"),
        ({"pool_a": "6d6"}, "pool_a must be 1 to 24 sizes"),
        ({"pool_b": (6, 6.0)}, "pool_b must be a whole number"),
        ({"ties": "b"}, "ties must be one of 'none', 'a', 'reroll', not 'b'"),
        ({"open_hands": 1}, "open_hands must be true or false, not 1"),
        ({"reward": "points"}, "reward must be one of 'win', 'score'"),
    ],
    "shakes": [
        ({"num_players": 1}, "num_players must be a whole number from 2 to 6, not 1"),
        ({"mode": "doctor"}, "mode must be one of 'maesters', 'physician', not 'doctor'"),
        ({"variation": "war"}, "variation must be one of 'cooperative', 'competitive', not 'war'"),
        ({"mode": "physician", "variation": "competitive"}, 'variation must be "cooperative" with mode="physician", not'),
        ({"reward": "gold"}, "reward must be one of None, 'saved', 'win', not 'gold'"),
        ({"ties": "never"}, "ties must be one of 'again', 'random', not 'never'"),
        ({"variation": "competitive", "efficacy": 6}, "efficacy must be a whole number from 1 to 5, not 6"),
        ({"efficacy": 3}, 'efficacy must be left at 2 with variation="cooperative"'),
        ({"num_patients": 0}, "num_patients must be a whole number from 1 to 200, not 0"),
        ({"goal": 13}, "goal must be a whole number from 1 to 12, not 13"),
        ({"num_patients": 4}, "num_patients must be at least 5, the goal if none is given, not 4"),
        ({"num_patients": 4, "goal": 5}, "goal must be a whole number from 1 to 4, not 5"),
    ],
    "thirties": [
        ({"num_dice": 9}, "num_dice must be a whole number from 1 to 8, not 9"),
        ({"num_faces": 1}, "num_faces must be a whole number from 2 to 8, not 1"),
        ({"num_players": 7}, "num_players must be a whole number from 1 to 6, not 7"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to 1000, not 0"),
        ({"target": 65}, "target must be a whole number from 1 to 64, not 65"),
        (
            {"goal": "win", "num_players": 1},
            "goal must be one of 'maximize', 'minimize_loss', 'thirty_or_over', 'optimal', not 'win'",
        ),
        ({"goal": "optimal"}, "goal must be left at 'maximize' with num_players=2, not 'optimal'"),
        ({"goal": "optimal", "num_players": 1, "num_faces": 2, "target": 5}, "goal must not be 'optimal' with num_faces=2"),
    ],
}


@pytest.mark.parametrize(("name", "options", "words"), [(name, *row) for name, rows in WRONG.items() for row in rows])
def test_wrong_options_are_refused(name, options, words):
    with pytest.raises(ValueError, match=".") as caught:
        configure(name, **options)
    assert words in str(caught.value)


@pytest.mark.parametrize("make", [configure, single_seat])
@pytest.mark.parametrize("name", names())
def test_an_error_is_about_an_option_that_was_given(name, make):
    """Of every option alone, and of every two, with values at and beyond their limits."""
    given = {}
    for option, kinds in option_kinds(load(name).options).items():
        choices = [value for kind in kinds if typing.get_origin(kind) is typing.Literal for value in typing.get_args(kind)]
        given[option] = [*choices, None, True, 0, 1, 2, 4, 8, 9, 200, "x", (), (2, 2), (6,) * 4, ("a", "b")]
    alone = [{option: value} for option, values in given.items() for value in values]
    refused = {}
    for options in (*alone, *({**one, **other} for one, other in itertools.combinations(alone, 2))):
        try:
            make(name, **options)
        except ValueError as problem:
            refused[str(problem)] = options
    assert len(refused) > len(given)
    assert not {words: options for words, options in refused.items() if words.split()[0] not in options}
