"""TextArena's loop, registry and wrappers on games in words. TextArena has its own virtual environment: `make test-words`."""

import copy
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("textarena")

import textarena
from textarena.envs.LiarsDice.env import LiarsDiceEnv

from dice_envs import Batch, configure, names
from dice_envs.core.dice import faces_of
from dice_envs.core.game import OVER
from dice_envs.envs.text.textarena import GameEnv
from tests.support.chat_server import legal_moves

PAGE = Path(__file__).parents[2] / "docs" / "words.md"
PLAYERS = [(name, configure(name).facts.num_seats) for name in names()]
EVERY_WRAPPER = ["LLMObservationWrapper", "GameMessagesAndCurrentBoardObservationWrapper", "GameBoardObservationWrapper"]


class Scripted(textarena.Agent):
    """Plays a random one of the legal moves in the last prompt of what it reads."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.read = []

    def __call__(self, observation):
        self.read.append(observation)
        return f"Let me think.\n**Move: {self.rng.choice(legal_moves(observation))}**"


def play(env, players, seed):
    """TextArena's own loop."""
    env.reset(num_players=len(players), seed=seed)
    done = False
    while not done:
        player, observation = env.get_observation()
        done, _ = env.step(action=players[player](observation))
    return env.close()


@pytest.mark.parametrize("count", [2, 3, 5])
def test_lock_step_with_textarenas_own_liars_dice(count):
    """`rules="textarena"`: the same player to move, legal bids, dice left and winner. TextArena's bids have no upper limit."""
    rng, batch = np.random.default_rng(count), Batch("liars_dice", 40, seed=7, rules="textarena", num_players=count, num_dice=3)
    for game, state in enumerate(batch.states):
        theirs, done = LiarsDiceEnv(num_dice=3), False
        theirs.reset(num_players=count, seed=game)
        while not done:
            held = theirs.state.game_state
            assert state["seat"] == theirs.state.current_player_id
            assert state["dice"][:count].tolist() == list(held["remaining_dice"].values())
            held["dice_rolls"] = {seat: faces_of(state["counts"][seat]) for seat in range(count)}
            legal, bids = batch.legal()[game], [divmod(action, 6) for action in range(6 * int(state["in_play"]))]
            may_bid = [theirs._is_valid_bid(quantity + 1, face + 1, held["current_bid"])[0] for quantity, face in bids]
            assert legal[: len(bids)].tolist() == may_bid
            assert not legal[len(bids) : -1].any()
            assert legal[-1] == (held["last_bidder_id"] is not None)
            action = rng.choice(np.flatnonzero(legal)[: rng.choice([1, 5, len(legal)])])  # mostly small raises
            said = batch.variant.describe_action(int(action)).replace(" x ", ", ")
            done, _ = theirs.step("[Call]" if said == "call" else f"[Bid: {said}]")
            batch.play([action], np.array([game]))
        rewards, _ = theirs.close()
        assert state["seat"] == OVER
        assert max(rewards, key=rewards.get) == batch.rewards[game].argmax() == state["dice"].argmax()


def returns_through_arrays(table):
    """The returns of the moves of a game, played again on arrays alone."""
    batch, returns = Batch(table.variant, 1, seed=table.sitting.seed), np.zeros(table.variant.facts.num_seats)
    for entry in table.sitting.history():
        batch.play([entry.action])
        returns += batch.rewards[0]
    assert batch.seats[0] == OVER
    return returns.tolist()


@pytest.mark.library("textarena", "games in words, every seat a player")
@pytest.mark.parametrize(("name", "count"), PLAYERS)
@pytest.mark.parametrize("wrapper", EVERY_WRAPPER)
def test_whole_games(name, count, wrapper):
    raw = textarena.make(f"dice_envs/{name}-v0-raw")
    players = [Scripted(seat) for seat in range(count)]
    env = textarena.wrappers.ActionFormattingWrapper(getattr(textarena.wrappers, wrapper)(raw))
    rewards, info = play(env, players, seed=3)
    assert list(rewards.values()) == pytest.approx(returns_through_arrays(raw.table))
    assert sum(info[seat]["turn_count"] for seat in range(count)) == len(raw.table.sitting)
    assert not any(info[seat]["invalid_move"] for seat in range(count))
    for seat, player in enumerate(players):
        assert player.read[0].count("Rules:") == player.read[-1].count("Rules:") == 1, seat


def test_the_default_wrapper_makes_one_text_of_all_that_was_read():
    env = textarena.make("dice_envs/liars_dice-v0", num_dice=1, starter="first")
    env.reset(num_players=2, seed=1)
    _, first = env.get_observation()
    assert first.startswith("\n[GAME] The game is Liar's Dice. You are player 0")
    env.step("1 x 3")
    env.get_observation()
    env.step("2 x 3")
    player, text = env.get_observation()
    assert player == 0
    assert text.startswith(first)
    assert "- player 1: 2 x 3" in text


@pytest.mark.parametrize("name", ["fatestones", "score_dice"])
def test_a_choice_stays_secret_until_both_have_chosen(name):
    read = []
    for action in (0, 2):
        env = textarena.make(f"dice_envs/{name}-v0")
        env.reset(num_players=2, seed=5)
        env.step(f"Move: {configure(name).describe_action(action)}")
        read.append(env.get_observation())
    assert read[0] == read[1]


def test_an_illegal_reply_is_explained_and_a_second_one_loses():
    env = textarena.make("dice_envs/liars_dice-v0", num_dice=1, starter="first")
    for correct in (True, False):
        env.reset(num_players=2, seed=1)
        env.get_observation()
        assert env.step("call") == (False, {})
        player, text = env.get_observation()
        assert player == 0
        assert re.search(r"Reason: read call: .*no bid to call yet; allowed: 1 x 1, .*resubmit", text)
        done, _ = env.step("1 x 3" if correct else "I give up")
        assert done is not correct
    rewards, info = env.close()
    assert rewards == {0: -1.0, 1: 0.0}
    assert info[0]["invalid_move"]
    assert "player 0 made no legal move" in info[0]["reason"]
    with pytest.raises(RuntimeError, match="reset"):
        env.step("1 x 3")


def test_the_number_of_players_is_an_option():
    env = GameEnv("liars_dice", num_dice=1)
    for count in (2, 3, 5):
        rewards, _ = play(textarena.wrappers.LLMObservationWrapper(env), [Scripted(seat) for seat in range(count)], seed=2)
        assert len(rewards) == count
    for fixed in (GameEnv("liars_dice", num_players=3), GameEnv(configure("fatestones")), GameEnv("score_dice")):
        with pytest.raises(ValueError, match="num_players must be"):
            fixed.reset(num_players=4)
    with pytest.raises(ValueError, match="num_players"):
        env.reset(num_players=7)


def test_seeds_and_copies_repeat_a_game():
    env = textarena.make("dice_envs/thirties-v0")
    env.reset(num_players=2, seed=7)
    other = copy.deepcopy(env)
    move = legal_moves(env.get_observation()[1])[0]
    for each in (env, other):
        each.step(move)
    assert env.get_observation()[1].endswith(other.get_observation()[1][-500:])
    seeds = set()
    for seed in (7, 7, 8, *[None] * 20):
        env.reset(num_players=2, seed=seed)
        seeds.add(env.table.sitting.seed)
    assert len(seeds) == 22
    assert {7, 8} < seeds
    assert max(seeds) >= 2**60, "fresh ones have 64 bits"


def test_wrong_arguments():
    with pytest.raises(ValueError, match="error_allowance"):
        GameEnv("thirties", error_allowance=-1)
    env = textarena.make("dice_envs/thirties-v0-raw")
    with pytest.raises(RuntimeError, match="reset"):
        env.step("hold")
    with pytest.raises(ValueError, match="seed"):
        env.reset(num_players=2, seed=-1)


def test_the_documentations_program_runs():
    (program,) = re.findall(r"```python\n(import textarena\n.*?)```", PAGE.read_text(), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(eval(done.stdout)) == {0, 1, 2}
