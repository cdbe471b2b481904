"""Kernels of games and agents compiled for CUDA as they are. It takes no GPU: NVVM makes PTX of them."""

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is in the environment of make test-cuda")

from numba import cuda, typeof, types
from numba.core.errors import TypingError

from dice_envs.agent.specs import for_game, make_agent
from dice_envs.core.dice import new_streams
from dice_envs.core.game import compile_random_action, configure, names, with_expected_rewards
from dice_envs.core.kernel import makes_arrays
from dice_envs.envs.learner import Mixture, SeatGames
from dice_envs.envs.learner.device import example
from tests.support.variants import MORE_OPTIONS

CAPABILITY = (9, 0)


def compile_ptx(function, *arguments):
    """Compile a CUDA kernel for arguments like these, for a device that is not there."""
    device = SimpleNamespace(compute_capability=CAPABILITY)
    with patch("numba.cuda.dispatcher.get_current_device", return_value=device):
        return cuda.compile_ptx(function, types.void(*map(typeof, arguments)), cc=CAPABILITY)[0]


VARIANTS = [configure(name, **options) for name in names() for options in [{}, *MORE_OPTIONS.get(name, [])[:2]]]


@pytest.mark.library("numba-cuda", "rules and agents compiled for CUDA", game=lambda each: each["variant"].game.name)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_rules(variant):
    rules, params = variant.game, variant.params
    deal, play, legal, observe, reroll_hidden = rules.deal, rules.play, rules.legal, rules.observe, rules.reroll_hidden
    random_action = compile_random_action(rules)
    play_expected = with_expected_rewards(rules).play if rules.expect or rules.play_expected else play

    def all_kernels(states, masks, observations):
        state, mask, observation = states[0], masks[0], observations[0]
        deal(params, state)
        legal(params, state, mask)
        observe(params, state, np.int64(state["seat"]), observation)
        reroll_hidden(params, state, np.int64(state["seat"]))
        play(params, state, random_action(params, state, mask))
        play_expected(params, state, random_action(params, state, mask))

    arrays = np.zeros(1, rules.state), np.zeros((1, 1), np.int8), np.zeros((1, 1), np.float32)
    assert ".entry" in compile_ptx(all_kernels, *arrays)


# Specs besides the names of agents, and options that give an agent another kernel.
MORE_SPECS = {"thirties": ["thirties:sixes", "thirties:heuristic"]}
OTHER_OPTIONS = {"shakes": [{"mode": "physician"}], "thirties": [{"num_players": 1}]}


def offers():
    """Every agent's kernels: variant, spec and kernel."""
    for name in names():
        for variant in [configure(name, **options) for options in [{}, *OTHER_OPTIONS.get(name, [])]]:
            offering = [each for each, factory in for_game(name).items() if hasattr(factory, "kernel")]
            for spec in [more for each in offering for more in [each, *MORE_SPECS.get(each, [])]]:
                offered = make_agent(spec).kernel(variant)
                if offered is not None:
                    yield variant, spec, offered


OFFERS = list(offers())


@pytest.mark.parametrize(
    ("variant", "offered"), [pytest.param(variant, offered, id=f"{variant}-{spec}") for variant, spec, offered in OFFERS]
)
def test_agents(variant, offered):
    """Kernels that make arrays are for CPUs alone."""
    choose, params = offered.choose, variant.params

    def choose_once(options, states, streams, actions):
        actions[0] = choose(params, options[0], states[0], streams[0])

    arguments = offered.options[None], np.zeros(1, variant.game.state), new_streams(1, 1), np.zeros(1, np.int64)
    if makes_arrays(choose):
        with pytest.raises(TypingError, match="empty"):
            compile_ptx(choose_once, *arguments)
    else:
        assert ".entry" in compile_ptx(choose_once, *arguments)


def opponents(variant):
    """All specs with kernels, as one pool: its turn holds the kernels of all."""
    return Mixture([spec for each, spec, offered in OFFERS if each.same_rules(variant) and not makes_arrays(offered.choose)])


# Every opponent and self-play at once; then turns that leave all of it out, one of a game that lists its hands.
TURNS = [(variant, {"opponents": opponents(variant), "self_play": 0.5}) for variant in map(configure, names())]
TURNS += [(configure("thirties", num_players=1), {}), (configure("liars_dice", rules="openspiel"), {})]


@pytest.mark.library("numba-cuda", "a learner's turn compiled for CUDA", game=lambda each: each["variant"].game.name)
@pytest.mark.parametrize(
    ("variant", "settings"), TURNS, ids=lambda each: "-".join(each) if isinstance(each, dict) else str(each)
)
def test_turns(variant, settings):
    functions, arguments = example(SeatGames(variant, 2, **settings))
    assert functions.keys() == arguments.keys()
    for name, function in functions.items():
        assert ".entry" in compile_ptx(function, *arguments[name])
