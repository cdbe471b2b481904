"""Replies of the forms in which people and language models write their moves."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dice_envs import Batch, configure, names
from dice_envs.envs.text import IllegalMove, Unreadable, read_reply
from dice_envs.envs.text.replies import MOST_READ, read_move
from tests.support.variants import MORE_OPTIONS

# Forms of a reply; {} is a move in the game's words, {up} and {cap} the same in capitals and with a capital.
TEMPLATES = (
    "{}",
    "{up}",
    "{cap}",
    "{cap}.",
    "{cap}!",
    "  {}  ",
    "\n\n{}\n\n",
    '"{}"',
    "'{}'",
    "`{}`",
    "“{}”",
    "**{}**",
    "*{}*",
    "__{}__",
    "> {}",
    "- {}",
    "* {}",
    "1. {}",
    "2) {}",
    "(a) {}",
    "# {}",
    "```\n{}\n```",
    "```text\n{}\n```",
    "[{}]",
    "({})",
    "<{}>",
    "Move: {}",
    "move: {}",
    "MOVE: {up}",
    "Move:{}",
    "Move : {}",
    "Move = {}",
    "Move: **{}**",
    "**Move:** {}",
    "**Move: {}**",
    "**Move**: `{}`",
    "### Move: {}",
    "Move: {}.",
    'Move: "{}"',
    "Move:\n{}",
    "**Move:**\n\n{cap}",
    "My move: {}",
    "My move is {}.",
    "My move is: {}",
    "Answer: {}",
    "Final answer: {}",
    "**Final Answer:** {}",
    "The answer is {}.",
    "Action: {}",
    "Chosen action: {}",
    "Decision: {}",
    "My choice: {}",
    "I play {}.",
    "I choose {}",
    "I'll go with {}.",
    "I’ll go with {}.",
    "I will go with **{}**.",
    "I would play {}",
    "Let me play {}.",
    "Let's go with {}!",
    "So I choose: {}",
    "Therefore, my move is {}.",
    "Okay, {}.",
    "{}, please",
    '{{"move": "{}"}}',
    '{{"action": "{}", "confidence": 0.85}}',
    '{{"reasoning": "The odds are good, so", "move": "{}"}}',
    '{{\n  "thought": "The last move was risky.",\n  "move": "{}",\n  "confidence": 90\n}}',
    '```json\n{{"move": "{}"}}\n```',
    "{{'move': '{}'}}",
    "<move>{}</move>",
    "<answer>{}</answer>",
    "<answer>\n{}\n</answer>",
    "<think>I could do something else. Move: nothing</think>\n{}",
    "<think>\nHm.\n</think>\n\nMove: {}",
    "\\boxed{{{}}}",
    "The answer is $\\boxed{{\\text{{{}}}}}$.",
    "Let me think about the odds.\nIt is a close decision.\n\nMove: {}",
    "Step 1: count the dice.\nStep 2: decide.\n\n{cap}",
    "Move: {}\n\nGood luck to everybody!",
    "Move: {}\n(This keeps the risk small.)",
    "Move: {} (about 62% likely to be right)",
    "{cap} because the odds are good.",
    "{cap}, since the risk is small.",
    "{cap} – the odds are good.",
    "I think the best is {}",
    "Best move: {}",
    "Given the odds, I should play {}.",
    "I was torn, but I choose {}.",
    "Last move: something else\nMove: {}",
    "Move: {}\r\n",
    "\ufeffMove: {}",
    "Move:\u00a0{}",
    "𝗠𝗼𝘃𝗲: {}",
)

VARIANTS = [
    *((name, {}) for name in names()),
    ("liars_dice", {"num_dice": 2, "exact_call": True, "rounds": "single"}),
    ("score_dice", {"pool_a": (12, 10, 8, 6, 4, 2), "pool_b": (6, 6, 6)}),
    ("shakes", {"mode": "physician", "num_players": 5}),
    ("shakes", {"mode": "physician", "num_players": 6, "treatments": "rules"}),
    ("shakes", {"mode": "physician", "treatments": ("Hot Mustard", "Straße 2 & Co", "the best bid")}),
    ("thirties", {"num_players": 1, "num_dice": 8, "num_faces": 8, "target": 64}),
    ("fatestones", {"dice": "all", "hand_size": 5}),
]

UNITS = ["", *"one two three four five six seven eight nine ten eleven twelve".split()]  # noqa: SIM905
PLURALS = ["", *"ones twos threes fours fives sixes sevens eights".split()]  # noqa: SIM905

# A bid of q dice with face f, in other words than the game's.
BIDS = (
    "{q}x{f}",
    "{q}X{f}",
    "{q}×{f}",
    "{q} × {f}",
    "{q}*{f}",
    "{q} * {f}",
    "{q} times {f}",
    "{q} {f}s",
    "{q} {f}'s",
    "{q} {plural}",
    "{words} {plural}",
    "{words} {f}s",
    "{cap} {plural}",
    "{words} {plural}!",
    "{words} times {unit}",
    "{words} x {unit}",
    "{q}, {f}",
    "({q}, {f})",
    "[{q}, {f}]",
    "{q} {f}",
    "I bid {q} x {f}",
    "I bid {words} {plural}",
    "I bid {words} {plural}.",
    "I'd bid {q} {plural}",
    "I say {words} {plural}!",
    "I raise to {words} {plural}.",
    "I raise: {q} x {f}",
    "I'll raise to {q} × {f}.",
    "My bid is {words} {plural}",
    "My bid: {q} x {f}",
    "Bid: {q} x {f}",
    "Bid {q} {f}s",
    "bid {q}x{f}",
    "at least {words} {plural}",
    "There are at least {words} {plural}.",
    "{q} dice showing {f}",
    "{words} dice showing a {unit}",
    "{q} dice of face {f}",
    "Move: {words} {plural}",
    "Answer: **{q} × {f}**",
    '{{"move": "{words} {plural}"}}',
    '{{"move": "{q}x{f}", "confidence": 70}}',
    "$\\boxed{{{q} \\times {f}}}$",
    "I think {q} x {f} is best.",
    "Given my dice I should bid {words} {plural} here.",
    "Current bid: 1 x 1\nI bid {q} x {f}",
    "I have two 4s. The last bid was 1 x 1. So I bid {q} x {f}.",
    "Options:\n1. 1 x 1\n2. call\n\nI think the best is {q} x {f} here.",
    "I bid {q} x {f}. If you raise, I may call.",
    "{words} {plural}, because I hold some myself",
)

# (game, what is said, the game's words)
OTHERS = (
    *(
        ("liars_dice", said, "call")
        for said in (
            "Call!",
            "I call.",
            "I call",
            "call it",
            "I'll call.",
            "Liar!",
            "LIAR",
            "You? Liar!",
            "liar.",
            "I call liar",
            "I say liar!",
            "I call your bluff.",
            "I'm calling: call",
            "I challenge.",
            "I challenge that bid.",
            "I'd challenge",
            "challenge",
            "Dudo!",
            "I doubt that",
            "I doubt it.",
            "doubt",
            "Call. 3 x 5 is too high.",
            "Call.\n3 x 5 is too high to be true.",
            "**CALL**",
            "My move: call\n\nI hope that works.",
            "Answer: I call",
            "So I think I should call.",
            "The best move is to call.",
            "The bid 9 x 6 is very unlikely, so I call.",
            "call (the odds are 0.3)",
            "Calling is best: call",
            "I will call the bid.",
        )
    ),
    *(
        ("thirties", said, "keep all")
        for said in (
            "Keep all!",
            "keep",
            "I keep all",
            "I keep everything.",
            "keep all dice",
            "Keep all of them.",
            "stop",
            "I stand",
            "0",
            "throw none again",
            "Move: keep everything",
            "keep them all",
        )
    ),
    *(
        ("thirties", said, "throw the lowest again")
        for said in (
            "throw the lowest again",
            "1",
            "throw 1",
            "Throw the lowest die again.",
            "reroll the lowest",
            "I reroll one",
            "throw the one lowest again",
            "rethrow the lowest die",
        )
    ),
    *(
        ("thirties", said, "throw the 3 lowest again")
        for said in (
            "3",
            "throw 3",
            "Throw three again",
            "I throw the three lowest dice again.",
            "reroll 3",
            "reroll the 3 lowest",
            "I'd reroll the three lowest dice",
            "the 3 lowest",
            "rethrow three",
            "Move: 3",
            "**3**",
            "3 lowest",
        )
    ),
    *(
        ("fatestones", said, "roll die 2")
        for said in (
            "2",
            "die 2",
            "Die #2",
            "roll 2",
            "I roll die two.",
            "the second die",
            "I choose the second die",
            "my 2nd die",
            "second",
            "Move: 2",
            "**2**",
            "I'll take die 2",
            "2.",
            "(2)",
            '{"move": 2}',
            '{"die": 2}',
            "Die 2, since it rolls high.",
        )
    ),
    *(
        ("score_dice", said, "die 4 (d6)")
        for said in (
            "4",
            "die 4",
            "die four",
            "Die 4!",
            "the fourth die",
            "I show die 4",
            "I choose die 4 (d6).",
            "play die 4",
            "4th die",
            "Move: die 4",
            '{"move": "die 4"}',
            "Move: 4",
        )
    ),
    *(
        ("shakes", said, "argue")
        for said in ("I argue", "Argue!", "I'll argue.", "I argue for my treatment.", "argue my case", "So I argue.")
    ),
    *(("shakes", said, "yield") for said in ("I yield", "Yield.", "I will yield.", "pass", "I pass.", "I yield to the others")),
)

UNREADABLE = (
    "", " ", "\n\n", "```\n```", "I surrender", "pass", "hello", "No.", "I do not call", "I don't call.", "Never call!",
    "Call?", "Should I call?", "call or 3 x 4", "3 x 4 or call", "3", "3 x", "x 4", "3 x 9", "0 x 4", "99 x 4", "-", "%",
    "3.5 x 4", "3 4 5", "3 x 4 5", "Last move: call", "Current bid: 3 x 4", "The last bid was 3 x 4", "Move:", "Move: ?",
    "Move: none", "call 3 x 4 maybe", "Player 1 may call", "3 x 4, 3 x 5, call", "call, no wait, 3 x 4", "they call",
    "Move: pass", "12345678901", "{}", "[]", "null", '{"move": null}', '{"move": ""}', "<move></move>", "\\boxed{}",
    "the exact odds are low", "call me a fool", "3 x 4 is too high", "I hold two 4s and three 5s.", "If you call I lose.",
    "What do you call?", "That bid of 3 x 4 is a bluff.",
)  # fmt: skip


@functools.lru_cache
def variant_of(name, options):
    return configure(name, **dict(options))


def forms():
    """(game, options, reply, words of the move)."""
    for name, options in VARIANTS:
        variant = configure(name, **options)
        for action in range(variant.facts.num_actions):
            words = variant.describe_action(action)
            for template in TEMPLATES:
                yield variant, template.format(words, up=words.upper(), cap=words[0].upper() + words[1:]), words
    variant = configure("liars_dice", num_dice=6)
    for quantity in range(1, 13):
        for face in range(1, 7):
            said = {"q": quantity, "f": face, "words": UNITS[quantity], "unit": UNITS[face], "plural": PLURALS[face]}
            for template in BIDS:
                yield variant, template.format(**said, cap=UNITS[quantity].capitalize()), f"{quantity} x {face}"
    for name, said, words in OTHERS:
        yield configure(name), said, words


def test_replies_of_all_forms_are_read():
    wrong, count = [], 0
    for variant, reply, words in forms():
        count += 1
        try:
            read = variant.describe_action(read_move(variant, reply))
        except Unreadable as problem:
            read = str(problem)
        if read != words:
            wrong.append((reply, words, read))
    assert not wrong, wrong[:20]
    assert count > 5000


@pytest.mark.parametrize("name", names())
def test_the_games_own_words_are_read_with_all_options(name):
    for options in [{}, *MORE_OPTIONS.get(name, [])]:
        variant = configure(name, **options)
        for action in range(variant.facts.num_actions):
            for form in ("{}", "Move: {}", "I think.\n\n**{}**"):
                assert read_move(variant, form.format(variant.describe_action(action))) == action


@pytest.mark.parametrize("reply", UNREADABLE)
def test_what_states_no_move_is_not_read(reply):
    with pytest.raises(Unreadable):
        read_move(configure("liars_dice", exact_call=True), reply)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("3 x 4\nor rather:\n4 x 4", "4 x 4"),
        ("Move: 3 x 4\nWait, that is too low.\nMove: 4 x 4", "4 x 4"),
        ("Move: 3 x 4\nI hope that nobody says: call", "3 x 4"),
        ("I could call.\nI bid 3 x 4.", "3 x 4"),
        ("Move: 3 x 4\nMove: see above\n5 x 4", "5 x 4"),
    ],
)
def test_the_last_line_that_states_a_move_counts(reply, words):
    variant = configure("liars_dice")
    assert variant.describe_action(read_move(variant, reply)) == words


def state_of(variant, seed=1, moves=0):
    batch = Batch(variant, 1, seed=seed)
    for _ in range(moves):
        batch.play(batch.legal().argmax(axis=1))
    return batch.states[0]


def test_errors_say_what_was_read_and_what_is_allowed():
    variant = configure("liars_dice", num_dice=1)
    first, second = state_of(variant), state_of(variant, moves=1)
    with pytest.raises(Unreadable, match=r"^no move in 'i fold'; allowed: 1 x 1, 1 x 2, .*2 x 6$"):
        read_reply(variant, first, "I fold")
    with pytest.raises(IllegalMove, match=r"^read call: there is no bid to call yet; allowed: 1 x 1") as caught:
        read_reply(variant, first, "Liar!")
    assert variant.describe_action(caught.value.action) == "call"
    with pytest.raises(
        IllegalMove, match=r"^read 1 x 1: 1 x 1 does not raise 1 x 1: the quantity must rise; allowed: .*, call$"
    ):
        read_reply(variant, second, "one one, I bid 1 x 1")
    with pytest.raises(Unreadable, match="several moves in one line: 1 x 2, call; allowed"):
        read_reply(variant, second, "call, 1 x 2")
    with pytest.raises(Unreadable, match="a reply must be text, not 3"):
        read_reply(variant, first, 3)
    assert read_reply(variant, second, "call") == 12
    batch = Batch(variant, 1, seed=1)
    for action in (0, 12):
        batch.play([action])
    with pytest.raises(ValueError, match="the game is over"):
        read_reply(variant, batch.states[0], "call")


LONG = (
    "<", "*", ".", "-", "(", "move", "move: ", "last move: ", '"', "{", "1", "1 x ", "1. ", "twenty ", " ", "\n", "'",
    "<think>", "</b", "\\boxed{", "call, not ",
)  # fmt: skip


def test_of_a_long_reply_the_end_is_read():
    variant = configure("liars_dice")
    assert read_move(variant, "I think. " * 100_000 + "\nMove: 3 x 4") == read_move(variant, "3 x 4")
    for sign in LONG:
        with pytest.raises(Unreadable):
            read_move(variant, sign * (2 * MOST_READ // len(sign)) + " z")


PIECES = st.sampled_from([
    *"x×*.,:;!?()[]{}<>\"'`|\\%#-–", "call", "exact", "three", "fours", "4", "3", "x 4", "move:", "answer", "\n", "</think>",
    "<move>", "{", '"move": "', "\\boxed{", "twenty", "one", "second", "die", "throw", "keep", "lowest", "not", "best", "I",
    "²", "٣", "ß", "\0",
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


@given(st.one_of(st.none(), st.binary(), st.integers(), st.floats(), st.lists(st.text())))
def test_what_is_no_text_is_unreadable(reply):
    with pytest.raises(Unreadable, match="must be text"):
        read_move(variant_of("thirties", ()), reply)
