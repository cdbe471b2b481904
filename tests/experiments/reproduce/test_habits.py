"""Habits of solutions of Liar's Dice, and losses of parts of an agent's play against them, compared with a plain program that
enumerates all pairs of hands and all bids."""

import itertools
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from dice_envs import configure
from dice_envs.agent.specs import make_agent
from dice_envs.agents.liars_dice import LiarsDiceNash
from dice_envs.experiments.reproduce.liars_dice import habits
from dice_envs.games.liars_dice.exact.cfr import RoundSolver
from dice_envs.games.liars_dice.exact.solution import Solution, SolvedRound
from dice_envs.games.liars_dice.exact.solver import solve
from dice_envs.games.liars_dice.exact.tree import Tree
from tests.support.liars_dice_games import winning_probability
from tests.support.liars_dice_tables import Plain, of_agent
from tests.support.subsets import covering

pytestmark = pytest.mark.thorough


def of_solution(solution):
    """A solution as a policy for `Plain`."""
    return of_agent(solution.variant, SimpleNamespace(probabilities=lambda turn: solution.probabilities(turn.states)))


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
                return habits.FORCED
            return habits.MOST if held(own, face) == best else habits.FEWER if held(own, face) else habits.NONE

        for quantity, face in raises:
            share = weight * chances[quantity, face]
            if share == 0:
                continue
            counts["named", stage, 0, what(face)] += share
            counts["named", stage, 1, habits.MOST if best else habits.FORCED] += share
            for each in nameable:
                counts["named", stage, 2, what(each)] += share / len(nameable)
            if not bids:
                counts["openings", quantity - 1, face - 1] += share
                counts["openings_by_most", quantity - 1, best] += share
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
    own = habits.habits_of(solved)
    found = {}
    for name in ("openings", "openings_by_most", "turns", "calls", "named"):
        found |= {(name, *place): number for place, number in np.ndenumerate(getattr(own, name)) if number}
    for key in counts.keys() | found.keys():
        assert found.get(key, 0.0) == pytest.approx(counts[key], abs=1e-9), key


def test_rounds_that_a_game_comes_to():
    """Of two dice each: the loser of the first round starts the second, with one die against two."""
    solution = solve(configure("liars_dice", num_dice=2), 1e-6)
    shares = habits.round_shares(solution)
    assert shares[2, 2] == 1
    assert shares[1, 2] == pytest.approx(1)
    assert shares[1, 1] == pytest.approx(solution.rounds[1, 2].certificate.value)
    single = solve(configure("liars_dice", num_dice=(2, 1), rounds="single"), 1e-6)
    assert habits.round_shares(single) == {(2, 1): 0.5, (1, 2): 0.5}


def test_values_of_all_rounds_include_those_that_a_game_does_not_come_to():
    solution = solve(configure("liars_dice", num_dice=2), 1e-6)
    assert (2, 1) not in solution.rounds
    values = habits.values_of_all_rounds(solution, 1e-6)
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
    assert habits.chance_that_bids_hold(variant, 2, 3) == pytest.approx([1, 11 / 36, 1 / 36, 0, 0])


# --- parts of an agent's play --------------------------------------------------------------------------------------------


def plain_wins(solution, agent, dice, player, part):
    """The probability that the agent, as player 0 or 1, wins a round with a part of its play replaced."""
    as_it_plays, as_solved = of_agent(solution.variant, agent), of_solution(solution)

    def raises_of(chances):
        """The chance of each raise if it raises; empty if it never does."""
        total = 1 - chances["call"]
        return {bid: chance / total for bid, chance in chances.items() if bid != "call"} if total > 0 else {}

    def marginal(raises, which, value):
        return sum(chance for bid, chance in raises.items() if bid[which] == value)

    def mixed(dice, bids, place, hand):
        own, best = (each(dice, bids, place, hand) for each in (as_it_plays, as_solved))
        call = (best if part.calls else own)["call"]
        raises, others = raises_of(own), raises_of(best)
        if part.raises if bids else part.quantity and part.face:
            raises, others = others, raises
        elif not bids and (part.quantity or part.face):
            quantities, faces = (others, raises) if part.quantity else (raises, others)
            raises = {bid: marginal(quantities, 0, bid[0]) * marginal(faces, 1, bid[1]) for bid in raises}
        return {**{bid: (1 - call) * chance for bid, chance in (raises or others).items()}, "call": call}

    options = {"num_dice": dice, "num_faces": solution.variant.options.num_faces, "rounds": "single", "starter": "first"}
    policies = (mixed, as_solved) if player == 0 else (as_solved, mixed)
    return Plain(configure("liars_dice", **options), *policies).share("plays", dice, player)


ALL = habits.Replaced(calls=True, quantity=True, face=True, raises=True)


@covering(("bluff", "part"), [0, 0.75], [*habits.PARTS.values(), ALL])
def test_a_plain_program_wins_as_often(bluff, part):
    solution = solve(configure("liars_dice", num_dice=2, num_faces=3), 1e-3)
    agent = make_agent(f"numbers:bluff={bluff}")
    played = habits.wins_against(solution, agent, {"part": part})["part"]
    for dice, each in played.items():
        assert each.starting == pytest.approx(plain_wins(solution, agent, dice, 0, part), abs=1e-9)
        assert each.following == pytest.approx(plain_wins(solution, agent, dice, 1, part), abs=1e-9)
        assert part is not ALL or (each.loss, each.best_starting) == pytest.approx((0, each.starting), abs=1e-9)
    assert part is not ALL or habits.games_won(played, 2) == pytest.approx(0.5, abs=1e-9)


def test_an_agent_that_sees_all_bids_is_asked_at_each_node():
    """The solution as the agent wins as often as itself, whichever part is replaced."""
    solution = solve(configure("liars_dice", num_dice=2), 1e-3)
    replaced = {"nothing": habits.Replaced(), "calls": habits.Replaced(calls=True)}
    for played in habits.wins_against(solution, LiarsDiceNash(1e-3), replaced).values():
        assert habits.mean_loss(solution, played) == pytest.approx(0, abs=1e-9)


def test_a_game_is_won_as_often_as_by_asking_both_agents():
    variant = configure("liars_dice", num_dice=2)
    numbers, nash = make_agent("numbers:bluff=0.25"), LiarsDiceNash(1e-3)
    played = habits.wins_against(solve(variant, 1e-3, resume=True), numbers, {"nothing": habits.Replaced()})["nothing"]
    assert habits.games_won(played, 2) == pytest.approx(winning_probability(variant, numbers, nash), abs=1e-9)
    assert habits.games_won(played, 2) < 0.5
