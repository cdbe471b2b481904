"""Games in words: prompts keep secrets, games through words are games through arrays, and the environment's form."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from dice_envs import AgentError, configure, make_agent, names
from dice_envs.envs.text import IllegalMove, InWords, TextEnv, TextTable, Unreadable, prompt
from dice_envs.experiments.arena import play_table
from dice_envs.table.sitting import PERSON, Sitting
from tests.conftest import FUZZ
from tests.games.test_conformance import played_on
from tests.support.policies import Faulty
from tests.support.sittings import finish
from tests.support.subsets import few
from tests.support.variants import IDS, MARKED, SMALL, rerolled

every_variant = pytest.mark.parametrize(("name", "options"), MARKED, ids=IDS)
PLAYERS = {"liars_dice": "reader", "fatestones": "nash", "score_dice": "highest", "shakes": "argument", "thirties": "thirties"}


@every_variant
@settings(max_examples=15 * FUZZ)
@given(seed=st.integers(0, 2**40), moves=st.integers(0, 30), again=st.integers(0, 2**40), legal=st.booleans())
def test_states_that_a_seat_cannot_tell_apart_have_the_same_prompt(name, options, seed, moves, again, legal):
    variant = configure(name, **options)
    state = played_on(variant, seed, [moves]).states
    for seat in range(variant.facts.num_seats):
        other = rerolled(variant, state, seat, again)
        one, two = (prompt(variant, seat, state=each[0], legal=legal) for each in (state, other))
        assert one == two


@pytest.mark.parametrize("name", ["fatestones", "score_dice"])
def test_a_choice_is_told_once_both_have_chosen(name):
    tables = [TextTable(name, 5) for _ in range(2)]
    for table, action in zip(tables, (0, 2), strict=True):
        table.reply(table.variant.describe_action(action))
    one, other = (table.prompt(1) for table in tables)
    assert one == other
    assert "has chosen" in one
    assert tables[0].prompt(0) != tables[1].prompt(0), "seat 0 knows its own choice"


def test_a_prompt_word_by_word():
    table = TextTable("liars_dice", 1, num_dice=1, starter="first")
    rules, question = table.prompt().split("The position, as you see it:\n")
    assert rules.startswith(
        "The game is Liar's Dice. You are player 0, one of 2 players.\n\nRules:\n- 2 players begin with 1 die"
    )
    assert "Moves are written like this: 1 x 1 … 2 x 6, call" in rules
    assert question == (
        "- you (to move): 2\n- player 1: ?\n\nIt is your turn.\nLegal moves: 1 x 1, 1 x 2, 1 x 3, 1 x 4, 1 x 5, 1 x 6, 2 x 1, "
        '2 x 2, 2 x 3, 2 x 4, 2 x 5, 2 x 6\nEnd your reply with the line "Move: …", with your move in place of the dots.'
    )
    table.reply("1 x 3")
    table.reply("[2 x 3]")
    assert table.prompt().startswith(
        "Your last move, and what followed:\n- you: 1 x 3\n- player 1: 2 x 3\n\nThe position, as you see it:\n"
    )
    assert "Legal moves: call\n" in table.prompt()
    table.reply("Move: call")
    assert table.over
    assert "The game is over." in table.prompt(0)
    assert f"Your result: {table.returns[0]:+g}" in table.prompt(0)
    with pytest.raises(ValueError, match="the game is over"):
        table.prompt()


@pytest.mark.parametrize("name", names())
def test_legal_moves_and_rules_are_options(name):
    table = TextTable(name, 3)
    seat = table.seat
    whole = table.prompt()
    assert "Rules:\n- " in whole
    assert "Legal moves: " in whole
    assert "Legal moves: " not in prompt(table.sitting, seat, legal=False)
    assert "Rules:" not in prompt(table.sitting, seat, rules=False)
    others = [other for other in range(table.variant.facts.num_seats) if other != seat]
    for other in others[:1]:
        assert f"It is the turn of {table.variant.seat_name(seat)}." in table.prompt(other)
        assert "Legal moves" not in table.prompt(other)


def test_labelled_dice_are_named():
    text = TextTable("score_dice", 1, pool_a=(12, 10, 8), pool_b=(6, 6, 6)).prompt()
    assert "die 1 (d12): " in text
    assert "die 1: ?, die 2: ?, die 3: ?" in text


@pytest.mark.parametrize(("name", "spec"), PLAYERS.items())
def test_a_tables_agents_play_as_a_sittings(name, spec):
    variant = configure(name, **SMALL[name])
    count = variant.facts.num_seats
    for seed in range(3):
        sitting = finish(Sitting(variant, seed, [spec] * count))
        table = TextTable(variant, seed, [PERSON, *[spec] * (count - 1)])
        for entry in sitting.history():
            if not table.over and table.sitting.mover == entry.seat == 0 and len(table.sitting) == entry.number - 1:
                table.reply(entry.words)
        assert table.sitting.history() == sitting.history()[: len(table.sitting)]
        assert table.over


@few(5, ("name", "spec"), [*PLAYERS.items(), ("liars_dice", "adaptive"), ("liars_dice", "mcts:20"), ("fatestones", "ppo")])
def test_games_between_agents_are_the_same_in_words(name, spec):
    """Agents with memories, networks and search, too, and matches of several games."""
    variant = configure(name, **SMALL[name])
    others = ["random"] * (variant.facts.num_seats - 1)
    plain, spoken = (
        play_table(variant, [*map(make_agent, others), player], 6, 3, match=2) for player in (make_agent(spec), InWords(spec))
    )
    np.testing.assert_array_equal(plain, spoken)


@pytest.mark.library("gymnasium", "check_env")
@few(2, "name", names())
@pytest.mark.filterwarnings("ignore")
def test_the_environment_has_gymnasiums_form(name):
    check_env(TextEnv(name, **SMALL[name]), skip_render_check=True)


@few(2, "name", names())
def test_games_in_the_environment(name):
    env = TextEnv(name, **SMALL[name])
    rng = np.random.default_rng(1)
    for seed in range(20):
        text, info = env.reset(seed=seed)
        assert "Rules:" in text
        total, done = 0.0, False
        while not done:
            assert env.observation_space.contains(text)
            assert info["legal_moves"]
            move = str(rng.choice(info["legal_moves"]))
            text, reward, done, truncated, info = env.step(f"Move: {move}")
            assert env.variant.describe_action(info["action"]) == move
            assert "Rules:" not in text
            total += reward
        assert not truncated
        assert info["legal_moves"] == []
        assert total == pytest.approx(env.table.returns[info["seat"]])
        assert f"Your result: {total:+g}" in text
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step("call")


@pytest.mark.parametrize("seat", [0, 1, 2, "random"])
def test_a_seed_fixes_this_game_and_those_after_it_in_copies_too(seat):
    def course(copied=lambda env: env):
        env = TextEnv("liars_dice", ["numbers", "random"], seat, num_players=3, num_dice=2)
        texts = []
        for seed in (7, None, None):
            text, info = env.reset(seed=seed)
            assert seat in ("random", info["seat"])
            assert env.table.sitting.seats[(info["seat"] + 1) % 3].startswith("Numbers(")
            texts.append(text)
            done = False
            while not done:
                env = copied(env)
                text, _, done, _, info = env.step(info["legal_moves"][-1])
                texts.append(text)
        return texts

    assert course() == course() == course(copy.deepcopy) == course(lambda env: pickle.loads(pickle.dumps(env)))


def test_a_learner_that_is_out_has_ended():
    env = TextEnv("liars_dice", "random", 0, num_players=4, num_dice=1)
    early = 0
    for seed in range(30):
        _, info = env.reset(seed=seed)
        done = False
        while not done:
            text, reward, done, _, info = env.step(info["legal_moves"][-1])
        if not env.table.sitting.over:
            early += 1
            assert "You are out of the game." in text
            assert f"Your result: {reward:+g}" in text
            assert reward < 0
    assert early


def test_replies_without_a_legal_move():
    env = TextEnv("liars_dice", illegal_action="raise", seat=0, starter="first", num_dice=1)
    env.reset(seed=1)
    for reply, error, words in (
        ("I give up", Unreadable, "give up.*allowed: 1 x 1"),
        ("call", IllegalMove, "no bid to call yet"),
    ):
        with pytest.raises(error, match=words):
            env.step(reply)
    assert len(env.table.sitting) == 0
    env.step("1 x 1")
    lost = TextEnv("liars_dice", seat=0, starter="first", num_dice=1)
    for reply in ("I give up", "call", ""):
        lost.reset(seed=1)
        with pytest.warns() if reply == "I give up" else pytest.MonkeyPatch.context():
            text, reward, done, truncated, info = lost.step(reply)
        assert (reward, done, truncated) == (-1.0, True, False)
        assert info["illegal_action"] in text
        assert lost.observation_space.contains(text)
        assert info["legal_moves"] == []


@pytest.fixture(autouse=True)
def not_warned_yet(monkeypatch):
    monkeypatch.setattr("dice_envs.core.batch._warned", False)


def test_an_opponents_illegal_move_changes_nothing():
    opponent = Faulty()
    env = TextEnv("liars_dice", opponent, 0, starter="first")
    env.reset(seed=1)
    sitting = env.table.sitting
    before, opponent.wrong = sitting.state, 0
    with pytest.raises(AgentError, match="Faulty"):
        env.step("2 x 1")
    assert len(sitting) == 0
    assert sitting.state == before


def test_rules_in_every_prompt_or_in_none():
    for show_rules, wanted in (("always", True), ("never", False)):
        env = TextEnv("liars_dice", rules="perudo", show_rules=show_rules, seat=0)
        text, info = env.reset(seed=1)
        assert ("Rules:" in text) == ("Dice that show 1 are wild" in text) == wanted
        assert ("Rules:" in env.step(info["legal_moves"][0])[0]) == wanted


def test_rendering():
    env = TextEnv("liars_dice", render_mode="ansi")
    env.reset(seed=1)
    assert "Liar's Dice" in env.render()
    with pytest.raises(ValueError, match="reset options"):
        env.reset(options={"dice": [[1], [2]]})
