"""Strategies of the game of 30s, and the distribution of their scores in whole numbers of cases."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from dice_envs.core.game import Variant
from dice_envs.core.options import check_choice, is_whole, shown
from dice_envs.games.thirties import Options

__all__ = ["Dice", "Distribution", "Player", "Rules", "Strategy", "asides", "check_alone", "differences", "throws"]

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
    found = []
    for throw in itertools.combinations_with_replacement(range(1, num_faces + 1), num_dice):
        ways = math.factorial(num_dice)
        for count in Counter(throw).values():
            ways //= math.factorial(count)
        found.append((throw, ways))
    return tuple(found)


def asides(rules: Rules) -> Iterator[Dice]:
    """Yield all sets of dice that can lie aside before a throw, fewest dice first."""
    for aside in range(rules.num_dice):
        yield from itertools.combinations_with_replacement(range(1, rules.num_faces + 1), aside)


def check_alone(variant: Variant, wanted: str) -> None:
    """Raise ValueError for the table game, naming what is wanted."""
    players = variant.options.num_players
    if players != 1:
        raise ValueError(f"num_players must be 1 for {wanted}, not {players}: optimal play of the table game is unknown")


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
    """A strategy under given rules: score distributions and expected scores from any position. Results are cached."""

    def __init__(self, rules: Rules, strategy: Strategy) -> None:
        self.rules = rules
        self.strategy = strategy
        self._moves: dict[Any, dict[tuple[int, Any], int]] = {}
        self._to_come: dict[Any, int] = {}

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
        """Return the score's distribution before the throw that follows these dice aside (by default the first throw)."""
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
        """Return the expected pips to come, in units of 1 / cases(num_dice)."""
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
        """Return the expected score before the throw that follows these dice aside."""
        dice = self.rules.num_dice - len(aside)
        return sum(aside) + Fraction(self._score_to_come(dice, self.strategy.key(tuple(aside))), self.rules.cases(dice))

    def expected_with(self, num_dice: int) -> Fraction:
        """Return the expected score of that many dice alone. ValueError for strategies that are not simple."""
        if not self.strategy.simple:
            raise ValueError(f"{self.strategy.name} is not simple: its choices depend on what lies aside")
        return Fraction(self._score_to_come(num_dice, 0), self.rules.cases(num_dice))

    def advice(self, throw: Dice, aside: Dice = ()) -> tuple[int, Fraction]:
        """Return the number of dice to throw again, and the expected final score after that, dice aside included."""
        again = self.strategy(throw, tuple(aside))
        kept = tuple(sorted((*aside, *throw[again:])))
        if again == 0:
            return 0, Fraction(sum(kept))
        return again, sum(kept) + Fraction(self._score_to_come(again, self.strategy.key(kept)), self.rules.cases(again))


def differences(rules: Rules, first: Strategy, second: Strategy) -> Iterator[tuple[Dice, Dice, int, int]]:
    """Yield (throw, aside, first's choice, second's choice) wherever they differ, reachable or not.

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
