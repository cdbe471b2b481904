"""The agent as a game's `measure` sees it: an agent that always states probabilities."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import (
    Agent,
    AgentError,
    Turn,
    Uniform,
    as_agent,
    ask,
    ask_probabilities,
    check_plays,
    draw_actions,
    fresh_memory,
    is_stochastic,
    name_of,
    promises_of,
    stated,
)
from dice_envs.agent.specs import resolve
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant
from dice_envs.exact.contract import REPEATS
from dice_envs.exact.intervals import share_bound

COMPARED = 64  # positions of random play at which an agent is asked twice before work begins
OWN_GAMES = 256  # that an agent plays from beginning to end, to be asked twice at all of their positions
MOST_OWN = 50_000  # positions of them, after which only FEW_LONG go on
FEW_LONG = 8
KEPT = 512  # positions, a random sample of those asked about, at which an agent is asked again in the end
AGAIN = 16_384  # answers there; where all agree, answers that differ from them have chances of 2e-4 or less
SIZES = (KEPT, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)  # of the first batches of them; the others have KEPT rows
STEADY = 8  # matching repeats required before a mismatch in another batch is an error
FEW = 2  # positions with other answers, which may be chance even so: the first answer was the rare one
ROUNDING = 1e-5  # a network's float32 probabilities differ by less where it is asked in batches of other sizes
ANSWERS = 64  # how often an agent that states no probabilities is asked at each position if its answers are random
SHOWN = 5  # other answers at a position, in all repeats of a measurement, that make the error show in their spread
ENOUGH = 10  # answers that differ, after which it is known how often they do


def positions_of_play(variant: Variant, seed: int, player: Agent | None = None, steps: int = 12) -> np.ndarray:
    """Return the positions with a choice in games that a player has with itself, (n,) states.

    Without one they are the first steps of uniformly random games.
    """
    batch, everybody, going = Batch(variant, OWN_GAMES, seed), new_streams(seed, OWN_GAMES), np.arange(OWN_GAMES)
    found: list[np.ndarray] = []
    while len(going) and (player is not None or len(found) < steps):
        positions = batch.states[going]
        found.append(positions[batch.legal()[going].sum(axis=1) > 1])
        batch.play(ask(player or Uniform(), variant, batch.states, going, everybody), going)
        going = going[batch.states["seat"][going] != OVER]
        going = going[:FEW_LONG] if sum(map(len, found)) > MOST_OWN else going
    return np.concatenate(found)


class _Sample(NamedTuple):
    """Positions at which an agent is asked again, (n,) states, and its first answers there, (n, num_actions) float64."""

    states: np.ndarray
    answers: np.ndarray


class Asked:
    """An agent that always states probabilities.

    For an agent that only acts these are the frequencies of its answers. It is asked twice at each position, and many times
    once two answers have differed anywhere.

    Args:
        agent: acts or states probabilities.
        name: of it.
        seen: answers that were asked for again, and those that differed, in an earlier measurement. See `Asked.seen`.

    Attributes:
        name: the agent's.
        is_random: whether an answer has differed from an earlier one at the same position. Another run may then give another
            result.
        is_known: whether the agent states its probabilities or declares that it answers alike (`deterministic`). Nothing is
            certain of other agents' answers.
        promises: the agent's that hold where it is asked as at the beginning of a match.
    """

    def __init__(self, agent: Any, name: str = "", seen: tuple[int, int] = (0, 0)) -> None:
        self.agent = agent
        self.name = name
        self._repeated, self._differing = seen
        self.is_random = self._differing > 0
        self._varies = self.is_random  # whether the same batch has been answered in two ways
        self._states_probabilities = is_stochastic(agent)
        promised = promises_of(agent)
        self.is_known = self._states_probabilities or promised.deterministic
        memoryless = self._states_probabilities and promised.memoryless
        self.promises = dataclasses.replace(promised, memoryless=memoryless, remembers=None, resigns=False)
        self._rounding = ROUNDING
        self._rng = np.random.default_rng(0)  # chooses the sample
        self._streams = new_streams(1, 2 * KEPT)  # of the agent, where it is asked again
        self._sample: _Sample | None = None  # of the positions asked about
        self._own: _Sample | None = None  # positions of its own games
        self._keys = np.zeros(0)  # random numbers; the sample has the smallest
        self._limit = 1.0  # keys from here on are too large for the sample

    def act(self, turn: Turn) -> np.ndarray:
        if isinstance(self.agent, Agent):
            if turn.memory is None:
                turn.memory = fresh_memory(self.agent, len(turn))
            return np.asarray(self.agent.act(turn))
        return draw_actions(turn.streams, self.probabilities(turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        answers = self._answer(turn)
        if not (self.is_known or self.is_random):
            choice = turn.legal.sum(axis=1) > 1
            self._count((self._answer(turn) != answers).any(axis=1)[choice])
            self._varies = self.is_random
        if self.is_random:
            if self._rng.random() < 0.5:  # an agent that changes at each call must not do so in step with the repeats
                self._answer(Turn(turn.variant, turn._true_states, turn._index[:1], turn.streams[:1].copy()))
            for _ in range(self.questions - 1):
                answers += self._answer(Turn(turn.variant, turn._true_states, turn._index, turn.streams))
            answers /= answers.sum(axis=1, keepdims=True)
        else:
            self._keep(turn, answers)
        return answers

    def _answer(self, turn: Turn) -> np.ndarray:
        """Return probabilities as the agent states them, or 1 for the actions that it chooses. The streams move on."""
        if self._states_probabilities:
            chances, rounding = stated(self.agent, turn)
            self._rounding = max(self._rounding, 2 * rounding)
            return chances
        everywhere = np.arange(len(turn))
        chosen = np.zeros((len(turn), turn.variant.facts.num_actions))
        states = turn._true_states[turn._index]
        chosen[everywhere, ask(self.agent, turn.variant, states, everywhere, turn.streams)] = 1
        return chosen

    # --- answers that differ ---

    @property
    def seen(self) -> tuple[int, int]:
        """How many answers were asked for again at positions with a choice, and how many of them differed."""
        return self._repeated, self._differing

    @property
    def unseen(self) -> float:
        """A 95 % bound on the chance of an answer that differs from the one measured, at a position with a choice.

        0 of probabilities that do not differ, and of answers that differ often enough to show in a repeated measurement.
        """
        if self.is_known and not self.is_random:
            return 0.0
        return 0.0 if self._varies and self.rate * self.questions * REPEATS >= SHOWN else self.rate

    @property
    def rate(self) -> float:
        """A 95 % bound on the chance that an answer differs from an earlier one, at a position with a choice."""
        return share_bound(self._differing, self._repeated)

    @property
    def questions(self) -> int:
        """How often an agent with random answers is asked at each position."""
        if not self._states_probabilities:
            return ANSWERS
        rate = self._differing / max(1, self._repeated)
        return min(ANSWERS, math.ceil(SHOWN / (rate * REPEATS)))

    def _count(self, differs: np.ndarray) -> None:
        self._repeated += len(differs)
        self._differing += int(differs.sum())
        self.is_random = self._differing > 0
        if self.is_random and not self._states_probabilities and self.is_known:
            raise AgentError(f"{self.name or name_of(self.agent)} promises deterministic=True, but its answers are random")

    def _keep(self, turn: Turn, answers: np.ndarray) -> None:
        """Add positions with a choice to the sample: all that were asked about have equal chances to be in it."""
        keys = self._rng.random(len(turn))
        rows = np.flatnonzero(keys < self._limit)
        rows = rows[np.argsort(keys[rows])[:KEPT]]
        record = turn._true_states.dtype
        whole = np.dtype((np.void, record.itemsize))  # records as bytes: NumPy copies them field by field, which takes long
        states = turn._true_states.view(whole)[turn._index[rows]]
        legal = Turn(turn.variant, states.view(record), np.arange(len(rows)), turn.streams[rows]).legal
        choice = legal.sum(axis=1) > 1
        if not choice.any():
            return
        kept, known = ([self._sample.states.view(whole)], [self._sample.answers]) if self._sample else ([], [])
        sample = _Sample(np.concatenate([*kept, states[choice]]), np.concatenate([*known, answers[rows][choice]]))
        self._keys = np.concatenate([self._keys, keys[rows][choice]])
        if len(self._keys) > 2 * KEPT:
            smallest = np.argpartition(self._keys, KEPT)[:KEPT]
            sample, self._keys = _Sample(*(each[smallest] for each in sample)), self._keys[smallest]
            self._limit = float(self._keys.max())
        self._sample = sample._replace(states=sample.states.view(record))

    def probe(self, variant: Variant) -> None:
        """Ask twice before work begins: at a few positions of random play, where most random answers show, then at all of the
        agent's own games, whose last positions are rare elsewhere."""
        states = positions_of_play(variant, 0)
        if self.is_random or self._sample is not None or not len(states):
            return
        states = states[np.linspace(0, len(states) - 1, min(COMPARED, len(states))).astype(np.int64)]
        self.probabilities(Turn(variant, states, np.arange(len(states)), new_streams(0, len(states))))
        self.ask_again(variant, COMPARED)
        if self.is_random or self._is_read:
            return
        states = positions_of_play(variant, 1, self.agent if isinstance(self.agent, Agent) else self)
        parts = np.array_split(np.arange(len(states)), -(-len(states) // KEPT) or 1)
        found = [self.probabilities(Turn(variant, states, part, self._streams[: len(part)])) for part in parts]
        if not self.is_random:
            self._own = _Sample(states, np.concatenate(found))
            self.ask_again(variant, COMPARED)

    @property
    def _is_read(self) -> bool:
        """Whether the agent's numbers are read instead of asking it."""
        return self.promises.network is not None or self.promises.solution is not None

    def ask_again(self, variant: Variant, answers: int = AGAIN) -> None:
        """Ask again at a sample of the positions asked about so far, in batches of other sizes and orders, and at those of its
        own games.

        Sets `is_random` where an answer differs at random, and goes on until it is known how often.

        Args:
            variant: the game.
            answers: how many to ask for at the sample; none at all if 0. Fewer of an agent whose numbers are read.

        Raises:
            AgentError: an answer depends on its row, on the other rows or on the number of rows in its batch, or on what the
                agent was asked before.
        """
        if self._sample is None or self.is_random or not answers:
            return
        answers = min(answers, COMPARED) if self._is_read else answers
        sizes = itertools.chain(SIZES, itertools.repeat(KEPT))
        begun = self._repeated
        while self._repeated < begun + (max(answers, KEPT) if self.is_random else answers) and self._differing < ENOUGH:
            order = np.resize(self._rng.permutation(len(self._sample.states)), KEPT)
            self._compare(variant, self._sample, order[: min(next(sizes), answers)])
        own = np.arange(0 if self._own is None else len(self._own.states))
        for rows in np.array_split(self._rng.permutation(own), -(-len(own) // KEPT) or 1):
            if self._own is not None and self._differing < ENOUGH:
                self._compare(variant, self._own, rows)

    def _compare(self, variant: Variant, sample: _Sample, rows: np.ndarray) -> None:
        """Ask again at rows of a sample."""

        def at(rows: np.ndarray) -> np.ndarray:
            return self._answer(Turn(variant, sample.states, rows, self._streams[: len(rows)]))

        found = at(rows)
        differs = self._differs(found, sample.answers[rows])
        if differs.any() and not self._varies:
            again = self._steady(at, rows)
            self._varies = again is None or bool(self._differs(again, found).any())
            cause = "" if self._varies else self._cause(at, rows, found, differs)
            if cause:
                raise AgentError(
                    f"{self.name or name_of(self.agent)}: its answer at a position depends on {cause}; it must be the same "
                    f"in every batch and at every time, but was not when {len(rows)} positions were asked about again: "
                    f"{differs.sum()} answers differ"
                )
        self._count(differs)

    def _steady(self, at: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray | None:
        """Return the answers at rows of a sample, or None if they are random: not the same each time in the same batch."""
        found = at(rows)
        return None if any(self._differs(at(rows), found).any() for _ in range(STEADY)) else found

    def _differs(self, answers: np.ndarray, others: np.ndarray) -> np.ndarray:
        return (np.abs(answers - others) > self._rounding).any(axis=1)

    def _cause(self, at: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, found: np.ndarray, differs: np.ndarray) -> str:
        """Return on what the answers depend that differ from the first ones; "" if it may be chance."""
        row, number = int(differs.argmax()), len(rows)
        sizes = number, max(2 * number, KEPT), 1, number
        alike, longer, alone, again = (self._steady(at, np.full(times, rows[row])) for times in sizes)
        if alike is None or longer is None or alone is None or again is None or self._differs(again, alike).any():
            self._varies = True
        elif self._differs(alike, alike[:1]).any() or self._differs(longer, longer[:1]).any():
            return "the row that the position has in the batch"
        elif self._differs(alike[:1], found[row : row + 1]).any():
            return "the other positions in the batch, as of a PyTorch module in training mode, which eval() ends"
        elif self._differs(alike[:1], longer[:1]).any() or self._differs(alike[:1], alone).any():
            return "the number of positions in the batch"
        elif len(np.unique(rows[differs])) > FEW:
            return "the batch, or on what it was asked before"
        return ""


def asked(agent: str | Agent | Callable[..., Any], variant: Variant, seen: tuple[int, int] = (0, 0)) -> Any:
    """Return the agent as a game's `measure` sees it. `agent` is what `dice_envs.measure` takes, `seen` as for `Asked`.

    Raises:
        ValueError: no such agent, or it does not play the variant.
        TypeError: this is no agent.
    """
    player = as_agent(agent)
    if not is_stochastic(player):  # measures need no act
        player = resolve(player, variant.game.name)
    check_plays(player, variant)
    in_place = promises_of(player).for_variant
    return Asked(in_place(variant) if in_place else player, name_of(agent if isinstance(agent, str) else player), seen)


def chances_of(agent: Any, turn: Turn) -> np.ndarray:
    """Return the agent's probabilities in each game of the turn, checked once: see `dice_envs.agent.ask_probabilities`."""
    return agent.probabilities(turn) if isinstance(agent, Asked) else ask_probabilities(agent, turn)


def is_random(agent: Any) -> bool:
    """Return whether answers of an agent that is being measured have differed at the same position."""
    return isinstance(agent, Asked) and agent.is_random


def original(agent: Any) -> Any:
    """Return the agent that was given to `dice_envs.measure`, which wraps it."""
    return agent.agent if isinstance(agent, Asked) else agent


def is_uniform(agent: Any) -> bool:
    """Return whether the agent plays uniformly at random, or promises it."""
    player = original(agent)
    inherits = isinstance(player, Uniform) and type(player).probabilities is Uniform.probabilities  # a subclass may not
    return inherits or promises_of(player).strategy == "uniform"
