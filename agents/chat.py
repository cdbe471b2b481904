"""A language model as a player, behind any server with the OpenAI chat form: llama.cpp, vLLM, Ollama, OpenAI and others.

Its spec is `chat:MODEL,url=URL`.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from dice_envs.agent import RESIGNS, AgentError, Turn
from dice_envs.core.extras import needs
from dice_envs.core.game import Variant
from dice_envs.core.options import check_choice, check_range, shown
from dice_envs.envs.text import IllegalMove, Unreadable, prompt, read_reply
from dice_envs.envs.text.replies import ask_again

__all__ = ["AGENTS", "Chat", "Tally"]

AGAIN = frozenset((408, 409, 425, 429, 500, 502, 503, 504))  # answers of a server that is worth asking again
MOST_BYTES = 2**21  # of an answer
LONGEST_PAUSE = 60.0  # seconds
CHARACTERS = 4  # of a token, where the server does not count


@dataclasses.dataclass
class Tally:
    """What a model has done and used so far.

    Attributes:
        moves: moves asked for.
        illegal: replies without a legal move.
        random: moves drawn at random, because the second reply had no legal move either.
        lost: games given up for the same reason.
        requests: requests to the server, repeated ones too.
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
class Chat:
    """A language model that reads a prompt for each move and writes a reply (see `dice_envs.envs.text`).

    It sees the position, but not the moves that led to it. A reply without a legal move is asked again once, with the reason.
    Games are asked for at once. Each process has its own limits.

    Attributes:
        model: its name at the server.
        url: the address before `/chat/completions`.
        key: name of the environment variable that holds the server's key, which is sent to the server and written nowhere.
        illegal: what a second reply without a legal move counts as. "random": a random legal move. "lose": it loses the game,
            in matches such as those of `arena`. "raise": an AgentError.
        legal: whether prompts list the legal moves.
        temperature: of the model's draws, 0 to 2.
        tokens: limit on one reply.
        budget: limit on the tokens of all prompts and replies.
        price: of a million tokens of prompts, in any money.
        reply_price: of a million tokens of replies.
        cost: limit on the price of all tokens; 0: none.
        seconds: limit on one request.
        tries: requests for one reply, if the server is busy or does not answer.
        pause: seconds before the second request; it doubles every time.
        at_once: requests at the same time.
        log: file to which each reply is added as a line of JSON; empty: none.

    Raises:
        ValueError: no model, or a value that is not allowed.
    """

    model: str
    url: str = "http://127.0.0.1:8000/v1"
    key: str = "OPENAI_API_KEY"
    illegal: str = "random"
    legal: bool = True
    temperature: float = 0.0
    tokens: int = 1000
    budget: int = 1_000_000
    price: float = 0.0
    reply_price: float = 0.0
    cost: float = 0.0
    seconds: float = 60.0
    tries: int = 5
    pause: float = 1.0
    at_once: int = 16
    log: str = ""
    tally: Tally = dataclasses.field(default_factory=Tally, init=False, repr=False, compare=False)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model must be the name of a model at the server; it is empty")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise ValueError(f"url must be http://… or https://… without a password in it, not {shown(parts.scheme)}…")
        check_choice("illegal", self.illegal, ("random", "lose", "raise"))
        check_range("temperature", self.temperature, 0, 2, whole=False)
        for name in ("tokens", "budget", "tries", "at_once"):
            check_range(name, getattr(self, name), 1, 10**12)
        for name in ("seconds", "pause"):
            check_range(name, getattr(self, name), 0, 86_400, whole=False)
        for name in ("price", "reply_price", "cost"):
            check_range(name, getattr(self, name), 0, 10**9, whole=False)
        if self.cost and not self.price + self.reply_price:
            raise ValueError(f"cost={self.cost:g} needs the price of a million tokens: price, reply_price")

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the same player, with a tally of its own."""
        given = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.init}
        return functools.partial(Chat, **given), ()

    @property
    def resigns(self) -> bool:
        """Whether it may return RESIGNS; see `dice_envs.Agent`."""
        return self.illegal == "lose"

    def check_in_passing(self, variant: Variant, asked: int = 1) -> None:
        """Raise ValueError: visitors of a page must not spend somebody's tokens."""
        raise ValueError("a language model plays on the page only if it is named in the terminal")

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, or RESIGNS with `illegal="lose"`, (n,) int64.

        Raises:
            AgentError: the server refuses or does not answer, the budget is spent, or with `illegal="raise"` a reply.
        """
        with ThreadPoolExecutor(min(self.at_once, len(turn))) as threads:
            jobs = [threads.submit(self._move, turn.variant, turn.states[k], int(turn.seats[k])) for k in range(len(turn))]
            try:
                found = [job.result() for job in jobs]
            finally:
                for job in jobs:
                    job.cancel()
        actions = np.empty(len(turn), np.int64)
        for k, action in enumerate(found):
            actions[k] = self._instead(turn, k) if action is None else action
        return actions

    def _instead(self, turn: Turn, k: int) -> int:
        """Return what the second reply without a legal move counts as."""
        if self.illegal == "lose":
            self._count(lost=1)
            return RESIGNS
        self._count(random=1)
        return int(turn.rng.choice(np.flatnonzero(turn.legal[k])))

    # --- one move -----------------------------------------------------------------------------------------------------

    def _move(self, variant: Variant, state: Any, seat: int) -> int | None:
        """Return the model's action; None if its second reply had no legal move either."""
        self._count(moves=1)
        said = [{"role": "user", "content": prompt(variant, seat, state=state, legal=self.legal)}]
        problem = ""
        for _ in range(2):
            reply = self._ask(said)
            try:
                action = read_reply(variant, state, reply)
            except (Unreadable, IllegalMove) as wrong:
                problem = str(wrong)
                self._count(illegal=1)
                self._write(variant, seat, said, reply, problem=problem)
                said = [*said, {"role": "assistant", "content": reply}, {"role": "user", "content": ask_again(problem)}]
                continue
            self._write(variant, seat, said, reply, action=variant.describe_action(action))
            return action
        if self.illegal == "raise":
            raise AgentError(f"{self.model}: two replies without a legal move; the second one: {problem}")
        return None

    def _count(self, **more: float) -> None:
        with self._lock:
            for name, number in more.items():
                setattr(self.tally, name, getattr(self.tally, name) + number)

    def _write(self, variant: Variant, seat: int, said: list[dict[str, str]], reply: str, **result: str) -> None:
        if not self.log:
            return
        entry = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "model": self.model,
            "game": str(variant),
            "seat": seat,
            "prompt": said[-1]["content"],
            "reply": reply,
            **result,
        }
        with self._lock, Path(self.log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    # --- the server ---------------------------------------------------------------------------------------------------

    def _ask(self, said: list[dict[str, str]]) -> str:
        """Return the model's reply, asking again while the server is busy or broken."""
        problem, pause = "", self.pause
        for attempt in range(self.tries):
            if attempt:
                time.sleep(min(pause, LONGEST_PAUSE))
                pause *= 2
            with self._lock:
                if self.tally.tokens >= self.budget:
                    raise AgentError(f"{self.model}: the budget of {self.budget:,} tokens is spent")
                if self.cost and self.tally.cost >= self.cost:
                    raise AgentError(f"{self.model}: the limit cost={self.cost:g} is reached")
                self.tally.requests += 1
            try:
                return self._read(*self._post(said), said)
            except _Again as again:
                problem, pause = str(again), max(pause, again.pause)
        raise AgentError(f"{self.model}: no reply from {self.url} after {self.tries} requests; the last one: {problem}")

    def _post(self, said: list[dict[str, str]]) -> tuple[int, bytes, float]:
        """Return status, body and the pause that the server asks for. _Again if it does not answer in time, or endlessly."""
        with needs("chat", "a language model"):
            import httpx
        key = os.environ.get(self.key, "")
        body = {"model": self.model, "messages": said, "max_tokens": self.tokens, "temperature": self.temperature}
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        end, content = time.monotonic() + self.seconds, b""
        try:
            with httpx.stream(
                "POST", f"{self.url.rstrip('/')}/chat/completions", json=body, headers=headers, timeout=self.seconds
            ) as answer:
                for part in answer.iter_bytes():
                    content += part
                    if len(content) > MOST_BYTES or time.monotonic() > end:
                        raise _Again(f"an answer of over {self.seconds:g} seconds or {MOST_BYTES:,} bytes")
                asked = answer.headers.get("retry-after", "")
                return answer.status_code, content, float(asked) if asked.isdigit() else 0.0
        except httpx.HTTPError as problem:
            raise _Again(type(problem).__name__) from None
        except (httpx.InvalidURL, UnicodeEncodeError):  # the message might hold the key
            raise AgentError(f"{self.model}: neither the url nor the key may hold such characters") from None

    def _read(self, status: int, content: bytes, pause: float, said: list[dict[str, str]]) -> str:
        """Return the reply in an answer. _Again if another request may do better, AgentError if not."""
        if status in AGAIN:
            raise _Again(f"status {status}", pause)
        if status != 200:
            raise AgentError(f"{self.model}: {self.url} answers with status {status}: {self._hidden(content)}")
        try:
            answer = json.loads(content)
            reply = answer["choices"][0]["message"]["content"]
            usage = answer.get("usage") or {}
            counted = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            raise _Again("an answer of another form") from None
        reply = reply if isinstance(reply, str) else ""
        guessed = sum(len(each["content"]) for each in said) // CHARACTERS + 1, len(reply) // CHARACTERS + 1
        asked, replied = (
            count if isinstance(count, int) and count >= 0 else guess for count, guess in zip(counted, guessed, strict=True)
        )
        self._count(tokens=asked + replied, cost=(asked * self.price + replied * self.reply_price) / 1_000_000)
        return self._without_key(reply)

    def _hidden(self, content: bytes) -> str:
        """Return the beginning of a server's error in one line, without the key."""
        return shown(self._without_key(" ".join(content[:2000].decode(errors="replace").split()))[:200])

    def _without_key(self, text: str) -> str:
        key = os.environ.get(self.key, "")
        return text.replace(key, "…") if key else text


class _Again(Exception):
    """A request has failed in a way that may be over at the next one; `pause` is what the server asks for, in seconds."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


AGENTS = {"chat": Chat}
