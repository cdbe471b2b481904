"""Best responses to agents in Liar's Dice between two players, small enough to play from.

A best response is found by a walk over all that an agent may bid and every answer to it. To play it, only the nodes that it
reaches itself are needed, by the agent's bids and its own choices: about one node in forty.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs.agent import promises_of
from dice_envs.core.dice import new_streams
from dice_envs.core.files import read_archive
from dice_envs.core.game import Variant
from dice_envs.exact.liars_dice.measures import record_response
from dice_envs.exact.liars_dice.round import CALL, Round, hand_number
from dice_envs.exact.liars_dice.shares import has_equal_seats
from dice_envs.exact.liars_dice.solver import throttled
from dice_envs.exact.liars_dice.sources import ROWS_AT_ONCE, Tabled, source_of
from dice_envs.exact.liars_dice.store import cache_folder, keep_archive
from dice_envs.exact.progress import say
from dice_envs.games.liars_dice import MAX_DICE
from dice_envs.games.liars_dice.raises import NO_BID

MOST_BIDS = 2 * MAX_DICE  # of a round by the article's rule: every bid raises the quantity, up to all dice
NOWHERE = -2  # the response does not come to the node with this hand
_VERSION = 3  # of the files' layout
_SAY_EVERY = 5.0  # seconds between two lines of progress
_tell = throttled(say, _SAY_EVERY)


@dataclasses.dataclass(frozen=True)
class PlayedResponse:
    """The best response to an agent.

    Attributes:
        nodes: (nodes, 3 + MOST_BIDS) int16: its own dice, the agent's, whether it begins, and the bids made; then NO_BID.
        choices: (nodes, hands) int16, by hand: a bid, CALL or NOWHERE.
    """

    nodes: np.ndarray
    choices: np.ndarray

    @functools.cached_property
    def _rows(self) -> dict[bytes, int]:
        return {node.tobytes(): row for row, node in enumerate(self.nodes)}

    def actions(self, variant: Variant, states: np.ndarray) -> np.ndarray:
        """Return its actions at states in which it is to move, (n,) int64; NOWHERE where it does not come to the state."""
        everywhere, seats = np.arange(len(states)), states["seat"].astype(np.int64)
        own, other = (states["dice"][everywhere, each] for each in (seats, 1 - seats))
        bids = np.where(np.arange(MOST_BIDS) < states["num_bids"][:, None], states["bids"][:, :MOST_BIDS], NO_BID)
        nodes = np.column_stack([own, other, states["starter"] == seats, bids]).astype(np.int16)
        rows = np.array([self._rows.get(node.tobytes(), NOWHERE) for node in nodes], np.int64)
        held = zip(own.tolist(), states["counts"][everywhere, seats], strict=True)
        hands = np.array([hand_number(variant.params.num_faces, dice, counts) for dice, counts in held], np.int64)
        found = np.where(rows >= 0, self.choices[rows, hands], NOWHERE).astype(np.int64)
        return np.where(found == CALL, variant.params.call, found)


def _respond_to(variant: Variant, agent: Any) -> PlayedResponse:
    _tell("adaptive: finding a best response")
    chosen: dict[tuple[int, ...], np.ndarray] = {}
    for seat in (0,) if has_equal_seats(variant) else (0, 1):
        for table, recorded in record_response(variant, agent, seat).items():
            for path, choice in _reached(recorded):
                chosen.setdefault((table.dice_of(1 - seat), table.dice_of(seat), table.starter != seat, *path), choice)
    nodes = list(itertools.zip_longest(range(3 + MOST_BIDS), *chosen, fillvalue=NO_BID))
    choices = list(itertools.zip_longest(*chosen.values(), fillvalue=NOWHERE))
    return PlayedResponse(np.array(nodes, np.int16)[:, 1:].T.copy(), np.array(choices, np.int16).T.copy())


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


def response_to(variant: Variant, agent: Any, folder: Path | None = None) -> PlayedResponse:
    """Find the best response to an agent that states its probabilities and looks at the present round only.

    That to a memoryless agent is read from a file, if there is one, or kept in it.

    Args:
        variant: a game of elimination between two players, in which every bid raises the quantity.
        agent: see `dice_envs.agent.ask_probabilities`.
        folder: None: `cache_folder()`.

    Raises:
        ValueError: the game is too large, or of another kind.
    """
    if not promises_of(agent).memoryless:
        return _respond_to(variant, agent)
    path = _file_of(variant, agent, folder or cache_folder())
    found = read_archive(path, path.name, lambda members: PlayedResponse(**members), say)
    if found is None:
        found = _respond_to(variant, agent)
        keep_archive(path, dataclasses.asdict(found))
    return found


def _file_of(variant: Variant, agent: Any, folder: Path) -> Path:
    """Return the file of a response. Its name has a hash of the rules of the game and of the agent's probabilities."""
    digest = hashlib.sha256(f"{_VERSION} {variant.options!r} {agent!r}".encode())
    dice = variant.options.dice_per_seat
    for pair, player in itertools.product({dice, dice[::-1]}, range(2)):
        round_ = Round(variant, pair)
        digest.update(round_.rules.child.tobytes())
        source = source_of(round_, player, agent, player, new_streams(0, ROWS_AT_ONCE)[None])
        assert isinstance(source, Tabled)
        for table in (source.tables.raises, source.tables.calls):
            digest.update(np.round(table, 9).tobytes())
    return folder / "responses" / f"{dice[0]}-{dice[1]}-{digest.hexdigest()[:16]}.npz"
