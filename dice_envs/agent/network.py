"""A policy network as plain numbers, for those who ask it at very many positions, and sampling from its softmax."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dice_envs.core.kernel import kernel

HUGE = 1e30  # replaces infinite logits


class Network(NamedTuple):
    """Dense layers from an observation to a logit for each action, with tanh between them.

    The policy is a softmax over the legal actions, without those that `floor` cuts off.
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]  # (weights (out, in), biases (out,)) float32, first layer first
    floor: float  # an action whose probability is below `floor` times that of the likeliest one is not taken


def bound(logits: np.ndarray) -> None:
    """Replace logits that are not finite, since sums of finite weights may overflow. In place."""
    if not np.isfinite(logits).all():
        np.nan_to_num(logits, copy=False, nan=-HUGE, posinf=HUGE, neginf=-HUGE)


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
