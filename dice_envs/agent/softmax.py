"""Sampling from a softmax over the legal actions."""

from __future__ import annotations

import math

import numpy as np

from dice_envs.core.kernel import kernel

__all__ = ["sample_softmax"]


@kernel(allocates=False)
def sample_softmax(logits, mask, floor, uniform):
    """Draw a legal action from the softmax of the logits; return it and its log probability.

    Actions less likely than `floor` times the likeliest one are left out. `uniform` is a random number from 0 to 1.
    """
    top = -np.inf
    for action in range(len(logits)):
        if mask[action] != 0:
            top = max(top, logits[action])
    total = 0.0
    for action in range(len(logits)):
        if mask[action] != 0:
            weight = math.exp(logits[action] - top)
            if weight >= floor:
                total += weight
    remaining = uniform * total
    chosen = -1
    for action in range(len(logits)):
        if mask[action] != 0:
            weight = math.exp(logits[action] - top)
            if weight >= floor:
                chosen = action
                remaining -= weight
                if remaining < 0:
                    break
    return chosen, logits[chosen] - top - math.log(total)
