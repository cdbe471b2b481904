"""Chances in the cooperative Shakes: tallies, the argument over a patient in closed form, posteriors of the treatments.

A tally says how many patients were treated and saved with each treatment. It is all that a policy needs to know.
Before the first patient all treatments are equivalent. So for policies that do not tell treatments apart by their place,
tallies that differ only in the order of the treatments are merged (`merged=True`), which leaves one in 340 of the tallies of
six players. Policies that do, such as a trained network, are evaluated tally by tally (`merged=False`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import bdtrc, binom

from dice_envs.core.kernel import kernel
from dice_envs.exact.kept import kept
from dice_envs.games.shakes import FACES, Options, assignments

MOST_TALLIES = 20_000_000  # over all numbers of patients together; more would not fit into a few GiB
MOST_KEPT = 2**29  # bytes of tallies that stay in memory, and of solutions; the last ones stay whatever they take
TIE = 1e-12  # scores closer than this are equal: sums in another order differ by less, true differences by more
TABLE_STEP = 8  # tables are built for multiples of this many patients, so that the next patients reuse them

Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(treated (m, n), saved (m, n)) → the probability of each treatment, (m, n) float64, rows summing to 1."""


class Problem(NamedTuple):
    """A cooperative game as the analysis sees it."""

    efficacies: tuple[int, ...]  # pips, highest first; dealt in a random order
    num_patients: int
    goal: int  # patients saved with which the team wins
    open_efficacies: bool = False  # whether the efficacy of each treatment is known to all

    @classmethod
    def of(cls, options: Options) -> Problem:
        """Return the problem that a game with these options poses. ValueError for a competitive game."""
        if options.competitive:
            raise ValueError('the exact analysis needs variation="cooperative", not "competitive"')
        return cls(options.efficacies, options.patients, options.to_win, options.open_efficacies)

    @property
    def kinds(self) -> tuple[int, ...]:
        """The different efficacies, highest first."""
        return tuple(sorted(set(self.efficacies), reverse=True))


class _Level(NamedTuple):
    """All tallies after one number of patients."""

    treated: np.ndarray  # (m, n) int16
    saved: np.ndarray  # (m, n) int16
    keys: np.ndarray  # (m,) uint64, rising
    children: np.ndarray | None  # (m, n, 2) int32: row in the next level after a loss, after a recovery


def best_of(scores: np.ndarray) -> np.ndarray:
    """Return probabilities that share the choice equally among the highest scores of each row, (m, n) float64."""
    best = scores >= scores.max(axis=1, keepdims=True) - TIE
    return best / best.sum(axis=1, keepdims=True)


def rounded_up(count: int) -> int:
    """Return the size of the table that serves this many patients: a multiple of TABLE_STEP."""
    return -(-count // TABLE_STEP) * TABLE_STEP


def code_of(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Return one number for each (treated, saved): 0 for (0, 0), 1 and 2 for (1, 0) and (1, 1), and so on."""
    treated = treated.astype(np.int64)
    return treated * (treated + 1) // 2 + saved


def code_bits(num_patients: int) -> int:
    """Return the bits that hold the code of a treatment."""
    return (((num_patients + 1) * (num_patients + 2)) // 2).bit_length()


def keys_of(codes: np.ndarray, bits: int) -> np.ndarray:
    """Pack the codes of all treatments (m, n) into one number for each tally, (m,) uint64."""
    keys = np.zeros(len(codes), np.uint64)
    for column in codes.T:
        keys = (keys << np.uint64(bits)) | column.astype(np.uint64)
    return keys


def count_merged(problem: Problem) -> int:
    """Return about how many merged tallies there are."""
    n = len(problem.efficacies)
    return math.comb(problem.num_patients + 2 * n, 2 * n) // math.factorial(n)


@kept(MOST_KEPT, lambda levels: sum(array.nbytes for level in levels for array in level if array is not None))
def tallies(problem: Problem, merged: bool = True) -> list[_Level]:
    """List all tallies that can be reached: one level for each number of patients treated, 0 to num_patients.

    Args:
        problem: the game.
        merged: whether tallies that differ only in the order of the treatments count as one.

    Raises:
        ValueError: there are too many.
    """
    n, bits = len(problem.efficacies), code_bits(problem.num_patients)
    about = count_merged(problem)
    if about > MOST_TALLIES or n * bits > 64:  # of a tally's key
        raise ValueError(
            f"num_patients={problem.num_patients} with num_players={n} has about {about:,} tallies; "
            f"the exact analysis takes {MOST_TALLIES:,} at most"
        )
    if not merged and math.comb(problem.num_patients + 2 * n, 2 * n) > MOST_TALLIES:
        raise ValueError(f"num_players={n} has too many tallies to tell the treatments apart; fewer players are possible")
    levels = []
    codes = np.zeros((1, n), np.int16)
    keys = keys_of(codes, bits)
    treated_of = np.repeat(np.arange(problem.num_patients + 1), np.arange(1, problem.num_patients + 2)).astype(np.int16)
    for patients in range(problem.num_patients + 1):
        treated = treated_of[codes]
        saved = (codes - treated.astype(np.int64) * (treated.astype(np.int64) + 1) // 2).astype(np.int16)
        if patients == problem.num_patients:
            levels.append(_Level(treated, saved, keys, None))
            break
        reached = np.empty((len(codes), n, 2), np.uint64)
        for one in range(n):
            for recovered in (0, 1):
                after = codes.copy()
                after[:, one] += treated[:, one] + 1 + recovered
                if merged:
                    after.sort(axis=1)
                reached[:, one, recovered] = keys_of(after, bits)
        next_keys, rows = np.unique(reached, return_inverse=True)
        levels.append(_Level(treated, saved, keys, rows.reshape(reached.shape).astype(np.int32)))
        keys = next_keys
        places = np.arange(n - 1, -1, -1, dtype=np.uint64) * np.uint64(bits)
        codes = ((keys[:, None] >> places) & np.uint64((1 << bits) - 1)).astype(np.int16)
    return levels


# --- the argument ---------------------------------------------------------------------------------------------------


def kept_die(treated: int, saved: int) -> list[Fraction]:
    """Return P(the kept die shows v) for v = 1 … FACES, for a maester with these numbers of patients treated and saved.

    The kept die is the (saved + 1)-th lowest of treated + 1 dice. It is at most v if at least saved + 1 of them are:
    P = P(Bin(treated + 1, v / FACES) > saved), which is the distribution function at v / FACES of a
    Beta(saved + 1, treated - saved + 1) variable. In other words the die is that variable, times FACES, rounded up.
    """
    if not 0 <= saved <= treated:
        raise ValueError(f"saved must be a whole number from 0 to treated = {treated}, not {saved}")
    dice = treated + 1

    def at_most(v: int) -> Fraction:
        ways = sum(math.comb(dice, k) * v**k * (FACES - v) ** (dice - k) for k in range(saved + 1, dice + 1))
        return Fraction(ways, FACES**dice)

    return [at_most(v) - at_most(v - 1) for v in range(1, FACES + 1)]


def beta_tails(most_treated: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distribution function and density of Beta(saved + 1, failed + 1) at the points, each (codes, points) float64.

    The rows are all codes up to most_treated. The distribution function at x is P(Bin(treated + 1, x) > saved).
    """
    treated = np.repeat(np.arange(most_treated + 1), np.arange(1, most_treated + 2))[:, None]
    saved = np.arange(len(treated))[:, None] - treated * (treated + 1) // 2
    ways = binom(treated, saved)
    return bdtrc(saved, treated + 1, points), (treated + 1) * ways * points**saved * (1 - points) ** (treated - saved)


@functools.lru_cache(maxsize=8)
def dice_table(most_treated: int) -> tuple[np.ndarray, np.ndarray]:
    """Return P(kept = v) and P(kept < v), each (codes, FACES)."""
    at_most, _ = beta_tails(most_treated, np.arange(FACES + 1) / FACES)
    return np.maximum(np.diff(at_most, axis=1), 0.0), at_most[:, :-1].copy()


def kept_chances(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Return P(each maester keeps v), (m, n, FACES) float64, from the patients treated and saved by each (m, n)."""
    return dice_table(rounded_up(int(treated.max(initial=0))))[0][code_of(treated, saved)]


@kernel(allocates=False)
def _multiply(codes, row, chances, out):
    """Write the product of `chances[code]` over each set of maesters, (sets, faces); bit k is maester k. In place."""
    out[0] = 1.0
    for one in range(codes.shape[1]):
        code = codes[row, one]
        for subset in range(1 << one):
            for v in range(FACES):
                out[subset | (1 << one), v] = out[subset, v] * chances[code, v]


@kernel(allocates=False)
def _win_among(among, all_equal, all_lower, random_ties, wins):
    """Write the winning chances when the set `among` argues: its row of `wins`, from those of its subsets. In place."""
    n = wins.shape[1]
    wins[among] = 0.0
    again = 0.0
    tied = among
    while tied > 0:  # all non-empty subsets, the whole set first
        chance = 0.0  # P(exactly these keep the highest die)
        for v in range(FACES):
            chance += all_equal[tied, v] * all_lower[among & ~tied, v]
        size = 0
        for one in range(n):
            size += (tied >> one) & 1
        if random_ties or size == 1:
            for one in range(n):
                wins[among, one] += (chance / size) * ((tied >> one) & 1)
        elif tied == among:
            again = chance
        else:
            for one in range(n):
                wins[among, one] += chance * wins[tied, one]
        tied = (tied - 1) & among
    if again > 0.0:
        for one in range(n):
            wins[among, one] /= 1.0 - again


@kernel
def _argue(codes, equal, lower, random_ties, out):
    """Write each maester's chance to win when one of the last sets argues: a recursion over those who may be tied. In place."""
    count, n = codes.shape
    sets = 1 << n
    all_equal = np.empty((sets, FACES))  # P(all of the set keep v)
    all_lower = np.empty((sets, FACES))  # P(all of the set keep less)
    wins = np.zeros((sets, n))  # P(each maester wins when this set argues)
    for row in range(count):
        _multiply(codes, row, equal, all_equal)
        _multiply(codes, row, lower, all_lower)
        for among in range(max(1, sets - out.shape[1]) if random_ties else 1, sets):
            _win_among(among, all_equal, all_lower, random_ties, wins)
        out[row] = wins[sets - out.shape[1] :]


def argument_chances(treated: np.ndarray, saved: np.ndarray, ties: Literal["again", "random"] = "again") -> np.ndarray:
    """Return P(each maester wins the argument when all argue), (m, n) float64, in closed form.

    With ties argued again, let P(S, U) be the chance that of those in S exactly U keep the highest die. Then i wins
    among S with W(S, i) = [P(S, {i}) + sum of P(S, U) W(U, i)] / (1 - P(S, S)), summed over U strictly between {i} and S.
    """
    return _argued(treated, saved, ties, 1)[:, 0]


def set_chances(treated: np.ndarray, saved: np.ndarray, ties: Literal["again", "random"] = "again") -> np.ndarray:
    """Return P(each maester wins when exactly this set argues), (m, 2**n, n) float64; bit k of a set is maester k."""
    return _argued(treated, saved, ties, 1 << treated.shape[1])


def tie_chances(treated: np.ndarray, saved: np.ndarray, ties: Literal["again", "random"]) -> np.ndarray:
    """Return P(each maester wins when exactly this set has kept the highest die), (m, 2**n, n) float64."""
    if ties == "again":
        return set_chances(treated, saved)
    n = treated.shape[1]
    members = np.arange(1 << n)[:, None] >> np.arange(n) & 1
    return np.broadcast_to(members / np.maximum(members.sum(axis=1, keepdims=True), 1), (len(treated), 1 << n, n))


def _argued(treated: np.ndarray, saved: np.ndarray, ties: str, last: int) -> np.ndarray:
    """Return the chances of the last sets, (m, last, n) float64."""
    equal, lower = dice_table(rounded_up(int(treated.max(initial=0))))
    out = np.empty((len(treated), last, treated.shape[1]))
    _argue(code_of(treated, saved), equal, lower, ties == "random", out)
    return out


# --- posteriors -----------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _beta_table(most_treated: int, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distribution functions and densities at the nodes of the quadrature over 0 … 1, and the nodes' weights."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return *beta_tails(most_treated, (points + 1) / 2), weights / 2


@kernel
def _highest(codes, below, density, weights, out):
    """Write P(each of n independent variables is the highest). In place."""
    count, n = codes.shape
    before = np.empty(n)
    for row in range(count):
        out[row] = 0.0
        for k in range(len(weights)):
            product = weights[k]
            for one in range(n):
                before[one] = product
                product *= below[codes[row, one], k]
            product = 1.0
            for one in range(n - 1, -1, -1):
                out[row, one] += before[one] * density[codes[row, one], k] * product
                product *= below[codes[row, one], k]


def beta_chances(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Return P(the treatment's draw from Beta(saved + 1, failed + 1) is the highest), (m, n) float64.

    The integrand, a density times the others' distribution functions, is a polynomial. Gauss-Legendre quadrature with
    enough nodes is exact for it.
    """
    degree = int(treated.sum(axis=1).max(initial=0)) + treated.shape[1] - 1
    below, density, weights = _beta_table(rounded_up(int(treated.max(initial=0))), rounded_up(degree // 2 + 1))
    out = np.empty(treated.shape)
    _highest(code_of(treated, saved), below, density, weights, out)
    return out


@kernel
def _posterior(codes, ways, likelihood, kind_of, out):
    """Write P(kind of efficacy | tally). In place."""
    count, n = codes.shape
    for row in range(count):
        total = 0.0
        out[row] = 0.0
        for way in range(len(ways)):
            chance = 1.0
            for one in range(n):
                chance *= likelihood[ways[way, one], codes[row, one]]
            total += chance
            for one in range(n):
                out[row, one, kind_of[ways[way, one]]] += chance
        out[row] /= total


def efficacy_chances(problem: Problem, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Return P(treatment i has the k-th of `problem.kinds` | tally), (m, n, kinds) float64."""
    most = int(treated.max(initial=0))
    codes = code_of(treated, saved)
    likelihood = np.zeros((FACES + 1, (most + 1) * (most + 2) // 2))
    count = np.repeat(np.arange(most + 1), np.arange(1, most + 2))
    good = np.arange(len(count)) - count * (count + 1) // 2
    for pips in problem.kinds:
        # Relative to a treatment that saves half, so that the likelihoods of long records stay within float64's range.
        likelihood[pips] = (2 * pips / FACES) ** good * (2 - 2 * pips / FACES) ** (count - good)
    kind_of = np.zeros(FACES + 1, np.int64)
    kind_of[list(problem.kinds)] = range(len(problem.kinds))
    out = np.empty((*treated.shape, len(problem.kinds)))
    _posterior(codes, assignments(problem.efficacies).astype(np.int64), likelihood, kind_of, out)
    return out


def success_chances(problem: Problem, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Return P(the next patient recovers with each treatment | tally), (m, n) float64."""
    return efficacy_chances(problem, treated, saved) @ (np.array(problem.kinds) / FACES)
