"""`measure` works in the same way with every game and all of its agents."""

import dataclasses
import functools
import json
import re

import numpy as np
import pytest
import torch

from dice_envs import AgentError, Measurement, SeatVectorEnv, configure, measure
from dice_envs.agent.specs import for_game
from dice_envs.core.chance import Drawn
from dice_envs.core.game import load, names
from dice_envs.exact import asked, offered
from dice_envs.exact.intervals import share_bound
from dice_envs.games.thirties import GOALS
from tests.games.fatestones.test_exact import SMALL as EASY_DICE
from tests.games.score_dice.test_measures import MEASURED as MEASURED_DICE
from tests.support.awkward import FAMILY, LOW, MIXED, PART, Acts, Draws
from tests.support.chance import best_response
from tests.support.interfaces import refused
from tests.support.policies import ActsOnly, uneven
from tests.support.subsets import few

# Variants of each game for which measuring is cheap, and an agent with score 1. Other games use their defaults.
VARIANTS = {
    "fatestones": ([{"hand_size": 2}, {**EASY_DICE, "scratch": "draw"}, {"hand_size": 5, "sample": 10}], "nash"),
    "liars_dice": ([{"rules": "openspiel", "num_dice": 1, "num_faces": 3}, {"num_dice": (2, 1), "num_faces": 3}], "nash"),
    "score_dice": ([*MEASURED_DICE.values()], "score_response"),
    "shakes": ([{"num_players": 2, "num_patients": 4, "goal": 2}, {"num_patients": 4, "goal": 2, "reward": "win"}], "bayes"),
    "thirties": (
        [{"num_dice": dice, "num_faces": 4, "target": 8 + 4 * (dice - 3), "goal": goal} for dice in (3, 4) for goal in GOALS],
        "thirties",
    ),
}
SMALL = {game: (variants[0], exact) for game, (variants, exact) in VARIANTS.items()}
FOR_OTHERS = {("shakes", "dogmatic"), ("liars_dice", "champion"), ("liars_dice", "adaptive")}  # maesters; five dice; rounds
MEASURED = [name for name in names() if offered(load(name), "measure")]
AS_IT_IS = ({}, "")


def players(game):
    """A spec of every agent that plays the game."""
    for name in for_game(game):
        if (game, name) not in FOR_OTHERS and name not in ("ppo", "chat", "mix"):
            yield "mcts:4" if name == "mcts" else name


# The fast tests measure the best agent of each game and random play.
CASES = [
    pytest.param(game, options, spec, marks=[] if spec in ("random", exact) else [pytest.mark.thorough])
    for game in MEASURED
    for variants, exact in [VARIANTS.get(game, ([{}], ""))]
    for number, options in enumerate(variants)
    for spec in (["random", *([exact] if exact else [])] if number else players(game))
]


@functools.cache
def random_gap(game, options):
    return measure(game, "random", **{"sample": 200, **dict(options)}).measures[0].gap


@pytest.mark.parametrize(("game", "options", "spec"), CASES)
def test_every_agent_is_measured(game, options, spec):
    """Random play scores 0, optimal play 1; a gap half as large as that of random play scores 1/2."""
    measured = measure(game, spec, **{"sample": 200, **options})
    assert (measured.game, measured.agent) == (game, spec)
    for each in measured.measures:
        assert isinstance(each, Measurement)
        assert np.isfinite([each.value, each.optimum, each.gap, each.error]).all()
        assert each.gap >= 0
        assert each.name
        assert each.unit
    if "mean of" not in measured.measures[0].note:  # else both are means over several seeds
        gap = random_gap(game, tuple(options.items()))
        assert measured.score == pytest.approx(1 - measured.measures[0].gap / gap, abs=1e-9)
    assert measured.score <= 1 + 1e-9
    if spec == "random":
        assert measured.score == pytest.approx(0, abs=1e-12)
    if spec == VARIANTS.get(game, ((), ""))[1]:
        assert measured.score == pytest.approx(1, abs=1e-9)
    form = json.loads(measured.json())
    assert set(form) == {"game", "options", "agent", "seed", "score", "score_error", "measures"}
    assert set(form["measures"][0]) == {"name", "value", "optimum", "gap", "error", "unit", "note"}


ANSWERED = [
    ("liars_dice", {"num_dice": 1, "num_faces": 3, "wild": "highest"}),
    ("score_dice", {"pool_a": (3, 2, 2), "pool_b": (2, 2, 2), "reward": "score"}),
    ("score_dice", {"pool_a": (3, 2), "pool_b": (4, 2), "ties": "a", "open_hands": True}),
    ("score_dice", {"pool_a": (3, 3, 2), "pool_b": (4, 2), "ties": "a"}),
    ("fatestones", {"dice": (111666, 222555, 333444, 123456), "hand_size": 2, "scratch": "draw"}),
]


@few(3, ("game", "options"), ANSWERED)
def test_exploitability_is_what_best_responses_earn(game, options):
    variant = configure(game, **options)
    earned = [best_response(Drawn(variant), asked(uneven, variant), seat) for seat in range(2)]
    found = {each.name: each.value for each in measure(variant, uneven).measures}
    assert found["exploitability"] == pytest.approx(np.mean(earned), abs=1e-12)


@pytest.mark.parametrize(("game", "options"), [each for each in ANSWERED if offered(load(each[0]), "measure_profile")])
def test_gains_of_a_profile_are_what_best_responses_earn_more(game, options):
    variant, profile = configure(game, **options), (uneven, "nash" if game == "fatestones" else "numbers:bluff=0.5")
    players, gains = [asked(each, variant) for each in profile], measure(variant, profile).measures[2:]
    for seat, found in enumerate(gains):
        best, earned = (best_response(Drawn(variant), players[1 - seat], seat, own=own) for own in (None, players[seat]))
        assert found.value == pytest.approx(best - earned, abs=1e-12)


@few(2, "game", MEASURED)
def test_a_function_is_measured_as_the_agent_that_it_is(game):
    options, _ = SMALL.get(game, AS_IT_IS)

    def uniform(observations, masks):
        assert observations.dtype == np.float32
        return masks / masks.sum(axis=1, keepdims=True)

    ours, random = measure(game, uniform, sample=200, **options), measure(game, "random", sample=200, **options)
    assert ours.agent == "uniform"
    assert ours.score == pytest.approx(0, abs=1e-9)
    assert [each.value for each in ours.measures] == pytest.approx([each.value for each in random.measures], abs=1e-9)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_a_module_is_asked_with_tensors_on_its_device_in_evaluation_mode(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(1e-9, device=device))
            self.layers = torch.nn.Sequential(torch.nn.BatchNorm1d(1, device=device), torch.nn.Dropout().eval())

        def forward(self, observations, masks):
            assert observations.device == masks.device == self.scale.device
            assert not torch.is_grad_enabled()
            return torch.softmax(torch.where(masks == 0, -torch.inf, self.layers(observations[:, :1]) * self.scale), dim=1)

    class Stating(Scaled):
        def probabilities(self, turn):
            return in_its_mode(turn.observations, turn.legal)

        def act(self, turn):
            return self.probabilities(turn).argmax(dim=1).cpu().numpy()

    @torch.no_grad()
    def in_its_mode(*seen):
        return module(*(torch.from_numpy(each).to(device) for each in seen))

    options = {"rules": "openspiel", "num_dice": 1, "num_faces": 2}
    for module in (Scaled(), Stating()):
        assert measure("liars_dice", module, **options).score == pytest.approx(0, abs=1e-6)
        SeatVectorEnv("liars_dice", 4, module, **options).reset(seed=1)
        assert not module.layers[0].num_batches_tracked
    for wrong, words in ((in_its_mode, "^in_its_mode in .* when training, .*; call eval"), (module, "running_mean")):
        with pytest.raises((AgentError, RuntimeError), match=words):
            measure("liars_dice", wrong, **options)
        assert [each.training for each in module.modules()] == [True, True, True, False]
        module.layers[0].num_features, module.layers[0].running_mean = 2, torch.zeros(2, device=device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_module_of_observations_alone_returns_logits_which_are_masked(dtype):
    options = {"rules": "openspiel", "num_dice": 1, "num_faces": 3}
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.LazyLinear(16), torch.nn.Tanh(), torch.nn.LazyLinear(7))
    net(torch.zeros(1, configure("liars_dice", **options).facts.observation_size))

    class Logits(torch.nn.Module):
        def forward(self, observations):
            return net(observations).to(dtype)

    def in_numpy(observations):
        with torch.no_grad():
            return net(torch.from_numpy(observations)).numpy()

    def both(observations, masks=None):
        chances = np.exp(in_numpy(observations)) * masks
        return chances / chances.sum(axis=1, keepdims=True)

    expected = measure("liars_dice", both, **options).measures[0].value
    assert expected > 0.1
    close = 0.02 if dtype == torch.bfloat16 else 1e-5
    for agent in (Logits(), in_numpy) + (net,) * (dtype == torch.float32):
        assert measure("liars_dice", agent, **options).measures[0].value == pytest.approx(expected, abs=close)


class Unreadable:
    """A policy whose signature cannot be inspected."""

    __signature__ = "none"

    def __call__(self, *seen):
        _, masks = seen
        return masks / masks.sum(axis=1, keepdims=True)


def test_the_number_of_inputs_decides_what_outputs_mean():
    options = {"rules": "openspiel", "num_dice": 1, "num_faces": 2}
    for uniform in (Unreadable(), lambda *seen: Unreadable()(*seen), lambda observations: np.zeros((len(observations), 5))):
        assert measure("liars_dice", uniform, **options).score == pytest.approx(0, abs=1e-9)
    for logits, words in (
        (lambda observations: observations[:, :2], r"must return logits of shape \(\d+, 5\), not shape \(\d+, 2\)"),
        (lambda observations: (observations,), r"must return logits of shape \(\d+, 5\), not \(array"),
        (lambda observations: np.full((len(observations), 5), np.nan), "must be a finite number, not nan"),
        (lambda observations: np.full((len(observations), 5), -np.inf), "must be a finite number, not nan"),
    ):
        with pytest.raises(AgentError, match=words):
            measure("liars_dice", logits, **options)


def test_a_score_has_an_error_where_it_is_known():
    options = {"num_dice": 3, "target": 14}
    exact, repeated = (measure("thirties", agent, **options) for agent in ("thirties", ActsOnly("random")))
    assert exact.score_error == 0
    again = [measure("thirties", ActsOnly("random"), seed=seed, **options) for seed in range(1, 6)]
    assert 0 < repeated.score_error < 0.2
    assert sum(abs(each.score) < each.score_error for each in [repeated, *again]) >= 4  # the score of random play
    assert measure("fatestones", "best_response", sample=20).score_error is None
    assert json.loads(repeated.json())["score_error"] == repeated.score_error


@pytest.mark.thorough
def test_progress_covers_nodes_to_which_a_coalition_alone_comes():
    told = []
    options = {"num_players": 3, "num_dice": 2, "num_faces": 3}
    measure("liars_dice", LOW, **options, done=lambda amount, total: told.append((amount, total)))
    assert sum(amount for amount, _ in told) == told[-1][1]


@few(2, "game", MEASURED)
def test_progress_covers_all_repeats_of_a_random_agent(game):
    options, _ = SMALL.get(game, AS_IT_IS)
    told = []
    measured = measure(game, ActsOnly("random"), sample=200, **options, done=lambda amount, total: told.append((amount, total)))
    assert "mean of 10 runs" in measured.measures[0].note
    assert len({total for _, total in told}) == 1
    assert 0.9 <= sum(amount / total for amount, total in told) <= 1 + 1e-9


def test_a_game_without_a_yardstick_says_so():
    game = dataclasses.replace(load("fatestones"), name="like_fatestones")
    with pytest.raises(ValueError, match="like_fatestones cannot be measured exactly: no optimal play, equilibrium or best"):
        measure(game, "random")


def test_rounding_that_depends_on_the_batch_is_not_randomness():
    """A network's matrix products round differently in batches of other sizes, which is neither random nor refused."""

    def rounds(observations, masks):
        tilted = masks * (1 + 1e-6 * (len(masks) % 8) * (np.arange(masks.shape[1]) % 2))
        return tilted / tilted.sum(axis=1, keepdims=True)

    def draws(observations, masks):
        tilted = masks * (1 + 1e-3 * np.random.default_rng().random(masks.shape[1]))
        return tilted / tilted.sum(axis=1, keepdims=True)

    assert "mean of" not in measure("liars_dice", rounds, **ONE_DIE).measures[0].note
    assert "mean of" in measure("liars_dice", draws, **ONE_DIE).measures[0].note


ONE_DIE = {"rules": "openspiel", "num_dice": 1, "num_faces": 4}


AWKWARD_GAMES = {
    **{game: (game, options) for game, (options, _) in SMALL.items()},
    "score_dice": ("score_dice", {"pool_a": (4, 6), "pool_b": (6, 4)}),
    "maesters": ("shakes", {"mode": "maesters", "num_players": 2, "num_patients": 3, "goal": 2}),
    "three players": ("liars_dice", {"num_players": 3, "num_dice": 1, "num_faces": 3}),
}
QUICK = ("thirties", "shakes", "three players", "score_dice", "maesters")
# Each agent in one game in the fast tests, and each game with several of them.
AWKWARD = [
    pytest.param(game, name, marks=[] if game == QUICK[number % len(QUICK)] else [pytest.mark.thorough])
    for game in AWKWARD_GAMES
    for number, name in enumerate(FAMILY)
]


@functools.cache
def truth_of(game, agent):
    name, options = AWKWARD_GAMES[game]
    return measure(name, agent, seed=1, **options).measures


@pytest.mark.parametrize(("game", "name"), AWKWARD)
def test_an_awkward_agent_is_refused_or_has_an_interval(game, name):
    """No error is 0 where the value is wrong. Intervals hold with 95 %, and three times as wide ones nearly always."""
    (of, options), agent = AWKWARD_GAMES[game], FAMILY[name]
    refusal, found = refused(lambda: measure(of, agent.make(), seed=3, **options).measures)
    found = found or ()
    assert refusal is None or re.search(agent.words, refusal), refusal
    assert found == () or agent.truth is not None or not agent.has_policy
    known = truth_of(game, agent.truth) if agent.truth is not None and found else [None] * len(found)
    for each, exact in zip(found, known, strict=True):
        if each.error == 0 or agent.has_policy:
            assert each.value == pytest.approx(exact.value, abs=3 * (each.error + exact.error) + 1e-9), each


def test_answers_that_are_not_promised_to_be_alike_have_an_interval():
    """Any choice may meet with an answer that was not seen: half of the steps are the agent's. Returns change twice as much."""
    variant = configure("liars_dice", rules="openspiel", num_dice=1, num_faces=2)
    spec, choices = "numbers:threshold=0.5", variant.facts.max_steps / 2
    players = spec, ActsOnly(spec, deterministic=True), ActsOnly(spec)
    stated, promised, silent = (measure(variant, player).measures for player in players)
    assert [each.value for each in stated] == [each.value for each in promised] == [each.value for each in silent]
    assert {each.error for each in (*stated, *promised)} == {0}
    (number,) = {re.search("none of ([0-9,]+) answers differed", each.note)[1] for each in silent}
    bound = share_bound(0, int(number.replace(",", "")))
    assert [each.error for each in silent] == pytest.approx([2 * choices * bound, choices * bound, 4 * choices * bound])


@pytest.mark.parametrize("seed", [100, pytest.param(range(101, 140), marks=pytest.mark.thorough)])
def test_a_first_answer_that_was_the_rare_one_is_not_held_against_the_agent(seed):
    of, options = AWKWARD_GAMES["maesters"]
    for each in np.atleast_1d(seed):
        agent = Draws(0.01, own=True)
        agent.rng = np.random.default_rng(int(each))
        saved, _ = measure(of, agent, **options).measures
        assert saved.error > 0
        assert saved.value == pytest.approx(truth_of("maesters", MIXED[0.01])[0].value, abs=3 * saved.error)


@pytest.mark.thorough
def test_intervals_of_random_answers_hold_as_often_as_they_say():
    (of, options), right = AWKWARD_GAMES["maesters"], truth_of("maesters", PART)[0].value
    found = [measure(of, Acts(PART.chance), seed=seed, **options).measures[0] for seed in range(100)]
    assert np.mean([abs(each.value - right) <= each.error for each in found]) > 0.9


def test_measurements_print_as_lines():
    measured = measure("liars_dice", "random", num_dice=1)
    first, *others = measured.measures
    assert str(first) == f"exploitability {first.value:.4g} return, exact; optimal play 0"
    assert str(measured) == (
        f"random in liars_dice num_dice=1, score 0.0000 (0: uniformly random play, 1: optimal)\n  {first}\n"
        + "\n".join(f"  {each}" for each in others)
    )
    assert str(Measurement("value", 24.4514, 30.152, 5.7006, 0.034, "pips")) == "value 24.45 ± 0.034 pips; optimal play 30.15"
