"""What the tests of The Shakes share."""

import numpy as np
from scipy.stats import chisquare

from dice_envs.core.dice import new_streams


def states_with(variant, treated, saved, count, seed=0):
    """`count` states with this tally, freshly dealt."""
    states = np.zeros(count, variant.game.state)
    states["rng"] = new_streams(seed, count)["rng"]
    variant.kernels.deal(variant.params, states, np.arange(count))
    states["treated"][:, : len(treated)] = treated
    states["saved"][:, : len(saved)] = saved
    states["patients"] = sum(treated)
    return states


def assert_distributed(counts, chances):
    """Assert that the counts may come from the chances: chi-square test, with rare cells merged."""
    counts, expected = np.asarray(counts, float), np.asarray(chances) * np.sum(counts)
    assert not counts[expected == 0].any()
    common = expected >= 5
    seen = np.append(counts[common], counts[~common].sum())
    due = np.append(expected[common], expected[~common].sum())
    if due[-1] < 5:
        smallest = due[:-1].argmin()
        seen[smallest] += seen[-1]
        due[smallest] += due[-1]
        seen, due = seen[:-1], due[:-1]
    assert len(seen) > 1
    assert chisquare(seen, due * seen.sum() / due.sum()).pvalue > 1e-4
