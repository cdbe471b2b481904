"""Games in words: the prompt for a seat, the move in a reply, and environments whose observations and actions are texts.

`words` writes prompts from a game's own words and pictures, and reads moves. `TextEnv` has Gymnasium's form, `TextTable` serves
several seats; `InWords` is any agent, playing through words. `verifiers` and `textarena` are environments of these libraries.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np

from dice_envs.agent import Agent, Promises, Turn, check_plays, promises_of
from dice_envs.agent.mixture import Mixture, Opponents, resolve_opponents
from dice_envs.agent.specs import resolve
from dice_envs.core.batch import ILLEGAL_ACTIONS, IllegalAction, warn_forfeit
from dice_envs.core.game import OVER, Game, Variant, configure
from dice_envs.core.options import check_choice, check_seed, python_value, shown
from dice_envs.envs.learner import seat_variant
from dice_envs.envs.text.words import IllegalMove, Unreadable, prompt, read_move, read_reply
from dice_envs.pictures.render import RENDER_FPS, RENDER_MODES, check_mode, render
from dice_envs.table.sitting import PERSON, Sitting

__all__ = ["IllegalMove", "InWords", "TextEnv", "TextTable", "Unreadable", "prompt", "read_reply"]

MOST_CHARACTERS = 1_000_000  # of a prompt or a reply


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
        out, people = self.sitting.state["out"], self.sitting.people
        return self.sitting.over or bool(people and all(out[seat] for seat in people))

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


def seats_around(learner: int, opponents: Sequence[Agent], count: int) -> list[str | Agent]:
    """Return who sits at each of `count` seats: PERSON at the learner's, then the opponents in turn order.

    A single opponent has all other seats.
    """
    others = list(opponents) * (count - 1) if len(opponents) == 1 else list(opponents)
    seats: list[str | Agent] = [PERSON, *others]
    return [*seats[count - learner :], *seats[: count - learner]]


class AnyText(gymnasium.spaces.Text):
    """Texts of any characters, of which samples use letters and digits."""

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length


class TextEnv(gymnasium.Env[str, str]):
    """One seat of a game as a single-agent environment whose observations and actions are texts.

    An observation is the seat's prompt (see `prompt`), an action a reply (see `read_reply`). Agents play the other seats inside
    `step`. The reward is what the seat earns up to its next turn. `info` has the `seat`, the `legal_moves` in words and, after
    a reply that was read, its `action`.

    Args:
        game: name, Game or Variant.
        opponents: an agent or a spec for all other seats, or a sequence with one for each other seat in turn order. A memory
            (see `dice_envs.Agent`) lasts for one game.
        seat: the learner's seat, or "random" to draw it for each game.
        legal: whether prompts list the legal moves.
        show_rules: "first": the first prompt of each game has the rules; "always": every prompt, for learners that see one
            prompt at a time; "never".
        illegal_action: "lose": a reply without a legal move ends the game with the least possible return, and
            `info["illegal_action"]` says why; the first one in a process gives a warning. "raise": it raises Unreadable or
            IllegalMove and changes nothing.
        render_mode: "human", "ansi", "rgb_array" or None.
        options: the game's options.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": RENDER_MODES, "render_fps": RENDER_FPS}  # type: ignore[misc]

    def __init__(
        self,
        game: str | Game | Variant,
        opponents: Opponents = "random",
        seat: int | str = "random",
        *,
        legal: bool = True,
        show_rules: str = "first",
        illegal_action: IllegalAction = "lose",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        check_mode(render_mode)
        check_choice("illegal_action", illegal_action, ILLEGAL_ACTIONS)
        check_choice("show_rules", show_rules, ("first", "always", "never"))
        self.variant = seat_variant(game, options)
        if isinstance(opponents, Mixture):
            raise ValueError("opponents of a TextEnv are agents or specs, not a Mixture")
        self._opponents: list[Agent] = resolve_opponents(opponents, self.variant)
        check_choice("seat", python_value(seat), ("random", *range(self.variant.facts.num_seats)))
        self.seat, self.legal, self.show_rules = seat, legal, show_rules
        self.illegal_action, self.render_mode = illegal_action, render_mode
        self.observation_space, self.action_space = (AnyText(MOST_CHARACTERS, min_length=low) for low in (1, 0))
        self.table: TextTable | None = None
        self._learner = 0
        self._playing = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Deal a game and play up to the learner's turn. A seed fixes this game, whose `Sitting` has the same seed, and those
        after it; without one the random stream continues.

        Raises:
            ValueError: a wrong seed, or any `options`, which this environment does not take; nothing has changed.
            AgentError: an opponent's action is malformed or not legal.
        """
        seed = check_seed(seed)
        if options:
            raise ValueError(f"a TextEnv takes no reset options, not {shown(options)}")
        super().reset(seed=seed)
        games = self.np_random
        number = _drawn(games) if seed is None else seed
        count = self.variant.facts.num_seats
        while True:
            learner = int(games.integers(count)) if self.seat == "random" else int(self.seat)
            table = TextTable(self.variant, number, seats_around(learner, self._opponents, count), legal=self.legal)
            if not table.over:
                break
            number = _drawn(games)  # the game ended before the learner's first turn
        self.table, self._learner, self._playing = table, learner, True
        return self._shown({})

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.table is None or not self._playing:
            raise gymnasium.error.ResetNeeded("call reset before step: no game has begun, or the last one has ended")
        before = self.table.returns[self._learner]
        try:
            played = self.table.reply(action)
        except (Unreadable, IllegalMove) as problem:
            if self.illegal_action == "raise":
                raise
            warn_forfeit("legal_moves")
            self._playing = False
            text = f"The game is over: your reply was not a legal move ({problem})."
            info = {"seat": self._learner, "legal_moves": [], "illegal_action": str(problem)}
            return text, self.variant.facts.min_return - before, True, False, info
        self._playing = not self.table.over
        observation, info = self._shown({"action": played})
        return observation, float(self.table.returns[self._learner] - before), not self._playing, False, info

    def _shown(self, info: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        table = self.table
        assert table is not None
        if self.render_mode == "human":
            self.render()
        rules = self.show_rules == "always" or (self.show_rules == "first" and not table.sitting.latest(self._learner))
        text = prompt(table.sitting, self._learner, legal=self.legal, rules=rules)
        actions = self.variant.legal_actions(table.sitting.state) if self._playing else []
        moves = [self.variant.describe_action(action) for action in actions]
        return text, {"seat": self._learner, "legal_moves": moves, **info}

    def render(self) -> Any:
        """Draw the table as the learner sees it; a warning without a render_mode, ResetNeeded before the first game."""
        state = None if self.table is None else self.table.sitting.state
        return render(self.variant, state, self._learner, self.render_mode)


def _drawn(stream: np.random.Generator) -> int:
    """Return the seed of a game: 64 bits, so that no player finds it by trying."""
    return int(stream.integers(2**64, dtype=np.uint64))


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
        replies = (f"Move: {turn.variant.describe_action(int(action))}" for action in self._player.act(turn))
        return np.array([read_move(turn.variant, reply) for reply in replies], np.int64)
