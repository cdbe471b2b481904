"""A language model as a player, behind any server with the OpenAI chat form: llama.cpp, vLLM, Ollama, OpenAI and others.

Its spec is `chat:MODEL,url=URL`.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import datetime
import functools
import hashlib
import json
import operator
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import numpy as np

from dice_envs.agent import RESIGNS, Agent, AgentError, Promises, Turn, promises_of
from dice_envs.core.files import read_bytes, replaceable
from dice_envs.core.game import Variant
from dice_envs.core.machine import needs
from dice_envs.core.options import Range, shown
from dice_envs.envs.text import IllegalMove, Unreadable, prompt, read_reply
from dice_envs.envs.text.words import CUT_OFF, MOST_READ, ask_again

from .base import Checked

AGAIN = frozenset((408, 409, 425, 429, 500, 502, 503, 504))  # answers of a server that is worth asking again
CUT_OFF_BY = ("length", "model_length", "max_tokens", "content_filter", "error")  # finish_reason of a reply without its end
ABOUT_KEY = (401, 403)  # answers that may repeat a part of the key
MOST_BYTES = 2**21  # of an answer
MOST_LOG = 2**30  # bytes of a log whose replies are used again
LONGEST_PAUSE = 60.0  # seconds
CHARACTERS = 4  # of a token, where the server does not count
MOST_COUNTED = 10**9  # tokens of a prompt or a reply; a server that counts more counts wrongly
FORM = 100  # tokens that a server may add to each message
SHORTEST_SECRET = 8  # characters of a key or a part of it that are hidden; fewer are no secret, and may be part of any word
SHORTEST_QUOTED = 4  # the same in what a server says of an error
SPREAD = 8  # a part may be stretched to this many times its length by other characters
LOOK_EVERY = 0.05  # seconds between two looks whether a limit has room for another request
Count: TypeAlias = Annotated[int, Range(1, 10**12)]
Seconds: TypeAlias = Annotated[float, Range(0, 86_400)]
Money: TypeAlias = Annotated[float, Range(0, 10**9)]


@dataclasses.dataclass
class Tally:
    """What a model has done and used so far.

    Attributes:
        moves: moves asked for.
        illegal: replies without a legal move.
        random: moves drawn at random, because the second reply had no legal move either.
        lost: games given up for the same reason.
        requests: requests to the server, repeated ones and those of replies from the log too.
        tokens: tokens of all prompts and replies.
        cost: their price, in the unit of `price`.
    """

    moves: int = 0
    illegal: int = 0
    random: int = 0
    lost: int = 0
    requests: int = 0
    tokens: int = 0
    cost: float = 0.0


@dataclasses.dataclass(frozen=True)
class Chat(Checked):
    """A language model that reads a prompt for each move and writes a reply (see `dice_envs.envs.text`).

    It sees the position, but not the moves that led to it. A reply without a legal move is asked again once, with the reason.
    Games are asked for at once. Each process has its own limits. No request is sent that could pass one: its prompt is taken to
    have a token for each byte, its reply to be as long as `tokens` allows.

    Attributes:
        model: its name at the server.
        url: the address before `/chat/completions`.
        key: name of the environment variable that holds the server's key, which is sent to the server and written nowhere.
        illegal: what a second reply without a legal move counts as. "random": a random legal move. "lose": it loses the game,
            in matches such as those of `arena`. "raise": an AgentError.
        legal: whether prompts list the legal moves.
        temperature: of the model's draws, 0 to 2; None: not sent, for models that refuse it.
        tokens: limit on one reply.
        tokens_as: the name under which `tokens` is sent; None: not sent. Replies may then be longer, and pass all limits.
        budget: limit on the tokens of all prompts and replies.
        price: of a million tokens of prompts, in any money.
        reply_price: of a million tokens of replies.
        cost: limit on the price of all tokens; 0: none.
        seconds: limit on one request, from the connection to the end of the answer.
        tries: requests for one reply, if the server is busy or does not answer.
        pause: seconds before the second request; it doubles every time.
        at_once: requests at the same time.
        log: file to which each reply is added as a line of JSON as soon as it has come; empty: none.
        resume: whether replies in `log` to the same requests, in games with the same seed, are used instead of asking again.
            Limits then include what is in the log.

    Raises:
        ValueError: no model, or a value that is not allowed.
        OSError: `log` is a folder, or no plain file.
    """

    reaches_out: ClassVar[bool] = True  # to an address, with a key: no spec that others have written may name it

    model: str
    url: str = "http://127.0.0.1:8000/v1"
    key: str = "OPENAI_API_KEY"
    illegal: Literal["random", "lose", "raise"] = "random"
    legal: bool = True
    temperature: Annotated[float, Range(0, 2)] | None = 0.0
    tokens: Count = 1000
    tokens_as: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    budget: Count = 1_000_000
    price: Money = 0.0
    reply_price: Money = 0.0
    cost: Money = 0.0
    seconds: Seconds = 60.0
    tries: Count = 5
    pause: Seconds = 1.0
    at_once: Count = 16
    log: str = ""
    resume: bool = False
    tally: Tally = dataclasses.field(default_factory=Tally, init=False, repr=False, compare=False)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    # Tokens of prompts and of replies: paid for, and what requests that are under way may use at most.
    _paid: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2, np.int64), init=False, repr=False, compare=False)
    _held: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2, np.int64), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model or not self.model.isprintable():
            raise ValueError(f"model must be the name of a model at the server, not {shown(self.model)}")
        parts = urlsplit(str(self.url))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise ValueError(f"url must be http://… or https://… without a password in it, not {shown(parts.scheme)}…")
        super().__post_init__()
        if self.log:
            replaceable(Path(self.log))
        if self.resume and not self.log:
            raise ValueError("resume needs log: the file with the replies")
        if self.cost and not self.price + self.reply_price:
            raise ValueError(f"cost={self.cost:g} needs the price of a million tokens: price, reply_price")

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the same player, with a tally of its own."""
        given = {each.name: vars(self)[each.name] for each in dataclasses.fields(self) if each.init}
        return functools.partial(Chat, **given), ()

    @functools.cached_property
    def promises(self) -> Promises:
        """Whether it may return RESIGNS."""
        return Promises(resigns=self.illegal == "lose", needs=self._needs)

    def _needs(self, variant: Variant, positions: int) -> None:
        """Raise ValueError: visitors of a page must not spend somebody's tokens."""
        raise ValueError("a language model plays on the page only if it is named in the terminal")

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, or RESIGNS with `illegal="lose"`, (n,) int64.

        Raises:
            AgentError: the server refuses or does not answer, the budget is spent, or with `illegal="raise"` a reply.
        """
        moves = asyncio.run_coroutine_threadsafe(self._moves(turn), _loop(os.getpid()))
        try:
            found = moves.result()
        finally:
            moves.cancel()  # after Ctrl-C
        gives_up = self.illegal == "lose"
        for k, action in enumerate(found):
            if action is None:
                self._count(lost=gives_up, random=not gives_up)
                found[k] = RESIGNS if gives_up else int(turn.rng.choice(np.flatnonzero(turn.legal[k])))
        return np.array(found, np.int64)

    # --- one move -----------------------------------------------------------------------------------------------------

    async def _moves(self, turn: Turn) -> list[int | None]:
        """Return the model's action in each game. After an error no more games are asked for; replies under way are kept."""
        with needs("chat", "a language model"):
            import httpx
        streams = [stream.tobytes().hex() for stream in turn.streams]  # each game has its own, which the next line moves on
        states, slots = turn.states, asyncio.Semaphore(self.at_once)
        failed: list[Exception] = []

        async def move(k: int) -> int | None:
            async with slots:
                try:
                    return None if failed else await self._move(client, turn.variant, states[k], int(turn.seats[k]), streams[k])
                except Exception as problem:
                    failed.append(problem)
                    return None

        limits, secure = httpx.Limits(max_connections=self.at_once), urlsplit(self.url).scheme != "http"
        async with httpx.AsyncClient(timeout=None, limits=limits, verify=secure) as client:  # certificates take long to read
            found = await asyncio.gather(*map(move, range(len(turn))))
        if failed:
            raise failed[0]
        return found

    async def _move(self, client: Any, variant: Variant, state: Any, seat: int, stream: str) -> int | None:
        """Return the model's action; None if its second reply had no legal move either."""
        self._count(moves=1)
        said = [{"role": "user", "content": prompt(variant, seat, state=state, legal=self.legal)}]
        for _ in range(2):
            reply, action, problem = await self._reply(client, said, stream, variant, state, seat)
            if action is not None:
                return action
            self._count(illegal=1)
            said += [{"role": "assistant", "content": reply[-MOST_READ:]}, {"role": "user", "content": ask_again(problem)}]
        if self.illegal == "raise":
            raise AgentError(f"{self.model}: two replies without a legal move; the second one: {problem}")
        return None

    def _count(self, **more: float) -> None:
        with self._lock:
            for name, number in more.items():
                vars(self.tally)[name] += number

    def _price(self, asked: int, replied: int) -> float:
        return float(asked * self.price + replied * self.reply_price) / 1_000_000

    # --- replies that are kept ----------------------------------------------------------------------------------------

    async def _reply(
        self, client: Any, said: list[dict[str, str]], stream: str, variant: Variant, state: Any, seat: int
    ) -> tuple[str, int | None, str]:
        """Return the reply to a conversation, from the log if it has been paid for, with its action or why it has none."""
        body: dict[str, Any] = {"model": self.model, "messages": said}
        body |= {self.tokens_as: self.tokens} if self.tokens_as else {}
        body |= {} if self.temperature is None else {"temperature": self.temperature}
        request = hashlib.sha256(json.dumps([body, stream]).encode()).hexdigest()
        with self._lock:
            kept = self._kept[request].pop(0) if self._kept.get(request) else None
        answer = kept or await self._ask(client, body)
        self._count(
            requests=int(kept is not None), tokens=answer.asked + answer.replied, cost=self._price(answer.asked, answer.replied)
        )
        action, problem = None, ""
        try:
            if answer.cut_off:
                raise Unreadable(f"{CUT_OFF}: its finish_reason is {answer.cut_off!r}")
            action = read_reply(variant, state, answer.reply)
        except (Unreadable, IllegalMove) as wrong:
            problem = str(wrong) if self._without_key(answer.reply) == answer.reply else "it repeats the key"
        if self.log and kept is None:
            entry = {
                "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                **self._settings,
                "game": str(variant),
                "seat": seat,
                "prompt": self._without_key(said[-1]["content"]),
                "reply": self._without_key(answer.reply),
                "cut_off": answer.cut_off,
                "no_move": problem,
                "asked": answer.asked,
                "replied": answer.replied,
                "request": request,
            }
            with self._lock, Path(self.log).open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        return answer.reply, action, problem

    @property
    def _settings(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("model", "temperature", "tokens", "legal", "illegal")}

    @functools.cached_property
    def _kept(self) -> dict[str, list[_Answer]]:
        """The replies in the log by their requests, in their order. Damaged lines are passed over."""
        kept: dict[str, list[_Answer]] = collections.defaultdict(list)
        path = Path(self.log)
        if not self.resume or not path.exists():
            return kept
        content = read_bytes(path, MOST_LOG)
        for line in content.splitlines():
            try:
                entry = json.loads(line)
                asked, replied = (_counted(entry[name], 0) for name in ("asked", "replied"))
                answer = _Answer(_text(entry["reply"]), asked, replied, _text(entry.get("cut_off")))
                if self._settings.items() <= entry.items():
                    kept[str(entry["request"])].append(answer)
                    self._paid[:] += answer[1:3]
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
        if content and not content.endswith(b"\n"):  # the process was killed while it wrote
            with path.open("ab") as file:
                file.write(b"\n")
        return kept

    # --- the server ---------------------------------------------------------------------------------------------------

    async def _ask(self, client: Any, body: dict[str, Any]) -> _Answer:
        """Return the model's answer, asking again while the server is busy or broken."""
        most = sum(len(each["content"].encode()) + FORM for each in body["messages"]), self.tokens
        problem, pause = "", self.pause
        for attempt in range(self.tries):
            if attempt:
                await asyncio.sleep(min(pause, LONGEST_PAUSE))
                pause *= 2
            while not self._reserved(most):
                await asyncio.sleep(LOOK_EVERY)
            used: tuple[int, ...] = 0, 0
            try:
                answer = self._read(*await self._post(client, body), body)
                used = answer[1:3]
                return answer
            except _Again as again:
                problem, pause = str(again), max(pause, again.pause)
            finally:
                with self._lock:
                    self._held[:] -= most
                    self._paid[:] += used
        raise AgentError(f"{self.model}: no reply from {self.url} after {self.tries} requests; the last one: {problem}")

    def _reserved(self, most: tuple[int, int]) -> bool:
        """Reserve what a request may use at most. False if those under way leave no room, AgentError if there is none."""
        with self._lock:
            asked, replied = self._paid + self._held + most
            cost = self._price(asked, replied)
            spent = ""
            if asked + replied > self.budget:
                spent = f"the budget of {self.budget:,} tokens is spent: another request may take it to {asked + replied:,}"
            elif self.cost and cost > self.cost:
                spent = f"the limit cost={self.cost:g} is reached: another request may take it to {cost:.4g}"
            if spent and not self._held.any():
                raise AgentError(f"{self.model}: {spent}")
            if not spent:
                self._held[:] += most
                self.tally.requests += 1
            return not spent

    async def _post(self, client: Any, body: dict[str, Any]) -> tuple[int, bytes, float]:
        """Return status, body and the pause that the server asks for. _Again if it does not answer in time, or endlessly."""
        import httpx

        key = os.environ.get(self.key, "")
        if not (key.isascii() and key.isprintable()):
            raise AgentError(f"{self.model}: the key in {self.key} may hold printable ASCII characters only")
        headers = {"accept-encoding": "identity", **({"authorization": f"Bearer {key}"} if key else {})}
        content = bytearray()
        try:
            async with (
                asyncio.timeout(self.seconds),
                client.stream("POST", f"{self.url.rstrip('/')}/chat/completions", json=body, headers=headers) as answer,
            ):
                if answer.headers.get("content-encoding", "identity").lower() != "identity":
                    raise _Again("an answer that is compressed, though not asked to be")
                async for part in answer.aiter_raw():
                    content += part
                    if len(content) > MOST_BYTES:
                        raise _Again(f"an answer of over {MOST_BYTES:,} bytes")
                asked_for = answer.headers.get("retry-after", "")
                pause = float(asked_for) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", asked_for) else 0.0
                return answer.status_code, bytes(content), pause
        except TimeoutError:
            raise _Again(f"no whole answer in {self.seconds:g} seconds") from None
        except httpx.HTTPError as problem:
            raise _Again(type(problem).__name__) from None
        except (httpx.InvalidURL, UnicodeError):
            raise AgentError(f"{self.model}: the url may not hold such characters") from None

    def _read(self, status: int, content: bytes, pause: float, body: dict[str, Any]) -> _Answer:
        """Check and return a server's answer. _Again if another request may do better, AgentError if not."""
        if status in AGAIN:
            raise _Again(f"status {status}", pause)
        if status != 200:
            about = f"the key in {self.key} is not accepted"
            if status not in ABOUT_KEY:
                said = " ".join(content.decode(errors="replace").split())
                about = shown(self._without_key(said[:2000], SHORTEST_QUOTED)[:200])
                for name, way in ((self.tokens_as, "tokens_as=none or another name"), ("temperature", "temperature=none")):
                    about += f"; {way} leaves out {name}" if name in body and str(name) in said else ""
            raise AgentError(f"{self.model}: {self.url} answers with status {status}: {about}")
        try:
            answer = json.loads(content, parse_int=lambda digits: int(digits[:20]))  # Python reads no more than 4300 digits
            choice, usage = answer["choices"][0], answer.get("usage")
            reply, cut_off = _text(choice["message"].get("content")), choice.get("finish_reason")
            counts, length = usage if isinstance(usage, dict) else {}, sum(len(each["content"]) for each in body["messages"])
            asked = _counted(counts.get("prompt_tokens"), length // CHARACTERS + 1)
            replied = _counted(counts.get("completion_tokens"), len(reply) // CHARACTERS + 1)
            return _Answer(reply, asked, replied, cut_off if cut_off in CUT_OFF_BY else "")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            raise _Again("an answer of another form") from None

    def _without_key(self, text: str, least: int = SHORTEST_SECRET) -> str:
        """Return a text with "…" in place of each part of the key of at least this length, also with something inside it."""
        key = os.environ.get(self.key, "")
        places = [at for at, sign in enumerate(text) if sign in key] if len(key) >= SHORTEST_SECRET else []
        signs, hidden = "".join(text[at] for at in places), set[int]()
        for first, last in zip(range(len(places)), range(least - 1, len(places))):
            if places[last] - places[first] < SPREAD * least and signs[first : last + 1] in key:
                hidden.update(range(places[first], places[last] + 1))
        return "".join("…" * (at - 1 not in hidden) if at in hidden else sign for at, sign in enumerate(text))


class _Answer(NamedTuple):
    """A reply, the tokens of its prompt and of itself, and its `finish_reason` if it was cut off."""

    reply: str
    asked: int
    replied: int
    cut_off: str


def _text(reply: Any) -> str:
    """Return a reply in valid Unicode; a reply that is no text counts as empty."""
    return reply.encode("utf-8", "replace").decode() if isinstance(reply, str) else ""


def _counted(tokens: Any, guess: int) -> int:
    """Return a number of tokens as a server counts it if that can be true, else a guess."""
    return tokens if type(tokens) is int and 0 <= tokens <= MOST_COUNTED else guess


@functools.cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Return the event loop of a process, which runs in a thread of its own: Ctrl-C does not wait for it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


class _Again(Exception):
    """A request has failed in a way that may be over at the next one; `pause` is what the server asks for, in seconds."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


# --- what models use, where games are played in parts ---------------------------------------------------------------------


def logged(agents: Sequence[Agent], json: Path | None, resume: bool = False) -> list[Agent]:
    """Return a command's agents. Language models without a log get one beside the file of results, if there is one; with
    `resume` the replies in the logs are used again."""
    if json is None:
        return list(agents)
    log = str(json.with_suffix(".replies.jsonl").absolute())
    return [
        dataclasses.replace(agent, log=agent.log or log, resume=resume or agent.resume) if isinstance(agent, Chat) else agent
        for agent in agents
    ]


class ChatMeter:
    """Adds up what the language models among some agents do and use, wherever (see `dice_envs.experiments.jobs.Meter`).

    Args:
        agents: the agents.
        alone: whether they all play in this process.

    Attributes:
        tallies: of each language model.

    Raises:
        ValueError: not alone, and a limit on the price: processes do not know of each other's requests.
    """

    def __init__(self, agents: Sequence[Agent], alone: bool = True) -> None:
        self.chats = [agent for agent in agents if isinstance(agent, Chat)]
        self.tallies = [Tally() for _ in self.chats]
        self._by_clock = dict.fromkeys(type(agent).__name__ for agent in agents if promises_of(agent).by_clock)
        for chat in self.chats:
            if chat.cost and not alone:
                raise ValueError(f"cost={chat.cost:g} holds within one process: leave out cost or --ray")

    def __len__(self) -> int:
        return len(self.chats)

    def read(self) -> list[tuple[Any, ...]]:
        return [dataclasses.astuple(chat.tally) for chat in self.chats]

    def add(self, used: Sequence[Sequence[float]]) -> None:
        had = map(dataclasses.astuple, self.tallies)
        self.tallies = [Tally(*map(operator.add, *each)) for each in zip(had, used, strict=True)]

    def recorded(self) -> int:
        """Return the size of the files with the replies, in bytes."""
        return sum(path.stat().st_size for path in {Path(chat.log) for chat in self.chats if chat.log} if path.exists())

    def lines(self) -> list[str]:
        """Return a line for each language model: moves, replies without a legal move and what became of them, tokens; and
        one for each agent whose play no seed repeats."""
        return [f"{name} thinks by the clock: the seed does not repeat its games" for name in self._by_clock] + [
            f"{chat.model}: {tally.moves:,} moves, {tally.illegal:,} replies without a legal move, "
            f"{tally.random:,} moves drawn instead, {tally.lost:,} games lost by them; {tally.tokens:,} tokens"
            + (f", which cost {tally.cost:.4g}" if tally.cost else "")
            for chat, played in zip(self.chats, self.tallies, strict=True)
            for tally in [played if played.moves else chat.tally]  # games with a log are not played in parts
        ]


AGENTS = {"chat": Chat}
