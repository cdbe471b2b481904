"""A language model as a player, with a server that does what it should, and servers that do not."""

import json
import pickle
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from dice_envs import AgentError, configure, make_agent
from dice_envs.agent import check_in_passing
from dice_envs.agents.chat import Chat
from dice_envs.envs.text import TextTable
from dice_envs.table.sitting import PERSON, Sitting

pytest.importorskip("httpx")
SECRET = "key-that-nobody-may-see"


def said(text, **more):
    return 200, {}, json.dumps({"choices": [{"message": {"content": text}}], **more}).encode()


class Server(ThreadingHTTPServer):
    """Answers with what `answer(body)` returns: status, headers, content; or None to say nothing for a while."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.authorised, self.answer = [], [], lambda body: said("call")
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            server.asked.append(body)
            server.authorised.append(self.headers.get("authorization"))
            server.now += 1
            server.most = max(server.most, server.now)
        answer = server.answer(body)
        with server.lock:
            server.now -= 1
        if answer is None:
            time.sleep(2)
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "content-length" not in headers:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def server():
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def chat(server, **more):
    return Chat("tiny", **{"url": server.url, "pause": 0.01, "seconds": 5.0, **more})


def table(agent):
    """A game in which the agent is to answer the first bid."""
    sitting = Sitting(configure("liars_dice", num_dice=1, starter="first"), 1, [PERSON, agent])
    sitting.play(0)
    return sitting


def lowest(body):
    """The first legal move that a prompt lists."""
    return said(f"Well.\nMove: {body['messages'][0]['content'].split('Legal moves: ')[1].split(',')[0].splitlines()[0]}")


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
    from dice_envs import evaluate

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
    agent = make_agent(f"dice_envs.agents.chat:Chat:llama3:8b,url={server.url},tokens=50,legal=false")
    assert (agent.model, agent.url, agent.tokens, agent.legal) == ("llama3:8b", server.url, 50, False)
    assert pickle.loads(pickle.dumps(agent)) == agent
    with pytest.raises(ValueError, match="only if it is named in the terminal"):
        check_in_passing(agent, configure("thirties"))


# --- replies that are no moves ----------------------------------------------------------------------------------------


def test_a_reply_without_a_move_is_asked_again_with_the_reason(server):
    replies = iter(["I pass.", "two 4s"])
    server.answer = lambda body: said(next(replies))
    agent = chat(server)
    sitting = table(agent)
    assert sitting.variant.describe_action(sitting.step()) == "2 x 4"
    _, reply, reason = server.asked[1]["messages"]
    assert reply == {"role": "assistant", "content": "I pass."}
    assert "no move in 'i pass.'; allowed: 2 x 1, " in reason["content"]
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
    server.answer = lambda body: said("call", usage={"total_tokens": 60})
    agent = chat(server, budget=100)
    table(agent).step()
    table(agent).step()
    assert agent.tally.tokens == 120
    with pytest.raises(AgentError, match="the budget of 100 tokens is spent"):
        table(agent).step()
    assert len(server.asked) == 2


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
