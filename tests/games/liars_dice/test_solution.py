"""Solutions of Liar's Dice: known values, error bounds, files, and comparison with a plain program."""

import concurrent.futures
import contextlib
import json
import os
import tracemalloc
import types
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest

from dice_envs import Batch, configure
from dice_envs.games.liars_dice import play
from dice_envs.games.liars_dice.exact import cfr as liars_dice_cfr
from dice_envs.games.liars_dice.exact import solver as liars_dice_solver
from dice_envs.games.liars_dice.exact.cfr import RoundSolver, Walker, memory_of, quantised
from dice_envs.games.liars_dice.exact.programme import solve_exactly
from dice_envs.games.liars_dice.exact.round import Round
from dice_envs.games.liars_dice.exact.seating import Certificate, certify_games, kind_of, rounds_of
from dice_envs.games.liars_dice.exact.solution import Solution, SolvedRound
from dice_envs.games.liars_dice.exact.solver import OutOfTimeError, solve, throttled
from dice_envs.games.liars_dice.exact.store import cache_folder
from dice_envs.games.liars_dice.exact.tree import Tree
from dice_envs.games.liars_dice.raises import PALIFICO
from tests.support.liars_dice_tables import plain_of, position
from tests.support.subsets import covering, few


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DICE_ENVS_CACHE", str(tmp_path))
    return tmp_path


def tree_of(dice, **options):
    return Tree(configure("liars_dice", num_dice=6, **options), dice)


OPENSPIEL = {"raise_rule": "either", "wild": "highest"}
# The chance that the starter wins: from an independent program, or as published for returns of ±1.
RESET_QUANTITY = {"raise_rule": "reset_quantity", "wild": "highest"}
ROUNDS = [
    ((1, 1), {}, Fraction(5, 6)),
    ((2, 1), {}, Fraction(89, 108)),
    ((1, 2), {}, Fraction(67, 108)),
    ((2, 2), {}, Fraction(211, 324)),
    ((1, 1), {"raise_rule": "either"}, (1 + Fraction(-1, 9)) / 2),
    ((1, 1), {"raise_rule": "either", "wild": "ones"}, (1 + Fraction(-7, 327)) / 2),
    ((1, 1), OPENSPIEL, (1 + Fraction(-7, 258)) / 2),
    ((1, 1), RESET_QUANTITY, (1 + Fraction(-1, 18)) / 2),
]


@few(3, ("dice", "rules", "value"), ROUNDS)
def test_known_values_of_small_rounds(dice, rules, value):
    tree = tree_of(dice, **rules)
    walker = Walker(tree, solve_exactly(tree))
    certificate = walker.certify()
    assert (certificate.lower, certificate.value, certificate.upper) == pytest.approx([float(value)] * 3, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("dice", "rules", "value"), ROUNDS)
def test_iterations_and_two_threads_find_the_same(dice, rules, value):
    """Threads do not change results: each walks its own branches."""
    solvers = [RoundSolver(tree_of(dice, **rules), threads) for threads in (1, 2)]
    for solver in solvers:
        solver.iterate(100)
    assert (solvers[0].averages == solvers[1].averages).all()
    one, two = (solver.certify() for solver in solvers)
    assert np.array_equal(one, two)
    assert one.lower - 1e-12 <= value <= one.upper + 1e-12
    assert one.gain < 5e-3


@pytest.mark.thorough
def test_a_certificate_is_that_of_what_is_stored():
    """Bounds belong to the stored strategies: rounding to two bytes moves them, and losing half of the strategy widens them."""
    tree = tree_of((2, 2))
    numbers = solve_exactly(tree)
    assert Walker(tree, quantised(tree, numbers)).certify().gain == pytest.approx(0, abs=1e-4)
    numbers[::2] = 0
    assert Walker(tree, numbers).certify().gain > 0.1


def plain_program_agrees(dice, **options):
    """Walk a round with each hand and all raises, for a strategy far from optimal: how seat 0 does as and against a response.

    Strategies are looked up by state, so this is also a test of where they are found.
    """
    variant = configure("liars_dice", starter="first", **options)
    trees = {each: Tree(variant, each) for each in rounds_of(variant.options)}  # those of other rounds do not matter
    solver = RoundSolver(trees[dice])
    solver.iterate(3)
    numbers = {each: np.ones(tree.kinds.size[0]) for each, tree in trees.items()} | {dice: solver.averages}
    rounds = {each: SolvedRound(tree, numbers[each], solver.certify(), 0, 0.0) for each, tree in trees.items()}
    solution = Solution(variant, rounds)
    player = types.SimpleNamespace(probabilities=lambda turn: solution.probabilities(turn.states))
    plain, certificate = plain_of(variant, player, player), solver.certify()
    assert certificate.lower == pytest.approx(1 - plain.value(dice, 0, [1], {0: 1.0, 1: 0.0}), abs=1e-12)
    assert certificate.upper == pytest.approx(plain.value(dice, 0, [0], {0: 0.0, 1: 1.0}), abs=1e-12)
    return trees[dice]


PERUDO = {"raise_rule": "perudo", "wild": "ones"}


@covering(
    ("rules", "dice"),
    [{}, {"raise_rule": "either"}, OPENSPIEL, RESET_QUANTITY, {"raise_rule": "nondecreasing"}, {"wild": "ones"}, PERUDO],
    [(1, 1), (2, 1), (1, 2)],
)
def test_a_plain_program_agrees(dice, rules):
    """Pruning the tree changes no best response, even to a strategy far from optimal."""
    plain_program_agrees(dice, num_dice=dice, num_faces=3 if sum(dice) == 2 else 2, rounds="single", **rules)


@few(1, "rules", [PERUDO, {}], ids=["perudo", "quantity"])
def test_a_plain_program_agrees_on_a_palifico_round(rules):
    """The starter has just come down to one die, and the other player has two and may not change the face."""
    assert plain_program_agrees((1, 2), num_dice=2, num_faces=2, palifico=True, **rules).kind == PALIFICO


def test_which_rounds_are_palifico_rounds():
    def palifico(**options):
        options = configure("liars_dice", palifico=True, **options).options
        return [dice for dice in rounds_of(options) if kind_of(options, dice) == PALIFICO]

    assert palifico(num_dice=3) == [(1, 1), (1, 2), (1, 3)]
    assert palifico(num_dice=(2, 1)) == [(1, 1)], "who begins the game with one die has none"
    assert palifico(num_dice=1) == []
    assert palifico(num_dice=3, rounds="single") == []


@pytest.mark.thorough
def test_two_dice_of_elimination():
    solution = solve(configure("liars_dice", num_dice=2), 1e-6)
    assert solution.value == pytest.approx(0.61996075, abs=1e-8)
    assert solution.lower <= solution.value <= solution.upper
    assert all(each["lower"] <= each["upper"] for each in solution.as_dict()["rounds"])
    assert solution.exploitability < 1e-9
    assert sorted(solution.rounds) == [(1, 1), (1, 2), (2, 2)]
    written = json.loads(json.dumps(solution.as_dict()))
    assert set(written) == {"value", "lower", "upper", "exploitability", "nash_conv", "seconds", "rounds"}
    assert set(written["rounds"][0]) == {"dice", "value", "lower", "upper", "iterations", "seconds"}


def test_openspiels_single_round_is_a_return():
    solution = solve(configure("liars_dice", rules="openspiel", num_dice=1), 1e-9)
    assert solution.value == pytest.approx(-7 / 258, abs=1e-9)
    assert 0 <= solution.upper - solution.lower < 1e-9


def test_rounds_that_a_game_comes_to():
    """The starter of a later round has just lost a die."""
    assert rounds_of(configure("liars_dice", num_dice=2).options) == [(1, 1), (1, 2), (2, 2)]
    assert len(rounds_of(configure("liars_dice", num_dice=5).options)) == 21
    assert rounds_of(configure("liars_dice", num_dice=(2, 1), starter="first").options) == [(1, 1), (2, 1)]
    assert rounds_of(configure("liars_dice", num_dice=(2, 1), rounds="single").options) == [(1, 2), (2, 1)]


def test_a_best_response_loses_a_round_on_purpose_where_that_is_worth_more():
    """Here the starter loses with one die each, and wins with one against two: so both want to lose the first round."""
    rounds = {(1, 1): [0.0, 1.0], (1, 2): [1.0, 0.0], (2, 2): [0.5, 0.5]}
    certificates = {dice: Certificate(np.array(wins), np.array(wins)) for dice, wins in rounds.items()}
    first = certify_games(configure("liars_dice", num_dice=2).options, certificates)[2, 2]
    assert (first.plays.tolist(), first.responds.tolist()) == ([0.5, 0.5], [1.0, 1.0])


def test_iterations_solve_small_rounds_too(monkeypatch):
    """Some are solved by the first of them, and then rounding makes the gain less than nothing."""
    variant = configure("liars_dice", num_dice=(2, 1), num_faces=3)
    exact = solve(variant, 1e-3)
    assert {each.iterations for each in exact.rounds.values()} == {0}
    monkeypatch.setattr(liars_dice_solver, "MOST_NUMBERS", 0)
    found = solve(variant, 1e-3)
    assert all(each.iterations for each in found.rounds.values())
    assert min(each.certificate.gain for each in found.rounds.values()) < 1e-12
    assert found.lower <= exact.value + 1e-9
    assert exact.value <= found.upper + 1e-9
    assert found.exploitability <= 1e-3


@pytest.mark.thorough
def test_threads_share_a_solution(threads_change_often):
    """The page's hints and reviews do."""
    variant = configure("liars_dice", num_dice=2, num_faces=3)
    solution, states = solve(variant, 1e-2), []
    for seed in range(20):
        state = Batch(variant, 1, seed=seed).states
        for bid in range(2):
            play(variant.params, state[0], bid)
        states.append(state[0].copy())
    expected = [solution.action_values(state).values for state in states]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda state: solution.action_values(state).values, states * 20))
    for one, other in zip(found, expected * 20, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_hand_that_the_round_does_not_have_is_refused():
    variant = configure("liars_dice", num_dice=1)
    state = Batch(variant, 1, seed=1).states[0]
    state["counts"] = 0
    with pytest.raises(ValueError, match="the seat to move must hold 1 dice, not "):
        solve(variant, 1e-2).action_values(state)


@pytest.mark.parametrize(
    "options", [{"num_dice": 2}, pytest.param({"num_players": 3, "num_dice": 1}, marks=pytest.mark.thorough)]
)
def test_where_a_solution_is_kept_there_is_time_for_a_better_one(options, folder, monkeypatch):
    monkeypatch.setattr(liars_dice_solver, "MOST_NUMBERS", 0)
    variant = configure("liars_dice", num_faces=3, **options)
    first = solve(variant, 1e-2)
    monkeypatch.setattr(liars_dice_solver._Job, "_limit", Mock(side_effect=AssertionError("taken for a first solution")))
    assert solve(variant, 1e-5, resume=True).gain < first.gain


# --- what is kept -------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_what_is_kept_is_taken_and_certified_again(folder, monkeypatch):
    variant = configure("liars_dice", num_dice=3)
    first = solve(variant, 1e-2)
    assert len(list(cache_folder().rglob("*.npz"))) == 7
    assert not list(cache_folder().rglob("*.tmp"))
    monkeypatch.setattr(liars_dice_solver._Job, "work", Mock(side_effect=AssertionError("solved again")))
    again = solve(variant, 1e-2, resume=True)
    assert again.responds.tolist() == first.responds.tolist()
    with pytest.raises(AssertionError, match="solved again"):
        solve(variant, 1e-2)


DAMAGES = {"cut": lambda content: content[: len(content) // 2], "worse": np.ones(54), "empty": b"", "text": b"no archive"}
DAMAGES |= {"other": np.ones(3), "negative": -np.ones(54)}  # arrays: strategies


@few(2, "damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_as_good_as_none(damage):
    """So are worse strategies: bounds are computed from those that were read, not taken from the file."""
    variant = configure("liars_dice", num_dice=1)
    solve(variant)
    (path,) = cache_folder().rglob("*.npz")
    if isinstance(damage, np.ndarray):
        np.savez(path, numbers=damage, iterations=1, seconds=1.0)
    else:
        path.write_bytes(damage(path.read_bytes()) if callable(damage) else damage)
    assert solve(variant, 1e-9, resume=True).exploitability < 1e-9


@pytest.mark.thorough
def test_a_worse_result_does_not_take_the_place_of_a_better_one():
    variant = configure("liars_dice", num_dice=3)
    better = solve(variant, 1e-3)
    assert solve(variant, 1e-1).exploitability > better.exploitability
    again = solve(variant, 1e-3, resume=True)
    assert again.responds.tolist() == better.responds.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("gone_back", [0, 1])
def test_a_game_that_is_stopped_ends_the_same(folder, gone_back):
    """Stopped before or after the first round that is solved again; the precision is chosen so that there is one."""
    variant = configure("liars_dice", num_dice=3)
    finished = []

    def stop(progress):
        finished.append(progress.finished)
        if sum(finished) == len(rounds_of(variant.options)) + gone_back:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(variant, 1e-3, folder=folder / "stopped", done=stop)
    again = solve(variant, 1e-3, folder=folder / "stopped", resume=True)
    whole = solve(variant, 1e-3, folder=folder / "whole")
    for dice, found in whole.rounds.items():
        np.testing.assert_array_equal(found.numbers, again.rounds[dice].numbers)
        assert np.array_equal(found.certificate, again.rounds[dice].certificate)
        assert (found.iterations, found.widths) == (again.rounds[dice].iterations, again.rounds[dice].widths)


def test_what_a_kill_has_left_is_removed(folder):
    variant = configure("liars_dice", num_dice=1)
    solve(variant, 1e-3, folder=folder)
    (path,) = folder.rglob("*.npz")
    old, fresh = path.with_name(".1-1.npz.abcd_123.tmp"), path.with_name(".1-1.npz.abcd_124.tmp")
    for left_over in (old, fresh):
        left_over.write_bytes(b"half")
    os.utime(old, (0, 0))
    solve(variant, 1e-3, folder=folder, resume=True)
    assert sorted(path.parent.iterdir()) == sorted([fresh, path])


@pytest.fixture
def clock(monkeypatch):
    """The solver's clock: each look advances it by `step` seconds."""
    clock = types.SimpleNamespace(now=0.0, step=0.0)

    def now():
        clock.now += clock.step
        return clock.now

    monkeypatch.setattr("dice_envs.games.liars_dice.exact.solver.clock", now)
    return clock


def test_out_of_time(clock):
    """The result so far is returned with its bounds, and every round has a strategy."""
    clock.step = 0.01
    solution = solve(configure("liars_dice", num_dice=3), 1e-9, seconds=10)
    assert solution.lower < solution.upper
    assert solution.exploitability > 1e-9
    assert len(solution.rounds) == 7


@pytest.mark.thorough
def test_rounds_that_have_not_begun_in_time_do_not_begin(folder, clock):
    variant, clock.step = configure("liars_dice", num_dice=3), 0.01
    ended = []

    def late(progress):
        if progress.finished:
            ended.append(progress.dice)
            clock.now += 4.0

    with pytest.raises(OutOfTimeError, match="5 of 7 rounds could not begin within the 7 s given"):
        solve(variant, 1e-3, seconds=7, folder=folder, done=late)
    assert ended == rounds_of(variant.options)[:2]
    assert len(list(folder.rglob("*.npz"))) == 2
    taken = solve(variant, 1e-3, folder=folder, resume=True)
    assert taken.exploitability <= 1e-3


def test_too_large_a_game_for_the_time_is_refused_before_anything_is_done(folder, monkeypatch):
    variant = configure("liars_dice", num_dice=6, num_faces=8)
    monkeypatch.setattr("dice_envs.games.liars_dice.exact.solver.Tree", None)
    with pytest.raises(OutOfTimeError, match=r"num_dice=6 with num_faces=8 .* public nodes in all; .* and 3 s are given"):
        solve(variant, 1e-3, seconds=3, folder=folder)
    assert not folder.exists() or not list(folder.rglob("*"))


NODES = [  # of rounds with so many dice each: from independent programs; "either" has every rising sequence of bids
    *(({}, dice, nodes) for dice, nodes in ((2, 634), (3, 10_605), (4, 180_840), (5, 3_113_852))),
    *(({"rules": "textarena"}, dice, nodes) for dice, nodes in ((1, 448), (2, 8_832), (3, 107_712), (5, 8_579_072))),
    ({"raise_rule": "either"}, 1, 2**12),
]


@pytest.mark.parametrize(("rules", "dice", "nodes"), NODES)
def test_public_nodes_of_a_round(rules, dice, nodes):
    assert Round(configure("liars_dice", num_dice=5, **rules), (dice, dice)).nodes == nodes


@covering(("seconds_a_pass", "precision"), [0.1, 2, 5], [1e-9, 0.5])
def test_a_time_limit_is_kept_by_the_length_of_the_steps_so_far(clock, monkeypatch, seconds_a_pass, precision):
    """Steps take seconds that nothing can stop: another begins only if it and the certificates end in time."""
    walk = Walker._pass

    def slow(self, player, mode, payoffs):
        clock.now += seconds_a_pass
        return walk(self, player, mode, payoffs)

    monkeypatch.setattr(Walker, "_pass", slow)
    found = solve(configure("liars_dice", num_dice=3, rounds="single"), precision, seconds=60)
    assert clock.now <= 60
    assert found.exploitability <= precision or clock.now > 30 or seconds_a_pass > 2


@pytest.mark.thorough
@pytest.mark.parametrize(("seconds_a_branch", "fits"), [(8, False), (0.1, True)])
def test_a_first_solution_that_takes_too_long_is_given_up(clock, monkeypatch, seconds_a_branch, fits):
    branch = liars_dice_cfr._branch
    monkeypatch.setattr(liars_dice_cfr, "SHARED_FROM", 0)

    def slow(*arguments):
        clock.now += seconds_a_branch
        branch(*arguments)

    monkeypatch.setattr(liars_dice_cfr, "_branch", slow)
    message = "a first solution of a round takes longer than the 60 s left for it"
    with contextlib.nullcontext() if fits else pytest.raises(OutOfTimeError, match=message):
        solve(configure("liars_dice", num_dice=3, rounds="single"), 1e-9, seconds=60)
    assert 20 < clock.now < (60 if fits else 30)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "precision"),
    [({"num_dice": 4}, 1e-2), ({"num_dice": 4}, 2e-3), ({"num_dice": 3, "num_faces": 8}, 1e-2), ({"num_dice": (4, 3)}, 1e-2)],
)
def test_the_memory_that_solving_takes_is_estimated(folder, monkeypatch, options, precision):
    """Within a factor of 1.3, also where a kept round is refined. In smaller games what every solver takes is the most."""
    variant, needed = configure("liars_dice", rounds="single", **options), []
    solve(variant, 1.0)  # compiles
    monkeypatch.setattr(liars_dice_solver, "memory_of", lambda *given: needed.append(memory_of(*given)) or needed[-1])
    for resume in (False, True):
        tracemalloc.start()
        solve(variant, precision, resume=resume)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 1 / 1.3 < peak / needed[-1] < 1.3, (resume, peak, needed)
        precision /= 2


def test_action_values_agree_with_the_certificate():
    """Over all hands, the best first bids win as often as the best response."""
    variant = configure("liars_dice", num_dice=2)
    solution = solve(variant, 1e-6)
    tree = solution.rounds[2, 2].tree
    total = 0.0
    for hand, chance in zip(tree.hands[0], tree.chances[0], strict=True):
        state = position(variant, [np.repeat(range(1, 9), hand).tolist()] * 2)
        values = solution.action_values(state)
        assert values.reached
        assert values.mix.sum() == pytest.approx(1)
        played = values.mix > 1e-6
        assert values.wins[played] == pytest.approx(np.nanmax(values.wins), abs=1e-6)
        total += chance * np.nanmax(values.wins)
    assert total == pytest.approx(solution.upper, abs=1e-9)


@pytest.mark.thorough
def test_action_values_after_a_bid_that_optimal_play_never_makes():
    """Four sixes of four dice: if called, the bid wins only if all are sixes, with the probability of fair dice."""
    variant = configure("liars_dice", num_dice=2)
    solution = solve(variant, 1e-3)
    state = position(variant, [[6, 6], [6, 6]], [3 * 6 + 5])
    values = solution.action_values(state)
    assert values.mix[variant.params.call] == 1
    lost = solution.certificates[1, 2].upper  # probability for the seat, which then starts with one die against two
    won = 1 - solution.certificates[1, 2].lower
    fails = 35 / 36
    assert values.wins[variant.params.call] == pytest.approx(lost + (won - lost) * fails)


def test_progress_is_told_as_soon_as_the_time_is_over(clock):
    told, clock.step = [], 1.0
    tell = throttled(told.append, 3.0)
    for number in range(7):
        tell(types.SimpleNamespace(number=number, finished=False))
    assert len(told) == 2
