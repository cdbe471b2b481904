"""Bayes-optimal play, and the values of choices under it.

With open efficacies the most effective treatment is best for every patient, so optimal play has a closed form.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Literal

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.exact import ActionValues
from dice_envs.exact.kept import kept
from dice_envs.exact.shakes.argument import argument_chances, kept_die
from dice_envs.exact.shakes.posterior import success_chances
from dice_envs.exact.shakes.tally import MOST_KEPT, TIE, Problem, best_of, code_bits, code_of, count_merged, keys_of, tallies
from dice_envs.games.shakes import FACES, SILENT, Options

__all__ = ["Solution", "action_values", "check_in_passing", "open_optimum", "open_values", "solve"]

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


# --- values of choices ----------------------------------------------------------------------------------------------


class _Argument:
    """Values of arguing and yielding over one patient, with optimal play of the whole team.

    All maesters have the same information and the same goal, so these are one player's decisions in turn. Of the argument so
    far only the highest kept die and its holders matter.
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
        """Return the values of yielding (NaN where that is illegal) and of arguing, for the next to speak.

        Args:
            spoken: number of maesters that have spoken.
            best: the highest die kept so far; SILENT if none has argued.
            holders: the seats that keep it, as bits.
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
        """Return the value when these keep the highest die: one of them treats the patient."""
        if holders not in self._tied:
            seats = [seat for seat in range(self.n) if holders >> seat & 1]
            if len(seats) == 1 or self.ties == "random":
                self._tied[holders] = float(self.worth[seats].mean())
            else:
                (chances,) = argument_chances(self.treated[:, seats], self.saved[:, seats], self.ties)
                self._tied[holders] = float(chances @ self.worth[seats])
        return self._tied[holders]


def action_values(variant: Variant, state: Any, in_passing: bool = False) -> ActionValues:
    """Return the value of each treatment, or of arguing and yielding, with Bayes-optimal play afterwards.

    See `dice_envs.exact.GameActionValues`.
    """
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
