"""The tallies of a game: patients treated and saved with each treatment, all that a policy needs to know.

Before the first patient all treatments are equivalent. So for policies that do not tell treatments apart by their place,
tallies that differ only in the order of the treatments are merged (`merged=True`), which leaves one in 340 of the tallies of
six players. Policies that do, such as a trained network, are evaluated tally by tally (`merged=False`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dice_envs.exact.kept import kept
from dice_envs.games.shakes import Options

__all__ = ["TIE", "Policy", "Problem", "best_of", "code_bits", "code_of", "count_merged", "keys_of", "rounded_up", "tallies"]

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
    _check_count(problem, merged)
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


def _check_count(problem: Problem, merged: bool) -> None:
    """Raise ValueError if there are too many tallies, or their keys need more than 64 bits."""
    patients, n = problem.num_patients, len(problem.efficacies)
    about = count_merged(problem)
    if about > MOST_TALLIES or n * code_bits(patients) > 64:
        raise ValueError(
            f"num_patients={patients} with num_players={n} has about {about:,} tallies; "
            f"the exact analysis takes {MOST_TALLIES:,} at most"
        )
    if not merged and math.comb(patients + 2 * n, 2 * n) > MOST_TALLIES:
        raise ValueError(f"num_players={n} has too many tallies to tell the treatments apart; fewer players are possible")
