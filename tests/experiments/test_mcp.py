"""Games for an assistant: through the SDK's own client, in this process and over the pipes of another."""

import json
import os
import re
import signal
import sys
import threading
import time

import anyio
import numpy as np
import pytest

from dice_envs import action_values, configure
from dice_envs.core.work import say
from dice_envs.envs.text import TextTable
from dice_envs.table.sitting import PERSON
from tests.conftest import COMPILES_SOON, ROOT, posix
from tests.support.chat_server import legal_moves as legal
from tests.support.commands import process

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from dice_envs.experiments import assistant
from dice_envs.experiments.assistant import Games, make_server

GAMES = {  # with opponents, of which some draw their actions and some remember
    "liars_dice": ("numbers:bluff=0.25", {"num_dice": 2}),
    "fatestones": ("strongest", {"hand_size": 2}),
    "score_dice": ("highest", {"pool_a": [6, 6, 6], "pool_b": [8, 6, 4]}),
    "shakes": ("greedy", {"num_patients": 4, "goal": 2}),
    "thirties": ("thirties", {"rounds": 1}),
}
ONE_DIE = {"num_dice": 1, "starter": "first"}


def using(use):
    """Run `use(call)`, where `call(tool, **arguments)` returns the text of a tool's answer, or raises it as a ValueError."""

    async def run():
        async with Client(make_server(Games())) as client:
            return await use(calls(client))

    return anyio.run(run)


def calls(client):
    async def call(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        (content,) = result.content
        if result.is_error:
            raise ValueError(content.text)
        return content.text

    return call


async def play(call, game_id, text, rng):
    """Play random moves from the prompts to the end. Return the moves and the texts."""
    moves, texts = [], [text]
    while legal(texts[-1]):
        moves.append(str(rng.choice(legal(texts[-1]))))
        texts.append(await call("move", game_id=game_id, move=f"Move: {moves[-1]}"))
    return moves, texts


@pytest.mark.library("mcp", "its client plays to the end")
@pytest.mark.parametrize("name", GAMES)
def test_a_game_to_the_end(name):
    """The texts are the prompts of the seat, which tell only what it may know."""
    opponent, options = GAMES[name]
    seats = configure(name, **options).facts.num_seats

    async def use(call):
        begun = await call("new_game", game=name, opponent=opponent, seat=seats - 1, seed=5, options=options)
        moves, texts = await play(call, 1, begun, np.random.default_rng(5))
        assert await call("look", game_id=1) == texts[-1]
        for tool, more in (("move", {"move": moves[0]}), ("price", {"move": moves[0]}), ("hint", {})):
            with pytest.raises(ValueError, match="the game is over"):
                await call(tool, game_id=1, **more)
        return moves, texts, await call("review", game_id=1)

    moves, texts, review = using(use)
    table = TextTable(name, 5, [opponent] * (seats - 1) + [PERSON], **options)
    assert texts[0] == f"This is game 1 against {opponent}.\n\n{table.prompt(seats - 1)}"
    for move, text in zip(moves, texts[1:], strict=True):
        table.reply(move)
        assert text == table.prompt(seats - 1)
    assert table.sitting.over
    assert texts[-1].endswith(f"Your result: {table.returns[seats - 1]:+g}")
    assert review.startswith(f"{table.variant.game.title}, seed 5\n")
    assert "you: " in review
    assert "plays on from there" not in review, "a command of the terminal"
    assert "\x1b" not in review


def test_hint_and_price_are_the_exact_values():
    variant, games = configure("liars_dice", **ONE_DIE), Games()
    text = games.new_game("liars_dice", seat=0, seed=1, options=ONE_DIE)
    hint, prices = games.hint(1), {move: games.price(1, move) for move in legal(text)}
    assert games.look(1) == text.partition("\n\n")[2], "nothing was played"
    values = action_values(variant, TextTable(variant, 1).sitting.state).values
    best = int(np.nanargmax(values))
    assert re.search(rf"^ +{variant.describe_action(best)} +{100 * values[best]:.1f} %", hint, re.M)
    assert len(prices) == 12
    for action, words in enumerate(map(variant.describe_action, range(12))):
        cost = values[best] - values[action]
        if cost > 1e-6:
            assert f"{words} gives away {100 * cost:.1f} %: the best, " in prices[words]
            assert f"has {100 * values[best]:.1f} %\n(" in prices[words]
        else:
            assert prices[words].startswith(f"{words} gives nothing away")


def test_hidden_dice_change_no_answer():
    """Games that differ in the other's die alone, which a call shows in the end."""
    found = {}
    for seed in range(40):
        own, other = TextTable("liars_dice", seed, **ONE_DIE).sitting.state["counts"][:2].tolist()
        found.setdefault(tuple(own), {}).setdefault(tuple(other), seed)
    alike = list(max(found.values(), key=len).values())
    assert len(alike) > 2
    games, answers = Games(), set()
    for number, seed in enumerate(alike, 1):
        text = games.new_game("liars_dice", seat=0, seed=seed, options=ONE_DIE)
        given = [text.replace(f"game {number}", "game"), games.look(number), games.hint(number), games.price(number, "2 x 6")]
        for tool in (games.move, games.price):
            with pytest.raises(ValueError, match="read call") as refused:
                tool(number, "call")
            given.append(str(refused.value))
        answers.add(tuple(given))
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("rules", {"game": "chess"}, "unknown game 'chess'; the games are: fatestones, liars_dice"),
        ("rules", {"game": "thirties", "options": {"rounds": 0}}, "rounds must be"),
        ("rules", {"game": "thirties", "options": {"dice": 2}}, "thirties has no option 'dice'"),
        ("new_game", {"game": "liars_dice", "seat": 2}, "seat must be"),
        ("new_game", {"game": "liars_dice", "seed": -1}, "seed must be"),
        ("new_game", {"game": "liars_dice", "opponent": "nobody"}, "unknown agent 'nobody'"),
        ("new_game", {"game": "liars_dice", "opponent": "strongest"}, "strongest"),
        ("new_game", {"game": "liars_dice", "opponent": "players.py:Bold"}, "no other file and no module"),
        ("new_game", {"game": "thirties", "opponent": "random", "options": {"num_players": 1}}, "has one seat"),
        ("move", {"game_id": 7, "move": "1 x 1"}, "there is no game 7; the latest are: 1"),
        ("move", {"game_id": 1, "move": "hello"}, "no move in 'hello'; allowed: 1 x 1, 1 x 2"),
        ("move", {"game_id": 1, "move": "call"}, "read call: there is no bid to call yet; allowed: 1 x 1, 1 x 2"),
        ("price", {"game_id": 1, "move": "1 x 9"}, "no move in '1 x 9'; allowed: 1 x 1"),
        ("review", {"game_id": 1}, "a game is reviewed when it is over"),
        ("new_game", {"game": "thirties", "oponent": "x"}, "no argument 'oponent'; did you mean 'opponent'?; it takes: game, "),
        *((tool.__name__, {"gameid": 1}, "no argument 'gameid'") for tool in Games().tools),
    ],
)
def test_wrong_input_is_explained_and_changes_nothing(tool, arguments, message):
    async def use(call):
        await call("new_game", game="liars_dice", seat=0, seed=1, options=ONE_DIE)
        before = await call("look", game_id=1)
        with pytest.raises(ValueError, match=f"^Error executing tool {tool}: .*{re.escape(message)}"):
            await call(tool, **arguments)
        assert await call("look", game_id=1) == before
        assert "This is game 2" in await call("new_game", game="thirties")

    using(use)


def test_games_and_rules_are_described():
    listed, rules = Games().list_games(), Games().rules("liars_dice", {"num_players": 3, "num_dice": [1, 2, 3]})
    for game, (opponent, _) in GAMES.items():
        assert f"\n{game}: " in f"\n{listed}"
        assert f"\n- {opponent.partition(':')[0]}: " in listed
    assert rules.startswith("Liar's Dice, number of seats: 3\n- ")
    assert "\n- num_dice = [1, 2, 3]: dice each player starts with" in rules


def test_tools_are_described():
    async def run():
        async with Client(make_server(Games())) as client:
            return (await client.list_tools()).tools, client.instructions

    tools, instructions = anyio.run(run)
    assert [tool.name for tool in tools] == ["list_games", "rules", "new_game", "look", "move", "hint", "price", "review"]
    for tool in tools:
        assert tool.description.endswith(".")
        assert tool.name in instructions
        for parameter in tool.input_schema["properties"].values():
            assert parameter["description"]


def test_the_game_that_was_not_used_for_longest_goes_and_the_latest_ten_are_named():
    games = Games(most=12)
    for _ in range(12):
        games.new_game("thirties")
    games.look(1)
    games.new_game("thirties")
    games.look(1)
    with pytest.raises(ValueError, match=f"there is no game 2; the latest are: {', '.join(map(str, range(4, 14)))}. new_game"):
        games.look(2)


def test_work_that_nobody_waits_for_stops(monkeypatch):
    """A cancelled request ends in the solver's next line, and leaves the game as it was."""
    stopped = threading.Event()

    def endless(*arguments, **more):
        try:
            while True:
                say("solving")
                time.sleep(0.001)
                began.set()
        finally:
            stopped.set()

    began = threading.Event()
    monkeypatch.setattr(assistant, "give_hint", endless)
    monkeypatch.setattr(assistant, "review", endless)

    async def use(call):
        before = await call("new_game", game="thirties", seat=0)
        for tool in ("hint", "review"):
            began.clear()
            stopped.clear()
            async with anyio.create_task_group() as group:
                group.start_soon(lambda tool=tool: call(tool, game_id=1))
                assert await anyio.to_thread.run_sync(began.wait, 60)
                group.cancel_scope.cancel()
            assert await anyio.to_thread.run_sync(stopped.wait, 60)
        assert (await call("look", game_id=1)) in before

    using(use)


def test_a_slow_hint_delays_no_other_call(monkeypatch):
    began, give_hint = [], assistant.give_hint

    async def use(call):
        free = anyio.Event()

        def slow(*arguments):
            began.append(True)
            anyio.from_thread.run(free.wait)
            return give_hint(*arguments)

        monkeypatch.setattr(assistant, "give_hint", slow)
        text = await call("new_game", game="thirties", seat=0)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: call("hint", game_id=1))
            while not began:
                await anyio.sleep(0.01)
            await call("new_game", game="thirties")
            await call("look", game_id=1)
            assert legal(await call("move", game_id=1, move=legal(text)[-1]))
            free.set()

    using(use)


SERVE = """
import sys
from dice_envs.experiments import assistant
from dice_envs.experiments.__main__ import main
make_agent = assistant.make_agent
assistant.make_agent = lambda *given: print("a stray line") or make_agent(*given)
sys.argv[1:] = ["mcp"]
main()
"""


@posix
def test_over_the_pipes_of_a_process(tmp_path):
    """Standard output has the protocol alone; what else is printed goes to standard error."""
    program, sent, said = (tmp_path / name for name in ("serve.py", "sent", "said"))
    program.write_text(SERVE)
    environment = {**os.environ, **COMPILES_SOON, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment.pop("PYTHONUNBUFFERED", None)  # without it, what is printed may wait until the server has ended
    command = f'"{sys.executable}" "{program}" | tee "{sent}"'
    server = StdioServerParameters(command="sh", args=["-c", command], env=environment, cwd=tmp_path)

    async def run():
        with said.open("w") as errors:
            async with Client(stdio_client(server, errors)) as client:
                call = calls(client)
                text = await call("new_game", game="liars_dice", opponent="nash", seat=0, seed=3, options=ONE_DIE)
                _, texts = await play(call, 1, text, np.random.default_rng(3))
                return texts[-1], await call("review", game_id=1)

    end, review = anyio.run(run)
    assert "Your result: " in end
    assert "you: " in review
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in sent.read_text().splitlines())
    lines = said.read_text().splitlines()  # more than these two where the game had to be solved
    assert lines[0] == "serving an MCP client on standard input and output; Ctrl-C ends it"
    assert "a stray line" in lines


ENDLESS = """
import sys, threading
from dice_envs.experiments import assistant
from dice_envs.experiments.__main__ import main
assistant.names = lambda: print("thinking", file=sys.stderr, flush=True) or threading.Event().wait()
sys.argv[1:] = ["mcp"]
main()
"""
TRADE = '{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}'
LINES = {  # what a client sends, and what the answer to it holds
    f'"id": 1, "method": "initialize", "params": {TRADE}': '"id":1,"result":',
    '"id": 2, "method": "tools/call", "params": {"name": "rules", "arguments": {"game": "\\ud800"}}': '"id":2,"error":',
    '"id": "three", "method": 3': '"id":"three","error":',
    '"id": {}': '"id":null,"error":',
    '"id': '"id":null,"error":',
}


@pytest.mark.thorough
@pytest.mark.parametrize("end", ["input", "output", "Ctrl-C"])
def test_every_line_has_an_answer_and_the_end_waits_for_no_work(end, tmp_path):
    with process("-c", ENDLESS, env={**os.environ, **COMPILES_SOON}) as server:

        def send(line):
            server.stdin.write(f'{{"jsonrpc": "2.0", {line}}}\n')
            server.stdin.flush()

        for line, answer in LINES.items():
            send(line)
            assert answer in server.stdout.readline()
        send('"id": 5, "method": "tools/call", "params": {"name": "list_games", "arguments": {}}')
        assert server.stderr.readline().endswith("Ctrl-C ends it\n")
        assert server.stderr.readline() == "thinking\n"
        if end == "Ctrl-C":
            server.send_signal(signal.SIGINT)
        else:
            if end == "output":
                server.stdout.close()
                send('"id": 6, "method": "tools/list"')
            server.stdin.close()
        assert server.wait(60) == (130 if end == "Ctrl-C" else 0)
        assert server.stderr.read() == ("stopped\n" if end == "Ctrl-C" else "")
        if end != "output":
            assert ('"id":5,"error":' in server.stdout.read()) == (end == "input")


@pytest.mark.thorough
def test_an_input_that_cannot_be_read_is_an_error_in_one_line(tmp_path):
    with (tmp_path / "input").open("w") as written, process("-m", "experiments", "mcp", stdin=written) as server:
        assert server.communicate(timeout=100) == ("", "error: mcp can't read its standard input: Bad file descriptor\n")
    assert server.returncode == 2
