"""Solves games of Liar's Dice between two players: plans how precise each round has to be, solves and keeps the rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dice_envs.core.files import ABANDONED_AFTER, remove_left_overs
from dice_envs.core.game import Variant
from dice_envs.core.machine import check_threads, memory_limit
from dice_envs.core.options import check_range
from dice_envs.exact.following import is_followed, say
from dice_envs.exact.kept import kept
from dice_envs.exact.liars_dice.cfr import SHARED_FROM, RoundSolver, memory_of, quantised
from dice_envs.exact.liars_dice.programme import MOST_NUMBERS, solve_exactly
from dice_envs.exact.liars_dice.seating import Bounds, Dice, check_two_players, game_width, rounds_of
from dice_envs.exact.liars_dice.solution import Solution
from dice_envs.exact.liars_dice.store import SolvedRound, cache_folder, file_of, keep, kept_round
from dice_envs.exact.liars_dice.tree import Tree, public_nodes
from dice_envs.games.liars_dice import GAME

__all__ = [
    "LEAST_PRECISION",
    "OutOfTimeError",
    "Progress",
    "StepTimer",
    "solution_of",
    "solve",
    "solve_round",
    "solved_already",
    "throttled",
    "told",
]

LEAST_PRECISION = 1e-12
FIRST_CHECK, CHECK_AGAIN = 40, 1.5  # iterations before the first certificate; the most that they grow until the next
GUESS = 0.55  # assumed chance of the starter to win a round, when the precision of each round is planned
LEAST_SHARE = 0.02  # of the time, for each round
# Seconds for each public node: one iteration, its certificate and its file. Half of a fast core's time, which is 5e-7 with
# four faces and 1e-6 with eight.
LEAST_SECONDS_A_NODE = 4e-7
MOST_KEPT = 2**30  # bytes of solutions that stay in memory; the last one stays whatever its size
STEPS_TO_END = 2  # iterations that take as long as the last certificate of a round
BYTES_WRITTEN = 20e6  # of strategies, packed and kept in a second


class Progress(NamedTuple):
    """Progress of a solver.

    Attributes:
        dice: of the current round, its starter first.
        iterations: made in the round.
        width: of the round's bounds.
        wanted: the width to reach.
        finished: whether the round is done for now.
        rounds_left: how many other rounds are not.
    """

    dice: tuple[int, ...]
    iterations: int
    width: float
    wanted: float
    finished: bool
    rounds_left: int


def throttled(tell: Callable[[Progress], Any], seconds: float, ends: bool = False) -> Callable[[Progress], None]:
    """Return `tell` as a callback that passes on at most one call in `seconds`, and with `ends` each end of a round."""
    last = time.monotonic()

    def call(progress: Progress) -> None:
        nonlocal last
        if (ends and progress.finished) or time.monotonic() - last >= seconds:
            last = time.monotonic()
            tell(progress)

    return call


class StepTimer:
    """Times the steps of a solver, so that it ends before its deadline: a step cannot be stopped, and may take a minute.

    Args:
        size: numbers of the round, which are written at its end.
    """

    def __init__(self, size: int) -> None:
        self._longest = 0.0  # seconds
        self._writing = 2 * size / BYTES_WRITTEN

    def iterate(self, solver: Any) -> None:
        """Make one iteration."""
        start = time.monotonic()
        solver.iterate(1)
        self._longest = max(self._longest, time.monotonic() - start)

    def limit(self, deadline: float) -> Callable[[], None]:
        """Return a function that raises OutOfTimeError where a first iteration leaves too little of the time from now on."""
        start = time.monotonic()
        most = (deadline - self._writing - start) / (1 + STEPS_TO_END)

        def look() -> None:
            if time.monotonic() - start > most:
                raise OutOfTimeError(f"a first solution of a round takes longer than the {deadline - start:.4g} s left for it")

        return look

    def leaves(self, deadline: float) -> bool:
        """Return whether another iteration, the certificates and the file would be done by then, one of time.monotonic."""
        return time.monotonic() + (1 + STEPS_TO_END) * self._longest + self._writing < deadline


# --- one round ----------------------------------------------------------------------------------------------------

# Calls a function with each tuple of arguments, somewhere; yields the number of each call and its result, as they are done.
Elsewhere: TypeAlias = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterable[tuple[int, Any]]]


class _Job:
    """One round on its way to a solution."""

    def __init__(self, variant: Variant, dice: Dice, threads: int) -> None:
        self.tree = Tree(variant, dice)
        self.size = int(self.tree.kinds.size[0])
        self.threads = threads if self.size >= SHARED_FROM else 1
        self.least_seconds = self.tree.nodes * LEAST_SECONDS_A_NODE / self.threads
        self.wanted = 1.0
        self.widths: list[float] = []  # all that were wanted so far
        self.solved: SolvedRound | None = None
        self.timer = StepTimer(self.size)
        self._solver: RoundSolver | None = None
        self._seconds = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether a linear programme solves the round."""
        return self.size <= MOST_NUMBERS and _scipy_is_there()

    @property
    def is_done(self) -> bool:
        return self.width <= self.wanted

    @property
    def width(self) -> float:
        """Return the distance between the value's bounds so far."""
        return float("inf") if self.solved is None else self.solved.bounds.width

    def work(self, deadline: float, report: Callable[[int, float], Any], end: float = float("inf")) -> None:
        """Solve the round until it is as precise as wanted, or the time is over. `deadline` is one of time.monotonic.

        Raises OutOfTimeError where there is no solution yet, and it will clearly take longer than up to `end`.

        A round from a file is solved anew. Replays the widths wanted before, so that a resumed run is identical. The
        strategies so far are dropped, to have their memory; the caller has them in a file.
        """
        start, self.solved = time.monotonic(), None
        if self.is_exact:
            numbers = solve_exactly(self.tree)
            self.solved = SolvedRound.of(self.tree, numbers, 0, time.monotonic() - start)
            return
        if self._solver is None:
            self._solver, last = RoundSolver(self.tree, self.threads), self.wanted
            if not self.widths:  # else there is a solution already
                self._solver.look = self.timer.limit(end)
            for width in self.widths:
                self.wanted = width
                self._iterate(self._solver, deadline, report)
            self.wanted = last
        self.widths.append(self.wanted)
        self._iterate(self._solver, deadline, report)

    def _iterate(self, solver: RoundSolver, deadline: float, report: Callable[[int, float], Any]) -> None:
        start, before = time.monotonic(), self._seconds
        check = solver.iterations + FIRST_CHECK
        while True:
            out_of_time = False
            while solver.iterations < check and not out_of_time:
                self.timer.iterate(solver)
                solver.look = lambda: None  # the first is done
                out_of_time = not self.timer.leaves(deadline)
            width = float("inf") if out_of_time else solver.bounds().width
            self._seconds = before + time.monotonic() - start
            if width <= self.wanted or out_of_time:
                self._store(solver, width)
                width = self.width
            report(solver.iterations, width)
            if self.is_done or out_of_time:
                return
            # The width falls about with the square of the iterations.
            longer = min(CHECK_AGAIN, max(1.05, (width / self.wanted) ** 0.5))
            check = int(solver.iterations * longer) + 1

    def _store(self, solver: RoundSolver, width: float) -> None:
        """Keep the strategies in two bytes a number, unless their bounds, `width` apart, are then wider than wanted.

        Else they are the solver's own, which change when it goes on: see `work`.
        """
        for make in (lambda: quantised(self.tree, solver.averages), lambda: solver.averages):
            self.solved = None  # frees the strategies before
            self.solved = SolvedRound.of(self.tree, make(), solver.iterations, self._seconds, self.threads, self.widths)
            if self.is_done or width > self.wanted:
                return


def solve_round(
    variant: Variant, dice: Dice, widths: Sequence[float], threads: int, done: Callable[[Any], Any] = lambda amount: None
) -> tuple[np.ndarray, int, float]:
    """Solve one round, to bounds of the first width, then of the next, and so on: the result depends on all of them.

    Returns:
        The numbers, iterations and seconds of a `SolvedRound`.
    """
    job = _Job(variant, dice, threads)
    for width in widths:
        job.wanted = width
        if not job.is_done:
            job.work(float("inf"), lambda iterations, reached: None)
    assert job.solved is not None
    done(1)
    return job.solved.numbers, job.solved.iterations, job.solved.seconds


def _scipy_is_there() -> bool:
    try:
        import scipy.optimize  # noqa: F401
    except ImportError:
        return False
    return True


# --- the plan -----------------------------------------------------------------------------------------------------


class OutOfTimeError(ValueError):
    """A game has rounds that cannot be solved in the time that was given."""


def _check_time(variant: Variant, seconds: float, threads: int) -> None:
    nodes = sum(public_nodes(variant, dice) for dice in rounds_of(variant.options))
    least = nodes * LEAST_SECONDS_A_NODE / threads
    if least > seconds:
        raise OutOfTimeError(
            f"num_dice={variant.options.num_dice!r} with num_faces={variant.options.num_faces} makes rounds of {nodes:,} "
            f"public nodes in all; a first solution takes at least about {least:,.0f} s, and {seconds:.4g} s are given"
        )


def _check_memory(variant: Variant, jobs: Mapping[Dice, _Job]) -> None:
    threads = max(job.threads for job in jobs.values())
    needed, limit = memory_of((job.tree for job in jobs.values()), threads), memory_limit()
    if needed > limit:
        raise ValueError(
            f"num_dice={variant.options.num_dice!r} with num_faces={variant.options.num_faces} takes "
            f"{needed / 2**30:,.1f} GiB of memory to solve; {limit / 2**30:,.1f} GiB may be taken here"
        )


def _shares(variant: Variant, jobs: Mapping[Dice, _Job], precision: float) -> dict[Dice, float]:
    """Return how narrow the bounds of each round have to be for the whole game to be as precise as asked.

    A round's share of the whole grows with the time that an iteration of it takes. How much the whole depends on a
    round is estimated from rounds that are won with chance GUESS.
    """
    guessed = {dice: Bounds(GUESS, GUESS) for dice in jobs}
    base = game_width(variant, guessed)
    slopes = {}
    for dice in jobs:
        wider = {**guessed, dice: Bounds(GUESS - 0.005, GUESS + 0.005)}
        slopes[dice] = max((game_width(variant, wider) - base) / 0.01, 1e-6)
    costs = {dice: 0.0 if job.is_exact else float(job.size) ** (2 / 3) for dice, job in jobs.items()}
    total = sum(costs.values()) or 1.0
    exact = max(LEAST_PRECISION, precision * 1e-3)
    return {dice: min(0.05, costs[dice] / total * precision / slopes[dice]) or exact for dice in jobs}


def _plan(variant: Variant, precision: float, threads: int, folder: Path | None) -> dict[Dice, _Job]:
    """Return a job for each round, with its round from `folder` if there is one; None: all are solved anew."""
    jobs = {dice: _Job(variant, dice, threads) for dice in rounds_of(variant.options)}
    _check_memory(variant, jobs)
    wanted = _shares(variant, jobs, precision)
    for dice, job in jobs.items():
        job.wanted = wanted[dice]
        if folder is not None:
            job.solved = kept_round(job.tree, folder, job.threads)
            job.widths = list(job.solved.widths) if job.solved else []
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
    """Solve a game of two players, or as much of it as the time allows, with a certificate of the result.

    Each round that is finished is kept in `folder`.

    Args:
        variant: of Liar's Dice.
        precision: the exploitability to reach, for returns of ±1.
        seconds: time limit, even if the precision is not reached. A round that cannot be done by then does not begin.
        threads: how many walk a large round at once.
        resume: take the rounds that are kept and precise enough, instead of solving them again.
        folder: None: `cache_folder()`.
        done: progress callback.
        elsewhere: solves the rounds, several at once, with the same result. None: one after another, here.

    Raises:
        ValueError: a variant without a value, a wrong argument, or a game that needs more memory than there is.
        OutOfTimeError: the rounds are too large for the time. Those that are finished are kept.
    """
    start = time.monotonic()
    check_two_players(variant.options)
    check_range("precision", precision, LEAST_PRECISION, 1, whole=False)
    usable = check_threads(threads)
    threads = usable if elsewhere is None else threads
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, not {seconds!r}")
    if elsewhere is not None and seconds != float("inf"):
        raise ValueError("seconds can limit rounds that are solved one after another only, not elsewhere")
    folder = folder or cache_folder()
    if not resume:
        _check_time(variant, seconds, threads)
    jobs = _plan(variant, precision, threads, folder if resume else None)
    for rules in {file_of(job.tree, folder).parent for job in jobs.values()}:
        remove_left_overs(rules, older_than=ABANDONED_AFTER)
    work = _Work(variant, jobs, folder, done, start, seconds)
    if elsewhere is not None:
        work.solve_elsewhere(jobs, elsewhere)
    else:
        work.solve_all()
    while (worst := work.worst(precision)) is not None:
        if elsewhere is not None:
            work.solve_elsewhere({worst: jobs[worst]}, elsewhere)
        else:
            work.finish(worst, start + seconds, 0)
    return Solution(variant, {dice: job.solved for dice, job in jobs.items() if job.solved}, time.monotonic() - start)


class _Work:
    """The rounds of a game on their way to a solution."""

    def __init__(
        self,
        variant: Variant,
        jobs: Mapping[Dice, _Job],
        folder: Path,
        done: Callable[[Progress], Any],
        start: float,
        seconds: float,
    ) -> None:
        self._variant, self._jobs, self._folder, self._done = variant, jobs, folder, done
        self._start, self._seconds, self._end = start, seconds, start + seconds

    def solve_all(self) -> None:
        """Solve the rounds one after another.

        Raises:
            OutOfTimeError: a round could not begin in time.
        """
        sizes = np.cumsum([job.size for job in self._jobs.values()])
        for place, (dice, job) in enumerate(self._jobs.items()):
            # Rounds share the time by their sizes, and each gets a minimum share.
            least = time.monotonic() + LEAST_SHARE * self._seconds
            deadline = min(self._end, max(least, self._start + self._seconds * float(sizes[place] / sizes[-1])))
            if job.solved is None and time.monotonic() + job.least_seconds > self._end:
                raise OutOfTimeError(
                    f"{len(self._jobs) - place} of {len(self._jobs)} rounds could not begin within the {self._seconds:.4g} s "
                    "given, because they would not end in time; the others are kept, and with resume they are taken from there"
                )
            self.finish(dice, deadline, len(self._jobs) - place - 1)

    def finish(self, dice: Dice, deadline: float, left: int) -> None:
        """Solve one round as precisely as wanted or until the deadline, with `left` rounds after it."""
        job = self._jobs[dice]

        def report(iterations: int, width: float) -> None:
            self._done(Progress(dice, iterations, width, job.wanted, False, left))

        if not job.is_done:
            before = job.width
            job.work(deadline, report, self._end)
            self._take(job, before)
        self._tell(dice, left)

    def solve_elsewhere(self, jobs: Mapping[Dice, _Job], elsewhere: Elsewhere) -> None:
        """Solve rounds at once. The largest is given away first, since all wait for it."""
        left = len(jobs)
        waiting, parts = [], []
        for dice, job in sorted(jobs.items(), key=lambda item: -item[1].size):
            if job.is_done:
                left -= 1
                self._tell(dice, left)
                continue
            job.widths.append(job.wanted)
            waiting.append(dice)
            parts.append((self._variant, dice, tuple(job.widths), job.threads))
        for number, (numbers, iterations, seconds) in elsewhere(solve_round, parts):
            dice, left = waiting[number], left - 1
            job = jobs[dice]
            before = job.width
            numbers = np.array(numbers)  # theirs may be read-only
            job.solved = SolvedRound.of(job.tree, numbers, iterations, seconds, job.threads, job.widths)
            self._take(job, before)
            self._tell(dice, left)

    def worst(self, precision: float) -> Dice | None:
        """Return the round on which the width of the whole depends most, and ask for half its width.

        The plan's estimate may have been wrong. None: the game is as precise as asked, or nothing more can be done.
        """
        chances = {dice: job.solved.bounds for dice, job in self._jobs.items() if job.solved}
        width = game_width(self._variant, chances)
        if width <= precision:
            return None
        values = {
            dice: Bounds(job.solved.value, job.solved.value)
            for dice, job in self._jobs.items()
            if job.solved and not job.is_exact and job.timer.leaves(self._end)
        }
        if not values:
            return None
        worst = max(values, key=lambda dice: width - game_width(self._variant, {**chances, dice: values[dice]}))
        self._jobs[worst].wanted = chances[worst].width / 2
        return worst

    def _take(self, job: _Job, before: float) -> None:
        """Keep the new result. If its bounds are wider than `before`, time was over too soon: take the kept one."""
        assert job.solved is not None
        if before < job.width:
            job.solved = kept_round(job.tree, self._folder, job.threads) or job.solved
        else:
            keep(job.solved, self._folder)

    def _tell(self, dice: Dice, left: int) -> None:
        job = self._jobs[dice]
        assert job.solved is not None
        self._done(Progress(dice, job.solved.iterations, job.solved.bounds.width, job.wanted, True, left))


# --- the solution that is kept ------------------------------------------------------------------------------------

_SAY_EVERY, _FOLLOWED_EVERY = 5.0, 0.5  # seconds between two lines of progress: printed, and to a listener


def told(line_of: Callable[[Progress], str]) -> Callable[[Progress], Any]:
    """Return a progress callback that says a line now and then; see `dice_envs.exact.following`."""
    return throttled(lambda progress: say(line_of(progress)), _FOLLOWED_EVERY if is_followed() else _SAY_EVERY)


def solution_of(variant: Variant, precision: float) -> Solution:
    """Return the solution that is kept, or solve the game with lines of progress on standard error. Cached.

    Raises:
        ValueError: see `solve`.
    """
    check_two_players(variant.options)
    return _solution(variant.options, precision)


def solved_already(variant: Variant, precision: float) -> bool:
    """Return whether `solution_of` has the solution in memory."""
    return _solution.has(variant.options, precision)


@kept(MOST_KEPT, lambda solution: sum(each.numbers.nbytes for each in solution.rounds.values()))
def _solution(options: Any, precision: float) -> Solution:
    def line_of(progress: Progress) -> str:
        own, others = progress.dice
        rounds = len(rounds_of(options))
        solved = rounds - progress.rounds_left - (not progress.finished)
        return f"nash: solved {solved} of {rounds} rounds; {own} against {others} dice, {progress.iterations} iterations"

    return solve(Variant(GAME, options), precision, resume=True, done=told(line_of))
