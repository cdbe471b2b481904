"""The contract of an agent: variants that it refuses before any game begins, probabilities, and promises."""

import gymnasium
import numpy as np
import pytest

import dice_envs.envs.sb3
from dice_envs import AgentError, Mixture, Promises, configure, measure
from dice_envs.agent import check_plays, name_of, promises_of
from dice_envs.agent.specs import make_agent
from dice_envs.core.batch import Batch
from dice_envs.core.game import names
from dice_envs.core.options import options_text, parse_options
from dice_envs.exact.agents import asked
from dice_envs.experiments.arena import tournament
from tests.support.turns import turn_at

PHYSICIAN, MAESTERS = (configure("shakes", mode=mode) for mode in ("physician", "maesters"))


@pytest.mark.parametrize(
    ("spec", "variant", "words"),
    [
        (
            "nash",
            configure("shakes"),
            "nash plays fatestones and liars_dice and score_dice only, not shakes; agents for shakes are: argument, ",
        ),
        ("dogmatic", configure("thirties"), "dogmatic plays shakes only, not thirties"),
        ("dogmatic", PHYSICIAN, "dogmatic is a maester and plays mode=maesters only, not mode=physician"),
        ("bayes", configure("shakes", variation="competitive"), 'needs variation="cooperative"'),
        ("bayes", configure("shakes", num_patients=200), "20,000,000 at most"),
        (
            "thirties:optimal",
            configure("thirties", num_faces=2, num_dice=6, target=8),
            "goal must not be 'optimal' with num_faces=2",
        ),
        ("best_response:mcts:5", configure("liars_dice"), "best_response plays fatestones only"),
        ("mcts:5,expect=true", configure("liars_dice"), "expect must be false for liars_dice"),
        *(
            ("champion", configure("liars_dice", **{option: other}), f"cannot play {option}={str(other).lower()}; nash plays")
            for option, other in (("num_dice", 2), ("num_players", 3), ("past_rounds", False))
        ),
        ("champion", configure("thirties"), "champion plays liars_dice only, not thirties"),
        ("mcts:5,rollout=strongest", configure("liars_dice"), "rollout must be one of 'random'"),
    ],
)
def test_what_an_agent_does_not_play_is_told_without_a_game(spec, variant, words):
    agent, turn = make_agent(spec), turn_at(variant, Batch(variant, 1, seed=1).states)
    for question in (lambda: check_plays(agent, variant), lambda: agent.act(turn)):
        with pytest.raises(ValueError, match=".") as caught:
            question()
        assert words in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


def test_agents_that_say_nothing_play_everything_and_promise_nothing():
    for name in names():
        check_plays(Acts(), configure(name))
        check_plays(make_agent("random"), configure(name))
    assert promises_of(Acts()) == Promises()
    check_plays(make_agent("dogmatic"), MAESTERS)


@pytest.mark.parametrize(
    "options",
    [
        {"num_dice": (5, 4), "wild": None, "rules": "openspiel"},
        {"a": (5,), "b": True, "c": 0.25, "d": -3, "e": ("x", None, False)},
        {},
    ],
)
def test_options_are_shown_as_they_are_typed(options):
    assert parse_options(options_text(options).split()) == options


def test_long_options_are_cut():
    assert len(options_text({"dice": (123456,) * 30_000})) < 120
    assert str(configure("liars_dice")) == "liars_dice (default options)"
    assert str(configure("liars_dice", num_dice=(2, 1))) == "liars_dice (num_dice=2,1)"


class Fussy:
    """Refuses every variant, and counts how often it is asked."""

    asked = 0

    def check_variant(self, variant):
        raise ValueError(f"Fussy does not play {variant}")

    def act(self, turn):
        self.asked += 1
        return turn.legal.argmax(axis=1)


@pytest.mark.parametrize(
    "let",
    [
        lambda agent: gymnasium.make("dice_envs/LiarsDice-v0", opponents=agent),
        lambda agent: gymnasium.make_vec("dice_envs/LiarsDice-v0", num_envs=2, opponents=[agent]),
        lambda agent: gymnasium.make("dice_envs/LiarsDice-v0", opponents=Mixture(["random", agent])),
        lambda agent: dice_envs.envs.sb3.make_vec_env("liars_dice", 2, opponents=agent),
        lambda agent: tournament(configure("liars_dice"), ["random", "fussy"], 10, 1, agents=[make_agent("random"), agent]),
        lambda agent: measure("liars_dice", agent, rules="openspiel", num_dice=1),
        lambda agent: dice_envs.evaluate("liars_dice", agent),
    ],
)
def test_every_place_asks_before_it_plays(let):
    agent = Fussy()
    with pytest.raises(ValueError, match=r"Fussy does not play liars_dice \("):
        let(agent)
    assert not agent.asked
    with pytest.raises(TypeError, match=r"an agent must be an object, not the class Fussy: Fussy\(…\) makes one"):
        let(Fussy)


def test_names_have_what_differs_from_the_defaults():
    names = {"random": "Random()", "mcts:50": "MCTS(simulations=50)", "numbers:bluff=0.5": "Numbers(bluff=0.5)"}
    assert {spec: name_of(make_agent(spec)) for spec in names} == names


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda masks: masks / 7.0, "probabilities must sum to 1"),
        (lambda masks: masks[:, :-1], "probabilities must have shape"),
        (lambda masks: None, "probabilities must have shape"),
        (lambda masks: masks / masks.sum(axis=1, keepdims=True) + 0j, "probabilities must be real numbers, not complex128"),
        (lambda masks: masks.astype("m8[ns]"), "probabilities must be real numbers, not timedelta64"),
        (lambda masks: "much", "probabilities must be numbers of shape"),
        (lambda masks: [[1.0], [0.5, 0.5]], "probabilities must be numbers of shape"),
        (lambda masks: np.where(masks == 0, np.nan, masks), "the probability of action .* must be a finite number, not nan"),
        (lambda masks: masks / -masks.sum(axis=1, keepdims=True), r"action 0 \(1 x 1\) must be 0 or more, not -0"),
        (lambda masks: 1 - masks, "the probability of action .* must be 0, because the action is not legal, not "),
        (lambda masks: (masks.fill(1), masks / masks.shape[1])[1], "must be 0, because the action is not legal, not "),
    ],
)
def test_a_function_that_answers_wrongly_is_named(answer, words):
    def my_policy(observations, masks):
        return answer(masks)

    with pytest.raises(AgentError, match=rf"^my_policy in liars_dice.*{words}"):
        measure("liars_dice", my_policy, rules="openspiel", num_dice=1)


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
        ("liars_dice", "nash", {"looks_back": False, "solution": True, "needs": True, "prepare": True}),
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


def test_a_measure_keeps_to_what_holds_where_it_asks():
    """It asks as when a match begins, and knows no memoryless probabilities of an agent that states none."""
    player = asked(Resigning(), configure("thirties"))
    assert player.promises == Promises(deterministic=True)
    assert player.is_known


def test_a_network_reads_observations_alone():
    with pytest.raises(ValueError, match="observes_only must be true with network"):
        Promises(network=lambda variant: None)
