"""Values of choices in the cooperative Shakes, compared with a list of all that can follow."""

import itertools
import math

import numpy as np
import pytest

from dice_envs import Batch, configure, response_values
from dice_envs.exact import optima
from dice_envs.exact.shakes.chances import kept_die
from dice_envs.games.shakes import EFFICACIES, SILENT
from tests.support.shakes_tools import win_by_brute_force
from tests.support.subsets import covering
from tests.support.variants import random_states

SMALL = {"num_players": 3, "num_patients": 3, "goal": 2}


def recovers(variant, state, treatment):
    """P(the patient recovers): over all deals of the efficacies, by their likelihoods; over the known one if they are open."""
    n = variant.options.num_players
    treated, saved = state["treated"][:n].tolist(), state["saved"][:n].tolist()
    deals = (
        [tuple(state["efficacy"][:n].tolist())] if variant.options.open_efficacies else itertools.permutations(EFFICACIES[n])
    )
    total = chance = 0.0
    for deal in deals:
        likelihood = math.prod(
            (pips / 6) ** good * (1 - pips / 6) ** (count - good) for pips, count, good in zip(deal, treated, saved)
        )
        total += likelihood
        chance += likelihood * deal[treatment] / 6
    return chance / total


def treated_value(values, variant, state, treatment):
    """The reward for this patient and the best value at the next, or at the end what the game pays."""
    options, total = variant.options, 0.0
    chance = recovers(variant, state, treatment)
    for recovered in range(2):
        after = state.copy()
        after["treated"][treatment] += 1
        after["saved"][treatment] += recovered
        after["patients"] += 1
        after["strength"], after["argued"], after["spoken"] = SILENT, 0, 0
        after["opener"] = after["seat"] = 0 if options.mode == "physician" else (state["opener"] + 1) % options.num_players
        reward = float(recovered) if options.pays == "saved" else 0.0
        if after["patients"] < options.patients:
            reward += np.nanmax(values.action_values(after[None]))
        elif options.pays == "win":
            reward = float(after["saved"].sum() >= options.goal)
        total += (chance if recovered else 1 - chance) * reward
    return total


def spoken_value(values, variant, state, die):
    """What follows once the maester keeps a die, or yields (die is SILENT)."""
    n, after = variant.options.num_players, state.copy()
    seat = int(state["seat"])
    after["strength"][seat], after["argued"][seat] = die, die != SILENT
    after["spoken"] += 1
    if after["spoken"] < n:
        after["seat"] = (seat + 1) % n
        return np.nanmax(values.action_values(after[None]))
    strength = after["strength"][:n]
    holders = tuple(np.flatnonzero(strength == strength.max()).tolist())
    if variant.options.ties == "random":
        won = [1 / len(holders)] * len(holders)
    else:  # those who hold the highest die throw again
        won = win_by_brute_force(
            [kept_die(int(state["treated"][seat]), int(state["saved"][seat])) for seat in holders], "again"
        )
    return sum(float(chance) * treated_value(values, variant, after, seat) for seat, chance in zip(holders, won, strict=True))


@covering(
    ("ties", "options"),
    ["again", "random"],
    [{}, {"reward": "win"}, {"open_efficacies": True}, {"num_players": 4, "num_patients": 2}],
)
def test_values_of_arguing_and_yielding_are_the_means_of_what_follows(options, ties):
    variant = configure("shakes", **{**SMALL, **options}, ties=ties)
    values = response_values(variant)
    for state in random_states(variant, 3, 2):
        seat = int(state["seat"])
        yields, argues = values.action_values(state[None])[0]
        chances = kept_die(int(state["treated"][seat]), int(state["saved"][seat]))
        wanted = sum(float(chance) * spoken_value(values, variant, state, die) for die, chance in enumerate(chances, 1))
        assert argues == pytest.approx(wanted, abs=1e-12)
        if not np.isnan(yields):
            assert yields == pytest.approx(spoken_value(values, variant, state, SILENT), abs=1e-12)


@covering(("mode", "known"), ["physician", "maesters"], [False, True])
def test_the_start_is_worth_the_optimum(mode, known):
    variant = configure("shakes", mode=mode, open_efficacies=known)
    values = response_values(variant)
    assert ("players see how well each treatment works" in values.note) == known
    assert values.start(0) == next(iter(optima(variant).values()))
    first = np.nanmax(values.action_values(Batch(variant, 50, seed=1).states), axis=1)
    np.testing.assert_allclose(first, values.start(0), rtol=0, atol=1e-9)
