"""The game of 30s: rules, the game for several players, and play compared with exact distributions."""

from collections import Counter

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dice_envs  # noqa: F401 - registers the environments
from dice_envs.agent import ask
from dice_envs.agents.thirties import Thirties
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, configure
from dice_envs.games.thirties import MAX_RESTARTS, NO_SCORE, second_stage
from dice_envs.games.thirties.exact.figures import analyse
from dice_envs.games.thirties.exact.strategies import NAMES, Rules, named, solve
from tests.support.chance import assert_distributed, second_stage_points
from tests.support.subsets import few


def finish(agent, games, seed, **options):
    """The final states of a number of games, with the agent at all seats, and the returns (games, seats)."""
    batch = Batch("thirties", games, seed=seed, **options)
    streams = new_streams(seed + 1, games)
    index = np.arange(games)
    returns = np.zeros((games, batch.variant.facts.num_seats))
    while len(index):
        actions = ask(agent, batch.variant, batch.states, index, streams)
        batch.variant.kernels.play(batch.states, index, actions)
        returns[index] += batch.rewards[index]
        index = index[batch.seats[index] != OVER]
    return batch.states, returns


def score_chances(found):
    return {found.first + i: weight / found.total for i, weight in enumerate(found.weights)}


PAYS = {
    "maximize": lambda score, target: score,
    "minimize_loss": lambda score, target: min(0, score - target),
    "thirty_or_over": lambda score, target: score >= target,
    "optimal": lambda score, target: min(0, score - target),  # and what the second stage gives
}


@given(st.data())
def test_the_lowest_dice_are_thrown_again_and_the_others_go_aside_until_the_goal_pays(data):
    goal = data.draw(st.sampled_from(list(PAYS)))
    faces = data.draw(st.integers(3 if goal == "optimal" else 2, 8))
    throw = data.draw(st.lists(st.integers(1, faces), min_size=1, max_size=8))
    aside = data.draw(st.lists(st.integers(1, faces), max_size=8 - len(throw)))
    again, target = data.draw(st.integers(0, len(throw) - 1)), data.draw(st.integers(1, 64))
    options = {"num_dice": len(throw) + len(aside), "num_faces": faces, "goal": goal, "target": target}
    env = gymnasium.make("dice_envs/Thirties-v0", **options).unwrapped
    _, info = env.reset(seed=1, options={"dice": throw, "aside": aside})
    assert info["action_mask"].tolist() == [1] * len(throw) + [0] * len(aside), "one die at least goes aside"
    _, reward, over, _, _ = env.step(again)
    state = env.games.states[0]
    kept = Counter(aside) + Counter(sorted(throw)[again:])
    score = sum(kept.elements())
    assert {face + 1: n for face, n in enumerate(state["aside"]) if n} == dict(kept)
    assert (state["score"], state["thrown"], over) == (score, again, again == 0)
    if not over:
        assert (reward, state["counts"].sum()) == (0, again)
    elif goal != "optimal" or score <= target:
        assert reward == PAYS[goal](score, target)


def test_observation_is_the_one_described():
    env = gymnasium.make("dice_envs/Thirties-v0", num_dice=4, num_faces=3).unwrapped
    seen, _ = env.reset(seed=1, options={"dice": [3, 1, 3], "aside": [2]})
    one_hot = [1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0]  # 1, 3, 3, none
    np.testing.assert_allclose(seen, [0.25, 0, 0.5, 0, 0.25, 0, *one_hot, 0.75, 2 / 12], rtol=1e-6)


def test_optimal_needs_no_second_stage_that_cannot_come():
    assert configure("thirties", num_players=1, goal="optimal", num_faces=2, num_dice=6).facts.max_return == -18
    assert configure("thirties", num_players=1, goal="optimal", num_faces=2, num_dice=6, target=12).facts.max_return == 0


@pytest.mark.parametrize(("dice", "faces", "excess"), [(6, 6, 2), (6, 6, 6), (1, 2, 1), (2, 3, 1), (2, 3, 5), (8, 8, 8)])
def test_second_stage_gives_points_as_often_as_computed(dice, faces, excess):
    params = configure("thirties", num_dice=dice, num_faces=faces).params
    stream = new_streams(11, 1)[0]
    given = Counter(int(second_stage(params, stream, excess)) for _ in range(20_000))
    assert_distributed(given, second_stage_points(Rules(dice, faces), excess, 12))


@pytest.mark.parametrize(("dice", "faces", "target"), [(6, 6, 30), (8, 3, 1), (1, 3, 2)])
def test_no_second_stage_exceeds_the_bound_told(dice, faces, target):
    variant = configure("thirties", num_dice=dice, num_faces=faces, target=target, num_players=1, goal="optimal")
    excess = dice * faces - target
    longest = max(second_stage_points(Rules(dice, faces, target), excess, MAX_RESTARTS))
    assert longest <= variant.facts.max_return <= 2 * longest
    assert 2 * longest * 1000 < 2**62  # points of a whole game fit in int64
    stream = new_streams(5, 1)[0]
    given = [second_stage(variant.params, stream, excess) for _ in range(2000)]
    assert excess <= min(given) <= max(given) <= longest


@pytest.mark.parametrize("players", [2, 3, 5])
def test_points_go_to_the_player_and_gifts_to_the_next_and_the_fewest_share_the_win(players):
    states, returns = finish(Thirties("sixes"), 5000, 2, num_players=players, rounds=1)
    scores, given, points = (states[name][:, :players].astype(int) for name in ("scores", "given", "points"))
    assert (scores != NO_SCORE).all()
    assert (states["scores"][:, players:] == NO_SCORE).all()
    np.testing.assert_array_equal(points, np.maximum(0, 30 - scores) + np.roll(given, 1, axis=1))
    assert (given >= np.maximum(0, scores - 30)).all()
    assert (given[scores <= 30] == 0).all()
    best = points == points.min(axis=1, keepdims=True)
    winners = best.sum(axis=1, keepdims=True)
    expected = np.where(best, 1 / winners, -1 / np.maximum(players - winners, 1))
    expected[winners[:, 0] == players] = 0
    np.testing.assert_allclose(returns, expected, rtol=1e-6)
    assert (winners > 1).any()  # ties came up


def test_everybody_has_the_same_number_of_turns_in_order():
    batch = Batch("thirties", 1, seed=4, num_players=3, rounds=2)
    order = []
    while batch.seats[0] != OVER:
        order.append(int(batch.seats[0]))
        batch.play(np.zeros(1, np.int64))  # keep all: one action a turn
    assert order == [0, 1, 2, 0, 1, 2]


OTHER_DICE = [{"num_dice": 3, "num_faces": 8, "target": 17}, {"num_dice": 8, "num_faces": 2, "target": 15}]


@few(4, ("name", "options"), [*(("minimize_loss", each) for each in (*OTHER_DICE, {})), *((name, {}) for name in NAMES)])
def test_play_agrees_with_the_exact_distribution(name, options):
    states, _ = finish(Thirties(name), 20_000, 1000 * NAMES.index(name), num_players=1, **options)
    rules = Rules.of(configure("thirties", num_players=1, **options).options)
    assert_distributed(Counter(states["score"].tolist()), score_chances(analyse(rules, named(rules, name)).distribution))


def test_table_game_agrees_with_the_exact_second_stage():
    states, _ = finish(Thirties("optimal"), 20_000, 40, num_players=2, rounds=1)
    seen = Counter(zip(states["scores"][:, :2].ravel().tolist(), states["given"][:, :2].ravel().tolist()))
    rules = Rules()
    chances = {}
    for score, chance in score_chances(analyse(rules, solve(rules, "optimal")[0]).distribution).items():
        gifts = second_stage_points(rules, score - 30, 12) if score > 30 else {0: 1}
        chances.update({(score, points): float(chance * share) for points, share in gifts.items()})
    assert_distributed(seen, chances)


def enough(throw, aside):
    return 0 if sum(throw) + sum(aside) >= 21 else len(throw) - 1


@pytest.mark.parametrize(
    "strategy", [lambda throw: min(sum(die < 3 for die in throw), len(throw) - 1), enough, f"{__name__}:enough"]
)
def test_any_function_is_a_strategy(strategy):
    from dice_envs.games.thirties.exact.strategies import custom

    function = enough if isinstance(strategy, str) else strategy
    seen = Counter(finish(Thirties(strategy), 20_000, 60, num_players=1)[0]["score"].tolist())
    assert_distributed(seen, score_chances(analyse(Rules(), custom(function)).distribution))


@pytest.mark.parametrize("strategy", ["fives", "no.such.module", 5, lambda: 0, lambda a, b, c: 0])
def test_wrong_strategies_are_refused(strategy):
    with pytest.raises(ValueError, match="strategy"):
        finish(Thirties(strategy), 1, 1, num_players=1)
