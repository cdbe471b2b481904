"""Games for an assistant: a server of the Model Context Protocol (MCP), whose tools play games in words."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.text import Text

from dice_envs import Variant, configure, load, names
from dice_envs.agent.specs import for_game, required
from dice_envs.agents.hint import values_of
from dice_envs.core.machine import needs
from dice_envs.core.options import check_range, did_you_mean, shown
from dice_envs.core.work import Unwanted, work
from dice_envs.envs.text import TextTable, read_reply
from dice_envs.evaluation import NO_COST
from dice_envs.experiments.ui import seed_or_fresh
from dice_envs.experiments.web import make_agent
from dice_envs.experiments.words import advice_text, review_lines
from dice_envs.table.advice import figure, give_hint, noted, review
from dice_envs.table.rules import attributes, docstring, rules_in_short, sections
from dice_envs.table.sitting import PERSON

with needs("mcp", "the server for assistants"):
    import anyio
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.stdio import stdio_server
    from mcp.shared.message import SessionMessage
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError
    from pydantic import Field

MOST_GAMES = 100  # kept at a time
INSTRUCTIONS = """Dice games against agents, up to optimal play. list_games names the games, rules explains one, and new_game
begins one. The answers to new_game, look and move tell all that your seat may know. Where they ask for a line "Move: …", call
move instead. hint and price say what moves are worth. review judges your play when the game is over."""

GameName = Annotated[str, Field(description="Name of the game, as list_games gives it.")]
GameId = Annotated[int, Field(description="Number of the game, as new_game gives it.")]
Move = Annotated[str, Field(description='One of the legal moves in words, say "3 x 4" or "call".')]
Options = Annotated[
    dict[str, Any] | None,
    Field(description='Game options by name, say {"num_dice": 2}; defaults if left out. rules lists them.'),
]
Opponent = Annotated[
    str | None, Field(description="Agent at all other seats, say numbers:bluff=0.25; random if left out. list_games has them.")
]
Seat = Annotated[int | None, Field(description="Your seat, from 0; drawn at random if left out.")]
Seed = Annotated[int | None, Field(description="Fixes the dice and the opponents' choices; drawn at random if left out.")]


class SeatedGame(NamedTuple):
    """A game, and the assistant's place at it."""

    table: TextTable  # the game in words
    seat: int  # the assistant's
    lock: threading.Lock  # held while somebody plays or reads the game


class Games:
    """The games of a server. The methods in `tools` are its tools, their docstrings what an assistant reads about them.

    They raise ValueError for wrong input, and then change nothing. Several threads may call them at once. At most `most` games
    are kept; a new one replaces the one that has not been used for longest.
    """

    def __init__(self, most: int = MOST_GAMES) -> None:
        self.most = most
        self._games: dict[int, SeatedGame] = {}  # in the order of their last use
        self._begun = 0
        self._lock = threading.Lock()

    @property
    def tools(self) -> tuple[Callable[..., str], ...]:
        """The methods that are tools."""
        return self.list_games, self.rules, self.new_game, self.look, self.move, self.hint, self.price, self.review

    def list_games(self) -> str:
        """List the games, and the agents that play them."""
        lines = []
        for name in names():
            own = {agent: factory for agent, factory in for_game(name).items() if agent not in for_game(None)}
            lines += [f"{name}: {next((each.paragraphs[0] for each in sections(load(name))), '')}", *_agent_lines(own)]
        return "\n".join([*lines, "Agents for any game:", *_agent_lines(for_game(None))])

    def rules(self, game: GameName, options: Options = None) -> str:
        """Explain the rules in force with these options, and list all options of the game with their values."""
        variant = configure(game, **(options or {}))
        meanings = attributes(variant.game.options)
        values = dataclasses.asdict(variant.options)
        listed = [f"- {name} = {json.dumps(value)}: {meanings.get(name, '')}" for name, value in values.items()]
        heading = f"{variant.game.title}, number of seats: {variant.facts.num_seats}"
        return "\n".join([heading, *(f"- {line}" for line in rules_in_short(variant)), "Options:", *listed])

    def new_game(
        self, game: GameName, opponent: Opponent = None, seat: Seat = None, seed: Seed = None, options: Options = None
    ) -> str:
        """Begin a game against an agent. Return its number, the rules, and the position as your seat may know it."""
        variant = configure(game, **(options or {}))
        count = variant.facts.num_seats
        if opponent is not None and count == 1:
            raise ValueError(f"{variant} has one seat: leave out opponent")
        if seat is not None:
            check_range("seat", seat, 0, count - 1)
        seed = seed_or_fresh(seed)
        own = int(np.random.default_rng(seed).integers(count)) if seat is None else seat
        spec = "random" if opponent is None else opponent
        agent = PERSON if count == 1 else make_agent(variant, spec)
        table = TextTable(variant, seed, [PERSON if place == own else agent for place in range(count)])
        against = "" if count == 1 else f" against {spec}"
        return f"This is game {self._keep(SeatedGame(table, own, threading.Lock()))}{against}.\n\n{table.prompt(own)}"

    def look(self, game_id: GameId) -> str:
        """Return the position of a game as your seat may know it, and the moves since your last one. Changes nothing."""
        table, seat, lock = self._find(game_id)
        with lock:
            return table.prompt(seat)

    def move(self, game_id: GameId, move: Move) -> str:
        """Play a move. Return the opponents' answers and the position after them, or the result. A move that is not legal is an
        error that lists what is, and changes nothing."""
        table, seat, lock = self._find(game_id)
        with lock:
            table.reply(move)
            return table.prompt(seat)

    def hint(self, game_id: GameId) -> str:
        """Return what each of your moves is worth now, with optimal play afterwards where that is known. Uses only what your
        seat may know. The first hint in a game can take a minute."""
        variant, state, moves = self._turn(game_id)
        return advice_text(give_hint(variant, state, moves))

    def price(self, game_id: GameId, move: Move) -> str:
        """Return what a move would give away now: the value of the best move less its own. Does not play it."""
        variant, state, moves = self._turn(game_id)
        action = read_reply(variant, state, move)
        values = values_of(variant, state, moves, played=action)
        words = variant.describe_action(action)
        if values is None:
            return f"nobody knows what {words} gives away here"
        best = int(np.nanargmax(values.values))
        cost = float(values.values[best] - values.values[action])
        error = None if values.errors is None else float(values.errors[action])
        if cost <= (NO_COST if error is None else error):
            return f"{words} gives nothing away: nothing is better\n({noted(values)})"
        worth = figure(float(values.values[best]), values)
        lost = figure(cost, values, error)
        return f"{words} gives away {lost}: the best, {variant.describe_action(best)}, has {worth}\n({noted(values)})"

    def review(self, game_id: GameId) -> str:
        """Judge your moves in a game that is over: what each gave away, and how much of the result was luck."""
        table, seat, lock = self._find(game_id)
        sitting = table.sitting
        with lock:
            while table.over and not sitting.over:  # agents play on when the assistant is out of the game
                sitting.step()
        found = review(sitting)
        lines = review_lines(found, sitting, seat, commands=False)
        return Text.from_ansi("\n".join([f"{table.variant.game.title}, seed {sitting.seed}", *lines])).plain

    def _keep(self, seated: SeatedGame) -> int:
        with self._lock:
            self._begun += 1
            self._games[self._begun] = seated
            while len(self._games) > self.most:
                del self._games[next(iter(self._games))]
            return self._begun

    def _find(self, game_id: int) -> SeatedGame:
        """Return a game. ValueError if there is none of this number."""
        with self._lock:
            if game_id not in self._games:
                known = ", ".join(map(str, sorted(self._games)[-10:])) or "none yet"
                raise ValueError(f"there is no game {shown(game_id)}; the latest are: {known}. new_game begins one")
            self._games[game_id] = self._games.pop(game_id)
            return self._games[game_id]

    def _turn(self, game_id: int) -> tuple[Variant, Any, int]:
        """Return the variant, the state and the number of moves so far. ValueError if the assistant is not to move."""
        table, seat, lock = self._find(game_id)
        with lock:
            if table.seat != seat:
                raise ValueError("the game is over: review judges your moves")
            return table.variant, table.sitting.state, len(table.sitting)


def _agent_lines(factories: Mapping[str, Any]) -> list[str]:
    """Describe the agents in a line each, without those that need a server."""
    local = {name: factory for name, factory in factories.items() if not required(factory)}
    return [f"- {name}: {next(iter(docstring(factory).splitlines()), '')}" for name, factory in local.items()]


def _answering(tool: Callable[..., str]) -> Callable[..., Any]:
    """Return the tool with errors that the assistant may read, in a thread. It stops once nobody waits for it.

    A solver stops at its next line, a review at its next move.
    """

    @functools.wraps(tool)
    async def answer(**arguments: Any) -> str:
        gone = threading.Event()

        def listen(line: str) -> None:
            if gone.is_set():
                raise Unwanted
            print(line, file=sys.stderr, flush=True)

        def call() -> str:
            with work(say=listen):
                return tool(**arguments)

        try:
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        except (ValueError, OSError, ImportError, MemoryError) as problem:
            raise ToolError(str(problem)) from None
        finally:
            gone.set()

    return answer


class _Server(MCPServer):
    """The SDK's server, which by itself ignores unknown arguments, and requests that it cannot read."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool. ToolError for arguments that it does not have."""
        known = next((tool.input_schema["properties"] for tool in await self.list_tools() if tool.name == name), arguments)
        for unknown in (each for each in arguments if each not in known):
            takes = f"it takes: {', '.join(known)}" if known else "it takes none"
            raise ToolError(f"Error executing tool {name}: no argument {shown(unknown)}{did_you_mean(unknown, known)}; {takes}")
        return await super().call_tool(name, arguments, context)

    async def run_stdio_async(self) -> None:
        """Serve standard input and output until the input ends."""
        sent, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pass_on(requests: Any, answers: Any) -> None:
            async with sent, answers:
                async for request in requests:
                    if isinstance(request, Exception):
                        await answers.send(SessionMessage(_refusal(request)))
                    else:
                        await sent.send(request)

        async with stdio_server() as (requests, answers), anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on, requests, answers.clone())
            server = self._lowlevel_server
            await server.run(received, answers, server.create_initialization_options())


def _refusal(problem: Exception) -> JSONRPCError:
    """Return the answer to a line that is no request, for example because of a lone surrogate in it."""
    number = None
    with contextlib.suppress(Exception):  # the line may be anything
        (line, *_) = [each["input"] for each in problem.errors() if isinstance(each["input"], str | dict)]  # type: ignore[attr-defined]
        number = (line if isinstance(line, dict) else json.loads(line))["id"]
    known = number if type(number) is int or (isinstance(number, str) and number.isascii()) else None
    message = "this line is no JSON-RPC request in valid Unicode"
    return JSONRPCError(jsonrpc="2.0", id=known, error=ErrorData(code=PARSE_ERROR, message=message))


def make_server(games: Games) -> MCPServer:
    """Return the server of these games."""
    server = _Server("dice-envs", instructions=INSTRUCTIONS, version=metadata.version("dice-envs"), log_level="WARNING")
    for tool in games.tools:
        description = " ".join(docstring(tool).split())
        server.add_tool(_answering(tool), description=description, structured_output=False)
    return server


def serve() -> None:
    """Serve games on standard input and output until the client closes them, which ends the process at once.

    Raises OSError if standard input can't be read.
    """
    try:
        os.read(0, 0)
    except OSError as unreadable:
        raise OSError(f"mcp can't read its standard input: {unreadable.strerror}") from None
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop)  # the SDK would first wait for one more line of input
    typer.echo("serving an MCP client on standard input and output; Ctrl-C ends it", err=True)
    # The SDK sends what is printed to standard error, as long as it serves: lines must not wait in a buffer for its end.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    try:
        make_server(Games()).run()
    except* BrokenPipeError:  # the client has gone before its answer
        pass
    os._exit(0)  # without waiting for threads that compute what nobody reads


def _stop(number: int, frame: Any) -> None:
    os.write(2, b"stopped\n")  # sys.stderr refuses to be written to while it is written to
    os._exit(130)
