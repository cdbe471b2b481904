"""The game of 30s solved: the second stage, the best strategy for a goal, and how much of the game is skill."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dice_envs.core.options import check_choice, shown
from dice_envs.exact.thirties.strategies import Dice, Distribution, Player, Rules, Strategy, throws
from dice_envs.games.thirties import GOALS

__all__ = [
    "Analysis",
    "Goal",
    "analyse",
    "expected_given",
    "foreknowledge",
    "forget_solutions",
    "name_of_goal",
    "relative_skill",
    "second_stage",
    "second_stage_points",
    "solve",
    "values_before",
    "worths",
]

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


def second_stage_points(rules: Rules, excess: int, restarts: int) -> dict[int, Fraction]:
    """Return points → chance that a second stage from `excess` gives them with at most this many restarts.

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
    """Return the worth of each score 0, 1, … most for a goal: the environment's expected reward, or the function's value.

    Raises:
        ValueError: an unknown goal, "optimal" where the second stage's expected points are infinite, or a function that
            returns anything but finite numbers.
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
    """Return the goal's name, or that of the function."""
    return goal if isinstance(goal, str) else str(getattr(goal, "__name__", "custom"))


class _Tables(NamedTuple):
    """A solved goal.

    Numbers are packed: `value * above + score`, in units of 1 / (cases * unit) with the cases of the dice on the table.
    `above` exceeds every score.
    """

    unit: int
    above: int
    values: list[np.ndarray]  # by dice on the table, then by pips aside, before the throw
    choices: list[dict[int, list[int]]]  # by dice on the table, then by pips aside, then by throw


@functools.lru_cache(maxsize=64)
def _solved(rules: Rules, goal: Goal) -> _Tables:
    worth = worths(rules, goal)
    unit = math.lcm(*(value.denominator for value in worth))
    # One integer holds value and expected score, so comparing it compares values first. Both are sums over cases, so the
    # integer can be summed over cases, too.
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
    """Return the best strategy for a goal, and its value: the expected reward of the environment with that goal.

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


def forget_solutions() -> None:
    """Drop what `solve` and `values_before` have cached."""
    solve.cache_clear()
    values_before.cache_clear()
    _solved.cache_clear()


@functools.lru_cache(maxsize=64)
def values_before(rules: Rules, goal: str) -> np.ndarray:
    """Return the values before a throw of 0, 1, … num_dice dice (rows), with 0, 1, … most pips aside (columns), float64.

    The best choices for the goal follow. Each value is the exact one, rounded once. Pips that cannot lie aside have 0.

    Raises:
        ValueError: see `worths`.
    """
    solved = _solved(rules, goal)
    out = np.array(
        [
            [value // solved.above / (rules.cases(dice) * solved.unit) for value in values.tolist()]
            for dice, values in enumerate(solved.values)
        ]
    )
    out.flags.writeable = False
    return out


class Analysis(NamedTuple):
    """The paper's figures of a strategy (section 5.2), exact."""

    name: str
    distribution: Distribution
    score: Fraction  # expected
    reached: Fraction  # P(score >= target)
    below: Fraction  # expected points below the target, which the player gets
    above: Fraction  # expected points above it
    given: Fraction | None  # expected points for the next player; None: infinite

    def value(self, goal: Goal) -> Fraction:
        """Return the strategy's value for a goal. ValueError as `worths`."""
        if callable(goal):
            return self.distribution.mean_of(functools.partial(_worth, goal))
        check_choice("goal", goal, GOALS)
        if goal == "optimal":
            if self.given is None:
                raise ValueError("goal must not be 'optimal' here: the second stage's expected points are infinite")
            return self.given - self.below
        return {"maximize": self.score, "minimize_loss": -self.below, "thirty_or_over": self.reached}[goal]


def analyse(rules: Rules, strategy: Strategy | Player) -> Analysis:
    """Return all figures of a strategy from its distribution of scores."""
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
    """Return the score of a player who knows all throws to come, if different choices lead to independent throws.

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
            # No score is below the throw itself or above dice * faces.
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
    """Return LE / (LE + RE): the learning effect (best - beginner) as a share of the gap to foreknowledge (section 6)."""
    return (best - beginner) / (knowing - beginner)
