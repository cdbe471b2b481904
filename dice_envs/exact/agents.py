"""The agent as a game's `measure` sees it: an agent that always states probabilities.

What it is to a measurement is decided once, before work begins. `Stated` states its policy, `Declared` promises to answer
alike, and nothing is known of `Undeclared`, which is asked twice everywhere. `Sampled` is one of them whose answers have
differed. `probe` and `ask_again` find out whether they do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
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
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant
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


@contextlib.contextmanager
def fixed(
    variant: Variant, players: Sequence[Any], only: str, check: Callable[[Any], Any] = lambda player: None
) -> Iterator[None]:
    """A block in which players are asked whose probabilities have to be fixed.

    Args:
        variant: the game.
        players: as `asked` gives them; of a mixture each of its agents.
        only: begins the sentence that says what is known "for agents".
        check: called with each player before the block, raises ValueError for a player that must not be asked.

    Raises:
        ValueError: they are not fixed, as far as can be seen before, within and after the block.
    """
    players = [part for player in players for part in parts_of(player)]
    try:
        for player in players:
            probe(variant, player)
            if not player.is_known:
                unknown = f"{player.name} states no probabilities and does not promise deterministic=True"
                raise ValueError(f"{unknown}: {only} whose probabilities are fixed")
            check(player)
        yield
        for player in players:
            ask_again(variant, player)
    except RandomAnswers as problem:
        raise ValueError(f"{problem}: {only} whose probabilities are fixed") from None


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


# --- whether it answers alike -------------------------------------------------------------------------------------
# Each time it is asked: in other batches, at other times, in games of its own. An agent is asked twice before work begins
# (`probe`), where most random answers show, and again when it is done (`ask_again`).

COMPARED = 64  # positions of random play at which an agent is asked twice before work begins
OWN_GAMES = 256  # that an agent plays from beginning to end, to be asked twice at all of their positions
MOST_OWN = 50_000  # positions of them, after which only FEW_LONG go on
FEW_LONG = 8
AGAIN = 16_384  # answers in the end; where all agree, answers that differ from them have chances of 2e-4 or less
SIZES = (KEPT, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)  # of the first batches of them; the others have KEPT rows
STEADY = 8  # matching repeats required before a mismatch in another batch is an error
FEW = 2  # positions that may differ because the first answer happened to be the rare one
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


def probe(variant: Variant, player: Asked) -> None:
    """Ask twice before work begins: at a few positions of random play, where most random answers show, then at all of the
    agent's own games, whose last positions are rare elsewhere. Errors as of `ask_again`."""
    states = positions_of_play(variant, 0)
    if player.is_random or player.positions.kept is not None or not len(states):
        return
    states = states[np.linspace(0, len(states) - 1, min(COMPARED, len(states))).astype(np.int64)]
    player.probabilities(Turn(variant, states, np.arange(len(states)), new_streams(0, len(states))))
    ask_again(variant, player, COMPARED)
    if player.is_read:
        return
    states = positions_of_play(variant, 1, player.agent if isinstance(player.agent, Agent) else player)
    parts = np.array_split(np.arange(len(states)), -(-len(states) // KEPT) or 1)
    found = [player.probabilities(Turn(variant, states, part, player.streams[: len(part)])) for part in parts]
    player.own = Answered(states, np.concatenate(found))
    ask_again(variant, player, COMPARED)


def ask_again(variant: Variant, player: Asked, answers: int = AGAIN) -> None:
    """Ask again at a sample of the positions asked about so far, in batches of other sizes and orders, and at those of the
    agent's own games. Where an answer differs at random, go on until it is known how often.

    Args:
        variant: the game.
        player: the agent.
        answers: how many to ask for at the sample. Fewer of an agent whose numbers are read.

    Raises:
        RandomAnswers: an answer differs at random.
        AgentError: the same of an agent that promises to answer alike; or an answer depends on its row, on the other rows or
            on the number of rows in its batch, or on what the agent was asked before.
    """
    kept, repeats, own = player.positions.kept, player.repeats, player.own
    if kept is None:
        return
    answers = min(answers, COMPARED) if player.is_read else answers
    sizes = itertools.chain(SIZES, itertools.repeat(KEPT))
    begun = repeats.number
    while repeats.number < begun + (max(answers, KEPT) if repeats.differing else answers) and repeats.differing < ENOUGH:
        order = np.resize(player.rng.permutation(len(kept.states)), KEPT)
        _compare(variant, player, kept, order[: min(next(sizes), answers)])
    everywhere = np.arange(0 if own is None else len(own.states))
    for rows in np.array_split(player.rng.permutation(everywhere), -(-len(everywhere) // KEPT) or 1):
        if own is not None and repeats.differing < ENOUGH:
            _compare(variant, player, own, rows)
    if repeats.differing:
        player.differ()


def _compare(variant: Variant, player: Asked, before: Answered, rows: np.ndarray) -> None:
    """Ask again at some of the positions, and count the answers that differ. AgentError if they do not by chance."""

    def at(rows: np.ndarray) -> np.ndarray:
        return player.answer(Turn(variant, before.states, rows, player.streams[: len(rows)]))

    def differ(answers: np.ndarray, others: np.ndarray) -> np.ndarray:
        return np.asarray((np.abs(answers - others) > player.rounding).any(axis=1))

    found = at(rows)
    differs = differ(found, before.answers[rows])
    if differs.any() and not player.repeats.in_one_batch:
        cause = _cause(at, differ, rows, found, differs)
        if cause:
            raise AgentError(
                f"{player.name or name_of(player.agent)}: its answer at a position depends on {cause}; it must be the same "
                f"in every batch and at every time, but was not when {len(rows)} positions were asked about again: "
                f"{differs.sum()} answers differ"
            )
        player.repeats.in_one_batch = cause is None
    player.repeats.count(differs)


def _cause(
    at: Callable[[np.ndarray], np.ndarray],
    differ: Callable[[np.ndarray, np.ndarray], np.ndarray],
    rows: np.ndarray,
    found: np.ndarray,
    differs: np.ndarray,
) -> str | None:
    """Return what the differing answers depend on; "" if they may differ by chance; None if they do, because the same batch is
    answered in two ways."""

    def steady(rows: np.ndarray) -> np.ndarray | None:
        found = at(rows)
        return None if any(differ(at(rows), found).any() for _ in range(STEADY)) else found

    again = steady(rows)
    if again is None or differ(again, found).any():
        return None
    row, number = int(differs.argmax()), len(rows)
    sizes = number, max(2 * number, KEPT), 1, number
    alike, longer, alone, again = (steady(np.full(times, rows[row])) for times in sizes)
    if alike is None or longer is None or alone is None or again is None or differ(again, alike).any():
        return None
    if differ(alike, alike[:1]).any() or differ(longer, longer[:1]).any():
        return "the row that the position has in the batch"
    if differ(alike[:1], found[row : row + 1]).any():
        return "the other positions in the batch, as of a PyTorch module in training mode, which eval() ends"
    if differ(alike[:1], longer[:1]).any() or differ(alike[:1], alone).any():
        return "the number of positions in the batch"
    return "the batch, or on what it was asked before" if len(np.unique(rows[differs])) > FEW else ""
