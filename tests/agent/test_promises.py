"""Promises: what exact measures see of them, and declarations that nobody would read."""

import numpy as np
import pytest

from dice_envs import AgentError, Promises, configure
from dice_envs.agent import Uniform, promises_of
from dice_envs.exact.agents import asked


def declared(agent):
    """Promises that differ from the defaults; callables and other objects as True."""
    usual = vars(Promises())
    given = {name: value for name, value in vars(promises_of(agent)).items() if value != usual[name]}
    return {name: value if isinstance(value, bool | str) else True for name, value in given.items()}


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


def test_a_network_reads_observations_alone():
    with pytest.raises(ValueError, match="observes_only must be true with network"):
        Promises(network=lambda variant: None)
