"""Best responses to agents in Liar's Dice between two players, small enough to play from.

A best response is found by a walk over all that an agent may bid and every answer to it. To play it, only the nodes that it
reaches itself are needed, by the agent's bids and its own choices: about one node in forty.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.dice import new_streams
from dice_envs.core.files import read_archive
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.measures import record_response
from dice_envs.exact.liars_dice.round import CALL, Round, hand_number
from dice_envs.exact.liars_dice.shares import has_equal_seats
from dice_envs.exact.liars_dice.sources import ROWS_AT_ONCE, Tabled, source_of
from dice_envs.exact.liars_dice.store import cache_folder, keep_archive
from dice_envs.exact.progress import say
from dice_envs.games.liars_dice import MAX_DICE
from dice_envs.games.liars_dice.raises import MAX_FACES

NOWHERE = -2  # the response does not come to the node with this hand
_VERSION = 2  # of the files' layout
_SAY_EVERY = 5.0  # seconds between two lines of progress
_told = time.monotonic()  # when the last one was written


class Book(NamedTuple):
    """Choices of a best response at its nodes.

    A node is a round and the bids made in it, as `_first_key` and `_step` number them.
    """

    key: np.ndarray  # (nodes,) int64, rising
    at: np.ndarray  # (nodes,) int64: where the node's part of `choice` begins
    choice: np.ndarray  # int16, by hand: a bid, CALL or NOWHERE


@kernel(allocates=False)
def _first_key(own, other, begins):
    """Return the key of a round's beginning, from the response's own dice, the other's, and whether the response begins."""
    return 2 * ((MAX_DICE + 1) * np.int64(own) + other) + begins


@kernel(allocates=False)
def _step(num_faces, bid):
    """Return what a bid adds to a node's key: its face as a digit, whose place is the quantity. No quantity is bid twice."""
    quantity = bid // num_faces
    return 2 * (MAX_DICE + 1) ** 2 * (bid - quantity * num_faces + 1) * (MAX_FACES + 1) ** quantity


@kernel
def _look_up(params, book, states, out):
    """Write the response's action at each state, or NOWHERE. In place."""
    for i in range(len(states)):
        state = states[i]
        seat = np.int64(state["seat"])
        own = np.int64(state["dice"][seat])
        key = _first_key(own, np.int64(state["dice"][1 - seat]), np.int64(state["starter"] == seat))
        for made in range(state["num_bids"]):
            key += _step(params.num_faces, np.int64(state["bids"][made]))
        node = np.searchsorted(book.key, key)
        hand = hand_number(params.num_faces, own, state["counts"][seat])
        out[i] = NOWHERE
        if node < len(book.key) and book.key[node] == key and hand >= 0:
            action = np.int64(book.choice[book.at[node] + hand])
            out[i] = params.call if action == CALL else action


@dataclasses.dataclass(frozen=True)
class PlayedResponse:
    """The best response to an agent.

    Attributes:
        variant: the game.
        wins: how often it wins from the agent, mean over both seats that may begin.
        book: its choices.
    """

    variant: Variant
    wins: float
    book: Book

    def actions(self, states: np.ndarray) -> np.ndarray:
        """Return its actions at states in which it is to move, (n,) int64; NOWHERE where it does not come to the state."""
        out = np.empty(len(states), np.int64)
        _look_up(self.variant.params, self.book, states, out)
        return out


def respond_to(variant: Variant, agent: Any) -> PlayedResponse:
    """Find the best response to an agent that states its probabilities and looks at the present round only.

    Args:
        variant: a game of elimination between two players, in which every bid raises the quantity.
        agent: see `dice_envs.agent.ask_probabilities`.

    Raises:
        ValueError: the game is too large, or of another kind.
    """
    global _told
    if time.monotonic() - _told >= _SAY_EVERY:
        _told = time.monotonic()
        say("adaptive: finding a best response")
    seats = (0,) if has_equal_seats(variant) else (0, 1)
    nodes: dict[int, np.ndarray] = {}
    seen: set[tuple[int, int, bool]] = set()
    wins = 0.0
    for seat in seats:
        value, found = record_response(variant, agent, seat)
        wins += value / len(seats)
        for table, choices in found.items():
            played = table.dice_of(1 - seat), table.dice_of(seat), table.starter != seat
            if played not in seen:
                seen.add(played)
                for path, chosen in _reached(choices):
                    steps = (int(_step(variant.params.num_faces, bid)) for bid in path)
                    nodes[int(_first_key(*played)) + sum(steps)] = chosen
    key = sorted(nodes)
    ends = np.cumsum([0, *(len(nodes[each]) for each in key)])
    choice = np.concatenate([np.zeros(0), *(nodes[each] for each in key)]).astype(np.int16)
    return PlayedResponse(variant, wins, Book(np.array(key, np.int64), ends[:-1].astype(np.int64), choice))


def _reached(choices: dict[tuple[int, ...], np.ndarray]) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield the nodes of a round that the response itself reaches, with its choices: see `record_response`."""
    comes: dict[tuple[int, ...], np.ndarray] = {}  # by node: with which hands
    for path in sorted(choices, key=len):
        if len(path) < 2:
            comes[path] = np.ones(len(choices[path]), np.bool_)
        elif path[:-2] in comes:
            comes[path] = comes[path[:-2]] & (choices[path[:-2]] == path[-2])
        if path in comes and comes[path].any():
            yield path, np.where(comes[path], choices[path], NOWHERE)


# --- the cache ------------------------------------------------------------------------------------------------------


def response_to(variant: Variant, agent: Any, folder: Path | None = None) -> PlayedResponse:
    """Return what `respond_to` does, from a file if there is one, or kept in it. The agent must be memoryless.

    Args:
        variant, agent: as for `respond_to`.
        folder: None: `cache_folder()`.
    """
    path = _file_of(variant, agent, folder or cache_folder())

    def made(members: dict[str, np.ndarray]) -> PlayedResponse:
        return PlayedResponse(variant, float(members.pop("wins")), Book(**members))

    found = read_archive(path, path.name, made, say)
    if found is None:
        found = respond_to(variant, agent)
        keep_archive(path, {"wins": found.wins, **found.book._asdict()})
    return found


def _file_of(variant: Variant, agent: Any, folder: Path) -> Path:
    """Return the file of a response. Its name has a hash of the rules of the game and of the agent's probabilities."""
    digest = hashlib.sha256(f"{_VERSION} {variant.options!r} {agent!r}".encode())
    dice = variant.options.dice_per_seat
    for pair in {dice, dice[::-1]}:
        round_ = Round(variant, pair)
        for player in range(2):
            digest.update(round_.rules.child.tobytes())
            source = source_of(round_, player, agent, player, new_streams(0, ROWS_AT_ONCE)[None])
            if not isinstance(source, Tabled):
                raise ValueError(f"the best response is kept to a memoryless agent only, not to {agent!r}")
            for table in source.tables:
                digest.update(np.round(table, 9).tobytes())
    return folder / "responses" / f"{dice[0]}-{dice[1]}-{digest.hexdigest()[:16]}.npz"
