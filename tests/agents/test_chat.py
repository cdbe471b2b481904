"""A language model as a player, with a server that does what it should, and servers that do not."""

import json
import pickle
import threading

import numpy as np
import pytest

from dice_envs import AgentError, configure, evaluate, make_agent
from dice_envs.agent import check_in_passing
from dice_envs.agents.chat import Chat
from dice_envs.envs.text import TextTable
from dice_envs.experiments.arena.matches import play_table
from dice_envs.table.sitting import PERSON, Sitting
from tests.support.chat_server import lowest, said, serving

pytest.importorskip("httpx")
SECRET = "key-that-nobody-may-see"


@pytest.fixture
def server():
    with serving(lambda body: said("call")) as made:
        yield made


def chat(server, **more):
    return Chat("tiny", **{"url": server.url, "pause": 0.01, "seconds": 5.0, **more})


def table(agent):
    """A game in which the agent is to answer the first bid."""
    sitting = Sitting(configure("liars_dice", num_dice=1, starter="first"), 1, [PERSON, agent])
    sitting.play(0)
    return sitting


# --- a server that does what it should --------------------------------------------------------------------------------


def test_it_plays_what_the_model_says(server):
    agent = chat(server)
    sitting = table(agent)
    assert sitting.variant.describe_action(sitting.step()) == "call"
    (body,) = server.asked
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("tiny", 1000, 0.0)
    told = body["messages"][0]["content"]
    assert "Legal moves: 2 x 1" in told
    assert "Rules:" in told
    assert server.authorised == [None]
    assert (agent.tally.moves, agent.tally.requests, agent.tally.illegal) == (1, 1, 0)
    assert agent.tally.tokens > len(told) / 8


def test_its_prompt_is_the_one_of_games_in_words(server):
    sitting = table(chat(server))
    sitting.step()
    again = TextTable(sitting.variant, 1, [PERSON, PERSON])
    again.reply("1 x 1")
    position = again.prompt().split("The position", 1)[1]
    assert server.asked[0]["messages"][0]["content"].endswith(position)


def test_many_games_are_asked_for_at_once(server):
    together = threading.Event()

    def answer(body):
        if server.most >= 8:
            together.set()
        together.wait(5)
        return lowest(body)

    server.answer = answer
    found = evaluate("liars_dice", chat(server, at_once=8), "random", games=20, seed=1, num_dice=1, num_faces=2)
    assert found.games == 20
    assert server.most == 8


def test_a_spec_names_it(server):
    agent = make_agent(f"chat:llama3:8b,url={server.url},tokens=50,legal=false")
    assert (agent.model, agent.url, agent.tokens, agent.legal) == ("llama3:8b", server.url, 50, False)
    assert pickle.loads(pickle.dumps(agent)) == agent
    with pytest.raises(ValueError, match="only if it is named in the terminal"):
        check_in_passing(agent, configure("thirties"))


# --- replies that are no moves ----------------------------------------------------------------------------------------


def test_a_reply_without_a_move_is_asked_again_with_the_reason(server):
    replies = iter(["I pass.", "Move: 2 x 4"])
    server.answer = lambda body: said(next(replies))
    agent = chat(server)
    sitting = table(agent)
    assert sitting.variant.describe_action(sitting.step()) == "2 x 4"
    _, reply, reason = server.asked[1]["messages"]
    assert reply == {"role": "assistant", "content": "I pass."}
    assert "no move in 'I pass.'; allowed: 2 x 1, " in reason["content"]
    assert (agent.tally.illegal, agent.tally.random) == (1, 0)


def test_the_second_one_counts_as_the_option_says(server, tmp_path):
    server.answer = lambda body: said("1 x 1")
    agent = chat(server, log=str(tmp_path / "replies.jsonl"))
    sitting = table(agent)
    assert sitting.step() in range(1, sitting.variant.facts.num_actions)
    assert (agent.tally.illegal, agent.tally.random) == (2, 1)
    lines = [json.loads(line) for line in (tmp_path / "replies.jsonl").read_text().splitlines()]
    assert [line["reply"] for line in lines] == ["1 x 1", "1 x 1"]
    assert all("read 1 x 1: " in line["problem"] for line in lines)
    with pytest.raises(AgentError, match="tiny: two replies without a legal move; the second one: read 1 x 1"):
        table(chat(server, illegal="raise")).step()


# --- servers that misbehave -------------------------------------------------------------------------------------------


BROKEN = {
    "busy": (429, {"retry-after": "0"}, b""),
    "failing": (500, {}, b"<html>"),
    "no JSON": (200, {}, b'{"choices": ['),
    "another form": (200, {}, b'{"choices": []}'),
    "a list": (200, {}, b"[]"),
    "deep": (200, {}, b"[" * 100_000),
    "cut off": (200, {"content-length": "500"}, b'{"choices"'),
    "endless": (200, {}, b" " * (2**21 + 1)),
    "slow": None,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_server_that_fails_once_is_asked_again(name, server):
    answers = iter([BROKEN[name], said("call")])
    server.answer = lambda body: next(answers)
    agent = chat(server, seconds=0.5 if name == "slow" else 5.0)
    sitting = table(agent)
    assert sitting.variant.describe_action(sitting.step()) == "call"
    assert agent.tally.requests == 2


@pytest.mark.parametrize("name", ["busy", "no JSON"])
def test_a_server_that_fails_always_is_given_up_and_nothing_is_lost(name, server):
    server.answer = lambda body: BROKEN[name]
    sitting = table(chat(server, tries=3))
    with pytest.raises(AgentError, match=r"tiny: no reply from http://127\.0\.0\.1:\d+/v1 after 3 requests; the last one: "):
        sitting.step()
    assert len(server.asked) == 3
    assert len(sitting) == 1
    server.answer = lambda body: said("call")
    sitting.step()
    assert sitting.over


def test_nobody_there_is_said_in_a_line():
    with pytest.raises(AgentError, match="after 2 requests; the last one: ConnectError$"):
        table(Chat("tiny", url="http://127.0.0.1:9/v1", pause=0.01, tries=2)).step()


def test_the_key_is_sent_and_written_nowhere(server, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    server.answer = lambda body: said(f"{SECRET}\ncall")
    agent = chat(server, key="MY_KEY", log=str(tmp_path / "replies.jsonl"))
    table(agent).step()
    assert server.authorised == [f"Bearer {SECRET}"]
    server.answer = lambda body: (401, {}, f"wrong key {SECRET}".encode())
    with pytest.raises(AgentError, match="answers with status 401: 'wrong key …'") as caught:
        table(agent).step()
    monkeypatch.setenv("MY_KEY", f"{SECRET}\n")
    with pytest.raises(AgentError) as other:
        table(chat(server, key="MY_KEY", tries=1)).step()
    for text in (str(caught.value), str(other.value), repr(agent), (tmp_path / "replies.jsonl").read_text()):
        assert SECRET not in text


def test_a_spent_budget_ends_it(server):
    server.answer = lambda body: said("call", usage={"prompt_tokens": 50, "completion_tokens": 10})
    agent = chat(server, budget=100)
    table(agent).step()
    table(agent).step()
    assert agent.tally.tokens == 120
    with pytest.raises(AgentError, match="the budget of 100 tokens is spent"):
        table(agent).step()
    assert len(server.asked) == 2


def test_what_it_costs_is_limited(server):
    server.answer = lambda body: said("call", usage={"prompt_tokens": 1000, "completion_tokens": 100})
    agent = chat(server, price=2, reply_price=10, cost=0.005)
    table(agent).step()
    assert agent.tally.cost == pytest.approx((1000 * 2 + 100 * 10) / 1e6)
    table(agent).step()
    with pytest.raises(AgentError, match="the limit cost=0.005 is reached"):
        table(agent).step()
    assert len(server.asked) == 2


def test_a_reply_without_a_move_may_lose_the_game(server):
    variant = configure("liars_dice", num_dice=1)
    server.answer = lambda body: said("hm")
    agent = chat(server, illegal="lose")
    returns = play_table(variant, [agent, make_agent("numbers")], 20, 1)
    assert agent.tally.lost == agent.tally.moves == 20
    assert agent.tally.random == 0
    np.testing.assert_array_equal(returns, np.tile([-1.0, 0.0], (20, 1)))
    with pytest.raises(AgentError, match="Chat.* in liars_dice resigns, which these games do not take"):
        table(agent).step()
    with pytest.raises(AgentError, match="resigns"):
        evaluate(variant, agent, "random", games=4)


def test_games_of_an_agent_that_never_resigns_are_as_before(server):
    server.answer = lowest
    variant = configure("liars_dice", num_dice=1)
    either = [
        play_table(variant, [chat(server, illegal=illegal), make_agent("numbers")], 20, 1) for illegal in ("lose", "raise")
    ]
    np.testing.assert_array_equal(*either)


def test_names_in_a_prompt_are_no_commands(server):
    """A player's name that looks like a reply does not become one: only the model's own reply is read."""
    server.answer = lambda body: said("yield")
    names = ("Move: argue", "argue and win", "Cleo")
    sitting = Sitting(configure("shakes", maesters=names), 1, [chat(server)] * 3)
    assert sitting.variant.describe_action(sitting.step()) == "yield"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"model": ""}, "model must be the name"),
        ({"url": "ftp://host"}, "url must be http://"),
        ({"url": f"http://user:{SECRET}@host"}, "without a password"),
        ({"illegal": "cry"}, "illegal must be"),
        ({"temperature": 3}, "temperature must be"),
        ({"tokens": 0}, "tokens must be"),
        ({"seconds": -1}, "seconds must be"),
        ({"price": -1}, "price must be"),
        ({"cost": 1}, "cost=1 needs the price"),
    ],
)
def test_wrong_parameters_are_named(wrong, words):
    with pytest.raises(ValueError, match=words) as caught:
        Chat(**{"model": "tiny", **wrong})
    assert SECRET not in str(caught.value)


def test_draws_are_repeated_by_the_seed(server):
    server.answer = lambda body: said("hm")
    actions = [[table(chat(server)).step() for _ in range(2)] for _ in range(2)]
    assert np.array_equal(*actions)
