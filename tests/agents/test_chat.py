"""A language model as a player, with a server that does what it should, and servers that do not."""

import gzip
import json
import os
import pickle
import signal
import threading

import numpy as np
import pytest

from dice_envs import AgentError, configure, evaluate, make_agent
from dice_envs.agent import check_needs
from dice_envs.agents.chat import Chat
from dice_envs.envs.text import TextTable
from dice_envs.experiments.arena import play_table
from dice_envs.table.sitting import PERSON, Sitting
from tests.conftest import posix
from tests.support.chat_server import legal_moves, lowest, lowest_words, said, serving

pytest.importorskip("httpx")
SECRET = "key-that-nobody-may-see"
KEY = "sk-Zn7vKp2Lw9RtXb4N_m8YhJc"


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
    again = TextTable(sitting.variant, 1, [PERSON, PERSON])
    again.reply("1 x 1")
    assert told.endswith(again.prompt().split("The position", 1)[1]), "the prompt is the one of games in words"
    assert server.authorised == [None]
    assert (agent.tally.moves, agent.tally.requests, agent.tally.illegal) == (1, 1, 0)
    assert agent.tally.tokens > len(told) / 8


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
    agent = make_agent(f"chat:m3:8b,url={server.url},tokens=50,legal=false,tokens_as=max_completion_tokens,temperature=none")
    assert (agent.model, agent.url, agent.tokens, agent.legal) == ("m3:8b", server.url, 50, False)
    for each, sent in ((agent, {"max_completion_tokens"}), (chat(server, tokens_as=None), {"temperature"})):
        table(each).step()
        assert server.asked[-1].keys() == {"model", "messages", *sent}
    assert pickle.loads(pickle.dumps(agent)) == agent
    with pytest.raises(ValueError, match="only if it is named in the terminal"):
        check_needs(agent, configure("thirties"))


# --- replies that are no moves ----------------------------------------------------------------------------------------


def test_a_reply_without_a_move_is_asked_again_with_the_reason(server):
    for first, finish, why in (
        ("I pass.", "stop", "no move in 'I pass.'; allowed: 2 x 1, "),
        ("<think>\nMove: 3 x 4\nbut wait", ["of", "another", "type"], "its thinking does not end: '<think>'; allowed: 2 x 1, "),
        ("Move: 3 x 4", "length", "the reply was cut off: its finish_reason is 'length'"),
    ):
        replies = iter([said(first, finish), said("Move: 2 x 4")])
        server.answer = lambda body, replies=replies: next(replies)
        agent = chat(server)
        sitting = table(agent)
        assert sitting.variant.describe_action(sitting.step()) == "2 x 4"
        _, reply, reason = server.asked[-1]["messages"]
        assert reply == {"role": "assistant", "content": first}
        assert f"That is no legal move: {why}" in reason["content"]
        assert (agent.tally.illegal, agent.tally.random) == (1, 0)


def test_the_second_one_counts_as_the_option_says(server, tmp_path):
    server.answer = lambda body: said("1 x 1")
    agent = chat(server, log=str(tmp_path / "replies.jsonl"))
    sitting = table(agent)
    assert sitting.step() in range(1, sitting.variant.facts.num_actions)
    assert (agent.tally.illegal, agent.tally.random) == (2, 1)
    lines = [json.loads(line) for line in (tmp_path / "replies.jsonl").read_text().splitlines()]
    assert [line["reply"] for line in lines] == ["1 x 1", "1 x 1"]
    assert "read 1 x 1: " in lines[1]["prompt"]
    assert lines[1]["no_move"].startswith("read 1 x 1: ")
    with pytest.raises(AgentError, match="tiny: two replies without a legal move; the second one: read 1 x 1"):
        table(chat(server, illegal="raise")).step()


# --- servers that misbehave -------------------------------------------------------------------------------------------


BROKEN = {
    "busy": (429, {"retry-after": "0"}, b""),
    "failing": (500, {}, b"<html>"),
    "busy for ² seconds": (429, {"retry-after": "²"}, b""),
    "busy for ever": (503, {"retry-after": "9" * 400}, b""),
    "compressed": (200, {"content-encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b" " * 2**24))),
    "no JSON": (200, {}, b'{"choices": ['),
    "no Unicode": (200, {}, b'{"choices": "\xff"}'),
    "a long number": (200, {}, b"9" * 10_000),
    "of other types": (200, {}, b'{"choices": {"0": 1}, "usage": NaN}'),
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


PART = {
    "dripped headers": [b"HTTP/1.1 200 OK\r\n", *[b"x: 1\r\n"] * 100],
    "endless 102s": [b"HTTP/1.1 102 Processing\r\n\r\n"] * 100,
    "dripped body": [b"HTTP/1.1 200 OK\r\n\r\n", *[b" "] * 100],
}


@pytest.mark.parametrize("name", PART)
def test_a_request_ends_in_time(name, server):
    server.answer = lambda body: PART[name]
    with pytest.raises(AgentError, match=r"after 1 requests; the last one: no whole answer in 0\.2 seconds"):
        table(chat(server, seconds=0.2, tries=1)).step()
    with pytest.raises(AgentError, match="after 2 requests; the last one: ConnectError$"):
        table(chat(server, url="http://127.0.0.1:9/v1", tries=2)).step()


@pytest.mark.parametrize("content", [None, 5, ["call"], {"text": "call"}, "\ud800", "\udfff Move: \ud83d", "x" * 10**6])
def test_a_reply_may_be_anything(content, server, tmp_path):
    """One without a move is asked again with valid Unicode, and of a long one only the end."""
    answers = iter([said(content), said("\ud800\nMove: call")])
    server.answer = lambda body: next(answers)
    sitting = table(chat(server, log=str(tmp_path / "log")))
    assert sitting.variant.describe_action(sitting.step()) == "call"
    assert len(server.asked[1]["messages"][1]["content"]) <= 50_000
    assert [json.loads(line)["reply"] for line in (tmp_path / "log").read_text().splitlines()][1] == "?\nMove: call"


COUNTS = ["9" * 400, "9" * 5000, "-5", "true", "1.5", "1e400", "NaN", '"12"', "null", "[]", "1000000001"]


def test_counts_that_cannot_be_true_are_guessed(server):
    wrong = [f'{{"prompt_tokens": {count}, "completion_tokens": {count}, "details": null}}' for count in COUNTS]
    wrong += "[1]", '"5"', "9" * 5000, "true", "null"
    usages = iter(['{"prompt_tokens": 5, "completion_tokens": 5}', *wrong])
    server.answer = lambda body: (200, {}, said("call", usage=0)[2].replace(b'"usage": 0', f'"usage": {next(usages)}'.encode()))
    agent = chat(server, price=1, tries=1)  # the reply has been paid
    table(agent).step()
    assert agent.tally.tokens == 10
    for k in range(1, len(wrong) + 1):
        table(agent).step()
        assert 200 * k < agent.tally.tokens < 2000 * k


def test_an_answer_about_something_else_ends_it(server):
    for status, told, words in (
        (302, b"", "status 302: ''"),
        (401, b"", "the key in OPENAI_API_KEY is not accepted"),
        (404, b"no such model", "no such model'$"),
        (400, b"x" * 300 + b"'max_tokens'", "; tokens_as=none or another name leaves out max_tokens$"),
        (422, b"temperature", "'temperature'; temperature=none leaves out temperature$"),
    ):
        headers = {"location": f"{server.url}/elsewhere"} if status == 302 else {}
        server.answer = lambda body, answer=(status, headers, told): answer
        with pytest.raises(AgentError, match=words):
            table(chat(server)).step()
    assert len(server.asked) == 5
    assert server.encodings == {"identity"}


@posix
def test_ctrl_c_does_not_wait_for_the_server(server):
    free, answered = threading.Event(), threading.Event()

    def answer(body):
        os.kill(os.getpid(), signal.SIGINT)
        free.wait(60)
        answered.set()
        return said("call")

    server.answer = answer
    sitting = table(chat(server, seconds=60))
    with pytest.raises(KeyboardInterrupt):
        sitting.step()
    assert not answered.is_set()
    free.set()


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


def test_the_key_is_sent_and_written_nowhere(server, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    replies = iter([f"{SECRET[:-3]} {SECRET}", f"{SECRET}\nMove: call"])
    server.answer = lambda body: said(next(replies))
    agent = chat(server, key="MY_KEY", log=str(tmp_path / "replies.jsonl"))
    table(agent).step()
    assert server.authorised == [f"Bearer {SECRET}"] * 2
    told = [repr(agent), (tmp_path / "replies.jsonl").read_text()]
    for status, key in ((401, SECRET), (403, SECRET), (400, SECRET), (400, f"{SECRET}\n"), (400, f"{SECRET}é")):
        monkeypatch.setenv("MY_KEY", key)
        answer = status, {}, f"{' ' * 1980} wrong key {SECRET[:-3]}".encode()
        server.answer = lambda body, answer=answer: answer
        with pytest.raises(AgentError) as caught:
            table(agent).step()
        told.append(str(caught.value))
    assert not any(SECRET[:-3] in text for text in told)


@pytest.mark.parametrize("gap", ["", "\n", " ", "\t\r\n", "***", "…", '", "', "<br>", "\u200b"])
def test_no_part_of_the_key_is_printed(gap, monkeypatch):
    """In pieces of any length, and its beginning and end alone. A short key is no secret."""
    monkeypatch.setenv("KEY", KEY)
    monkeypatch.setenv("SHORT", KEY[:7])
    agent = Chat("tiny", key="KEY")
    assert Chat("tiny", key="SHORT")._without_key(KEY) == KEY
    for size in range(1, len(KEY) + 1):
        parts = [KEY[first : first + size] for first in range(0, len(KEY), size)]
        for repeated in (gap.join(parts), f"{parts[0]}{gap}*****{KEY[-size:]}"):
            with pytest.raises(AgentError) as caught:
                agent._read(400, f"QUIET {repeated} QUIET".encode(), 0.0, {})  # no character of the key is in QUIET
            for text, least in ((str(caught.value).split("QUIET")[1], 4), (agent._without_key(repeated), 8)):
                left = "".join(sign for sign in text if sign in KEY)
                assert not any(KEY[at : at + least] in left for at in range(len(KEY) - least + 1)), text


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"budget": 6000}, "the budget of 6,000 tokens is spent: "),
        ({"price": 2, "reply_price": 10, "cost": 0.014}, r"the limit cost=0\.014 is reached: "),
    ],
)
def test_no_limit_is_passed_by_requests_at_once(limits, words, server):
    """The server counts as many tokens as can be. Only some of the eight that would be asked at once have room."""

    def answer(body):
        told = body["messages"][0]["content"]
        return said(lowest_words(told), usage={"prompt_tokens": len(told.encode()), "completion_tokens": 100})

    server.answer = answer
    agent = chat(server, at_once=8, tokens=100, **limits)
    with pytest.raises(AgentError, match=words):
        play_table(configure("liars_dice", num_dice=1), [agent, make_agent("numbers")], 20, 1)
    used = agent.tally
    assert used.tokens <= agent.budget
    assert used.cost <= agent.cost
    assert 4 <= used.requests == len(server.asked), "those that wait for room are asked in the end"
    assert server.most < 8


# --- replies that are kept ----------------------------------------------------------------------------------------------


def test_what_is_paid_is_not_asked_again(server, tmp_path):
    log, variant = tmp_path / "log", configure("liars_dice", num_dice=1)
    numbers = iter(range(10**6))

    def answer(body):
        """Other moves in other games, in any order, and sometimes none or a part of one."""
        moves = legal_moves(body["messages"][0]["content"])
        k = next(numbers)
        return said(
            f"Move: {[*moves, 'hm'][k % (len(moves) + 1)]}", "length" if k % 7 == 3 else "stop", usage={"prompt_tokens": 50}
        )

    def played(seed=1, **more):
        agent = chat(server, log=str(log), temperature=1.0, tokens=9, **more)
        before = len(server.asked)
        returns = play_table(variant, [agent, make_agent("numbers")], 8, seed)
        return returns.tolist(), len(server.asked) - before, agent

    server.answer = answer
    whole, asked, first = played()
    lines = log.read_bytes().splitlines(keepends=True)
    assert len(lines) == asked > 8
    assert played(resume=True)[:2] == (whole, 0)
    agent = played(resume=True)[2]
    assert (agent.tally.tokens, agent.tally.illegal) == (first.tally.tokens, first.tally.illegal)
    log.write_bytes(b"".join([b"[1]\n", b'{"model": "tiny"}\n', b"[" * 10**5 + b"\n", b"\xff\n", *lines[:5], lines[5][:60]]))
    _, again, _ = played(resume=True)
    assert again > 0
    assert played(resume=True)[1] == 0, "the line that a kill cut short spoils no other"
    assert played(seed=2, resume=True)[1] > 0, "these are other games"
    assert played()[1] > 0, "only resume reads the file"
    with pytest.raises(AgentError, match="budget"):
        played(seed=3, resume=True, budget=first.tally.tokens)


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


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        *(({"model": wrong}, "model must be the name of a model at the server, not ") for wrong in ("", "\udc80", 5)),
        *(({"url": wrong}, "url must be http://") for wrong in (None, "ftp://host")),
        ({"url": f"http://user:{SECRET}@host"}, "without a password"),
        ({"legal": 5}, "legal must be true or false, not 5"),
        ({"resume": True}, "resume needs log"),
        *(({name: -1}, f"{name} must be") for name in ("seconds", "price")),
        *(({name: wrong}, f"{name} must be") for name, wrong in (("illegal", "cry"), ("temperature", 3), ("tokens", 0))),
        ({"cost": 1}, "cost=1 needs the price"),
    ],
)
def test_wrong_parameters_are_named(wrong, words):
    with pytest.raises(ValueError, match=words) as caught:
        Chat(**{"model": "tiny", **wrong})
    assert SECRET not in str(caught.value)
