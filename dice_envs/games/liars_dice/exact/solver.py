"""Solves games of Liar's Dice round by round: plans how precise each has to be, solves, certifies and keeps the rounds.

Between two players each round is solved alone. At larger tables a round is solved for what the smaller ones are worth. No
theorem promises that regret minimisation comes to an equilibrium between three players or more. So what each player gains by
leaving the strategies that are stored, in a round and all that follow, is computed by best responses. The best strategies
found are stored, and a round whose gain has ceased to fall is left as it is.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dice_envs.core.files import ABANDONED_AFTER, remove_left_overs
from dice_envs.core.game import Variant
from dice_envs.core.machine import check_threads, memory_limit
from dice_envs.core.options import check_range
from dice_envs.core.work import TooLong, clock, is_heard, limits, needs, say
from dice_envs.exact.contract import LEAST_PRECISION
from dice_envs.exact.kept import kept
from dice_envs.games.liars_dice import GAME
from dice_envs.games.liars_dice.exact.cfr import OF_TWO, SHARED_FROM, RoundSolver, Walker, memory_of, quantised
from dice_envs.games.liars_dice.exact.programme import MOST_NUMBERS, solve_exactly
from dice_envs.games.liars_dice.exact.seating import (
    Certificate,
    Dice,
    check_rounds,
    first_tables,
    gain_of_game,
    rest_of,
    rounds_of,
)
from dice_envs.games.liars_dice.exact.shares import MOST_INFORMATION_SETS, information_sets, round_at
from dice_envs.games.liars_dice.exact.solution import Solution, SolvedRound, rounds_left
from dice_envs.games.liars_dice.exact.store import cache_folder, file_of, has_older, keep, read_kept
from dice_envs.games.liars_dice.exact.tree import Tree

FIRST_CHECK, CHECK_AGAIN = 40, 1.5  # iterations before the first certificate; the most that they grow until the next
GUESS = 0.55  # assumed chance of the starter to win a round, when the precision of each round is planned
LEAST_SHARE = 0.02  # of the time, for each round
# Seconds for each public node: one iteration, its certificate and its file. Half of a fast core's time, which is 5e-7 with
# four faces and 1e-6 with eight.
LEAST_SECONDS_A_NODE = 4e-7
MOST_KEPT = 2**30  # bytes of solutions that stay in memory; the last one stays whatever its size
# At tables of three and more:
TABLE_CHECK_AGAIN = 1.3
STALLED = 6.0  # stop a round once its iterations have grown by this factor without a clearly better certificate
CLEARLY = 0.9  # a certificate is clearly better below this share of the last one's gain
MOST_ITERATIONS = 20_000  # of a round
TIGHTER = 0.75  # a round with one die less has this share of the gain that is allowed
STEPS_TO_END = 2  # iterations that take as long as the last certificate of a round
BYTES_WRITTEN = 20e6  # of strategies, packed and kept in a second


class Progress(NamedTuple):
    """Progress of a solver."""

    dice: tuple[int, ...]  # of the current round, its starter first
    iterations: int  # made in the round
    width: float  # of the round's bounds
    finished: bool  # whether the round is done for now
    rounds_left: int  # how many other rounds are not


def throttled(tell: Callable[[Any], Any], seconds: float, ends: bool = False) -> Callable[[Any], None]:
    """Return `tell` as a callback that passes on at most one call in `seconds`, and with `ends` each end of a round."""
    last = clock()

    def call(progress: Any) -> None:
        nonlocal last
        if (ends and progress.finished) or clock() - last >= seconds:
            last = clock()
            tell(progress)

    return call


# --- one round ----------------------------------------------------------------------------------------------------

# Calls a function with each tuple of arguments, somewhere; yields the number of each call and its result, as they are done.
Elsewhere: TypeAlias = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterable[tuple[int, Any]]]


class _Job:
    """A round on its way to a solution. This class solves a round of two players, which needs no other round.

    Attributes:
        tree: of the round.
        path: of its file.
        size: numbers of its strategies.
        threads: that walk it at once.
        least_seconds: that a first solution takes.
        wanted: how far from an equilibrium it may be.
        is_exact: whether a linear programme solves the round.
        widths: all that were wanted so far.
        solved: the solution so far.
    """

    def __init__(self, variant: Variant, dice: Dice, folder: Path, threads: int = 1, resume: bool = False) -> None:
        self.tree = tree = Tree(variant, dice)
        self.path, self.size = file_of(tree, folder), int(tree.kinds.size[0])
        self.threads = threads if self.size >= SHARED_FROM else 1
        self.is_exact = variant.options.num_players == 2 and self.size <= MOST_NUMBERS
        self.least_seconds = tree.nodes * LEAST_SECONDS_A_NODE / self.threads
        self.wanted = 1.0
        self.widths: list[float] = []
        self.solved: SolvedRound | None = None
        self._longest, self._writing = 0.0, 2 * self.size / BYTES_WRITTEN  # seconds: of an iteration so far, of the file
        self._rest: tuple[np.ndarray, ...] = OF_TWO, OF_TWO
        self._resume = resume
        self._solver: RoundSolver | None = None
        self._seconds = 0.0

    @property
    def is_done(self) -> bool:
        return self.width <= self.wanted

    @property
    def iterations(self) -> int:
        """Return the number made for the solution so far."""
        return 0 if self.solved is None else self.solved.iterations

    @property
    def width(self) -> float:
        """Return how far the solution so far is from an equilibrium."""
        return float("inf") if self.solved is None else self.solved.certificate.gain

    def leaves(self, end: float) -> bool:
        """Return whether another iteration, the certificates and the file would be done by then, one of `clock`.

        A step cannot be stopped, and may take a minute.
        """
        return clock() + (1 + STEPS_TO_END) * self._longest + self._writing < end

    def _iterate(self, solver: RoundSolver, until: int, deadline: float) -> bool:
        """Iterate until so many iterations are made in all; return whether the time ends before."""
        while solver.iterations < until:
            start = clock()
            solver.iterate(1)
            self._longest = max(self._longest, clock() - start)
            solver.look = lambda: None  # the first is done
            if not self.leaves(deadline):
                return True
        return False

    def _limit(self, end: float) -> Callable[[], None]:
        """Return a function that raises OutOfTimeError where a first iteration leaves too little of the time from now on."""
        start = clock()

        def look() -> None:
            if (clock() - start) * (1 + STEPS_TO_END) > end - self._writing - start:
                raise OutOfTimeError(f"a first solution of a round takes longer than the {end - start:.4g} s left for it")

        return look

    def begin(self, known: Mapping[Dice, SolvedRound]) -> None:
        """Prepare for the work, with the rounds before. With `resume` the solution so far is that of the round's file."""
        if self._resume:
            self.solved = self.read()
            self.widths = list(self.solved.widths) if self.solved else []

    def certified(self, numbers: np.ndarray, iterations: int, seconds: float, widths: Iterable[float] = ()) -> SolvedRound:
        """Return a solution with its certificate."""
        certificate = Walker(self.tree, numbers, self.threads).certify(*self._rest)
        return SolvedRound(self.tree, numbers, certificate, iterations, seconds, tuple(widths))

    def read(self) -> SolvedRound | None:
        """Return the round from its file, certified again; None if there is no file, or it is damaged."""
        if has_older(self.path):
            say(f"{' v '.join(map(str, self.tree.dice))} dice: strategies of an earlier version do not fit: solved again")
        if (kept := read_kept(self.path, self.size)) is None:
            return None
        solved = self.certified(kept["numbers"], kept["iterations"], kept["seconds"])
        widths = tuple(width for width in kept["widths"] if width >= solved.certificate.gain)
        return dataclasses.replace(solved, widths=widths)

    def settle(self, before: float) -> None:
        """Keep the solution in the round's file, unless that has a better one. If its bounds are wider than `before`, time was
        over too soon: take the kept one."""
        found = self.solved
        assert found is not None
        if before < self.width:
            self.solved = self.read() or found
        else:
            keep(self.path, found)

    def work(self, deadline: float, report: Callable[[int, float], Any], end: float = float("inf")) -> None:
        """Solve the round until it is as precise as wanted, or the time is over. `deadline` is one of `clock`.

        A round from a file is solved anew. Replays the widths wanted before, so that a resumed run is identical. The
        strategies so far are dropped, to have their memory; the caller has them in a file.

        Raises OutOfTimeError where there is no solution yet, and it will clearly take longer than up to `end`.
        """
        start, is_first, self.solved = clock(), self.solved is None, None
        if self.is_exact:
            numbers = solve_exactly(self.tree)
            self.solved = self.certified(numbers, 0, clock() - start)
            return
        self.widths.append(self.wanted)
        replayed = self.widths[-1:]
        if self._solver is None:
            self._solver, replayed = RoundSolver(self.tree, self.threads, self._rest[0]), self.widths
            if is_first:
                self._solver.look = self._limit(end)
        for width in replayed:
            self.wanted = width
            self._approach(self._solver, deadline, report)

    def _approach(self, solver: RoundSolver, deadline: float, report: Callable[[int, float], Any]) -> None:
        start, before = clock(), self._seconds
        check = solver.iterations + FIRST_CHECK
        while check > solver.iterations:
            out_of_time = self._iterate(solver, check, deadline)
            self._seconds = before + clock() - start
            width = self._judge(solver, out_of_time)
            report(solver.iterations, width)
            if self.is_done or out_of_time:
                return
            check = self._next_check(solver.iterations, width)

    def _judge(self, solver: RoundSolver, is_last: bool) -> float:
        """Return how far the strategies are from an equilibrium; keep them if that is near enough, or if this is the last look.

        They are kept in two bytes a number, unless their bounds are then wider than wanted. Else they are the solver's own,
        which change when it goes on: see `work`.
        """
        width = float("inf") if is_last else float(solver.responds().sum()) - 1
        if width > self.wanted and not is_last:
            return width
        for make in (lambda: quantised(self.tree, solver.averages), lambda: solver.averages):
            self.solved = None  # frees the strategies before
            self.solved = self.certified(make(), solver.iterations, self._seconds, self.widths)
            if self.is_done or width > self.wanted:
                break
        return self.width

    def _next_check(self, made: int, width: float) -> int:
        """Return at how many iterations to look again; those made where more are of no use."""
        # The width falls about with the square of the iterations.
        return int(made * min(CHECK_AGAIN, max(1.05, (width / self.wanted) ** 0.5))) + 1


class _TableJob(_Job):
    """A round at a table of three or more, which is solved for what the smaller ones are worth, until it gets no better."""

    _lower, _since = float("inf"), 0  # the last gain that was clearly lower than before, and its iterations

    def begin(self, known: Mapping[Dice, SolvedRound]) -> None:
        parts = ({dice: each.certificate[part] for dice, each in known.items()} for part in range(2))
        self._rest = tuple(rest_of(self.tree.variant.options, self.tree.dice, part) for part in parts)
        super().begin(known)

    def _judge(self, solver: RoundSolver, is_last: bool) -> float:
        found = self.certified(quantised(self.tree, solver.averages), solver.iterations, self._seconds)
        if found.certificate.gain < self.width:
            self.solved = found
        if self.width < CLEARLY * self._lower:
            self._lower, self._since = self.width, solver.iterations
        return self.width

    def _next_check(self, made: int, width: float) -> int:
        if made >= min(MOST_ITERATIONS, STALLED * self._since):
            return made
        return min(MOST_ITERATIONS, int(made * TABLE_CHECK_AGAIN) + 1)


def solve_round(variant: Variant, dice: Dice, widths: Sequence[float], threads: int) -> tuple[np.ndarray, int, float]:
    """Solve one round, to bounds of the first width, then of the next, and so on: the result depends on all of them.

    Returns:
        The numbers, iterations and seconds of a `SolvedRound`.
    """
    job = _Job(variant, dice, cache_folder(), threads)
    for width in widths:
        job.wanted = width
        if not job.is_done:
            job.work(float("inf"), lambda iterations, reached: None)
    assert job.solved is not None
    return job.solved.numbers, job.solved.iterations, job.solved.seconds


# --- the plan -----------------------------------------------------------------------------------------------------


class OutOfTimeError(ValueError):
    """A game has rounds that cannot be solved in the time that was given."""


def _check_memory(variant: Variant, trees: Iterable[Tree], threads: int) -> None:
    needed, limit = memory_of(trees, threads), memory_limit()
    if needed > limit:
        raise ValueError(
            f"num_dice={variant.options.num_dice!r} with num_faces={variant.options.num_faces} for "
            f"{variant.options.num_players} players takes at least {needed / 2**30:,.1f} GiB of memory to solve; "
            f"{limit / 2**30:,.1f} GiB may be taken here"
        )


def _shares(variant: Variant, jobs: Mapping[Dice, _Job], precision: float) -> dict[Dice, float]:
    """Return how narrow the bounds of each round have to be for the whole game to be as precise as asked.

    A round's share of the whole grows with the time that an iteration of it takes. How much the whole depends on a
    round is estimated from rounds that are won with chance GUESS.
    """
    guess = np.array([GUESS, 1 - GUESS])
    guessed = {dice: Certificate(guess, guess) for dice in jobs}
    base = gain_of_game(variant.options, guessed)
    slopes = {}
    for dice in jobs:
        wider = {**guessed, dice: Certificate(guess, guess + 0.005)}
        slopes[dice] = max((gain_of_game(variant.options, wider) - base) / 0.01, 1e-6)
    costs = {dice: 0.0 if job.is_exact else float(job.size) ** (2 / 3) for dice, job in jobs.items()}
    total = sum(costs.values()) or 1.0
    exact = max(LEAST_PRECISION, precision * 1e-3)
    return {dice: min(0.05, costs[dice] / total * precision / slopes[dice]) or exact for dice in jobs}


def _plan(variant: Variant, precision: float, threads: int, folder: Path, resume: bool, seconds: float) -> Mapping[Dice, _Job]:
    """Return a job for each round, those of few dice first, with what it has to reach.

    Raises:
        ValueError: the rounds need more memory than there is.
        OutOfTimeError: they clearly take longer than `seconds`.
    """
    for_two = variant.options.num_players == 2
    if not for_two:  # the first round alone may be too large, and there may be very many rounds
        _check_memory(variant, [Tree(variant, first_tables(variant.options)[0].dice)], 1)
    if not resume:
        nodes = sum(round_at(variant, dice).nodes for dice in rounds_left(variant))
        least = nodes * LEAST_SECONDS_A_NODE / threads
        if least > seconds:
            raise OutOfTimeError(
                f"num_dice={variant.options.num_dice!r} with num_faces={variant.options.num_faces} makes rounds of "
                f"{nodes:,.0f} public nodes in all; a first solution takes at least about {least:,.0f} s, "
                f"and {seconds:.4g} s are given"
            )
    make = _Job if for_two else _TableJob
    jobs = {dice: make(variant, dice, folder, threads, resume) for dice in rounds_left(variant)}
    _check_memory(variant, [job.tree for job in jobs.values()], max(job.threads for job in jobs.values()))
    wanted = _shares(variant, jobs, precision) if for_two else {}
    dealt = sum(variant.options.dice_per_seat)
    for dice, job in jobs.items():
        job.wanted = wanted[dice] if for_two else precision * TIGHTER ** (dealt - sum(dice))
    return jobs


# --- a game -------------------------------------------------------------------------------------------------------


def solve(
    variant: Variant,
    precision: float = 1e-4,
    *,
    seconds: float = float("inf"),
    threads: int = 1,
    resume: bool = False,
    folder: Path | None = None,
    done: Callable[[Progress], Any] = lambda progress: None,
    elsewhere: Elsewhere | None = None,
) -> Solution:
    """Solve a game, or as much of it as the time allows, with a certificate of the result.

    Each round that is finished is kept in `folder`, unless there is a better one.

    Args:
        variant: of Liar's Dice.
        precision: what all seats together may gain by leaving the strategies, each alone, in shares of wins; of two players,
            that is the exploitability for returns of ±1. With more it may not be reached: `Solution.gain` tells.
        seconds: time limit, even if the precision is not reached. A round that cannot be done by then does not begin.
        threads: how many walk a large round of two players at once.
        resume: take the rounds that are kept and precise enough, instead of solving them again.
        folder: None: `cache_folder()`.
        done: progress callback.
        elsewhere: solves the rounds of two players, several at once, with the same result. None: one after another, here.

    Raises:
        ValueError: a game not played for a win, a wrong argument, or a game that needs more memory than there is.
        OutOfTimeError: the rounds are too large for the time. Those that are finished are kept.
    """
    start = clock()
    check_rounds(variant.options)
    check_range("precision", precision, LEAST_PRECISION, 1, whole=False)
    usable = check_threads(threads)
    threads = usable if elsewhere is None else threads
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, not {seconds!r}")
    if elsewhere is not None and seconds != float("inf"):
        raise ValueError("seconds can limit rounds that are solved one after another only, not elsewhere")
    if variant.options.num_players > 2 and (threads != 1 or elsewhere is not None):
        raise ValueError("threads and workers elsewhere are for two players: leave them out with num_players above 2")
    jobs = _plan(variant, precision, threads, folder or cache_folder(), resume, seconds)
    for rules in {job.path.parent for job in jobs.values()}:
        remove_left_overs(rules, older_than=ABANDONED_AFTER)
    work = _Work(variant, jobs, done, start, seconds)
    solve_all = work.solve_here if elsewhere is None else functools.partial(work.solve_elsewhere, elsewhere)
    solve_all(list(jobs))
    while variant.options.num_players == 2 and (worst := work.worst(precision)) is not None:
        solve_all([worst])
    return Solution(variant, {dice: job.solved for dice, job in jobs.items() if job.solved}, clock() - start)


@dataclasses.dataclass
class _Work:
    """The rounds of a game on their way to a solution. The arguments are those of `solve`."""

    variant: Variant
    jobs: Mapping[Dice, Any]
    done: Callable[[Progress], Any]
    start: float
    seconds: float

    @property
    def end(self) -> float:
        return self.start + self.seconds

    def solve_here(self, rounds: Sequence[Dice]) -> None:
        """Solve rounds one after another, as precisely as wanted or until their time is over. OutOfTimeError if one cannot
        begin in time."""
        sizes = np.cumsum([self.jobs[dice].size for dice in rounds])
        for place, dice in enumerate(rounds):
            job, left = self.jobs[dice], len(rounds) - place - 1
            # Rounds share the time by their sizes, and each gets a minimum share.
            least = clock() + LEAST_SHARE * self.seconds
            deadline = min(self.end, max(least, self.start + self.seconds * float(sizes[place] / sizes[-1])))
            self._begin(job)
            if job.solved is None and clock() + job.least_seconds > self.end:
                raise OutOfTimeError(
                    f"{left + 1} of {len(rounds)} rounds could not begin within the {self.seconds:.4g} s given, because "
                    "they would not end in time; the others are kept, and with resume they are taken from there"
                )
            if not job.is_done:
                before = job.width
                job.work(deadline, functools.partial(self._tell, job, left), self.end)
                job.settle(before)
            self._tell(job, left, job.iterations, job.width, True)

    def _begin(self, job: _Job) -> None:
        if job.solved is None:
            job.begin({each: other.solved for each, other in self.jobs.items() if other.solved})

    def solve_elsewhere(self, elsewhere: Elsewhere, rounds: Sequence[Dice]) -> None:
        """Solve rounds at once. The largest is given away first, since all wait for it."""
        left, waiting, parts = len(rounds), [], []
        for dice in sorted(rounds, key=lambda dice: -self.jobs[dice].size):
            job = self.jobs[dice]
            self._begin(job)
            if job.is_done:
                left -= 1
                self._tell(job, left, job.iterations, job.width, True)
                continue
            job.widths.append(job.wanted)
            waiting.append(job)
            parts.append((self.variant, dice, tuple(job.widths), job.threads))
        for number, (numbers, iterations, seconds) in elsewhere(solve_round, parts):
            job, left = waiting[number], left - 1
            before = job.width
            numbers = np.array(numbers)  # theirs may be read-only
            job.solved = job.certified(numbers, iterations, seconds, job.widths)
            job.settle(before)
            self._tell(job, left, job.iterations, job.width, True)

    def worst(self, precision: float) -> Dice | None:
        """Return the round on which the width of the whole depends most, and ask for half its width.

        The plan's estimate may have been wrong. None: the game is as precise as asked, or nothing more can be done.
        """
        options = self.variant.options
        known = {dice: job.solved.certificate for dice, job in self.jobs.items() if job.solved}
        width = gain_of_game(options, known)
        if width <= precision:
            return None
        exact = {
            dice: Certificate(job.solved.certificate.plays, job.solved.certificate.plays)
            for dice, job in self.jobs.items()
            if job.solved and not job.is_exact and job.leaves(self.end)
        }
        if not exact:
            return None
        worst = max(exact, key=lambda dice: width - gain_of_game(options, {**known, dice: exact[dice]}))
        self.jobs[worst].wanted = self.jobs[worst].width / 2
        return worst

    def _tell(self, job: _Job, left: int, iterations: int, width: float, finished: bool = False) -> None:
        self.done(Progress(job.tree.dice, iterations, width, finished, left))


# --- the solution that is kept ------------------------------------------------------------------------------------

_SAY_EVERY, _FOLLOWED_EVERY = 5.0, 0.5  # seconds between two lines of progress: printed, and to a listener


@kept(MOST_KEPT, lambda solution: sum(each.numbers.nbytes for each in solution.rounds.values()))
def solution_of(options: Any, precision: float) -> Solution:
    """Return the solution that is kept, or solve a game of these options with lines of progress on standard error. Cached.
    ValueError as for `solve`."""
    check_rounds(options)
    variant = Variant(GAME, options)
    rounds = len(rounds_left(variant))

    def tell(progress: Progress) -> None:
        solved = rounds - progress.rounds_left - (not progress.finished)
        dice = " against ".join(map(str, progress.dice))
        say(f"nash: solved {solved} of {rounds} rounds; {dice} dice, {progress.iterations} iterations")

    return solve(variant, precision, resume=True, done=throttled(tell, _FOLLOWED_EVERY if is_heard() else _SAY_EVERY))


# --- how much there is to do --------------------------------------------------------------------------------------------

HINT_PRECISION = 1e-3  # exploitability of the solution that hints are taken from, as for the agent `nash`
# Probabilities of a game that are solved to it in a second, for two players (five dice each: 20,589,901) and at a table.
FOR_TWO, AT_TABLE = 400_000, 80_000
SETS = 4_000_000  # information sets, many of which have one probability in common


def check_needs(variant: Variant, precision: float = HINT_PRECISION) -> None:
    """Raise `TooLong` if the solution takes more time or memory to find than it may here, unless it is in memory. See
    `dice_envs.core.work.needs`."""
    check_rounds(variant.options)
    if limits() == (math.inf, math.inf) or solution_of.has(variant.options, precision):
        return
    if precision < HINT_PRECISION:
        raise TooLong(f"precision must be at least {HINT_PRECISION} where people wait for the solution, not {precision}")
    options, (size, seconds) = variant.options, _needed(variant)
    game = f"num_dice={options.num_dice!r} with num_faces={options.num_faces} for {options.num_players} players"
    needs(f"{game} is solved by finding {size}", seconds)


@functools.lru_cache(maxsize=64)
def _needed(variant: Variant) -> tuple[str, float]:
    """Return the size of a game's solution in words, and about how many seconds it takes to find."""
    options = variant.options
    first = [[first_tables(options)[0].dice]] if options.num_players > 2 else []  # at a table it alone may have too many
    for rounds in (*first, rounds_of(options)):
        if (sets := information_sets(variant, dice=rounds)) > MOST_INFORMATION_SETS:
            return f"{sets:,.0f} information sets", sets / SETS
    # Trees merge information sets; building them takes a second or two.
    numbers = sum(int(Tree(variant, dice).kinds.size[0]) for dice in rounds_left(variant))
    return f"{numbers:,} probabilities", numbers / (FOR_TWO if options.num_players == 2 else AT_TABLE)
