"""Solutions for commands: lines of progress, a table of the rounds, the game's figures, and a plot."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from dice_envs.core.files import NOT_KEPT
from dice_envs.core.game import Variant
from dice_envs.exact.contract import Shown, Solved, SolvedPlot, SolvedTable, Whole, plus_minus
from dice_envs.games.liars_dice.exact.shares import check_measurable
from dice_envs.games.liars_dice.exact.solution import Solution
from dice_envs.games.liars_dice.exact.solver import OutOfTimeError, Progress, solve, throttled
from dice_envs.games.liars_dice.exact.store import CACHE, cache_folder

PRECISION = 1e-4
TABLE_PRECISION = 1e-3  # what all seats together may gain, in shares of wins
MOST_PLOTTED = 40  # rounds of a table; the largest ones
SAY_EVERY = 2.0  # seconds between two lines about a round that is not finished
HATCHES = ("", "//", "..", "xx", "--", "++")  # of the seats' bars, which are told apart without colours, too


def solve_game(
    variant: Variant,
    say: Any,
    report: bool,
    cluster: Any,
    precision: Annotated[
        float | None,
        "Exploitability to reach: what best responses win above the value, for returns of ±1; with more than two players the "
        f"sum of what they win, in shares of wins. [default: {PRECISION:g}, of a table {TABLE_PRECISION:g}]",
    ] = None,
    minutes: Annotated[
        float | None,
        "Stop after that time with the precision reached. Refused if it is too short for a first solution.",
    ] = None,
    threads: Annotated[int, "Threads for large rounds."] = 1,
    resume: Annotated[bool, "Use kept rounds that are precise enough."] = False,
) -> Solved:
    """Optimal play of Liar's Dice between two players, or an equilibrium of more: one round or the whole game of elimination.

    Every round is solved alone, to bounds that exact best responses certify, and kept for the agent `nash`. With --ray the
    rounds are solved on a cluster, with the same result.

    JSON: {"value", "lower", "upper", "exploitability", "nash_conv", "seconds", "rounds": [{"dice", "value", "lower", "upper",
    "iterations", "seconds"}]}. A round's dice are the starter's and the other's, its figures the starter's chance to win it.
    The figures at the top are the starter's expected return of a single round, or its chance to win the game of elimination.
    With three players or more no theorem promises an equilibrium: "gain" says what the seats win by leaving the strategies.

    JSON: {"shares", "best_responses", "gain", "seconds", "rounds": [{"dice", "shares", "best_responses", "gain", "iterations",
    "seconds"}]}. Shares are of wins, by seat; a round's by player, the starter first.

    Example: solve liars_dice -o num_dice=3 --precision 1e-5
    """
    if minutes is not None and not minutes > 0:
        raise ValueError(f"minutes must be above 0, not {minutes}")
    if minutes is not None and cluster is not None:
        raise ValueError("--minutes divides the time between rounds solved one after another: leave out --minutes or --ray")
    at_table = variant.options.num_players > 2
    if at_table and (threads != 1 or cluster is not None):
        raise ValueError("--threads and --ray are for two players: leave them out with num_players above 2")
    if precision is None:
        precision = TABLE_PRECISION if at_table else PRECISION
    seconds = 60 * minutes if minutes else float("inf")
    done = followed(say, ends=True)
    with cluster(threads) if cluster else contextlib.nullcontext() as workers:
        elsewhere = workers and workers.as_done
        try:
            solution = solve(
                variant, precision, seconds=seconds, threads=threads, resume=resume, done=done, elsewhere=elsewhere
            )
        except OutOfTimeError as problem:
            raise ValueError(f"--minutes {minutes} is too short: {problem}") from None
    shown: list[Shown] = [_table(solution), *(_of_two(solution) if not at_table else _of_a_table(solution))]
    if solution.gain > precision:
        wanted = f"an exploitability of {precision:.1e}"
        if at_table:
            wanted = f"a gain of {precision:.1e} in all: no theorem promises it for three players and more"
        shown.append((("not reached: ", "yellow"), wanted))
    if CACHE not in NOT_KEPT:
        shown.append(Whole(f"kept in {cache_folder()}"))
    return Solved(shown, solution.as_dict(), _plot(solution) if report else None)


def equilibrium(variant: Variant, precision: float, say: Callable[[str], Any]) -> Solution:
    """Return optimal play between two players, the kept one if it is precise enough. See `GameExact.equilibrium`."""
    check_measurable(variant, "distilling, which measures the network,")
    return solve(variant, precision, resume=True, done=followed(say, ends=True))


def followed(say: Callable[[str], Any], ends: bool = False) -> Callable[[Progress], None]:
    """Return a progress callback of `solve` that says a line now and then, and with `ends` each end of a round."""
    return throttled(lambda progress: say(line_of(progress)), SAY_EVERY, ends)


def line_of(progress: Progress) -> str:
    """Return the solver's progress in words."""
    left = f"; {progress.rounds_left} to go" if progress.rounds_left else ""
    state, width = "done, " if progress.finished else "", f"{max(progress.width, 0):.1e}"
    if len(progress.dice) == 2 and progress.iterations == 0:
        how = f"bounds {width} apart by a linear programme"
    elif len(progress.dice) == 2:
        how = f"bounds {width} apart after {progress.iterations:,} iterations"
    else:
        how = f"the players gain {width} in all after {progress.iterations:,} iterations"
    return f"  {_named(progress.dice)} dice: {state}{how}{left}"


def _named(dice: Sequence[int]) -> str:
    return " v ".join(map(str, dice))


def _percent(shares: np.ndarray) -> str:
    return " / ".join(plus_minus(share, None, percent=True) for share in shares)


def _table(solution: Solution) -> SolvedTable:
    """Return a table of all rounds, with the starter's chances for two players and everyone's shares for more."""
    single, of_two = solution.variant.options.rounds == "single", solution.variant.options.num_players == 2
    headings, last = ["dice of the starter v other", "wins the round", "between", "and"], [] if single else ["wins the game"]
    if not of_two:
        won = "share of the win of each, %" if single else "% of games that each wins from here"
        headings, last = ["dice, the starter's first", won, "gain by best responses, % each"], []
    rows = []
    for dice, each in sorted(solution.rounds.items()) if of_two else solution.rounds.items():
        found = each.certificate
        figures = [_percent(found.plays), _percent(found.responds - found.plays)]
        if of_two:
            figures = [f"{chance:.7f}" for chance in (found.value, found.lower, found.upper)]
        made = [f"{each.iterations:,}" if each.iterations else "exact", f"{each.seconds:.1f}"]
        rows.append([_named(dice), *figures, *made, *(f"{solution.certificates[dice].value:.7f}" for _ in last)])
    return SolvedTable("", [*headings, "iterations", "seconds", *last], rows, (0, len(headings), len(headings) + 1))


def _of_two(solution: Solution) -> list[str]:
    single = solution.variant.options.rounds == "single"
    what = "the starter's expected return" if single else "the starter's chance to win the game"
    gained = f"exploitability {max(solution.exploitability, 0):.2e}, NashConv {max(solution.nash_conv, 0):.2e}"
    return [
        f"{what}: {solution.value:.9f}, between {solution.lower:.9f} and {solution.upper:.9f}",
        f"{gained}, {solution.seconds:.1f} s",
    ]


def _of_a_table(solution: Solution) -> list[str]:
    single = solution.variant.options.rounds == "single"
    what = "has this share of the win, which all who lose no die share" if single else "wins"
    return [
        f"each seat {what}, % (mean over those who may start): {_percent(solution.plays)}",
        f"by leaving the strategies alone the seats gain {_percent(solution.responds - solution.plays)} %, "
        f"{max(solution.gain, 0):.2e} in all; {solution.seconds:.1f} s",
    ]


def _plot(solution: Solution) -> SolvedPlot:
    """Plot the shares of each round as bars, one on another, the starter's first."""
    rounds = list(solution.rounds)[-MOST_PLOTTED:]
    what = "share of the win, %" if solution.variant.options.rounds == "single" else "% of games won"
    shares = np.zeros((len(rounds), max(map(len, rounds))))
    for row, dice in zip(shares, rounds, strict=True):
        row[: len(dice)] = 100 * solution.certificates[dice].plays

    def draw(axes: Any) -> None:
        for player, share in enumerate(shares.T):
            left = shares[:, :player].sum(axis=1)
            label, hatch = f"{player} after it" if player else "starter", HATCHES[player]
            axes.barh(range(len(rounds)), share, left=left, label=label, hatch=hatch, edgecolor="white")
        axes.set_yticks(range(len(rounds)), map(_named, rounds))
        axes.set_xlabel(what)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=shares.shape[1])

    caption = f"{what} by each player when all play the solution, by the dice of those left, the starter's first."
    return SolvedPlot("liars_dice_shares", caption, draw, (8, 1.5 + 0.3 * len(rounds)))
