"""Right answers: optimal play, equilibria and best responses; `measure`, which compares any agent with them; and
`action_values`, which tells what each choice at a position is worth.

A module here that is named after a game offers functions `measure` (see `GameMeasure`) and `action_values` (see
`GameActionValues`). The rest of it is the game's own: its solvers and detailed figures.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dice_envs.agent import (
    Agent,
    AgentError,
    Turn,
    Uniform,
    ask,
    ask_probabilities,
    check_plays,
    draw_actions,
    fresh_memory,
    name_of,
    resolve,
)
from dice_envs.core.game import OVER, Game, Variant, single_seat
from dice_envs.core.options import check_range, check_seed

__all__ = [
    "ActionValues",
    "Effort",
    "GameActionValues",
    "GameMeasure",
    "Measurement",
    "Measures",
    "action_values",
    "asked",
    "measure",
    "offered",
    "optima",
]

REPEATS = 10  # how often an agent with random answers is measured, each time with other random numbers
_T95 = 2.262157162740992  # the 97.5 % point of Student's distribution with REPEATS - 1 degrees of freedom
COMPARED = 64  # positions with a choice at which probabilities are asked for twice, to see whether they are random
STEADY = 8  # answers that agree row by row, before those that differ in another order of the rows are held against the agent
ROUNDING = 1e-5  # a network's float32 probabilities differ by less where it is asked in batches of other sizes
NOTHING = 1e-12  # a gap of random play below this is a rounding error
ANSWERS = 64  # how often an agent that states no probabilities is asked at each position, in each repeat
MOST_SAMPLE = 100_000_000
_FRESH = "measured as the agent plays when a match begins, with nothing to remember"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One quantity that says how good an agent is.

    Attributes:
        name: what is measured.
        value: the agent's.
        optimum: the best possible.
        gap: the distance from it, 0 or more.
        error: half-width of the 95 % interval of `value`; 0 where it is exact.
        unit: of `value`, `optimum`, `gap` and `error`.
        note: what a reader should know, such as the sample taken.
    """

    name: str
    value: float
    optimum: float
    gap: float
    error: float = 0.0
    unit: str = ""
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Measures:
    """What `measure` found.

    Attributes:
        game, options: what was played; options that differ from their defaults.
        agent: its spec or name.
        seed: fixes all that was drawn.
        score: 0 for uniformly random play, 1 for optimal play, by the first measurement; negative for worse than random
            play. None where random play is itself optimal.
        measures: the headline first.
        score_error: half-width of the score's 95 % interval, 0 where it is exact. None without a score, and where a
            sample was measured once only, which leaves the error of the random player's gap unknown.
    """

    game: str
    options: dict[str, Any]
    agent: str
    seed: int
    score: float | None
    measures: tuple[Measurement, ...]
    score_error: float | None = None

    def json(self) -> str:
        """The same as JSON."""
        return json.dumps(dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class Effort:
    """Settings of a game's `measure`.

    Attributes:
        seed: fixes whatever is drawn.
        sample: how many deals or games to look at where there are too many for all of them; None: the game's default.
        done: called with progress, as (amount done since the last call, amount in all).
    """

    seed: int = 0
    sample: int | None = None
    done: Callable[[int, int], Any] = lambda amount, total: None


class GameMeasure(Protocol):
    """The function `measure` of a game's module. It is found by its name and is not in `__all__`, so that
    `from dice_envs.exact.thirties import *` leaves `dice_envs.measure` what it is."""

    def __call__(self, variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
        """All measurements of the agent, the headline first.

        The agent has `probabilities` (`ask_probabilities` checks them) and draws random numbers only from its turn's
        streams.

        Raises:
            ValueError: there is no exact measure of this variant; the message says why.
        """
        ...


# --- agents -------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class _Function:
    """A function from (observations, action masks) to action probabilities, as an agent. Errors name the function."""

    function: Callable[[np.ndarray, np.ndarray], Any]

    observes_only = True

    def __repr__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def probabilities(self, turn: Turn) -> Any:
        chances = self.function(turn.observations, turn.legal)
        if hasattr(chances, "detach"):  # a PyTorch tensor, perhaps one that requires gradients
            chances = chances.detach().cpu()
        return chances

    def act(self, turn: Turn) -> np.ndarray:
        return draw_actions(turn.streams, ask_probabilities(self, turn))


class _Asked:
    """An agent as a game's `measure` sees it: it always states probabilities.

    For an agent that only acts they are the frequencies of its answers. Two answers are enough as long as they agree.

    Attributes:
        name: the agent's.
        is_random: whether an answer has depended on the agent's random stream. Then another run may give another result.
        memoryless: whether the agent declares that how a position came about makes no difference to it.
        observes_only: whether it declares that it reads observations and legal actions alone.
        looks_back: False if it declares that past rounds make no difference to it; None if it declares nothing.
    """

    def __init__(self, agent: Any, name: str = "") -> None:
        self.agent = agent
        self.name = name
        self.is_random = False
        self._states_probabilities = hasattr(agent, "probabilities")
        self.memoryless = self._states_probabilities and bool(getattr(agent, "memoryless", False))
        self.observes_only = bool(getattr(agent, "observes_only", False))
        self.looks_back = getattr(agent, "looks_back", None)
        self._compared = 0  # positions with a choice
        self._largest = 0  # rows of a batch that was compared

    def act(self, turn: Turn) -> np.ndarray:
        if hasattr(self.agent, "act"):
            if turn.memory is None:
                turn.memory = fresh_memory(self.agent, len(turn))
            return np.asarray(self.agent.act(turn))
        return draw_actions(turn.streams, self.probabilities(turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        return self._stated(turn) if self._states_probabilities else self._answered(turn)

    def _stated(self, turn: Turn) -> np.ndarray:
        chances = ask_probabilities(self.agent, turn)
        if self._compares(turn):

            def answer(rows: np.ndarray) -> np.ndarray:  # the streams have moved on, so random answers differ
                again = Turn(turn.variant, turn._true_states, turn._index[rows], turn.streams[rows].copy())
                return ask_probabilities(self.agent, again)

            self._compare(answer, chances)
        return chances

    def _answered(self, turn: Turn) -> np.ndarray:
        everywhere = np.arange(len(turn))
        states = turn._true_states[turn._index]

        def answer(rows: np.ndarray) -> np.ndarray:
            chosen = np.zeros((len(turn), turn.variant.facts.num_actions))
            streams = turn.streams[rows]
            chosen[everywhere, ask(self.agent, turn.variant, states[rows], everywhere, streams)] = 1
            turn.streams[rows] = streams
            return chosen

        first = answer(everywhere)
        answers = first + answer(everywhere)
        if self._compares(turn):
            self._compare(answer, first)
        if (answers == 1).any():
            self.is_random = True
            for _ in range(ANSWERS - 2):
                answers += answer(everywhere)
        return answers / answers.sum(axis=1, keepdims=True)

    def _compares(self, turn: Turn) -> bool:
        """Whether answers are to be compared at these positions: few with a choice have been, or the batch is large.

        An answer may depend on how many rows there are, so a batch twice as large as any that was compared is compared too.
        """
        if self.is_random or (self._compared >= COMPARED and len(turn) < 2 * self._largest):
            return False
        self._largest = max(self._largest, len(turn))
        self._compared += int((Turn(turn.variant, turn._true_states, turn._index, turn.streams).legal.sum(axis=1) > 1).sum())
        return True

    def _compare(self, answer: Callable[[np.ndarray], np.ndarray], first: np.ndarray) -> None:
        """See whether answers to the same positions differ from the first, which makes the agent a random one.

        Args:
            answer: rows in any order → the answers at these positions, (n, num_actions).
            first: the first answers, all rows in their order.

        Raises:
            AgentError: an answer depends on the row of its position in the batch, so it is no answer to the position.
        """
        everywhere = np.arange(len(first))

        def differs(rows: np.ndarray) -> bool:
            return bool((np.abs(answer(rows) - first[rows]) > ROUNDING).any())

        if differs(everywhere):
            self.is_random = True
        elif len(first) > 1 and differs(np.random.default_rng(0).permutation(len(first))):
            if not any(differs(everywhere) for _ in range(STEADY)):
                raise AgentError(
                    f"{self.name or name_of(self.agent)}: its answer at a position depends on the row that the position has in "
                    "the batch; it must be the same in every row"
                )
            self.is_random = True


# --- measuring ----------------------------------------------------------------------------------------------------


def measure(
    game: str | Game | Variant,
    agent: str | Agent | Callable[[np.ndarray, np.ndarray], Any],
    *,
    seed: int = 0,
    sample: int | None = None,
    done: Callable[[int, int], Any] = lambda amount, total: None,
    apply: Callable[[Callable[[int], Any], Sequence[int]], Iterable[Any]] = map,
    **options: Any,
) -> Measures:
    """How far an agent is from optimal play, exactly where the game allows it.

    Args:
        game: a Variant, or a name or Game, which then stands for the variant that `gymnasium.make` gives (The Shakes'
            physician, one player's turn of Thirties).
        agent: a spec such as "numbers:bluff=0.25"; an Agent; or a function from observations (n, size) float32 and
            action masks (n, actions) int8 to action probabilities (n, actions): an array or a PyTorch tensor.
        seed: fixes all that is drawn.
        sample: how many deals or games to look at where there are too many for all of them; None: the game's default.
        done: called with progress, as (amount done since the last call, amount in all).
        apply: as `map`, calls a function with each of several seeds; an executor's `map` shares repeats out to processes.
        options: the game's options.

    An agent without probabilities is asked for its actions: twice, and many more times if the two answers differ. If its
    answers are random, whether actions or probabilities, the measurement is repeated, and `error` is the 95 % half-width
    of the mean over the repeats. An agent that remembers past games is measured as it plays when a match begins.

    Raises:
        ValueError: no exact measure is known for the game or the variant, the agent does not play it, or wrong arguments.
        AgentError: the agent's probabilities or actions are invalid.
    """
    variant = single_seat(game, **options)
    check_seed(seed)
    if sample is not None:
        check_range("sample", sample, 1, MOST_SAMPLE)
    measure_game = _measure_of(variant.game)
    player = asked(agent, variant)

    def told(amount: int, total: int) -> None:
        done(amount, total * (REPEATS if player.is_random else 1))  # random answers show at the first positions, as a rule

    runs = [_run(measure_game, variant, player, Effort(seed, sample, told))]
    if player.is_random:
        seeds = np.random.SeedSequence(seed).generate_state(REPEATS - 1).tolist()
        if apply is map:
            runs += [_run(measure_game, variant, player, Effort(each, sample, told)) for each in seeds]
        else:
            runs += apply(functools.partial(_repeat, variant, agent, sample), seeds)
    score, score_error = _score([found[0] for found, _ in runs], [baseline for _, baseline in runs])
    measures = tuple(_mean(list(repeated)) for repeated in zip(*(found for found, _ in runs), strict=True))
    if fresh_memory(player.agent, 1) is not None:
        measures = tuple(dataclasses.replace(each, note="; ".join(filter(None, (each.note, _FRESH)))) for each in measures)
    return Measures(variant.game.name, variant.changed_options(), player.name, seed, score, measures, score_error)


def optima(game: str | Game | Variant, **options: Any) -> dict[str, float]:
    """What optimal play reaches of each quantity that `measure` gives, known without an agent: name → value.

    What the game rewards comes first. `game` and `options` are those of `measure`. A game offers this by a function
    `optima(variant)` in its module here.

    Raises:
        ValueError: that is not known of the game or of the variant.
    """
    variant = single_seat(game, **options)
    found: Callable[[Variant], dict[str, float]] | None = offered(variant.game, "optima")
    if found is None:
        raise ValueError(f"what optimal play of {variant.game.name} reaches is not known without an agent")
    return found(variant)


def _run(measure_game: GameMeasure, variant: Variant, player: _Asked, effort: Effort) -> tuple[list[Measurement], float]:
    """One measurement, and the headline's gap for uniformly random play with the same random numbers."""
    return measure_game(variant, player, effort), _random_gap(variant, effort.seed, effort.sample)


def _repeat(variant: Variant, agent: Any, sample: int | None, seed: int) -> tuple[list[Measurement], float]:
    """The same in another process."""
    return _run(_measure_of(variant.game), variant, asked(agent, variant), Effort(seed, sample))


@functools.lru_cache(maxsize=64)
def _random_gap(variant: Variant, seed: int, sample: int | None) -> float:
    return _measure_of(variant.game)(variant, _Asked(Uniform()), Effort(seed, sample))[0].gap


def _score(headlines: list[Measurement], random_gaps: list[float]) -> tuple[float | None, float | None]:
    """The score from the headline of each run and the gap of random play in it, and its error: see `Measures`."""
    gaps, baselines = np.array([each.gap for each in headlines]), np.array(random_gaps)
    if baselines.mean() <= NOTHING:
        return None, None
    share = gaps.mean() / baselines.mean()
    within = sum(each.error for each in headlines) / len(headlines)
    if len(headlines) == 1:
        return float(1 - share), None if within else 0.0
    # A ratio of two means, whose error is that of what the runs' gaps differ by from this share of random play's.
    between = _T95 * (gaps - share * baselines).std(ddof=1) / math.sqrt(len(headlines))
    return float(1 - share), float((within + between) / baselines.mean())


def _mean(repeated: list[Measurement]) -> Measurement:
    """One measurement from its repeats."""
    first = repeated[0]
    if len(repeated) == 1:
        return first
    values = np.array([(each.value, each.optimum, each.gap) for each in repeated])
    value, optimum, gap = values.mean(axis=0).tolist()
    within = sum(each.error for each in repeated) / len(repeated)
    error = float(within + _T95 * values[:, 0].std(ddof=1) / math.sqrt(len(repeated)))
    note = "; ".join(filter(None, (first.note, f"mean of {len(repeated)} runs, since the agent's answers are random")))
    return dataclasses.replace(first, value=value, optimum=optimum, gap=gap, error=error, note=note)


def asked(agent: str | Agent | Callable[[np.ndarray, np.ndarray], Any], variant: Variant) -> Any:
    """An agent as a game's `measure` sees it when it plays the variant, from what `measure` takes.

    Raises:
        ValueError: no such agent, or it does not play the variant.
        TypeError: this is no agent.
    """
    if isinstance(agent, str) or hasattr(agent, "act") or hasattr(agent, "probabilities"):
        name = agent if isinstance(agent, str) else name_of(agent)
        player = resolve(agent) if isinstance(agent, str) else agent
        check_plays(player, variant)
        return _Asked(player.for_variant(variant) if hasattr(player, "for_variant") else player, name)
    if callable(agent):
        function = _Function(agent)
        return _Asked(function, repr(function))
    raise TypeError(f"an agent is a spec, an object with act or probabilities, or a function, not {agent!r}")


def _measure_of(game: Game) -> GameMeasure:
    found: GameMeasure | None = offered(game, "measure")
    if found is None:
        raise ValueError(f"{game.name} cannot be measured exactly: no optimal play, equilibrium or best response is known")
    return found


def offered(game: Game, function: str) -> Any:
    """A function of the module here that is named after the game; None if there is none."""
    name = f"{__name__}.{game.name}"
    module = importlib.import_module(name) if importlib.util.find_spec(name) else None
    return getattr(module, function, None)


# --- what a choice is worth -----------------------------------------------------------------------------------------


class ActionValues(NamedTuple):
    """What each legal action of the seat to move is worth, as far as the seat can know.

    Attributes:
        values: (num_actions,) float64, NaN for illegal actions. How they come about is told by `note`.
        unit: of the values. One that begins with % stands for a share: 0.5 of "% of games won" are 50 %.
        note: what the values assume, for people.
        mix: (num_actions,) float64: how likely the solution takes each action; None if there is no solution.
        errors: (num_actions,) float64: half-widths of the 95 % intervals of `values`; None where these are exact.
        reached: whether the solution would have let it come to this position. If not, it says nothing of what the others
            hold, and `values` take that for random.
    """

    values: np.ndarray
    unit: str
    note: str
    mix: np.ndarray | None = None
    errors: np.ndarray | None = None
    reached: bool = True

    @property
    def wins(self) -> np.ndarray:
        """`values`, where these are chances to win."""
        return self.values


class GameActionValues(Protocol):
    """The function `action_values` of a game's module."""

    def __call__(self, variant: Variant, state: Any, /, in_passing: bool) -> ActionValues:
        """What each action of the seat to move is worth if all that follows is played optimally. Nothing hidden is read.

        With `in_passing` it is for a person who waits: what would take more than a minute or half a GiB is refused, before
        anything is solved. Games that never take as long need not look at it.

        Raises:
            ValueError: no optimal play of this variant is known, or it takes too much to compute; the message says why.
        """
        ...


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """What each action of the seat to move is worth if all that follows is played optimally.

    Computed from what the seat knows: what is hidden from it makes no difference. The first call may have to solve the game,
    which takes about a minute for Liar's Dice with five dice each, and minutes and some GiB for the largest games.

    Args:
        variant: the game.
        state: one record, in which a seat is to move.
        in_passing: refuse what would take more than about a minute or half a GiB, as hints, reviews and the page do.

    Raises:
        ValueError: the game is over, no optimal play of the variant is known, or it takes too much to compute; then the
            message says how large the game is.
    """
    if state["seat"] == OVER:
        raise ValueError("the game is over: nobody has an action")
    found: GameActionValues | None = offered(variant.game, "action_values")
    if found is None:
        raise ValueError(f"no optimal play of {variant.game.name} is known")
    return found(variant, state, in_passing=in_passing)
