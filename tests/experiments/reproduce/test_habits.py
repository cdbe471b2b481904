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
from tests.experiments.reproduce.test_parts import of_solution
from tests.support.liars_dice_tables import Plain
from tests.support.subsets import covering

pytestmark = pytest.mark.thorough


def roughly_solved(variant, dice):
    """A round after a few iterations, so that nearly every action has a positive probability."""
    solver = RoundSolver(Tree(variant, dice))
    solver.iterate(3)
    return SolvedRound(solver.tree, solver.averages, solver.certify(), 3, 0.0)


def plain_habits(variant, dice, solved):
    """Habits from every pair of throws, die by die, and every sequence of bids, by the rules."""
    plain, policy, faces = Plain(variant), of_solution(Solution(variant, {dice: solved})), variant.options.num_faces
    counts = Counter()

    def held(throw, face):
        return sum(plain.holds((1, face), [[die]]) for die in throw)

    def follow(throws, bids, weight):
        mover, stage = len(bids) % 2, min(len(bids), 1)
        own, raises = throws[mover], plain.raises(dice, bids)
        chances = policy(dice, bids, mover, own)
        assert sum(chance for bid, chance in chances.items() if bid not in [*raises, "call"]) == 0
        if bids:
            quantity, face = bids[-1]
            if not solved.tree.is_leaf((quantity - 1) * faces + face - 1, mover):
                need = min(max(quantity - held(own, face), 0), dice[1 - mover] + 1)
                counts["turns", mover, need] += weight
                counts["calls", mover, need] += weight * chances["call"]
        nameable = {face for _, face in raises}
        best = max((held(own, face) for face in nameable), default=0)

        def what(face):
            if best == 0:
                return FORCED
            return MOST if held(own, face) == best else FEWER if held(own, face) else NONE

        for quantity, face in raises:
            share = weight * chances[quantity, face]
            if share == 0:
                continue
            counts["named", stage, 0, what(face)] += share
            counts["named", stage, 1, MOST if best else FORCED] += share
            for each in nameable:
                counts["named", stage, 2, what(each)] += share / len(nameable)
            if not bids:
                counts["opening", quantity - 1, face - 1] += share
                counts["by most", quantity - 1, best] += share
            follow(throws, (*bids, (quantity, face)), share)

    for throws in itertools.product(*map(plain.hands, dice)):
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
    assert shares[1, 1] == pytest.approx(solution.rounds[1, 2].certificate.value)
    assert round_shares(solve(configure("liars_dice", num_dice=(2, 1), rounds="single"), 1e-6)) == {(2, 1): 0.5, (1, 2): 0.5}


def test_values_of_all_rounds_include_those_that_a_game_does_not_come_to():
    solution = solve(configure("liars_dice", num_dice=2), 1e-6)
    assert (2, 1) not in solution.rounds
    values = values_of_all_rounds(solution, 1e-6)
    assert list(values) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    other = solve(configure("liars_dice", num_dice=(2, 1)), 1e-6)
    for dice, worth in values.items():
        known = (solution if dice in solution.rounds else other).certificates[dice]
        assert (worth.lower, worth.upper) == pytest.approx((known.lower, known.upper), abs=2e-6)
        assert worth.lower - 1e-9 <= worth.value <= worth.upper + 1e-9
    assert values[1, 1].value == pytest.approx(5 / 6)
    assert values[2, 2].value == pytest.approx(0.61996075)


def test_chance_that_bids_hold():
    variant = configure("liars_dice")
    assert chance_that_bids_hold(variant, 2, 3) == pytest.approx([1, 11 / 36, 1 / 36, 0, 0])
