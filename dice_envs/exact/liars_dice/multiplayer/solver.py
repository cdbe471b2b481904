"""Solves games of Liar's Dice at a table: round by round, those of few dice first, each for what the smaller ones are worth.

No theorem promises that regret minimisation comes to an equilibrium between three players or more. So every round is certified:
what each player gains by leaving the strategies that are stored, in this round and all that follow, is computed by best
responses. The best strategies found are stored, and a round whose gain has ceased to fall is left as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs.core.files import ABANDONED_AFTER, remove_left_overs
from dice_envs.core.game import Variant
from dice_envs.core.machine import memory_limit
from dice_envs.core.options import check_range
from dice_envs.exact.kept import kept
from dice_envs.exact.liars_dice.multiplayer.cfr import RoundSolver, Walker, size_of
from dice_envs.exact.liars_dice.multiplayer.solution import Certificate, Rest, Solution, SolvedRound, rounds_left
from dice_envs.exact.liars_dice.multiplayer.store import file_of, keep, kept_round, quantised
from dice_envs.exact.liars_dice.seating import Dice, check_rounds, first_tables
from dice_envs.exact.liars_dice.shares import round_at
from dice_envs.exact.liars_dice.solver import LEAST_PRECISION, MOST_KEPT, OutOfTimeError, Progress, StepTimer, told
from dice_envs.exact.liars_dice.store import cache_folder
from dice_envs.games.liars_dice import GAME

__all__ = ["check_in_passing", "numbers_of", "solution_of", "solve", "solved_already"]

FIRST_CHECK, CHECK_AGAIN = 40, 1.3  # iterations before the first certificate; how they grow until the next
STALLED = 6.0  # a round is left when its iterations have grown so many times without a clearly better certificate
CLEARLY = 0.9  # of the gain
MOST_ITERATIONS = 20_000  # of a round
TIGHTER = 0.75  # a round with one die less has this share of the gain that is allowed
LEAST_SECONDS_A_NUMBER = 4e-8  # for one iteration and its certificate; half of a fast core's time
BYTES_A_NUMBER = 28  # of a round that is being solved: regrets, averages, a copy to certify, what is stored
MOST_NODES = 10**9  # of a round; keeps the counts small, and counting fast


def numbers_of(variant: Variant) -> int:
    """Return how many numbers the strategies of a game's rounds have, all together.

    Raises:
        ValueError: a round is too large to be counted.
    """
    for table in first_tables(variant.options):
        if (nodes := float(round_at(variant, table.dice).decisions[:, 0].sum())) > MOST_NODES:
            raise ValueError(
                f"num_dice={variant.options.num_dice!r} for {variant.options.num_players} players makes a round of about "
                f"{nodes:,.0f} public nodes; {MOST_NODES:,} are allowed for a solution"
            )
    return sum(size_of(round_at(variant, dice)) for dice in rounds_left(variant))


def _check_size(variant: Variant, seconds: float) -> None:
    numbers = numbers_of(variant)
    named = f"num_dice={variant.options.num_dice!r} for {variant.options.num_players} players"
    needed, limit = numbers * BYTES_A_NUMBER, memory_limit()
    if needed > limit:
        raise ValueError(
            f"{named} takes {needed / 2**30:,.1f} GiB of memory to solve; {limit / 2**30:,.1f} GiB may be taken here"
        )
    if (least := numbers * LEAST_SECONDS_A_NUMBER) > seconds:
        raise OutOfTimeError(f"{named} takes at least about {least:,.0f} s, and {seconds:.4g} s are given")


MOST_NUMBERS_IN_PASSING = 5_000_000  # of all rounds of a game that is solved for somebody who waits
LEAST_PRECISION_IN_PASSING = 1e-3


def check_in_passing(variant: Variant, precision: float) -> None:
    """Raise ValueError for a solution that takes more than about a minute to find, if it is not in memory."""
    check_rounds(variant.options)
    if solved_already(variant, precision):
        return
    if precision < LEAST_PRECISION_IN_PASSING:
        raise ValueError(
            f"precision must be at least {LEAST_PRECISION_IN_PASSING} where people wait for the solution, not {precision}"
        )
    if (numbers := numbers_of(variant)) > MOST_NUMBERS_IN_PASSING:
        raise ValueError(
            f"num_dice={variant.options.num_dice!r} for {variant.options.num_players} players is solved by finding "
            f"{numbers:,} probabilities; in passing up to {MOST_NUMBERS_IN_PASSING:,}"
        )


# --- one round ------------------------------------------------------------------------------------------------------------


def _solve_round(
    solver: RoundSolver, rest: Rest, wanted: float, deadline: float, report: Callable[[int, float], Any]
) -> SolvedRound:
    """Solve a round until the players gain no more than wanted, it gets no better, or the time is over.

    `deadline` is one of time.monotonic. At least one iteration is made.
    """
    start, check, timer = time.monotonic(), FIRST_CHECK, StepTimer(len(solver.averages))
    lower, since = float("inf"), 0  # the last gain that was clearly lower than before, and its iterations
    best: SolvedRound | None = None
    while True:
        out_of_time = False
        while solver.iterations < check and not out_of_time:
            timer.iterate(solver)
            out_of_time = not timer.leaves(deadline)
        numbers = quantised(solver.layout, solver.averages)
        certificate = rest.certify(Walker(solver.round_, numbers.astype(np.float64)))
        if best is None or certificate.gain < best.certificate.gain:
            best = SolvedRound(solver.round_, numbers, certificate, solver.iterations, time.monotonic() - start)
        if best.certificate.gain < CLEARLY * lower:
            lower, since = best.certificate.gain, solver.iterations
        report(solver.iterations, best.certificate.gain)
        is_done = best.certificate.gain <= wanted or out_of_time
        if is_done or solver.iterations >= min(MOST_ITERATIONS, STALLED * since):
            return best
        check = min(MOST_ITERATIONS, int(solver.iterations * CHECK_AGAIN) + 1)


# --- a game ---------------------------------------------------------------------------------------------------------------


def solve(
    variant: Variant,
    precision: float = 1e-3,
    *,
    seconds: float = float("inf"),
    resume: bool = False,
    folder: Path | None = None,
    done: Callable[[Progress], Any] = lambda progress: None,
) -> Solution:
    """Solve a game at a table, or as much of it as the time allows, with a certificate of the result.

    Each round that is finished is kept in `folder`, unless there is a better one, which is taken.

    Args:
        variant: of Liar's Dice.
        precision: what all seats together may gain by leaving the strategies, each alone, in shares of wins. It may not be
            reached; `Solution.gain` tells.
        seconds: time limit, even if the precision is not reached.
        resume: take the rounds that are kept and precise enough, instead of solving them again.
        folder: None: `cache_folder()`.
        done: progress callback; a width is a gain.

    Raises:
        ValueError: a game not played for a win, a wrong argument, or a game that needs more memory than there is.
        OutOfTimeError: the rounds are too large for the time.
    """
    start = time.monotonic()
    check_rounds(variant.options)
    check_range("precision", precision, LEAST_PRECISION, 1, whole=False)
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, not {seconds!r}")
    _check_size(variant, seconds)
    folder = folder or cache_folder()
    rounds = rounds_left(variant)
    ends = np.cumsum([size_of(round_at(variant, dice)) for dice in rounds])
    known: dict[Dice, Certificate] = {}
    solved: dict[Dice, SolvedRound] = {}
    for place, dice in enumerate(rounds):
        round_, rest, left = round_at(variant, dice), Rest(variant, dice, known), len(rounds) - place - 1
        wanted = precision * TIGHTER ** (sum(variant.options.dice_per_seat) - sum(dice))
        remove_left_overs(file_of(round_, folder).parent, older_than=ABANDONED_AFTER)
        found = kept_round(round_, rest, folder)
        if found is None or not resume or found.certificate.gain > wanted:

            def report(iterations: int, gain: float, dice: Dice = dice, wanted: float = wanted, left: int = left) -> None:
                done(Progress(dice, iterations, gain, wanted, False, left))

            deadline = start + seconds * float(ends[place] / ends[-1])  # rounds share the time by their sizes
            new = _solve_round(RoundSolver(round_, rest.plays), rest, wanted, deadline, report)
            if found is None or new.certificate.gain < found.certificate.gain:
                found = new
                keep(found, folder)
        solved[dice], known[dice] = found, found.certificate
        done(Progress(dice, found.iterations, found.certificate.gain, wanted, True, left))
    return Solution(variant, solved, time.monotonic() - start)


# --- the solution that is kept --------------------------------------------------------------------------------------------


def solution_of(variant: Variant, precision: float) -> Solution:
    """Return the solution that is kept, or solve the game with lines of progress on standard error. Cached.

    Raises:
        ValueError: see `solve`.
    """
    check_rounds(variant.options)
    return _solution(variant.options, precision)


def solved_already(variant: Variant, precision: float) -> bool:
    """Return whether `solution_of` has the solution in memory."""
    return _solution.has(variant.options, precision)


@kept(MOST_KEPT, lambda solution: solution.nbytes)
def _solution(options: Any, precision: float) -> Solution:
    def line_of(progress: Progress) -> str:
        return (
            f"nash: solving {', '.join(map(str, progress.dice))} dice, {progress.iterations} iterations, players gain "
            f"{max(progress.width, 0):.1e} in all; rounds to go: {progress.rounds_left}"
        )

    return solve(Variant(GAME, options), precision, resume=True, done=told(line_of))
