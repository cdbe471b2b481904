"""Options: how they are written, which values are refused, and that messages stay short."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_envs import configure, load, names
from dice_envs.agent.specs import make_agent
from dice_envs.core.options import MAX_SHOWN, parse_options, shown
from tests.games.test_conformance import check_facts
from tests.support.interfaces import refused

TOO_LONG_TO_PRINT = 10**5000  # Python refuses to write whole numbers of more than 4300 digits


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("5", 5), ("-5", -5), ("0.25", 0.25), (".5", 0.5), ("5.", 5.0), ("-0.0", -0.0), ("1e-3", 0.001)),
        *(("none", None), ("TRUE", True), ("false", False)),
        *((word, word) for word in ("ones", "nan", "0x10", "1_000", "{[]}", "a=b", "٣")),  # the last is no ASCII digit
        *((numbers, (5, 4)) for numbers in ("5,4", "[5, 4]", "(5,4)")),
        *(("5,", (5,)), ("[]", ()), ("a, 1.5,none", ("a", 1.5, None))),
    ],
)
def test_values(text, value):
    (parsed,) = parse_options([f"key={text}"]).values()
    assert parsed == value
    assert type(parsed) is type(value)


def test_names_may_have_hyphens():
    assert parse_options(["num-dice = 5", "wild=none"]) == {"num_dice": 5, "wild": None}


@pytest.mark.parametrize("pair", ["num_dice", "=5", "num_dice=", " = ", "num_dice=  "])
def test_an_option_is_a_key_and_a_value(pair):
    with pytest.raises(ValueError, match="an option is written KEY=VALUE, not "):
        parse_options([pair])


@pytest.mark.parametrize("text", ["[[5,4],3]", "5,,4", ",", "[,]", "[5,4", "5,4)", "[5,4)", "5,{4}", "(1),(2)"])
def test_lists_hold_no_lists(text):
    with pytest.raises(
        ValueError, match="^num_dice must be a number, a word, true, false, none, or a list of these such as 5,4"
    ):
        parse_options([f"num_dice={text}"])


@pytest.mark.parametrize("text", ["-", "1+", "[", "(", "{", "1", ",", "1,", "[],", "1e", " ", "\n", "'", "=", "\0", "é"])
def test_long_values_cost_no_stack_and_get_a_short_answer(text):
    with pytest.raises(ValueError, match=".") as caught:
        configure("liars_dice", **parse_options([f"num_dice={text * 10**5}"]))
    assert len(str(caught.value)) < 400
    assert "num_dice" in str(caught.value)


@given(st.text(alphabet="01.eE+-_[](){},:'\"= \naNnoe∞٣", max_size=40))
def test_whatever_is_written_is_a_plain_value_or_refused(text):
    try:
        values = list(parse_options([f"key={text}"]).values())
    except ValueError:
        return
    for value in values:
        for entry in value if isinstance(value, tuple) else [value]:
            assert entry is None or type(entry) in (bool, int, float, str)


def test_shown():
    for value, text in (
        *((7, "7"), ("ones", "'ones'"), ((5, 4), "(5, 4)"), (None, "None"), ("x" * 1000, " (1,000 characters)")),
        *(([1] * 1000, text) for text in ("[1, 1, 1", " (1,000 entries)")),
        *((number, "a number of about 5,001 digits") for number in (TOO_LONG_TO_PRINT, -TOO_LONG_TO_PRINT)),
        ([TOO_LONG_TO_PRINT], "[a number of about 5,001 digits]"),
        (Unprintable(), "Unprintable"),
        (np.zeros(10**6), "array([0., 0., 0."),
        (np.zeros((2, 2)), "array([[0., 0.], [0., 0.]])"),
        (functools.reduce(lambda inner, _: [inner], range(10**5), []), "[[[[[…]]]]]"),
    ):
        assert text in shown(value)
        assert len(shown(value)) <= MAX_SHOWN + 40


ODD = [
    *(TOO_LONG_TO_PRINT, "x" * 10**5, [1] * 10**5, (123456,) * 10**5, [[1] * 1000] * 1000, {"a": TOO_LONG_TO_PRINT}, ()),
    *(np.zeros(10**5), np.array(5), float("nan"), float("inf"), "\n\0\u2028", True, Unprintable(), object()),
]


@pytest.mark.parametrize("game", names())
def test_odd_option_values_are_refused_in_few_words(game):
    for option in load(game).options.__dataclass_fields__:
        for value in ODD:
            problem, _ = refused(functools.partial(configure, game, **{option: value}))
            if problem is not None:
                assert len(problem) < 400
                assert option in problem


EXTREMES = [
    ("fatestones", {"dice": (111111, 666666) * 16383, "hand_size": 5}),
    ("liars_dice", {"num_players": 6, "num_dice": 6, "num_faces": 8, "raise_rule": "either", "wild": "highest"}),
    ("score_dice", {"pool_a": (100,) * 24, "pool_b": (100,) * 24, "ties": "reroll", "reward": "score"}),
    ("score_dice", {"pool_a": (2,) * 24, "pool_b": (2,) * 24, "ties": "reroll"}),
    ("score_dice", {"pool_a": (100,) * 24, "pool_b": (2,) * 24, "ties": "a"}),
    (
        "shakes",
        {"num_players": 6, "variation": "competitive", "mode": "maesters", "num_patients": 200, "goal": 200, "efficacy": 5},
    ),
    ("shakes", {"num_players": 2, "mode": "physician", "num_patients": 200, "goal": 200}),
    ("thirties", {"num_players": 6, "rounds": 1000, "num_dice": 8, "num_faces": 8, "target": 64}),
    ("thirties", {"num_players": 2, "rounds": 1000, "num_dice": 8, "num_faces": 8, "target": 1}),
]


@pytest.mark.parametrize(("game", "options"), EXTREMES)
def test_the_largest_options_fit_into_the_state(game, options):
    """An overflow would make a field negative, so no field may be below -1, except scores that can be."""

    def no_field_is_negative(states):
        for field in states.dtype.names:
            if states.dtype[field].base.kind == "i" and (game, field) != ("score_dice", "score"):
                assert states[field].min() >= -1, field

    check_facts(configure(game, **options), 4, no_field_is_negative)


def test_unknown_names_are_not_repeated_at_length():
    for wrong in (
        lambda: configure("x" * 10**6),
        lambda: configure("liars_dice", **{"x" * 10**6: 1}),
        lambda: make_agent("numbers:" + "x" * 10**6 + "=1"),
        lambda: make_agent("numbers:" + "bluff=1," * 10**5 + "x"),
        *(
            lambda before=before: make_agent(before + "x" * 10**6)
            for before in ("", "numbers:bluff=", "random:", "ppo:", "ppo:path=a,greedy=", "thirties:")
        ),
    ):
        with pytest.raises(ValueError, match=".") as caught:
            wrong()
        assert len(str(caught.value)) < 600


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("fatestones", {"hand_size": 2}),
        ("fatestones", {"dice": (123456,) * 6}),
        ("liars_dice", {"num_dice": (5, 4), "num_faces": 8}),
        ("score_dice", {"pool_a": (100,) * 3}),
        ("shakes", {"num_patients": 100}),
        ("thirties", {"num_dice": 8, "num_faces": 8, "rounds": 100}),
    ],
)
def test_small_numbers_of_numpy_are_as_good_as_python_s(game, options):
    """They once overflowed: 2 * hand_size * 100 steps in an int8. Spans of time are none, though Python's int takes them."""
    time = {name: np.array(value, "m8[ns]")[()] for name, value in options.items()}
    assert any(name in refused(functools.partial(configure, game, **time))[0] for name in options)
    small = {
        name: tuple(map(np.int32, value)) if isinstance(value, tuple) else np.int8(value) for name, value in options.items()
    }
    assert configure(game, **small).facts == configure(game, **options).facts
    assert configure(game, **small).changed_options() == configure(game, **options).changed_options()
    assert type(next(iter(configure(game, **small).changed_options().values()))) in (int, tuple), "not NumPy's"


@pytest.mark.parametrize("dice", [[5, 4], np.array([5, 4])])
def test_lists_and_arrays_are_tuples_of_pythons_numbers(dice):
    found = configure("liars_dice", num_dice=dice).options.num_dice
    assert (found, [*map(type, found)]) == ((5, 4), [int, int])
