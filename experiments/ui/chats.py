"""Language models in commands: where their replies are kept, and what they have done and used."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import Agent
from dice_envs.agent import promises_of
from dice_envs.agents.chat import Chat, Tally
from dice_envs.experiments.jobs import PLAN, Done, OnRay, Workers


def logged(agents: Sequence[Agent], json: Path | None, resume: bool = False) -> list[Agent]:
    """Return the agents. Language models without a log get one beside the file of results, if there is one.

    Args:
        agents: of a command.
        json: the file of results.
        resume: whether the replies in the logs are used again.
    """
    if json is None:
        return list(agents)
    log = str(json.with_suffix(".replies.jsonl").absolute())
    return [
        dataclasses.replace(agent, log=agent.log or log, resume=resume or agent.resume) if isinstance(agent, Chat) else agent
        for agent in agents
    ]


class Counted(Workers):
    """Workers that add up what language models do and use in all parts: in other processes, and before a stop.

    Args:
        workers: do the work.
        agents: that take part.

    Attributes:
        tallies: of each language model among the agents.

    Raises:
        ValueError: a limit on the price with workers that do not know of each other's requests.
    """

    def __init__(self, workers: Workers, agents: Sequence[Agent]) -> None:
        super().__init__(workers.kept)
        self._workers = workers
        self.chats = [agent for agent in agents if isinstance(agent, Chat)]
        self.by_clock = list(dict.fromkeys(type(agent).__name__ for agent in agents if promises_of(agent).by_clock))
        self.tallies = [Tally() for _ in self.chats]
        for chat in self.chats:
            if chat.cost and isinstance(workers, OnRay):
                raise ValueError(f"cost={chat.cost:g} holds within one process: leave out cost or --ray")

    def run(
        self,
        function: Callable[..., Any],
        shared: Sequence[Any],
        parts: Sequence[Sequence[Any]],
        sizes: Sequence[float] | None = None,
        done: Done = lambda amount: None,
    ) -> list[Any]:
        """Do what `Workers.run` does."""
        if not self.chats:
            return self._workers.run(function, shared, parts, sizes, done)
        size, kept = _size(self.chats), self.kept
        new = kept if kept is not None and not (kept.folder / PLAN).exists() else None
        if new is not None:
            new.open()  # before a part is finished: each reply is kept, and a resumed run needs the seed
        try:
            told = self._workers.run(_told, (function, shared, self.chats), parts, sizes, done)
        except BaseException:
            if new is not None and _size(self.chats) == size:
                new.close(remove=True)  # no reply has come: there is nothing to resume
            raise
        for part in told:
            self.tallies = [
                Tally(*(mine + more for mine, more in zip(dataclasses.astuple(tally), used, strict=True)))
                for tally, used in zip(self.tallies, part["used"], strict=True)
            ]
        return [np.array(part["found"]) if isinstance(part["found"], list) else part["found"] for part in told]

    def lines(self) -> list[str]:
        """Return a line for each language model: moves, replies without a legal move and what became of them, tokens; and
        one for each agent whose play no seed repeats."""
        return [f"{name} thinks by the clock: the seed does not repeat its games" for name in self.by_clock] + [
            f"{chat.model}: {tally.moves:,} moves, {tally.illegal:,} replies without a legal move, "
            f"{tally.random:,} moves drawn instead, {tally.lost:,} games lost by them; {tally.tokens:,} tokens"
            + (f", which cost {tally.cost:.4g}" if tally.cost else "")
            for chat, played in zip(self.chats, self.tallies, strict=True)
            for tally in [played if played.moves else chat.tally]  # games with a log are not played in parts
        ]


def _size(chats: Sequence[Chat]) -> int:
    """Return the size of the files with the replies, in bytes."""
    return sum(path.stat().st_size for path in {Path(chat.log) for chat in chats if chat.log} if path.exists())


def _told(function: Callable[..., Any], shared: Sequence[Any], chats: Sequence[Chat], *part: Any) -> dict[str, Any]:
    """Return the result of a part in the form of JSON, and what each language model has used for it."""
    before = [dataclasses.astuple(chat.tally) for chat in chats]
    found = function(*shared, *part)
    after = [dataclasses.astuple(chat.tally) for chat in chats]
    used = [[late - early for early, late in zip(*each, strict=True)] for each in zip(before, after, strict=True)]
    return {"found": found.tolist() if isinstance(found, np.ndarray) else found, "used": used}
