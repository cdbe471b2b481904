"""Score dice, exactly: the distribution of the score for any pools and tie rule, sorted and unsorted.

Everything is counted in whole numbers in one sweep over the faces from the highest down, without listing rolls. A
die joins the sweep at the face equal to its size. Of m dice not yet placed, any k can show the current face, in
C(m, k) ways, and the rest show lower faces.

The scores of the rolls form a polynomial with one coefficient for each score, packed into one integer (Kronecker
substitution). So a point is a bit shift, and adding two polynomials is one addition of integers.

The quantities are those of Isaksen et al., "Characterising Score Distributions in Dice Games" (2016), section 2.
`dice_envs.games.score_dice` holds the rules; tests play the game to check what is counted here.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.options import check_choice
from dice_envs.core.work import advance
from dice_envs.exact.contract import Shown, Solved, SolvedPlot, SolvedTable
from dice_envs.games.score_dice import Options

PAIRINGS = ("sorted", "unsorted")

# The dice to roll again: sizes of the tied dice, A's and B's, each largest first.
_Tied = tuple[tuple[int, ...], tuple[int, ...]]
_NOTHING_TIED: _Tied = ((), ())
# (score, tied dice) → how many rolls lead to it.
_Ways = Mapping[tuple[int, _Tied], int]
_Counts = dict[tuple[int, _Tied], int]  # the same while it is counted


@dataclasses.dataclass(frozen=True)
class ScoreDistribution:
    """The exact distribution of a score.

    Attributes:
        chances: score (A's points minus B's) → its probability; positive, adding up to 1, in order of rising scores.
    """

    chances: Mapping[int, Fraction]

    @property
    def win_bias(self) -> Fraction:
        """100 (P(score > 0) - P(score < 0)): how much A is favoured, in percentage points."""
        return 100 * sum((chance if score > 0 else -chance for score, chance in self.chances.items() if score), Fraction(0))

    @property
    def tie_percentage(self) -> Fraction:
        """100 P(score = 0), in percent."""
        return 100 * self.chances.get(0, Fraction(0))

    @property
    def mean_square(self) -> Fraction:
        """E[score²]."""
        return sum((score * score * chance for score, chance in self.chances.items()), Fraction(0))

    @property
    def closeness(self) -> float:
        """1 / √E[score²]: high when games end close; infinite when every game ends even."""
        square = self.mean_square
        return 1 / math.sqrt(square) if square else math.inf

    @property
    def cells(self) -> tuple[str, str, str]:
        """Win bias, tie % and closeness to the digits that tables print."""
        return f"{float(self.win_bias):.2f}", f"{float(self.tie_percentage):.2f}", f"{self.closeness:.3f}"


def score_distribution(
    pool_a: Sequence[int] | int,
    pool_b: Sequence[int] | int,
    ties: str = "none",
    pairing: str = "sorted",
) -> ScoreDistribution:
    """Return the exact distribution of the score of one game.

    Args:
        pool_a: sizes of A's dice, as in the game's options.
        pool_b: sizes of B's dice.
        ties: "none", "a" or "reroll", as in the game's options.
        pairing: "sorted", the highest die with the highest and so on, or "unsorted", a random pairing. Spare lowest
            dice of the larger pool are dropped before either.

    Where tied dice are rolled again it advances on the way (see `dice_envs.core.work`), and takes minutes for pools of many
    different dice.

    Raises:
        ValueError: a wrong pool, tie rule or pairing.
    """
    check_choice("pairing", pairing, PAIRINGS)
    options = Options(pool_a=pool_a, pool_b=pool_b, ties=ties)  # type: ignore[arg-type]
    a, b = options.pools
    if options.ties == "reroll":
        return ScoreDistribution(_normalised(_settle((a, b), _telling(a, b, pairing), {})))
    ways = (_count_sorted if pairing == "sorted" else _count_unsorted)(a, b, options.ties)
    return ScoreDistribution(_normalised({score: number for (score, _), number in ways.items()}))


def _telling(a: tuple[int, ...], b: tuple[int, ...], pairing: str) -> Callable[..., _Ways]:
    """Return a function that counts rolls of these pools and of their tied dice, and advances.

    Counting takes about ten times as long with each column more.
    """
    columns = min(len(a), len(b))
    subsets = count_subsets(a)[1:columns] * count_subsets(b)[1:columns]
    total = 10.0**columns + float(subsets @ 10.0 ** np.arange(1, columns))

    def count(own: tuple[int, ...], other: tuple[int, ...], ties: str) -> _Ways:
        def part(share: float) -> None:
            advance(share * 10 ** min(len(own), len(other)), total)

        if pairing == "sorted" and not len(set(own)) == len(set(other)) == 1:
            return _sweep_with_dice(own, other, part)
        ways = (_count_sorted if pairing == "sorted" else _count_unsorted)(own, other, ties)
        part(1.0)
        return ways

    return count


def count_choices(kinds: Iterable[Sequence[float]]) -> np.ndarray:
    """Count the ways to take n dice, by n, if k dice of kind i can be taken in kinds[i][k] ways."""
    return functools.reduce(np.convolve, (np.array(ways, np.float64) for ways in kinds))


def count_subsets(pool: tuple[int, ...]) -> np.ndarray:
    """Count the different ways to choose n dice from a pool, by n."""
    return count_choices([1] * (held + 1) for held in Counter(pool).values())


def _normalised(ways: Mapping[int, int]) -> dict[int, Fraction]:
    total = sum(ways.values())
    return {score: Fraction(ways[score], total) for score in sorted(ways) if ways[score]}


# --- rolling tied dice again ----------------------------------------------------------------------------------------


def _settle(pools: _Tied, count: Callable[..., _Ways], known: dict[_Tied, dict[int, int]]) -> dict[int, int]:
    """Return final score → weight, with tied dice rolled again until none is tied; weights have no common divisor.

    A roll in which all pairs tie changes nothing, so it is left out and the other rolls are renormalised. `known` caches
    results and is modified in place.
    """
    if pools in known:
        return known[pools]
    after: dict[_Tied, Counter[int]] = defaultdict(Counter)
    columns = min(map(len, pools))
    for (score, tied), number in count(*pools, "reroll").items():
        if len(tied[0]) < columns:
            after[tied][score] += number
    parts = [(scores, _settle(tied, count, known) if tied[0] else {0: 1}) for tied, scores in after.items()]
    common = math.lcm(*(sum(rest.values()) for _, rest in parts))
    weights: Counter[int] = Counter()
    for scores, rest in parts:
        scale = common // sum(rest.values())
        for score, number in scores.items():
            for more, weight in rest.items():
                weights[score + more] += number * scale * weight
    divisor = math.gcd(*weights.values())
    known[pools] = {score: weight // divisor for score, weight in weights.items()}
    return known[pools]


def _faces_against(size_a: int, size_b: int) -> tuple[int, int, int]:
    """Count the rolls of two dice in which the first is lower, equal and higher."""
    low = min(size_a, size_b)
    won = low * (low - 1) // 2 + max(size_a - size_b, 0) * size_b
    return size_a * size_b - low - won, low, won


# --- sorted pairs ---------------------------------------------------------------------------------------------------


def _count_sorted(a: tuple[int, ...], b: tuple[int, ...], ties: str) -> _Ways:
    """Count rolls by score and tied dice, highest die against highest. Tied dice are listed only with ties="reroll".

    Then all dice of each side have one size: it does not matter which dice tied, only how many.
    """
    columns = min(len(a), len(b))
    if ties != "reroll":
        # In half points: a pair that is lost counts 0, a tie that scores nothing 1, a pair that is won 2.
        tie = {"none": 1, "a": 2}[ties]
        return {(exponent - columns, _NOTHING_TIED): number for exponent, number in enumerate(_sweep(a, b, 2, tie)) if number}
    ways = {}
    for exponent, number in enumerate(_sweep(a, b, 1, columns + 1)):
        if number:
            tied, won = divmod(exponent, columns + 1)
            ways[won - (columns - tied - won), (a[:tied], b[:tied])] = number
    return ways


def _sweep(a: tuple[int, ...], b: tuple[int, ...], won: int, tied: int) -> list[int]:
    """Return the coefficients of the sum over all rolls of z ** (`won` for each pair that A wins + `tied` for each tied pair).

    A state is (dice of A not yet placed, the same of B). Dice are paired in the order of placing, so only one side can
    have placed dice that still wait for a partner. Their number is the lead: A's placed dice minus B's.
    """
    columns = min(len(a), len(b))
    bits = (math.prod(a) * math.prod(b)).bit_length()
    won, tied = won * bits, tied * bits
    joining_a, joining_b = Counter(a), Counter(b)
    choose = [[math.comb(m, k) for k in range(m + 1)] for m in range(max(len(a), len(b)) + 1)]
    states = {(0, 0): 1}
    entered_a = entered_b = 0
    for face in range(max(a[0], b[0]), 0, -1):
        more_a, more_b = joining_a[face], joining_b[face]
        entered_a += more_a
        entered_b += more_b
        offset = entered_a - entered_b
        # Placing A's and B's dice one after the other costs far less than both at once. The side whose dice wait is
        # placed second. Dice that the first side leaves unmet show this face, so the second side's dice tie with them.
        b_placed: dict[tuple[int, int], int] = defaultdict(int)  # A's dice wait, or none
        a_placed: dict[tuple[int, int], int] = defaultdict(int)  # B's dice wait
        for (i, j), ways in states.items():
            i += more_a
            j += more_b
            lead = offset - i + j
            if lead >= 0:
                for k in range(j if face == 1 else 0, j + 1):
                    b_placed[i, j - k] += ways * choose[j][k] << won * min(k, lead)
            else:
                for k in range(i if face == 1 else 0, i + 1):
                    a_placed[i - k, j] += ways * choose[i][k]
        after: dict[tuple[int, int], int] = defaultdict(int)
        for (i, j), ways in b_placed.items():
            unmet = max(0, i - j - offset)  # B's dice of this face
            for k in range(i if face == 1 else 0, i + 1):
                after[i - k, j] += ways * choose[i][k] << tied * min(k, unmet)
        for (i, j), ways in a_placed.items():
            unmet = max(0, offset - i + j)  # A's dice of this face
            for k in range(j if face == 1 else 0, j + 1):
                after[i, j - k] += ways * choose[j][k] << tied * min(k, unmet)
        states = after
    top = columns * max(won, tied) // bits
    return _unpacked(states[0, 0], bits, top + 1)


def _unpacked(packed: int, bits: int, length: int) -> list[int]:
    """Return the coefficients of a packed polynomial, each of at most `bits` bits."""
    mask = (1 << bits) - 1
    return [packed >> bits * exponent & mask for exponent in range(length)]


def _kinds(pool: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return (size, number) of each kind of die, largest first."""
    return tuple(sorted(Counter(pool).items(), reverse=True))


def _placements(
    kinds: tuple[tuple[int, int], ...], left: tuple[int, ...], face: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Yield the choices of dice that show the face: (their sizes, largest first; dice left of each kind; ways)."""
    ranges = []
    for (size, _), count in zip(kinds, left, strict=True):
        ranges.append(range(count, count + 1) if face == 1 else range(count + 1) if face <= size else range(1))
    for taken in itertools.product(*ranges):
        dice = tuple(size for (size, _), k in zip(kinds, taken, strict=True) for _ in range(k))
        ways = math.prod(math.comb(count, k) for count, k in zip(left, taken, strict=True))
        yield dice, tuple(count - k for count, k in zip(left, taken, strict=True)), ways


def _sweep_with_dice(a: tuple[int, ...], b: tuple[int, ...], part: Callable[[float], Any]) -> _Ways:
    """Count sorted rolls by score and tied dice, for pools of several kinds. Calls `part` with each share that is done.

    Of equal faces the larger die counts as the higher, as in the game.
    """
    kinds_a, kinds_b = _kinds(a), _kinds(b)
    placements = {
        (side, left, face): list(_placements(kinds, left, face))
        for side, kinds in enumerate((kinds_a, kinds_b))
        for left in itertools.product(*(range(count + 1) for _, count in kinds))
        for face in range(1, max(a[0], b[0]) + 1)
    }
    start = tuple(count for _, count in kinds_a), tuple(count for _, count in kinds_b)
    states: dict[tuple[tuple[int, ...], tuple[int, ...]], _Counts] = {start: {(0, _NOTHING_TIED): 1}}
    faces = range(max(a[0], b[0]), 0, -1)
    costs = [3.0 ** sum(size >= face for size, _ in (*kinds_a, *kinds_b)) for face in faces]  # roughly, in proportion
    for face, cost in zip(faces, costs, strict=True):
        after: dict[tuple[tuple[int, ...], tuple[int, ...]], _Counts] = defaultdict(lambda: defaultdict(int))
        for (left_a, left_b), ways in states.items():
            lead = (len(a) - sum(left_a)) - (len(b) - sum(left_b))
            pairs = itertools.product(placements[0, left_a, face], placements[1, left_b, face])
            for (dice_a, rest_a, ways_a), (dice_b, rest_b, ways_b) in pairs:
                # Dice that wait from higher faces come first: they win against this face's.
                points = min(len(dice_b), lead) if lead >= 0 else -min(len(dice_a), -lead)
                met_a = dice_a[max(0, -lead) :]
                met_b = dice_b[max(0, lead) :]
                ties = min(len(met_a), len(met_b))
                _add(after[rest_a, rest_b], ways, points, (met_a[:ties], met_b[:ties]), ways_a * ways_b)
        part(cost / sum(costs))
        states = after
    (final,) = states.values()
    return final


def _add(target: _Counts, ways: _Ways, points: int, tied: _Tied, factor: int) -> None:
    """Add rolls to `target`, each followed by `factor` placements that score `points` and leave these dice tied. In place."""
    more_a, more_b = tied
    for (score, (tied_a, tied_b)), number in ways.items():
        target[score + points, (_merged(tied_a, more_a), _merged(tied_b, more_b))] += number * factor


def _merged(dice: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(dice + more, reverse=True)) if more else dice


# --- random pairs ---------------------------------------------------------------------------------------------------


def _count_unsorted(a: tuple[int, ...], b: tuple[int, ...], ties: str) -> _Ways:
    """Count rolls and random pairings by score and tied dice, once the larger pool's spare lowest dice are dropped."""
    if len(a) < len(b) or (len(a) == len(b) and len(set(a)) < len(set(b))):
        swapped = _count_random_pairs(b, a, {"none": 0, "a": -1, "reroll": 0}[ties], ties == "reroll")
        return {(-score, (tied_a, tied_b)): number for (score, (tied_b, tied_a)), number in swapped.items()}
    return _count_random_pairs(a, b, {"none": 0, "a": 1, "reroll": 0}[ties], ties == "reroll")


# (kinds of the smaller pool's dice not yet met; tied dice so far) → packed polynomial in half points
_Met = dict[tuple[tuple[int, ...], _Tied], int]


def _count_random_pairs(larger: tuple[int, ...], smaller: tuple[int, ...], tie_points: int, tell_tied: bool) -> _Ways:
    """Count rolls and pairings by score of the larger pool and tied dice (the larger pool's first)."""
    kinds = _kinds(smaller)
    columns = len(smaller)
    bits = (math.prod(larger) * math.prod(smaller) * math.factorial(columns)).bit_length()

    def meet(states: _Met, die: int, outcomes: list[tuple[int, int, int]]) -> _Met:
        """Let a die of the larger pool meet any of the dice left; `outcomes` (lost, tied, won) counts its results by kind."""
        after: _Met = defaultdict(int)
        for (left, (tied_l, tied_s)), ways in states.items():
            for number, (size, _) in enumerate(kinds):
                if not left[number]:
                    continue
                lost, tied, won = outcomes[number]
                rest = (*left[:number], left[number] - 1, *left[number + 1 :])
                ways_here = ways * left[number]
                after[rest, (tied_l, tied_s)] += ways_here * lost + (ways_here * won << 2 * bits)
                if tied:
                    tie = (_merged(tied_l, (die,)), _merged(tied_s, (size,))) if tell_tied else _NOTHING_TIED
                    after[rest, tie] += ways_here * tied << (1 + tie_points) * bits
        return after

    start: _Met = {(tuple(count for _, count in kinds), _NOTHING_TIED): 1}
    if len(larger) == columns:
        final = start
        for die in larger:
            final = meet(final, die, [_faces_against(die, size) for size, _ in kinds])
    else:
        final = _meet_kept(larger, smaller, start, meet)
    ways: dict[tuple[int, _Tied], int] = {}
    for (_, tied), packed in final.items():
        for exponent, number in enumerate(_unpacked(packed, bits, 2 * columns + 1)):
            if number:
                ways[exponent - columns, tied] = number
    return ways


def _meet_kept(larger: tuple[int, ...], smaller: tuple[int, ...], start: _Met, meet: Callable[..., _Met]) -> _Met:
    """Do the same with spare dice.

    The larger pool's dice are placed from the highest face down, and the first are kept: one for each of the smaller pool's.
    """
    kinds, met = _kinds(larger), [size for size, _ in _kinds(smaller)]
    columns = len(smaller)
    states: dict[tuple[int, ...], _Met] = {tuple(count for _, count in kinds): start}
    for face in range(larger[0], 0, -1):
        outcomes = [(max(0, size - face), int(face <= size), min(size, face - 1)) for size in met]
        after: dict[tuple[int, ...], _Met] = defaultdict(lambda: defaultdict(int))
        for left, reached in states.items():
            placed = len(larger) - sum(left)
            for dice, rest, ways in _placements(kinds, left, face):
                paired = reached
                for die in dice[: max(0, columns - placed)]:
                    paired = meet(paired, die, outcomes)
                target = after[rest]
                for key, packed in paired.items():
                    target[key] += packed * ways
        states = after
    (final,) = states.values()
    return final


# --- results to print -------------------------------------------------------------------------------------------------

Pool = tuple[int, ...]  # sizes of dice
MOST_TICKS = 13  # scores that have a tick of their own


def solve_game(
    variant: Variant,
    progress: Any,
    report: bool,
    pairing: Annotated[str, "sorted: highest with highest; unsorted: a random pairing."] = "sorted",
) -> Solved:
    """Exact distribution of the score of score dice, as fractions, and its win bias, ties and closeness.

    The score is A's points minus B's. Win bias is 100 (P(score > 0) - P(score < 0)), closeness 1 / √E[score²].

    Example: solve score_dice -o pool_a=6,6,6,6,6 -o pool_b=6,6,8,8,8 -o ties=a --pairing sorted
    """
    options = variant.options
    check_choice("pairing", pairing, PAIRINGS)
    game = f"{pool_name(options.pool_a)} v {pool_name(options.pool_b)}, {pairing}, ties={options.ties}"
    with progress(game):
        found = score_distribution(options.pool_a, options.pool_b, options.ties, pairing)
    rows = [(f"{score:+d}" if score else "0", f"{float(chance):.6f}", str(chance)) for score, chance in found.chances.items()]
    bias, ties, closeness = found.cells
    shown: list[Shown] = [SolvedTable(game, ("score", "chance", "exactly"), rows, ())]
    shown.append(f"win bias {bias}, ties {ties} %, closeness {closeness}")
    data = {
        "win_bias": float(found.win_bias),
        "tie_percentage": float(found.tie_percentage),
        "closeness": found.closeness,
        "distribution": {str(score): str(chance) for score, chance in found.chances.items()},
    }
    plot = SolvedPlot(
        "score_dice_distribution", "The exact distribution of the score.", lambda axes: plot_histogram(axes, found, game)
    )
    return Solved(shown, data, plot if report else None)


def pool_name(pool: Sequence[int]) -> str:
    """Return a pool as dice players write it, smallest dice first: "2d6/3d8"."""
    return "/".join(f"{count}d{size}" for size, count in sorted(Counter(pool).items()))


def plot_histogram(axes: Any, found: ScoreDistribution, title: str) -> None:
    """Plot the distribution as bars, in percent, A's wins in one colour and B's in another, on axes of matplotlib."""
    scores = list(found.chances)
    colours = ["#3b6ea5" if score > 0 else "#b5533c" if score < 0 else "#8a8a8a" for score in scores]
    axes.bar(scores, [100 * float(chance) for chance in found.chances.values()], color=colours, width=0.85)
    bias, ties, closeness = found.cells
    axes.set_title(f"{title}\nbias {bias}, ties {ties} %, closeness {closeness}", fontsize=11)
    axes.set_xlabel("score: A's points − B's")
    axes.set_ylabel("% of games")
    if len(scores) <= MOST_TICKS:
        axes.set_xticks(scores)
    else:
        axes.locator_params(axis="x", integer=True)
