"""Games in words: what prompts say and hide, what replies are read as, and that words change nothing."""

import contextlib
import itertools
import string

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from dice_envs import agents, configure, names
from dice_envs.core.dice import new_streams
from dice_envs.envs.text import IllegalMove, TextEnv, Unreadable, prompt, read_reply
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.variants import MARKED

LIARS = configure("liars_dice")
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PLURALS = ["_", "ones", "twos", "threes", "fours", "fives", "sixes"]
# What people and models write around a move, which stands for {}.
FORMS = (
    "{}", "{}.", "**{}**", "`{}`", "Move: {}", "My move: {}", "ANSWER: {}", "Final answer: **{}**", "> {}", "- {}", "1. {}",
    "I play {}", "I choose {}.", "I'll go with {}!", "Let me think.\n\n{}", "Not sure.\n{}\n", "Action = {}",
    "{{\"move\": \"{}\"}}",
    "<answer>{}</answer>", "\\boxed{{{}}}", "My final move is: {}", "\"{}\"", "'{}'", "({})", "{} 🎲", "So: {}", "\t{}\t",
)  # fmt: skip
BIDS = (  # and what they write for a bid of n dice of face f
    "{n} x {f}", "{n}x{f}", "{n} X {f}", "{n}×{f}", "{n} × {f}", "{n} * {f}", "{n} {f}s", "{n} {f}'s", "{word} {plural}",
    "I bid {word} {plural}", "{n} {plural}", "bid {n} dice of {f}", "{n} dice showing {f}", "at least {word} {plural}",
    "{n} times {f}",
)  # fmt: skip


def people(variant, seed=1):
    return Sitting(variant, seed, [PERSON] * variant.facts.num_seats)


def positions(variant, seed, most=60):
    """A sitting after each move of a random game, with the seat to move."""
    sitting, rng = people(variant, seed), np.random.default_rng(seed)
    while not sitting.over and len(sitting) < most:
        yield sitting
        sitting.play(int(rng.choice(sitting.legal())))


# --- replies ----------------------------------------------------------------------------------------------------------


def test_thousands_of_replies_are_read_right():
    read = 0
    for name in names():
        variant = configure(name)
        every = range(variant.facts.num_actions)
        for form, action in itertools.product(FORMS, every):
            for words in (variant.describe_action(action), variant.describe_action(action).upper()):
                assert read_reply(variant, every, form.format(words)) == action, form.format(words)
                read += 1
    for form, bid, action in itertools.product(FORMS, BIDS, range(60)):
        n, face = action // 6 + 1, action % 6 + 1
        said = form.format(bid.format(n=n, f=face, word=NUMBERS[n], plural=PLURALS[face]))
        assert read_reply(LIARS, range(61), said) == action, said
        read += 1
    assert read > 25_000


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("3 x 4 is likely, and 5 x 2 is not.\nSo I call.", "call"),
        ("Call? No: the odds are good.\nMove: 2 x 6", "2 x 6"),
        ("2 x 6\nGood luck!", "2 x 6"),
        ("call, liar", "call"),
        ("I bid 10 sixes", "10 x 6"),
    ],
)
def test_the_last_line_that_names_a_move_counts(reply, words):
    assert LIARS.describe_action(read_reply(LIARS, range(61), reply)) == words


def test_a_short_reply_may_leave_words_out():
    variant = configure("thirties")
    for said, action in (("keep", 0), ("throw 2", 2), ("throw the lowest again, please", 1), ("3 lowest", 3)):
        assert read_reply(variant, range(6), said) == action
    assert read_reply(configure("fatestones"), range(3), "Die 2") == 1


def test_what_cannot_be_read_says_what_was_read_and_what_is_allowed():
    with pytest.raises(Unreadable, match="'3 x 4 or call' could mean 3 x 4 or call; allowed: 1 x 1, .* call"):
        read_reply(LIARS, range(61), "3 x 4 or call")
    with pytest.raises(Unreadable, match="'I pass.' states no move; allowed: keep all, throw the lowest again$"):
        read_reply(configure("thirties"), [0, 1], "Hm.\nI pass.")
    with pytest.raises(Unreadable, match="an empty reply states no move"):
        read_reply(LIARS, [0], " \n ")
    sitting = people(configure("liars_dice", starter="first"))
    sitting.play(20)
    with pytest.raises(IllegalMove, match="1 x 2 is not legal now: .*; allowed: ") as caught:
        read_reply(sitting.variant, sitting.legal(), "1 x 2", sitting.state)
    assert caught.value.action == 1


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), st.sampled_from(names()))
def test_rubbish_is_a_move_or_an_error_of_its_own(reply, name):
    variant = configure(name)
    legal = [0]
    with contextlib.suppress(Unreadable, IllegalMove):
        assert read_reply(variant, legal, reply) in legal


# --- prompts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("game", "options"), MARKED)
def test_a_prompt_tells_only_what_the_seat_may_know(game, options):
    variant = configure(game, **options)
    streams = new_streams(np.random.SeedSequence(5), 1)
    for sitting in positions(variant, 3):
        seat = sitting.mover
        before = prompt(sitting, seat)
        drawn = np.empty(1, variant.game.state)
        variant.kernels.reroll(
            variant.params, sitting._states[-1], np.zeros(1, np.int64), np.array([seat], np.int64), streams, drawn
        )
        sitting._states[-1], kept = drawn, sitting._states[-1]
        assert prompt(sitting, seat) == before
        sitting._states[-1] = kept


@pytest.mark.parametrize("name", names())
def test_a_prompt_says_rules_once_and_legal_moves_if_wanted(name):
    for sitting in positions(configure(name), 2, most=8):
        told = prompt(sitting, sitting.mover)
        assert "The rules:" in told
        words = [sitting.variant.describe_action(action) for action in sitting.legal()]
        assert f"Your legal moves: {', '.join(words)}." in told
        bare = prompt(sitting, sitting.mover, rules=False, legal=False)
        assert "The rules:" not in bare
        assert "legal moves" not in bare
        assert "It is your move" in bare
        assert TextEnv(name).observation_space.contains(told)


# --- the environment --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasium_accepts_it():
    check_env(TextEnv("liars_dice", num_dice=1), skip_render_check=True)


def play_in_words(name, agent, seed, **options):
    """The actions and the return of a game that an agent plays through prompts and replies."""
    env = TextEnv(name, "random", **options)
    env.reset(seed=seed)
    other = Sitting(env.variant, seed, [agent, *["random"] * (env.variant.facts.num_seats - 1)])
    total, done = 0.0, env.sitting.over
    while not done:
        while not other.over and other.mover != 0:
            other.step()
        action = other.step()
        _, reward, done, _, _ = env.step(f"Hm.\nI choose: {env.variant.describe_action(action)}")
        total += reward
    while not other.over:
        other.step()
    return env.sitting, total, other


def agents_of(variant):
    """Agents that play the variant and do not search."""
    for spec in agents.for_game(variant.game.name):
        with contextlib.suppress(ValueError, OSError):
            if spec not in ("mcts", "ppo", "champion", "best_response", "score_response", "adaptive"):
                Sitting(variant, 1, [spec, *["random"] * (variant.facts.num_seats - 1)])
                yield spec


def check_words(name, games):
    """Play this many games, divided among the agents."""
    options = {"num_dice": 2} if name == "liars_dice" else {}
    found = list(agents_of(configure(name, **options)))
    assert len(found) >= 2
    for spec in found:
        for seed in range(-(-games // len(found))):
            words, total, arrays = play_in_words(name, spec, seed, **options)
            assert words._actions == arrays._actions
            assert total == pytest.approx(arrays.returns[0])


@pytest.mark.parametrize("name", names())
def test_agents_play_the_same_through_words(name):
    check_words(name, 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_agents_play_the_same_through_words_in_many_games(name):
    check_words(name, 1000)


def test_a_reply_without_a_move_is_asked_again_or_loses():
    env = TextEnv("liars_dice", "numbers", num_dice=1, starter="first")
    env.reset(seed=1)
    asked, reward, done, _, info = env.step("pass")
    assert asked.startswith("'pass' states no move; allowed: ")
    assert (reward, done, len(env.sitting)) == (0.0, False, 0)
    assert "states no move" in info["problem"]
    _, _, _, _, info = env.step(info["legal"][0])
    assert "problem" not in info
    env = TextEnv("liars_dice", "numbers", illegal_action="lose", num_dice=1, starter="first")
    env.reset(seed=1)
    _, reward, done, _, _ = env.step("pass")
    assert (reward, done) == (-1.0, True)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("call")


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="illegal_action must be .*, not 'cry'"):
        TextEnv("thirties", illegal_action="cry")
    with pytest.raises(ValueError, match="seat must be .*, not 2"):
        TextEnv("thirties", seat=2)
    with pytest.raises(ValueError, match="unknown agent .nobody."):
        TextEnv("thirties", "nobody")
    with pytest.raises(ValueError, match="takes no reset options"):
        TextEnv("thirties").reset(options={"dice": 1})


def test_a_prompt_is_plain_text():
    allowed = set(string.printable) | set("×●○◐…←")
    for name in names():
        for sitting in positions(configure(name), 4, most=20):
            assert set(prompt(sitting, sitting.mover)) <= allowed
