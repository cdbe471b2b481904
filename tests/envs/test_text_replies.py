"""The move in a reply: the line "Move: …", brackets, or nothing else; never what other text says."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_envs import Batch, configure, names
from dice_envs.core.game import OVER
from dice_envs.envs.text import IllegalMove, Unreadable, read_reply
from dice_envs.envs.text.words import MARKS_OF_THINKING, MOST_READ, read_move
from tests.support.variants import MORE_OPTIONS

# {} is a move in the game's words, {up} the same in capitals.
FORMS = (
    "{}", "{up}", "  {}\n", '"{}".', "**{}**", "[{}]", "```\n{}\n```", "I think so: [{}]!", "[{}] is better, so [{up}]",
    "Move: {}", "MOVE : {up}", "Move:{}.", "move: '{}'", "**Move:** {}", "**Move: {}**", "### Move: `{}`", "- Move: {}",
    "> Move: {}\r\n", "Move:\n{}", "**Move:**\n\n```\n{}\n```", "\ufeffMove:\u00a0{}", "𝗠𝗼𝘃𝗲: {}", '{{"move": "{}"}}',
    "[Let me think.\n**Move: {}**]", "Move: [{}]\n", "<think>Move: call [1 x 1]</think>\nMove: {}",
    "Not a call or 3 x 4.\nBad move: call\n\nMove: {}\nGood luck!", "Move: {up}\nAgain:\nMove: {}",
    *(form.format(*marks, move="{}") for marks in MARKS_OF_THINKING for form in (
        "{0}Move: 4 x 4{1}\n{move}", "Move: 4 x 4{1}Move: {move}", "Hm.{0}[4 x 4]{1}Move: {move}{0}call?{1}", "{0}{0}{1}{move}",
    )),  # some prompts end with the opening mark
)  # fmt: skip

VARIANTS = [
    *((name, options) for name in names() for options in [{}, *MORE_OPTIONS.get(name, [])]),
    ("shakes", {"mode": "physician", "treatments": ("Move: bark", "Straße 2 & Co", "the best bid")}),
    ("shakes", {"mode": "physician", "treatments": ("2x4", "2 x 4", "-2 x 4.")}),
]

UNREADABLE = (
    "", " ", "\n\n", "```\n```", "Move:", "Move: ?", "Move: none", "Move: [", "Move: 3", "Move: 3 x 9", "Move: 0 x 4", "3 x",
    "Bad move: call", "Do not move: call", "Last move: call", "My move: call", "Move call", "Moved: call", "The move: call",
    "-3 x 4", "Move: -3 x 4", "[-3 x 4]", "Move: 3 x -4", "Move: +3 x 4", "Move: 3.5 x 4", "Move: 3 x 4.5", "Move: 13 x 41",
    "Move: −3 x 4", "Move: – 3 x 4", "Move: 3 x 4%", "Move: 3 x 4?", "Move: 3 x 4 or call", "Move: not call", "call or 3 x 4",
    "3 x 4\ncall", "Move: call\nMove: 3 x 4", "Move: call\n[3 x 4]", "[call] or [3 x 4]?", "Move: call\nMove: see above",
    "I call.", "three fours", "Move: three fours", "Move: liar!", "Move: call, because it is high", "<move>call</move>",
    "<thinking><reflection>Hm.</reflection>\nMove: call\nbut wait", "Move: call\n<think>Is it?", "<think>a</thought>\ncall",
    *(f"{mark}\nMove: call\nbut wait" for mark in ("<think>" + MOST_READ * " ", "<THINKING>", "<reasoning>", "[THINK]")),
    *(f"{mark}\n[call]" for mark in ("<seed:think>", "◁think▷", "<|begin_of_thought|>", "<|channel|>analysis<|message|>")),
    '{"move": null}', '{"move": "call", "next": "3 x 4"}', "<think>Move: call</think>",
)  # fmt: skip


@functools.lru_cache
def variant_of(name, options):
    return configure(name, **dict(options))


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=lambda value: value if isinstance(value, str) else "")
def test_the_games_own_words_are_read_in_all_forms(name, options):
    variant = configure(name, **options)
    for action in range(variant.facts.num_actions):
        words = variant.describe_action(action)
        exact = sum(words.casefold() == variant.describe_action(other).casefold() for other in range(variant.facts.num_actions))
        assert exact == 1
        for form in FORMS if "treatments" not in options else ("{}", "Move: {}"):
            assert read_move(variant, form.format(words, up=words.upper())) == action, (form, words)


@pytest.mark.parametrize("reply", UNREADABLE)
def test_what_states_no_move_is_not_read(reply):
    with pytest.raises(Unreadable):
        read_move(variant_of("liars_dice", (("exact_call", True), ("num_dice", 6))), reply)


def test_signs_and_remarks_make_no_difference():
    for name, reply, words in (
        ("liars_dice", "Move: 3x4", "3 x 4"),
        ("liars_dice", "3 × 4!", "3 x 4"),
        ("liars_dice", "Move: 3 * 4", "3 x 4"),
        ("score_dice", "Move: Die 4", "die 4 (d6)"),
    ):
        variant = variant_of(name, ())
        assert variant.describe_action(read_move(variant, reply)) == words


def state_of(variant, seed=1, moves=0):
    """The state after so many moves, or before the last one of a shorter game."""
    batch = Batch(variant, 1, seed=seed)
    state = batch.states[0].copy()
    for _ in range(moves):
        batch.play(batch.legal().argmax(axis=1))
        state = batch.states[0].copy() if batch.seats[0] != OVER else state
    return state


def test_errors_say_what_was_read_and_what_is_allowed():
    variant = configure("liars_dice", num_dice=1)
    first, second = state_of(variant), state_of(variant, moves=1)
    with pytest.raises(Unreadable, match=r"^no move in 'I fold'; allowed: 1 x 1, 1 x 2, .*2 x 6$"):
        read_reply(variant, first, "I fold")
    with pytest.raises(IllegalMove, match=r"^read call: there is no bid to call yet; allowed: 1 x 1") as caught:
        read_reply(variant, first, "[call]")
    assert variant.describe_action(caught.value.action) == "call"
    with pytest.raises(
        IllegalMove, match=r"^read 1 x 1: 1 x 1 does not raise 1 x 1: the lowest bid on 1 is now 2 x 1; allowed: .*, call$"
    ):
        read_reply(variant, second, "Move: 1 x 1")
    with pytest.raises(Unreadable, match="several moves: 1 x 2, call; allowed"):
        read_reply(variant, second, "[call] [1 x 2]")
    with pytest.raises(Unreadable, match="a reply must be text, not 3"):
        read_reply(variant, first, 3)
    assert read_reply(variant, second, "call") == 12
    batch = Batch(variant, 1, seed=1)
    for action in (0, 12):
        batch.play([action])
    with pytest.raises(ValueError, match="the game is over"):
        read_reply(variant, batch.states[0], "call")


LONG = (*'<*["{1 \n', "[]", "move", "move: ", "move:\n", "move\n", "1 x ", "<think>", "</", "[call] ")


def test_of_a_long_reply_the_end_is_read():
    variant = variant_of("liars_dice", ())
    assert read_move(variant, "I think. " * 100_000 + "\nMove: 3 x 4") == read_move(variant, "3 x 4")
    for sign in LONG:
        with pytest.raises(Unreadable):
            read_move(variant, sign * (2 * MOST_READ // len(sign)) + "\nmove: z")


PIECES = st.sampled_from([
    *"x×*.,:;!?()[]{}<>\"'`|\\%#-–", "call", "3", "x 4", "3 x 4", "move:", "Move: ", "\n", "</think>", "{", '"move": "', "2",
    "throw", "keep all", "roll die", "argue", "not", "²", "٣", "ß", "\0", "\ud800",
])  # fmt: skip
RUBBISH = st.one_of(st.text(), st.lists(PIECES).map(" ".join), st.lists(PIECES).map("".join))


@pytest.mark.parametrize("name", names())
@given(reply=RUBBISH, seed=st.integers(0, 9), moves=st.integers(0, 1))
def test_rubbish_is_unreadable_or_illegal_or_a_legal_move(name, reply, seed, moves):
    variant = variant_of(name, ())
    state = state_of(variant, seed, moves)
    mask = np.zeros(variant.facts.num_actions, np.int8)
    variant.game.legal(variant.params, state, mask)
    action, message = None, ""
    try:
        action = read_reply(variant, state, reply)
    except (Unreadable, IllegalMove) as problem:
        message = str(problem)
    assert mask[action] if action is not None else "allowed: " in message
    assert "\n" not in message
