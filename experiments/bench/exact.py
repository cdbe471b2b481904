"""The time that exact solutions take."""

from __future__ import annotations

import time
from collections.abc import Iterator

import agents
from dice_envs import configure
from dice_envs.exact.fatestones import draw_hands, solve_all, solve_draws
from dice_envs.exact.liars_dice import exploitability
from dice_envs.exact.liars_dice_walk import Listed, Round, respond
from dice_envs.exact.shakes import Problem, argument_chances, evaluate, solve, tallies
from dice_envs.exact.thirties import Rules
from dice_envs.exact.thirties import solve as solve_thirties
from dice_envs.games.thirties import GOALS
from experiments.bench import BenchRow, Part, best_rate, best_seconds
from experiments.reproduce.thirties import all_rows

__all__ = ["PARTS"]


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
    """The best strategies of all four goals; everything that `reproduce thirties` computes."""
    repeats = 3 if quick else 10

    def best_strategies() -> None:
        solve_thirties.cache_clear()
        for goal in GOALS:
            solve_thirties(Rules(), goal)

    def whole_paper() -> None:
        solve_thirties.cache_clear()
        all_rows()

    goals = best_seconds(best_strategies, repeats)
    yield BenchRow("thirties: best strategies of the four goals, exact", goals, "s", aim=0.2)
    everything = best_seconds(whole_paper, repeats)
    yield BenchRow("thirties: all that `reproduce thirties` computes", everything, "s", aim=0.5)


def _liars_dice(quick: bool) -> Iterator[BenchRow]:
    """Best responses in whole games, and in the largest Liar's Dice of the academic benchmarks."""
    dice = 3 if quick else 5
    variant = configure("liars_dice", num_dice=dice)
    players = [agents.make(f"numbers:bluff={bluff}") for bluff in (0, 0.25, 0.75, 1)]
    found: list[float] = []

    def respond_to_all() -> None:
        found[:] = [50 + 50 * exploitability(variant, player) for player in players]

    seconds = best_seconds(respond_to_all)
    won = " / ".join(f"{share:.1f}" for share in found)
    name = f"liars_dice: best responses to four numbers agents, whole games, {dice} dice each"
    yield BenchRow(name, seconds, "s", None if quick else 5, note=f"they win {won} %")

    faces = 3 if quick else 5
    variant = configure("liars_dice", rules="openspiel", num_dice=2, num_faces=faces)
    played = Round(variant, (2, 2))
    policies = [Listed(played, player) for player in range(2)]
    for policy in policies:
        policy.policy[:] = 0.5  # no policy, but what it takes does not depend on the numbers
    seconds = best_seconds(lambda: [respond(played, player, policy) for player, policy in enumerate(policies)])
    name = f"liars_dice: exploitability of a policy in a list, OpenSpiel's rules, 2 dice of {faces} faces"
    yield BenchRow(name, seconds, "s", None if quick else 1, note=f"{sum(map(played.information_sets, range(2))):,.0f} sets")


PARTS = (
    Part("fatestones", _fatestones),
    Part("liars_dice", _liars_dice),
    Part("shakes", _shakes),
    Part("thirties", _thirties),
)
