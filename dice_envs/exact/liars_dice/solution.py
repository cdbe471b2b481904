"""Liar's Dice between two players, solved: every round of a game, what it is worth, and what to do in it.

A round ends in one of two ways: its starter loses a die, or the other player does. As long as winning a round is worth
more than losing it, the best play of a round is the one that wins it most often, whatever comes after. So each round is
solved alone, and the game follows backward from the rounds of few dice.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import platformdirs

from dice_envs.core.files import OLD, atomic, remove_left_overs
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_range
from dice_envs.exact import ActionValues
from dice_envs.exact.kept import kept
from dice_envs.exact.liars_dice.programme import MOST_NUMBERS, solve_exactly
from dice_envs.exact.liars_dice.round import Bounds, RoundSolver, Walker, memory_of, quantised, strategy_at
from dice_envs.exact.liars_dice.tree import LEAF, Tree, public_nodes
from dice_envs.games.liars_dice import GAME, MAX_DICE, NO_BID, face_of, matching, quantity_of

__all__ = [
    "OutOfTimeError",
    "Progress",
    "Solution",
    "SolvedRound",
    "cache_folder",
    "check_two_players",
    "edges_by_bid",
    "find_node",
    "rounds_of",
    "solution_of",
    "solve",
    "solve_round",
    "solved_already",
    "starter_wins",
    "starts_of",
    "throttled",
    "wins_game",
]

Dice = tuple[int, int]  # of a round's starter and of the other player

LEAST_PRECISION = 1e-12
FIRST_CHECK, CHECK_AGAIN = 40, 1.5  # iterations before the first certificate; how much longer at most until the next
GUESS = 0.55  # the starter's chance to win a round, to share out how precise each round has to be
LEAST_SHARE = 0.02  # of the time, for each round
# For each public node: one iteration, its certificate and its file. Half of what a fast core needs, 5e-7 with four faces and
# 1e-6 with eight.
LEAST_SECONDS_A_NODE = 4e-7
THREADS_FROM = 800_000  # numbers of a round from which threads share its walks
MOST_KEPT = 2**30  # bytes of solutions that stay in memory; the last one stays whatever it takes
MEMORY_SHARE = 0.8  # of the machine's memory that a solver may take


def check_two_players(options: Any, what: str = "optimal play") -> None:
    """Raise ValueError for a variant that has no value: more than two players, or a reward that is not zero-sum.

    The message says that it is so for `what`.
    """
    if options.num_players != 2:
        raise ValueError(
            f"num_players must be 2 for {what}, not {options.num_players}: with more players what one wins depends on what "
            "the others let it have, and no value of the game tells how much of that is the agent's fault"
        )
    if options.reward != "win":
        raise ValueError(f"reward must be 'win' for {what}, not {options.reward!r}, which is not zero-sum")


def starts_of(options: Any) -> list[Dice]:
    """The dice of the starter and of the other player in the first round, for each seat that may start."""
    first, second = options.dice_per_seat
    return [(first, second), (second, first)] if options.starter == "random" else [(first, second)]


def rounds_of(options: Any) -> list[Dice]:
    """The rounds that a game of two players can come to, those of few dice first. The first may be one of two."""
    waiting = starts_of(options)
    found = set(waiting)
    while waiting and options.rounds == "elimination":
        own, others = waiting.pop()
        # Who loses a die starts the next round; who has none left starts no more.
        following = [(own - 1, others)] if own > 1 else []
        following += [(others - 1, own)] if others > 1 else []
        waiting += [dice for dice in following if dice not in found]
        found.update(following)
    return sorted(found, key=lambda dice: (sum(dice), dice))


def wins_game(
    dice: Dice,
    starts: bool,
    chance: Callable[[int, int, bool], Any],
    value: Callable[[Dice, Any, Any, Any], Any] = lambda dice, won, lost, chance: lost + (won - lost) * chance,
) -> Any:
    """The chance that a player wins a game of elimination, from its chances to win the rounds.

    Args:
        dice: the player's and its opponent's.
        starts: whether the player starts the first round.
        chance: own dice, the opponent's, whether the player starts → the chance to win that round, a number or an array.
        value: what the game is worth before a round, from its dice, what the game is worth when the round is won and when
            it is lost, and the chance of the round.
    """

    @functools.cache
    def wins(own: int, others: int, starts: bool) -> Any:
        if own == 0 or others == 0:
            return float(others == 0)
        # Who has lost a die starts the next round.
        won, lost = wins(own, others - 1, False), wins(own - 1, others, True)
        return value((own, others), won, lost, chance(own, others, starts))

    return wins(*dice, starts)


def _or_lost(dice: Dice, won: float, lost: float, chance: float) -> float:
    """What a best response may win at most: should losing the round be worth more, it may lose it on purpose."""
    return max(lost, lost + (won - lost) * chance)


def starter_wins(dice: Dice, chances: Mapping[Dice, Bounds]) -> Bounds:
    """What the starter of a game of elimination wins at least and at most, from what it wins of each round.

    Of a solution: the lower bound is what its strategies win if the other player responds best, the upper bound what
    the best response of the starter wins from them.
    """

    def responds(own: int, others: int, starts: bool) -> float:
        return chances[own, others].upper if starts else 1 - chances[others, own].lower

    own, others = dice
    return Bounds(1 - wins_game((others, own), False, responds, _or_lost), wins_game(dice, True, responds, _or_lost))


# --- a solved round ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SolvedRound:
    """Both players' strategies of one round, with their certificate.

    Attributes:
        tree: of the round.
        numbers: (numbers,) of any type, in proportion to how likely each action is; see `liars_dice_tree.Kinds`.
        bounds: of the starter's chance to win.
        value: the starter's chance to win if both play the strategies.
        iterations: made to find them; 0 for a linear programme.
        seconds: taken to find them.
        widths: that were wanted of the bounds, one after another: what is found depends on all of them.
    """

    tree: Tree
    numbers: np.ndarray
    bounds: Bounds
    value: float
    iterations: int
    seconds: float
    widths: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        tree: Tree,
        numbers: np.ndarray,
        iterations: int,
        seconds: float,
        threads: int = 1,
        widths: Sequence[float] = (),
    ) -> SolvedRound:
        """The round with its certificate."""
        walker = Walker(tree, numbers, threads)
        return cls(tree, numbers, walker.bounds(), walker.value(), iterations, seconds, tuple(widths))


class Progress(NamedTuple):
    """How far the solver has come.

    Attributes:
        dice: of the round it is at, its starter first.
        iterations: made in the round.
        width: of the round's bounds.
        wanted: how narrow they shall be.
        finished: whether the round is done with for now.
        rounds_left: how many are not, this one left out.
    """

    dice: Dice
    iterations: int
    width: float
    wanted: float
    finished: bool
    rounds_left: int


def throttled(tell: Callable[[Progress], Any], seconds: float, ends: bool = False) -> Callable[[Progress], None]:
    """`tell`, called once in that many seconds at most; with `ends`, always where a round is finished."""
    told = time.monotonic()

    def call(progress: Progress) -> None:
        nonlocal told
        if (ends and progress.finished) or time.monotonic() - told >= seconds:
            told = time.monotonic()
            tell(progress)

    return call


_SAY_EVERY = 5.0  # seconds between two lines of progress


def solution_of(variant: Variant, precision: float) -> Solution:
    """The solution that is kept, or solved first with lines of progress on standard error. Cached.

    Raises:
        ValueError: see `solve`.
    """
    check_two_players(variant.options)
    return _solution(variant.options, precision)


def solved_already(variant: Variant, precision: float) -> bool:
    """Whether `solution_of` has the solution in memory."""
    return _solution.has(variant.options, precision)


@kept(MOST_KEPT, lambda solution: sum(each.numbers.nbytes for each in solution.rounds.values()))
def _solution(options: Any, precision: float) -> Solution:
    def say(progress: Progress) -> None:
        own, others = progress.dice
        print(
            f"nash: solving {own} against {others} dice, {progress.iterations} iterations, off by {max(progress.width, 0):.1e} "
            f"at most, {progress.rounds_left} rounds left",
            file=sys.stderr,
            flush=True,
        )

    return solve(Variant(GAME, options), precision, resume=True, done=throttled(say, _SAY_EVERY))


# --- what is kept -----------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where solutions are kept unless another folder is named: in the user's cache folder, or in DICE_ENVS_CACHE."""
    return Path(os.environ.get("DICE_ENVS_CACHE") or platformdirs.user_cache_dir("dice-envs")) / "liars_dice"


def _file_of(tree: Tree, folder: Path) -> Path:
    """A round's file. Its name tells what its numbers mean: a change of rules or of the tree's layout changes it."""
    digest = hashlib.sha256()
    for array in (*tree.kinds, tree.bids, *tree.chances):
        digest.update(np.ascontiguousarray(array).tobytes())
    options = tree.variant.options
    rules = f"{options.num_faces}-faces-{options.raise_rule}-{options.wild or 'no'}-wild"
    return folder / rules / f"{tree.dice[0]}-{tree.dice[1]}-{digest.hexdigest()[:12]}.npz"


def _keep(solved: SolvedRound, folder: Path) -> None:
    """Write a round's file, whole or not at all; not in place of a better one."""
    path = _file_of(solved.tree, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    if _width_kept(path) < solved.bounds.width:
        return
    with atomic(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(
            stream,
            numbers=solved.numbers,
            iterations=solved.iterations,
            seconds=solved.seconds,
            width=solved.bounds.width,
            widths=solved.widths,
        )


def _width_kept(path: Path) -> float:
    """How wide a file says its bounds are; infinite for none."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return float(file["width"])
    except Exception:  # not there; or damage, which shows in zipfile, zlib, NumPy or Python's parser, each in its own way
        return float("inf")


def _kept(tree: Tree, folder: Path, threads: int) -> SolvedRound | None:
    """A round from its file, certified again; None if there is no file or it is damaged."""
    path = _file_of(tree, folder)
    try:
        with np.load(path, allow_pickle=False) as file:
            numbers, iterations, seconds = file["numbers"], int(file["iterations"]), float(file["seconds"])
            widths = [float(width) for width in file["widths"]] if "widths" in file.files else []  # earlier versions have none
    except Exception:  # as above
        return None
    if numbers.shape != (tree.kinds.size[0],) or numbers.dtype not in (np.uint16, np.float32, np.float64):
        return None
    if not np.isfinite(numbers).all() or numbers.min(initial=0) < 0:
        return None
    solved = SolvedRound.of(tree, numbers, iterations, seconds, threads)
    reached = tuple(width for width in widths if width >= solved.bounds.width)
    return dataclasses.replace(solved, widths=reached)


# --- solving ----------------------------------------------------------------------------------------------------------

# Calls a function with each tuple of arguments, somewhere; gives the number of each and what came of it, as they are done.
Elsewhere: TypeAlias = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterable[tuple[int, Any]]]


class _Job:
    """One round on its way to a solution."""

    def __init__(self, variant: Variant, dice: Dice, threads: int) -> None:
        self.tree = Tree(variant, dice)
        self.size = int(self.tree.kinds.size[0])
        self.threads = threads if self.size >= THREADS_FROM else 1
        self.least_seconds = self.tree.nodes * LEAST_SECONDS_A_NODE / self.threads
        self.wanted = 1.0
        self.widths: list[float] = []  # that were wanted of it so far
        self.solved: SolvedRound | None = None
        self._solver: RoundSolver | None = None
        self._seconds = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether a linear programme solves the round."""
        return self.size <= MOST_NUMBERS and _scipy_is_there()

    @property
    def is_done(self) -> bool:
        return self.solved is not None and self.solved.bounds.width <= self.wanted

    def work(self, deadline: float, report: Callable[[int, float], Any]) -> None:
        """Solve the round until it is as precise as wanted, or the time is over. `deadline` is one of time.monotonic.

        One that was kept is solved anew by way of all that was wanted of it, to end as if it had never been left.
        """
        start = time.monotonic()
        if self.is_exact:
            numbers = solve_exactly(self.tree)
            self.solved = SolvedRound.of(self.tree, numbers, 0, time.monotonic() - start)
            return
        if self._solver is None:
            self._solver, last = RoundSolver(self.tree, self.threads), self.wanted
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
            while solver.iterations < check:
                solver.iterate(1)
                if time.monotonic() >= deadline - self.least_seconds:  # what is found takes time to certify and to keep
                    break
            width = solver.bounds().width
            self._seconds = before + time.monotonic() - start
            report(solver.iterations, width)
            out_of_time = time.monotonic() >= deadline - self.least_seconds
            if width <= self.wanted or out_of_time:
                self._store(solver)
                if self.is_done or out_of_time:
                    return
            # The width falls about with the square of the iterations.
            longer = min(CHECK_AGAIN, max(1.05, (width / self.wanted) ** 0.5))
            check = int(solver.iterations * longer) + 1

    def _store(self, solver: RoundSolver) -> None:
        """Hold the strategies in two bytes a number where their certificate stays as good as wanted."""
        narrow = quantised(self.tree, solver.averages)
        self.solved = SolvedRound.of(self.tree, narrow, solver.iterations, self._seconds, self.threads, self.widths)
        if not self.is_done:
            numbers = solver.averages.copy()
            self.solved = SolvedRound.of(self.tree, numbers, solver.iterations, self._seconds, self.threads, self.widths)


def solve_round(
    variant: Variant, dice: Dice, widths: Sequence[float], threads: int, done: Callable[[Any], Any] = lambda amount: None
) -> tuple[np.ndarray, int, float]:
    """Solve one round, to bounds of the first width, then of the next, and so on: what is found depends on all of them.

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


def _memory_limit() -> int:
    """Bytes that a solver may take."""
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * MEMORY_SHARE)
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30


def _shares(variant: Variant, jobs: Mapping[Dice, _Job], precision: float) -> dict[Dice, float]:
    """How narrow the bounds of each round have to be for the whole to be as precise as asked.

    A round's share of the whole grows with the time that an iteration of it takes; how much the whole depends on a
    round is guessed from rounds that are won with chance GUESS.
    """
    guessed = {dice: Bounds(GUESS, GUESS) for dice in jobs}
    base = _width(variant, guessed)
    slopes = {}
    for dice in jobs:
        wider = {**guessed, dice: Bounds(GUESS - 0.005, GUESS + 0.005)}
        slopes[dice] = max((_width(variant, wider) - base) / 0.01, 1e-6)
    costs = {dice: 0.0 if job.is_exact else float(job.size) ** (2 / 3) for dice, job in jobs.items()}
    total = sum(costs.values()) or 1.0
    exact = max(LEAST_PRECISION, precision * 1e-3)
    return {dice: min(0.05, costs[dice] / total * precision / slopes[dice]) or exact for dice in jobs}


def _width(variant: Variant, chances: Mapping[Dice, Bounds]) -> float:
    """The exploitability of a game whose rounds are known so well, for returns of ±1."""
    starts = starts_of(variant.options)
    if variant.options.rounds == "single":
        return sum(chances[dice].width for dice in starts) / len(starts)
    return sum(starter_wins(dice, chances).width for dice in starts) / len(starts)


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
    """Solve a game of two players, or as much of it as the time allows, with a certificate for what was found.

    Each round that is finished is kept in `folder`.

    Args:
        variant: of Liar's Dice.
        precision: the exploitability to reach, for returns of ±1.
        seconds: when to stop although it is not reached. A round that cannot be done by then does not begin.
        threads: how many walk a large round at once.
        resume: take the rounds that are kept and precise enough, instead of solving them again.
        folder: None: `cache_folder()`.
        done: told of progress.
        elsewhere: solves the rounds, several at once; what is found is the same. None: one after another, here.

    Raises:
        ValueError: a variant without a value, a wrong argument, or a game that needs more memory than there is.
        OutOfTimeError: the rounds are too large for the time. Those that are finished are kept.
    """
    start = time.monotonic()
    check_two_players(variant.options)
    check_range("precision", precision, LEAST_PRECISION, 1, whole=False)
    check_range("threads", threads, 1, 256)
    if not seconds > 0:
        raise ValueError(f"seconds must be above 0, not {seconds!r}")
    if elsewhere is not None and seconds != float("inf"):
        raise ValueError("seconds can limit rounds that are solved one after another only, not elsewhere")
    folder = folder or cache_folder()
    if not resume:
        _check_time(variant, seconds, threads)
    jobs = {dice: _Job(variant, dice, threads) for dice in rounds_of(variant.options)}
    _check_memory(variant, jobs)
    wanted = _shares(variant, jobs, precision)
    for dice, job in jobs.items():
        job.wanted = wanted[dice]
        if resume:
            job.solved = _kept(job.tree, folder, job.threads)
            job.widths = list(job.solved.widths) if job.solved else []
    for rules in {_file_of(job.tree, folder).parent for job in jobs.values()}:
        if rules.is_dir():
            remove_left_overs(rules, older_than=OLD)
    sizes = np.cumsum([job.size for job in jobs.values()])
    if elsewhere is not None:
        _finish_elsewhere(variant, jobs, folder, done, elsewhere)
    else:
        for place, (dice, job) in enumerate(jobs.items()):
            # Rounds share the time by their sizes, but none has next to nothing of it.
            least = time.monotonic() + LEAST_SHARE * seconds
            deadline = min(start + seconds, max(least, start + seconds * float(sizes[place] / sizes[-1])))
            if job.solved is None and time.monotonic() + job.least_seconds > start + seconds:
                raise OutOfTimeError(
                    f"{len(jobs) - place} of {len(jobs)} rounds could not begin within the {seconds:.4g} s given, because they "
                    "would not end in time; the others are kept, and with resume they are taken from there"
                )
            _finish(dice, job, deadline, len(jobs) - place - 1, folder, done)
    # What was guessed of the rounds may have been wrong: then those that matter most become more precise.
    while True:
        chances = {dice: job.solved.bounds for dice, job in jobs.items() if job.solved}
        width = _width(variant, chances)
        if width <= precision or time.monotonic() >= start + seconds:
            break
        values = {
            dice: Bounds(job.solved.value, job.solved.value) for dice, job in jobs.items() if job.solved and not job.is_exact
        }
        if not values:
            break
        worst = max(values, key=lambda dice: width - _width(variant, {**chances, dice: values[dice]}))
        jobs[worst].wanted = chances[worst].width / 2
        if elsewhere is not None:
            _finish_elsewhere(variant, {worst: jobs[worst]}, folder, done, elsewhere)
        else:
            _finish(worst, jobs[worst], start + seconds, 0, folder, done)
    return Solution(variant, {dice: job.solved for dice, job in jobs.items() if job.solved}, time.monotonic() - start)


def _finish(dice: Dice, job: _Job, deadline: float, left: int, folder: Path, done: Callable[[Progress], Any]) -> None:
    def report(iterations: int, width: float) -> None:
        done(Progress(dice, iterations, width, job.wanted, False, left))

    if not job.is_done:
        before = job.solved
        job.work(deadline, report)
        _take(job, before, folder)
    _tell(dice, job, left, done)


def _finish_elsewhere(
    variant: Variant, jobs: Mapping[Dice, _Job], folder: Path, done: Callable[[Progress], Any], elsewhere: Elsewhere
) -> None:
    """As `_finish` for each round. The largest is given away first, since all wait for it."""
    left = len(jobs)
    waiting, parts = [], []
    for dice, job in sorted(jobs.items(), key=lambda item: -item[1].size):
        if job.is_done:
            left -= 1
            _tell(dice, job, left, done)
            continue
        job.widths.append(job.wanted)
        waiting.append(dice)
        parts.append((variant, dice, tuple(job.widths), job.threads))
    for number, (numbers, iterations, seconds) in elsewhere(solve_round, parts):
        dice, left = waiting[number], left - 1
        job = jobs[dice]
        before = job.solved
        numbers = np.array(numbers)  # theirs may be read-only
        job.solved = SolvedRound.of(job.tree, numbers, iterations, seconds, job.threads, job.widths)
        _take(job, before, folder)
        _tell(dice, job, left, done)


def _take(job: _Job, before: SolvedRound | None, folder: Path) -> None:
    """Keep what has been found, or what was there where that is better: the time may have been over too soon."""
    assert job.solved is not None
    if before is not None and before.bounds.width < job.solved.bounds.width:
        job.solved = before
    _keep(job.solved, folder)


def _tell(dice: Dice, job: _Job, left: int, done: Callable[[Progress], Any]) -> None:
    assert job.solved is not None
    done(Progress(dice, job.solved.iterations, job.solved.bounds.width, job.wanted, True, left))


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
    needed, limit = sum(memory_of(job.tree) for job in jobs.values()), _memory_limit()
    if needed > limit:
        raise ValueError(
            f"num_dice={variant.options.num_dice!r} with num_faces={variant.options.num_faces} takes "
            f"{needed / 2**30:,.1f} GiB of memory to solve; {limit / 2**30:,.1f} GiB may be taken here"
        )


# --- the solution -----------------------------------------------------------------------------------------------------


class Solution:
    """Strategies for every round of a game, with a certificate.

    Attributes:
        variant: of Liar's Dice.
        rounds: dice of the starter and of the other → the solved round.
        lower, value, upper: of a single round, the starter's expected return; of a game of elimination, the starter's
            chance to win; mean over who may start. `value` is what the strategies win from each other.
        exploitability: what best responses win from the strategies above the value, for returns of ±1, mean of the two
            players.
        nash_conv: the sum of the two.
        seconds: taken to solve or load it.
    """

    def __init__(self, variant: Variant, rounds: Mapping[Dice, SolvedRound], seconds: float = 0.0) -> None:
        self.variant = variant
        self.rounds = dict(rounds)
        self.seconds = seconds
        self.bounds = {dice: each.bounds for dice, each in self.rounds.items()}
        self._plans = {dice: _Plan(each) for dice, each in self.rounds.items()}
        self.exploitability = _width(variant, self.bounds)
        self.nash_conv = 2 * self.exploitability
        starts = starts_of(variant.options)
        ends = [self.chance(dice) for dice in starts]
        values = [self.chance(dice, expected=True).lower for dice in starts]
        stretch = 2.0 if self._is_single else 1.0
        shift = -1.0 if self._is_single else 0.0
        self.lower = shift + stretch * sum(end.lower for end in ends) / len(ends)
        self.upper = shift + stretch * sum(end.upper for end in ends) / len(ends)
        self.value = shift + stretch * sum(values) / len(values)

    @property
    def _is_single(self) -> bool:
        return bool(self.variant.options.rounds == "single")

    def chance(self, dice: Dice, expected: bool = False) -> Bounds:
        """The starter's chance to win the game (or the one round) from these dice.

        Args:
            dice: of the starter and of the other player.
            expected: between the two strategies, instead of what best responses leave.
        """
        chances = {each: Bounds(found.value, found.value) for each, found in self.rounds.items()} if expected else self.bounds
        return chances[dice] if self._is_single else starter_wins(dice, chances)

    def as_dict(self) -> dict[str, Any]:
        """What `solve --json` writes."""
        rounds = [
            {
                "dice": list(dice),
                "value": each.value,
                "lower": each.bounds.lower,
                "upper": each.bounds.upper,
                "iterations": each.iterations,
                "seconds": each.seconds,
            }
            for dice, each in self.rounds.items()
        ]
        return {
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "exploitability": self.exploitability,
            "nash_conv": self.nash_conv,
            "seconds": self.seconds,
            "rounds": rounds,
        }

    def _round_at(self, state: Any) -> Dice:
        starter = int(state["starter"])
        return int(state["dice"][starter]), int(state["dice"][1 - starter])

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """What the solution does at states in which somebody is to move, (n, num_actions) float64."""
        out = np.zeros((len(states), self.variant.facts.num_actions))
        starters = states["starter"].astype(np.int64)
        rows = np.arange(len(states))
        own, others = states["dice"][rows, starters], states["dice"][rows, 1 - starters]
        for dice in {(int(a), int(b)) for a, b in zip(own, others, strict=True)}:
            mine = np.flatnonzero((own == dice[0]) & (others == dice[1]))
            self._plans[dice].probabilities(self.variant.params, states, mine, out)
        return out

    def action_values(self, state: Any) -> ActionValues:
        """The chance to win the game (or the one round) with each action if all that follows is a best response to the
        solution, and what the solution itself does. See `dice_envs.exact.ActionValues`."""
        dice = self._round_at(state)
        wins, reached = self._plans[dice].action_wins(self.variant, state)
        mix = self.probabilities(np.array([state]))[0]
        if not self._is_single:
            (own, others), is_starter = dice, state["seat"] == state["starter"]
            lost = self.chance((own - 1, others)) if own > 1 else Bounds(0.0, 0.0)
            after = self.chance((others - 1, own)) if others > 1 else Bounds(0.0, 0.0)
            if is_starter:
                low, high = lost.upper, 1 - after.lower
            else:
                low, high = after.upper, 1 - lost.lower
            wins = low + (high - low) * wins
        note = f"against optimal play (exploitability {max(0.0, self.exploitability):.1e})"
        if not reached:
            note += ", which would not have bid this way: its dice are taken for fair"
        return ActionValues(wins, "% of rounds won" if self._is_single else "% of games won", note, mix, reached=reached)


OUTSIDE = -1  # where no kind of node is: all dice are bid, and the solution calls


@kernel
def find_node(edge_of, child, shift, bids, count):
    """The kind of node that bids lead to, and where its numbers begin; OUTSIDE where the tree ends before."""
    kind = 0
    offset = 0
    for k in range(count):
        edge = edge_of[kind, bids[k]]
        if edge < 0 or child[edge] == LEAF:
            return OUTSIDE, 0
        offset += shift[edge]
        kind = child[edge]
    return kind, offset


@kernel
def _write_probabilities(params, kinds, numbers, edge_of, edge_bids, by_hand, hands, states, rows, out):
    """Write what the solution does at states[rows], the mover of which holds `hands`, into out[rows]. In place."""
    for i in range(len(rows)):
        state = states[rows[i]]
        kind, offset = find_node(edge_of, kinds.child, kinds.shift, state["bids"], state["num_bids"])
        if kind == OUTSIDE:
            out[rows[i], params.call] = 1.0
        else:
            each = by_hand[kind, hands[i]]
            if each >= kinds.active[kind]:
                out[rows[i], params.call] = 1.0
            else:
                strategy_at(kinds, kind, offset, numbers, each, params.call, edge_bids, out[rows[i]])


def edges_by_bid(tree: Tree) -> np.ndarray:
    """The edge by which each bid leaves each kind of node, −1 where none does, (kinds, bids) int64."""
    edge_of = np.full((len(tree.bids), sum(tree.dice) * tree.variant.params.num_faces), -1, np.int64)
    kind_of = np.repeat(np.arange(len(tree.bids)), np.diff(tree.kinds.first_edge))
    edge_of[kind_of, tree.edge_bids] = np.arange(len(kind_of))
    return edge_of


class _Plan:
    """A solved round with what it takes to find a state in it."""

    def __init__(self, solved: SolvedRound) -> None:
        self.solved = solved
        tree = solved.tree
        self.edge_bids = tree.edge_bids
        self.edge_of = edges_by_bid(tree)
        self.by_hand = tuple(np.array([both[player] for both in tree.class_of], np.int64) for player in range(2))
        keys = [_keys(hands) for hands in tree.hands]
        self._order = [np.argsort(each) for each in keys]
        self._keys = [each[order] for each, order in zip(keys, self._order, strict=True)]

    def _hands(self, player: int, counts: np.ndarray) -> np.ndarray:
        found: np.ndarray = self._order[player][np.searchsorted(self._keys[player], _keys(counts))]
        return found

    def probabilities(self, params: Any, states: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
        """Write what the solution does at states[rows] into out[rows]."""
        seats = states["seat"][rows].astype(np.int64)
        players = (seats != states["starter"][rows]).astype(np.int64)
        for player in range(2):
            mine = np.flatnonzero(players == player)
            hands = self._hands(player, states["counts"][rows[mine], seats[mine]])
            _write_probabilities(
                params, self.solved.tree.kinds, self.solved.numbers, self.edge_of, self.edge_bids, self.by_hand[player],
                hands, states, rows[mine], out,
            )  # fmt: skip

    def action_wins(self, variant: Variant, state: Any) -> tuple[np.ndarray, bool]:
        """How likely each legal action wins the round, and whether the other player may have bid so."""
        tree, kinds = self.solved.tree, self.solved.tree.kinds
        seat, starter = int(state["seat"]), int(state["starter"])
        player = 0 if seat == starter else 1
        other = 1 - player
        (hand,) = self._hands(player, state["counts"][seat][None, :])
        bids = state["bids"][: int(state["num_bids"])].tolist()
        walker = Walker(tree, self.solved.numbers)
        chances = tree.hand_chances[other].copy()
        reach = chances.copy()
        kind = offset = 0
        for place, bid in enumerate(bids):
            edge = self.edge_of[kind, bid] if kind != OUTSIDE else -1
            if place % 2 == other:
                if edge < 0:
                    reach[:] = 0.0
                else:
                    reach *= walker.bid_chances(kind, offset, edge)[self.by_hand[other][kind]]
            if edge < 0 or kinds.child[edge] == LEAF:
                kind = OUTSIDE
            else:
                offset += int(kinds.shift[edge])
                kind = int(kinds.child[edge])
        reached = bool(reach.sum() > 0)
        weights = reach if reached else chances
        weights = weights / weights.sum()
        wins = np.full(variant.facts.num_actions, np.nan)
        params = variant.params
        if bids:
            needed, face = int(quantity_of(params, bids[-1])) + 1, int(face_of(params, bids[-1]))
            own = int(matching(params, tree.hands[player][hand], face))
            wins[params.call] = weights[tree.matches[other][:, face] + own < needed].sum()
        for bid in tree.raises_after(bids[-1] if bids else NO_BID).tolist():
            edge = self.edge_of[kind, bid] if kind != OUTSIDE and bid < self.edge_of.shape[1] else -1
            if edge >= 0 and kinds.child[edge] != LEAF:
                child = int(kinds.child[edge])
                arrived = np.bincount(self.by_hand[other][child], weights, int(kinds.classes[child, other]))
                values = walker.response(player, child, offset + int(kinds.shift[edge]), arrived)
                wins[bid] = values[self.by_hand[player][child, hand]]
            else:  # a bid of all dice: the solution calls it
                face = int(face_of(params, bid))
                all_match = tree.matches[player][hand, face] == tree.dice[player]
                wins[bid] = weights[tree.matches[other][:, face] == tree.dice[other]].sum() if all_match else 0.0
        return wins, reached


def _keys(counts: np.ndarray) -> np.ndarray:
    """A number for each hand, from its dice by face (n, MAX_FACES)."""
    keys: np.ndarray = counts.astype(np.int64) @ (MAX_DICE + 1) ** np.arange(counts.shape[1])
    return keys
