"""The FateStones project's own search, compared with an independent implementation."""

import itertools
import math
import random

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.experiments.reproduce import fatestones
from dice_envs.experiments.reproduce.fatestones import ProjectSearch
from dice_envs.games.fatestones.exact import first_choices
from dice_envs.games.fatestones.exact.draws import draw_hands
from tests.agents.mcts.test_agent import fatestones_turn
from tests.support.subsets import few


def choices(first, second, simulations, games=2000):
    """The shares of seat 0's choices, (dice,) float64."""
    actions = ProjectSearch(simulations).act(fatestones_turn(first, second, games))
    return np.bincount(actions, minlength=len(first)) / games


def test_the_higher_roll_wins():
    rolls = itertools.product(range(6), repeat=2)  # a node ends with 0, no dice left, or the number of a roll from 1
    assert [fatestones._reward(node) for node in range(37)] == [0.5, *(float(mine > theirs) for mine, theirs in rolls)]


@pytest.mark.parametrize(
    ("first", "second", "simulations", "shares"),
    [
        # 144444 beats 333333 five times in six, 111444 half of the time. The search sees distinct faces, so both look even.
        ((144444, 111444), (333333, 333333), 5, [0.5, 0.5]),  # one simulation for the root, one for each pair
        # The first die ties; then the second wins for certain, or loses. After a tie a win is a loss.
        ((333333, 444444), (333333, 333333), 400, [0, 1]),
        ((333333, 222222), (333333, 333333), 400, [1, 0]),
        # Only 333333 wins, and only against 222222, wherever that is in the opponent's hand.
        *(((111111, 111111, 333333), hand, 20, [0, 0, 1]) for hand in itertools.permutations((666666, 666666, 222222))),
    ],
)
def test_it_chooses_by_its_own_rules(first, second, simulations, shares):
    assert choices(first, second, simulations) == pytest.approx(shares, abs=0.04 if simulations == 5 else 0.02)


class Tree:
    """The same search with dictionaries and positions as tuples: own dice, the other's, the pair, the faces."""

    def __init__(self, draw):
        self.draw, self.visits, self.total = draw, {}, {}

    def follow(self, node):
        own, other, pair, faces = node
        if pair is None:
            return [(own, other, (i, j), None) for i in range(len(own)) for j in range(len(other))]
        if faces is None:
            rolls = itertools.product(str(own[pair[0]]), str(other[pair[1]]))
            return [(own, other, pair, roll) for roll in sorted(set(rolls))]
        if faces[0] != faces[1]:
            return []
        return [(own[: pair[0]] + own[pair[0] + 1 :], other[: pair[1]] + other[pair[1] + 1 :], None, None)]

    def ucb(self, node, parent):
        return self.total[node] / self.visits[node] + math.sqrt(math.log(self.visits[parent]) / self.visits[node])

    def simulate(self, root):
        path = [root]
        while path[-1] in self.visits and (after := self.follow(path[-1])):
            fresh = [node for node in after if node not in self.visits]
            path.append(self.draw.choice(fresh) if fresh else max(after, key=lambda node: self.ucb(node, path[-1])))
        node, levels = path[-1], 1
        while after := self.follow(node):
            node, levels = self.draw.choice(after), levels + 1
        reward = 0.5 if node[3] is None else float(node[3][0] > node[3][1])
        reward = 1 - reward if levels % 2 else reward
        for node in reversed(path):
            self.visits[node] = self.visits.get(node, 0) + 1
            self.total[node] = self.total.get(node, 0.0) + reward
            reward = 1 - reward

    def choose(self, root, simulations):
        for _ in range(simulations):
            self.simulate(root)
        tried = [node for node in self.follow(root) if node in self.visits]
        self.draw.shuffle(tried)
        return max(tried, key=lambda node: self.total[node] / self.visits[node])[2][0]


@pytest.mark.thorough
@pytest.mark.parametrize("simulations", [10, 60])
def test_it_chooses_as_a_plain_tree_does(simulations):
    first, second = (144444, 222555, 133356), (333336, 123456, 114456)
    draw = random.Random(4)
    plain = [Tree(draw).choose((first, second, None, None), simulations) for _ in range(1000)]
    # The standard error of a difference of shares, from 1,000 and 4,000 choices, is at most 0.018.
    assert np.bincount(plain, minlength=3) / 1000 == pytest.approx(choices(first, second, simulations, 4000), abs=0.07)


@few(1, "simulations", [10, 50])
def test_it_takes_none_of_the_edge(simulations):
    """Like the published log of the source: 0.001 ± 0.020 with 10 simulations."""
    variant = configure("fatestones")
    share, error = first_choices(variant, ProjectSearch(simulations), draw_hands(variant, 10_000, 3), seed=3)
    assert -0.1 < share < 0.03
    assert error < 0.02


def test_it_plays_the_source_s_game_only():
    with pytest.raises(ValueError, match="simulations must be"):
        ProjectSearch(0)
    with pytest.raises(ValueError, match="hand_size must be .* not 4"):
        ProjectSearch().check_variant(configure("fatestones", hand_size=4))
    with pytest.raises(ValueError, match="plays fatestones only"):
        ProjectSearch().check_variant(configure("thirties"))
