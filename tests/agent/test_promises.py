"""Promises: what each agent of the package declares, and declarations that nobody would read."""

import numpy as np
import pytest

from dice_envs import AgentError, Promises, configure
from dice_envs.agent import Uniform, make_agent, promises_of
from dice_envs.agents import factories
from dice_envs.agents.adaptive import MEMORY
from dice_envs.exact.agents import asked

# The promises that are not the defaults, offers as True.
EXPECTED = {
    "random": {"memoryless": True},
    "numbers": {"memoryless": True},
    "reader": {},
    "reader:learn=false": {"looks_back": False},
    "nash": {"looks_back": False, "for_variant": True, "prepare": True},
    "adaptive": {"remembers": True},
    "champion": {"observes_only": True, "network": True},
    "ppo": {"observes_only": True, "network": True, "for_variant": True},
    "strongest": {"memoryless": True},
    "best_response": {},
    "highest": {"strategy": "highest"},
    "shuffled": {"memoryless": True, "strategy": "uniform"},
    "score_response": {},
    "score_nash": {},
    "greedy": {"tally_alone": True},
    "ucb": {"tally_alone": True},
    "thompson": {"tally_alone": True},
    "argument": {"tally_alone": True},
    "dogmatic": {"tally_alone": True},
    "bayes": {"tally_alone": True, "reads_efficacies": True},
    "thirties": {},
    "mcts": {},
    "chat:any": {},
    "chat:any,illegal=lose": {"resigns": True},
}


def declared(agent):
    """Promises that differ from the defaults; callables and other objects as True."""
    usual = vars(Promises())
    given = {name: value for name, value in vars(promises_of(agent)).items() if value != usual[name]}
    return {name: value if isinstance(value, bool | str) else True for name, value in given.items()}


def test_every_agent_of_the_package_is_listed():
    assert {spec.partition(":")[0] for spec in EXPECTED} == set(factories())


@pytest.mark.parametrize("spec", EXPECTED)
def test_what_the_agents_of_the_package_promise(spec):
    assert declared(make_agent(spec)) == EXPECTED[spec]
    assert promises_of(make_agent("adaptive")).remembers == MEMORY


@pytest.mark.parametrize(
    ("game", "spec", "expected"),
    [
        ("fatestones", "nash", {"strategy": "equilibrium"}),
        ("score_dice", "nash", {"memoryless": True, "strategy": "uniform"}),
        ("liars_dice", "nash", {"looks_back": False, "solution": True}),
    ],
)
def test_an_exact_measure_sees_the_promises_of_the_agent_that_stands_for_another(game, spec, expected):
    assert declared(asked(spec, configure(game))) == expected


class Acts:
    """Declares nothing."""

    def act(self, turn):
        return turn.legal.argmax(axis=1)


class Resigning(Acts):
    promises = Promises(memoryless=True, resigns=True, remembers=np.int64, deterministic=True)


def test_an_agent_that_declares_nothing_promises_nothing():
    assert promises_of(Acts()) == Promises()


def test_a_measure_keeps_to_what_holds_where_it_asks():
    """It asks as when a match begins, and knows no memoryless probabilities of an agent that states none."""
    player = asked(Resigning(), configure("thirties"))
    assert player.promises == Promises(deterministic=True)
    assert player.is_known


@pytest.mark.parametrize(
    "name",
    [
        "deterministic", "memoryless", "observes_only", "looks_back", "tally_alone", "reads_efficacies", "resigns", "remembers",
        "played_network", "for_variant", "prepare",
    ],
)  # fmt: skip
def test_a_promise_outside_promises_is_refused(name):
    former, mixed = (type("Mine", (kind,), {name: True}) for kind in (Acts, Uniform))
    for kind in (former, mixed):
        with pytest.raises(AgentError, match=rf"Mine\.{name} is no longer read: declare it in Mine\.promises"):
            promises_of(kind())
