"""Strategies of the game of 30s: rules of thumb, the best one for a goal, a user's own; and the second stage. In integers.

A throw of k dice has faces**k equally likely cases, and each later throw has fewer dice. So with k dice on the table
every probability is a whole multiple of faces ** -(1 + 2 + ... + k), and nothing is rounded before it is printed.
Python's integers are unbounded: eight dice of eight faces (8**36 cases) are as exact as one.

Source: M. Veeningen, "The game of 30s: an analysis" (2008), sections 1.3, 2, 3, 5.1 and 6. With other dice a "six" stands for
the highest face, a "five" for the one below it, and so on.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from dice_envs.core.options import check_choice, is_whole, shown
from dice_envs.core.own import FORMS, load_own, split_own
from dice_envs.games.thirties import GOALS, Options

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


def dice_shown(num_dice: int, num_faces: int) -> np.ndarray:
    """Return every throw in the order of `throws`, (throws, num_dice) face values."""
    found = throws(num_dice, num_faces)
    return np.array([throw for throw, _ in found], np.int64).reshape(len(found), num_dice)


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
        return [_value_of(goal, score) for score in scores]
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


def _value_of(goal: Callable[[int], Any], score: int) -> Fraction:
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
        shown = dice_shown(dice, rules.num_faces)
        again, fewest = np.arange(dice), rules.num_dice - dice
        for aside in range(fewest, fewest * rules.num_faces + 1):
            kept = aside + shown[:, ::-1].cumsum(axis=1)[:, ::-1]  # (throws, dice): pips, by number thrown again
            values = before[again, kept]
            worst[dice, aside] = (values.max(axis=1, keepdims=True) - values + worst[again, kept]).max()
    return float(worst[-1, 0])


# --- strategies by name -------------------------------------------------------------------------------------------------


def _below(throw: Dice, face: int) -> int:
    return sum(die < face for die in throw)


def sixes(rules: Rules) -> Strategy:
    """Keep the sixes; the highest die if there is none."""
    return Strategy("sixes", lambda throw: min(_below(throw, rules.num_faces), len(throw) - 1))


def fives_and_sixes(rules: Rules) -> Strategy:
    """Keep the fives and sixes; the highest die if there is none."""
    return Strategy("fives_and_sixes", lambda throw: min(_below(throw, rules.num_faces - 1), len(throw) - 1))


def beginner(rules: Rules) -> Strategy:
    """Like `fives_and_sixes`, but if one die would be thrown again and it is a four or more, keep it too."""
    five, four = rules.num_faces - 1, rules.num_faces - 2

    def choose(throw: Dice) -> int:
        again = min(_below(throw, five), len(throw) - 1)
        return 0 if again == 1 and throw[0] >= four else again

    return Strategy("beginner", choose)


def heuristic(rules: Rules) -> Strategy:
    """The paper's rule of thumb, nearly as good as `maximize`.

    If at most one die other than the highest is less than a five, keep all the others, and this one if it is a four.
    Otherwise keep the sixes; the highest die if there is none.
    """
    six, five, four = rules.num_faces, rules.num_faces - 1, rules.num_faces - 2

    def choose(throw: Dice) -> int:
        low = _below(throw[:-1], five)
        if low <= 1:
            return 0 if low == 0 or throw[0] >= four else 1
        return min(_below(throw, six), len(throw) - 1)

    return Strategy("heuristic", choose)


_RULES_OF_THUMB = {"sixes": sixes, "fives_and_sixes": fives_and_sixes, "beginner": beginner, "heuristic": heuristic}
NAMES = (*_RULES_OF_THUMB, *GOALS)


@functools.lru_cache(maxsize=64)
def named(rules: Rules, name: str) -> Strategy:
    """Return a strategy by name: one of NAMES, where a goal stands for its best strategy, or the user's own function.
    ValueError if the name is unknown, or the strategy does not exist with these rules."""
    if name in _RULES_OF_THUMB:
        return _RULES_OF_THUMB[name](rules)
    if name in GOALS:
        return solve(rules, name)[0]
    function = function_in(name, "strategy")
    if function is None:
        raise ValueError(f"strategy must be one of {', '.join(NAMES)}, or {FORMS}, not {shown(name)}")
    return custom(function, name)


def function_in(name: str, what: str) -> Callable[..., Any] | None:
    """Return the function that a text in one of the FORMS names; None for other texts. ValueError, about `what`, if it
    fails."""
    own = split_own(name)
    return None if own is None or own[2] else cast("Callable[..., Any]", load_own(*own[:2], what))


def custom(choose: Callable[..., int], name: str | None = None) -> Strategy:
    """Make a strategy from a function of the throw (a simple strategy), or of the throw and the dice aside (a full one).

    Both are tuples of face values in rising order; the function returns how many of the lowest to throw again.
    """
    if not callable(choose):
        raise ValueError(f"a strategy must be a function of the throw, or of throw and aside, not {shown(choose)}")
    required = [p for p in inspect.signature(choose).parameters.values() if p.default is p.empty]
    if not 1 <= len(required) <= 2:
        raise ValueError(f"a strategy must take the throw, or throw and aside, not {len(required)} arguments")
    return Strategy(str(name or getattr(choose, "__name__", "custom")), choose, "throw" if len(required) == 1 else "aside")
