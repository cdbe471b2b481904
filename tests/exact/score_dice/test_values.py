"""Values of choices in score dice, compared with a list of all that can happen."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

from dice_envs import Batch, Turn, agents, configure, response_values
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from tests.support.subsets import covering

OPTIONS = [
    {"pool_a": (3, 2), "pool_b": (3, 2)},
    {"pool_a": (3, 2), "pool_b": (3, 3, 2), "ties": "a"},
    {"pool_a": (3, 2), "pool_b": (3, 2), "reward": "score", "open_hands": True},
]


def listed(variant, opponent, seat, values):
    """All that can happen to the seat: by what it sees, its values there, and by its action what follows with which weight.

    Returns: what it sees → (values, {action: [(weight, reward + best value that follows)]}); and what the game is worth.
    """
    one = np.zeros(1, np.int64)
    seen, first = {}, []

    def observed(state):
        out = np.zeros((1, variant.facts.observation_size), np.float32)
        variant.kernels.observe(variant.params, state[None], one, np.array([seat]), out)
        return out.tobytes()

    def played(state, action):
        after = state.copy()[None]
        variant.kernels.play(variant.params, after, one, np.array([action]))
        return after[0], float(after[0]["rewards"][seat])

    def follow(state, weight, came, reward):
        """`came` is the list of what follows the seat's last action, to which its next decision belongs."""
        if state["seat"] == OVER:
            came.append((weight, reward))
        elif state["seat"] == seat:
            key = observed(state)
            if key not in seen:
                seen[key] = values.action_values(state[None])[0], defaultdict(list)
            found, actions = seen[key]
            came.append((weight, reward + np.nanmax(found)))
            for action in np.flatnonzero(np.isfinite(found)):
                follow(*(played(state, action)[0], weight), actions[action], played(state, action)[1])
        else:
            (chances,) = opponent.probabilities(Turn(variant, state[None], one, new_streams(1, 1)))
            for action in np.flatnonzero(chances):
                after, more = played(state, action)
                follow(after, weight * chances[action], came, reward + more)

    pools = variant.options.pools
    rolls = list(itertools.product(*(itertools.product(*(range(1, size + 1) for size in pool)) for pool in pools)))
    for roll in rolls:
        (state,) = Batch(variant, 1, seed=1).states
        variant.arrange(state, {"dice": [list(hand) for hand in roll]})
        follow(state, 1 / len(rolls), first, 0.0)
    return seen, sum(weight * value for weight, value in first)


@covering(("options", "spec"), OPTIONS, ["random", "highest"])
def test_values_of_choices_are_the_means_of_what_follows(options, spec):
    variant = configure("score_dice", **options)
    values = response_values(variant, spec)
    for seat in range(2):
        seen, start = listed(variant, agents.make(spec), seat, values)
        assert values.start(seat) == pytest.approx(start, abs=1e-12)
        for found, actions in seen.values():
            for action, followed in actions.items():
                weights, worth = np.array(followed).T
                assert found[action] == pytest.approx(weights @ worth / weights.sum(), abs=1e-12)
