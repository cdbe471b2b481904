"""Exact analysis of the cooperative Shakes: closed forms, policies' distributions, Bayes-optimal play, agents' measures.

All that a policy needs to know is the tally: patients treated and saved with each treatment. Before the first patient
all treatments are equivalent. So for policies that do not tell treatments apart by their place, tallies that differ only
in the order of the treatments are merged (`merged=True`), which leaves one in 340 of the tallies of six players. Policies
that do, such as a trained network, are evaluated tally by tally (`merged=False`).

With open efficacies a patient is best given the most effective treatment, so optimal play has a closed form. Policies that
look at the tally alone do as well as where efficacies are hidden; all others are evaluated deal by deal (`evaluate_open`).

Everything is summed in float64 over non-negative terms, so figures are good to about 12 digits.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from dice_envs.agent import Turn, Uniform, ask, ask_probabilities
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant, check_range
from dice_envs.core.kernel import kernel
from dice_envs.exact import MOST_SAMPLE, ActionValues, Effort, Measurement
from dice_envs.exact.intervals import Z95, wilson_half_width
from dice_envs.exact.kept import kept
from dice_envs.games.shakes import ARGUE, FACES, SILENT, Options, assignments

__all__ = [
    "TIE",
    "Evaluation",
    "Policy",
    "Problem",
    "Solution",
    "argument_chances",
    "as_policy",
    "as_tally_team",
    "as_team",
    "best_of",
    "beta_chances",
    "efficacy_chances",
    "evaluate",
    "evaluate_open",
    "kept_die",
    "open_optimum",
    "open_values",
    "solve",
    "success_chances",
    "tallies",
]

MOST_TALLIES = 20_000_000  # over all numbers of patients together; more would not fit into a few GiB
MOST_IN_PASSING = 500_000  # solved in some seconds and a quarter of a GiB
MOST_KEPT = 2**29  # bytes of solutions that stay in memory, and of tallies; the last ones stay whatever they take
TIE = 1e-12  # scores closer than this are equal: sums in another order differ by less, true differences by more
ROWS_AT_ONCE = 1 << 16
MOST_ASKED = 10_000_000  # positions at which `measure` asks an agent; where there are more it plays games instead
MOST_TRIED = 200_000  # positions at which it asks with open efficacies to see whether the agent reaches only few of them
GAMES = 20_000  # how many it plays by default
LEAST_GAMES = 100  # fewer give no usable estimate of the error
TABLE_STEP = 8  # tables are built for multiples of this many patients, so that the next patients reuse them

Policy = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(treated (m, n), saved (m, n)) → the chance that each treatment is chosen, (m, n) float64, rows summing to 1."""


class Problem(NamedTuple):
    """A cooperative game as the analysis sees it."""

    efficacies: tuple[int, ...]  # pips, highest first; dealt in a random order
    num_patients: int
    goal: int  # patients saved with which the team wins
    open_efficacies: bool = False  # whether all know who has which

    @classmethod
    def of(cls, options: Options) -> Problem:
        """The problem that a game with these options poses. ValueError for a competitive game."""
        if options.competitive:
            raise ValueError('the exact analysis needs variation="cooperative", not "competitive"')
        return cls(options.efficacies, options.patients, options.to_win, options.open_efficacies)

    @property
    def kinds(self) -> tuple[int, ...]:
        """The different efficacies, highest first."""
        return tuple(sorted(set(self.efficacies), reverse=True))


# --- the kept die -----------------------------------------------------------------------------------------------


def kept_die(treated: int, saved: int, faces: int = FACES) -> list[Fraction]:
    """P(the kept die shows v) for v = 1 … faces, for a maester with these numbers of patients treated and saved.

    The kept die is the (saved + 1)-th lowest of treated + 1 dice, so it is at most v if at least saved + 1 of them
    are: P = P(Bin(treated + 1, v / faces) > saved), which is the distribution function at v / faces of a
    Beta(saved + 1, treated - saved + 1) variable. In other words the die is that variable, times `faces`, rounded up.
    """
    if not 0 <= saved <= treated:
        raise ValueError(f"saved must be a whole number from 0 to treated = {treated}, not {saved}")
    dice = treated + 1

    def at_most(v: int) -> Fraction:
        ways = sum(math.comb(dice, k) * v**k * (faces - v) ** (dice - k) for k in range(saved + 1, dice + 1))
        return Fraction(ways, faces**dice)

    return [at_most(v) - at_most(v - 1) for v in range(1, faces + 1)]


def _code(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """One number for (treated, saved): 0 for (0, 0), 1 and 2 for (1, 0) and (1, 1), and so on."""
    treated = treated.astype(np.int64)
    return treated * (treated + 1) // 2 + saved


def _more_than_saved(most_treated: int, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each code up to most_treated and each success chance x: P(Bin(treated + 1, x) > saved) and its density in x.

    Returns:
        two arrays (codes, len(chances)) float64: a Beta(saved + 1, failed + 1) variable's distribution function and
        density at x. Built up from sums of positive terms (Pascal's triangle), so nothing cancels.
    """
    codes = (most_treated + 1) * (most_treated + 2) // 2
    tail = np.zeros((codes, len(chances)))
    density = np.zeros((codes, len(chances)))
    row = np.ones((1, len(chances)))  # P(Bin(treated, x) = k)
    at = 0
    for treated in range(most_treated + 1):
        wider = np.zeros((treated + 2, len(chances)))
        wider[:-1] = row * (1 - chances)
        wider[1:] += row * chances
        tail[at : at + treated + 1] = np.cumsum(wider[:0:-1], axis=0)[::-1]
        density[at : at + treated + 1] = (treated + 1) * row
        row = wider
        at += treated + 1
    return tail, density


def _rounded(count: int) -> int:
    return -(-count // TABLE_STEP) * TABLE_STEP


@functools.lru_cache(maxsize=8)
def _dice_table(most_treated: int) -> tuple[np.ndarray, np.ndarray]:
    """P(kept = v) and P(kept < v), each (codes, FACES)."""
    at_most, _ = _more_than_saved(most_treated, np.arange(FACES + 1) / FACES)
    return np.maximum(np.diff(at_most, axis=1), 0.0), at_most[:, :-1].copy()


@kernel
def _argument(codes, equal, lower, random_ties, out):
    """Write each maester's chance to win: a recursion over the sets of maesters who may be tied. Modified in place."""
    count, n = codes.shape
    sets = 1 << n
    faces = equal.shape[1]
    all_equal = np.empty((sets, faces))  # P(all of the set keep v)
    all_lower = np.empty((sets, faces))
    wins = np.zeros((sets, n))  # P(each maester wins when this set argues)
    for row in range(count):
        all_equal[0] = 1.0
        all_lower[0] = 1.0
        for one in range(n):
            code = codes[row, one]
            for subset in range(1 << one):
                for v in range(faces):
                    all_equal[subset | (1 << one), v] = all_equal[subset, v] * equal[code, v]
                    all_lower[subset | (1 << one), v] = all_lower[subset, v] * lower[code, v]
        for among in range(sets - 1 if random_ties else 1, sets):
            for one in range(n):
                wins[among, one] = 0.0
            again = 0.0
            tied = among
            while tied > 0:  # all non-empty subsets, the whole set first
                chance = 0.0
                for v in range(faces):
                    chance += all_equal[tied, v] * all_lower[among & ~tied, v]
                size = 0
                for one in range(n):
                    size += (tied >> one) & 1
                if random_ties or size == 1:
                    for one in range(n):
                        if (tied >> one) & 1:
                            wins[among, one] += chance / size
                elif tied == among:
                    again = chance
                else:
                    for one in range(n):
                        wins[among, one] += chance * wins[tied, one]
                tied = (tied - 1) & among
            if again > 0.0:
                for one in range(n):
                    wins[among, one] /= 1.0 - again
        for one in range(n):
            out[row, one] = wins[sets - 1, one]


def argument_chances(treated: np.ndarray, saved: np.ndarray, ties: Literal["again", "random"] = "again") -> np.ndarray:
    """P(each maester wins the argument when all argue), (m, n) float64, in closed form.

    With ties argued again, let P(S, U) be the chance that of those in S exactly U keep the highest die. Then i wins
    among S with W(S, i) = [P(S, {i}) + sum of P(S, U) W(U, i)] / (1 - P(S, S)), summed over U strictly between {i} and S.
    """
    equal, lower = _dice_table(_rounded(int(treated.max(initial=0))))
    out = np.empty(treated.shape)
    _argument(_code(treated, saved), equal, lower, ties == "random", out)
    return out


# --- posteriors -------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _beta_table(most_treated: int, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return *_more_than_saved(most_treated, (points + 1) / 2), weights / 2


@kernel
def _highest(codes, below, density, weights, out):
    """Write P(each of n independent variables is the highest). Modified in place."""
    count, n = codes.shape
    before = np.empty(n)
    for row in range(count):
        for one in range(n):
            out[row, one] = 0.0
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
    """P(a draw from Beta(saved + 1, failed + 1) is the highest of all treatments' draws), (m, n) float64.

    The integral of density times the others' distribution functions is over a polynomial, for which Gauss-Legendre
    quadrature with enough nodes is exact.
    """
    degree = int(treated.sum(axis=1).max(initial=0)) + treated.shape[1] - 1
    below, density, weights = _beta_table(_rounded(int(treated.max(initial=0))), _rounded(degree // 2 + 1))
    out = np.empty(treated.shape)
    _highest(_code(treated, saved), below, density, weights, out)
    return out


@kernel
def _posterior(codes, ways, likelihood, kind_of, out):
    """Write P(kind of efficacy | tally). Modified in place."""
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
    """P(treatment i has the k-th of `problem.kinds` | tally), (m, n, kinds) float64."""
    most = int(treated.max(initial=0))
    codes = _code(treated, saved)
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
    """P(the next patient recovers with each treatment | tally), (m, n) float64."""
    return efficacy_chances(problem, treated, saved) @ (np.array(problem.kinds) / FACES)


def best_of(scores: np.ndarray) -> np.ndarray:
    """Chances that share the choice equally among the highest scores of each row, (m, n) float64."""
    best = scores >= scores.max(axis=1, keepdims=True) - TIE
    return best / best.sum(axis=1, keepdims=True)


# --- tallies ----------------------------------------------------------------------------------------------------


class _Level(NamedTuple):
    """All tallies after one number of patients."""

    treated: np.ndarray  # (m, n) int16
    saved: np.ndarray  # (m, n) int16
    keys: np.ndarray  # (m,) uint64, rising
    children: np.ndarray | None  # (m, n, 2) int32: row in the next level after a loss, after a recovery


def _keys(codes: np.ndarray, bits: int) -> np.ndarray:
    keys = np.zeros(len(codes), np.uint64)
    for column in codes.T:
        keys = (keys << np.uint64(bits)) | column.astype(np.uint64)
    return keys


def _about(problem: Problem) -> int:
    """About how many tallies there are if those that differ only in the order of the treatments count as one."""
    n = len(problem.efficacies)
    return math.comb(problem.num_patients + 2 * n, 2 * n) // math.factorial(n)


def _bits(problem: Problem) -> int:
    """Bits that hold a code; a key holds one code for each treatment. ValueError if there are too many tallies."""
    patients, n = problem.num_patients, len(problem.efficacies)
    bits = (((patients + 1) * (patients + 2)) // 2).bit_length()
    about = _about(problem)
    if about > MOST_TALLIES or n * bits > 64:
        raise ValueError(
            f"num_patients={patients} with num_players={n} has about {about:,} tallies; "
            f"the exact analysis takes {MOST_TALLIES:,} at most"
        )
    return bits


@kept(MOST_KEPT, lambda levels: sum(array.nbytes for level in levels for array in level if array is not None))
def tallies(problem: Problem, merged: bool = True) -> list[_Level]:
    """All tallies that can be reached, one level for each number of patients treated, 0 to num_patients.

    Args:
        problem: the game.
        merged: whether tallies that differ only in the order of the treatments count as one.

    Raises:
        ValueError: there are too many.
    """
    n, bits = len(problem.efficacies), _bits(problem)
    if not merged and math.comb(problem.num_patients + 2 * n, 2 * n) > MOST_TALLIES:
        raise ValueError(f"num_players={n} has too many tallies to tell the treatments apart; fewer players are possible")
    levels = []
    codes = np.zeros((1, n), np.int16)
    keys = _keys(codes, bits)
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
                reached[:, one, recovered] = _keys(after, bits)
        next_keys, rows = np.unique(reached, return_inverse=True)
        levels.append(_Level(treated, saved, keys, rows.reshape(reached.shape).astype(np.int32)))
        keys = next_keys
        places = np.arange(n - 1, -1, -1, dtype=np.uint64) * np.uint64(bits)
        codes = ((keys[:, None] >> places) & np.uint64((1 << bits) - 1)).astype(np.int16)
    return levels


# --- Bayes-optimal play -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Solution:
    """Bayes-optimal play: no policy that does not know the efficacies has a higher expectation.

    Attributes:
        problem: the game solved.
        reward: "saved" or "win".
        value: the optimal expectation of patients saved, or the optimal chance to win.
        q: for each number of patients treated, the value of each choice at each merged tally, (m, n) float64.
    """

    problem: Problem
    reward: str
    value: float
    q: list[np.ndarray]

    def chances(self, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """The policy (see `Policy`): the best treatments, equally likely. Rows may be at different patients."""
        return best_of(self.values(treated, saved))

    def values(self, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """The value of each choice, (m, n) float64, from patients treated and saved (m, n): patients saved from now on, or
        the chance to win."""
        bits, levels = _bits(self.problem), tallies(self.problem)
        codes = _code(treated, saved)
        order = np.argsort(codes, axis=1, kind="stable")
        keys = _keys(np.take_along_axis(codes, order, axis=1), bits)
        patients = treated.sum(axis=1)
        out = np.empty(treated.shape)
        for level in np.unique(patients):
            mine = np.flatnonzero(patients == level)
            rows = np.searchsorted(levels[level].keys, keys[mine])
            out[mine[:, None], order[mine]] = self.q[level][rows]
        return out


@kept(MOST_KEPT, lambda solution: sum(values.nbytes for values in solution.q))
def solve(problem: Problem, reward: Literal["saved", "win"]) -> Solution:
    """Bayes-optimal play by dynamic programming, from the last patient backwards over merged tallies.

    Raises:
        ValueError: there are too many tallies, or the efficacies are open: see `open_values`.
    """
    if problem.open_efficacies:
        raise ValueError("open_efficacies must be false to solve by tallies: with open ones see open_values")
    if reward not in ("saved", "win"):
        raise ValueError(f"reward must be 'saved' or 'win', not {reward!r}")
    levels = tallies(problem)
    pays = float(reward == "saved")
    values = (levels[-1].saved.sum(axis=1) >= problem.goal) * (1.0 - pays)
    q: list[np.ndarray] = []
    for level in reversed(levels[:-1]):
        assert level.children is not None
        success = success_chances(problem, level.treated, level.saved)
        after = values[level.children]
        q.append((1 - success) * after[:, :, 0] + success * (pays + after[:, :, 1]))
        values = q[-1].max(axis=1)
    return Solution(problem, reward, float(values[0]), q[::-1])


# --- open efficacies --------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _chance_of_as_many(patients: int, least: int, pips: int) -> float:
    """P(of so many patients with a treatment of this efficacy at least `least` recover)."""
    ways = sum(math.comb(patients, k) * pips**k * (FACES - pips) ** (patients - k) for k in range(max(least, 0), patients + 1))
    return ways / FACES**patients


def open_optimum(problem: Problem, reward: Literal["saved", "win"]) -> float:
    """What optimal play reaches where all know the efficacies: every patient gets the most effective treatment."""
    best = max(problem.efficacies)
    if reward == "saved":
        return problem.num_patients * best / FACES
    return _chance_of_as_many(problem.num_patients, problem.goal, best)


def open_values(
    problem: Problem,
    reward: Literal["saved", "win"],
    efficacies: np.ndarray,
    treated: np.ndarray,
    saved: np.ndarray,
) -> np.ndarray:
    """The value of giving each treatment to the next patient, (m, n) float64, where all know the efficacies (m, n).

    As in `Solution.values`: patients saved from now on, or the chance to win, with optimal play afterwards.
    """
    left = problem.num_patients - treated.sum(axis=1, dtype=np.int64) - 1  # patients after this one
    best = efficacies.max(axis=1)
    success = efficacies / FACES
    if reward == "saved":
        return success + (left * best / FACES)[:, None]
    missing = problem.goal - saved.sum(axis=1, dtype=np.int64)
    rows = list(zip(left.tolist(), missing.tolist(), best.tolist(), strict=True))
    recovered, died = (
        np.array([_chance_of_as_many(after, least - one, pips) for after, least, pips in rows])[:, None] for one in (1, 0)
    )
    return success * recovered + (1 - success) * died


def check_in_passing(variant: Variant) -> None:
    """Raise ValueError for a game that takes more than some seconds to solve."""
    about = _about(Problem.of(variant.options))
    if about > MOST_IN_PASSING and not variant.options.open_efficacies:
        raise ValueError(f"{variant} has about {about:,} tallies; optimal play is found in passing up to {MOST_IN_PASSING:,}")


# --- what a choice is worth -----------------------------------------------------------------------------------------


class _Argument:
    """What arguing and yielding are worth in the argument over one patient, if the team plays as well as it can.

    All maesters know the same and want the same, so this is one player's decision after another. Of those who have argued only
    the best kept die matters, and who has it.
    """

    def __init__(self, options: Options, state: Any, worth: np.ndarray) -> None:
        self.n, self.ties = options.num_players, options.ties
        self.worth = worth  # of each treatment for this patient
        self.treated, self.saved = state["treated"][None, : self.n], state["saved"][None, : self.n]
        opener = int(state["opener"])
        self.order = [(opener + k) % self.n for k in range(self.n)]
        self._known: dict[tuple[int, int, int], float] = {}
        self._tied: dict[int, float] = {}
        self.kept = [
            [float(chance) for chance in kept_die(int(self.treated[0, i]), int(self.saved[0, i]))] for i in range(self.n)
        ]

    def choices(self, spoken: int, best: int, holders: int) -> tuple[float, float]:
        """The value of yielding (NaN where that is not legal) and of arguing, for whoever speaks next.

        Args:
            spoken: how many have spoken.
            best: the highest die kept so far; SILENT if nobody has argued.
            holders: who keeps it, as bits.
        """
        seat = self.order[spoken]
        argues = 0.0
        for die, chance in enumerate(self.kept[seat], 1):
            if die > best:
                argues += chance * self._value(spoken + 1, die, 1 << seat)
            else:
                argues += chance * self._value(spoken + 1, best, holders | (1 << seat if die == best else 0))
        must = best == SILENT and spoken == self.n - 1
        return math.nan if must else self._value(spoken + 1, best, holders), argues

    def _value(self, spoken: int, best: int, holders: int) -> float:
        if spoken == self.n:
            return self._settled(holders)
        key = spoken, best, holders
        if key not in self._known:
            self._known[key] = max(value for value in self.choices(spoken, best, holders) if not math.isnan(value))
        return self._known[key]

    def _settled(self, holders: int) -> float:
        """The value when these keep the highest die: one of them treats the patient."""
        if holders not in self._tied:
            who = [seat for seat in range(self.n) if holders >> seat & 1]
            if len(who) == 1 or self.ties == "random":
                self._tied[holders] = float(self.worth[who].mean())
            else:
                (chances,) = argument_chances(self.treated[:, who], self.saved[:, who], self.ties)
                self._tied[holders] = float(chances @ self.worth[who])
        return self._tied[holders]


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """What each treatment, or arguing and yielding, is worth with Bayes-optimal play afterwards. See
    `dice_envs.exact.GameActionValues`."""
    options = variant.options
    n = options.num_players
    if in_passing:
        check_in_passing(variant)
    problem, tally = Problem.of(options), (state["treated"][None, :n], state["saved"][None, :n])
    if options.open_efficacies:
        (values,) = open_values(problem, options.pays, state["efficacy"][None, :n], *tally)
    else:
        (values,) = solve(problem, options.pays).values(*tally)
    if options.mode == "maesters":
        strength = state["strength"][:n]
        best = int(strength.max())
        holders = sum(1 << seat for seat in range(n) if best != SILENT and strength[seat] == best)
        yields, argues = _Argument(options, state, values).choices(int(state["spoken"]), best, holders)
        values = np.array([yields, argues])
    mix = (values >= np.nanmax(values) - TIE).astype(np.float64)
    unit = "patients saved from now on" if options.pays == "saved" else "% of games won"
    who = "everybody" if options.open_efficacies else "nobody"
    return ActionValues(values, unit, f"with the best play of all afterwards; {who} knows the efficacies", mix / mix.sum())


# --- any policy, exactly ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a policy does, exactly.

    Attributes:
        distribution: P(k patients saved), (num_patients + 1,) float64.
        saved: the expectation.
        win: P(the team wins).
        shares: the expected share of patients that get a treatment of each of `problem.kinds`.
        matching_gap: how far the choice is from "each treatment with the chance that it is the best": the total
            variation distance between the two, averaged over patients.
        most_dice: P(the largest number of dice that a maester has to throw at once in a game is k), (num_patients + 1,)
            float64, for games in which every maester argues.
        most_treated: P(the treatment used most is given to k patients), (num_patients + 1,) float64.
    """

    distribution: np.ndarray
    saved: float
    win: float
    shares: np.ndarray
    matching_gap: float
    most_dice: np.ndarray
    most_treated: np.ndarray


def evaluate(problem: Problem, policy: Policy, merged: bool = True) -> Evaluation:
    """The exact distribution of what a policy achieves.

    Args:
        problem: the game.
        policy: see `Policy`. With `merged` it is asked about one order of each tally only, so it must be equivariant:
            treatments that change places take their chances with them.
        merged: False for policies that tell treatments apart by their place.

    Raises:
        ValueError: the policy's chances are not a distribution, or there are too many tallies.
    """
    levels = tallies(problem, merged)
    mass: Any = np.ones(1)
    shares = np.zeros(len(problem.kinds))
    gap = 0.0
    most_dice = np.zeros(problem.num_patients + 1)
    for level in levels[:-1]:
        assert level.children is not None
        met = np.flatnonzero(mass > 0)
        treated, saved = level.treated[met], level.saved[met]
        chances = _chosen(policy, treated, saved)
        posterior = efficacy_chances(problem, treated, saved)
        success = posterior @ (np.array(problem.kinds) / FACES)
        flow = mass[met, None] * chances
        shares += np.einsum("mn,mnk->k", flow, posterior)
        best = posterior[:, :, 0] / posterior[:, :, 0].sum(axis=1, keepdims=True)
        gap += float(mass[met] @ np.abs(chances - best).sum(axis=1)) / 2
        if level is levels[-2]:
            most_dice += np.bincount(treated.max(axis=1) + 1, mass[met], problem.num_patients + 1)
        to = level.children[met]
        size = int(level.children.max()) + 1
        mass = np.bincount(to[:, :, 0].ravel(), (flow * (1 - success)).ravel(), size)
        mass += np.bincount(to[:, :, 1].ravel(), (flow * success).ravel(), size)
    distribution = np.bincount(levels[-1].saved.sum(axis=1), mass, problem.num_patients + 1)
    return Evaluation(
        distribution=distribution,
        saved=float(distribution @ np.arange(len(distribution))),
        win=float(distribution[problem.goal :].sum()),
        shares=shares / problem.num_patients,
        matching_gap=gap / problem.num_patients,
        most_dice=most_dice,
        most_treated=np.bincount(levels[-1].treated.max(axis=1), mass, problem.num_patients + 1),
    )


def _chosen(policy: Policy, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """The policy's chances, (m, n) float64. ValueError if they are none."""
    chances = np.concatenate([policy(*rows) for rows in _blocks(treated, saved)])
    if chances.shape != treated.shape or (chances < -TIE).any() or not np.allclose(chances.sum(axis=1), 1, atol=1e-5):
        raise ValueError(f"a policy must give {treated.shape[1]} chances that add up to 1 at every tally")
    return chances / chances.sum(axis=1, keepdims=True)


class _TooManyReached(ValueError):
    """A policy reaches more tallies than it may be asked at."""


def evaluate_open(
    problem: Problem,
    policy_of: Callable[[np.ndarray], Policy],
    most: int = MOST_TALLIES,
    done: Callable[[int, int], Any] = lambda amount, total: None,
) -> Evaluation:
    """The exact distribution of what policies achieve that know the efficacies, over all deals of these.

    Args:
        problem: the game.
        policy_of: the efficacies (n,) int8 of the treatments → the policy that knows them. It is asked at the tallies alone
            that it reaches.
        most: at how many tallies the policies are asked at most, of all deals together.
        done: called with progress, as (amount done since the last call, amount in all).

    Raises:
        ValueError: a policy's chances are not a distribution, or they reach more tallies.
    """
    ways = assignments(problem.efficacies)
    found = []
    for efficacies in ways:
        one, asked = _evaluate_known(problem, efficacies, policy_of(efficacies), most)
        most -= asked
        found.append(one)
        done(1, len(ways))

    def mean(field: str) -> Any:
        return np.mean([getattr(one, field) for one in found], axis=0)

    return Evaluation(
        distribution=mean("distribution"),
        saved=float(mean("saved")),
        win=float(mean("win")),
        shares=mean("shares"),
        matching_gap=float(mean("matching_gap")),
        most_dice=mean("most_dice"),
        most_treated=mean("most_treated"),
    )


def _evaluate_known(problem: Problem, efficacies: np.ndarray, policy: Policy, most: int) -> tuple[Evaluation, int]:
    """One deal's share of `evaluate_open`, and at how many tallies the policy was asked."""
    n, patients = len(efficacies), problem.num_patients
    bits = (((patients + 1) * (patients + 2)) // 2).bit_length()
    success = efficacies / FACES
    kind_of = np.array([problem.kinds.index(int(pips)) for pips in efficacies])
    best = (efficacies == efficacies.max()) / (efficacies == efficacies.max()).sum()
    treated = saved = np.zeros((1, n), np.int16)
    mass: Any = np.ones(1)
    shares, gap, asked = np.zeros(len(problem.kinds)), 0.0, 0
    for _ in range(patients):
        asked += len(mass)
        if asked > most:
            raise _TooManyReached(f"num_players={n} with num_patients={patients} has too many tallies that this policy reaches")
        chances = _chosen(policy, treated, saved)
        flow = mass[:, None] * chances
        np.add.at(shares, kind_of, flow.sum(axis=0))
        gap += float(mass @ np.abs(chances - best).sum(axis=1)) / 2
        most_dice = np.bincount(treated.max(axis=1) + 1, mass, patients + 1)
        row, one = np.nonzero(flow)
        after = np.hstack([treated[row], saved[row]])
        after[np.arange(len(row)), one] += 1
        better = after.copy()
        better[np.arange(len(row)), n + one] += 1
        reached = np.vstack([after, better])
        if n * bits <= 64:
            _, first, to = np.unique(_keys(_code(reached[:, :n], reached[:, n:]), bits), return_index=True, return_inverse=True)
        else:
            _, first, to = np.unique(reached, axis=0, return_index=True, return_inverse=True)
        weights = np.concatenate([flow[row, one] * (1 - success[one]), flow[row, one] * success[one]])
        mass = np.bincount(to.ravel(), weights, len(first))
        treated, saved = reached[first, :n], reached[first, n:]
    distribution = np.bincount(saved.sum(axis=1), mass, patients + 1)
    return (
        Evaluation(
            distribution=distribution,
            saved=float(distribution @ np.arange(patients + 1)),
            win=float(distribution[problem.goal :].sum()),
            shares=shares / patients,
            matching_gap=gap / patients,
            most_dice=most_dice,
            most_treated=np.bincount(treated.max(axis=1), mass, patients + 1),
        ),
        asked,
    )


def _blocks(treated: np.ndarray, saved: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for first in range(0, len(treated), ROWS_AT_ONCE):
        yield treated[first : first + ROWS_AT_ONCE], saved[first : first + ROWS_AT_ONCE]


# --- agents as policies -------------------------------------------------------------------------------------------


def _states(variant: Variant, treated: np.ndarray, saved: np.ndarray, efficacies: np.ndarray | None = None) -> np.ndarray:
    """States with these tallies, in which nobody has spoken on the next patient. Without `efficacies` these are random."""
    states = np.zeros(len(treated), variant.game.state)
    variant.kernels.deal(variant.params, states, np.arange(len(treated)))
    states["treated"][:, : treated.shape[1]] = treated
    states["saved"][:, : treated.shape[1]] = saved
    states["patients"] = treated.sum(axis=1)
    if efficacies is not None:
        states["efficacy"][:, : treated.shape[1]] = efficacies
    return states


def _answers(agent: Any, variant: Variant, states: np.ndarray, seeds: np.random.SeedSequence) -> np.ndarray:
    """The agent's probabilities in each state, (m, num_actions) float64, with random streams of its own."""
    streams = new_streams(seeds.spawn(1)[0], len(states))
    return ask_probabilities(agent, Turn(variant, states, np.arange(len(states)), streams))


def _check_told(variant: Variant, agent: Any, efficacies: np.ndarray | None) -> None:
    """Raise ValueError where an agent sees efficacies and it is not said which."""
    if efficacies is None and _sees_efficacies(variant, agent):
        raise ValueError("open_efficacies: what this agent does depends on the efficacies, so they must be given")


def as_policy(agent: Any, variant: Variant, seed: int = 0, efficacies: np.ndarray | None = None) -> Policy:
    """The policy of any agent that has `probabilities`, as a physician of `variant`: evaluate it with `merged=False`.

    Args:
        agent: see `dice_envs.agent.ask_probabilities`.
        variant: the game.
        seed: of the agent's own random streams.
        efficacies: (n,) those of the treatments, where they are open; see `evaluate_open`.

    Raises:
        ValueError: the variant is not the physician's, or the agent sees efficacies that are not given.
        AgentError: the agent states no probabilities; raised when the policy is first asked.
    """
    if variant.game.name != "shakes" or variant.options.mode != "physician":
        raise ValueError('an agent is evaluated as a physician: the game must be shakes with mode="physician"')
    _check_told(variant, agent, efficacies)
    seeds = np.random.SeedSequence(seed)
    return lambda treated, saved: _answers(agent, variant, _states(variant, treated, saved, efficacies), seeds)


# --- a table of maesters as a policy ------------------------------------------------------------------------------

# A set of maesters is a number, as in `_argument`: bit k stands for column k.


def _members(num_players: int) -> np.ndarray:
    """Who is in each set, (2**n, n) bool."""
    return (np.arange(1 << num_players)[:, None] >> np.arange(num_players) & 1).astype(bool)


def _winners(sets: np.ndarray, treated: np.ndarray, saved: np.ndarray, ties: Literal["again", "random"]) -> np.ndarray:
    """P(each maester wins), (m, n), when exactly the maesters of a set argue with probability `sets` (m, 2**n)."""
    wins = np.zeros(treated.shape)
    for among, members in enumerate(_members(treated.shape[1])):
        met = np.flatnonzero(sets[:, among] * members.any())
        if len(met):
            where = np.ix_(met, np.flatnonzero(members))
            wins[where] += sets[met, among, None] * argument_chances(treated[where], saved[where], ties)
    return wins


def as_tally_team(
    agent: Any, variant: Variant, first_opener: int = 0, seed: int = 0, efficacies: np.ndarray | None = None
) -> Policy:
    """Whose treatment a patient gets when every maester at the table is an agent that looks at the tally only.

    It is asked once for each tally and maester, as the one who speaks first. The order of speaking matters only where all
    may yield, because then the last must argue.

    Arguments and errors are those of `as_team`.
    """
    _check_told(variant, agent, efficacies)
    n, ties = variant.options.num_players, variant.options.ties
    seeds = np.random.SeedSequence(seed)

    def policy(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        sets = np.ones((len(treated), 1))
        for seat in range(n):
            states = _states(variant, treated, saved, efficacies)
            states["opener"] = states["seat"] = seat
            argues = _answers(agent, variant, states, seeds)[:, [ARGUE]]
            sets = np.hstack([sets * (1 - argues), sets * argues])
        last = (first_opener + treated.sum(axis=1) - 1) % n
        sets[np.arange(len(sets)), 1 << last] += sets[:, 0]  # if all others yield, the last must argue
        return _winners(sets, treated, saved, ties)

    return policy


@functools.lru_cache(maxsize=8)
def _histories(spoken: int) -> np.ndarray:
    """All possible outcomes of the first `spoken` maesters, (7**spoken, spoken) int8: the die each kept, or SILENT."""
    said = list(itertools.product(range(FACES + 1), repeat=spoken))
    return np.array(said, np.int8).reshape(len(said), spoken)


def as_team(agent: Any, variant: Variant, first_opener: int = 0, seed: int = 0, efficacies: np.ndarray | None = None) -> Policy:
    """Whose treatment a patient gets when the agent plays every maester at the table: evaluate it with `merged=False`.

    Each maester is asked about every combination of dice that those before it may have kept. As in the observation it
    sees which die each of them kept, but not the dice taken away.

    Args:
        agent: see `dice_envs.agent.ask_probabilities`.
        variant: the game, of maesters.
        first_opener: the seat that speaks first on the first patient.
        seed: of the agent's own random streams.
        efficacies: (n,) those of the treatments, where they are open; see `evaluate_open`.

    Raises:
        ValueError: the agent sees efficacies that are not given.
        AgentError: the agent states no probabilities; raised when the policy is first asked.
    """
    _check_told(variant, agent, efficacies)
    n, ties = variant.options.num_players, variant.options.ties
    seeds = np.random.SeedSequence(seed)
    at_once = max(1, ROWS_AT_ONCE // len(_histories(n - 1)))
    members = _members(n)

    def policy(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        order = (first_opener + treated.sum(axis=1)[:, None] + np.arange(n)) % n  # seats as they speak
        blocks = [slice(first, first + at_once) for first in range(0, len(treated), at_once)]
        tied = np.concatenate(
            [_tied(agent, variant, treated[rows], saved[rows], order[rows], seeds, efficacies) for rows in blocks]
        )
        if ties == "again":
            in_turn = np.take_along_axis(treated, order, axis=1), np.take_along_axis(saved, order, axis=1)
            wins = _winners(tied, *in_turn, ties)
        else:
            wins = tied @ (members / np.maximum(members.sum(axis=1, keepdims=True), 1))
        by_seat = np.empty(wins.shape)
        np.put_along_axis(by_seat, order, wins, axis=1)
        return by_seat

    return policy


def _tied(
    agent: Any,
    variant: Variant,
    treated: np.ndarray,
    saved: np.ndarray,
    order: np.ndarray,
    seeds: np.random.SeedSequence,
    efficacies: np.ndarray | None,
) -> np.ndarray:
    """P(each set of maesters keeps the highest die), (m, 2**n) float64, once all have spoken.

    Args:
        order: (m, n) seats as they speak; column k of a set stands for the k-th of them.
    """
    count, n = treated.shape
    rows = np.arange(count)
    kept = _dice_table(_rounded(int(treated.max(initial=0))))[0][_code(treated, saved)]  # (m, n, FACES)
    reached = np.ones((count, 1))  # P(each history)
    for spoken in range(n):
        row, history = np.nonzero(reached)
        states = _states(variant, treated[row], saved[row], efficacies)
        states["opener"], states["seat"], states["spoken"] = order[row, 0], order[row, spoken], spoken
        states["strength"][np.arange(len(row))[:, None], order[row, :spoken]] = _histories(spoken)[history]
        states["argued"] = states["strength"] != SILENT
        argues = np.zeros((*reached.shape, 1))
        argues[row, history] = _answers(agent, variant, states, seeds)[:, [ARGUE]]
        said = np.concatenate([1 - argues, argues * kept[rows, order[:, spoken]][:, None, :]], axis=2)
        reached = (reached[:, :, None] * said).reshape(count, -1)
    strengths = _histories(n)
    highest = (strengths == strengths.max(axis=1, keepdims=True)) @ (1 << np.arange(n))
    return np.stack([reached[:, highest == tied].sum(axis=1) for tied in range(1 << n)], axis=1)


# --- the measure --------------------------------------------------------------------------------------------------


def _original(agent: Any) -> Any:
    """The agent as it was given to `dice_envs.measure`, which wraps it."""
    return getattr(agent, "agent", agent)


def _is_uniform(agent: Any) -> bool:
    """Whether it plays uniformly at random; a subclass of `Uniform` may state other probabilities."""
    return getattr(type(_original(agent)), "probabilities", None) is Uniform.probabilities


def _looks_at_tally_alone(agent: Any) -> bool:
    return _is_uniform(agent) or getattr(_original(agent), "tally_alone", False)


def _sees_efficacies(variant: Variant, agent: Any) -> bool:
    """Whether what the agent does may depend on the efficacies: it is shown them, and does not look at the tally alone."""
    reads = not _looks_at_tally_alone(agent) or getattr(_original(agent), "reads_efficacies", False)
    return bool(variant.options.open_efficacies) and reads


def _merges(variant: Variant, agent: Any) -> bool:
    """Whether `evaluate` may merge tallies: not at a table where all may yield, since then the last to speak must argue."""
    return _looks_at_tally_alone(agent) and not (variant.options.mode == "maesters" and _is_uniform(agent))


def _policies(variant: Variant, agent: Any, seed: int) -> list[Policy]:
    """Equally likely policies of the agent: one for each seat that may open the game, where that makes a difference."""
    if variant.options.mode == "physician":
        return [as_policy(agent, variant, seed)]
    if _looks_at_tally_alone(agent):
        return [as_tally_team(agent, variant, seed=seed)]
    return [as_team(agent, variant, opener, seed) for opener in range(variant.options.num_players)]


def _positions(variant: Variant, agent: Any) -> int:
    """The number of positions at which the agent has to be asked if no tallies are merged."""
    n, patients = variant.options.num_players, variant.options.patients
    ways = len(assignments(variant.options.efficacies)) if _sees_efficacies(variant, agent) else 1
    return ways * math.comb(patients - 1 + 2 * n, 2 * n) * _positions_at_tally(variant, agent)


def _positions_at_tally(variant: Variant, agent: Any) -> int:
    n = variant.options.num_players
    if variant.options.mode == "physician":
        return 1
    return n * (1 if _looks_at_tally_alone(agent) else sum(7**spoken for spoken in range(n)))


def _play(variant: Variant, agent: Any, games: int, effort: Effort) -> np.ndarray:
    """How often k patients were saved, (num_patients + 1,), in games in which the agent has every seat."""
    original = _original(agent)
    player = original if hasattr(original, "act") else agent  # errors name the original
    counts = np.zeros(variant.options.patients + 1, np.int64)
    seeds = np.random.SeedSequence(effort.seed)
    for first in range(0, games, ROWS_AT_ONCE):
        index = np.arange(min(ROWS_AT_ONCE, games - first))
        dealt, own = (new_streams(each, len(index)) for each in seeds.spawn(2))
        states = np.zeros(len(index), variant.game.state)
        states["rng"] = dealt["rng"]
        variant.kernels.deal(variant.params, states, index)
        while states["seat"][0] != OVER:  # all games are equally long
            variant.kernels.play(variant.params, states, index, ask(player, variant, states, index, own))
        counts += np.bincount(states["saved"].sum(axis=1), minlength=len(counts))
        effort.done(len(index), games)
    return counts


class _Outcome(NamedTuple):
    """What an agent achieves."""

    distribution: np.ndarray  # (num_patients + 1,) float64: P(k patients are saved)
    games: int  # how many were played to find it; 0: it is exact
    note: str

    def mean_error(self) -> float:
        """The 95 % half-width of the mean."""
        if not self.games:
            return 0.0
        saved = np.arange(len(self.distribution))
        variance = float(self.distribution @ (saved - self.distribution @ saved) ** 2)
        return Z95 * math.sqrt(variance / (self.games - 1))

    def chance_error(self, chance: float) -> float:
        """The 95 % half-width of a chance, by Wilson's interval."""
        return wilson_half_width(chance, self.games) if self.games else 0.0


def _exactly(variant: Variant, agent: Any, seed: int, done: Callable[[int, int], Any]) -> _Outcome:
    problem, merged, policies = Problem.of(variant.options), _merges(variant, agent), _policies(variant, agent, seed)
    count = sum(len(level.keys) for level in tallies(problem, merged)[:-1])

    def watched(policy: Policy) -> Policy:
        def watched_policy(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
            chances = policy(treated, saved)
            done(len(treated), count * len(policies))
            return chances

        return watched_policy

    found = [evaluate(problem, watched(policy), merged).distribution for policy in policies]
    return _Outcome(np.mean(found, axis=0), 0, f"all {count:,} tallies")


@functools.lru_cache(maxsize=16)
def _random_exactly(variant: Variant) -> _Outcome:
    """Uniformly random play. Cached, because every score needs it and a table of four takes ten seconds."""
    return _exactly(variant, Uniform(), 0, lambda amount, total: None)


def _openly(variant: Variant, agent: Any, effort: Effort) -> _Outcome:
    """An agent that sees the efficacies: exactly, unless it reaches too many positions."""
    options, problem = variant.options, Problem.of(variant.options)
    allowed = MOST_ASKED if _positions(variant, agent) <= MOST_ASKED else MOST_TRIED
    team = as_tally_team if _looks_at_tally_alone(agent) else as_team
    openers = range(options.num_players) if options.mode == "maesters" and team is as_team else range(1)

    def policy_of(efficacies: np.ndarray, opener: int) -> Policy:
        if options.mode == "physician":
            return as_policy(agent, variant, effort.seed, efficacies)
        return team(agent, variant, opener, effort.seed, efficacies)

    found = []
    try:
        for opener in openers:
            most = allowed // _positions_at_tally(variant, agent)
            told = lambda amount, total: effort.done(amount, total * len(openers))  # noqa: E731
            found.append(evaluate_open(problem, functools.partial(policy_of, opener=opener), most, told).distribution)
    except _TooManyReached:
        return _by_playing(variant, agent, effort)
    return _Outcome(np.mean(found, axis=0), 0, f"all {len(assignments(problem.efficacies))} deals of the efficacies")


def _by_playing(variant: Variant, agent: Any, effort: Effort) -> _Outcome:
    games = GAMES if effort.sample is None else effort.sample
    check_range("sample", games, LEAST_GAMES, MOST_SAMPLE)
    note = f"{games:,} games played: {_positions(variant, agent):,} positions are too many to ask at"
    return _Outcome(_play(variant, agent, games, effort) / games, games, note)


SAVED, WIN = "patients saved", "P(win)"


def optima(variant: Variant) -> dict[str, float]:
    """What Bayes-optimal play reaches, the quantity that the game rewards first. See `dice_envs.exact.optima`.

    Raises:
        ValueError: the variation is competitive, or the game is too large to be solved in passing.
    """
    check_in_passing(variant)
    return _best(variant)


def _best(variant: Variant) -> dict[str, float]:
    options = variant.options
    if options.competitive:
        raise ValueError("variation must be 'cooperative' for an exact measure, not 'competitive': no optimal play is known")
    problem = Problem.of(options)
    if options.open_efficacies:
        best = {SAVED: open_optimum(problem, "saved"), WIN: open_optimum(problem, "win")}
    else:
        best = {SAVED: solve(problem, "saved").value, WIN: solve(problem, "win").value}
    return best if options.pays == "saved" else dict(reversed(best.items()))


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Patients saved and P(win); the one that the game rewards comes first. See `dice_envs.exact.GameMeasure`.

    A physician is asked at every tally. At the table the agent plays every maester, and is asked at every tally, for each
    seat that may open the game and all dice that others may have kept. Above MOST_ASKED positions (such as a physician
    with six treatments, or four maesters) GAMES games are played instead, or `effort.sample`.

    An agent with an attribute `tally_alone` = True makes three promises. It looks at the tally only. Treatments that change
    places take its probabilities with them. At a table, at least one maester always chooses to argue. Then tallies can be
    merged, and the measure is exact for all sizes that can be solved.

    With open efficacies such an agent does as well as with hidden ones, unless it says `reads_efficacies` = True. It and all
    others are asked at every deal of the efficacies, at the tallies that they reach.

    Takes seconds for agents that answer quickly; a minute and 3 GiB for a physician with five treatments whose
    tallies cannot be merged.

    Raises:
        ValueError: the variation is competitive, or the game is too large to be solved.
    """
    best = _best(variant)
    if _sees_efficacies(variant, agent):
        found = _openly(variant, agent, effort)
    elif not _merges(variant, agent) and _positions(variant, agent) > MOST_ASKED:
        found = _by_playing(variant, agent, effort)
    elif _is_uniform(agent):
        found = _random_exactly(variant)
    else:
        found = _exactly(variant, agent, effort.seed, effort.done)
    saved = float(found.distribution @ np.arange(len(found.distribution)))
    win = float(found.distribution[variant.options.to_win :].sum())
    measures = {
        SAVED: Measurement(
            SAVED, saved, best[SAVED], max(0.0, best[SAVED] - saved), found.mean_error(), "patients", found.note
        ),
        WIN: Measurement(WIN, win, best[WIN], max(0.0, best[WIN] - win), found.chance_error(win), "probability", found.note),
    }
    return [measures[name] for name in best]
