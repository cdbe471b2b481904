"""Best responses and equilibria of score dice, against exhaustive search, assignment and play."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment

import agents
from agents.score_dice import Nash, Response
from dice_envs import Turn, configure
from dice_envs.dice import new_streams
from dice_envs.exact.score_dice import Equilibrium, ResponseToHighest, deals, hands, solve_matrix
from dice_envs.exact.score_dice_distribution import score_distribution
from dice_envs.game import OVER
from dice_envs.games.score_dice import HELD, Options
from experiments.arena import play_table, tournament


def mean_reward(options, pairing):
    result = score_distribution(*options.pools, options.ties, pairing)
    if options.reward == "win":
        return float(result.win_bias) / 100
    return float(sum(score * chance for score, chance in result.chances.items()))


# --- best response --------------------------------------------------------------------------------------------------


def exhaustive(options, seat, opponent, best=max):
    """The value of the best (or, with min, worst) way to play against an opponent who shows its highest die, or a
    random one: over every hand of the own dice and every roll of the other's that fits what was shown. Dice are told
    apart by their places. Without spare dice and rolling again."""
    own, other = options.pools if seat == 0 else options.pools[::-1]
    tie = (1 if seat == 0 else -1) * (options.ties == "a")
    final = (lambda score: float((score > 0) - (score < 0))) if options.reward == "win" else float

    def value(hand, rolls, score):
        if not hand:
            return final(score)
        values = []
        for die in set(hand):
            rest = list(hand)
            rest.remove(die)
            shown = defaultdict(lambda: defaultdict(float))
            for roll, chance in rolls.items():
                held = [place for place, face in enumerate(roll) if face]
                if opponent == "highest":
                    held = [min(held, key=lambda place: (-roll[place], place))]
                for place in held:
                    left = (*roll[:place], 0, *roll[place + 1 :])
                    shown[place, roll[place]][left] += chance / len(held)
            total = 0.0
            for (_, face), after in shown.items():
                weight = sum(after.values())
                after = {roll: chance / weight for roll, chance in after.items()}
                total += weight * value(tuple(rest), after, score + ((die > face) - (die < face) or tie))
            values.append(total)
        return best(values)

    rolls = dict.fromkeys(itertools.product(*(range(1, size + 1) for size in other)), 1 / math.prod(other))
    every = list(itertools.product(*(range(1, size + 1) for size in own)))
    return sum(value(hand, rolls, 0) for hand in every) / len(every)


SMALL = [
    Options(pool_a=(4, 4), pool_b=(4, 4)),
    Options(pool_a=(3, 3, 3), pool_b=(3, 3, 3), ties="a"),
    Options(pool_a=(3, 3, 3), pool_b=(4, 3, 2), reward="score"),
    Options(pool_a=(4, 3, 2), pool_b=(3, 2, 2), ties="a"),
]


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("options", SMALL, ids=str)
def test_response_to_highest_equals_exhaustive_search(options, seat):
    assert ResponseToHighest(options, seat).game_value() == pytest.approx(exhaustive(options, seat, "highest"), abs=1e-12)


@pytest.mark.parametrize("options", SMALL, ids=str)
def test_nothing_can_be_gained_or_lost_against_random_choices(options):
    for seat, sign in ((0, 1), (1, -1)):
        unsorted = sign * mean_reward(options, "unsorted")
        assert exhaustive(options, seat, "shuffled", max) == pytest.approx(unsorted, abs=1e-12)
        assert exhaustive(options, seat, "shuffled", min) == pytest.approx(unsorted, abs=1e-12)


def test_open_hands_are_an_assignment_problem():
    options = Options(pool_a=(4, 4, 4), pool_b=(4, 4, 4), open_hands=True, reward="score")
    total = 0
    for a, b in itertools.product(itertools.product(range(1, 5), repeat=3), repeat=2):
        points = np.sign(np.subtract.outer(a, b))
        total += points[linear_sum_assignment(points, maximize=True)].sum()
    assert ResponseToHighest(options, 0).game_value() == pytest.approx(total / 4**6)


def test_a_response_gains_and_knowing_the_hand_gains_more():
    options = Options(pool_a=(6, 6, 6), pool_b=(6, 6, 6))
    hidden = ResponseToHighest(options, 0).game_value()
    known = ResponseToHighest(Options(pool_a=(6, 6, 6), pool_b=(6, 6, 6), open_hands=True), 0).game_value()
    assert 0.1 < hidden < known


def test_deals_and_hands_are_distributions():
    for pool, keep in (((4, 4, 3), 2), ((6, 4, 4, 2), 1), ((4, 3), 2)):
        assert sum(chance for _, chance in deals(pool, keep)) == pytest.approx(1)
        kept = defaultdict(float)
        for dice, chance in deals(pool, keep):
            for hand, share in hands(dice).items():
                kept[tuple((die.face, die.size) for die in hand)] += chance * share
        expected = defaultdict(float)
        for faces in itertools.product(*(range(1, size + 1) for size in pool)):
            hand = sorted(zip(faces, pool, strict=True), reverse=True)[:keep]
            expected[tuple(hand)] += 1 / math.prod(pool)
        assert dict(kept) == pytest.approx(dict(expected))


def every_roll(variant):
    """States after every roll of both pools, spare dice dropped, A to choose."""
    pools = variant.options.pools
    rolls = list(itertools.product(*(itertools.product(*(range(1, size + 1) for size in pool)) for pool in pools)))
    states = np.zeros(len(rolls), variant.game.state)
    variant.kernels.deal(variant.params, states, np.arange(len(rolls)))
    for state, dice in zip(states, rolls, strict=True):
        variant.game.arrange(variant.options, state, {"dice": dice})
    return states


@pytest.mark.parametrize(
    "options",
    [
        {"pool_a": (4, 3, 3), "pool_b": (4, 3, 2), "ties": "a"},
        {"pool_a": (4, 3), "pool_b": (4, 3, 2), "reward": "score"},
        {"pool_a": (4, 3, 2), "pool_b": (3, 2), "ties": "reroll"},
        {"pool_a": (3, 3, 2), "pool_b": (3, 2, 2), "open_hands": True},
    ],
    ids=str,
)
def test_values_of_choices_are_those_of_the_game(options):
    variant = configure("score_dice", **options)
    states = every_roll(variant)
    index = np.arange(len(states))
    for seat in range(2):
        response = ResponseToHighest(variant.options, seat)
        now = states.copy()
        if seat == 1:
            masks = np.zeros((len(now), variant.facts.num_actions), np.int8)
            variant.kernels.legal(variant.params, now, index, masks)
            variant.kernels.play(variant.params, now, index, masks.argmax(axis=1))
        values = response.action_values(variant, now)
        assert ((values > -np.inf) == (now["status"][:, seat, : values.shape[1]] == HELD)).all()
        assert values.max(axis=1).mean() == pytest.approx(response.game_value(), abs=1e-12)
        again = np.empty_like(now)
        variant.kernels.reroll(variant.params, now, index, np.full(len(now), seat), new_streams(1, len(now)), again)
        assert (response.action_values(variant, again) == values).all()  # what is hidden is not looked at


PLAYED = {
    "5d6": {},
    "reroll": {"pool_a": (4, 4, 3), "pool_b": (4, 4, 3), "ties": "reroll"},
    "reroll-spare": {"pool_a": (4, 4, 3), "pool_b": (3, 3), "ties": "reroll"},
    "spare": {"pool_a": (4, 4, 4), "pool_b": (6, 4, 4, 3), "ties": "a"},
    "open": {"pool_a": (4, 4, 4), "pool_b": (4, 4, 4), "open_hands": True, "ties": "reroll", "reward": "score"},
}


@pytest.mark.parametrize("name", ["reroll", "reroll-spare", "spare", "open", pytest.param("5d6", marks=pytest.mark.slow)])
def test_the_agent_earns_the_value_of_the_response(name):
    variant = configure("score_dice", **PLAYED[name])
    games = 6_000
    returns = play_table(variant, [Response(), agents.make("highest")], games, 21)[:, 0]
    for seat in range(2):  # in game g the first agent sits at seat g mod 2
        earned = returns[seat::2]
        value = ResponseToHighest(variant.options, seat).game_value()
        assert abs(earned.mean() - value) < 4 * earned.std() / math.sqrt(len(earned)), seat


# --- equilibrium ------------------------------------------------------------------------------------------------------

matrices = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-5, 5).map(float))
)


@settings(max_examples=60, deadline=None)
@given(payoffs=matrices)
def test_matrix_games_have_a_value(payoffs):
    value, rows, columns = solve_matrix(payoffs)
    assert rows.sum() == pytest.approx(1)
    assert columns.sum() == pytest.approx(1)
    assert (rows @ payoffs).min() == pytest.approx(value, abs=1e-9)
    assert (payoffs @ columns).max() == pytest.approx(value, abs=1e-9)


def test_rock_paper_scissors():
    value, rows, columns = solve_matrix(np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]))
    assert value == pytest.approx(0, abs=1e-12)
    assert rows == pytest.approx(np.full(3, 1 / 3))
    assert columns == pytest.approx(np.full(3, 1 / 3))


@pytest.mark.parametrize(
    "options",
    [
        Options(pool_a=(6, 6), pool_b=(6, 6), ties="a"),
        Options(pool_a=(4, 4, 4), pool_b=(4, 4, 4), ties="a"),
        Options(pool_a=(4, 3, 2), pool_b=(6, 3, 2), reward="score"),
        Options(pool_a=(6, 4), pool_b=(4, 4), ties="reroll"),
        Options(pool_a=(4, 4), pool_b=(4, 4, 4), ties="a"),
        Options(pool_a=(4, 3), pool_b=(3,), ties="reroll"),
        Options(pool_a=(4, 4), pool_b=(6, 4), ties="a", open_hands=True),
        Options(pool_a=(3, 2), pool_b=(3, 3), ties="reroll", open_hands=True),
    ],
    ids=str,
)
def test_the_equilibrium_is_worth_the_unsorted_game(options):
    """Choosing at random is an equilibrium, so all equilibria have its value: the linear programs must find it."""
    assert Equilibrium(options).game_value() == pytest.approx(mean_reward(options, "unsorted"), abs=1e-8)


@pytest.mark.parametrize("seat", [0, 1])
def test_nothing_can_be_gained_against_the_equilibrium(seat):
    """The best response to its strategies, over every hand: two dice a side, so that only the first choice counts."""
    options = Options(pool_a=(6, 6), pool_b=(8, 6), ties="a")
    variant = configure("score_dice", pool_a=(6, 6), pool_b=(8, 6), ties="a")
    rolls = [list(itertools.product(*(range(1, size + 1) for size in pool))) for pool in options.pools]
    states = np.zeros(len(rolls[1 - seat]), variant.game.state)
    states["rng"] = new_streams(1, len(states))["rng"]
    index = np.arange(len(states))
    variant.kernels.deal(variant.params, states, index)
    for state, roll in zip(states, rolls[1 - seat], strict=True):
        state["faces"][1 - seat, :2] = roll
    if seat == 0:  # the equilibrium moves second, and does not see what was chosen
        variant.kernels.play(variant.params, states, index, np.zeros(len(states), np.int64))
    chances = Nash().probabilities(Turn(variant, states, index, new_streams(2, len(states))))
    assert chances.sum(axis=1) == pytest.approx(1)
    best = 0.0
    for own in rolls[seat]:
        values = []
        for first in (0, 1):
            total = 0.0
            for roll, mix in zip(rolls[1 - seat], chances, strict=True):
                for place in (0, 1):
                    pairs = [(own[first], roll[place]), (own[1 - first], roll[1 - place])]
                    tie = 1 if seat == 0 else -1
                    score = sum((x > y) - (x < y) or tie for x, y in pairs)
                    total += mix[place] * ((score > 0) - (score < 0))
            values.append(total / len(rolls[1 - seat]))
        best += max(values) / len(rolls[seat])
    value = Equilibrium(options).game_value()
    assert best == pytest.approx(value if seat == 0 else -value, abs=1e-9)


def test_pools_too_large_for_an_equilibrium_are_refused():
    with pytest.raises(ValueError, match="small pools only"):
        tournament(configure("score_dice"), ["score_nash", "random"], 10, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"pool_a": (6, 6), "pool_b": (6, 6), "ties": "reroll"},
        {"pool_a": (4, 4), "pool_b": (6, 4, 3), "ties": "reroll"},
        {"pool_a": (4, 4, 4), "pool_b": (4, 4, 4), "open_hands": True, "ties": "a"},
    ],
    ids=str,
)
def test_agents_play_legally_and_the_equilibrium_loses_nothing(options):
    specs = ["score_nash", "highest", "score_response:highest", "shuffled"]
    games = 500
    result = tournament(configure("score_dice", **options), specs, games, 3)
    # Seats rotate, so an equilibrium player earns nothing on average against another, and no less against anybody.
    earned = result.mean_return[0][1:]
    assert all(mean > -5 / math.sqrt(games) for mean in earned), earned


def test_asking_an_agent_does_not_depend_on_what_is_hidden():
    variant = configure("score_dice", pool_a=(6, 6, 6), pool_b=(6, 6, 6, 6), ties="a")
    states = np.zeros(40, variant.game.state)
    states["rng"] = new_streams(1, 40)["rng"]
    index = np.arange(40)
    variant.kernels.deal(variant.params, states, index)
    variant.kernels.play(variant.params, states, index, np.zeros(40, np.int64))
    others = np.empty_like(states)
    variant.kernels.reroll(variant.params, states, index, np.ones(40, np.int64), new_streams(9, 40), others)
    assert (states["seat"] != OVER).all()
    for agent in (Response(), agents.make("highest")):
        actions = [agent.act(Turn(variant, s, index, new_streams(5, 40))) for s in (states, others)]
        assert (actions[0] == actions[1]).all()


def test_agents_refuse_other_games_and_wrong_parameters():
    for spec in ("highest", "shuffled", "score_response", "score_nash"):
        with pytest.raises(ValueError, match="plays score_dice only"):
            play_table(configure("liars_dice"), [agents.make(spec), agents.make("random")], 2, 1)
    with pytest.raises(ValueError, match="to must be one of"):
        agents.make("score_response:random")
