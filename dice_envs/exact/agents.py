"""The agent as a game's `measure` sees it: an agent that always states probabilities."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.agent import (
    Agent,
    AgentError,
    Promises,
    Turn,
    Uniform,
    ask,
    ask_probabilities,
    check_plays,
    draw_actions,
    fresh_memory,
    is_stochastic,
    name_of,
    promises_of,
    resolve,
    stated,
)
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant
from dice_envs.exact.contract import REPEATS
from dice_envs.exact.intervals import share_bound

COMPARED = 64  # positions of random play at which an agent is asked twice before work begins
KEPT = 512  # positions, a random sample of those asked about, at which an agent is asked again in the end
AGAIN = 16_384  # answers there; where all agree, answers that differ from them have chances of 2e-4 or less
SIZES = (KEPT, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)  # of the first batches of them; the others have KEPT rows
STEADY = 8  # matching repeats required before a mismatch in another batch is an error
FEW = 2  # positions with other answers, which may be chance even so: the first answer was the rare one
ROUNDING = 1e-5  # a network's float32 probabilities differ by less where it is asked in batches of other sizes
ANSWERS = 64  # how often an agent that states no probabilities is asked at each position if its answers are random
SHOWN = 5  # other answers at a position, in all repeats of a measurement, that make the error show in their spread
ENOUGH = 10  # answers that differ, after which it is known how often they do


def positions_of_play(variant: Variant, seed: int, games: int = 256, steps: int = 12) -> np.ndarray:
    """Return the positions with a choice in the first steps of uniformly random games, (n,) states."""
    batch, everybody = Batch(variant, games, seed), new_streams(seed, games)
    found = []
    for _ in range(steps):
        going = np.flatnonzero(batch.states["seat"] != OVER)
        if not len(going):
            break
        found.append(batch.states[batch.legal().sum(axis=1) > 1])
        batch.play(ask(Uniform(), variant, batch.states, going, everybody), going)
    return np.concatenate(found)


@dataclasses.dataclass(frozen=True, repr=False)
class _Function:
    """A function from (observations, action masks) to action probabilities, as an agent. Errors name the function.

    A PyTorch module is given tensors on its device.
    """

    function: Callable[..., Any]

    promises = Promises(observes_only=True)

    def __repr__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def probabilities(self, turn: Turn) -> Any:
        asked: tuple[Any, ...] = turn.observations, turn.legal
        if not hasattr(self.function, "parameters"):
            return self.function(*asked)
        import torch

        device = next((each.device for each in self.function.parameters()), None)
        with torch.no_grad():
            return self.function(*(torch.from_numpy(each).to(device) for each in asked))


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
        self._streams: np.ndarray | None = None  # of the agent, where it is asked again
        self._states: np.ndarray | None = None  # a sample of the positions asked about
        self._first = np.zeros((0, 0))  # the first answers there
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
        rate = share_bound(self._differing, self._repeated)
        return 0.0 if self._varies and rate * self.questions * REPEATS >= SHOWN else rate

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
        kept = [self._states.view(whole)] if self._states is not None else []
        known = [self._first] if self._states is not None else []
        self._states = np.concatenate([*kept, states[choice]]).view(record)
        self._first = np.concatenate([*known, answers[rows][choice]])
        self._keys = np.concatenate([self._keys, keys[rows][choice]])
        if len(self._keys) > 2 * KEPT:
            smallest = np.argpartition(self._keys, KEPT)[:KEPT]
            self._states, self._first, self._keys = self._states[smallest], self._first[smallest], self._keys[smallest]
            self._limit = float(self._keys.max())

    def probe(self, variant: Variant) -> None:
        """Ask twice at a few positions of random play: most random answers show there, before work begins."""
        states = positions_of_play(variant, 0)
        if self.is_random or self._states is not None or not len(states):
            return
        states = states[np.linspace(0, len(states) - 1, min(COMPARED, len(states))).astype(np.int64)]
        self.probabilities(Turn(variant, states, np.arange(len(states)), new_streams(0, len(states))))
        self.ask_again(variant, COMPARED)

    def ask_again(self, variant: Variant, answers: int = AGAIN) -> None:
        """Ask again at a sample of the positions asked about so far, in batches of other sizes and orders.

        Sets `is_random` where an answer differs at random, and goes on until it is known how often.

        Args:
            variant: the game.
            answers: how many to ask for. Fewer of an agent whose numbers are read instead of asking it.

        Raises:
            AgentError: an answer depends on its row, on the other rows or on the number of rows in its batch, or on what the
                agent was asked before.
        """
        if self._states is None or self.is_random:
            return
        if self.promises.network is not None or self.promises.solution is not None:
            answers = min(answers, COMPARED)
        if self._streams is None:
            self._streams = new_streams(1, 2 * KEPT)
        sizes = itertools.chain(SIZES, itertools.repeat(KEPT))
        begun = self._repeated
        while self._repeated < begun + (max(answers, KEPT) if self.is_random else answers) and self._differing < ENOUGH:
            order = np.resize(self._rng.permutation(len(self._states)), KEPT)
            rows = order[: min(next(sizes), answers)]
            found = self._at(variant, rows)
            differs = self._differs(found, self._first[rows])
            if differs.any() and not self._varies:
                again = self._steady(variant, rows)
                self._varies = again is None or bool(self._differs(again, found).any())
                cause = "" if self._varies else self._cause(variant, rows, found, differs)
                if cause:
                    raise AgentError(
                        f"{self.name or name_of(self.agent)}: its answer at a position depends on {cause}; it must be the same "
                        f"in every batch and at every time, but was not when {len(rows)} positions were asked about again: "
                        f"{differs.sum()} answers differ"
                    )
            self._count(differs)

    def _at(self, variant: Variant, rows: np.ndarray) -> np.ndarray:
        """Return the agent's answers at rows of the sample."""
        assert self._states is not None
        assert self._streams is not None
        return self._answer(Turn(variant, self._states, rows, self._streams[: len(rows)]))

    def _steady(self, variant: Variant, rows: np.ndarray) -> np.ndarray | None:
        """Return the answers at rows of the sample, or None if they are random: not the same each time in the same batch."""
        found = self._at(variant, rows)
        return None if any(self._differs(self._at(variant, rows), found).any() for _ in range(STEADY)) else found

    def _differs(self, answers: np.ndarray, others: np.ndarray) -> np.ndarray:
        return (np.abs(answers - others) > self._rounding).any(axis=1)

    def _cause(self, variant: Variant, rows: np.ndarray, found: np.ndarray, differs: np.ndarray) -> str:
        """Return on what the answers depend that differ from the first ones; "" if it may be chance."""
        row, number = int(differs.argmax()), len(rows)
        alike, longer, alone = (self._steady(variant, np.full(times, rows[row])) for times in (number, 2 * number, 1))
        if alike is None or longer is None or alone is None:
            self._varies = True
        elif self._differs(alike, alike[:1]).any() or self._differs(longer, longer[:1]).any():
            return "the row that the position has in the batch"
        elif self._differs(alike[:1], found[row : row + 1]).any():
            return "the other positions in the batch"
        elif self._differs(alike[:1], longer[:1]).any() or self._differs(alike[:1], alone).any():
            return "the number of positions in the batch"
        elif len(np.unique(rows[differs])) > FEW:
            return "the batch, or on what it was asked before"
        return ""


def asked(
    agent: str | Agent | Callable[[np.ndarray, np.ndarray], Any], variant: Variant, seen: tuple[int, int] = (0, 0)
) -> Any:
    """Return the agent as a game's `measure` sees it. `agent` is what `dice_envs.measure` takes, `seen` as for `Asked`.

    Raises:
        ValueError: no such agent, or it does not play the variant.
        TypeError: this is no agent.
    """
    if isinstance(agent, str | Agent) or is_stochastic(agent):
        player = resolve(agent, variant.game.name) if isinstance(agent, str) else agent
        check_plays(player, variant)
        in_place = promises_of(player).for_variant
        return Asked(in_place(variant) if in_place else player, name_of(agent), seen)
    if hasattr(agent, "predict") and hasattr(getattr(agent, "policy", None), "get_distribution"):
        return Asked(_Function(_of_model(agent)), type(agent).__name__, seen)
    if callable(agent):
        function = _Function(agent)
        return Asked(function, repr(function), seen)
    raise TypeError(
        f"an agent is a spec, an object with act or probabilities, a function, or a model such as MaskablePPO, not {agent!r}"
    )


def _of_model(model: Any) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Return the policy of a model of Stable-Baselines3 as a function. TypeError if it knows no masks of legal actions."""
    if "action_masks" not in inspect.signature(model.predict).parameters:
        raise TypeError(f"{type(model).__name__} takes no masks of legal actions; MaskablePPO of SB3-contrib does")

    def probabilities(observations: np.ndarray, masks: np.ndarray) -> Any:
        tensor, _ = model.policy.obs_to_tensor(observations)
        return model.policy.get_distribution(tensor, action_masks=masks).distribution.probs

    return probabilities


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
