"""Values of choices in the cooperative Shakes, compared with a list of all that can follow."""

import numpy as np
import pytest

from dice_envs import Batch, configure, response_values
from dice_envs.exact import optima
from dice_envs.games.shakes import SILENT
from dice_envs.games.shakes.exact.chances import kept_die
from tests.support.shakes_tools import win_by_brute_force
from tests.support.subsets import covering
from tests.support.variants import random_states

SMALL = {"num_players": 3, "num_patients": 3, "goal": 2}


def spoken_value(values, worth, variant, state, die):
    """What follows once the maester keeps a die, or yields (die is SILENT); `worth` is that of each maester's treatment."""
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
    return sum(float(chance) * worth[seat] for seat, chance in zip(holders, won, strict=True))


@covering(
    ("ties", "options"),
    ["again", "random"],
    [{}, {"reward": "win"}, {"open_efficacies": True}, {"num_players": 4, "num_patients": 2}],
)
def test_values_of_arguing_and_yielding_are_the_means_of_what_follows(options, ties):
    """Before anybody has spoken they are those of a physician's best treatment: maesters can leave the patient to it."""
    options = {**SMALL, **options, "ties": ties}
    variant, physician = configure("shakes", **options), configure("shakes", **options, mode="physician")
    values, treatments = response_values(variant), response_values(physician).action_values
    for state in random_states(variant, 3, 2):
        seat, worth = int(state["seat"]), treatments(state[None])[0]
        yields, argues = values.action_values(state[None])[0]
        chances = kept_die(int(state["treated"][seat]), int(state["saved"][seat]))
        wanted = sum(float(chance) * spoken_value(values, worth, variant, state, die) for die, chance in enumerate(chances, 1))
        assert argues == pytest.approx(wanted, abs=1e-12)
        if not np.isnan(yields):
            assert yields == pytest.approx(spoken_value(values, worth, variant, state, SILENT), abs=1e-12)
        if state["spoken"] == 0:
            assert np.nanmax([yields, argues]) == pytest.approx(worth.max(), abs=1e-12)


@covering(("mode", "known"), ["physician", "maesters"], [False, True])
def test_the_start_is_worth_the_optimum(mode, known):
    variant = configure("shakes", mode=mode, open_efficacies=known)
    values = response_values(variant)
    assert ("players see how well each treatment works" in values.note) == known
    assert values.start(0) == next(iter(optima(variant).values()))
    first = np.nanmax(values.action_values(Batch(variant, 50, seed=1).states), axis=1)
    np.testing.assert_allclose(first, values.start(0), rtol=0, atol=1e-9)
