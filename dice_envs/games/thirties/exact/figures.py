"""Figures of the paper on the game of 30s: exact distributions of a strategy's scores, and how much of the game is skill.

Source: M. Veeningen, "The game of 30s: an analysis" (2008), sections 2, 3, 5 and 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from dice_envs.core.options import check_range
from dice_envs.games.thirties.exact.strategies import Dice, Goal, Rules, Strategy, expected_given, throws, worths


class Distribution(NamedTuple):
    """Scores `first`, `first` + 1, … with the probabilities `weights` / `total`."""

    first: int
    weights: tuple[int, ...]
    total: int

    def mean_of(self, worth: Callable[[int], Fraction | int]) -> Fraction:
        """Return the expectation of a function of the score."""
        summed = sum((weight * worth(self.first + i) for i, weight in enumerate(self.weights) if weight), Fraction(0))
        return Fraction(summed) / self.total

    @property
    def mean(self) -> Fraction:
        """The expected score."""
        return Fraction(sum((self.first + i) * weight for i, weight in enumerate(self.weights)), self.total)


class Player:
    """A strategy under given rules: score distributions and expected scores from any position. Its choices are cached."""

    def __init__(self, rules: Rules, strategy: Strategy) -> None:
        self.rules = rules
        self.strategy = strategy
        self._moves: dict[Any, dict[tuple[int, Any], int]] = {}

    def _moves_from(self, num_dice: int, key: Any) -> dict[tuple[int, Any], int]:
        """Return (dice thrown again, dice put aside or their sum) → number of cases."""
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
        """Return the score's distribution before the throw that follows these dice aside (by default the first throw).

        Raises:
            ValueError: more dice lie aside than the rules have.
        """
        rules = self.rules
        check_range("the number of dice aside", len(aside), 0, rules.num_dice)
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

    def expected_score(self, aside: Dice = ()) -> Fraction:
        """Return the expected score before the throw that follows these dice aside."""
        return self.distribution(aside).mean

    def expected_with(self, num_dice: int) -> Fraction:
        """Return the expected score of that many dice alone.

        Raises:
            ValueError: the strategy is not simple, or the rules have fewer dice.
        """
        check_range("num_dice", num_dice, 0, self.rules.num_dice)
        if not self.strategy.simple:
            raise ValueError(f"{self.strategy.name} is not simple: its choices depend on what lies aside")
        aside = (1,) * (self.rules.num_dice - num_dice)  # any dice
        return self.expected_score(aside) - len(aside)

    def advice(self, throw: Dice, aside: Dice = ()) -> tuple[int, Fraction]:
        """Return the number of dice to throw again, and the expected final score after that, dice aside included."""
        again = self.strategy(throw, tuple(aside))
        return again, self.expected_score(tuple(sorted((*aside, *throw[again:]))))


class Analysis(NamedTuple):
    """The paper's figures of a strategy (section 5.2), exact."""

    name: str
    rules: Rules
    distribution: Distribution
    score: Fraction  # expected
    reached: Fraction  # P(score >= target)
    below: Fraction  # expected points below the target, which the player gets
    above: Fraction  # expected points above it
    given: Fraction | None  # expected points for the next player; None: infinite

    def value(self, goal: Goal) -> Fraction:
        """Return the strategy's value for a goal. ValueError as `worths`."""
        return self.distribution.mean_of(worths(self.rules, goal).__getitem__)


def analyse(rules: Rules, strategy: Strategy | Player) -> Analysis:
    """Return all figures of a strategy from its distribution of scores."""
    player = strategy if isinstance(strategy, Player) else Player(rules, strategy)
    found, given = player.distribution(), expected_given(rules)
    below = found.mean_of(lambda score: max(0, rules.target - score))
    above = found.mean - rules.target + below
    passed_on = None if above else Fraction(0)
    if given is not None:
        passed_on = found.mean_of(lambda score: given[max(0, score - rules.target)])
    reached = found.mean_of(lambda score: int(score >= rules.target))
    return Analysis(player.strategy.name, rules, found, found.mean, reached, below, above, passed_on)


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
