"""Habits of solutions of Liar's Dice, compared with a plain program that enumerates all pairs of hands and all bids."""

import itertools
from collections import Counter

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.exact.liars_dice.cfr import RoundSolver
from dice_envs.exact.liars_dice.solution import Solution, SolvedRound
from dice_envs.exact.liars_dice.solver import solve
from dice_envs.exact.liars_dice.tree import Tree
from dice_envs.experiments.reproduce.liars_dice.habits import (
    FEWER,
    FORCED,
    MOST,
    NONE,
    chance_that_bids_hold,
    habits_of,
    round_shares,
    values_of_all_rounds,
)
from dice_envs.games.liars_dice import STATE
from dice_envs.games.liars_dice.raises import NO_BID
from tests.support.subsets import covering

pytestmark = pytest.mark.thorough


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def roughly_solved(variant, dice):
    """A round after a few iterations, so that nearly every action has a positive probability."""
    solver = RoundSolver(Tree(variant, dice))
    solver.iterate(3)
    return SolvedRound(solver.tree, solver.averages, solver.certify(), 3, 0.0)


def plain_habits(variant, dice, solved):
    """Habits from every pair of throws, die by die, and every sequence of bids, by the rules."""
    faces, wild = variant.params.num_faces, variant.params.wild
    solution = Solution(variant, {dice: solved})
    counts = Counter()

    def held(throw, face):
        return sum(die == face or (die == wild and wild >= 0) for die in throw)

    def follow(throws, bids, weight):
        mover = len(bids) % 2
        own = throws[mover]
        state = np.zeros(1, STATE)
        state["dice"][0, :2] = state["in_round"][0, :2] = dice
        state["in_round"][0, :2] = 1
        state["in_play"], state["seat"] = sum(dice), mover
        state["bid"] = bids[-1] if bids else NO_BID
        state["num_bids"] = len(bids)
        state["bids"][0, : len(bids)] = bids
        state["counts"][0, mover, :faces] = [own.count(face) for face in range(faces)]
        mask = np.zeros(variant.params.num_actions, np.int8)
        variant.game.legal(variant.params, state[0], mask)
        raises = np.flatnonzero(mask[:-1])
        chances = solution.probabilities(state)[0]
        assert chances[mask == 0].sum() == 0
        if bids:
            quantity, face = divmod(bids[-1], faces)
            if not solved.tree.is_leaf(bids[-1], len(bids) % 2):
                need = min(max(quantity + 1 - held(own, face), 0), dice[1 - mover] + 1)
                counts["turns", mover, need] += weight
                counts["calls", mover, need] += weight * chances[-1]
        nameable = {int(bid) % faces for bid in raises}
        best = max((held(own, face) for face in nameable), default=0)

        def what(face):
            if best == 0:
                return FORCED
            return MOST if held(own, face) == best else FEWER if held(own, face) else NONE

        stage = 1 if bids else 0
        for bid in raises:
            share = weight * chances[bid]
            if share == 0:
                continue
            quantity, face = divmod(int(bid), faces)
            counts["named", stage, 0, what(face)] += share
            counts["named", stage, 1, MOST if best else FORCED] += share
            for each in nameable:
                counts["named", stage, 2, what(each)] += share / len(nameable)
            if not bids:
                counts["opening", quantity, face] += share
                counts["by most", quantity, best] += share
            follow(throws, (*bids, int(bid)), share)

    for throws in itertools.product(*(itertools.product(range(faces), repeat=number) for number in dice)):
        follow(throws, (), faces ** -sum(dice))
    return counts


@covering(("rules", "dice"), [{}, {"wild": "ones"}, {"raise_rule": "either"}], [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_a_plain_program_counts_the_same(dice, rules):
    faces = 2 if "raise_rule" in rules and sum(dice) > 2 else 3
    variant = configure("liars_dice", num_dice=dice, num_faces=faces, rounds="single", starter="first", **rules)
    solved = roughly_solved(variant, dice)
    counts = plain_habits(variant, dice, solved)
    habits = habits_of(solved)
    found = {}
    for name, array in (
        ("opening", habits.openings),
        ("by most", habits.openings_by_most),
        ("turns", habits.turns),
        ("calls", habits.calls),
        ("named", habits.named),
    ):
        found |= {(name, *place): number for place, number in np.ndenumerate(array) if number}
    for key in counts.keys() | found.keys():
        assert found.get(key, 0.0) == pytest.approx(counts[key], abs=1e-9), key


def test_rounds_that_a_game_comes_to():
    """Of two dice each: the loser of the first round starts the second, with one die against two."""
    solution = solve(configure("liars_dice", num_dice=2), 1e-6)
    shares = round_shares(solution)
    assert shares[2, 2] == 1
    assert shares[1, 2] == pytest.approx(1)
    assert shares[1, 1] == pytest.approx(solution.rounds[1, 2].value)
    assert round_shares(solve(configure("liars_dice", num_dice=(2, 1), rounds="single"), 1e-6)) == {(2, 1): 0.5, (1, 2): 0.5}


def test_values_of_all_rounds_include_those_that_a_game_does_not_come_to():
    solution = solve(configure("liars_dice", num_dice=2), 1e-6)
    assert (2, 1) not in solution.rounds
    values = values_of_all_rounds(solution, 1e-6)
    assert list(values) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    other = solve(configure("liars_dice", num_dice=(2, 1)), 1e-6)
    for dice, worth in values.items():
        known = (solution if dice in solution.rounds else other).chance(dice)
        assert (worth.lower, worth.upper) == pytest.approx(known, abs=2e-6)
        assert worth.lower - 1e-9 <= worth.value <= worth.upper + 1e-9
    assert values[1, 1].value == pytest.approx(5 / 6)
    assert values[2, 2].value == pytest.approx(0.61996075)


def test_chance_that_bids_hold():
    variant = configure("liars_dice")
    assert chance_that_bids_hold(variant, 2) == pytest.approx([1, 11 / 36, 1 / 36, 0])
