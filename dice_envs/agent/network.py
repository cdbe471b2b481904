"""A policy network as plain numbers, for those who ask it at very many positions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["HUGE", "Network", "bound"]

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
