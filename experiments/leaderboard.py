"""The board: every agent on every task that it can play, by its distance from optimal play.

The command `leaderboard` shows it.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dice_envs import TASKS, Task, Variant, agents, evaluate, measure, names, response_values
from dice_envs.agent import Agent, ask, check_plays, resolve
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.core.options import check_range, check_seed, shown
from dice_envs.core.own import split_own
from dice_envs.evaluation import GAMES_WON
from dice_envs.exact import asked
from dice_envs.exact.intervals import share_half_width
from dice_envs.exact.progress import TooLong, within
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.jobs import HERE, Workers
from dice_envs.experiments.ui.grids import plus_minus
from dice_envs.experiments.ui.pages import versions

# Parameters worth a row of the board, in place of an agent's defaults.
SPECS: dict[str, tuple[str, ...]] = {
    "mcts": ("mcts:30",),
    "ppo": ("ppo", "ppo:greedy=true"),
    "numbers": ("numbers:bluff=0", "numbers:bluff=0.5"),
    "thirties": ("thirties:beginner", "thirties:heuristic", "thirties:goal"),
    "greedy": ("greedy", "greedy:permutations"),
    "thompson": ("thompson", "thompson:permutations"),
    "adaptive": (),  # measured at the start of a match, where it plays as `nash` does
    "champion": ("champion",),
}
SAMPLES = (None, 2000, 200)  # sampled deals or games, fewer where more take too long; None: the game's own number
FIELD_GAMES = (100_000, 5000, 500)  # the same against a field
AGAINST = "nash"  # whom agents play that cannot be measured
PLAYED = (1000, 100)  # games of theirs, fewer where more take too long
TIMED = 256  # games in the batch in which moves are timed
TIMING = 0.5  # seconds of moves that are timed, at least one move
MOST_MINUTES = 10_000


@dataclasses.dataclass
class Standing:
    """Figures of one agent on one task; None where a figure is not known.

    Attributes:
        task, agent: their names.
        value, error: value of the headline measure, and half of its 95 % interval, 0 where it is exact.
        optimum, gap: value of optimal play, and the distance from it; None against a field.
        score, score_error: 0 for uniformly random play, 1 for optimal play.
        unit: of `value`.
        elo, elo_error: rating against a field by the share of wins, where the field has 0.
        batch_ms, alone_ms: milliseconds a move with TIMED games at once, and with one.
        steps, minutes: of training, where the policy file holds them.
        note: for the reader, such as the size of the sample.
        missing: why the agent was not measured, with its share of wins without luck where that is known; else empty.
        wins, wins_error: that share, against optimal play, and half of its 95 % interval; None if it was measured.
    """

    task: str
    agent: str
    value: float | None = None
    error: float | None = None
    optimum: float | None = None
    gap: float | None = None
    score: float | None = None
    score_error: float | None = None
    unit: str = ""
    elo: float | None = None
    elo_error: float | None = None
    batch_ms: float | None = None
    alone_ms: float | None = None
    steps: int | None = None
    minutes: float | None = None
    note: str = ""
    missing: str = ""
    wins: float | None = None
    wins_error: float | None = None


@dataclasses.dataclass(frozen=True)
class TaskBoard(Task):
    """A task and its standings: measured agents, the best first, then the others."""

    standings: Sequence[Standing] = ()


@dataclasses.dataclass
class Board:
    """All tasks with their standings; the form that JSON files hold."""

    seed: int
    sample: int | None
    tasks: list[TaskBoard]
    versions: dict[str, str]


# --- who plays what ---------------------------------------------------------------------------------------------------


def usual_agents(game: str) -> list[str]:
    """Return specs of the agents that play a game and need no parameters."""
    found: list[str] = []
    for name, factory in agents.for_game(game).items():
        found += SPECS.get(name, () if agents.required(factory) else (name,))
    return found


def chosen(words: Sequence[str]) -> tuple[list[Task], list[str]]:
    """Read tasks and specs of agents from words in any order: the name of a task, of a game for all its tasks, or a spec,
    also of an agent of the user's own.

    Without a task it is all tasks. Without a spec the list of specs is empty, which stands for the usual agents.

    Raises:
        ValueError: a word is none of these.
    """
    tasks: dict[str, Task] = {}
    specs: list[str] = []
    for word in words:
        plain = word.replace("-", "_").lower()
        if plain in TASKS:
            tasks[plain] = TASKS[plain]
        elif plain in names():
            of_game = {name: task for name, task in TASKS.items() if task.game == plain}
            if not of_game:
                raise ValueError(f"there is no task of {plain}; tasks are: {', '.join(TASKS)}")
            tasks |= of_game
        elif split_own(word) or word.partition(":")[0] in agents.factories():
            agents.make(word)
            specs.append(word)
        else:
            raise ValueError(f"{shown(word)} is no task and no agent; tasks are: {', '.join(TASKS)}; `agents` lists the agents")
    return list(tasks.values()) or list(TASKS.values()), list(dict.fromkeys(specs))


def plan(tasks: Sequence[Task], specs: Sequence[str] | None) -> list[tuple[Task, str]]:
    """List the measurements, each of an agent by its spec on a task; see `board`."""
    return [
        (task, spec)
        for task in tasks
        for spec in dict.fromkeys(["random", *(usual_agents(task.game) if specs is None else specs)])
    ]


# --- measuring --------------------------------------------------------------------------------------------------------


def _standing(seed: int, sample: int | None, minutes: float, task: str | Task, spec: str, done: Any) -> dict[str, Any]:
    """Measure one agent on one task; returns a Standing as a dict."""
    of = TASKS[task] if isinstance(task, str) else task
    found = Standing(of.name, spec)
    variant = of.variant
    try:
        player = resolve(spec, of.game)
        check_plays(player, variant)
        about = getattr(asked(spec, variant).agent, "about", None) or {}
        by_play = _against_field if of.field else _measured
        by_play(found, of, variant, player, seed, sample, minutes)
        if not found.missing:
            found.steps, found.minutes = about.get("steps"), about.get("minutes")
            found.batch_ms, found.alone_ms = (_milliseconds(variant, player, games, seed) for games in (TIMED, 1))
    except (ValueError, ImportError) as problem:
        found.missing = " ".join(str(problem).split())
    except Exception as problem:
        if split_own(spec) is None and not isinstance(problem, MemoryError):
            raise
        # A fault of the user's own agent must not stop the others.
        found.missing = f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
    done(1)
    return dataclasses.asdict(found)


def _in_time(minutes: float, sizes: Sequence[Any], attempt: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Return the first size at which `attempt(size, done)` ends within the time, and its result; after failures of all, None
    and the amount of work."""
    for size in sizes:
        try:
            return size, attempt(size, within(minutes))
        except TooLong as problem:
            amount = str(problem)
    return None, amount


def _measured(
    found: Standing, task: Task, variant: Variant, player: Agent, seed: int, sample: int | None, minutes: float
) -> None:
    """Fill in the measured figures, from a smaller sample where the usual one takes too long."""
    sizes = SAMPLES if sample is None else (sample,)
    _, measured = _in_time(minutes, sizes, lambda size, done: measure(variant, found.agent, seed=seed, sample=size, done=done))
    if isinstance(measured, str):
        found.missing = f"it would take more than {minutes:g} minutes: there are {measured} to evaluate"
        _played(found, variant, player, seed, minutes)
        return
    headline = measured.measures[0]
    assert headline.name == task.headline, f"{task.name} is by {task.headline}, not by {headline.name}"
    found.value, found.error, found.optimum, found.gap = headline.value, headline.error, headline.optimum, headline.gap
    found.unit, found.note = headline.unit, headline.note
    found.score, found.score_error = measured.score, measured.score_error


def _played(found: Standing, variant: Variant, player: Agent, seed: int, minutes: float) -> None:
    """Fill in the share of wins against optimal play, without luck, where its values are known."""
    if variant.facts.num_seats != 2:
        return
    try:
        values = response_values(variant, AGAINST, done=within(minutes))
    except (TooLong, ValueError):
        return

    def play(games: int, told: Any) -> Any:
        return evaluate(variant, player, AGAINST, games, seed=seed, values=values, done=lambda amount: told(amount, games))

    games, worth = _in_time(minutes, PLAYED, play)
    if games is not None and worth.unit == GAMES_WON:
        found.wins, found.wins_error = worth.value, worth.error
        share = f"{plus_minus(worth.value, worth.error, percent=True)} %"
        found.missing = f"wins {share} against {AGAINST} ({games:,} games, without luck), but {found.missing}"


def _against_field(
    found: Standing, task: Task, variant: Variant, player: Agent, seed: int, sample: int | None, minutes: float
) -> None:
    """Fill in the share of wins at a table with the field, and its Elo rating."""
    seats = variant.facts.num_seats
    players = [player, *map(resolve, task.field)]

    def play(games: int, told: Any) -> Any:
        return play_table(variant, players, games, seed, lambda amount: told(amount, games))

    games, returns = _in_time(minutes, FIELD_GAMES if sample is None else (min(sample, MOST_GAMES),), play)
    if games is None:
        found.missing = f"{FIELD_GAMES[-1]:,} games would take more than {minutes:g} minutes"
        return
    share = float((returns[:, 0] >= returns.max(axis=1) - 1e-6).mean())
    half = share_half_width(share, games)
    found.value, found.error, found.unit = share, half, "of games"
    # `_elo` adds half a win and half a loss, so that shares of 0 and 1 have a rating.
    low, middle, high = (_elo(each, seats, games) for each in (share - half, share, share + half))
    found.elo, found.elo_error = middle, (high - low) / 2
    found.note = f"{games:,} games; an even share is {1 / seats:.4g}"


def _elo(share: float, seats: int, games: int) -> float:
    """Convert a share of wins to Elo points above the others, assuming that these are equally strong."""
    wins = min(max(share, 0.0), 1.0) * games
    return 400 * math.log10((seats - 1) * (wins + 0.5) / (games - wins + 0.5))


def _milliseconds(variant: Variant, player: Agent, games: int, seed: int) -> float:
    """Time a move in milliseconds, with this number of games at once and the agent in every seat."""
    states = np.zeros(games, variant.game.state)
    dealt, streams = (new_streams(each, games) for each in np.random.SeedSequence(seed).spawn(2))
    states["rng"] = dealt["rng"]
    index = np.arange(games)
    seconds, moves, warm = 0.0, 0, False
    while seconds < TIMING:
        playing = index[states["seat"] != OVER] if warm else index[:0]
        if not len(playing):
            variant.kernels.deal(variant.params, states, index)
            playing = index[states["seat"] != OVER]
        start = time.perf_counter()
        actions = ask(player, variant, states, playing, streams)
        if warm:  # the first move may compile or load something
            seconds += time.perf_counter() - start
            moves += len(playing)
        warm = True
        variant.kernels.play(variant.params, states, playing, actions)
    return 1000 * seconds / moves


def board(
    tasks: Sequence[str | Task] = (),
    agents: Sequence[str] | None = None,
    seed: int = 0,
    sample: int | None = None,
    minutes: float = 3.0,
    done: Callable[[float], Any] = lambda amount: None,
    workers: Workers = HERE,
) -> Board:
    """Measure agents on tasks, the package's or your own.

    Args:
        tasks: names in `dice_envs.TASKS`, or Tasks of your own; all if left out.
        agents: specs of agents, also of your own (`FILE.py:CLASS`); the usual ones of each game if left out. Random play is
            always measured.
        seed: fixes all random draws.
        sample: deals or games to sample where there are too many for all of them; None: the game's number, fewer where
            that would take too long.
        minutes: time limit of one agent on one task.
        done: progress callback, called after each agent on each task.
        workers: run the parts, each an agent on a task.

    Returns:
        The board, each task's best agent first.

    Raises:
        ValueError: there is no such task, or wrong arguments.
    """
    check_range("minutes", minutes, 0, MOST_MINUTES, whole=False)
    if sample is not None:
        check_range("sample", sample, 2, MOST_GAMES)
    unknown = [each for each in tasks if isinstance(each, str) and each not in TASKS]
    if unknown:
        raise ValueError(f"there is no task {shown(unknown[0])}; tasks are: {', '.join(TASKS)}")
    seed = check_seed(seed)
    wanted = [TASKS[each] if isinstance(each, str) else each for each in tasks or TASKS]
    parts = [(task.name if TASKS.get(task.name) == task else task, spec) for task, spec in plan(wanted, agents)]
    found = [Standing(**each) for each in workers.run(_standing, (seed, sample, minutes), parts, done=done)]
    places = []
    for task in wanted:
        mine = sorted((each for each in found if each.task == task.name), key=_order)
        places.append(TaskBoard(**{**vars(task), "options": dict(task.options)}, standings=mine))
    return Board(seed, sample, places, versions())


def _order(standing: Standing) -> tuple[Any, ...]:
    """Sort key, the best first: by score or Elo, then by the gap; agents without figures come last."""
    worth = [each for each in (standing.score, standing.elo) if each is not None]
    gap = math.inf if standing.gap is None else standing.gap
    return bool(standing.missing), -worth[0] if worth else 0.0, gap


def unmeasured(found: Board, names: Sequence[str]) -> str:
    """Return why the first of the named agents without any figure has none; empty if each is measured on some task."""
    for name in names:
        mine = [each for place in found.tasks for each in place.standings if each.agent == name]
        if all(each.missing for each in mine):
            return f"{name} is measured on none of these tasks; on {mine[0].task}: {mine[0].missing}"
    return ""
