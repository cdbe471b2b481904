"""Adjusted means are those of the exact results, for any player: over many pairs z is that of a normal sample."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import chi2, norm

from dice_envs import configure, evaluate, make_agent, measure, response_values
from dice_envs.agent import Promises, Uniform, ask_probabilities, draw_actions, resolve
from dice_envs.agent.matches import pieces_of
from dice_envs.evaluation import scale_of
from dice_envs.evaluation.estimate import adjust
from dice_envs.evaluation.games import expected_returns, play_part
from dice_envs.exact.intervals import Z95
from tests.support.liars_dice_games import winning_probability

GAMES = 10_000
ONE, TWO, THREE, FIVE = (configure("liars_dice", num_dice=dice) for dice in (1, 2, 3, 5))
OPENSPIEL = configure("liars_dice", num_dice=1, rules="openspiel")
ROUND = configure("liars_dice", num_dice=2, rounds="single")


class Errs:
    """Plays as another agent does, but one time in five at random."""

    def __init__(self, spec):
        self.agent = make_agent(spec)

    def probabilities(self, turn):
        return 0.8 * ask_probabilities(self.agent, turn) + 0.2 * Uniform().probabilities(turn)

    def act(self, turn):
        return draw_actions(turn.streams, ask_probabilities(self, turn))


class Alternates:
    """Remembers how many rounds it has begun, and plays every other one at random."""

    promises = Promises(remembers=np.dtype([("begun", np.int64)]))

    def __init__(self, spec):
        self.agent = make_agent(spec)

    def act(self, turn):
        first = turn.states["num_bids"] < 2  # its first decision of the round
        turn.memory["begun"] += first
        at_random = turn.memory["begun"] % 2 == 0
        return np.where(at_random, Uniform().act(turn), self.agent.act(turn))


def half_at_random(variant, player, opponent):
    return (winning_probability(variant, player.agent, opponent) + winning_probability(variant, "random", opponent)) / 2


def headline(variant, player, opponent):
    return measure(variant, player).measures[0].value


def share(variant, player, opponent):
    return (headline(variant, player, opponent) + 1) / 2


class Pair(NamedTuple):
    variant: Any
    player: Any
    opponent: Any
    exact: Any = winning_probability
    match: int = 1


PAIRS = {
    "random, 2 dice": Pair(TWO, "random", "nash"),
    "numbers, 2 dice": Pair(TWO, "numbers", "nash"),
    "errs at random, 2 dice": Pair(TWO, Errs("nash"), "nash"),
    "errs at random against numbers, 2 dice": Pair(TWO, Errs("numbers:bluff=0"), "numbers:bluff=0.5"),
    "with a memory, one round": Pair(ROUND, Alternates("numbers"), "nash", half_at_random, match=2),
    "nash, 3 dice": Pair(THREE, "nash", "nash"),
    "a network, one die": Pair(OPENSPIEL, "ppo", "nash"),
    "numbers:bluff=0, 3 dice": Pair(THREE, "numbers:bluff=0", "nash"),
    "numbers:bluff=1 against bluff=0, 3 dice": Pair(THREE, "numbers:bluff=1", "numbers:bluff=0"),
    "numbers against a network, one die": Pair(OPENSPIEL, "numbers", "ppo"),
    "numbers:bluff=1 against bluff=0, 5 dice": Pair(FIVE, "numbers:bluff=1", "numbers:bluff=0"),
    "random against numbers, 5 dice": Pair(FIVE, "random", "numbers"),
    "Thirties, beginner": Pair(configure("thirties", num_players=1), "thirties:strategy=beginner", None, headline),
    "Thirties, random": Pair(configure("thirties", num_players=1, goal="thirty_or_over"), "random", None, headline),
    "The Shakes, greedy": Pair(configure("shakes", mode="physician"), "greedy", None, headline),
    "The Shakes, random": Pair(configure("shakes", mode="physician"), "random", None, headline),
    "score dice, random": Pair(configure("score_dice"), "random", "highest", share),
}


def z_value(variant, player, opponent, exact, match):
    """The difference between the adjusted mean and the exact result, in standard errors."""
    played = evaluate(variant, player, opponent, GAMES, seed=7, match=match)
    truth = exact(variant, player, opponent)
    # Not from the interval, which is wider than the normal one: the plain error, divided by the root of the variance ratio.
    z = (played.value - truth) / (played.plain_error / Z95 / math.sqrt(played.variance_ratio))
    print(f"{played.value:.6f} ± {played.error:.6f}, exactly {truth:.6f}, z {z:+.2f}, {played.variance_ratio}")
    return z


@pytest.mark.slow
def test_adjusted_means_are_a_normal_sample_around_the_exact_results():
    """None is far away, intervals are neither too narrow nor too wide, and means err to both sides."""
    found = {name: z_value(*pair) for name, pair in PAIRS.items()}
    most = norm.isf(1e-4 / 2 / len(found))
    assert {name: z for name, z in found.items() if abs(z) > most} == {}
    assert chi2.ppf(1e-4, len(found)) < sum(z * z for z in found.values()) < chi2.isf(1e-4, len(found))
    assert abs(sum(found.values())) < 4 * math.sqrt(len(found))


class Blunders(Errs):
    """Plays as another agent does, but one move in 200 is the one that this agent likes least."""

    def probabilities(self, turn):
        found = ask_probabilities(self.agent, turn)
        worst = np.where(turn.legal, found, 2).argmin(axis=1)
        return 0.995 * found + 0.005 * np.eye(found.shape[1])[worst]


UNEQUAL = configure("liars_dice", num_dice=(3, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "player", "opponent"),
    [
        (UNEQUAL, Blunders("nash"), "nash"),
        (UNEQUAL, "numbers", "nash"),
        (configure("thirties", num_players=1), "thirties:heuristic", None),
        (configure("fatestones"), "random", "nash"),
        (configure("shakes", mode="physician"), "thompson", None),
    ],
)
def test_intervals_hold_with_few_games_and_rare_mistakes(variant, player, opponent):
    """With 10, 30 and 100 games, 400 times each, from games that are played once; the truth is the mean of all of them."""
    values, player = response_values(variant, opponent), resolve(player)
    seats = 1 if values.whole_team else 2
    agents = [player] * variant.facts.num_seats if values.whole_team else [player, make_agent(opponent)]
    played = play_part(
        variant, agents, values, 1, pieces_of(40_000, len(agents), np.random.SeedSequence(3), 256), lambda amount: None
    )
    scale, earned = scale_of(variant, values), np.array(played["earned"])
    games = scale.of(earned), scale.of(expected_returns(values, *earned.shape)), scale.factor * np.array(played["lost"])
    truth = adjust(*games, scale.low, scale.high, seats).value
    for count in (10, 30, 100):
        parts = [slice(first, first + count) for first in range(0, 400 * count, count)]
        found = [adjust(*(each[part] for each in games), scale.low, scale.high, seats) for part in parts]
        assert sum(abs(each.value - truth) <= each.error for each in found) >= 0.93 * len(found)
        assert sum(abs(each.plain - truth) <= each.plain_error for each in found) >= 0.93 * len(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("player", "least"),
    [("nash", 100), ("ppo", 100), ("reader", 10), *((other, 1) for other in ("numbers:bluff=0", "numbers:bluff=1", "mcts:20"))],
)
def test_good_players_need_fewer_games_and_nobody_more(player, least):
    found = evaluate(THREE, player, "nash", GAMES if player != "mcts:20" else 2000, seed=7)
    assert found.variance_interval[1] >= least
