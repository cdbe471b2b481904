"""Language models in commands: where their replies are kept, and what they have done and used."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from dice_envs import Agent
from dice_envs.agents.chat import Chat

__all__ = ["logged", "tallies"]


def logged(agents: Sequence[Agent], json: Path | None) -> list[Agent]:
    """Return the agents. Language models without a log get one beside the file of results, if there is one."""
    if json is None:
        return list(agents)
    log = str(json.with_suffix(".replies.jsonl"))
    return [dataclasses.replace(agent, log=log) if isinstance(agent, Chat) and not agent.log else agent for agent in agents]


def tallies(agents: Sequence[Agent]) -> list[str]:
    """Return a line for each language model: its moves, its replies without a legal move and what became of them, tokens."""
    lines = []
    for agent in agents:
        if isinstance(agent, Chat):
            tally = agent.tally
            lines.append(
                f"{agent.model}: {tally.moves:,} moves, {tally.illegal:,} replies without a legal move, "
                f"{tally.random:,} moves drawn instead, {tally.lost:,} games lost by them; {tally.tokens:,} tokens"
                + (f", which cost {tally.cost:.4g}" if tally.cost else "")
            )
    return lines
