"""Bayes-optimal play, and the values of treatments under it.

With open efficacies the most effective treatment is best for every patient, so optimal play has a closed form.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Literal

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.exact.kept import kept
from dice_envs.exact.shakes.posterior import success_chances
from dice_envs.exact.shakes.tally import MOST_KEPT, Problem, best_of, code_bits, code_of, count_merged, keys_of, tallies
from dice_envs.games.shakes import FACES

__all__ = ["Solution", "check_in_passing", "open_optimum", "open_values", "solve"]

MOST_IN_PASSING = 500_000  # tallies: solved in some seconds and a quarter of a GiB


@dataclasses.dataclass(frozen=True)
class Solution:
    """Bayes-optimal play: the highest expectation of all policies that do not know the efficacies.

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
        """Return the policy (see `Policy`): the best treatments, equally likely. Rows may be at different patients."""
        return best_of(self.values(treated, saved))

    def values(self, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        """Return the value of each choice, (m, n) float64: patients saved from now on, or the chance to win.

        Args:
            treated, saved: (m, n) patients treated and saved with each treatment; rows may be at different patients.
        """
        bits, levels = code_bits(self.problem.num_patients), tallies(self.problem)
        codes = code_of(treated, saved)
        order = np.argsort(codes, axis=1, kind="stable")
        keys = keys_of(np.take_along_axis(codes, order, axis=1), bits)
        patients = treated.sum(axis=1)
        out = np.empty(treated.shape)
        for level in np.unique(patients):
            mine = np.flatnonzero(patients == level)
            rows = np.searchsorted(levels[level].keys, keys[mine])
            out[mine[:, None], order[mine]] = self.q[level][rows]
        return out


@kept(MOST_KEPT, lambda solution: sum(values.nbytes for values in solution.q))
def solve(problem: Problem, reward: Literal["saved", "win"]) -> Solution:
    """Find Bayes-optimal play by dynamic programming, from the last patient backwards over merged tallies.

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
def _chance_of_at_least(patients: int, least: int, pips: int) -> float:
    """Return P(at least `least` of these patients recover with a treatment of this efficacy)."""
    ways = sum(math.comb(patients, k) * pips**k * (FACES - pips) ** (patients - k) for k in range(max(least, 0), patients + 1))
    return ways / FACES**patients


def open_optimum(problem: Problem, reward: Literal["saved", "win"]) -> float:
    """Return what optimal play reaches if the efficacies are open: every patient gets the most effective treatment."""
    best = max(problem.efficacies)
    if reward == "saved":
        return problem.num_patients * best / FACES
    return _chance_of_at_least(problem.num_patients, problem.goal, best)


def open_values(
    problem: Problem,
    reward: Literal["saved", "win"],
    efficacies: np.ndarray,
    treated: np.ndarray,
    saved: np.ndarray,
) -> np.ndarray:
    """Return the value of giving each treatment to the next patient, (m, n) float64, if the efficacies (m, n) are open.

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
        np.array([_chance_of_at_least(after, least - one, pips) for after, least, pips in rows])[:, None] for one in (1, 0)
    )
    return success * recovered + (1 - success) * died


def check_in_passing(variant: Variant) -> None:
    """Raise ValueError for a game that takes more than some seconds to solve."""
    about = count_merged(Problem.of(variant.options))
    if about > MOST_IN_PASSING and not variant.options.open_efficacies:
        raise ValueError(f"{variant} has about {about:,} tallies; optimal play is found in passing up to {MOST_IN_PASSING:,}")
