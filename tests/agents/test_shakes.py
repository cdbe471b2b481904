"""The agents of The Shakes: probabilities, actions, and the variants that they refuse."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dice_envs import configure
from dice_envs.agent.specs import make_agent
from tests.support.chance import assert_distributed
from tests.support.shakes_tools import policy_of, states_with
from tests.support.subsets import few
from tests.support.turns import turn_at

AGENTS = [
    "ucb",
    "greedy",
    "greedy:permutations",
    "thompson",
    "thompson:permutations",
    "argument",
    "bayes",
    "bayes:saved",
    "bayes:win",
]


def turn_of(variant, treated, saved, count, seed=3):
    return turn_at(variant, states_with(variant, treated, saved, count, seed), seed)


@pytest.mark.parametrize("spec", AGENTS)
@pytest.mark.parametrize(
    ("treated", "saved"), [((0, 0, 0, 0), (0, 0, 0, 0)), ((5, 2, 2, 0), (2, 1, 1, 0)), ((9, 8, 0, 0), (6, 0, 0, 0))]
)
def test_physicians_act_as_they_say(spec, treated, saved):
    variant = configure("shakes", mode="physician", num_players=4)
    agent = make_agent(spec)
    chances = agent.probabilities(turn_of(variant, treated, saved, 1))[0]
    actions = agent.act(turn_of(variant, treated, saved, 10_000))
    assert_distributed(np.bincount(actions, minlength=4), chances)


@given(st.permutations(range(4)), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=4, max_size=4))
@settings(max_examples=25, deadline=None)
def test_policies_go_with_the_treatments_when_they_change_places(order, pairs):
    treated, saved = np.array([[g + b for g, b in pairs]]), np.array([[g for g, _ in pairs]])
    for spec in [*AGENTS, "ucb:0"]:
        policy = policy_of(spec, num_players=4)
        assert np.allclose(policy(treated, saved)[:, order], policy(treated[:, order], saved[:, order]), atol=1e-9)


@few(2, "spec", [*AGENTS, "dogmatic"])
def test_maesters_always_leave_somebody_who_argues(spec):
    variant = configure("shakes", num_players=4)
    agent = make_agent(spec)
    states = states_with(variant, (5, 2, 2, 0), (2, 1, 1, 0), 4)
    states["seat"] = states["opener"] = range(4)
    chances = agent.probabilities(turn_at(variant, states))
    assert np.allclose(chances.sum(axis=1), 1)
    assert math.isclose(chances[:, 1].max(), 1)
    forced = states_with(variant, (5, 2, 2, 0), (2, 1, 1, 0), 4)
    forced["seat"], forced["spoken"], forced["opener"] = range(4), 3, [1, 2, 3, 0]
    assert agent.act(turn_at(variant, forced)).tolist() == [1] * 4
