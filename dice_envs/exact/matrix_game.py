"""Zero-sum matrix games, one or many at once, solved by the simplex method in compiled code.

The row player picks row i, the column player column j, and the row player wins `payoff[i, j]` from the column
player. By von Neumann's theorem the game has a value, and each side a mixed strategy that secures it.

Source: G. B. Dantzig, "A proof of the equivalence of the programming problem and the game problem" (1951), for the
linear programme; R. G. Bland, "New finite pivoting rules for the simplex method" (1977), for the rule that cannot cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel

MAX_ACTIONS = 8  # rows and columns that the work space of `solve_kernel` holds
_ZERO = 1e-11  # smaller numbers are rounding errors in a tableau whose entries are of order 1
_LEAST_PIVOT = 1e-9
_TINY = 1e-3  # a pivot is tiny below this share of the largest one that may be chosen


@kernel(allocates=False)
def _set_up(payoff, rows, columns, tableau, basis):
    """Write the first tableau, with payoffs scaled to 1 … 2; return the least payoff and the range of payoffs. In place.

    The scaling makes the value positive: maximise sum(y) subject to scaled @ y <= 1, y >= 0. Then the value is 1 / sum(y),
    y times it the column player's strategy, and the dual solution times it the row player's. If all payoffs are equal, so
    that the range is 0, nothing is written.
    """
    least = payoff[0, 0]
    most = payoff[0, 0]
    for i in range(rows):
        for j in range(columns):
            least = min(least, payoff[i, j])
            most = max(most, payoff[i, j])
    span = most - least
    if span <= 0.0:
        return least, 0.0
    width = columns + rows
    for i in range(rows):
        for j in range(columns):
            tableau[i, j] = (payoff[i, j] - least) / span + 1.0
        for k in range(rows):
            tableau[i, columns + k] = 1.0 if k == i else 0.0
        tableau[i, width] = 1.0
        basis[i] = columns + i
    for j in range(columns):
        tableau[rows, j] = -1.0
    for k in range(rows + 1):
        tableau[rows, columns + k] = 0.0
    return least, span


@kernel(allocates=False)
def _entering(tableau, rows, width):
    """Return the first column whose reduced cost is negative (Bland's rule); -1 if the tableau is optimal."""
    for j in range(width):
        if tableau[rows, j] < -_ZERO:
            return j
    return -1


@kernel(allocates=False)
def _leaving(tableau, basis, rows, width, entering):
    """Return the row with the least ratio, of equal ones that with the lowest variable (Bland's rule) and no tiny pivot.

    Division by a tiny pivot makes rounding errors large. Where payoffs are nearly equal, a row with a larger pivot may
    therefore leave instead, if that breaks no bound by more than _ZERO (P. M. J. Harris, "Pivot selection methods of the
    Devex LP code", 1973).
    """
    longest = np.inf
    for i in range(rows):
        if tableau[i, entering] > _LEAST_PIVOT:
            longest = min(longest, (max(0.0, tableau[i, width]) + _ZERO) / tableau[i, entering])
    largest = 0.0
    for i in range(rows):
        if tableau[i, entering] > _LEAST_PIVOT and tableau[i, width] <= longest * tableau[i, entering]:
            largest = max(largest, tableau[i, entering])
    leaving = -1  # stays so in no case: the scaled matrix is positive, so the programme is bounded
    for i in range(rows):
        first = leaving < 0 or basis[i] < basis[leaving]
        if first and tableau[i, entering] > _TINY * largest and tableau[i, width] <= longest * tableau[i, entering]:
            leaving = i
    return leaving


@kernel(allocates=False)
def _pivot(tableau, rows, width, leaving, entering):
    """Bring the entering column into the basis. In place."""
    pivot = tableau[leaving, entering]
    for j in range(width + 1):
        tableau[leaving, j] /= pivot
    for i in range(rows + 1):
        factor = tableau[i, entering]
        if i != leaving and factor != 0.0:
            for j in range(width + 1):
                tableau[i, j] -= factor * tableau[leaving, j]


@kernel(allocates=False)
def _read_strategies(tableau, basis, rows, columns, row_strategy, column_strategy):
    """Write both strategies from the last tableau. In place."""
    for j in range(columns):
        column_strategy[j] = 0.0
    row_sum = 0.0
    for i in range(rows):
        row_strategy[i] = max(0.0, tableau[rows, columns + i])
        row_sum += row_strategy[i]
        if basis[i] < columns:
            column_strategy[basis[i]] = max(0.0, tableau[i, columns + rows])
    column_sum = 0.0
    for j in range(columns):
        column_sum += column_strategy[j]
    for i in range(rows):
        row_strategy[i] /= row_sum
    for j in range(columns):
        column_strategy[j] /= column_sum


@kernel(allocates=False)
def solve_kernel(payoff, rows, columns, tableau, basis, row_strategy, column_strategy):
    """Solve payoff[:rows, :columns]; return the value of the game to the row player.

    Args:
        payoff: (>= rows, >= columns) float64, finite.
        rows, columns: 1 … MAX_ACTIONS.
        tableau: (MAX_ACTIONS + 1, 2 * MAX_ACTIONS + 1) float64, work space.
        basis: (MAX_ACTIONS,) int64, work space.
        row_strategy, column_strategy: float64; the first `rows` and `columns` entries are set to an optimal mixed
            strategy of each side.

    The last four are modified in place.
    """
    least, span = _set_up(payoff, rows, columns, tableau, basis)
    if span == 0.0:
        for i in range(rows):
            row_strategy[i] = 1.0 / rows
        for j in range(columns):
            column_strategy[j] = 1.0 / columns
        return least
    width = columns + rows
    entering = _entering(tableau, rows, width)
    while entering >= 0:
        leaving = _leaving(tableau, basis, rows, width, entering)
        if leaving < 0:
            break
        _pivot(tableau, rows, width, leaving, entering)
        basis[leaving] = entering
        entering = _entering(tableau, rows, width)
    _read_strategies(tableau, basis, rows, columns, row_strategy, column_strategy)
    return (1.0 / tableau[rows, width] - 1.0) * span + least


@kernel
def new_work():
    """Return the work space of `solve_kernel`: tableau and basis, for one game after another."""
    return np.empty((MAX_ACTIONS + 1, 2 * MAX_ACTIONS + 1)), np.empty(MAX_ACTIONS, np.int64)


@kernel
def _solve(payoffs, values, row_strategies, column_strategies):
    """Solve each of (n, rows, columns) games. The others are modified in place: (n,), (n, rows) and (n, columns)."""
    games, rows, columns = payoffs.shape
    tableau, basis = new_work()
    for i in range(games):
        values[i] = solve_kernel(payoffs[i], rows, columns, tableau, basis, row_strategies[i], column_strategies[i])


class MatrixSolution(NamedTuple):
    """Solved games: their values to the row player and an optimal strategy of each side. One game has no first axes."""

    value: np.ndarray  # (…) float64
    row_strategy: np.ndarray  # (…, rows) float64
    column_strategy: np.ndarray  # (…, columns) float64


def solve(payoff: np.ndarray) -> MatrixSolution:
    """Solve one game or many.

    Each strategy secures the value up to rounding, or up to a millionth of the range of payoffs where some are nearly equal.

    Args:
        payoff: (…, rows, columns) numbers, what the row player wins; up to MAX_ACTIONS each way.

    Raises:
        ValueError: not such a matrix, or not finite.
    """
    games = np.asarray(payoff, np.float64)
    if games.ndim < 2 or not 1 <= min(games.shape[-2:]) <= max(games.shape[-2:]) <= MAX_ACTIONS:
        raise ValueError(f"payoff must be a matrix of 1 to {MAX_ACTIONS} rows and columns, not of shape {games.shape}")
    if not np.isfinite(games).all():
        raise ValueError(f"payoff must be finite, not {games.tolist()}")
    *several, rows, columns = games.shape
    value, row_strategy, column_strategy = np.empty(several), np.empty((*several, rows)), np.empty((*several, columns))
    flat = (value.reshape(-1), row_strategy.reshape(-1, rows), column_strategy.reshape(-1, columns))  # no copies
    _solve(games.reshape(-1, rows, columns), *flat)
    return MatrixSolution(value[()], row_strategy, column_strategy)
