"""Posteriors of the treatments given a tally: the chances of the highest beta draw, and of each efficacy."""

from __future__ import annotations

import functools

import numpy as np

from dice_envs.core.kernel import kernel
from dice_envs.exact.shakes.argument import beta_tails
from dice_envs.exact.shakes.tally import Problem, code_of, rounded_up
from dice_envs.games.shakes import FACES, assignments

__all__ = ["beta_chances", "efficacy_chances", "success_chances"]


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
