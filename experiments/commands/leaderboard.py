"""`leaderboard`: the board, which has every agent on every named task that it can play, by its distance from optimal play."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import shlex
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dice_envs import TASKS, Batch, Task, Variant, evaluate, measure, names, response_values
from dice_envs.agent import Agent, ask, check_plays
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.agent.specs import factories, for_game, make_agent, required, resolve
from dice_envs.core.dice import new_streams
from dice_envs.core.files import write_text
from dice_envs.core.game import OVER
from dice_envs.core.options import check_range, check_seed, options_text, shown
from dice_envs.core.own import split_own
from dice_envs.core.work import TooLong, advance, counting, work
from dice_envs.exact import asked
from dice_envs.exact.contract import GAMES_WON, plus_minus
from dice_envs.exact.intervals import mean_interval
from dice_envs.experiments import ui
from dice_envs.experiments.arena import elo_gap, play_table
from dice_envs.experiments.jobs import HERE, Workers, resumable
from dice_envs.experiments.ui import pages
from dice_envs.experiments.ui.grids import LONGEST, Grid, short, show_all

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
LEADERS = 3  # in the summary
UNKNOWN = "–"  # in a table
INTRO = (
    "Every agent on every named task that it can play, with its distance from optimal play. A score is 0 for uniformly random "
    "play and 1 for optimal play; where the task fixes the opponent, as in score dice, optimal play is the best response to "
    "it, not an equilibrium. ± is half of a 95 % interval (± ?: not known), brackets hold both limits of one; figures without "
    f"either are exact. Time per move is that of one process: {TIMED} games together, and one alone. Large games are measured "
    "on a sample, as their notes say."
)


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help="Tasks, games for all their tasks, and agents; usually all.")
    ] = None,
    sample: Annotated[int | None, ui.count_option(help="Deals or games to sample where all are too many.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Limit of an agent on a task; 3, of one agent alone 1.")] = None,
    seed: ui.SeedOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the board here as Markdown.")] = None,
    ray: ui.RayOption = None,
    resume: ui.ResumeOption = False,
) -> None:
    """The board: every agent's distance from optimal play, on every named task that it can play.

    A task is a game with options and one headline quantity (`dice_envs.TASKS`). A score is 0 for uniformly random play and 1
    for optimal play. A game's name stands for all its tasks, so the agent of thirties is named with a strategy, say
    thirties:heuristic. Where an agent cannot play a task, or not within --minutes, the board gives the reason. If it is too
    slow to be measured, but best responses to nash are known, it plays nash, and the board has its wins without luck.

    An agent of your own is FILE.py:CLASS, as in all commands. A single agent without a task is measured on all tasks that it
    plays: a line for each, and its rows for the board.

    With --json each agent's result on a task is kept when it is done; after a stop the same command with --resume continues.

    Example: leaderboard liars_dice_openspiel_1 random nash mine.py:Agent --report report
    """
    tasks, specs = chosen(names or [])
    alone = names == specs and len(specs) == 1
    tasks, usual = (played_by(specs[0], tasks), 1.0) if alone else (tasks, 3.0)
    minutes = usual if minutes is None else minutes
    ui.check_writable(markdown)
    given = {"names": [task.name for task in tasks], "agents": specs}
    with resumable(json, resume, {"board": given, "sample": sample, "minutes": minutes}, seed, ray) as (seed, workers):
        ui.console.print(f"seed {seed}")
        found = board(tasks, specs or None, seed, sample, minutes, workers, () if alone else ("random",))
        nowhere = unmeasured(found, specs)
        words = " ".join(["leaderboard", *map(shlex.quote, names or [])])
        typed = {"sample": sample, "minutes": None if minutes == usual else minutes, "seed": seed}
        command = pages.command_line(words, {**typed, "json": json, "report": report, "markdown": markdown})

        def write_report(folder: Path) -> None:
            with pages.plots_noted() as plots:
                plot_scores(folder, found)
            about = pages.About(command, {"sample": sample or "each game's own", "minutes": minutes}, seed)
            pages.write_page(folder, "dice-envs: the board", [INTRO], sections(found, plots), about)

        if not nowhere:
            ui.finish(
                *(functools.partial(show_all, [grid]) for grid in (_one_grid(found) if alone else map(_grid, found.tasks))),
                lambda: ui.write_json(json, {"command": command, **dataclasses.asdict(found)}),
                lambda: write_report(report) if report is not None else None,
                lambda: write_text(markdown, as_markdown(found, command)) if markdown is not None else None,
            )
    if nowhere:  # outside the block, so that the kept results are removed: a corrected agent needs new ones
        raise ValueError(nowhere)


@dataclasses.dataclass
class Standing:
    """Figures of one agent on one task; None where a figure is not known."""

    task: str
    agent: str
    value: float | None = None  # of the headline measure
    error: float | None = None  # half of its 95 % interval, 0 where it is exact
    optimum: float | None = None  # value of optimal play; None against a field
    gap: float | None = None  # the distance from it; None against a field
    score: float | None = None  # 0 for uniformly random play, 1 for optimal play
    score_error: float | None = None
    unit: str = ""  # of `value`
    elo: float | None = None  # rating against a field by the share of wins, where the field has 0
    elo_interval: Sequence[float] | None = None  # limits of 95 %; one is infinite if all games were won or none
    batch_ms: float | None = None  # milliseconds a move with TIMED games at once
    alone_ms: float | None = None  # the same with one game
    steps: int | None = None  # of training, as the next, where the policy file holds them
    minutes: float | None = None
    note: str = ""  # for the reader, such as the size of the sample
    missing: str = ""  # why the agent was not measured, with its share of wins without luck where that is known; else empty
    wins: float | None = None  # that share, against optimal play; None if it was measured
    wins_error: float | None = None  # half of its 95 % interval


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
    for name, factory in for_game(game).items():
        found += SPECS.get(name, () if required(factory) else (name,))
    return found


def chosen(words: Sequence[str]) -> tuple[list[Task], list[str]]:
    """Read tasks and specs of agents, also of the user's own, from words in any order: the name of a task, of a game for all
    its tasks, or a spec. Without a task it is all tasks. Without a spec the list of specs is empty, which stands for the usual
    agents. ValueError for other words."""
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
        elif split_own(word) or word.partition(":")[0] in factories():
            make_agent(word)
            specs.append(word)
        else:
            raise ValueError(f"{shown(word)} is no task and no agent; tasks are: {', '.join(TASKS)}; `agents` lists the agents")
    return list(tasks.values()) or list(TASKS.values()), list(dict.fromkeys(specs))


def played_by(spec: str, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that an agent plays; the first one if it plays none."""
    found = []
    for task in tasks:
        with contextlib.suppress(ValueError):
            check_plays(resolve(spec, task.game), task.variant)
            found.append(task)
    return found or [*tasks[:1]]


# --- measuring --------------------------------------------------------------------------------------------------------


def _standing(seed: int, sample: int | None, minutes: float, task: Task, spec: str) -> dict[str, Any]:
    """Measure one agent on one task; returns a Standing as a dict."""
    found, variant = Standing(task.name, spec), task.variant
    try:
        player = resolve(spec, task.game)
        check_plays(player, variant)
        about = getattr(asked(spec, variant).agent, "about", None) or {}
        by_play = _against_field if task.field else _measured
        by_play(found, task, variant, player, seed, sample, minutes)
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
    advance()
    return dataclasses.asdict(found)


def _in_time(minutes: float, sizes: Sequence[Any], attempt: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the first size at which `attempt` ends within the time, and its result; after failures of all, None and the
    amount of work."""
    for size in sizes:
        try:
            with work(seconds=60 * minutes):
                return size, attempt(size)
        except TooLong as problem:
            amount = str(problem)
    return None, amount


def _measured(
    found: Standing, task: Task, variant: Variant, player: Agent, seed: int, sample: int | None, minutes: float
) -> None:
    """Fill in the measured figures, from a smaller sample where the usual one takes too long."""
    sizes = SAMPLES if sample is None else (sample,)
    _, measured = _in_time(minutes, sizes, lambda size: measure(variant, found.agent, seed=seed, sample=size))
    if isinstance(measured, str):
        found.missing = f"it would take more than {minutes:g} minute{'s' * (minutes != 1)}: there are {measured} to evaluate"
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
        values = response_values(variant, AGAINST)  # the opponent's solution may take longer: the limit is the agent's
    except ValueError:
        return

    def play(games: int) -> Any:
        return evaluate(variant, player, AGAINST, games, seed=seed, values=values)

    games, played = _in_time(minutes, PLAYED, play)
    if games is not None and played.unit == GAMES_WON:
        found.wins, found.wins_error = played.value, played.error
        share = f"{plus_minus(played.value, played.error, percent=True)} %"
        found.missing = f"wins {share} against {AGAINST} ({games:,} games, without luck), but {found.missing}"


def _against_field(
    found: Standing, task: Task, variant: Variant, player: Agent, seed: int, sample: int | None, minutes: float
) -> None:
    """Fill in the share of wins at a table with the field, and its Elo rating."""
    seats = variant.facts.num_seats
    players = [player, *map(resolve, task.field)]

    def play(games: int) -> Any:
        with counting(games):
            return play_table(variant, players, games, seed)

    games, returns = _in_time(minutes, FIELD_GAMES if sample is None else (min(sample, MOST_GAMES),), play)
    if games is None:
        found.missing = f"{FIELD_GAMES[-1]:,} games would take more than {minutes:g} minute{'s' * (minutes != 1)}"
        return
    share = float((returns[:, 0] >= returns.max(axis=1) - 1e-6).mean())
    low, high = mean_interval(np.array([0.0, 1.0]), 0.0, 1.0, np.array([1 - share, share]) * games)
    found.value, found.error, found.unit = share, max(share - low, high - share), "of games"
    # Half a win and half a loss more, so that shares of 0 and 1 have a rating.
    found.elo = elo_gap((share * games + 0.5) / (games + 1), seats - 1)
    found.elo_interval = elo_gap(low, seats - 1), elo_gap(high, seats - 1)
    found.note = f"{games:,} games; an even share is {1 / seats:.4g}"


def _milliseconds(variant: Variant, player: Agent, games: int, seed: int) -> float:
    """Time a move in milliseconds, with this number of games at once and the agent in every seat."""
    batch, streams = Batch(variant, games, seed), new_streams(np.random.SeedSequence(seed).spawn(1)[0], games)
    ask(player, variant, batch.states, np.arange(games), streams)  # the first move may compile or load something
    seconds, moves = 0.0, 0
    while seconds < TIMING:
        playing = np.flatnonzero(batch.seats != OVER)
        start = time.perf_counter()
        actions = ask(player, variant, batch.states, playing, streams)
        seconds += time.perf_counter() - start
        moves += len(playing)
        batch.play(actions, playing)
        if (batch.seats == OVER).all():
            batch.deal()
    return 1000 * seconds / moves


def board(
    tasks: Sequence[str | Task] = (),
    agents: Sequence[str] | None = None,
    seed: int = 0,
    sample: int | None = None,
    minutes: float = 3.0,
    workers: Workers = HERE,
    beside: Sequence[str] = ("random",),
) -> Board:
    """Measure agents on tasks, the package's or your own, and show the progress. Each task's best agent comes first.

    Args:
        tasks: names in `dice_envs.TASKS`, or Tasks of your own; all if left out.
        agents: specs of agents, also of your own (`FILE.py:CLASS`); the usual ones of each game if left out.
        seed: fixes all random draws.
        sample: deals or games to sample where there are too many for all of them; None: the game's number, fewer where
            that would take too long.
        minutes: time limit of one agent on one task.
        workers: run the parts, each an agent on a task.
        beside: specs of agents that are measured, too.

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
    specs = {task.game: usual_agents(task.game) if agents is None else agents for task in wanted}
    parts = [(task, spec) for task in wanted for spec in dict.fromkeys([*beside, *specs[task.game]])]
    with ui.progress("agents on tasks", len(parts)):
        found = [Standing(**each) for each in workers.run(_standing, (seed, sample, minutes), parts)]
    boards = []
    for task in wanted:
        mine = sorted((each for each in found if each.task == task.name), key=_order)
        boards.append(TaskBoard(**{**vars(task), "options": dict(task.options)}, standings=mine))
    return Board(seed, sample, boards, pages.versions())


def _order(standing: Standing) -> tuple[Any, ...]:
    """Sort key, the best first: by score or Elo, then by the gap; agents without figures come last."""
    known = [each for each in (standing.score, standing.elo) if each is not None]
    gap = math.inf if standing.gap is None else standing.gap
    return bool(standing.missing), -known[0] if known else 0.0, gap


def unmeasured(found: Board, names: Sequence[str]) -> str:
    """Return why the first of the named agents without any figure has none; empty if each is measured on some task."""
    for name in names:
        mine = [each for task in found.tasks for each in task.standings if each.agent == name]
        if all(each.missing for each in mine):
            return f"{name} is measured on none of these tasks; on {mine[0].task}: {mine[0].missing}"
    return ""


# --- the board on the terminal, on a page, as Markdown and as a plot ------------------------------------------------


def _cell(value: float | None, error: float | None, digits: int) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:.{digits}f} ± ?" if error is None else plus_minus(value, error or None, digits)


def _grid(task: TaskBoard) -> Grid:
    """Return the agents of a task, the best first; notes have what was sampled, long names and why agents are missing."""
    rows, noted = [], dict[str, list[str]]()
    measured = [each for each in task.standings if not each.missing]
    for number, each in enumerate(measured, start=1):
        rating = _cell(each.score, each.score_error, 4)
        if task.field and each.elo is not None and each.elo_interval is not None:
            rating = "{:.0f} ({:.0f}…{:.0f})".format(each.elo, *each.elo_interval).replace("inf", "∞")
        times = [UNKNOWN if ms is None else f"{ms:.3g}" for ms in (each.batch_ms, each.alone_ms)]
        trained = "" if each.steps is None else f"{each.steps:,}, {_cell(each.minutes, 0.0, 1)}"
        figures = (_cell(each.value, each.error, 6), rating, " / ".join(times), trained)
        rows.append((str(number), short(each.agent), *figures))
        if each.note:
            noted.setdefault(each.note, []).append(each.agent)
    notes = [note if len(names) == len(rows) else f"{', '.join(names)}: {note}" for note, names in noted.items()]
    notes += [f"{number} = {each.agent}" for number, each in enumerate(measured, start=1) if len(each.agent) > LONGEST]
    notes += [f"– {each.agent}: {each.missing}" for each in task.standings if each.missing]
    units = {each.unit for each in measured if each.unit}
    quantity = f"{task.headline} ({', '.join(units)})" if units and task.headline not in units else task.headline
    scale = "Elo" if task.field else "score"
    headings = ("", "agent", quantity, scale, f"ms/move, {TIMED} games / alone", "steps, minutes of training")
    return Grid(f"{task.name}: {task.asks}", headings, rows, (1, 5), notes, whole=(1,))


def _one_grid(found: Board) -> list[Grid]:
    """Return a line for each task of a board with one agent; notes have the agent's rows in the board's tables."""
    rows, notes = [], ["its rows for the board, in Markdown:"]
    for task in found.tasks:
        (own,) = task.standings
        rating = f"Elo {own.elo:.0f}" if own.elo is not None else _cell(own.score, own.score_error, 4)
        rows.append((task.name, task.headline, _cell(own.value, own.error, 4), _cell(own.optimum, 0.0, 4), rating))
        notes.append(f"{task.name}: {own.missing or _grid(task).markdown()[2].replace('| 1 |', '|  |', 1)}")
    return [Grid(found.tasks[0].standings[0].agent, ("task", "quantity", "value", "optimal", "score"), rows, (0, 1), notes)]


def _about_task(task: TaskBoard) -> list[str]:
    random, optimum = _compared(task)
    facts = [f"{task.game} ({options_text(task.options)})"]
    facts += [] if random is None else [f"random play {random:.6g}"]
    facts += [] if optimum is None else [f"optimal play {optimum:.6g}"]
    facts += [f"the field: {', '.join(task.field)}; optimal play is not known"] if task.field else []
    return [f"{task.asks[0].upper()}{task.asks[1:]}.", "; ".join(facts) + "."]


def _compared(task: TaskBoard) -> list[float | None]:
    """Return the values of random and of optimal play, None where they are not known."""
    found = ([each.value for each in task.standings if each.agent == "random"], [each.optimum for each in task.standings])
    return [next((value for value in values if value is not None), None) for values in found]


def _summary(found: Board) -> Grid:
    """The leading agents of each task."""
    rows = []
    for task in found.tasks:
        leaders = [
            f"{each.agent}: {each.score:z.3f}" if each.elo is None else f"{each.agent}: Elo {each.elo:+z.0f}"
            for each in task.standings
            if not each.missing and (each.score is not None or each.elo is not None)
        ]
        leaders = [*leaders, *[""] * LEADERS][:LEADERS]
        rows.append((task.name, task.headline, *(_cell(each, 0.0, 5) for each in _compared(task)), *leaders))
    headings = ("task", "quantity", "random play", "optimal play", "first", "second", "third")
    return Grid("who leads, and the score", headings, rows, (0, 1, 4, 5, 6))


def sections(found: Board, plots: Sequence[pages.Plot] = ()) -> list[pages.Section]:
    """Return the board as sections of a page."""
    parts = [pages.Section("All tasks", grids=[_summary(found)], plots=plots)]
    return parts + [pages.Section(task.name, _about_task(task), [_grid(task)]) for task in found.tasks]


def as_markdown(found: Board, command: str) -> str:
    """Return the board as Markdown, for the documentation."""
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


def plot_scores(folder: Path, found: Board) -> None:
    """Save a plot of the scores, one panel a task."""
    boards = [task for task in found.tasks if any(each.score is not None for each in task.standings)]
    if not boards:
        return
    across = min(3, len(boards))
    down = math.ceil(len(boards) / across)
    most = max(sum(each.score is not None for each in task.standings) for task in boards)
    size = (4.6 * across, 0.6 + down * (1.1 + 0.3 * most))
    caption = "Scores: 0 is uniformly random play, 1 optimal play. Bars are cut at −0.25; hatched: ± is not known."
    with pages.saved_plot(folder, "board", caption, figsize=size, nrows=down, ncols=across, squeeze=False) as (canvas, axes):
        for axis in axes.flat[len(boards) :]:
            axis.set_visible(False)
        for axis, task in zip(axes.flat, boards, strict=False):
            shown_here = [each for each in task.standings if each.score is not None]
            scores = np.array([each.score for each in shown_here], float)
            names, errors = zip(*((short(each.agent, 22), each.score_error) for each in shown_here), strict=True)
            pages.bars(axis, names, np.maximum(scores, -0.25), errors)
            axis.axvline(1, color=pages.ORANGE, linestyle="--", linewidth=1)
            axis.axvline(0, color="grey", linewidth=0.8)
            axis.set_xlim(min(0.0, max(-0.25, scores.min())) - 0.02, 1.08)
            axis.set_xticks([0, 0.5, 1])
            axis.set_title(task.name, fontsize=12)
        canvas.suptitle("Score by task: 0 random, 1 optimal")
