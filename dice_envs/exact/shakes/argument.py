"""The argument over a patient, in closed form: the die that a maester keeps, and each maester's chance to win."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Literal

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.shakes.tally import code_of, rounded_up
from dice_envs.games.shakes import FACES

__all__ = ["argument_chances", "beta_tails", "dice_table", "kept_chances", "kept_die", "multiply", "win_among"]


def kept_die(treated: int, saved: int, faces: int = FACES) -> list[Fraction]:
    """Return P(the kept die shows v) for v = 1 … faces, for a maester with these numbers of patients treated and saved.

    The kept die is the (saved + 1)-th lowest of treated + 1 dice. It is at most v if at least saved + 1 of them are:
    P = P(Bin(treated + 1, v / faces) > saved), which is the distribution function at v / faces of a
    Beta(saved + 1, treated - saved + 1) variable. In other words the die is that variable, times `faces`, rounded up.
    """
    if not 0 <= saved <= treated:
        raise ValueError(f"saved must be a whole number from 0 to treated = {treated}, not {saved}")
    dice = treated + 1

    def at_most(v: int) -> Fraction:
        ways = sum(math.comb(dice, k) * v**k * (faces - v) ** (dice - k) for k in range(saved + 1, dice + 1))
        return Fraction(ways, faces**dice)

    return [at_most(v) - at_most(v - 1) for v in range(1, faces + 1)]


def beta_tails(most_treated: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distribution function and density of Beta(saved + 1, failed + 1) at the points, each (codes, points) float64.

    The rows are all codes up to most_treated. The distribution function at x is P(Bin(treated + 1, x) > saved). Both are
    built up from sums of positive terms (Pascal's triangle), so nothing cancels.
    """
    codes = (most_treated + 1) * (most_treated + 2) // 2
    tail = np.zeros((codes, len(points)))
    density = np.zeros((codes, len(points)))
    row = np.ones((1, len(points)))  # P(Bin(treated, x) = k)
    at = 0
    for treated in range(most_treated + 1):
        wider = np.zeros((treated + 2, len(points)))
        wider[:-1] = row * (1 - points)
        wider[1:] += row * points
        tail[at : at + treated + 1] = np.cumsum(wider[:0:-1], axis=0)[::-1]
        density[at : at + treated + 1] = (treated + 1) * row
        row = wider
        at += treated + 1
    return tail, density


@functools.lru_cache(maxsize=8)
def dice_table(most_treated: int) -> tuple[np.ndarray, np.ndarray]:
    """Return P(kept = v) and P(kept < v), each (codes, FACES)."""
    at_most, _ = beta_tails(most_treated, np.arange(FACES + 1) / FACES)
    return np.maximum(np.diff(at_most, axis=1), 0.0), at_most[:, :-1].copy()


def kept_chances(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Return P(each maester keeps v), (m, n, FACES) float64, from the patients treated and saved by each (m, n)."""
    return dice_table(rounded_up(int(treated.max(initial=0))))[0][code_of(treated, saved)]


@kernel(allocates=False)
def multiply(codes, row, chances, out):
    """Write the product of `chances[code]` over each set of maesters, (sets, faces); bit k is maester k. In place."""
    out[0] = 1.0
    for one in range(codes.shape[1]):
        code = codes[row, one]
        for subset in range(1 << one):
            for v in range(FACES):
                out[subset | (1 << one), v] = out[subset, v] * chances[code, v]


@kernel(allocates=False)
def win_among(among, all_equal, all_lower, random_ties, wins):
    """Write the winning chances when the set `among` argues: its row of `wins`, from those of its subsets. In place."""
    n = wins.shape[1]
    for one in range(n):
        wins[among, one] = 0.0
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
    """Write each maester's chance to win: a recursion over the sets of maesters who may be tied. In place."""
    count, n = codes.shape
    sets = 1 << n
    all_equal = np.empty((sets, FACES))  # P(all of the set keep v)
    all_lower = np.empty((sets, FACES))  # P(all of the set keep less)
    wins = np.zeros((sets, n))  # P(each maester wins when this set argues)
    for row in range(count):
        multiply(codes, row, equal, all_equal)
        multiply(codes, row, lower, all_lower)
        for among in range(sets - 1 if random_ties else 1, sets):
            win_among(among, all_equal, all_lower, random_ties, wins)
        out[row] = wins[sets - 1]


def argument_chances(treated: np.ndarray, saved: np.ndarray, ties: Literal["again", "random"] = "again") -> np.ndarray:
    """Return P(each maester wins the argument when all argue), (m, n) float64, in closed form.

    With ties argued again, let P(S, U) be the chance that of those in S exactly U keep the highest die. Then i wins
    among S with W(S, i) = [P(S, {i}) + sum of P(S, U) W(U, i)] / (1 - P(S, S)), summed over U strictly between {i} and S.
    """
    equal, lower = dice_table(rounded_up(int(treated.max(initial=0))))
    out = np.empty(treated.shape)
    _argue(code_of(treated, saved), equal, lower, ties == "random", out)
    return out
