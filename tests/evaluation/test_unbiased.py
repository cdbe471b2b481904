"""Adjusted means are those of the exact results, for any player: over many pairs z is that of a normal sample."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import chi2, norm

from dice_envs import configure, evaluate, make_agent, measure, response_values
from dice_envs.agent import Promises, Uniform, ask_probabilities, draw_actions
from dice_envs.agent.matches import pieces_of
from dice_envs.agent.specs import resolve
from dice_envs.evaluation import expected_returns, play_part, scale_of
from dice_envs.evaluation.estimate import adjust
from dice_envs.exact.intervals import MANY, Z95
from dice_envs.experiments.arena.results import Played
from dice_envs.games.thirties import GOALS
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
    """Plays as another agent does, but one move in so many is the one that this agent likes least."""

    def __init__(self, spec, moves=500):
        super().__init__(spec)
        self.chance = 1 / moves

    def probabilities(self, turn):
        found = ask_probabilities(self.agent, turn)
        worst = np.where(turn.legal, found, 2).argmin(axis=1)
        return (1 - self.chance) * found + self.chance * np.eye(found.shape[1])[worst]


def alone(game, **options):
    return configure(game, **({"num_players": 1} if game == "thirties" else {"mode": "physician"}), **options)


UNEQUAL, SCORE = configure("liars_dice", num_dice=(3, 2)), configure("score_dice")
PLAYED = {
    **{f"Thirties, heuristic, {goal}": (alone("thirties", goal=goal), "thirties:heuristic", None) for goal in GOALS},
    "The Shakes, thompson": (alone("shakes"), "thompson", None),
    "The Shakes, thompson with blunders": (alone("shakes"), Blunders("thompson"), None),
    "The Shakes, bayes with blunders": (alone("shakes"), Blunders("bayes"), None),
    "FateStones, random": (configure("fatestones"), "random", "nash"),
    "FateStones, strongest": (configure("fatestones"), "strongest", "nash"),
    "numbers, 3 dice": (THREE, "numbers", "nash"),
    "nash, 3 dice": (THREE, "nash", "nash"),
    "numbers, unequal dice": (UNEQUAL, "numbers", "nash"),
    "nash, unequal dice": (UNEQUAL, "nash", "nash"),
    "nash with blunders, unequal dice": (UNEQUAL, Blunders("nash", 200), "nash"),
    "score dice, random": (SCORE, "random", "highest"),
    "score dice, no choice matters": (SCORE, "random", "nash"),
}
REPEATS = 100


@functools.cache
def pool(name):
    """Results, starts and losses of 40,000 games, (rounds, seats) each; and further arguments of `adjust`."""
    variant, player, opponent = PLAYED[name]
    values, player = response_values(variant, opponent), resolve(player, variant.game.name)
    agents = [player] if values.whole_team else [player, make_agent(opponent)]
    pieces = pieces_of(40_000, len(agents), np.random.SeedSequence(3), 256)
    played, scale = play_part(variant, agents, values, 1, pieces), scale_of(variant, values)
    earned, most = np.array(played["earned"]), values.most_lost
    games = scale.of(earned), scale.of(expected_returns(values, *earned.shape)), scale.factor * np.array(played["lost"])
    bounds = {"low": scale.low, "high": scale.high, "most_lost": (None if most is None else scale.factor * most,)}
    return [each.reshape(-1, len(agents)) for each in games], bounds


def drawn(games, rng, count):
    """A sample of the games, and the seats."""
    seat, rows = np.arange(count) % games[0].shape[1], rng.integers(0, len(games[0]), count)
    return *(each[rows, seat] for each in games), seat


def held(found, truth):
    """How often an interval holds, its mean width, and 1.96 standard deviations of the mean."""
    values, errors = np.array(found).T
    return np.mean(np.abs(values - truth) <= errors + 1e-12), errors.mean(), Z95 * values.std()


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAYED)
def test_intervals_hold_with_few_games_and_rare_mistakes(name):
    """They are in the mean no wider than plain ones, and with many games not far from the narrowest possible."""
    (games, bounds), rng = pool(name), np.random.default_rng(1)
    won, starts, lost = games
    for count in (5, 10, 20, 50, 200, 1000):
        found = [adjust(*drawn(games, rng, count), **bounds) for _ in range(REPEATS)]
        covers, width, least = held([(each.value, each.error) for each in found], (starts - lost).mean())
        plainly, plain, _ = held([(each.plain, each.plain_error) for each in found], won.mean())
        print(f"{name}: {count} games, {covers:.3f} ± {width:.3g} ({least:.2g}), plain {plainly:.3f} ± {plain:.3g}")
        assert min(covers, plainly) >= 0.9  # chance takes some of 95 %
        assert count >= MANY or covers >= 0.95
        assert width <= plain + 1e-9
        assert count < MANY or width <= 2.5 * least or not lost.any()


@pytest.mark.slow
@pytest.mark.parametrize("match", [1, 50])
@pytest.mark.parametrize("chance", [1 / 50, 1 / 3])
def test_intervals_of_matches_hold_where_some_are_played_badly(match, chance):
    """An agent decides once a match whether it plays badly; without matches, it is one of three at a table."""
    rng, truth = np.random.default_rng(2), 0.6 * (1 - chance) + 0.1 * chance
    for matches in (5, 10, 20, 50, 200, 1000):
        wins = np.where(rng.random((REPEATS, matches, 1)) < chance, 0.1, 0.6)
        games = (rng.random((REPEATS, matches, match)) < wins).astype(float)
        covers, width, least = held([Played(each, by_match=True).mean() for each in games], truth)
        print(f"{matches} matches of {match}, {chance:.2f} of them bad: {covers:.3f} ± {width:.3g} ({least:.2g})")
        assert covers >= 0.9
        assert matches < MANY or width <= 2.5 * least


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers, 3 dice", "nash with blunders, unequal dice"])
def test_who_stops_when_it_is_significant_is_rarely_wrong(name):
    """Looking every 100 games up to 3,000: intervals that hold at any time err in at most 5 % of runs, usual ones in more."""
    (games, bounds), rng, wrong = pool(name), np.random.default_rng(3), np.zeros((REPEATS, 4), bool)
    truth = [(games[1] - games[2]).mean(), games[0].mean()] * 2
    for run in range(REPEATS):
        sample = drawn(games, rng, 3000)
        for count in range(100, 3001, 100):
            looks = [adjust(*(each[:count] for each in sample), **bounds, anytime=each) for each in (True, False)]
            seen = [pair for each in looks for pair in ((each.value, each.error), (each.plain, each.plain_error))]
            wrong[run] |= [abs(value - right) > error for (value, error), right in zip(seen, truth, strict=True)]
    print(f"{name}: without luck and plain, at any time {wrong[:, :2].mean(axis=0)}, as usual {wrong[:, 2:].mean(axis=0)}")
    assert wrong[:, :2].mean(axis=0).max() <= 0.05
    assert wrong[:, 3].mean() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("player", "least"),
    [("nash", 100), ("ppo", 100), ("reader", 10), *((other, 1) for other in ("numbers:bluff=0", "numbers:bluff=1", "mcts:20"))],
)
def test_good_players_need_fewer_games_and_nobody_more(player, least):
    found = evaluate(THREE, player, "nash", GAMES if player != "mcts:20" else 2000, seed=7)
    assert found.variance_interval[1] >= least
