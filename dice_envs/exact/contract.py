"""The functions that a game may offer to say what is right in it, and their results."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from dice_envs.core.game import Game, Variant, load, names, part_of

REPEATS = 10  # how often an agent with random answers is measured, each time with other random numbers
MOST_SAMPLE = 100_000_000
LEAST_PRECISION = 1e-12  # of a solution, in returns
EXPLOITABILITY = "exploitability"  # name of a measurement: what best responses win, mean of both players: NashConv / 2
NASH_CONV = "NashConv"  # name of a measurement: the sum of what each player could gain by leaving its policy
# Name of a measurement: how often a best response wins from the agent. Training compares its own win rates with it.
BEST_RESPONSE_WINS = "best response wins"
# Name of a measurement: by how much the share of wins of one player grows if it leaves the strategy that all others play.
DEVIATION_GAIN = "deviation gain"


# --- units ----------------------------------------------------------------------------------------------------------


def plus_minus(value: float, half: float | None, digits: int = 2, percent: bool = False, sign: bool = False) -> str:
    """Return a figure and the half-width of its 95 % interval, `12.34 ± 0.56`; without one the figure alone."""
    factor = 100 if percent else 1
    text = f"{factor * value:{'+' if sign else ''}z.{digits}f}"  # z: no -0.00
    return text if half is None else f"{text} ± {factor * half:.{digits}f}"


class Unit(str):
    """A unit of measurements and values. Its text is its name, what is counted: "patients saved".

    Attributes:
        is_share: whether values are shares of what is counted, 0 to 1, which people read in percent.
        meaning: what a share means for one who chooses, such as "chance to win"; else the name.
        of_100: what of a hundred is counted, if a share says how many are won: "games".
    """

    is_share: bool
    meaning: str
    of_100: str

    def __new__(cls, name: str, is_share: bool = False, meaning: str = "", of_100: str = "") -> Self:
        unit = super().__new__(cls, name)
        unit.is_share, unit.meaning, unit.of_100 = is_share, meaning or name, of_100
        return unit

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.is_share, self.meaning, self.of_100

    @property
    def heading(self) -> str:
        """The unit of figures: `% of games won` for shares."""
        return f"% of {self}" if self.is_share else str(self)

    def figure(self, value: float, error: float | None = None, digits: int | None = None, sign: bool = False) -> str:
        """Return a value and the half-width of its interval as `plus_minus` writes them, of shares in percent; with two digits,
        or three, unless others are asked for."""
        return plus_minus(value, error, digits if digits is not None else 3 - self.is_share, self.is_share, sign)

    def text(self, figure: str) -> str:
        """Return a figure with its unit: `61.3 %`, `0.124 return`."""
        return f"{figure} {'%' if self.is_share else self}"


RETURN = Unit("return")  # a sum of rewards, where a win is +1 and a loss −1
GAMES_WON = Unit("games won", True, "chance to win", "games")  # where a player wins or loses a game; half of one is a tie


# --- measures -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One quantity that says how good an agent is.

    Attributes:
        name: of the quantity.
        value: the agent's.
        optimum: the best possible.
        gap: the distance from it, 0 or more.
        error: half-width of the 95 % interval of `value`; 0 if it is exact.
        unit: of `value`, `optimum`, `gap` and `error`.
        note: what a reader should know, such as the sample taken.
        span: sensitivity: if each answer of the agent is replaced with probability p, `value` changes by at most p · span. It
            is the answers in a game times the range of `value`. Needed for agents that only act. Not part of `Measures.json`.
        is_bound: whether `value` and `gap` are what they are at most. Not part of `Measures.json`, where the name says it.
    """

    name: str
    value: float
    optimum: float
    gap: float
    error: float = 0.0
    unit: str = ""
    note: str = ""
    span: float | None = dataclasses.field(default=None, repr=False, compare=False)
    is_bound: bool = dataclasses.field(default=False, repr=False, compare=False)

    def __str__(self) -> str:
        """Return the measurement in one line: `exploitability 0.5112 return, exact; optimal play 0`."""
        error = f" ± {self.error:.2g}" if self.error else ""
        unit = f" {self.unit}" if self.unit else ""
        value = 0.0 if abs(self.value) < 1e-12 else self.value  # which rounding has left
        return f"{self.name} {value:.4g}{error}{unit}{'' if self.error else ', exact'}; optimal play {self.optimum:.4g}"


@dataclasses.dataclass(frozen=True)
class Measures:
    """The result of `measure`.

    Attributes:
        game, options: what was played; options that differ from their defaults.
        agent: its spec or name.
        seed: fixes all that was drawn.
        score: 0 for uniformly random play, 1 for optimal play, by the first measurement; negative for worse than random
            play. None where random play is itself optimal, where only a bound of the gap is known, for a profile, and where
            agents at the other seats were named.
        measures: the headline first.
        score_error: half-width of the score's 95 % interval, 0 if it is exact. None without a score, and after a single
            measurement of a sample, which leaves the error of the random player's gap unknown.
    """

    game: str
    options: dict[str, Any]
    agent: str
    seed: int
    score: float | None
    measures: tuple[Measurement, ...]
    score_error: float | None = None

    def __str__(self) -> str:
        """Return what was measured, and a line for each measurement."""
        options = "".join(f" {name}={value}" for name, value in self.options.items())
        score = "" if self.score is None else f", score {self.score:.4f} (0: uniformly random play, 1: optimal)"
        return "\n".join([f"{self.agent} in {self.game}{options}{score}", *(f"  {each}" for each in self.measures)])

    def json(self) -> str:
        """Return the same as JSON."""
        found = dataclasses.asdict(self)
        for each in found["measures"]:
            del each["span"], each["is_bound"]
        return json.dumps(found)


@dataclasses.dataclass(frozen=True)
class Effort:
    """Settings of a game's `measure`.

    Attributes:
        seed: fixes all that is drawn.
        sample: number of deals or games to look at where there are too many for all of them; None: the game's default.
    """

    seed: int = 0
    sample: int | None = None


class ProfileValues(NamedTuple):
    """What agents win, one for each seat, and what a best response in each one's place wins from the others.

    Attributes:
        plays, responds: (deals, seats) float64, of each deal that was looked at; all are equally likely.
        unit: of both.
        most: greatest possible difference, if the deals are a random sample; None: they are all, and the means are exact.
        note: what a reader should know.
    """

    plays: np.ndarray
    responds: np.ndarray
    unit: Unit
    most: float | None = None
    note: str = ""


# --- values of choices --------------------------------------------------------------------------------------------


class ActionValues(NamedTuple):
    """Values of the legal actions of the seat to move, from what that seat may know.

    Attributes:
        values: (num_actions,) float64, NaN for illegal actions. `note` says what they are.
        unit: of the values.
        note: what the values assume, for people.
        mix: (num_actions,) float64, the solution's probability of each action; None if there is no solution.
        errors: (num_actions,) float64, half-widths of the 95 % intervals of `values`; None if these are exact.
        reached: whether the solution's own play can reach the position. If not, it implies nothing about the others' dice,
            and `values` take these for random.
        chances: (num_actions,) float64, the probability that what an action claims is true, such as that a bid holds, given
            what the seat may infer; NaN where that is not known. None: actions claim nothing.
        sample: of estimates, what was drawn for them, for people.
    """

    values: np.ndarray
    unit: Unit
    note: str
    mix: np.ndarray | None = None
    errors: np.ndarray | None = None
    reached: bool = True
    chances: np.ndarray | None = None
    sample: str = ""

    @property
    def wins(self) -> np.ndarray:
        """`values`, if these are chances to win."""
        return self.values

    @property
    def best_first(self) -> list[int]:
        """The actions that have values, the best first; those that people read as equal as the solution likes them."""
        known = np.flatnonzero(~np.isnan(self.values))
        often = np.zeros(len(known)) if self.mix is None else self.mix[known]
        order: list[int] = known[np.lexsort((-often, -self.values[known].round(3)))].tolist()
        return order


@dataclasses.dataclass(frozen=True)
class ResponseValues:
    """Values of a player's choices against a fixed opponent if the player's best response follows, for many states at once.

    All values come from one table: an action's value is the mean of the best values at the positions that may follow, up to
    rounding. So the return of a game is `start`, less what the player's own choices gave away, plus luck of mean 0.

    Attributes:
        unit: of the values, which are sums of rewards: "return" where a win is +1 and a loss −1, else "patients saved", ….
        note: what the values assume, for people.
        start: a seat → the expected return of a best response there, before anything is dealt.
        action_values: (n,) states in which a seat of the player is to move → the expected rewards still to come after each
            action, if a best response follows: (n, num_actions) float64, NaN for illegal actions. Only what the seat to move
            may know is read. All states are valued in one compiled call.
        whole_team: whether the player has all seats, as in games of one seat and in cooperative games; else it has one seat,
            and the opponent has the other.
        most_lost: bound on what the player's choices can give away in one game, all together; None: not known.
    """

    unit: Unit
    note: str
    start: Callable[[int], float]
    action_values: Callable[[np.ndarray], np.ndarray]
    whole_team: bool = False
    most_lost: float | None = None


# --- solutions ----------------------------------------------------------------------------------------------------


class Equilibrium(Protocol):
    """Optimal play of both players, from which a network can learn.

    Attributes:
        value: the expected return of the first player, or its chance to win.
        exploitability: what best responses win above the value.
        unseen: names of the observation's blocks on which `probabilities` does not depend.
        visitor: spec of an agent whose games lead to positions that the network should know, too.
    """

    value: float
    exploitability: float
    unseen: tuple[str, ...]
    visitor: str

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return the probabilities at states in which a seat is to move, (n, num_actions) float64."""
        ...


# --- results to print -----------------------------------------------------------------------------------------------


class Whole(str):
    """A line that is never wrapped, such as one with the name of a file."""


class SolvedTable(NamedTuple):
    """A table of texts. The columns of these numbers hold words and are aligned left, the others right."""

    title: str
    headings: Sequence[str]  # empty: none
    rows: Sequence[Sequence[str]]
    words: Collection[int] = (0,)


class SolvedPlot(NamedTuple):
    """A plot: the name of its file, its caption, a function that draws it on axes of matplotlib, its size in inches."""

    name: str
    caption: str
    draw: Callable[[Any], Any]
    size: tuple[float, float] = (8, 5)


# A line, a table, or a line in parts, where a pair is a text with a style of rich, such as "bold".
Shown: TypeAlias = str | SolvedTable | tuple[str | tuple[str, str], ...]


class Solved(NamedTuple):
    """The result of `GameExact.solve_game`."""

    shown: Sequence[Shown]  # in the order in which it is printed
    data: Any  # what `--json` writes
    plot: SolvedPlot | None = None


# --- a game's answers ---------------------------------------------------------------------------------------------


class GameExact:
    """The functions of the module `exact` in a game's folder. For each one that it lacks, the method here is used.

    Args:
        game: the game.
    """

    def __init__(self, game: Game) -> None:
        module = part_of(game.name, "exact")
        found = vars(module) if module else {}
        vars(self).update({each: found[each] for each in vars(GameExact) if each in found and not each.startswith("_")})

    def measure(self, variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
        """Return all measurements of the agent, the headline first.

        The headline must be one whose gap is 0 for optimal play: the score compares it with that of random play, which is
        measured by the same function.

        Args:
            variant: the game.
            agent: has `probabilities` (ask by `dice_envs.agent.ask_probabilities`, which checks them) and draws random
                numbers only from its turn's streams. `agent.is_random` says whether its answers are random; if this shows
                while it is asked, the function is called again.
            effort: seed and sample. Progress is told by `dice_envs.core.work.advance`.

        Raises:
            ValueError: there is no exact measure of this variant; the message says why.
        """
        raise NotImplementedError

    def measure_table(self, variant: Variant, agents: Sequence[Any], effort: Effort) -> list[Measurement]:
        """Return measurements of agents at one table, one for each seat, those of the first agent first; see `measure`.

        Raises:
            ValueError: there is no exact measure of this variant or these agents; the message says why.
        """
        raise NotImplementedError

    def measure_profile(self, variant: Variant, agents: Sequence[Any], effort: Effort) -> ProfileValues:
        """Return what the agents of a profile win, one for each seat, and what a best response in each one's place does.

        Raises:
            ValueError: there is no exact measure of this variant or these agents; the message says why.
        """
        raise NotImplementedError

    def is_one_round(self, variant: Variant, /) -> bool:
        """Return whether `measure` follows a mixture, whose agents are asked one by one, since a game is one round."""
        return False

    def winning_shares(self, variant: Variant, agents: Sequence[Any], /) -> list[float]:
        """Return each agent's share of wins at a table, without sampling.

        Args:
            variant: the game.
            agents: one for each seat, as `dice_envs.measure` takes them; their answers must not be random. They sit in this
                order, and each as often in every seat.

        Raises:
            ValueError: there is no exact result for the game, its options or the agents; the message says why.
            AgentError: an agent's probabilities or actions are against the rules.
        """
        having = ", ".join(name for name in names() if offered(load(name), "winning_shares"))
        raise ValueError(f"no exact result between agents is known in {variant.game.name}; games that have one: {having}")

    def optima(self, variant: Variant, /) -> dict[str, float]:
        """Return name → value of each quantity that `measure` gives under optimal play; what the game rewards comes first.

        Raises:
            ValueError: not known of this variant; the message says why.
        """
        raise ValueError(f"what optimal play of {variant.game.name} reaches is not known without an agent")

    def action_values(self, variant: Variant, state: Any, /) -> ActionValues:
        """Return the value of each action of the seat to move with optimal play afterwards. Nothing hidden is read.

        Where it may take more than a second, `dice_envs.core.work.needs` is told how much, before anything is solved.

        Raises:
            ValueError: no optimal play of this variant is known, or it takes too much to compute; the message says why.
        """
        raise ValueError(f"no optimal play of {variant.game.name} is known")

    def response_values(self, variant: Variant, opponent: Any, /) -> ResponseValues:
        """Return the values of choices against an opponent, which is asked as the agent of `measure`.

        The opponent is None in games of one seat, and in cooperative ones, where the player has all seats.

        Raises:
            ValueError: no best response to this opponent, or in this variant, is known; the message says why.
        """
        raise ValueError(f"no best response is known in {variant.game.name}")

    def equilibrium(self, variant: Variant, precision: float, say: Callable[[str], Any], /) -> Equilibrium:
        """Return optimal play between two players, with lines of progress; `distill` trains a network to play it.

        Raises:
            ValueError: it cannot be found for this variant, or networks cannot be measured there; the message says why.
        """
        raise NotImplementedError

    def solve_game(self, variant: Variant, /, **given: Any) -> Solved:
        """Return exact results for the command `solve GAME`, whose help is this function's docstring.

        Each parameter of the form `name: Annotated[type, "help"] = default` becomes an option of the command. Others are
        given by the command, if they are there:

        - seed: a number, with the option --seed.
        - report: whether a plot is wanted, with the option --report.
        - say: prints a line at once.
        - progress: called with a name of the work and its amount, returns a context in which `dice_envs.core.work.advance`
          moves a progress bar.
        - workers: computes parts, with --ray on a cluster, and with --resume takes those of a stopped run; see
          `dice_envs.experiments.jobs.Workers`.
        - cluster: None, or with --ray a function from the cores of a part to a context of workers on that cluster.

        Raises:
            ValueError: there is nothing exact for this variant or these options; the message says why.
        """
        raise NotImplementedError

    def situations(self, variant: Variant, states: np.ndarray, actions: np.ndarray, /) -> dict[str, np.ndarray]:
        """Return the headings by which an evaluation sorts decisions: heading → label of each decision, in words.

        Decisions are `actions`, (n,) int64, of the seats to move in `states`.
        """
        return {}

    def traits(self, variant: Variant, states: np.ndarray, /) -> dict[str, np.ndarray]:
        """Return what may be said of actions, in words → of which it is true, (n, num_actions) bool, for (n,) states."""
        return {}

    def odds(self, variant: Variant, state: Any, /) -> ActionValues | None:
        """Return chances that inform the choice of each legal action, if there are any. Nothing hidden is read."""
        return None


def offered(game: Game, function: str) -> Any:
    """Return a function of a game's module, as `GameExact` names it; None if the module lacks it."""
    return vars(GameExact(game)).get(function)
