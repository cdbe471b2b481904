"""The game of 30s solved: any strategy's score distribution, the best strategy for a goal, the second stage, in integers.

A throw of k dice has faces**k equally likely cases, and each later throw has fewer dice. So with k dice on the table
every probability is a whole multiple of faces ** -(1 + 2 + ... + k), and nothing is rounded before it is printed.
Python's integers are unbounded: eight dice of eight faces (8**36 cases) are as exact as one. Agents may choose at
random, so they are evaluated in float64 (`policy_of`, `score_chances`, `measure`). `figures` has the paper's figures.

Source: M. Veeningen, "The game of 30s: an analysis" (2008), sections 2, 3 and 6.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dice_envs.agent import Agent, Turn, ask, ask_probabilities
from dice_envs.core.batch import dealt
from dice_envs.core.dice import faces_of, new_streams
from dice_envs.core.game import Variant
from dice_envs.core.options import check_choice, is_whole, shown
from dice_envs.core.work import advance
from dice_envs.exact.contract import ActionValues, Effort, Measurement, ResponseValues, Unit
from dice_envs.games.thirties import GAME, GOALS, MAX_FACES, Options

ROWS_AT_ONCE = 16_384  # positions that an agent is asked about in one call

Dice = tuple[int, ...]  # face values in rising order


class Rules(NamedTuple):
    """The options on which the analysis depends."""

    num_dice: int = 6
    num_faces: int = 6
    target: int = 30

    @classmethod
    def of(cls, options: Options) -> Rules:
        """Return the rules that the game's options ask for."""
        return cls(options.num_dice, options.num_faces, options.target)

    @property
    def most(self) -> int:
        """The highest score."""
        return self.num_dice * self.num_faces

    def cases(self, num_dice: int) -> int:
        """Return the denominator of probabilities with this many dice on the table: the number of equally likely cases."""
        return self.num_faces ** (num_dice * (num_dice + 1) // 2)


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A rule that says how many of the lowest dice to throw again.

    Attributes:
        name: as tables show it.
        choose: the rule; it returns 0 … len(throw) - 1. A throw is given as face values in rising order.
        sees: the arguments of `choose`. "throw": choose(throw), a simple strategy. "total": choose(throw, pips aside).
            "aside": choose(throw, dice aside in rising order). The last two are full strategies.
    """

    name: str
    choose: Callable[..., int]
    sees: Literal["throw", "total", "aside"] = "throw"

    def __post_init__(self) -> None:
        check_choice("sees", self.sees, ("throw", "total", "aside"))

    @property
    def simple(self) -> bool:
        """Whether the choice depends on the throw alone."""
        return self.sees == "throw"

    def __call__(self, throw: Dice, aside: Dice = ()) -> int:
        """Return the choice. ValueError if it is illegal."""
        return self.given(throw, self.key(aside))

    def key(self, aside: Dice) -> Any:
        """Return the part of the dice aside on which choices depend: the dice, or their sum."""
        return tuple(aside) if self.sees == "aside" else sum(aside)

    def given(self, throw: Dice, key: Any) -> int:
        """Return the choice for a throw and a key as `key` makes it. ValueError if it is illegal."""
        chosen = self.choose(throw) if self.sees == "throw" else self.choose(throw, key)
        if not is_whole(chosen) or not 0 <= chosen < len(throw):
            dice = " ".join(map(str, throw))
            raise ValueError(f"{self.name} must throw 0 to {len(throw) - 1} dice of {dice} again, not {shown(chosen)}")
        return int(chosen)


@functools.cache
def throws(num_dice: int, num_faces: int) -> tuple[tuple[Dice, int], ...]:
    """List every throw in rising order of its dice, each with its number among the faces**dice cases."""
    found = itertools.combinations_with_replacement(range(1, num_faces + 1), num_dice)
    cases = math.factorial(num_dice)
    return tuple((throw, cases // math.prod(map(math.factorial, Counter(throw).values()))) for throw in found)


def asides(rules: Rules) -> Iterator[Dice]:
    """Yield all sets of dice that can lie aside before a throw, fewest dice first."""
    for aside in range(rules.num_dice):
        yield from itertools.combinations_with_replacement(range(1, rules.num_faces + 1), aside)


def check_alone(variant: Variant, wanted: str) -> None:
    """Raise ValueError for the table game, naming what is wanted."""
    players = variant.options.num_players
    if players != 1:
        raise ValueError(f"num_players must be 1 for {wanted}, not {players}: optimal play of the table game is unknown")


# --- the second stage -------------------------------------------------------------------------------------------------


def second_stage(rules: Rules) -> tuple[Fraction, ...]:
    """Return the chances that 0, 1, … num_dice dice are put aside in one round of the second stage (section 2).

    A round ends when no new die shows the face, or when all dice are aside; after all dice a new round starts.
    """
    hit = Fraction(1, rules.num_faces)

    @functools.cache
    def chance(dice: int, aside: int) -> Fraction:
        if dice == 0:
            return Fraction(1)
        if aside == 0:
            return (1 - hit) ** dice
        return sum(
            (
                math.comb(dice, new) * hit**new * (1 - hit) ** (dice - new) * chance(dice - new, aside - new)
                for new in range(1, aside + 1)
            ),
            Fraction(0),
        )

    return tuple(chance(rules.num_dice, aside) for aside in range(rules.num_dice + 1))


def expected_given(rules: Rules) -> tuple[Fraction, ...] | None:
    """Return the second stage's expected points for x = 0, 1, … most - target (0 for x = 0), without a bound on restarts.

    With points P so far and face f the expectation is A P + B(f). Let b be the chance that all dice come aside in a
    round, and m the expected number of dice aside, counted as 0 where all are. Then A = (1 - b) / (1 - 2b) and
    B(f) = m f + b (2 dice f A + B(f + 1)). For the highest face, B(f) takes the place of B(f + 1).

    Returns:
        None where it is infinite: with two faces half of all rounds double the points.
    """
    chances = second_stage(rules)
    again = chances[-1]
    if rules.most <= rules.target:
        return (Fraction(0),)
    if 2 * again >= 1:
        return None
    mean = sum((count * chance for count, chance in enumerate(chances[:-1])), Fraction(0))
    of_points = (1 - again) / (1 - 2 * again)
    faces = rules.num_faces
    of_face = [Fraction(0)] * (faces + 1)
    of_face[faces] = (mean * faces + again * 2 * rules.num_dice * faces * of_points) / (1 - again)
    for face in range(faces - 1, 0, -1):
        of_face[face] = mean * face + again * (2 * rules.num_dice * face * of_points + of_face[face + 1])
    excesses = range(1, rules.most - rules.target + 1)
    return (Fraction(0), *(of_points * x + of_face[min(x, faces)] for x in excesses))


# --- goals --------------------------------------------------------------------------------------------------------------


Goal: TypeAlias = str | Callable[[int], Any]  # one of GOALS, or what a score is worth, a finite number


def worths(rules: Rules, goal: Goal) -> list[Fraction]:
    """Return the worth of each score 0, 1, … most for a goal: the environment's expected reward, or the function's value.

    Raises:
        ValueError: an unknown goal, "optimal" where the second stage's expected points are infinite, or a function that
            returns anything but finite numbers.
    """
    scores = range(rules.most + 1)
    if callable(goal):
        return [_worth_of(goal, score) for score in scores]
    check_choice("goal", goal, GOALS)
    if goal == "maximize":
        return [Fraction(score) for score in scores]
    if goal == "minimize_loss":
        return [Fraction(min(0, score - rules.target)) for score in scores]
    if goal == "thirty_or_over":
        return [Fraction(score >= rules.target) for score in scores]
    given = expected_given(rules)
    if given is None:
        raise ValueError(
            f"goal must not be 'optimal' with num_faces={rules.num_faces}: the second stage's expected points are infinite"
        )
    return [given[score - rules.target] if score > rules.target else Fraction(score - rules.target) for score in scores]


def _worth_of(goal: Callable[[int], Any], score: int) -> Fraction:
    """Return the function's value of a score. ValueError if it is no finite number."""
    value = goal(score)
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"goal {name_of_goal(goal)} must give a finite number for every score, not {shown(value)}") from None


def name_of_goal(goal: Goal) -> str:
    """Return the goal's name, or that of the function."""
    return goal if isinstance(goal, str) else str(getattr(goal, "__name__", "custom"))


@functools.lru_cache(maxsize=64)
def _solved(rules: Rules, goal: Goal) -> tuple[list[list[Fraction]], list[dict[int, list[int]]]]:
    """Return the values before a throw, by dice on the table and pips aside; and the choices, by these and the throw."""
    worth = worths(rules, goal)
    unit = math.lcm(*(value.denominator for value in worth))
    # One integer holds value and expected score, so comparing it compares values first. Both are sums over cases, so the
    # integer can be summed over cases, too: `value * above + score`, and `above` exceeds every score.
    above = (rules.most + 1) * rules.cases(rules.num_dice)
    ends = [int(value * unit) * above + score for score, value in enumerate(worth)]
    values = [np.array(ends, object)]
    choices: list[dict[int, list[int]]] = [{}]
    for dice in range(1, rules.num_dice + 1):
        possible = throws(dice, rules.num_faces)
        ways = np.array([count for _, count in possible], object)
        shown = np.array([throw for throw, _ in possible])
        kept = shown[:, ::-1].cumsum(axis=1)[:, ::-1]  # (throws, dice): pips kept, by number thrown again
        fewest = rules.num_dice - dice
        totals = np.arange(fewest, fewest * rules.num_faces + 1)
        options = np.empty((len(totals), len(possible), dice), object)
        for again in range(dice):
            scale = rules.cases(dice - 1) // rules.cases(again)
            options[:, :, again] = (values[again] * scale)[totals[:, None] + kept[:, again]]
        chosen = options.argmax(axis=2)
        best = np.take_along_axis(options, chosen[:, :, None], axis=2)[:, :, 0]
        value = np.zeros(rules.most + 1, object)
        value[totals] = best.dot(ways)
        values.append(value)
        choices.append(dict(zip(totals.tolist(), chosen.tolist(), strict=True)))
    units = [rules.cases(dice) * unit for dice in range(rules.num_dice + 1)]
    return [[Fraction(each // above, parts) for each in value] for value, parts in zip(values, units, strict=True)], choices


@functools.lru_cache(maxsize=64)
def solve(rules: Rules, goal: Goal) -> tuple[Strategy, Fraction]:
    """Return the best strategy for a goal, and its value: the expected reward of the environment with that goal.

    A choice depends on the dice aside through their sum only (for "maximize" not at all). Of choices with equal values
    the one with the higher expected score is taken (section 3.1), then the one that throws fewer dice again.

    Raises:
        ValueError: see `worths`.
    """
    values, choices = _solved(rules, goal)
    number = {throw: i for dice in range(1, rules.num_dice + 1) for i, (throw, _) in enumerate(throws(dice, rules.num_faces))}

    def choose(throw: Dice, total: int | None = None) -> int:
        return choices[len(throw)][rules.num_dice - len(throw) if total is None else total][number[throw]]

    strategy = Strategy(name_of_goal(goal), choose, "throw" if goal == "maximize" else "total")
    return strategy, values[-1][0]


@functools.lru_cache(maxsize=64)
def values_before(rules: Rules, goal: str) -> np.ndarray:
    """Return the values before a throw of 0, 1, … num_dice dice (rows), with 0, 1, … most pips aside (columns), float64.

    The best choices for the goal follow. Each value is the exact one, rounded once. Pips that cannot lie aside have 0.

    Raises:
        ValueError: see `worths`.
    """
    out = np.array(_solved(rules, goal)[0], np.float64)
    out.flags.writeable = False
    return out


@functools.lru_cache(maxsize=64)
def most_lost(rules: Rules, goal: str) -> float:
    """Return the most that choices can give away for a goal in one turn, with the worst luck: a recursion."""
    before = values_before(rules, goal)
    worst = np.zeros_like(before)
    for dice in range(1, rules.num_dice + 1):
        shown = _shown(dice, rules.num_faces)
        again, fewest = np.arange(dice), rules.num_dice - dice
        for aside in range(fewest, fewest * rules.num_faces + 1):
            kept = aside + shown[:, ::-1].cumsum(axis=1)[:, ::-1]  # (throws, dice): pips, by number thrown again
            values = before[again, kept]
            worst[dice, aside] = (values.max(axis=1, keepdims=True) - values + worst[again, kept]).max()
    return float(worst[-1, 0])


# --- agents -----------------------------------------------------------------------------------------------------------------


def _variant_of(options: Options) -> Variant:
    return GAME.configure(**{**dataclasses.asdict(options), "num_players": 1})


def _shown(num_dice: int, num_faces: int) -> np.ndarray:
    """Return every throw in the order of `throws`, (throws, num_dice) face values."""
    found = throws(num_dice, num_faces)
    return np.array([throw for throw, _ in found], np.int64).reshape(len(found), num_dice)


def _counts(num_dice: int, num_faces: int) -> np.ndarray:
    """Count the dice that show each face, (throws, MAX_FACES), for every throw in the order of `throws`."""
    return (_shown(num_dice, num_faces)[:, :, None] == np.arange(1, MAX_FACES + 1)).sum(axis=1)


def _positions(variant: Variant) -> np.ndarray:
    """Return a state for every position: for all dice aside in the order of `asides`, all throws in the order of `throws`."""
    rules = Rules.of(variant.options)
    start = dealt(variant, 1)
    parts = []
    for aside in range(rules.num_dice):
        kept, thrown = _counts(aside, rules.num_faces), _counts(rules.num_dice - aside, rules.num_faces)
        states = np.repeat(start, len(kept) * len(thrown))
        states["aside"] = np.repeat(kept, len(thrown), axis=0)
        states["counts"] = np.tile(thrown, (len(kept), 1))
        parts.append(states)
    states = np.concatenate(parts)
    states["thrown"] = states["counts"].sum(axis=1)
    states["score"] = states["aside"] @ np.arange(1, MAX_FACES + 1)
    return states


def strategy_of(agent: Agent, options: Options, name: str = "agent") -> Strategy:
    """Return the strategy of a deterministic agent in the one-player game, which is asked in every position.

    `policy_of` is for agents that choose at random.

    Raises:
        ValueError: the agent's choices are random: asked twice, it gave different answers.
    """
    variant = _variant_of(options)
    rules, states = Rules.of(options), _positions(variant)
    index = np.arange(len(states))
    answers = [ask(agent, variant, states, index, new_streams(seed, len(states))) for seed in (0, 1)]
    if (answers[0] != answers[1]).any():
        raise ValueError(f"{name} plays at random: exact figures need one choice for each position")
    positions = [(throw, aside) for aside in asides(rules) for throw, _ in throws(rules.num_dice - len(aside), rules.num_faces)]
    choices = dict(zip(positions, answers[0].tolist(), strict=True))
    return Strategy(name, lambda throw, aside: choices[throw, aside], "aside")


def policy_of(agent: Any, options: Options, seed: int = 0) -> np.ndarray:
    """Return an agent's probabilities in the one-player game; it is asked once in every position.

    Args:
        agent: see `dice_envs.agent.ask_probabilities`.
        options: of the game.
        seed: of the agent's own random stream.

    Returns:
        (positions, num_dice) float64, the probability of throwing 0, 1, … dice again: for all dice aside in the order of
        `asides`, all throws in the order of `throws`.

    Raises:
        AgentError: the agent's probabilities are not a distribution over the legal actions.
    """
    variant = _variant_of(options)
    states = _positions(variant)
    streams = new_streams(seed, len(states))
    policy = np.empty((len(states), options.num_dice))
    for first in range(0, len(states), ROWS_AT_ONCE):
        index = np.arange(first, min(first + ROWS_AT_ONCE, len(states)))
        policy[index] = ask_probabilities(agent, Turn(variant, states, index, streams[index]))
        advance(len(index), len(states))
    return policy


def score_chances(rules: Rules, policy: np.ndarray) -> np.ndarray:
    """Return P(score = s) for s = 0, 1, … most, (most + 1,) float64, of a policy as `policy_of` gives it.

    Probabilities flow forwards from one set of dice aside to the next. A set of dice has a code, the sum of its dice's
    entries in `places`. Codes rise in the order of `throws`.
    """
    n, faces = rules.num_dice, rules.num_faces
    places = -((n + 1) ** np.arange(faces, -1, -1, dtype=np.int64))  # by face value
    shown = [_shown(dice, faces) for dice in range(n + 1)]
    codes = [places[dice].sum(axis=1) for dice in shown]
    reached = [np.zeros(len(found)) for found in codes]  # by number of dice aside: P(these lie aside before a throw)
    reached[0][0] = 1.0
    chances = np.zeros(rules.most + 1)
    start = 0
    for aside in range(n):
        dice = n - aside
        ways = np.array([count for _, count in throws(dice, faces)]) / faces**dice
        size = len(codes[aside]) * len(ways)
        flow = policy[start : start + size].reshape(len(codes[aside]), len(ways), n) * ways[None, :, None]
        flow *= reached[aside][:, None, None]
        start += size
        kept = places[shown[dice]][:, ::-1].cumsum(axis=1)[:, ::-1]  # (throws, dice): code of the dice kept
        score = shown[aside].sum(axis=1)[:, None] + shown[dice].sum(axis=1)
        chances += np.bincount(score.ravel(), flow[:, :, 0].ravel(), rules.most + 1)
        for again in range(1, dice):
            after = np.searchsorted(codes[n - again], codes[aside][:, None] + kept[:, again])
            reached[n - again] += np.bincount(after.ravel(), flow[:, :, again].ravel(), len(codes[n - again]))
    return chances


# --- the measure ----------------------------------------------------------------------------------------------------------

_QUANTITIES = {  # by the goal that optimises it: name, unit, and −1 where low values are good
    "maximize": ("expected score", "pips", 1),
    "thirty_or_over": ("P(target or more)", "probability", 1),
    "minimize_loss": ("points below the target", "points", -1),
}


def optima(variant: Variant) -> dict[str, float]:
    """Return the best expected value of the goal. See `dice_envs.exact.optima`.

    Raises:
        ValueError: the variant is the table game.
    """
    check_alone(variant, "an exact measure")
    return {"value": float(solve(Rules.of(variant.options), variant.options.goal)[1])}


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure the expected value of the goal, and the quantities of the other goals. See `dice_envs.exact.GameExact.measure`.

    All are exact. The agent is asked once in every position: 11,914 of them with six dice of six faces, 483,879 with
    eight of eight. Each quantity is compared with the best strategy for it alone, so in general no strategy reaches all
    the optima.

    Raises:
        ValueError: the variant is the table game.
    """
    check_alone(variant, "an exact measure")
    options = variant.options
    rules = Rules.of(options)
    chances = score_chances(rules, policy_of(agent, options, effort.seed))

    def measurement(goal: str, name: str, unit: str, sign: int, note: str = "") -> Measurement:
        worth = np.array(worths(rules, goal), np.float64)
        value, best = float(chances @ worth), float(solve(rules, goal)[1])
        span = rules.num_dice * float(np.ptp(worth[rules.num_dice :]))
        return Measurement(name, sign * value, sign * best, max(0.0, best - value), unit=unit, note=note, span=span)

    unit = "points" if options.goal == "optimal" else _QUANTITIES[options.goal][1]
    others = [measurement(goal, *quantity) for goal, quantity in _QUANTITIES.items() if goal != options.goal]
    return [measurement(options.goal, "value", unit, 1, f"goal {options.goal}"), *others]


# --- values of choices ----------------------------------------------------------------------------------------------------

_COUNTED = {
    "maximize": Unit("pips"),
    "minimize_loss": Unit("points"),
    "thirty_or_over": Unit("turns at the target or over", is_share=True),
}


def _values(before: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the value of throwing 0, 1, … of the lowest dice again, (n, num_dice) float64; NaN for illegal actions."""
    again, faces = np.arange(len(before) - 1), np.arange(1, MAX_FACES + 1)
    counts = states["counts"].astype(np.int64)
    lower = counts.cumsum(axis=1) - counts  # dice that show less than each face
    thrown = np.clip(again[:, None] - lower[:, None], 0, counts[:, None]) @ faces  # pips thrown again
    kept = (states["score"] + counts @ faces)[:, None] - thrown
    return np.where(again < states["thrown"][:, None], before[again, kept], np.nan)


def action_values(variant: Variant, state: Any) -> ActionValues:
    """Return the value of each choice for the goal of one player, or at a table for the points of the turn.

    See `dice_envs.exact.GameExact.action_values`.
    """
    options = variant.options
    goal = options.goal if options.num_players == 1 else "optimal"
    rules = Rules.of(options)
    (values,) = _values(values_before(rules, goal), np.array([state]))
    mix = np.zeros(variant.facts.num_actions)
    mix[solve(rules, goal)[0].given(faces_of(state["counts"]), int(state["score"]))] = 1.0
    note = f"with the best choices for the goal {goal} afterwards"
    if options.num_players > 1:
        note = "points given to the next player less those got, with the best choices afterwards; ignores the current score"
    return ActionValues(values, _COUNTED.get(goal, Unit("points")), note, mix)


def response_values(variant: Variant, opponent: Any) -> ResponseValues:
    """Return the values of choices for the goal of one player. See `dice_envs.exact.GameExact.response_values`.

    The reward of "optimal" is expected over the second stage, whose throws are therefore luck.

    Raises:
        ValueError: the variant is the table game.
    """
    check_alone(variant, "the values of choices")
    goal = variant.options.goal
    note = f"with the best choices for the goal {goal} afterwards"
    unit = _COUNTED.get(goal, Unit("points given less points got"))
    rules = Rules.of(variant.options)
    before = values_before(rules, goal)
    start, values = float(before[-1, 0]), functools.partial(_values, before)
    return ResponseValues(unit, note, lambda seat: start, values, whole_team=True, most_lost=most_lost(rules, goal))


def situations(variant: Variant, states: np.ndarray, actions: np.ndarray) -> dict[str, np.ndarray]:
    """Return headings for decisions: the dice on the table, and whether some are thrown again. See `GameExact.situations`."""
    dice = np.array(["", "1 die", *(f"{count} dice" for count in range(2, variant.options.num_dice + 1))])
    return {
        "dice on the table": dice[states["thrown"]],
        "choice": np.where(np.asarray(actions) == 0, "keep all", "throw some again"),
    }
