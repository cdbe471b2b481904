"""Agents with a memory: where records are kept, when they begin, and that nothing else changes them."""

import contextlib

import numpy as np
import pytest

import dice_envs
from dice_envs import AgentError, Mixture, SeatEnv, SeatVectorEnv, Uniform, configure
from dice_envs.agent import Promises, ask, fresh_memory
from dice_envs.agents.liars_dice import Numbers
from dice_envs.agents.liars_dice.adaptive import Adaptive
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.experiments.arena import play_table, tournament
from dice_envs.experiments.arena.results import parts_of
from tests.conftest import scaled
from tests.support.interfaces import remember
from tests.support.liars_dice_games import winning_probability

ONE_DIE = {"num_dice": 1, "num_faces": 3}


class Counting:
    """Plays at random, and counts its turns."""

    promises = Promises(remembers=np.dtype([("turns", np.int64), ("seat", np.int8)]))

    def __init__(self, fails_at=None):
        self.fails_at, self.seen = fails_at, []

    def act(self, turn):
        self.seen.append(turn.memory["turns"].copy())
        turn.memory["turns"] += 1
        turn.memory["seat"] = turn.seats
        actions = Uniform().act(turn)
        if self.fails_at is not None and (turn.memory["turns"] >= self.fails_at).any():
            actions[0] = -1
        return actions


class Forgetful(Counting):
    """Plays at random, and uses no memory."""

    promises = Promises()

    def act(self, turn):
        assert turn.memory is None
        return Uniform().act(turn)


def test_a_record_is_written_in_place_and_kept_by_whoever_asks():
    variant = configure("liars_dice", **ONE_DIE)
    batch, streams, agent = Batch(variant, 5, seed=1), new_streams(1, 5), Counting()
    memory = fresh_memory(agent, 5)
    assert memory.dtype == Counting.promises.remembers
    assert not memory["turns"].any()
    ask(agent, variant, batch.states, np.array([1, 3]), streams, memory)
    ask(agent, variant, batch.states, np.array([3]), streams, memory)
    assert memory["turns"].tolist() == [0, 1, 0, 2, 0]
    ask(agent, variant, batch.states, np.array([3]), streams)
    assert memory["turns"].tolist() == [0, 1, 0, 2, 0], "what is not kept is lost"
    assert agent.seen[-1].tolist() == [0], "without a record it plays as when a match begins"


def test_a_wrong_action_changes_no_record():
    variant = configure("liars_dice", **ONE_DIE)
    batch, streams, agent = Batch(variant, 3, seed=1), new_streams(1, 3), Counting(fails_at=2)
    memory = fresh_memory(agent, 3)
    ask(agent, variant, batch.states, np.arange(3), streams, memory)
    before = memory.copy(), streams.copy()
    with pytest.raises(AgentError, match="not legal|-1"):
        ask(agent, variant, batch.states, np.arange(3), streams, memory)
    assert (memory == before[0]).all()
    assert (streams == before[1]).all()


@pytest.mark.parametrize(
    ("remembers", "words"),
    [
        ("no such type", "remembers must be a NumPy data type, not 'no such type'"),
        (2.5, "remembers must be a NumPy data type, not 2.5"),
        (np.dtype([("anything", object)]), "remembers must be a data type of a fixed size without objects"),
        (np.dtype([]), "remembers must be a data type of a fixed size"),
    ],
)
def test_what_is_no_record_is_refused(remembers, words):
    agent = Counting()
    agent.promises = Promises(remembers=remembers)
    with pytest.raises(AgentError, match=words):
        fresh_memory(agent, 1)


@pytest.mark.parametrize("match", [1, 4])
def test_a_table_keeps_records_for_a_match(match):
    variant = configure("liars_dice", **ONE_DIE)
    agent, games, turns = Counting(), 8, []
    watched = {"after_move": lambda states, numbers, shift: turns.append((numbers, shift))}
    play_table(variant, [agent, Forgetful()], games, seed=1, match=match, **watched)
    assert {number for numbers, _ in turns for number in numbers} == set(range(games))
    fresh = sum(int((each == 0).sum()) for each in agent.seen)
    assert fresh == games // match, "each match begins with nothing remembered, and no other game does"
    assert max(each.max() for each in agent.seen) >= match - 1
    for each, shift in turns:
        assert (shift == (each // match + each % match) % 2).all(), "seats rotate within a match and between matches"


def test_agents_that_do_not_remember_play_a_first_game_as_ever():
    variant = configure("liars_dice", num_dice=2)
    players = [Numbers(), Numbers(0.5)]
    single, matches = play_table(variant, players, 40, seed=4), play_table(variant, players, 120, seed=4, match=3)
    np.testing.assert_array_equal(single, matches[::3])


def test_a_tournament_of_matches_has_intervals_over_matches():
    class Moody(Counting):
        """Plays whole matches well or badly, as drawn at its first turn."""

        def act(self, turn):
            mood = turn.memory["turns"]
            mood[:] = np.where(mood == 0, 1 + (turn.rng.random(len(turn)) < 0.5), mood)
            return np.where(mood == 1, Numbers().act(turn), Uniform().act(turn))

    variant = configure("liars_dice", num_dice=2)
    specs, players = ["moody", "random"], [Moody(), Uniform()]
    games = scaled(4_000, 40)
    single = tournament(variant, specs, games, 3, agents=players)
    result = tournament(variant, specs, games, 3, agents=players, match=20)
    assert (result.match, result.games) == (20, games)
    parts = result.meetings[0].parts
    assert [(part.first, part.last) for part in parts] == [(1, 10), (11, 20)]
    halves = [part.win_rate for part in parts]
    assert np.mean(halves) == pytest.approx(result.win_rate[0][1])
    if games >= 4_000:
        assert abs(single.win_rate[0][1] - result.win_rate[0][1]) < single.ci95[0][1] + result.ci95[0][1] + 0.02
        assert result.ci95[0][1] > 1.5 * single.ci95[0][1], "games of one match are not independent"
    assert not single.meetings[0].parts
    assert single.match == 1


def test_parts_of_a_match():
    assert parts_of(1) == parts_of(10) == []
    assert parts_of(11) == [(1, 10), (11, 11)]
    assert parts_of(200) == [(1, 10), (11, 50), (51, 200)]


def first_legal(infos):
    return infos["action_mask"].argmax(axis=1)


def test_an_environment_keeps_records_until_it_is_seeded_again():
    agent = Counting()
    env = SeatEnv("liars_dice", opponents=agent, **ONE_DIE)
    _, info = env.reset(seed=1)
    for _ in range(4):
        ended = False
        while not ended:
            _, _, ended, _, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
        _, info = env.reset()
    assert len(agent.seen) >= 4
    assert [each.tolist() for each in agent.seen] == [[k] for k in range(len(agent.seen))]
    assert env.games.memories.any()
    agent.seen.clear()
    env.reset(seed=1)
    assert not agent.seen or agent.seen[0].tolist() == [0]


def test_many_games_remember_as_one_does():
    def played(seeds):
        """The rewards of each step, and what is remembered at the end."""
        env = SeatVectorEnv("liars_dice", len(seeds), opponents=Adaptive(), autoreset_mode="SameStep", num_dice=2)
        _, infos = env.reset(seed=list(seeds))
        rewards = []
        for _ in range(scaled(60, 20)):
            _, earned, _, _, infos = env.step(first_legal(infos))
            rewards.append(earned)
        return np.array(rewards), env.games.memories

    rewards, memories = played(range(3))
    for seed in range(3):
        alone, remembered = played([seed])
        np.testing.assert_array_equal(alone[:, 0], rewards[:, seed])
        np.testing.assert_array_equal(remembered[0], memories[seed])
        assert remembered.any()


def test_an_opponents_error_restores_records():
    env = SeatVectorEnv("liars_dice", 4, opponents=Counting(fails_at=3), autoreset_mode="SameStep", **ONE_DIE)
    _, infos = env.reset(seed=1)
    with contextlib.suppress(AgentError):
        for _ in range(50):
            before = env.games.snapshot()
            _, _, _, _, infos = env.step(first_legal(infos))
        raise AssertionError("the opponent never had its third turn")
    assert before["memories"].any()
    assert remember(env.games.snapshot()) == remember(before)


def test_a_snapshot_holds_records():
    env, other = (SeatVectorEnv("liars_dice", 4, opponents=Counting(), autoreset_mode="SameStep", num_dice=2) for _ in range(2))
    _, infos = env.reset(seed=1)
    other.reset(seed=2)
    for _ in range(10):
        _, _, _, _, infos = env.step(first_legal(infos))
    kept = env.games.snapshot()
    other.games.restore(kept)
    np.testing.assert_array_equal(other.games.memories, env.games.memories)
    assert kept.pop("memories").any()
    with pytest.raises(ValueError, match="a snapshot of these games has memories"):
        other.games.restore(kept)


def test_a_pool_begins_a_match_when_it_puts_another_agent_in():
    both = [Counting(), Counting()]
    pool = Mixture(both)
    env = SeatEnv("liars_dice", opponents=pool, seat=0, starter="first", **ONE_DIE)
    _, info = env.reset(seed=1)
    stays, changes = 0, 0
    sat = int(env.games.players[0, 1])
    for _ in range(60):
        agent = both[sat]
        ended = False
        while not ended:
            _, _, ended, _, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
        turns = int(agent.seen[-1][0]) + 1 if agent.seen else 0
        for each in both:
            each.seen.clear()
        _, info = env.reset()
        now = int(env.games.players[0, 1])
        held = env.games.memories[0, 1].view(Counting.promises.remembers)["turns"][0]
        if now == sat:
            stays += 1
            assert held >= turns
        else:
            changes += 1
            assert held == 0
        sat = now
    assert min(stays, changes) > 5


def test_whoever_remembers_must_be_there_from_the_beginning():
    pool = Mixture([Forgetful()])
    env = SeatEnv("liars_dice", opponents=pool, seat=1, starter="first", **ONE_DIE)
    env.reset(seed=1)
    pool.agents[0] = Counting()
    with pytest.raises(AgentError, match="Counting remembers: it must be among the opponents from the beginning"):
        env.reset(seed=1)


def test_exact_figures_are_of_the_beginning_of_a_match():
    options = {"num_dice": 1}
    own, nash = (dice_envs.measure("liars_dice", spec, **options) for spec in ("adaptive", "nash"))
    assert own.measures[0].value == pytest.approx(nash.measures[0].value, abs=1e-12)
    assert "measured as the agent plays when a match begins, with nothing to remember" in own.measures[0].note
    assert "match" not in nash.measures[0].note
    with pytest.raises(ValueError, match="adaptive remembers past games: an exact result of two agents is known"):
        winning_probability(configure("liars_dice", **options), "adaptive", "random")
    assert "match begins" in dice_envs.measure("liars_dice", Counting(), **options).measures[0].note
