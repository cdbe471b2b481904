"""One game at a table, played by people and agents: turns, each seat's view, undo, save, load and replay.

The terminal and the web page are front ends; nothing here depends on them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Agent, ask, check_plays, fresh_memory, name_of, promises_of
from dice_envs.agent.specs import NotHarmless, make_harmless, make_player
from dice_envs.core.batch import Batch, IllegalActionError, as_action, explain_illegal
from dice_envs.core.dice import new_streams
from dice_envs.core.files import read_bytes, write_text
from dice_envs.core.game import OVER, Picture, Variant, configure
from dice_envs.core.options import check_range, check_seed, shown

PERSON = "person"  # in place of an agent's spec
CHOSEN = "has chosen"  # the words of a move that the viewer may not know yet
FORMAT = 1  # of saved games
FIELDS = ("format", "game", "options", "seed", "seats", "actions", "digest")
EXACT = 2**53  # JSON's readers keep smaller numbers exactly; a browser, which reads every saved game, no others
MOST_BYTES = 2**24  # of a file with a saved game
_ONLY = np.zeros(1, np.int64)  # index of the only game of a batch


class Entry(NamedTuple):
    """One move of the history, as a viewer may know it."""

    number: int  # 1 for the first move of the game
    seat: int  # the seat that moved
    action: int | None  # None where the viewer may not know it yet
    words: str  # the action in words; CHOSEN where it is None
    notes: tuple[str, ...]  # notes that this move added to the picture, without those that repeat `words`


class Position(NamedTuple):
    """The game after some of its moves."""

    states: np.ndarray  # (1,) state record, hidden parts included: do not show it to players
    returns: np.ndarray  # (seats,) float64, each seat's rewards so far
    action: int  # the last move; -1 before the first
    latest: tuple[int, ...]  # number of each seat's latest move; 0 before its first
    first: int  # number of moves before the present round of simultaneous choices
    memories: Mapping[int, np.ndarray]  # seat → memory of its agent
    notes: dict[int | None, tuple[str, ...]]  # viewer → notes of its picture, drawn when needed

    @property
    def state(self) -> Any:
        """Copy of the state record."""
        return self.states[0].copy()

    @property
    def mover(self) -> int:
        """The seat to move, or OVER."""
        return int(self.states["seat"][0])


class Sitting:
    """One game, from the deal to the end.

    The seed fixes all that is random: dice come from the game's own stream, an agent's choice from the seed and the number of
    its move. The same moves after an undo therefore lead to the same game, and a saved game continues as if never left.

    `history` and `picture` show a viewer only what that seat may know. In a simultaneous game a choice is shown once all have
    chosen. `viewer` is a seat, or None to see everything.

    Args:
        variant: the game with its options.
        seed: 0 or more.
        seats: the player at each seat: PERSON, an agent's spec, or an Agent.
        make: makes an agent from a spec; by default any agent that a spec can name.

    Raises:
        ValueError: `seats` does not have one entry for each seat, the seed is invalid, or an agent is unknown or does not
            play the variant.

    Attributes:
        variant, seed: as given.
        seats: the player at each seat in words: PERSON, a spec, or an agent's name.
        people: the seats of people.
    """

    def __init__(
        self, variant: Variant, seed: int, seats: Sequence[str | Agent], make: Callable[[Variant, str], Agent] = make_player
    ) -> None:
        seed = check_seed(seed)
        if seed is None:
            raise ValueError("seed must be a whole number, not None: it is what repeats the game")
        count = variant.facts.num_seats
        if isinstance(seats, str) or len(seats) != count:
            raise ValueError(f"seats must name who sits at each of the {count} seats of {variant}, not {shown(seats)}")
        self.variant = variant
        self.seed: int = seed
        self.seats = tuple(map(name_of, seats))
        self.people = tuple(seat for seat, who in enumerate(seats) if isinstance(who, str) and who == PERSON)
        self._agents: dict[int, Agent] = {}
        for seat, who in enumerate(seats):
            if seat not in self.people:
                agent = make(variant, who) if isinstance(who, str) else who
                check_plays(agent, variant)
                self._agents[seat] = agent
        self._named = all(isinstance(who, str) for who in seats)
        memories = {seat: memory for seat, agent in self._agents.items() if (memory := fresh_memory(agent, 1)) is not None}
        deal = Batch(variant, 1, seed=self.seed).states
        self._positions = [Position(deal, np.zeros(count), -1, (0,) * count, 0, memories, {})]  # after 0, 1, … moves

    def __copy__(self) -> Sitting:
        """Return the game as it is now; either may be played on without the other."""
        twin = Sitting.__new__(type(self))
        twin.__dict__ = {**self.__dict__, "_positions": list(self._positions)}
        return twin

    def __len__(self) -> int:
        """Number of moves played."""
        return len(self._positions) - 1

    # --- where the game stands ------------------------------------------------------------------------------------

    @property
    def state(self) -> Any:
        """Copy of the state record, hidden parts included: do not show it to players."""
        return self._positions[-1].state

    @property
    def mover(self) -> int:
        """The seat to move, or OVER."""
        return self._positions[-1].mover

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self.mover == OVER

    @property
    def returns(self) -> np.ndarray:
        """Each seat's rewards so far, (seats,) float64."""
        return self._positions[-1].returns.copy()

    def legal(self) -> list[int]:
        """Return the legal actions of the seat to move; none once the game is over."""
        return [] if self.over else self.variant.legal_actions(self._positions[-1].states[0])

    def picture(self, viewer: int | None = None, moves: int | None = None) -> Picture:
        """Return the viewer's picture, now or after the first `moves` moves. ValueError as in `position`, or for no seat."""
        position = self._positions[-1] if moves is None else self.position(moves)
        self._check_viewer(viewer)
        return self.variant.picture(position.states[0], viewer)

    def position(self, moves: int) -> Position:
        """Return the game after its first `moves` moves. ValueError if fewer have been played."""
        check_range("moves", moves, 0, len(self))
        return self._positions[moves]

    def history(self, viewer: int | None = None, first: int = 0, last: int | None = None) -> list[Entry]:
        """Return the moves after move `first`, up to move `last` or the latest, as far as the viewer may know them."""
        self._check_viewer(viewer)
        now = self._positions[-1]
        is_open = self.variant.facts.simultaneous and not self.over and now.latest[now.mover] <= now.first
        unseen = now.first if is_open else len(self)  # from this move on only the seats that moved may know
        entries = []
        for k in range(first, len(self) if last is None else min(last, len(self))):
            seat, action = self._positions[k].mover, self._positions[k + 1].action
            known = viewer is None or seat == viewer or k < unseen
            words = self.variant.describe_action(action) if known else CHOSEN
            before, notes = self._notes_at(k, viewer), self._notes_at(k + 1, viewer)
            fresh = tuple(note for note in notes if note not in before)
            entries.append(Entry(k + 1, seat, action if known else None, words, fresh))
        return entries

    def latest(self, seat: int) -> int:
        """Return the number of a seat's latest move; 0 before its first. ValueError if there is no such seat."""
        check_range("seat", seat, 0, len(self.seats) - 1)
        return self._positions[-1].latest[seat]

    def _check_viewer(self, viewer: int | None) -> None:
        if viewer is not None:
            check_range("viewer", viewer, 0, len(self.seats) - 1)

    def _notes_at(self, moves: int, viewer: int | None) -> tuple[str, ...]:
        position = self._positions[moves]
        if viewer not in position.notes:
            position.notes[viewer] = self.variant.picture(position.states[0], viewer).notes
        return position.notes[viewer]

    # --- playing --------------------------------------------------------------------------------------------------

    def play(self, action: int) -> None:
        """Play an action for the person to move.

        Raises:
            IllegalActionError: the action is malformed or not legal; nothing has changed.
            ValueError: no person is to move; nothing has changed.
        """
        if self.over:
            raise ValueError("the game is over")
        if self.mover not in self.people:
            name = self.variant.seat_name(self.mover)
            raise ValueError(f"{name} is to move, played by {self.seats[self.mover]}, not by a person")
        self._advance(as_action(action), self._positions[-1].memories)

    def step(self) -> int:
        """Let the agent to move play; return its action.

        Raises:
            ValueError: no agent is to move; nothing has changed.
            AgentError: the agent's answer is not legal; nothing has changed.
        """
        if self.over:
            raise ValueError("the game is over")
        if self.mover in self.people:
            raise ValueError(f"{self.variant.seat_name(self.mover)} is to move, played by a person, not by an agent")
        action, memories = self._answer()
        self._advance(action, memories)
        return action

    def prepare(self) -> None:
        """Let agents do what their first moves would wait for, such as solving the game. What fails, fails with the move."""
        for agent in self._agents.values():
            if prepare := promises_of(agent).prepare:
                with contextlib.suppress(ValueError):
                    prepare(self.variant)

    @property
    def prepares(self) -> bool:
        """Whether an agent has anything to prepare."""
        return any(promises_of(agent).prepare for agent in self._agents.values())

    def undo(self, seat: int | None = None) -> None:
        """Take back the last choice of the person at `seat` (None: any) and all moves after it; that seat is to move again.

        Raises:
            ValueError: there is no such choice, or no person at `seat`; nothing has changed.
        """
        if seat is not None and seat not in self.people:
            raise ValueError(
                f"seat must be that of a person, {' or '.join(map(str, self.people)) or 'none'}, not {shown(seat)}"
            )
        number = max((self.latest(each) for each in (self.people if seat is None else (seat,))), default=0)
        if not number:
            raise ValueError("there is nothing to undo")
        self.cut(number - 1)

    def cut(self, moves: int) -> None:
        """Keep only the first `moves` moves. ValueError if fewer have been played."""
        check_range("moves", moves, 0, len(self))
        del self._positions[moves + 1 :]

    def _answer(self) -> tuple[int, Mapping[int, np.ndarray]]:
        """Return the action of the agent to move, and the memories of all agents after it."""
        position = self._positions[-1]
        seat, memories = position.mover, position.memories
        memory = memories[seat].copy() if seat in memories else None
        streams = new_streams(np.random.SeedSequence(self.seed, spawn_key=(len(self) + 1,)), 1)
        (action,) = ask(self._agents[seat], self.variant, position.states.copy(), _ONLY, streams, memory)
        return int(action), memories if memory is None else {**memories, seat: memory}

    def _advance(self, action: int, memories: Mapping[int, np.ndarray]) -> None:
        variant, before = self.variant, self._positions[-1]
        states = before.states.copy()
        if variant.kernels.checked_play(states, _ONLY, np.array([action])) >= 0:
            raise IllegalActionError(explain_illegal(variant, states[0], action))
        seat, moves = before.mover, len(self)
        first = moves if before.latest[seat] > before.first else before.first  # a second choice: the first ones were shown
        latest = (*before.latest[:seat], moves + 1, *before.latest[seat + 1 :])
        returns = before.returns + states["rewards"][0, : len(self.seats)]
        self._positions.append(Position(states, returns, action, latest, first, memories, {}))

    # --- files ----------------------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return the game as values that JSON can hold, for `load`. The seed in it reveals all that is hidden.

        Raises:
            ValueError: an agent was given as an object; only specs can be saved.
        """
        if not self._named:
            raise ValueError("seats: an agent that is not named by a spec cannot be saved")
        return {
            "format": FORMAT,
            "game": self.variant.game.name,
            "options": dataclasses.asdict(self.variant.options),
            "seed": self.seed if self.seed < EXACT else str(self.seed),
            "seats": list(self.seats),
            "actions": [position.action for position in self._positions[1:]],
            "digest": self._digest(),
        }

    def save_to(self, path: Path) -> None:
        """Write the saved game as JSON, atomically. OSError if that fails, ValueError as in `save`."""
        write_text(path, self.as_file())

    def as_file(self) -> str:
        """Return the content of the file of a saved game. ValueError as in `save`."""
        return json.dumps(self.save(), indent=1) + "\n"

    def _digest(self) -> str:
        """Return a hash of every position: it changes if the same moves lead elsewhere, under other rules or dice."""
        digest = hashlib.sha256()
        for position in self._positions:
            for name in position.states.dtype.names or ():
                digest.update(position.states[name].tobytes())
        return digest.hexdigest()[:16]

    @classmethod
    def load(
        cls, data: Any, make: Callable[[Variant, str], Agent] = make_harmless, agents: Sequence[str | Agent] = ()
    ) -> Sitting:
        """Return a saved game, after playing all its moves again by the game's rules.

        Agents with a memory are asked again at each of their moves. `make` makes an agent from a spec in `data`; by default
        only agents that can do no harm, see `make_harmless`. `agents`, of any specs, replace those in `data`, in seat order; a
        single one replaces all.

        Raises:
            ValueError: a field is missing, unknown or wrong, an action is not legal (the message names the field or the move),
                or the moves do not end in the position that was saved.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"a saved game is an object with the fields {', '.join(FIELDS)}, not {shown(data)}")
        if data.get("format") != FORMAT or isinstance(data["format"], bool):
            raise ValueError(f"format must be {FORMAT}, not {shown(data.get('format'))}")
        for field in FIELDS:
            if field not in data:
                raise ValueError(f"{field} is missing from the saved game")
        for field in data:
            if field not in FIELDS:
                raise ValueError(f"{shown(field)} is no field of a saved game; its fields are {', '.join(FIELDS)}")
        if not isinstance(data["options"], Mapping) or not all(isinstance(name, str) for name in data["options"]):
            raise ValueError(f"options must be an object, not {shown(data['options'])}")
        if not isinstance(data["game"], str):
            raise ValueError(f"game must be a name, not {shown(data['game'])}")
        variant = _naming("game", lambda: configure(data["game"]))
        variant = _naming("options", lambda: variant.game.configure(**data["options"]))
        seed = data["seed"]
        if isinstance(seed, str) and re.fullmatch("[0-9]{16,100}", seed):
            seed = int(seed)
        check_seed(seed)
        for field, kind, what in (("seats", str, "specs"), ("actions", int, "whole numbers")):
            value = data[field]
            if not isinstance(value, list) or not all(isinstance(each, kind) and not isinstance(each, bool) for each in value):
                raise ValueError(f"{field} must be a list of {what}, not {shown(value)}")
        if not "".join(data["seats"]).isprintable():  # a terminal would obey
            raise ValueError(f"seats must be a list of specs in printable characters, not {shown(data['seats'])}")
        if not isinstance(data["digest"], str):
            raise ValueError(f"digest must be text, not {shown(data['digest'])}")
        seats = data["seats"]
        if agents:
            replaced = [seat for seat, who in enumerate(seats) if who != PERSON]
            most = len(replaced)
            if len(agents) not in (min(1, most), most):
                raise ValueError(f"agents: the saved game has {most}; name as many, or one for all, not {len(agents)}")
            chosen = dict(zip(replaced, list(agents) * (most // len(agents)), strict=True))
            seats, make = [chosen.get(seat, who) for seat, who in enumerate(seats)], make_player
        sitting = _naming("seats", lambda: cls(variant, seed, seats, make))
        for number, action in enumerate(data["actions"], 1):
            _naming(f"actions: move {number}", functools.partial(sitting._repeat, action))
        if sitting._digest() != data["digest"]:
            raise ValueError(
                "digest: the moves do not lead to where the game was saved: the file was changed, or is from another version"
            )
        return sitting

    @classmethod
    def load_from(
        cls, path: Path, make: Callable[[Variant, str], Agent] = make_harmless, agents: Sequence[str | Agent] = ()
    ) -> Sitting:
        """Return the game in a file that `save_to` has written. OSError if it cannot be read; all else as in `load`."""
        content = _naming(f"{path} is no saved game", lambda: read_bytes(path, MOST_BYTES))
        data = parse_saved(content, str(path))
        return _naming(str(path), lambda: cls.load(data, make, agents))

    def _repeat(self, action: int) -> None:
        """Play a move of a saved game again."""
        action = as_action(action)
        memories = self._positions[-1].memories
        if self.mover in memories:
            answer, memories = self._answer()
            if answer != action:
                says = self.variant.describe_action(answer)
                raise ValueError(f"{self.seats[self.mover]} plays action {answer} ({says}) there, not {shown(action)}")
        self._advance(action, memories)


def parse_saved(content: bytes, what: str = "this") -> Any:
    """Parse the content of a file, for `Sitting.load`. ValueError, about `what`, if it is no JSON or exceeds MOST_BYTES."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"{what} is no saved game: these have at most {MOST_BYTES:,} bytes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"{what} is no saved game: {problem}") from None


def _naming(what: str, action: Callable[[], Any]) -> Any:
    """Return the result of `action`; a ValueError gets the prefix `what`."""
    try:
        return action()
    except NotHarmless:
        raise NotHarmless(f"{what}: ") from None
    except ValueError as problem:
        raise ValueError(f"{what}: {problem}") from None
