"""One game in words, for several seats; and any agent, playing through words."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dice_envs.agent import Agent, Promises, Turn, check_plays, promises_of, resolve
from dice_envs.core.game import OVER, Game, Variant, configure
from dice_envs.envs.text.prompts import prompt
from dice_envs.envs.text.replies import read_move, read_reply
from dice_envs.table.sitting import PERSON, Sitting

__all__ = ["InWords", "TextTable", "seats_around"]


class TextTable:
    """One game in words: prompts for some seats, agents at the others.

    Agents play as soon as they are to move, so that a seat in words is to move until the game is over.

    Args:
        game: name, Game or Variant.
        seed: fixes the dice and the agents' choices, as in `Sitting`.
        seats: the player at each seat: PERSON ("person") for one that reads prompts, an agent's spec, or an Agent. By default
            all read prompts.
        legal: whether prompts list the legal moves.
        options: the game's options.

    Raises:
        ValueError: wrong options, seed or seats.

    Attributes:
        sitting: the game itself, with `history`, `save` and `undo`. It knows everything: show it to no player.
    """

    def __init__(
        self,
        game: str | Game | Variant,
        seed: int,
        seats: Sequence[str | Agent] | None = None,
        *,
        legal: bool = True,
        **options: Any,
    ) -> None:
        self.variant = configure(game, **options)
        self.legal = legal
        self.sitting = Sitting(self.variant, seed, [PERSON] * self.variant.facts.num_seats if seats is None else seats)
        self._play_on()

    @property
    def over(self) -> bool:
        """Whether nobody in words has a move left: the game is over, or they are all out of it."""
        return self.sitting.over or self._all_out()

    @property
    def seat(self) -> int:
        """The seat to move, or OVER (−1)."""
        return OVER if self.over else self.sitting.mover

    @property
    def returns(self) -> np.ndarray:
        """Each seat's rewards so far, (seats,) float64."""
        return self.sitting.returns

    def prompt(self, seat: int | None = None) -> str:
        """Return the prompt for a seat, by default the one to move. It has the rules until the seat has moved.

        Raises:
            ValueError: there is no such seat; or none was named, and the game is over.
        """
        if seat is None and self.over:
            raise ValueError("the game is over: name the seat that shall read how it ended")
        reader = self.seat if seat is None else seat
        return prompt(self.sitting, reader, legal=self.legal, rules=not self.sitting.latest(reader))

    def reply(self, text: str) -> int:
        """Play the move in a reply of the seat to move, and the agents' answers. Return the action.

        Raises:
            Unreadable, IllegalMove: see `read_reply`; nothing has changed.
            AgentError: an agent's answer is not legal; nothing has changed.
            ValueError: the game is over.
        """
        action = read_reply(self.variant, self.sitting.state, text)
        moves = len(self.sitting)
        self.sitting.play(action)
        try:
            self._play_on()
        except BaseException:
            self.sitting.cut(moves)
            raise
        return action

    def _play_on(self) -> None:
        while not self.over and self.sitting.mover not in self.sitting.people:
            self.sitting.step()

    def _all_out(self) -> bool:
        out = self.sitting.state["out"]
        return bool(self.sitting.people) and all(out[seat] for seat in self.sitting.people)


def seats_around(learner: int, opponents: Sequence[Agent], count: int) -> list[str | Agent]:
    """Return who sits at each of `count` seats: PERSON at the learner's, then the opponents in turn order.

    A single opponent has all other seats.
    """
    others = list(opponents) * (count - 1) if len(opponents) == 1 else list(opponents)
    seats: list[str | Agent] = [PERSON, *others]
    return [*seats[count - learner :], *seats[: count - learner]]


@dataclasses.dataclass(frozen=True)
class InWords:
    """An agent whose every move goes through words: it is said, and what is said is read.

    Its moves are those of the agent itself: words lose nothing. So scripted agents can stand beside language models in
    `benchmark language`. It states no probabilities.

    Attributes:
        agent: an agent or its spec.

    Raises:
        ValueError: the spec names no agent.
        Unreadable: by `act`, if the words of a move name none.
    """

    agent: str | Agent
    _player: Any = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_player", resolve(self.agent))

    @functools.cached_property
    def promises(self) -> Promises:
        """The agent's memory."""
        return Promises(remembers=promises_of(self._player).remembers)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for a variant that the agent does not play."""
        check_plays(self._player, variant)

    def act(self, turn: Turn) -> np.ndarray:
        said = (f"Move: {turn.variant.describe_action(int(action))}" for action in self._player.act(turn))
        return np.array([read_move(turn.variant, reply) for reply in said], np.int64)
