"""The tree of a game's positions: every draw enumerated, or sampled by the game's kernels."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from dice_envs.core.batch import IllegalActionError, as_action, explain_illegal
from dice_envs.core.chance import Draw, Drawn
from dice_envs.core.game import OVER, Variant
from dice_envs.core.options import shown

DEAL = -1  # in place of an action: the deal
_MAX_KEPT = 2**15  # positions kept, for algorithms that walk the same tree again and again


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A position: a decision, an open draw, or the end. Never changed, so copies of a state share it."""

    record: np.ndarray  # (1,) of the game's state, where a draw is open that before `action`; zeros before the deal
    returns: tuple[float, ...]  # rewards so far
    logs: tuple[str, ...]  # each seat's information state with perfect recall
    observations: np.ndarray  # (seats, observation_size) float32; zeros before the deal
    legal: list[int]  # actions of the seat to move; empty where a draw is open
    action: int | None = DEAL  # the action whose draw is open, or DEAL; None at a decision and at the end
    drawn: tuple[int, ...] = ()  # the outcomes of the draws after `action` so far
    draw: Draw | None = None  # the open draw; None where chance is sampled
    next: dict[int, Node] = dataclasses.field(default_factory=dict)  # positions reached from here, kept

    def __deepcopy__(self, memo: Any) -> Node:
        return self

    def __reduce__(self) -> Any:
        given = {name: value for name, value in vars(self).items() if name != "views"}
        draw = self.draw and self.draw._replace(words=str)  # `words` may be a local function, which cannot be pickled
        return functools.partial(Node, **{**given, "next": {}, "draw": draw}), ()

    @property
    def seat(self) -> int:
        """The seat to move, or OVER."""
        return int(self.record["seat"][0])

    @property
    def outcomes(self) -> tuple[int, ...]:
        """The outcomes of the open draw; 0 alone where chance is sampled."""
        return (0,) if self.draw is None else self.draw.outcomes

    @functools.cached_property
    def views(self) -> tuple[str, ...]:
        """Each seat's current observation as a string."""
        return tuple(f"p{seat}|{_changes(np.zeros_like(seen), seen)}" for seat, seen in enumerate(self.observations))


def _changes(before: np.ndarray, after: np.ndarray) -> str:
    """Entries that differ between two observations; nine digits distinguish all float32 values."""
    return " ".join(f"{at}={after[at]:.9g}" for at in np.flatnonzero(before != after))


class GameTree:
    """The positions of a variant.

    Args:
        variant: the game with its options.
        explicit: enumerate every draw, rather than sample.
        rng_seed: seeds the sampling; −1 for fresh entropy.

    Attributes:
        start: the position before the deal.
        rng: draws where chance is sampled.
    """

    def __init__(self, variant: Variant, explicit: bool, rng_seed: int) -> None:
        self.variant = variant
        self._drawn = Drawn(variant) if explicit else None
        self.rng = np.random.default_rng(None if rng_seed < 0 else rng_seed)
        self._kept = 0
        seats = variant.facts.num_seats
        self._seats = np.arange(seats)
        self._rows = np.zeros(seats, np.int64)
        blank = np.zeros(1, variant.game.state)
        unseen = np.zeros((seats, variant.facts.observation_size), np.float32)
        first_draw = self._drawn.deal(blank.copy()[0]) if self._drawn else None
        logs = tuple(f"p{seat}" for seat in range(seats))
        self.start = Node(blank, (0.0,) * seats, logs, unseen, [], draw=first_draw)

    def at(self, record: Any) -> Node:
        """Return the position of a state record in which no draw is open, without its history."""
        records = np.array([record], self.variant.game.state)
        observations, legal = self._observe(records)
        position = Node(records, (0.0,) * len(self._seats), (), observations, legal, None)
        return dataclasses.replace(position, logs=position.views)

    def after(self, position: Node, action: int) -> Node:
        """Return the position after an action, or after an outcome of the open draw.

        Raises:
            IllegalActionError: the action is not legal, or the outcome impossible.
        """
        found = position.next.get(action)
        if found is None:
            self.checked(position, action)
            found = self._sampled(position, action) if self._drawn is None else self._enumerated(self._drawn, position, action)
            # The outcome of a sampled draw differs each time.
            if self._kept < _MAX_KEPT and (self._drawn or position.action is None):
                position.next[action] = found
                self._kept += 1
        return found

    def checked(self, position: Node, action: Any) -> int:
        """Return the action or outcome as an int.

        Raises:
            IllegalActionError: it is not a whole number, or none that can follow the position.
        """
        number = as_action(action)
        if position.action is None:
            if number not in position.legal:
                raise IllegalActionError(explain_illegal(self.variant, position.record[0], number))
        elif number not in position.outcomes:
            raise IllegalActionError(f"outcome {number} cannot be drawn here; outcomes are {shown(position.outcomes)}")
        return number

    def _enumerated(self, drawn: Drawn, position: Node, action: int) -> Node:
        made, outcomes = (action, ()) if position.action is None else (position.action, (*position.drawn, action))
        record = position.record.copy()
        draw = drawn.deal(record[0], outcomes) if made == DEAL else drawn.play(record[0], made, outcomes)
        if draw is None:
            return self._arrived(position, made, record)
        return dataclasses.replace(position, legal=[], action=made, drawn=outcomes, draw=draw, next={})

    def _sampled(self, position: Node, action: int) -> Node:
        record = position.record.copy()
        kernels, first = self.variant.kernels, self._rows[:1]
        if position.action is None:
            kernels.play(record, first, np.array([action]))
            if record["rng"][0] != position.record["rng"][0]:  # the action drew, so a chance node comes first
                return dataclasses.replace(position, legal=[], action=action, next={})
            return self._arrived(position, action, record)
        record["rng"] = self.rng.integers(2**64, dtype=np.uint64)
        if position.action == DEAL:
            kernels.deal(record, first)
        else:
            kernels.play(record, first, np.array([position.action]))
        return self._arrived(position, position.action, record)

    def _arrived(self, position: Node, action: int, record: np.ndarray) -> Node:
        """Return the position after an action and all its draws."""
        observations, legal = self._observe(record)
        mover = OVER if action == DEAL else position.seat
        logs = tuple(
            f"{log}|{f'>{action} ' if seat == mover else ''}{_changes(before, after)}"
            for seat, (log, before, after) in enumerate(zip(position.logs, position.observations, observations, strict=True))
        )
        earned = [0.0] * len(logs) if action == DEAL else record["rewards"][0, : len(logs)].tolist()
        returns = tuple(sum(pair) for pair in zip(position.returns, earned, strict=True))
        return Node(record, returns, logs, observations, legal, None)

    def _observe(self, record: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """Return every seat's observation, (seats, observation_size) float32, and the legal actions."""
        variant, facts = self.variant, self.variant.facts
        observations = np.empty((facts.num_seats, facts.observation_size), np.float32)
        variant.kernels.observe(record, self._rows, self._seats, observations)
        mask = np.empty((1, facts.num_actions), np.int8)
        variant.kernels.legal(record, self._rows[:1], mask)
        return observations, np.flatnonzero(mask[0]).tolist()
