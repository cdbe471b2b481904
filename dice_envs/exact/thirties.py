"""The game of 30s solved: any strategy's score distribution, the best strategy for a goal, the second stage, in integers.

A throw of k dice has faces**k equally likely cases, and each later throw has fewer dice. So with k dice on the table
every probability is a whole multiple of faces ** -(1 + 2 + ... + k), and nothing is rounded before it is printed.
Python's integers are unbounded: eight dice of eight faces (8**36 cases) are as exact as one. Agents may choose at
random, so they are evaluated in float64 (`policy_of`, `score_chances`, `measure`).

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
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.options import check_choice, shown
from dice_envs.exact import ActionValues, Effort, Measurement
from dice_envs.games.thirties import GAME, GOALS, MAX_FACES, Options

__all__ = [
    "Analysis",
    "Distribution",
    "Goal",
    "Player",
    "Rules",
    "Strategy",
    "analyse",
    "asides",
    "choice_values",
    "differences",
    "expected_given",
    "foreknowledge",
    "name_of_goal",
    "policy_of",
    "relative_skill",
    "score_chances",
    "second_stage",
    "second_stage_points",
    "solve",
    "strategy_of",
    "throws",
    "worths",
]

ROWS_AT_ONCE = 16_384  # positions that an agent is asked about in one call

Dice = tuple[int, ...]  # face values in rising order


class Rules(NamedTuple):
    """What the analysis needs to know of the game's options."""

    num_dice: int = 6
    num_faces: int = 6
    target: int = 30

    @classmethod
    def of(cls, options: Options) -> Rules:
        """The rules that the game's options ask for."""
        return cls(options.num_dice, options.num_faces, options.target)

    @property
    def most(self) -> int:
        """The highest score."""
        return self.num_dice * self.num_faces

    def cases(self, num_dice: int) -> int:
        """The denominator of probabilities with this many dice on the table: the number of equally likely cases."""
        return self.num_faces ** (num_dice * (num_dice + 1) // 2)


@dataclasses.dataclass(frozen=True)
class Strategy:
    """How many of the lowest dice are thrown again.

    Attributes:
        name: as tables show it.
        choose: the choice, 0 … len(throw) - 1, for a throw (face values in rising order) and, unless the strategy is
            simple, for what lies aside.
        sees: what `choose` is given. "throw": choose(throw), a simple strategy. "total": choose(throw, pips aside).
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
        """The choice, checked. ValueError for one that is not legal."""
        return self.given(throw, self.key(aside))

    def key(self, aside: Dice) -> Any:
        """What the analysis must know of the dice aside: themselves, or their sum."""
        return tuple(aside) if self.sees == "aside" else sum(aside)

    def given(self, throw: Dice, key: Any) -> int:
        """The choice for a throw and a key as `key` makes it."""
        chosen = self.choose(throw) if self.sees == "throw" else self.choose(throw, key)
        if isinstance(chosen, bool) or not isinstance(chosen, (int, np.integer)) or not 0 <= chosen < len(throw):
            dice = " ".join(map(str, throw))
            raise ValueError(f"{self.name} must throw 0 to {len(throw) - 1} dice of {dice} again, not {shown(chosen)}")
        return int(chosen)


@functools.cache
def throws(num_dice: int, num_faces: int) -> tuple[tuple[Dice, int], ...]:
    """Every throw in rising order of its dice, and how many of the faces**dice cases show it."""
    found = []
    for throw in itertools.combinations_with_replacement(range(1, num_faces + 1), num_dice):
        ways = math.factorial(num_dice)
        for count in Counter(throw).values():
            ways //= math.factorial(count)
        found.append((throw, ways))
    return tuple(found)


def asides(rules: Rules) -> Iterator[Dice]:
    """Everything that can lie aside before a throw, fewest dice first."""
    for aside in range(rules.num_dice):
        yield from itertools.combinations_with_replacement(range(1, rules.num_faces + 1), aside)


class Distribution(NamedTuple):
    """Scores `first`, `first` + 1, … with the probabilities `weights` / `total`."""

    first: int
    weights: tuple[int, ...]
    total: int

    def mean_of(self, worth: Callable[[int], Fraction | int]) -> Fraction:
        """The expectation of a function of the score."""
        summed = sum((weight * worth(self.first + i) for i, weight in enumerate(self.weights) if weight), Fraction(0))
        return Fraction(summed) / self.total

    @property
    def mean(self) -> Fraction:
        """The expected score."""
        return Fraction(sum((self.first + i) * weight for i, weight in enumerate(self.weights)), self.total)


# --- any strategy ---------------------------------------------------------------------------------------------------


class Player:
    """A strategy with its rules, and what it leads to from any position. Results are cached."""

    def __init__(self, rules: Rules, strategy: Strategy) -> None:
        self.rules = rules
        self.strategy = strategy
        self._moves: dict[Any, dict[tuple[int, Any], int]] = {}
        self._to_come: dict[Any, int] = {}

    def _moves_from(self, num_dice: int, key: Any) -> dict[tuple[int, Any], int]:
        """(dice thrown again, what goes aside: dice or their sum) → number of cases."""
        at = (num_dice, None if self.strategy.simple else key)
        moves = self._moves.get(at)
        if moves is None:
            moves = self._moves[at] = Counter()
            for throw, ways in throws(num_dice, self.rules.num_faces):
                again = self.strategy.given(throw, key)
                kept = throw[again:]
                moves[again, kept if self.strategy.sees == "aside" else sum(kept)] += ways
        return moves

    def _add(self, key: Any, kept: Any) -> Any:
        return tuple(sorted(key + kept)) if self.strategy.sees == "aside" else key + kept

    def distribution(self, aside: Dice = ()) -> Distribution:
        """The score's distribution before the throw that follows these dice aside (the first throw, by default)."""
        rules = self.rules
        dice = rules.num_dice - len(aside)
        reached: list[dict[Any, int]] = [{} for _ in range(dice + 1)]
        reached[dice][self.strategy.key(tuple(aside))] = 1
        for k in range(dice, 0, -1):
            for key, weight in reached[k].items():
                for (again, kept), ways in self._moves_from(k, key).items():
                    after = self._add(key, kept)
                    # Throws that are skipped count their cases too, so that all weights have the same denominator.
                    cases = weight * ways * (rules.cases(k - 1) // rules.cases(again))
                    reached[again][after] = reached[again].get(after, 0) + cases
        weights = Counter[int]()
        for key, weight in reached[0].items():
            weights[sum(key) if isinstance(key, tuple) else key] += weight
        first = sum(aside) + dice
        most = sum(aside) + dice * rules.num_faces
        return Distribution(first, tuple(weights[score] for score in range(first, most + 1)), rules.cases(dice))

    def _score_to_come(self, num_dice: int, key: Any) -> int:
        """The expected pips to come, in units of 1 / cases(num_dice)."""
        if num_dice == 0:
            return 0
        at = (num_dice, None if self.strategy.simple else key)
        total = self._to_come.get(at)
        if total is None:
            total = 0
            cases = self.rules.cases
            for (again, kept), ways in self._moves_from(num_dice, key).items():
                later = self._score_to_come(again, self._add(key, kept)) * (cases(num_dice - 1) // cases(again))
                total += ways * ((sum(kept) if isinstance(kept, tuple) else kept) * cases(num_dice - 1) + later)
            self._to_come[at] = total
        return total

    def expected_score(self, aside: Dice = ()) -> Fraction:
        """The expected score before the throw that follows these dice aside."""
        dice = self.rules.num_dice - len(aside)
        return sum(aside) + Fraction(self._score_to_come(dice, self.strategy.key(tuple(aside))), self.rules.cases(dice))

    def expected_with(self, num_dice: int) -> Fraction:
        """The expected score of that many dice alone, for simple strategies."""
        if not self.strategy.simple:
            raise ValueError(f"{self.strategy.name} is not simple: its choices depend on what lies aside")
        return Fraction(self._score_to_come(num_dice, 0), self.rules.cases(num_dice))

    def advice(self, throw: Dice, aside: Dice = ()) -> tuple[int, Fraction]:
        """How many dice to throw again, and the expected final score after that, dice aside included."""
        again = self.strategy(throw, tuple(aside))
        kept = tuple(sorted((*aside, *throw[again:])))
        if again == 0:
            return 0, Fraction(sum(kept))
        return again, sum(kept) + Fraction(self._score_to_come(again, self.strategy.key(kept)), self.rules.cases(again))


def differences(rules: Rules, first: Strategy, second: Strategy) -> Iterator[tuple[Dice, Dice, int, int]]:
    """(throw, aside, first's choice, second's choice) wherever they differ, reachable or not.

    Two simple strategies do not depend on what lies aside, so they are compared once for every throw: aside is ().
    """
    if first.simple and second.simple:
        positions: Any = (((), k) for k in range(1, rules.num_dice + 1))
    else:
        positions = ((aside, rules.num_dice - len(aside)) for aside in asides(rules))
    for aside, dice in positions:
        for throw, _ in throws(dice, rules.num_faces):
            choices = first(throw, aside), second(throw, aside)
            if choices[0] != choices[1]:
                yield throw, aside, *choices


# --- the second stage -------------------------------------------------------------------------------------------------


def second_stage(rules: Rules) -> tuple[Fraction, ...]:
    """The chances that 0, 1, … num_dice dice are put aside in one round of the second stage (section 2).

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
    """The second stage's expected points for x = 0, 1, … most - target (0 for x = 0), without a bound on restarts.

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


def second_stage_points(rules: Rules, excess: int, restarts: int) -> dict[int, Fraction]:
    """The chance of each number of points a second stage from `excess` gives with at most that many restarts.

    The missing probability is that of more restarts.
    """
    chances = second_stage(rules)
    found: dict[int, Fraction] = {}
    reached, points, face = Fraction(1), excess, min(excess, rules.num_faces)
    for _ in range(restarts + 1):
        for count, chance in enumerate(chances[:-1]):
            value = points + count * face
            found[value] = found.get(value, Fraction(0)) + reached * chance
        reached *= chances[-1]
        points = 2 * (points + rules.num_dice * face)
        face = min(face + 1, rules.num_faces)
    return found


# --- goals --------------------------------------------------------------------------------------------------------------


Goal: TypeAlias = str | Callable[[int], Any]  # one of GOALS, or what a score is worth, a finite number


def worths(rules: Rules, goal: Goal) -> list[Fraction]:
    """What each score 0, 1, … most is worth for a goal: the environment's expected reward, or what the function gives.

    Raises:
        ValueError: an unknown goal, "optimal" where the second stage's expected points are infinite, or a function that
            gives something else than finite numbers.
    """
    scores = range(rules.most + 1)
    if callable(goal):
        return [_worth(goal, score) for score in scores]
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


def _worth(goal: Callable[[int], Any], score: int) -> Fraction:
    value = goal(score)
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"goal {name_of_goal(goal)} must give a finite number for every score, not {shown(value)}") from None


def name_of_goal(goal: Goal) -> str:
    """The goal's name, or that of the function."""
    return goal if isinstance(goal, str) else str(getattr(goal, "__name__", "custom"))


class _Tables(NamedTuple):
    """A goal solved. Numbers are packed: `value * above + score`, in units of 1 / (cases * unit) with the cases of the dice
    on the table, where `above` exceeds every score."""

    unit: int
    above: int
    values: list[np.ndarray]  # by dice on the table, then by pips aside, before the throw
    choices: list[dict[int, list[int]]]  # by dice on the table, then by pips aside, then by throw


@functools.lru_cache(maxsize=64)
def _solved(rules: Rules, goal: Goal) -> _Tables:
    worth = worths(rules, goal)
    unit = math.lcm(*(value.denominator for value in worth))
    # One integer holds value and expected score, so comparing it compares values first. Both are sums over cases, so this
    # integer can be summed over cases as well.
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
    return _Tables(unit, above, values, choices)


@functools.lru_cache(maxsize=64)
def solve(rules: Rules, goal: Goal) -> tuple[Strategy, Fraction]:
    """The best strategy for a goal, and its value: the expected reward of the environment with that goal.

    A choice depends on the dice aside through their sum only (for "maximize" not at all). Of choices with equal values
    the one with the higher expected score is taken (section 3.1), then the one that throws fewer dice again.

    Raises:
        ValueError: see `worths`.
    """
    solved = _solved(rules, goal)
    choices = solved.choices
    number = {throw: i for dice in range(1, rules.num_dice + 1) for i, (throw, _) in enumerate(throws(dice, rules.num_faces))}

    def choose(throw: Dice, total: int) -> int:
        return choices[len(throw)][total][number[throw]]

    def choose_simply(throw: Dice) -> int:
        return choices[len(throw)][rules.num_dice - len(throw)][number[throw]]

    simple = goal == "maximize"
    strategy = Strategy(name_of_goal(goal), choose_simply if simple else choose, "throw" if simple else "total")
    return strategy, Fraction(solved.values[-1][0] // solved.above, rules.cases(rules.num_dice) * solved.unit)


def choice_values(rules: Rules, goal: str, throw: Dice, total: int) -> list[Fraction]:
    """What it is worth for a goal to throw 0, 1, … of the lowest dice of a throw again, if all later choices are the best.

    Args:
        rules: the rules.
        goal: see `worths`.
        throw: the dice on the table in rising order.
        total: pips aside.

    Raises:
        ValueError: see `worths`.
    """
    solved = _solved(rules, goal)
    return [
        Fraction(solved.values[again][total + sum(throw[again:])] // solved.above, rules.cases(again) * solved.unit)
        for again in range(len(throw))
    ]


_UNITS = {"maximize": "pips", "minimize_loss": "points", "thirty_or_over": "% of turns at the target or over"}


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """What each choice is worth for the goal of one player, or at a table for the points of the turn. See
    `dice_envs.exact.GameActionValues`."""
    options = variant.options
    goal = options.goal if options.num_players == 1 else "optimal"
    throw = tuple(np.repeat(np.arange(1, MAX_FACES + 1), state["counts"]).tolist())
    rules, total = Rules.of(options), int(state["score"])
    found = choice_values(rules, goal, throw, total)
    strategy, _ = solve(rules, goal)
    values, mix = np.full(variant.facts.num_actions, np.nan), np.zeros(variant.facts.num_actions)
    values[: len(found)] = [float(value) for value in found]
    mix[strategy.given(throw, total)] = 1.0
    note = f"with the best choices for the goal {goal} afterwards"
    if options.num_players > 1:
        note = "points given to the next player less those got, with the best choices afterwards; who leads is left out"
    return ActionValues(values, _UNITS.get(goal, "points given less points got"), note, mix)


class Analysis(NamedTuple):
    """A strategy in the paper's figures (section 5.2), exact."""

    name: str
    distribution: Distribution
    score: Fraction  # expected
    reached: Fraction  # P(score >= target)
    below: Fraction  # expected points below the target: its own
    above: Fraction  # expected points above it
    given: Fraction | None  # expected points for the next player; None: infinite

    def value(self, goal: Goal) -> Fraction:
        """What the strategy is worth for a goal. ValueError as `worths`."""
        if callable(goal):
            return self.distribution.mean_of(functools.partial(_worth, goal))
        check_choice("goal", goal, GOALS)
        if goal == "optimal":
            if self.given is None:
                raise ValueError("goal must not be 'optimal' here: the second stage's expected points are infinite")
            return self.given - self.below
        return {"maximize": self.score, "minimize_loss": -self.below, "thirty_or_over": self.reached}[goal]


def analyse(rules: Rules, strategy: Strategy | Player) -> Analysis:
    """All figures of a strategy from its distribution of scores."""
    player = strategy if isinstance(strategy, Player) else Player(rules, strategy)
    found = player.distribution()
    given = expected_given(rules)

    def passed_on(score: int) -> Fraction:
        return given[score - rules.target] if given and score > rules.target else Fraction(0)

    unbounded = given is None and any(found.weights[i] for i in range(len(found.weights)) if found.first + i > rules.target)
    return Analysis(
        player.strategy.name,
        found,
        found.mean,
        found.mean_of(lambda score: int(score >= rules.target)),
        found.mean_of(lambda score: max(0, rules.target - score)),
        found.mean_of(lambda score: max(0, score - rules.target)),
        None if unbounded else found.mean_of(passed_on),
    )


# --- how much is skill ----------------------------------------------------------------------------------------------------


def foreknowledge(rules: Rules) -> Distribution:
    """The score of a player who knows all throws to come, if different choices lead to independent throws.

    The best score with k dice is the maximum, over the number j thrown again, of the pips kept plus an independent best
    score with j dice. So the chance that it is at most s is a product over j. It is counted in faces ** (2**k - 1) cases
    (section 6 of the paper simulated it).
    """
    faces, most = rules.num_faces, rules.most
    at_most = [[1] * (most + 1)]  # by number of dice, then by score s: number of cases in which the best is at most s
    for dice in range(1, rules.num_dice + 1):
        cumulative = [0] * (most + 1)
        for throw, ways in throws(dice, faces):
            total = sum(throw)
            kept = [sum(throw[again:]) for again in range(1, dice)]
            # No less than the throw itself; beyond dice * faces nothing changes.
            for score in range(total, dice * faces + 1):
                cases = ways
                for again, pips in enumerate(kept, start=1):
                    cases *= at_most[again][score - pips]
                cumulative[score] += cases
        cumulative[dice * faces :] = [faces ** (2**dice - 1)] * (most + 1 - dice * faces)
        at_most.append(cumulative)
    final = at_most[-1]
    weights = tuple(final[score] - (final[score - 1] if score else 0) for score in range(rules.num_dice, most + 1))
    return Distribution(rules.num_dice, weights, faces ** (2**rules.num_dice - 1))


def relative_skill(beginner: Fraction, best: Fraction, knowing: Fraction) -> Fraction:
    """LE / (LE + RE): the learning effect (best - beginner) as a share of the gap to foreknowledge (section 6)."""
    return (best - beginner) / (knowing - beginner)


# --- agents -----------------------------------------------------------------------------------------------------------------


def _variant_of(options: Options) -> Variant:
    return GAME.configure(**{**dataclasses.asdict(options), "num_players": 1})


def _shown(num_dice: int, num_faces: int) -> np.ndarray:
    """Every throw in the order of `throws`, (throws, num_dice) face values."""
    found = throws(num_dice, num_faces)
    return np.array([throw for throw, _ in found], np.int64).reshape(len(found), num_dice)


def _counts(num_dice: int, num_faces: int) -> np.ndarray:
    """How many dice show each face, (throws, MAX_FACES), for every throw in the order of `throws`."""
    return (_shown(num_dice, num_faces)[:, :, None] == np.arange(1, MAX_FACES + 1)).sum(axis=1)


def _positions(variant: Variant) -> np.ndarray:
    """A state for every position: for all dice aside in the order of `asides`, all throws in the order of `throws`."""
    rules = Rules.of(variant.options)
    dealt = np.zeros(1, GAME.state)
    variant.kernels.deal(variant.params, dealt, np.zeros(1, np.int64))
    parts = []
    for aside in range(rules.num_dice):
        kept, thrown = _counts(aside, rules.num_faces), _counts(rules.num_dice - aside, rules.num_faces)
        states = np.repeat(dealt, len(kept) * len(thrown))
        states["aside"] = np.repeat(kept, len(thrown), axis=0)
        states["counts"] = np.tile(thrown, (len(kept), 1))
        parts.append(states)
    states = np.concatenate(parts)
    states["thrown"] = states["counts"].sum(axis=1)
    states["score"] = states["aside"] @ np.arange(1, MAX_FACES + 1)
    return states


def strategy_of(agent: Agent, options: Options, name: str = "agent") -> Strategy:
    """The strategy that a deterministic agent plays in the one-player game, asked once in every position.

    So a trained policy is measured exactly, not by sampling. `policy_of` is for agents that choose at random.

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


def policy_of(
    agent: Any, options: Options, seed: int = 0, done: Callable[[int, int], Any] = lambda amount, total: None
) -> np.ndarray:
    """What an agent that states its probabilities does in the one-player game, asked once in every position.

    Args:
        agent: see `dice_envs.agent.ask_probabilities`.
        options: of the game.
        seed: of the agent's own random stream.
        done: called with progress, as (positions asked about since the last call, positions in all).

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
        done(len(index), len(states))
    return policy


def score_chances(rules: Rules, policy: np.ndarray) -> np.ndarray:
    """P(score = s) for s = 0, 1, … most, (most + 1,) float64, of a policy as `policy_of` gives it.

    Summed forwards over what lies aside. A set of dice has a code, the sum of its dice's entries in `places`. Codes rise
    in the order of `throws`.
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
    """The best expected value of the goal. See `dice_envs.exact.optima`.

    Raises:
        ValueError: the variant is the table game.
    """
    _check_alone(variant)
    return {"value": float(solve(Rules.of(variant.options), variant.options.goal)[1])}


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """The expected value of the goal, and the quantities of the other goals. See `dice_envs.exact.GameMeasure`.

    All are exact. The agent is asked once in every position: 11,914 of them with six dice of six faces, 483,879 with
    eight of eight. Each quantity is compared with the best strategy for that quantity alone, so in general no strategy
    reaches all the optima.

    Raises:
        ValueError: the variant is the table game.
    """
    _check_alone(variant)
    options = variant.options
    rules = Rules.of(options)
    chances = score_chances(rules, policy_of(agent, options, effort.seed, effort.done))

    def measurement(goal: str, name: str, unit: str, sign: int, note: str = "") -> Measurement:
        value = float(chances @ np.array(worths(rules, goal), np.float64))
        best = float(solve(rules, goal)[1])
        return Measurement(name, sign * value, sign * best, max(0.0, best - value), unit=unit, note=note)

    unit = "points" if options.goal == "optimal" else _QUANTITIES[options.goal][1]
    others = [measurement(goal, *quantity) for goal, quantity in _QUANTITIES.items() if goal != options.goal]
    return [measurement(options.goal, "value", unit, 1, f"goal {options.goal}"), *others]


def _check_alone(variant: Variant) -> None:
    """Raise ValueError for the table game."""
    players = variant.options.num_players
    if players != 1:
        raise ValueError(
            f"num_players must be 1 for an exact measure, not {players}: optimal play of the table game is unknown"
        )
