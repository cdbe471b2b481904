"""Distributions of rolled hands, compared with a list of all rolls."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import pytest

from dice_envs.exact.score_dice.solvers import deals, hands


def test_deals_and_hands_are_distributions():
    for pool, keep in (((4, 4, 3), 2), ((6, 4, 4, 2), 1), ((4, 3), 2)):
        assert sum(chance for _, chance in deals(pool, keep)) == pytest.approx(1)
        kept = defaultdict(float)
        for dice, chance in deals(pool, keep):
            for hand, share in hands(dice).items():
                kept[tuple((die.face, die.size) for die in hand)] += chance * share
        expected = defaultdict(float)
        for faces in itertools.product(*(range(1, size + 1) for size in pool)):
            hand = sorted(zip(faces, pool, strict=True), reverse=True)[:keep]
            expected[tuple(hand)] += 1 / math.prod(pool)
        assert dict(kept) == pytest.approx(dict(expected))
