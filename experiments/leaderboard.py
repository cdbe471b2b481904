"""The board: every agent on every task that it can play, by its distance from optimal play."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import inspect
import math
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import TASKS, Task, Variant, agents, measure, names
from dice_envs.agent import Agent, ask, check_plays, resolve
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.core.options import check_range, check_seed, options_text, shown
from dice_envs.exact import asked
from dice_envs.exact.intervals import wilson_half_width
from dice_envs.experiments.arena import MOST_GAMES, play_table
from dice_envs.experiments.jobs.workers import HERE, Workers
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.names import LONGEST, short
from dice_envs.experiments.ui.page import Section, versions
from dice_envs.experiments.ui.plots import saved_plot

__all__ = [
    "INTRO",
    "Board",
    "Place",
    "Standing",
    "board",
    "chosen",
    "made_by",
    "markdown",
    "plan",
    "plot",
    "sections",
    "show",
    "source_of",
    "unmeasured",
]

# Instead of an agent's own defaults: what is worth a row of the board.
SPECS: dict[str, tuple[str, ...]] = {
    "mcts": ("mcts:30",),
    "ppo": ("ppo", "ppo:greedy=true"),
    "numbers": ("numbers:bluff=0", "numbers:bluff=0.5"),
    "thirties": ("thirties:beginner", "thirties:heuristic", "thirties:goal"),
    "greedy": ("greedy", "greedy:permutations"),
    "thompson": ("thompson", "thompson:permutations"),
    "adaptive": (),  # it is measured as it begins a match, where it plays as `nash` does
    "champion": ("champion",),
}
SAMPLES = (None, 2000, 200)  # deals or games to look at, fewer where more take too long; None: the game's own number
FIELD_GAMES = (100_000, 5000, 500)  # the same against a field
LOOKS = 2.0  # seconds after which the time that is left can be told
MUCH_LESS = 50  # times; so much shorter than foretold may a measurement be
TIMED = 256  # games of the batch in which moves are timed
TIMING = 0.5  # seconds, at least one move
MOST_MINUTES = 10_000
LEADERS = 3  # in the summary
UNKNOWN = "–"  # in a table
LONGEST_REASON = 130  # characters of why an agent is missing, on the terminal


@dataclasses.dataclass
class Standing:
    """What one agent reaches on one task. What is not known is None.

    Attributes:
        task, agent: their names.
        value, error: of the headline, and half of its 95 % interval, 0 where it is exact.
        optimum, gap: what optimal play reaches, and the distance from it; None against a field.
        score, score_error: 0 for uniformly random play, 1 for optimal play.
        elo, elo_error: against a field, whose agents have 0 together; by the share of wins.
        batch_ms, alone_ms: milliseconds a move where it is asked for TIMED games at once, and for one.
        steps, minutes: of training, where its file says so.
        note: what a reader should know, such as the sample taken.
        missing: why there is nothing; else empty.
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


@dataclasses.dataclass
class Place:
    """A task and how the agents stand on it: those that were measured, the best first, then the others."""

    name: str
    game: str
    options: dict[str, Any]
    headline: str
    asks: str
    field: list[str]
    standings: list[Standing]


@dataclasses.dataclass
class Board:
    """All of it, as JSON holds it."""

    seed: int
    sample: int | None
    tasks: list[Place]
    versions: dict[str, str]


class _TooLong(Exception):
    """What is asked for would take longer than it may."""


# --- who plays what ---------------------------------------------------------------------------------------------------


def usual_agents(game: str) -> list[str]:
    """Specs of the agents of a game that need no parameters, and of those that play any."""
    found: list[str] = []
    for name, factory in agents.for_game(game).items():
        needed = [field for field in dataclasses.fields(factory) if field.init and _is_needed(field)]
        found += SPECS.get(name, () if needed else (name,))
    return found


def _is_needed(field: Any) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def chosen(words: Sequence[str]) -> tuple[list[Task], list[str]]:
    """Tasks and specs of agents, from words in any order: a task's name, a game's for all of its tasks, or a spec.

    All tasks where none is named; no specs mean the usual ones.

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
        elif word.partition(":")[0] in agents.factories():
            agents.make(word)
            specs.append(word)
        else:
            raise ValueError(f"{shown(word)} is no task and no agent; tasks are: {', '.join(TASKS)}; `agents` lists the agents")
    return list(tasks.values()) or list(TASKS.values()), list(dict.fromkeys(specs))


def made_by(text: str) -> Callable[[Variant], Any]:
    """What makes an agent for a variant, from MODULE:FACTORY. The current folder is searched for the module.

    FACTORY is called without arguments, or with the variant if it needs one. It returns what `dice_envs.measure` takes.

    Raises:
        ValueError: it is not so written, or there is no such module or factory.
    """
    module_name, colon, name = text.partition(":")
    if not colon or not name or not module_name:
        raise ValueError(f"--agent must be MODULE:FACTORY, not {shown(text)}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as problem:
        if problem.name is not None and (module_name + ".").startswith(problem.name + "."):
            raise ValueError(f"--agent {shown(text)}: there is no module {problem.name} in {here} or installed") from None
        raise ValueError(f"--agent {shown(text)}: {module_name} imports {problem.name}, which is not installed") from None
    except Exception as problem:
        raise ValueError(f"--agent {shown(text)}: {module_name} cannot be imported: {_words(problem)}") from None
    factory = getattr(module, name, None)
    if not callable(factory):
        what = "has no" if factory is None else "has, not as something to call,"
        raise ValueError(f"--agent {shown(text)}: {module_name} {what} {name}")
    needed = _needed(factory)
    if len(needed) > 1:
        raise ValueError(f"--agent {shown(text)}: {name} must take nothing or the variant, not {', '.join(needed)}")

    def make(variant: Variant) -> Any:
        try:
            return factory(variant) if needed else factory()
        except Exception as problem:
            raise ValueError(f"{name} has failed: {_words(problem)}") from problem

    return make


def source_of(text: str) -> str:
    """A hash of the file that holds the module of MODULE:FACTORY, which `made_by` has imported; empty if there is none."""
    path = getattr(sys.modules[text.partition(":")[0]], "__file__", None)
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""


def _needed(function: Callable[..., Any]) -> list[str]:
    """Names of the arguments that a function cannot do without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of some built-in ones
        return []
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.default is each.empty and each.kind in by_place]


def _words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"


def plan(tasks: Sequence[Task], specs: Sequence[str] | None, others: Mapping[str, Any]) -> list[tuple[Task, str, Any]]:
    """What is to be measured: task, agent's name, and the agent, its spec, or what makes it; see `board`."""
    rows: list[tuple[Task, str, Any]] = []
    for task in tasks:
        own = usual_agents(task.game) if specs is None else specs
        rows += [(task, spec, spec) for spec in dict.fromkeys(["random", *own])]
        rows += [(task, name, agent) for name, agent in others.items()]
    return rows


# --- measuring --------------------------------------------------------------------------------------------------------


def _within(minutes: float) -> Callable[[float, float], Any]:
    """What is told of progress, and raises _TooLong after so many minutes, or once it is plain that they will not do.

    Positions that an agent never reaches are not asked at, so the whole may take far less than its first part foretells.
    """
    start, amount_done = time.perf_counter(), 0.0

    def told(amount: float, total: float) -> None:
        nonlocal amount_done
        amount_done += amount
        seconds = time.perf_counter() - start
        if seconds > 60 * minutes or (seconds > LOOKS and seconds * total > MUCH_LESS * 60 * minutes * amount_done):
            raise _TooLong(f"{total:,.0f} positions")

    return told


def _standing(
    seed: int, sample: int | None, minutes: float, task: str | Task, name: str, agent: Any, done: Any
) -> dict[str, Any]:
    """One agent on one task, as JSON holds it."""
    of = TASKS[task] if isinstance(task, str) else task
    found = Standing(of.name, name)
    variant = of.variant
    try:
        plays = isinstance(agent, str) or hasattr(agent, "act") or hasattr(agent, "probabilities")
        if not plays and callable(agent) and len(_needed(agent)) < 2:  # one of two is a policy function
            agent = agent(variant)
        player: Any = asked(agent, variant)
        original = resolve(agent) if isinstance(agent, str) else agent if hasattr(agent, "act") else player
        check_plays(original, variant)
        by_play = _against_field if of.field else _measured
        by_play(found, of, variant, agent, original, seed, sample, minutes)
        if not found.missing:
            about = getattr(player.agent, "about", None) or {}
            found.steps, found.minutes = about.get("steps"), about.get("minutes")
            found.batch_ms, found.alone_ms = (_milliseconds(variant, original, games, seed) for games in (TIMED, 1))
    except (ValueError, ImportError, MemoryError) as problem:
        found.missing = _words(problem) if isinstance(problem, MemoryError) else " ".join(str(problem).split())
    except Exception as problem:
        if isinstance(agent, str):
            raise
        found.missing = _words(problem)  # somebody else's agent; the others go on
    done(1)
    return dataclasses.asdict(found)


def _measured(
    found: Standing, task: Task, variant: Variant, agent: Any, player: Agent, seed: int, sample: int | None, minutes: float
) -> None:
    """Fill in what `measure` finds, with a smaller sample where the usual one takes too long."""
    why = ""
    for size in SAMPLES if sample is None else (sample,):
        try:
            measured = measure(variant, agent, seed=seed, sample=size, done=_within(minutes))
        except _TooLong as problem:
            why = f"it would take more than {minutes:g} minutes: it is to be asked at {problem}"
            continue
        headline = measured.measures[0]
        assert headline.name == task.headline, f"{task.name} is by {task.headline}, not by {headline.name}"
        found.value, found.error, found.optimum, found.gap = headline.value, headline.error, headline.optimum, headline.gap
        found.unit, found.note = headline.unit, headline.note
        found.score, found.score_error = measured.score, measured.score_error
        return
    found.missing = why


def _against_field(
    found: Standing, task: Task, variant: Variant, agent: Any, player: Agent, seed: int, sample: int | None, minutes: float
) -> None:
    """Fill in what it wins at a table with the field, and the Elo rating of that."""
    seats = variant.facts.num_seats
    players = [player, *map(resolve, task.field)]
    for games in FIELD_GAMES if sample is None else (min(sample, MOST_GAMES),):
        told = _within(minutes)
        try:
            returns = play_table(variant, players, games, seed, lambda amount, told=told, games=games: told(amount, games))  # type: ignore[misc]
        except _TooLong:
            continue
        share = float((returns[:, 0] >= returns.max(axis=1) - 1e-6).mean())
        half = wilson_half_width(share, games)
        found.value, found.error, found.unit = share, half, "of games"
        # Half a win more and half a game lost, so that all or nothing has a rating.
        low, middle, high = (_elo(each, seats, games) for each in (share - half, share, share + half))
        found.elo, found.elo_error = middle, (high - low) / 2
        found.note = f"{games:,} games; an even share is {1 / seats:.4g}"
        return
    found.missing = f"{FIELD_GAMES[-1]:,} games would take more than {minutes:g} minutes"


def _elo(share: float, seats: int, games: int) -> float:
    """What a share of wins at a table of so many is in Elo points above each of the others, were these alike."""
    wins = min(max(share, 0.0), 1.0) * games
    return 400 * math.log10((seats - 1) * (wins + 0.5) / (games - wins + 0.5))


def _milliseconds(variant: Variant, player: Agent, games: int, seed: int) -> float:
    """Milliseconds a move in so many games at once, in which the agent has every seat."""
    states, streams = np.zeros(games, variant.game.state), new_streams(seed + 1, games)
    states["rng"] = new_streams(seed, games)["rng"]
    index = np.arange(games)
    seconds, moves, warm = 0.0, 0, False
    while seconds < TIMING:
        playing = index[states["seat"] != OVER] if warm else index[:0]
        if not len(playing):
            variant.kernels.deal(variant.params, states, index)
            playing = index[states["seat"] != OVER]
        start = time.perf_counter()
        actions = ask(player, variant, states, playing, streams)
        if warm:  # the first time it may compile or load something
            seconds += time.perf_counter() - start
            moves += len(playing)
        warm = True
        variant.kernels.play(variant.params, states, playing, actions)
    return 1000 * seconds / moves


def board(
    tasks: Sequence[str | Task] = (),
    agents: Sequence[str] | None = None,
    others: Mapping[str, Any] | None = None,
    seed: int = 0,
    sample: int | None = None,
    minutes: float = 3.0,
    done: Callable[[float], Any] = lambda amount: None,
    workers: Workers = HERE,
) -> Board:
    """Measure agents on tasks, one of the package's own or yours.

    Args:
        tasks: names in `dice_envs.TASKS`, or Tasks of your own; all if left out.
        agents: their specs; the usual ones of each game if left out. Random play is always there.
        others: agents of yours by name: whatever `dice_envs.measure` takes, or a function that makes it for a variant.
        seed: fixes all that is drawn.
        sample: deals or games to look at where there are too many for all of them; None: the game's number, and fewer for
            those that would take too long.
        minutes: how long one agent on one task may take.
        done: told of each that is done.
        workers: do the parts, each an agent on a task.

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
    check_seed(seed)
    wanted = [TASKS[each] if isinstance(each, str) else each for each in tasks or TASKS]
    rows = plan(wanted, agents, others or {})
    parts = [(task.name if TASKS.get(task.name) == task else task, name, agent) for task, name, agent in rows]
    found = [Standing(**each) for each in workers.run(_standing, (seed, sample, minutes), parts, done=done)]
    places = []
    for task in wanted:
        mine = [each for each in found if each.task == task.name]
        mine.sort(key=_order)
        options = dict(task.options)
        places.append(Place(task.name, task.game, options, task.headline, task.asks, list(task.field), mine))
    return Board(seed, sample, places, versions())


def _order(standing: Standing) -> tuple[Any, ...]:
    """The best first: by score, by Elo, by the gap; those without anything last."""
    worth = [each for each in (standing.score, standing.elo) if each is not None]
    gap = math.inf if standing.gap is None else standing.gap
    return bool(standing.missing), -worth[0] if worth else 0.0, gap


# --- showing ----------------------------------------------------------------------------------------------------------

INTRO = (
    "Every agent on every named task that it can play: its distance from optimal play. A score is 0 for uniformly random play "
    "and 1 for optimal play; ± is half of a 95 % interval. Milliseconds a move are of one process, asked for many games at "
    "once and for one. Fewer deals or games are looked at where all would take too long; the notes say so."
)
HEADINGS = ("", "agent", "", "± 95 %", "gap", "score", "±", f"ms/move, {TIMED} games", "ms/move, alone")
TRAINED = ("steps trained", "minutes", "note")
WORDS = (1, len(HEADINGS) + len(TRAINED) - 1)


def _headings(place: Place) -> tuple[str, ...]:
    units = {each.unit for each in place.standings if each.unit}
    quantity = f"{place.headline} ({', '.join(units)})" if units and place.headline not in units else place.headline
    headings = [*HEADINGS, *TRAINED]
    headings[2] = quantity
    if place.field:
        headings[4:7] = ["Elo", "±", ""]
    return tuple(headings)


def _number(value: float | None, digits: int = 6) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def _cells(place: Place, number: int, each: Standing) -> tuple[str, ...]:
    """One row: of a field's task the Elo stands where others have gap and score."""
    if place.field:
        worth = [_number(each.elo, 0), _number(each.elo_error, 0), ""]
    else:
        error = "exact" if each.score_error == 0 else _number(each.score_error, 4)
        worth = [_number(each.gap), _number(each.score, 4), error]
    return (
        str(number),
        each.agent,
        _number(each.value),
        "exact" if each.error == 0 else _number(each.error),
        *worth,
        UNKNOWN if each.batch_ms is None else f"{each.batch_ms:.3g}",
        UNKNOWN if each.alone_ms is None else f"{each.alone_ms:.3g}",
        UNKNOWN if each.steps is None else f"{each.steps:,}",
        _number(each.minutes, 1),
        each.note,
    )


def _rows(place: Place) -> list[tuple[str, ...]]:
    return [_cells(place, number, each) for number, each in enumerate((s for s in place.standings if not s.missing), start=1)]


def _missing(place: Place) -> list[str]:
    return [f"– {each.agent}: {each.missing}" for each in place.standings if each.missing]


def _about_task(place: Place) -> list[str]:
    random, optimum = _random(place), _first(place, "optimum")
    facts = [f"{place.game} ({options_text(place.options)})"]
    facts += [] if random is None else [f"random play {random:.6g}"]
    facts += [] if optimum is None else [f"optimal play {optimum:.6g}"]
    facts += [f"the field: {', '.join(place.field)}; optimal play is not known"] if place.field else []
    return [f"{place.asks[0].upper()}{place.asks[1:]}.", "; ".join(facts) + "."]


def show(found: Board) -> None:
    """A table for each task on the terminal."""
    for place in found.tasks:
        headings, rows = _headings(place), _rows(place)
        worth = "Elo" if place.field else "score"
        columns = ("", "agent", headings[2], worth, f"ms/move, {TIMED} games / alone", "steps, minutes of training")
        cells = []
        for row in rows:
            score = (row[4], row[5]) if place.field else (row[5], row[6])
            trained = "" if row[9] == UNKNOWN else f"{row[9]}, {row[10]}"
            figures = (_with_error(row[2], row[3]), _with_error(*score), f"{row[7]} / {row[8]}")
            cells.append((row[0], short(row[1]), *figures, trained))
        Grid(f"{place.name}: {place.asks}", columns, cells, words=(1,), whole=(1,)).show()
        for line in _missing(place):
            console.whole_line(f"  {line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + '…'}")
        for row in rows:
            if len(row[1]) > LONGEST:
                console.whole_line(f"  {row[0]} = {row[1]}")


def _with_error(value: str, error: str) -> str:
    return value if error in ("exact", UNKNOWN) else f"{value} ± {error}"


def _first(place: Place, field: str) -> float | None:
    """A field of the first standing that has it."""
    return next((getattr(each, field) for each in place.standings if getattr(each, field) is not None), None)


def _random(place: Place) -> float | None:
    """What random play reaches."""
    return next((each.value for each in place.standings if each.agent == "random"), None)


def _summary(found: Board) -> Grid:
    """Who leads on each task."""
    rows = []
    for place in found.tasks:
        worths = [
            (each.agent, f"{each.score:.3f}" if each.elo is None else f"Elo {each.elo:+.0f}")
            for each in place.standings
            if not each.missing and (each.score is not None or each.elo is not None)
        ]
        leaders = [f"{agent}: {worth}" for agent, worth in worths[:LEADERS]]
        leaders += [""] * (LEADERS - len(leaders))
        rows.append(
            (
                place.name,
                place.headline,
                *(UNKNOWN if each is None else f"{each:.5f}" for each in (_random(place), _first(place, "optimum"))),
                *leaders,
            )
        )
    headings = ("task", "quantity", "random play", "optimal play", "first", "second", "third")
    return Grid("who leads, and the score", headings, rows, (0, 1, 4, 5, 6))


def sections(found: Board, plots: Sequence[Any] = ()) -> list[Section]:
    """The board as a page shows it."""
    parts = [Section("All tasks", grids=[_summary(found)], plots=plots)]
    for place in found.tasks:
        grid = Grid(place.headline, _headings(place), _rows(place), WORDS, _missing(place))
        parts.append(Section(place.name, _about_task(place), [grid]))
    return parts


def markdown(found: Board, command: str) -> str:
    """The board as Markdown, for the documentation."""
    lines = [
        "# The board",
        "",
        *textwrap.wrap(f"{INTRO} Tasks are `dice_envs.TASKS`. This page is made by", 128),
        "",
        "```sh",
        command,
        "```",
        "",
        f"with {', '.join(f'{name} {version}' for name, version in found.versions.items())}, seed {found.seed}.",
    ]
    for section in sections(found):
        lines += ["", f"## {section.title}", "", *section.text]
        for grid in section.grids:
            lines += ["", *grid.markdown()]
            lines += [f"\n{note}" for note in grid.notes]
    return "\n".join(lines) + "\n"


def plot(folder: Path, found: Board) -> None:
    """Scores on each task, small multiples."""
    places = [place for place in found.tasks if any(each.score is not None for each in place.standings)]
    if not places:
        return
    across = min(3, len(places))
    down = math.ceil(len(places) / across)
    most = max(sum(each.score is not None for each in place.standings) for place in places)
    size = (4.6 * across, 0.6 + down * (1.1 + 0.3 * most))
    caption = "Scores: 0 is uniformly random play, 1 optimal play. Bars are cut at −0.25."
    with saved_plot(folder, "board", caption, figsize=size, nrows=down, ncols=across, squeeze=False) as (canvas, axes):
        for axis in axes.flat[len(places) :]:
            axis.set_visible(False)
        for axis, place in zip(axes.flat, places, strict=False):
            shown_here = [each for each in place.standings if each.score is not None]
            across_here = np.arange(len(shown_here))[::-1]
            scores = np.array([each.score for each in shown_here], float)
            errors = [each.score_error or 0.0 for each in shown_here]
            axis.barh(across_here, np.maximum(scores, -0.25), 0.7, xerr=errors, color="#2a6f97", ecolor="#333333")
            axis.axvline(1, color="#e76f51", linestyle="--", linewidth=1)
            axis.axvline(0, color="grey", linewidth=0.8)
            axis.set_yticks(across_here, [short(each.agent, 22) for each in shown_here])
            axis.set_xlim(min(0.0, max(-0.25, scores.min())) - 0.02, 1.08)
            axis.set_xticks([0, 0.5, 1])
            axis.set_title(place.name, fontsize=12)
        canvas.suptitle("Score by task: 0 random, 1 optimal")


def unmeasured(found: Board, names: Sequence[str]) -> str:
    """Why the first of these agents, which were asked for, is measured on none of the tasks; empty if each is on one."""
    for name in names:
        mine = [each for place in found.tasks for each in place.standings if each.agent == name]
        if all(each.missing for each in mine):
            return f"{name} is measured on none of these tasks; on {mine[0].task}: {mine[0].missing}"
    return ""
