"""Times of exact solutions, and of values of choices: many states in one call, beside calls with one state."""

from __future__ import annotations

import functools
import itertools
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import Agent, Batch, Turn, Variant, action_values, agents, configure, response_values
from dice_envs.agents.ppo import Likeliest, NetworkPolicy
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.exact import Effort, asked
from dice_envs.exact.fatestones.draws import draw_hands, solve_all, solve_draws
from dice_envs.exact.liars_dice import response_values as liars_dice_values
from dice_envs.exact.liars_dice.cfr import RoundSolver
from dice_envs.exact.liars_dice.measures import exploitability, measure
from dice_envs.exact.liars_dice.shares import information_sets
from dice_envs.exact.liars_dice.solution import RoundStrategy
from dice_envs.exact.liars_dice.solver import solve as solve_liars_dice
from dice_envs.exact.liars_dice.tree import Tree
from dice_envs.exact.liars_dice.values import Values, forget_values
from dice_envs.exact.liars_dice.walk import Party, Walk
from dice_envs.exact.shakes.chances import Problem, argument_chances, tallies
from dice_envs.exact.shakes.policies import evaluate, solve
from dice_envs.exact.thirties import Rules, forget_solutions, throws
from dice_envs.exact.thirties import solve as solve_thirties
from dice_envs.experiments.bench import BenchPart, BenchRow, beside_openspiel, best_rate, best_seconds
from dice_envs.experiments.reproduce.thirties import all_rows
from dice_envs.games.thirties import GOALS


def _fatestones(quick: bool) -> Iterator[BenchRow]:
    variant = configure("fatestones")
    if quick:
        hands = draw_hands(variant, 5000, 1)
        yield BenchRow("FateStones: draws solved", best_rate(lambda: solve_draws(hands), len(hands)), "/s")
        return
    start = time.perf_counter()
    draws = solve_all(variant)
    seconds = time.perf_counter() - start
    note = (
        f"best response {draws.best_response:.6f}, Nash {draws.nash:.6f} a draw against random; "
        f"at most {draws.gap:.0e} left to be won from Nash"
    )
    yield BenchRow(f"FateStones: all {draws.draws:,} draws solved", seconds, "s", note=note)


def _shakes(quick: bool) -> Iterator[BenchRow]:
    problem = Problem.of(configure("shakes", num_players=6).options)

    def afresh() -> None:
        tallies.cache_clear()
        solve.cache_clear()
        solve(problem, "saved")

    yield BenchRow("shakes: six players solved", best_seconds(afresh), "s", 120, note="Bayes-optimal, tallies found anew")
    seconds = best_seconds(lambda: evaluate(problem, argument_chances))
    yield BenchRow("shakes: six players, exact distribution of the argument", seconds, "s")


def _thirties(quick: bool) -> Iterator[BenchRow]:
    """Time the best strategies of all four goals, and every figure of the paper."""
    repeats = 3 if quick else 10

    def best_strategies() -> None:
        forget_solutions()
        for goal in GOALS:
            solve_thirties(Rules(), goal)

    def whole_paper() -> None:
        forget_solutions()
        all_rows()

    goals = best_seconds(best_strategies, repeats)
    yield BenchRow("thirties: best strategies of the four goals, exact", goals, "s", aim=0.2)
    everything = best_seconds(whole_paper, repeats)
    yield BenchRow("thirties: every figure of the paper", everything, "s", aim=0.5)


def _liars_dice(quick: bool) -> Iterator[BenchRow]:
    """Time an iteration beside OpenSpiel's, an iteration of the largest round, and whole games to a certified precision."""
    solver = RoundSolver(Tree(configure("liars_dice", rules="openspiel", num_dice=1), (1, 1)))
    ours = best_seconds(lambda: solver.iterate(100)) / 100
    name = "Liar's Dice, OpenSpiel's rules, one die each: an iteration"
    yield beside_openspiel(name, ours, "s", _openspiel_iteration, "OpenSpiel C++ CFR+", 1 / 200)
    most = 3 if quick else 5
    largest = RoundSolver(Tree(configure("liars_dice", num_dice=most), (most, most)))
    seconds = best_seconds(lambda: largest.iterate(10)) / 10
    yield BenchRow(f"Liar's Dice, {most} v {most} dice: an iteration", seconds, "s", None if quick else 0.35)
    variant = configure("liars_dice", num_dice=most)
    aims = {(1e-3, 1): 180, (1e-4, 1): 480, (1e-3, 2): 108, (1e-4, 2): 288}
    for (precision, threads), aim in list(aims.items())[: 1 if quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            solution = solve_liars_dice(variant, precision, threads=threads, folder=Path(folder))
        yield BenchRow(
            f"Liar's Dice, whole game of {most} dice to {precision:g}, {threads} thread{'s' * (threads > 1)}",
            solution.seconds,
            "s",
            None if quick else aim,
            note=f"off by {solution.exploitability:.1e} at most, V = {solution.value:.6f}",
        )


def _openspiel_iteration(pyspiel: Any) -> float:
    solver = pyspiel.CFRPlusSolver(pyspiel.load_game("liars_dice(players=2,numdice=1,dice_sides=6)"))
    return best_seconds(solver.evaluate_and_update_policy)


def _liars_dice_responses(quick: bool) -> Iterator[BenchRow]:
    """Time best responses in whole games, and in the largest Liar's Dice of the academic benchmarks."""
    dice = 3 if quick else 5
    variant = configure("liars_dice", num_dice=dice)
    players = [agents.make(f"numbers:bluff={bluff}") for bluff in (0, 0.25, 0.75, 1)]
    found: list[float] = []

    def respond_to_all() -> None:
        found[:] = [50 + 50 * exploitability(variant, player) for player in players]

    seconds = best_seconds(respond_to_all)
    won = " / ".join(f"{share:.1f}" for share in found)
    name = f"Liar's Dice: best responses to four numbers agents, whole games, {dice} dice each"
    yield BenchRow(name, seconds, "s", None if quick else 5, note=f"they win {won} %")

    faces = 3 if quick else 5
    variant = configure("liars_dice", rules="openspiel", num_dice=2, num_faces=faces)
    tree = Tree(variant, (2, 2))
    policy = RoundStrategy(tree, np.ones(tree.kinds.size[0], np.float32))
    parties = [Party((player,), np.eye(2)[1 - player]) for player in range(2)]
    seconds = best_seconds(lambda: [Walk(tree, [policy, policy], [party]).values() for party in parties])
    name = f"Liar's Dice: exploitability of a policy in a list, OpenSpiel's rules, 2 dice of {faces} faces"
    yield BenchRow(name, seconds, "s", None if quick else 1, note=f"{sum(map(tree.information_sets, range(2))):,.0f} sets")


def _liars_dice_tables(quick: bool) -> Iterator[BenchRow]:
    """Time deviation gains at tables of three and four."""
    dice = 2 if quick else 3
    tables = [(3, dice, 20), (4, 2, 10)]
    for seats, number, aim in tables:
        variant = configure("liars_dice", num_players=seats, num_dice=number)
        name = f"Liar's Dice: deviation gain of numbers:bluff=0.25, whole games, {seats} players with {number} dice each"
        yield _gain(name, variant, agents.make("numbers:bluff=0.25"), None if quick else aim)
    variant = configure("liars_dice", num_players=3, num_dice=dice, past_rounds=False)
    network = _untrained(variant)
    name = f"Liar's Dice: deviation gain of a network's likeliest action, 3 players with {dice} dice each"
    yield _gain(name, variant, Likeliest(network), None if quick else 120)


def _liars_dice_networks(quick: bool) -> Iterator[BenchRow]:
    """Time the measure of a network that draws its actions and comes to every information set."""
    dice = 3 if quick else 5
    variant = configure("liars_dice", num_dice=dice)
    network = _untrained(variant)
    exploitability(configure("liars_dice", num_dice=2), _untrained(configure("liars_dice", num_dice=2)))  # compiles
    start = time.perf_counter()
    found = exploitability(variant, network)
    seconds = time.perf_counter() - start
    sets = information_sets(variant, [0])
    name = f"Liar's Dice: exploitability of an untrained network, whole games, {dice} dice each"
    note = f"{sets:,.0f} sets, {1e6 * seconds / sets:.2f} µs each; exploitability {found:.6f}"
    yield BenchRow(name, seconds, "s", None if quick else 240, note=note)


def _positions(variant: Variant, player: Agent, games: int) -> np.ndarray:
    """Return the positions of games of a player against itself."""
    batch, streams, found = Batch(variant, games, 1), new_streams(2, games), []
    while len(going := np.flatnonzero(batch.states["seat"] != OVER)):
        found.append(batch.states[going])
        own = streams[going]
        batch.play(player.act(Turn(variant, batch.states, going, own)), going)
        streams[going] = own
    return np.concatenate(found)


def _liars_dice_values(quick: bool) -> Iterator[BenchRow]:
    """Time values against the solution: the table, then decisions a second, beside `action_values` one by one."""
    for dice, aim in ((3, 300_000),) if quick else ((3, 300_000), (5, 50_000)):
        variant = configure("liars_dice", num_dice=dice)
        nash = agents.make("nash")
        states = _positions(variant, nash, 2_000)
        some = states[np.linspace(0, len(states) - 1, 20).astype(np.int64)]
        opponent = asked(nash, variant)

        def build(variant: Variant = variant, opponent: Any = opponent) -> Values:
            forget_values()
            return liars_dice_values(variant, opponent)

        seconds = best_seconds(build, 1 if quick else 3)
        values = build()
        note = f"{values.bytes / 1e6:,.1f} MB"
        yield BenchRow(f"Liar's Dice, {dice} dice: all values against nash", seconds, "s", 0.5 if dice == 3 else 15, note=note)
        rate = best_rate(functools.partial(values.action_values, states), len(states))

        def one_by_one(variant: Variant = variant, some: np.ndarray = some) -> None:
            for state in some:
                action_values(variant, state)

        peer = best_rate(one_by_one, len(some), 1)
        name = f"Liar's Dice, {dice} dice: decisions valued against nash"
        yield BenchRow(
            name, rate, "/s", aim, peer, "action_values, one at a time", f"{len(states):,} positions of its own play"
        )


def _untrained(variant: Variant) -> NetworkPolicy:
    """Return a network with two hidden layers of 128 and random weights."""
    sizes = (variant.facts.observation_size, 128, 128, variant.facts.num_actions)
    rng = np.random.default_rng(1)
    layers = [(rng.normal(0, below**-0.5, (above, below)), np.zeros(above)) for below, above in itertools.pairwise(sizes)]
    return NetworkPolicy("liars_dice", variant.changed_options(), [(w.astype("f4"), b.astype("f4")) for w, b in layers])


def _gain(name: str, variant: Variant, agent: Any, aim: float | None) -> BenchRow:
    start = time.perf_counter()
    gain = measure(variant, asked(agent, variant), Effort())[0]
    return BenchRow(name, time.perf_counter() - start, "s", aim, note=f"{gain.value:.4f} of wins; {gain.note}")


def _against_fractions(quick: bool) -> Iterator[BenchRow]:
    """Time the strategy `maximize` in integers over all throws at once, and by the textbook recursion in fractions."""

    def by_fractions() -> Fraction:
        expected = [Fraction(0)]
        for dice in range(1, 7):
            total = Fraction(0)
            for throw, ways in throws(dice, 6):
                total += ways * max(sum(throw[again:]) + expected[again] for again in range(dice))
            expected.append(total / 6**dice)
        return expected[-1]

    value = solve_thirties(Rules(), "maximize")[1]
    if by_fractions() != value:
        raise ValueError("the peer's value differs from ours")
    repeats = 3 if quick else 10

    def afresh() -> None:
        forget_solutions()
        solve_thirties(Rules(), "maximize")

    ours = best_seconds(afresh, repeats)
    peer = best_seconds(by_fractions, repeats)
    note = "ours does it for every number of pips aside; the peer for none"
    yield BenchRow("thirties: maximize, exact", ours, "s", peer=peer, peer_name="recursion in fractions", note=note)


# By game: the options, and the opponent (None: the player has all seats).
_CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "fatestones": ({}, "nash"),
    "score_dice": ({}, "nash"),
    "shakes": ({}, None),
    "thirties": ({"num_players": 1}, None),
}


def _choices(game: str, quick: bool) -> Iterator[BenchRow]:
    """Time the values of choices in random games."""
    options, opponent = _CASES[game]
    variant = configure(game, **options)
    values = response_values(variant, opponent)
    batch = Batch(variant, 2_000 if quick else 20_000, seed=1)
    mask = np.zeros(variant.facts.num_actions, np.int8)
    variant.kernels.wander(variant.params, batch.states, np.arange(batch.num_games), mask)
    states = batch.states[batch.seats != OVER]
    ours = best_rate(lambda: values.action_values(states), len(states))
    peer = best_rate(lambda: [action_values(variant, state) for state in states[:200]], 200)
    name = f"{game}: values of choices against {opponent}" if opponent else f"{game}: values of choices"
    yield BenchRow(name, ours, "/s", 300_000, peer, "one state a call")


PARTS = (
    BenchPart("fatestones", _fatestones),
    BenchPart("liars_dice", _liars_dice),
    BenchPart("liars_dice", _liars_dice_responses),
    BenchPart("liars_dice", _liars_dice_tables),
    BenchPart("liars_dice", _liars_dice_networks),
    BenchPart("liars_dice", _liars_dice_values),
    BenchPart("shakes", _shakes),
    BenchPart("thirties", _thirties),
    BenchPart("thirties", _against_fractions),
    *(BenchPart(game, functools.partial(_choices, game)) for game in _CASES),
)
