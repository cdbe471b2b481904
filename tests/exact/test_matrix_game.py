"""Zero-sum matrix games, compared with SciPy's linear programmes and known solutions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from dice_envs.exact.matrix_game import MAX_ACTIONS, solve


def value_by_linprog(payoff: np.ndarray) -> float:
    rows, columns = payoff.shape
    result = linprog(
        np.r_[np.zeros(rows), -1.0],
        A_ub=np.c_[-payoff.T, np.ones(columns)],
        b_ub=np.zeros(columns),
        A_eq=[np.r_[np.ones(rows), 0.0]],
        b_eq=[1.0],
        bounds=[(0, None)] * rows + [(None, None)],
        method="highs",
    )
    return -result.fun


def check_secures_value(payoff: np.ndarray, tolerance: float = 1e-9) -> None:
    solution = solve(payoff)
    for strategy in (solution.row_strategy, solution.column_strategy):
        assert strategy.min() >= 0
        assert strategy.sum() == pytest.approx(1, abs=1e-12)
    scale = max(1.0, float(np.abs(payoff).max()))
    assert (solution.row_strategy @ payoff).min() >= solution.value - tolerance * scale
    assert (payoff @ solution.column_strategy).max() <= solution.value + tolerance * scale


shapes = st.tuples(st.integers(1, 5), st.integers(1, 5))


def test_a_tiny_pivot_is_avoided():
    """Without that the value of some of these games is wrong by more than 1."""
    rng = np.random.default_rng(1)
    for _ in range(5000):
        shape = rng.integers(1, 6, 2)
        difference = 10.0 ** -rng.integers(7, 16)
        check_secures_value(rng.integers(-4, 5, shape) / 4 + difference * rng.integers(-2, 3, shape), 1e-6)


degenerate = hnp.arrays(np.float64, shapes, elements=st.integers(-2, 2))  # many equal payoffs


@settings(deadline=None, max_examples=250)
@given(degenerate | hnp.arrays(np.float64, shapes, elements=st.integers(-1024, 1024).map(lambda k: k / 1024)))
def test_value_is_the_linear_programme_s(payoff):
    check_secures_value(payoff)
    assert solve(payoff).value == pytest.approx(value_by_linprog(payoff), abs=1e-7)


def test_random_games_up_to_the_limit():
    rng = np.random.default_rng(1)
    for _ in range(500):
        payoff = rng.normal(size=rng.integers(1, MAX_ACTIONS + 1, 2))
        check_secures_value(payoff, 1e-11)


@pytest.mark.parametrize("payoff", [np.zeros(3), np.zeros((9, 2)), np.zeros((0, 2)), np.array([[1.0, np.nan]])])
def test_what_is_no_game_is_refused(payoff):
    with pytest.raises(ValueError, match="payoff must be"):
        solve(payoff)
