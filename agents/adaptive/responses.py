"""Best responses to agents in Liar's Dice between two players, small enough to play from.

A best response is found by a walk over all that an agent may bid and every answer to it. To play it, only the nodes that it
reaches itself are needed, by the agent's bids and its own choices: about one node in forty.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.archive import read_archive
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact.following import say
from dice_envs.exact.liars_dice.measures import record_response
from dice_envs.exact.liars_dice.round import CALL, Hands, Round, hand_number, numbered_hands
from dice_envs.exact.liars_dice.shares import has_equal_seats
from dice_envs.exact.liars_dice.sources import ROWS_AT_ONCE, Tabled, source_of
from dice_envs.exact.liars_dice.store import cache_folder, keep_archive

__all__ = ["NOWHERE", "Book", "Responses", "respond_to", "responses_to"]

NOWHERE = -2  # in `Book.choice`: the response does not come here with this hand
NONE = -1  # in `Book.root`: no such round; in `Book.at`: a node at which the other player opens
_VERSION = 1  # of the files' layout


class Book(NamedTuple):
    """Choices of best responses, for kernels.

    A node is where a response is to move. From one of its bids and the bid that answers it, a child follows. Where the
    other player starts a round, the root has no choice, and its children follow from the first bid alone.
    """

    root: np.ndarray  # (responses, dice + 1, dice + 1, 2) int64: own dice, the other's, whether it starts → node or NONE
    first: np.ndarray  # (nodes + 1,) int64: where the children of each node begin
    step: np.ndarray  # (children,) int64: `step_of` the bids that lead there; rising for each node
    to: np.ndarray  # (children,) int64: the child
    at: np.ndarray  # (nodes,) int64: where the node's part of `choice` begins, or NONE
    choice: np.ndarray  # int16, by hand: a bid, CALL or NOWHERE


@kernel(allocates=False)
def step_of(own, answer, num_actions):
    """One number for an own bid (−1: none, the other player opens) and the bid that answers it."""
    return (own + 1) * num_actions + answer


@kernel(allocates=False)
def _search(values, begin, end, value):
    """Return where a value stands in a rising part of `values`; −1 if it does not."""
    low = begin
    high = end
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < end and values[low] == value else -1


@kernel(allocates=False)
def choose(params, book, hands, response, state):
    """Return the action of a response at a state in which it is to move, or NOWHERE if it does not come there."""
    seat = np.int64(state["seat"])
    own = np.int64(state["dice"][seat])
    begins = state["starter"] == seat
    node = book.root[response, own, state["dice"][1 - seat], np.int64(begins)]
    if node == NONE:
        return NOWHERE
    made = np.int64(state["num_bids"])
    done = 0
    while done < made:
        mine = np.int64(-1)
        if begins or done > 0:
            mine = np.int64(state["bids"][done])
            done += 1
        step = step_of(mine, np.int64(state["bids"][done]), params.num_actions)
        done += 1
        child = _search(book.step, book.first[node], book.first[node + 1], step)
        if child < 0:
            return NOWHERE
        node = book.to[child]
    hand = hand_number(hands, own, state["counts"][seat])
    if book.at[node] == NONE or hand < 0:
        return NOWHERE
    action = np.int64(book.choice[book.at[node] + hand])
    return params.call if action == CALL else action


@kernel
def _choose_all(params, book, hands, responses, states, out):
    for i in range(len(states)):
        out[i] = choose(params, book, hands, responses[i], states[i])


@dataclasses.dataclass(frozen=True)
class Responses:
    """Best responses to agents.

    Attributes:
        variant: the game.
        wins: (responses,) float64: chance of each to win from its agent, mean over both seats that may begin.
        book: their choices.
        hands: the numbers of hands.
    """

    variant: Variant
    wins: np.ndarray
    book: Book
    hands: Hands

    def actions(self, which: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return the actions of responses at states in which they are to move.

        Args:
            which: (n,) int64, the response to play in each state.
            states: (n,) of the game's states.

        Returns:
            (n,) int64: an action, or NOWHERE where the response does not come to the state.
        """
        out = np.empty(len(states), np.int64)
        _choose_all(self.variant.params, self.book, self.hands, which, states, out)
        return out


class _Writer:
    """Collects the nodes of books."""

    def __init__(self, variant: Variant, responses: int) -> None:
        most = max(variant.options.dice_per_seat) + 1
        self._num_actions = variant.params.num_actions
        self.root = np.full((responses, most, most, 2), NONE, np.int64)
        self._children: list[list[tuple[int, int]]] = []
        self._at: list[int] = []
        self._choices: list[np.ndarray] = []
        self._length = 0

    def _node(self, choice: np.ndarray | None) -> int:
        self._children.append([])
        self._at.append(NONE if choice is None else self._length)
        if choice is not None:
            self._choices.append(choice.astype(np.int16))
            self._length += len(choice)
        return len(self._at) - 1

    def add(self, response: int, own: int, other: int, starts: bool, found: dict[tuple[int, ...], np.ndarray]) -> None:
        """Add the choices that a response needs in one round, from its choices everywhere: see `record_response`.

        The round is given by the response's own dice, the other's, and whether the response starts.
        """
        answers: dict[tuple[int, ...], list[int]] = {}
        for path in found:
            if path:
                answers.setdefault(path[:-1], []).append(path[-1])
        root = self.root[response, own, other]
        waiting: list[tuple[int, tuple[int, ...], np.ndarray]] = []

        def visit(path: tuple[int, ...], alive: np.ndarray) -> int:
            node = self._node(np.where(alive, found[path], NOWHERE))
            waiting.append((node, path, alive))
            return node

        everybody = np.ones(len(next(iter(found.values()))), bool)
        if starts:
            root[1] = visit((), everybody)
        else:
            root[0] = self._node(None)
            for bid in sorted(answers.get((), [])):
                self._children[root[0]].append((int(step_of(-1, bid, self._num_actions)), visit((bid,), everybody)))
        while waiting:
            node, path, alive = waiting.pop()
            chosen = found[path]
            for mine in np.unique(chosen[alive]).tolist():
                if mine == CALL:
                    continue
                for bid in sorted(answers.get((*path, mine), [])):
                    child = visit((*path, mine, bid), alive & (chosen == mine))
                    self._children[node].append((int(step_of(mine, bid, self._num_actions)), child))

    def book(self) -> Book:
        steps = [pair for children in self._children for pair in children]
        table = np.array(steps, np.int64).reshape(-1, 2)
        first = np.concatenate([[0], np.cumsum([len(children) for children in self._children])]).astype(np.int64)
        choice = np.concatenate(self._choices) if self._choices else np.zeros(0, np.int16)
        step, to = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
        return Book(self.root, first, step, to, np.array(self._at, np.int64), choice)


def respond_to(variant: Variant, agents: Sequence[Any], done: Callable[[int], Any] = lambda response: None) -> Responses:
    """Find best responses to agents that state their probabilities and look at the present round only.

    Args:
        variant: a game of elimination between two players.
        agents: see `dice_envs.agent.ask_probabilities`.
        done: called with the number of a response before it is computed.

    Raises:
        ValueError: the game is too large, or of another kind.
    """
    writer = _Writer(variant, len(agents))
    seats = (0,) if has_equal_seats(variant) else (0, 1)
    wins = np.zeros(len(agents))
    for number, agent in enumerate(agents):
        done(number)
        seen: set[tuple[int, int, bool]] = set()
        for seat in seats:
            value, found = record_response(variant, agent, seat)
            wins[number] += value / len(seats)
            for table, choices in found.items():
                played = table.dice_of(1 - seat), table.dice_of(seat), table.starter != seat
                if played not in seen and choices:
                    writer.add(number, *played, choices)
                seen.add(played)
    return Responses(variant, wins, writer.book(), numbered_hands(variant, max(variant.options.dice_per_seat)))


# --- the cache ------------------------------------------------------------------------------------------------------


def responses_to(
    variant: Variant,
    agents: Sequence[Any],
    folder: Path | None = None,
    done: Callable[[int], Any] = lambda response: None,
) -> Responses:
    """Return what `respond_to` does, from a file if there is one, or kept in it. Agents must be memoryless.

    Args:
        variant, agents, done: as for `respond_to`.
        folder: None: `cache_folder()`.
    """
    path = _file_of(variant, agents, folder or cache_folder())

    def made(members: dict[str, np.ndarray]) -> Responses:
        wins = members.pop("wins")
        return Responses(variant, wins, Book(**members), numbered_hands(variant, max(variant.options.dice_per_seat)))

    found = read_archive(path, path.name, made, say)
    if found is None:
        found = respond_to(variant, agents, done)
        keep_archive(path, {"wins": found.wins, **found.book._asdict()})
    return found


def _file_of(variant: Variant, agents: Sequence[Any], folder: Path) -> Path:
    """Return the file of responses. Its name has a hash of the rules of the game and of the agents' probabilities."""
    digest = hashlib.sha256(f"{_VERSION} {variant.options!r} {[repr(agent) for agent in agents]}".encode())
    dice = variant.options.dice_per_seat
    for pair in {dice, dice[::-1]}:
        round_ = Round(variant, pair)
        for player in range(2):
            digest.update(round_.rules.child.tobytes())
            for agent in agents:
                source = source_of(round_, player, agent, player, new_streams(0, ROWS_AT_ONCE)[None])
                if not isinstance(source, Tabled):
                    raise ValueError(f"best responses are kept to memoryless agents only, not to {agent!r}")
                for table in source.tables:
                    digest.update(np.round(table, 9).tobytes())
    return folder / "responses" / f"{dice[0]}-{dice[1]}-{digest.hexdigest()[:16]}.npz"
