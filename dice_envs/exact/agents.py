"""The agent as a game's `measure` sees it: an agent that always states probabilities.

What it is to a measurement is decided once, before work begins. `Stated` states its policy, `Declared` promises to answer
alike, and nothing is known of `Undeclared`, which is asked twice everywhere. `Sampled` is one of them whose answers have
differed. `dice_envs.exact.consistency` finds out whether they do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dice_envs.agent import (
    Agent,
    AgentError,
    Promises,
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
from dice_envs.agent.mixture import Mixture
from dice_envs.agent.specs import resolve
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.exact.contract import REPEATS
from dice_envs.exact.intervals import share_bound

KEPT = 512  # positions, a random sample of those asked about, at which an agent is asked again in the end
ROUNDING = 1e-5  # a network's float32 probabilities differ by less where it is asked in batches of other sizes
ANSWERS = 64  # how often an agent that states no probabilities is asked at each position if its answers are random
SHOWN = 5  # other answers at a position, in all repeats of a measurement, that make the error show in their spread


class RandomAnswers(ValueError):
    """An agent's answers have differed at the same position, where none had before."""


# --- what an agent was asked --------------------------------------------------------------------------------------


class Answered(NamedTuple):
    """Positions at which an agent was asked, (n,) states, and its first answers there, (n, num_actions) float64."""

    states: np.ndarray
    answers: np.ndarray


class Reservoir:
    """A random sample of all positions with a choice that an agent was asked about, of KEPT to 2 KEPT of them.

    Attributes:
        kept: the sample, if there is one.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.kept: Answered | None = None
        self._rng = rng
        self._keys = np.zeros(0)  # random numbers; the sample has the smallest
        self._limit = 1.0  # keys from here on are too large for the sample

    def add(self, turn: Turn, answers: np.ndarray) -> None:
        """Add the positions of a turn. All positions have equal chances to be in the sample."""
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
        before, known = ([self.kept.states.view(whole)], [self.kept.answers]) if self.kept else ([], [])
        sample = Answered(np.concatenate([*before, states[choice]]), np.concatenate([*known, answers[rows][choice]]))
        self._keys = np.concatenate([self._keys, keys[rows][choice]])
        if len(self._keys) > 2 * KEPT:
            smallest = np.argpartition(self._keys, KEPT)[:KEPT]
            sample, self._keys = Answered(*(each[smallest] for each in sample)), self._keys[smallest]
            self._limit = float(self._keys.max())
        self.kept = sample._replace(states=sample.states.view(record))


@dataclasses.dataclass
class Repeats:
    """Answers that were asked for again, at positions with a choice.

    Attributes:
        number: how many.
        differing: how many of them were not as before.
        in_one_batch: whether the same batch was answered in two ways, as by random agents alone.
    """

    number: int = 0
    differing: int = 0
    in_one_batch: bool = False

    def count(self, differs: np.ndarray) -> None:
        """Add answers, which are as before or not: (n,) bool."""
        self.number += len(differs)
        self.differing += int(differs.sum())

    @property
    def bound(self) -> float:
        """A 95 % bound on the chance that an answer differs from an earlier one."""
        return share_bound(self.differing, self.number)


# --- what an agent is ---------------------------------------------------------------------------------------------


class Asked:
    """An agent that is being measured.

    Attributes:
        agent: as it was given.
        name: of it.
        is_known: whether it states its probabilities or declares that it answers alike (`deterministic`). Nothing is certain of
            other agents' answers.
        is_random: whether its answers differ at the same position. Another run may then give another result.
        promises: those of its promises that hold where it is asked as at the beginning of a match.
        rounding: by how much its probabilities may differ without being random.
        positions: a sample of those at which it was asked.
        own: those of games that it played with itself.
        repeats: counts of its repeated answers.
        rng: chooses where it is asked again.
        streams: its random streams there.
    """

    is_known, is_random = True, False

    def __init__(self, agent: Any, name: str = "") -> None:
        self.agent, self.name, self.rounding = agent, name, ROUNDING
        promised = promises_of(agent)
        memoryless = promised.memoryless and is_stochastic(agent)
        self.promises = dataclasses.replace(promised, memoryless=memoryless, remembers=None, resigns=False)
        self.rng, self.streams = np.random.default_rng(0), new_streams(1, 2 * KEPT)
        self.positions, self.repeats = Reservoir(self.rng), Repeats()
        self.own: Answered | None = None

    def act(self, turn: Turn) -> np.ndarray:
        if isinstance(self.agent, Agent):
            if turn.memory is None:
                turn.memory = fresh_memory(self.agent, len(turn))
            return np.asarray(self.agent.act(turn))
        return draw_actions(turn.streams, self.probabilities(turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        answers = self.answer(turn)
        self.positions.add(turn, answers)
        return answers

    def answer(self, turn: Turn) -> np.ndarray:
        """Return (n, num_actions) float64: 1 for the actions that the agent chooses. The streams move on."""
        everywhere = np.arange(len(turn))
        chosen = np.zeros((len(turn), turn.variant.facts.num_actions))
        states = turn._true_states[turn._index]
        chosen[everywhere, ask(self.agent, turn.variant, states, everywhere, turn.streams)] = 1
        return chosen

    def differ(self) -> NoReturn:
        """Raise RandomAnswers: answers have differed."""
        raise RandomAnswers(f"the answers of {self.name} are random")

    @property
    def unseen(self) -> float:
        """A 95 % bound on the chance of an answer that differs from the one measured, at a position with a choice."""
        return 0.0

    @property
    def is_read(self) -> bool:
        """Whether the agent's numbers are read instead of asking it."""
        return self.promises.network is not None or self.promises.solution is not None


class Stated(Asked):
    """An agent that states its policy."""

    def answer(self, turn: Turn) -> np.ndarray:
        chances, rounding = stated(self.agent, turn)
        self.rounding = max(self.rounding, 2 * rounding)
        return chances


class Declared(Asked):
    """An agent that only acts, and promises to answer alike."""

    def differ(self) -> NoReturn:
        raise AgentError(f"{self.name or name_of(self.agent)} promises deterministic=True, but its answers are random")


class Undeclared(Asked):
    """An agent that only acts and promises nothing: it is asked twice everywhere."""

    is_known = False

    def probabilities(self, turn: Turn) -> np.ndarray:
        answers = self.answer(turn)
        choice = turn.legal.sum(axis=1) > 1
        self.repeats.count((self.answer(turn) != answers).any(axis=1)[choice])
        if self.repeats.differing:
            self.repeats.in_one_batch = True
            self.differ()
        self.positions.add(turn, answers)
        return answers

    @property
    def unseen(self) -> float:
        return self.repeats.bound


class Sampled(Asked):
    """An agent whose answers are random: its policy is the mean of several of them.

    Args:
        fixed: the agent as it was asked before they differed.
        repeats: counts of its repeated answers; None: those of `fixed`.

    Attributes:
        questions: how often it is asked at each position.
    """

    is_random = True

    def __init__(self, fixed: Asked, repeats: Repeats | None = None) -> None:
        super().__init__(fixed.agent, fixed.name)
        self.is_known, self.rng, self.answer = fixed.is_known, fixed.rng, fixed.answer  # type: ignore[method-assign]
        self.repeats = repeats or fixed.repeats
        self.questions = ANSWERS
        if isinstance(fixed, Stated):  # each answer may hold many actions
            rate = self.repeats.differing / max(1, self.repeats.number)
            self.questions = min(ANSWERS, math.ceil(SHOWN / (rate * REPEATS)))

    def probabilities(self, turn: Turn) -> np.ndarray:
        answers = self.answer(turn)
        if self.rng.random() < 0.5:  # an agent that changes at each call must not do so in step with the repeats
            self.answer(Turn(turn.variant, turn._true_states, turn._index[:1], turn.streams[:1].copy()))
        for _ in range(self.questions - 1):
            answers += self.answer(Turn(turn.variant, turn._true_states, turn._index, turn.streams))
        return np.asarray(answers / answers.sum(axis=1, keepdims=True))

    @property
    def unseen(self) -> float:
        """0 of answers that differ often enough to show in a repeated measurement."""
        shows = self.repeats.in_one_batch and self.repeats.bound * self.questions * REPEATS >= SHOWN
        return 0.0 if shows else self.repeats.bound


class Mixed(Asked):
    """A mixture. Its answers depend on what it has done before in the game, so its agents are asked one by one.

    Attributes:
        parts: its agents as `measure` sees them, those that are never drawn left out.
        weights: (parts,) float64, how often each is drawn.
    """

    def __init__(self, mixture: Mixture, variant: Variant, name: str) -> None:
        self.agent, self.name, self.promises = mixture, name, Promises()
        shares = mixture.shares()
        self.parts = [asked(mixture.agents[number], variant) for number in np.flatnonzero(shares)]
        self.weights = shares[shares > 0]
        self.is_known = all(each.is_known for each in self.parts)

    @property
    def repeats(self) -> Repeats:  # type: ignore[override]
        """Counts of all its agents' repeated answers."""
        counts = [each.repeats for each in self.parts]
        return Repeats(sum(each.number for each in counts), sum(each.differing for each in counts))

    @property
    def unseen(self) -> float:
        return max(each.unseen for each in self.parts)


def parts_of(player: Asked) -> list[Asked]:
    """Return the agents of a mixture; any other agent alone."""
    return player.parts if isinstance(player, Mixed) else [player]


@dataclasses.dataclass
class _InSeat:
    """An agent that plays one seat. At the others, where it is never measured, it is not asked."""

    agent: Any
    seat: int

    def probabilities(self, turn: Turn) -> np.ndarray:
        chances, rows = turn.legal / turn.legal.sum(axis=1, keepdims=True), np.flatnonzero(turn.seats == self.seat)
        if len(rows):
            part = Turn(turn.variant, turn._true_states, turn._index[rows], turn.streams[rows])
            chances[rows] = ask_probabilities(self.agent, part)
        return chances


def asked(agent: str | Agent | Callable[..., Any], variant: Variant, seat: int | None = None) -> Any:
    """Return the agent as a game's `measure` sees it, in every seat or in one. `agent` is what `dice_envs.measure` takes.

    Raises:
        ValueError: no such agent, or it does not play the variant, or not the seat.
        TypeError: this is no agent.
    """
    player = as_agent(agent)
    if not is_stochastic(player):  # measures need no act
        player = resolve(player, variant.game.name)
    check_plays(player, variant)
    in_place = promises_of(player).for_variant
    name = name_of(agent if isinstance(agent, str) else player)
    player = in_place(variant) if in_place else player
    seats = promises_of(player).seats
    if seats is not None:
        lacking = [each for each in range(variant.facts.num_seats) if each not in seats and seat in (None, each)]
        if lacking:
            raise ValueError(
                f"{name} is a profile that lacks seat {lacking[0] + 1}: measure a sequence of an agent for each seat"
            )
        player = player if seat is None else _InSeat(player, seat)
    if isinstance(player, Mixture):
        return Mixed(player, variant, name)
    if is_stochastic(player):
        return Stated(player, name)
    return (Declared if promises_of(player).deterministic else Undeclared)(player, name)


def chances_of(agent: Any, turn: Turn) -> np.ndarray:
    """Return the agent's probabilities in each game of the turn, checked once: see `dice_envs.agent.ask_probabilities`."""
    return agent.probabilities(turn) if isinstance(agent, Asked) else ask_probabilities(agent, turn)


def is_random(agent: Any) -> bool:
    """Return whether an agent is measured as one whose answers are random."""
    return isinstance(agent, Sampled)


def original(agent: Any) -> Any:
    """Return the agent that was given to `dice_envs.measure`, which wraps it."""
    return agent.agent if isinstance(agent, Asked) else agent


def is_uniform(agent: Any) -> bool:
    """Return whether the agent plays uniformly at random, or promises it."""
    player = original(agent)
    inherits = isinstance(player, Uniform) and type(player).probabilities is Uniform.probabilities  # a subclass may not
    return inherits or promises_of(player).strategy == "uniform"
