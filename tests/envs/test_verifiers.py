"""Rollouts of verifiers on games in words, with a scripted model behind a server: `make test-words`."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("verifiers")

import verifiers.v1 as vf

from dice_envs import action_values, names, response_values
from dice_envs.agent.specs import resolve
from dice_envs.core.game import OVER
from dice_envs.envs.text.verifiers import load_environment
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.chat_server import legal_moves, said, serving
from tests.support.variants import SMALL

PAGE = Path(__file__).parents[2] / "docs" / "words.md"
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


# --- a scripted model ---------------------------------------------------------------------------------------------------


def mixed(messages):
    """Some legal move, another one at each turn."""
    moves = legal_moves(messages[-1]["content"])
    return f"Hm.\nMove: {moves[sum(map(len, moves)) * len(messages) % len(moves)]}"


@contextlib.contextmanager
def scripted(answer):
    """A server on which `answer(messages)` replies; an integer is a status. Yields its URL."""

    def answered(body):
        reply = answer(body["messages"])
        finish = "length" if "Cut off" in str(reply) else "stop"
        return (reply, {}, b"{}") if isinstance(reply, int) else said(reply, finish, usage=USAGE)

    with serving(answered) as server:
        yield server.url


def roll_out(env, answer, each=1, at_once=64):
    """The traces of `each` rollouts of every task."""

    async def run(url):
        client = vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY_IS_NEEDED")
        context, limit = vf.ModelContext(model="scripted", client=client), asyncio.Semaphore(at_once)
        async with env.serving():
            slots = [slot for task in env.taskset for slot in env.slots(task, each)]
            return await asyncio.gather(*(env.run_slot(slot, context, limit) for slot in slots))

    with scripted(answer) as url:
        episodes = asyncio.run(run(url))
    assert all(len(episode.traces) == 1 for episode in episodes)
    return [episode.traces[0] for episode in episodes]


def replies(trace):
    return [node.message.content for node in trace.nodes if node.sampled]


def prompts(trace):
    return [node.message.content for node in trace.nodes if node.message.role == "user"]


# --- the same game without verifiers --------------------------------------------------------------------------------------


def seated(env, trace, opponent):
    """The game of a rollout on a Sitting, and the model's seat."""
    data, count = trace.task.data, env.taskset.variant.facts.num_seats
    seats = [PERSON if seat == data.seat else resolve(opponent) for seat in range(count)]
    return Sitting(env.taskset.variant, data.seed, seats), data.seat


def decisions(env, trace, opponent):
    """Yield (state, earned so far, action) of each move of a rollout, by the words of its replies; then the Sitting."""
    sitting, seat = seated(env, trace, opponent)
    said = iter(replies(trace))
    while sitting.mover != OVER:
        if sitting.mover == seat:
            words = next(said).rpartition("Move: ")[2]
            (action,) = (each for each in sitting.legal() if sitting.variant.describe_action(each) == words)
            yield sitting.state, sitting.returns[seat], action
            sitting.play(action)
        else:
            sitting.step()
    assert next(said, None) is None
    assert trace.metrics["result"] == pytest.approx(sitting.returns[seat])


@pytest.mark.library("verifiers", "rollouts of a scripted model, each move with its exact regret")
@pytest.mark.parametrize("name", names())
def test_the_reward_of_a_move_is_its_exact_regret(name):
    env = load_environment(name, "random", num_examples=6, seed=3, **SMALL[name])
    traces = roll_out(env, mixed)
    assert len({trace.task.data.seed for trace in traces}) == 6
    assert {trace.task.data.seat for trace in traces} == set(range(env.taskset.variant.facts.num_seats))
    for trace in traces:
        regrets = []
        for state, _, action in decisions(env, trace, "random"):
            values = action_values(env.taskset.variant, state).values
            regrets.append(np.nanmax(values) - values[action])
        assert trace.ok
        assert trace.info["turn_rewards"] == pytest.approx([-regret for regret in regrets])
        assert trace.reward == pytest.approx(-sum(regrets))
        assert trace.metrics["mean_regret"] == pytest.approx(np.mean(regrets))
        assert trace.metrics["illegal_replies"] == 0
    assert any(trace.reward < 0 for trace in traces) or name == "score_dice"  # in which every die is worth the same


@pytest.mark.parametrize(
    ("opponent", "options", "paid", "has_regret"),
    [("numbers", {"num_dice": 2}, {1.0, -1.0}, True), ("random", {"num_players": 3, "num_dice": 1}, {1.0, -0.5}, False)],
)
def test_the_result_as_the_reward(opponent, options, paid, has_regret):
    env = load_environment("liars_dice", opponent, "result", num_examples=8, **options)
    for trace in roll_out(env, mixed):
        *_, _ = decisions(env, trace, opponent)
        assert trace.reward == trace.metrics["result"]
        assert trace.reward in paid
        assert trace.info["turn_rewards"][:-1] == [0.0] * (len(replies(trace)) - 1)
        assert ("mean_regret" in trace.metrics) == has_regret


@pytest.mark.parametrize(
    ("name", "opponent", "options"),
    [
        ("liars_dice", "numbers", {"num_dice": 2}),
        ("score_dice", "highest", {"pool_a": (6, 6, 6), "pool_b": (6, 6, 6)}),
        ("thirties", "random", {"num_players": 1}),
    ],
)
def test_the_result_without_luck_as_the_reward(name, opponent, options):
    env = load_environment(name, opponent, "luck_adjusted", num_examples=8, **options)
    variant = env.taskset.variant
    values = response_values(variant, opponent if variant.facts.num_seats > 1 else None)
    for trace in roll_out(env, mixed):
        lost = 0.0
        for state, _, action in decisions(env, trace, opponent):
            (own,) = values.action_values(np.array([state], variant.game.state))
            lost += np.nanmax(own) - own[action]
        assert trace.reward == pytest.approx(values.start(trace.task.data.seat) - lost)
        assert sum(trace.info["turn_rewards"]) == pytest.approx(trace.reward)


def test_many_rollouts_at_once_are_those_one_after_another():
    found = []
    for at_once in (1, 40):
        env = load_environment("liars_dice", "numbers:bluff=0.25", num_examples=5, seed=1, num_dice=2)
        traces = roll_out(env, mixed, each=8, at_once=at_once)
        found.append([(trace.task.data.seed, replies(trace), trace.info, trace.metrics) for trace in traces])
    assert found[0] == found[1]
    assert len(found[0]) == 40


# --- replies without a legal move -------------------------------------------------------------------------------------------


def corrected(messages):
    """A move that is cut off at each position, and a whole one when told so."""
    is_told = "That is no legal move" in messages[-1]["content"]
    (first, *_) = legal_moves(messages[-3 if is_told else -1]["content"])
    return first if is_told else f"Cut off: [{first}]"


@pytest.mark.parametrize("reward", ["regret", "result", "luck_adjusted"])
def test_an_illegal_reply_may_be_corrected_once(reward):
    env = load_environment("liars_dice", "random", reward, num_examples=4, num_dice=1)
    for trace in roll_out(env, corrected):
        assert trace.metrics["illegal_replies"] == 0.5
        assert len(trace.info["turn_rewards"]) == len(replies(trace))
        assert "the reply was cut off" in prompts(trace)[1]
        assert trace.info["turn_rewards"][0] == 0.0


def test_a_second_illegal_reply_loses():
    start = response_values("liars_dice", "random", num_dice=1)
    for reward in ("regret", "result", "luck_adjusted"):
        env = load_environment("liars_dice", "random", reward, num_examples=4, num_dice=1)
        for trace in roll_out(env, lambda messages: "I give up."):
            sitting, seat = seated(env, trace, "random")
            while sitting.mover != seat:
                sitting.step()
            state = np.array([sitting.state], sitting.variant.game.state)
            best = np.nanmax(action_values(sitting.variant, sitting.state).values)
            against = start.start(seat) - (np.nanmax(start.action_values(state)) + 1)
            assert trace.ok
            assert trace.metrics == {"illegal_replies": 1.0, "result": -1.0, "mean_regret": pytest.approx(best)}
            assert trace.reward == pytest.approx({"regret": -best, "result": -1.0, "luck_adjusted": against}[reward])
            assert len(trace.info["turn_rewards"]) == 2


def test_a_limit_on_turns_loses():
    env = load_environment("thirties", scoring="result", num_examples=2)
    env.config.player.max_turns = 1
    for trace in roll_out(env, mixed):
        assert len(replies(trace)) == 1
        assert trace.reward == trace.metrics["result"] == env.taskset.variant.facts.min_return


def test_a_server_that_fails_is_an_error_of_the_rollout():
    env = load_environment("liars_dice", num_examples=1, num_dice=1)
    (trace,) = roll_out(env, lambda messages: 400)
    assert not trace.ok
    assert trace.errors


def test_the_seed_fixes_the_data():
    def rows(**arguments):
        env = load_environment("liars_dice", "random", "result", num_examples=12, num_players=3, num_dice=1, **arguments)
        return [task.data for task in env.taskset]

    assert rows(seed=1) == rows(seed=1) != rows(seed=2)
    assert [row.seat for row in rows()] == [0, 1, 2] * 4
    assert all("Legal moves: " in row.prompt for row in rows())
    assert not any("Legal moves: " in row.prompt for row in rows(legal=False))


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("scoring must be", {"scoring": "points"}),
        ("reward must be", {"reward": "points"}),  # the game's
        ("num_dice", {"num_dice": 0}),
        ("num_examples", {"num_examples": 0}),
        ("seed", {"seed": -1}),
        ("nobody", {"opponents": "nobody"}),
        ("opponents must be", {"opponents": ["random", "random"]}),
        ("num_players must be 2 for optimal play", {"num_players": 3}),
        ("num_players must be 2 for the value", {"num_players": 3, "scoring": "luck_adjusted"}),
        ("all seats together", {"game": "shakes", "scoring": "luck_adjusted"}),
    ],
)
def test_wrong_arguments_are_named(words, arguments):
    defaults = {} if "game" in arguments else {"game": "liars_dice", "num_dice": 1}
    with pytest.raises(ValueError, match=words):
        load_environment(**{**defaults, **arguments})


MODULE = """
from dice_envs.envs.text.verifiers import DiceEnv, DiceHarness, DiceTaskset
__all__ = ["DiceEnv", "DiceHarness", "DiceTaskset"]
"""


def test_the_command_of_verifiers_finds_a_module(tmp_path):
    (tmp_path / "dice_words.py").write_text(MODULE)
    with scripted(mixed) as url:
        command = [str(Path(sys.executable).parent / "vf-eval"), "dice_words", "-n", "4", "--no-rich", "--no-push"]
        command += ["--env.taskset.game", "liars_dice", "--env.taskset.options", '{"num_dice": 1}', "--env.scoring", "result"]
        command += ["--model", "scripted", "--client.base-url", url, "--client.api-key-var", "NO_KEY_IS_NEEDED", "-o", "out"]
        environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.rglob("traces.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == 4


def test_the_documentations_program_runs():
    (program,) = re.findall(r"```python\n(import asyncio\n.*?)```", PAGE.read_text(), re.DOTALL)
    with scripted(mixed) as url:
        program = program.replace("http://localhost:8000/v1", url)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4
