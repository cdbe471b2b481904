"""Helpers that tests of The Shakes share."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np

from dice_envs import configure
from dice_envs.agent.specs import make_agent
from dice_envs.agents.shakes import TallyPolicy
from dice_envs.core.batch import dealt


def states_with(variant, treated, saved, count, seed=0):
    """`count` states with this tally, freshly dealt."""
    states = dealt(variant, count, np.random.SeedSequence(seed))
    states["treated"][:, : len(treated)] = treated
    states["saved"][:, : len(saved)] = saved
    states["patients"] = sum(treated)
    return states


def policy_of(spec, **options):
    """The tally policy of a spec for given options."""
    agent, chosen = make_agent(spec), configure("shakes", mode="physician", **options).options
    if isinstance(agent, TallyPolicy):
        return lambda treated, saved: agent.chances(chosen, treated, saved)
    return lambda treated, saved: np.full(treated.shape, 1 / treated.shape[1])


def tally(treated, saved):
    return np.array([treated], np.int16), np.array([saved], np.int16)


def win_by_brute_force(dice, ties):
    """Winning probabilities if maester i keeps v with probability dice[i][v], from a list of all outcomes, as fractions."""
    n = len(dice)

    @functools.cache
    def wins(tied):
        direct, again = [Fraction(0)] * n, Fraction(0)
        for faces in itertools.product(range(6), repeat=len(tied)):
            chance = math.prod(dice[i][v] for i, v in zip(tied, faces, strict=True))
            top = tuple(i for i, v in zip(tied, faces, strict=True) if v == max(faces))
            if ties == "random" or len(top) == 1:
                for i in top:
                    direct[i] += chance / len(top)
            elif top == tied:
                again += chance
            else:
                for i, share in enumerate(wins(top)):
                    direct[i] += chance * share
        return [share / (1 - again) for share in direct]

    return wins(tuple(range(n)))
