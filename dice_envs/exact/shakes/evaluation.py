"""Exact distributions of the patients that a policy saves.

Policies that look at the tally alone do as well with open efficacies as with hidden ones. All others are evaluated for each
deal of the efficacies (`evaluate_open`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dice_envs.exact.shakes.posterior import efficacy_chances
from dice_envs.exact.shakes.tally import MOST_TALLIES, TIE, Policy, Problem, code_bits, code_of, keys_of, tallies
from dice_envs.games.shakes import FACES, assignments

__all__ = ["Evaluation", "TooManyReached", "evaluate", "evaluate_open"]

ROWS_AT_ONCE = 1 << 16


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The exact performance of a policy.

    Attributes:
        distribution: P(k patients saved), (num_patients + 1,) float64.
        saved: the expectation.
        win: P(the team wins).
        shares: the expected share of patients that get a treatment of each of `problem.kinds`.
        matching_gap: distance of the choice from probability matching, which chooses each treatment with the chance that it
            is the best: total variation, averaged over patients.
        most_dice: P(k is the most dice that a maester throws at once in a game), (num_patients + 1,) float64, if every
            maester argues.
        most_treated: P(the treatment used most is given to k patients), (num_patients + 1,) float64.
    """

    distribution: np.ndarray
    saved: float
    win: float
    shares: np.ndarray
    matching_gap: float
    most_dice: np.ndarray
    most_treated: np.ndarray

    def reached(self, goal: str) -> float:
        """Return the patients saved for the goal "saved", P(the team wins) for "win"."""
        return self.saved if goal == "saved" else self.win


def evaluate(problem: Problem, policy: Policy, merged: bool = True) -> Evaluation:
    """Return the exact performance of a policy.

    Args:
        problem: the game.
        policy: see `Policy`. With `merged` it is asked about one order of each tally only, so it must be equivariant:
            treatments that change places take their probabilities with them.
        merged: False for policies that tell treatments apart by their place.

    Raises:
        ValueError: the policy's probabilities are not a distribution, or there are too many tallies.
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
    most_treated = np.bincount(levels[-1].treated.max(axis=1), mass, problem.num_patients + 1)
    return _evaluation(problem, distribution, shares, gap, most_dice, most_treated)


def _evaluation(
    problem: Problem, distribution: np.ndarray, shares: np.ndarray, gap: float, most_dice: np.ndarray, most_treated: np.ndarray
) -> Evaluation:
    """Return an Evaluation; `shares` and `gap` are summed over patients."""
    return Evaluation(
        distribution=distribution,
        saved=float(distribution @ np.arange(len(distribution))),
        win=float(distribution[problem.goal :].sum()),
        shares=shares / problem.num_patients,
        matching_gap=gap / problem.num_patients,
        most_dice=most_dice,
        most_treated=most_treated,
    )


def _chosen(policy: Policy, treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
    """Return the policy's probabilities, (m, n) float64. ValueError if they are not a distribution."""
    starts = range(0, len(treated), ROWS_AT_ONCE)
    chances = np.concatenate([policy(*(each[first : first + ROWS_AT_ONCE] for each in (treated, saved))) for first in starts])
    if chances.shape != treated.shape or (chances < -TIE).any() or not np.allclose(chances.sum(axis=1), 1, atol=1e-5):
        raise ValueError(f"a policy must give {treated.shape[1]} chances that add up to 1 at every tally")
    return chances / chances.sum(axis=1, keepdims=True)


class TooManyReached(ValueError):
    """A policy reaches more tallies than it may be asked at."""


def evaluate_open(
    problem: Problem,
    policy_of: Callable[[np.ndarray], Policy],
    most: int = MOST_TALLIES,
    done: Callable[[int, int], Any] = lambda amount, total: None,
) -> Evaluation:
    """Return the exact distribution of what policies that know the efficacies achieve, over all deals of the efficacies.

    Args:
        problem: the game.
        policy_of: the efficacies (n,) int8 of the treatments → the policy that knows them. It is asked only at the tallies
            that it reaches.
        most: limit on the tallies at which the policies are asked, all deals together.
        done: called with progress, as (amount done since the last call, amount in all).

    Raises:
        TooManyReached: the policies reach more tallies.
        ValueError: a policy's probabilities are not a distribution.
    """
    ways = assignments(problem.efficacies)
    found = []
    for efficacies in ways:
        one, asked = _evaluate_known(problem, efficacies, policy_of(efficacies), most)
        most -= asked
        found.append(one)
        done(1, len(ways))

    return Evaluation(
        distribution=np.mean([one.distribution for one in found], axis=0),
        saved=float(np.mean([one.saved for one in found])),
        win=float(np.mean([one.win for one in found])),
        shares=np.mean([one.shares for one in found], axis=0),
        matching_gap=float(np.mean([one.matching_gap for one in found])),
        most_dice=np.mean([one.most_dice for one in found], axis=0),
        most_treated=np.mean([one.most_treated for one in found], axis=0),
    )


def _evaluate_known(problem: Problem, efficacies: np.ndarray, policy: Policy, most: int) -> tuple[Evaluation, int]:
    """Return the evaluation for one deal of `evaluate_open`, and the number of tallies at which the policy was asked."""
    n, patients = len(efficacies), problem.num_patients
    bits = code_bits(patients)
    success = efficacies / FACES
    kind_of = np.array([problem.kinds.index(int(pips)) for pips in efficacies])
    best = (efficacies == efficacies.max()) / (efficacies == efficacies.max()).sum()
    treated = saved = np.zeros((1, n), np.int16)
    mass: Any = np.ones(1)
    shares, gap, asked = np.zeros(len(problem.kinds)), 0.0, 0
    for _ in range(patients):
        asked += len(mass)
        if asked > most:
            raise TooManyReached(f"num_players={n} with num_patients={patients} has too many tallies that this policy reaches")
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
            keys = keys_of(code_of(reached[:, :n], reached[:, n:]), bits)
            _, first, to = np.unique(keys, return_index=True, return_inverse=True)
        else:
            _, first, to = np.unique(reached, axis=0, return_index=True, return_inverse=True)
        weights = np.concatenate([flow[row, one] * (1 - success[one]), flow[row, one] * success[one]])
        mass = np.bincount(to.ravel(), weights, len(first))
        treated, saved = reached[first, :n], reached[first, n:]
    distribution = np.bincount(saved.sum(axis=1), mass, patients + 1)
    most_treated = np.bincount(treated.max(axis=1), mass, patients + 1)
    return _evaluation(problem, distribution, shares, gap, most_dice, most_treated), asked
