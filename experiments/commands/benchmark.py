"""`benchmark language`: what players who speak in words give away, by the exact price of every move.

Positions of a task are drawn with the values of their moves. Players are asked there and in games, and what their moves give
away is added up. All players move through words: language models, and scripted agents beside them
(`dice_envs.envs.text.InWords`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dice_envs import TASKS, ActionValues, Agent, ResponseValues, Task, action_values, evaluate, response_values
from dice_envs.agent import ask, check_needs, check_plays, fresh_memory, promises_of
from dice_envs.agent.matches import GAMES_ASKED
from dice_envs.agent.specs import resolve
from dice_envs.agents.chat import Chat, ChatMeter, Tally, logged
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.options import check_range, did_you_mean, shown
from dice_envs.core.work import advance, counting, hinting
from dice_envs.envs.text import InWords
from dice_envs.evaluation import NO_COST, check_games, costs_of
from dice_envs.exact import GameExact
from dice_envs.exact.contract import Unit
from dice_envs.exact.intervals import half_width, share_half_width
from dice_envs.experiments import ui
from dice_envs.experiments.commands.leaderboard import usual_agents
from dice_envs.experiments.jobs import HERE, Workers, resumable
from dice_envs.experiments.learners.command import learners
from dice_envs.experiments.ui.grids import Grid, show_all
from dice_envs.experiments.ui.pages import About, Section, command_line, plots_noted, saved_plot, write_page
from dice_envs.table.sitting import PERSON, Sitting

DEFAULT_TASKS = ("liars_dice_openspiel_1", "liars_dice_3", "fatestones", "thirties_maximize", "shakes_3")
EXPLORES = 0.25  # chance of a move at random in the games from which the positions come
MOST_GAMES = 100  # tried for each position that is wanted
ASKED = 32  # positions in a part of the work: what is lost at a stop
BINS = (0.0, 0.05, 0.35, 0.65, 0.95, 1.0)  # of the solution's chance of a bluff
MOST_POSITIONS = 10_000
MOST_COLUMNS = 6  # of a table on the terminal; all tables are on the page
INTRO = (
    "Every player moves through words: a prompt, and a reply. Regret is what a move gives away with optimal play afterwards, "
    "computed exactly. The result is against optimal play, with the luck taken out."
)


def language(
    players: Annotated[
        list[str] | None, typer.Argument(help="Players beside the usual ones, say chat:MODEL,url=URL; or any agents.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="A named task; repeat it. Five of them if left out.")] = None,
    positions: Annotated[int, ui.count_option("--positions", help="Number of positions of each task.")] = 200,
    games: Annotated[int, ui.count_option("--games", help="Number of games of each task; seats rotate.")] = 200,
    seed: Annotated[int, typer.Option(help="Fixes positions, dice and draws. Compare only results with the same seed.")] = 0,
    references: Annotated[bool, typer.Option(help="Whether the scripted agents of each game are measured, too.")] = True,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    resume: ui.ResumeOption = False,
) -> None:
    """Language models at the table: exact regret, illegal replies, bluffs beside the solution's, results without luck.

    Each player is asked at fixed positions, which it sees in words, and plays games against optimal play. Every move has an
    exact price. The games' usual agents play through the same words, for comparison.

    A model's server has the OpenAI chat form; the key is taken from the environment. A reply without a legal move is asked
    again once, then a random move is played; both are counted. With --json all replies are written beside that file, and
    finished parts are kept there; after a stop the same command with --resume continues.

    Example: benchmark language chat:llama-3,url=http://127.0.0.1:8080/v1 --task liars_dice_3 --json result.json
    """
    for name in task or ():
        if name not in TASKS:
            raise ValueError(f"no task {shown(name)}; tasks are: {', '.join(TASKS)}{did_you_mean(name, TASKS)}")
    tasks = [TASKS[name] for name in task or DEFAULT_TASKS]
    check_range("positions", positions, 2, MOST_POSITIONS)
    check_games(games)
    named = named_players(players or [], json, resume)
    everybody = {each.name: players_of(each, named, references) for each in tasks}
    for name, player in named.items():
        if not any(name in own for own in everybody.values()):
            check_plays(player, tasks[0].variant)
    given = {"players": players or [], "tasks": [each.name for each in tasks], "references": references}
    what = {"language": given, "positions": positions, "games": games}
    found: dict[str, list[Score]] = {}
    with resumable(json, resume, what, seed) as (_, workers):
        for each in tasks:
            with ui.progress(f"{each.name}: positions", positions):
                values = response_values(each.variant)  # first: it may have to solve the game
                drawn = positions_of(each.variant, positions, seed)
            with ui.progress(f"{each.name}: players", len(everybody[each.name]) * (positions + games)):
                found[each.name] = [
                    score(each, drawn, values, name, player, games, seed, workers)
                    for name, player in everybody[each.name].items()
                ]
            ui.console.print(f"seed {seed}")
            show_all([grid for grid in _grids_of(found[each.name]) if len(grid.headings) <= MOST_COLUMNS])
    words = shlex.join(["benchmark", "language", *(players or [])])
    typed = {"task": task, "positions": positions, "games": games, "seed": seed, "report": report, "json": json}
    command = command_line(words, {**typed, "no_references": not references})
    scores = [dataclasses.asdict(each) for own in found.values() for each in own]
    about = About(command, {"positions": positions, "games": games}, seed)
    written = {"command": command, "seed": seed, "scores": scores}
    ui.write_all(json, written, report, lambda folder: _write_report(folder, found, about))


GROUP = "Fixed tests of language models, and of learning algorithms."
COMMANDS = {"language": language, "learners": learners}


def _write_report(folder: Path, found: Mapping[str, Sequence[Score]], about: About) -> None:
    sections = []
    for name, scores in found.items():
        with plots_noted() as plots:
            _plot(folder, scores)
        sections.append(Section(name, [TASKS[name].asks], _grids_of(scores), plots))
    write_page(folder, "dice-envs: players who speak in words", [INTRO], sections, about)


# --- positions ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Positions:
    """Decisions of a game, each from a game of its own."""

    variant: Variant
    states: np.ndarray  # (n,) states in which a seat has a choice
    values: tuple[ActionValues, ...]  # the values of each one's moves, by optimal play afterwards

    def regrets(self, actions: np.ndarray) -> np.ndarray:
        """Return what each of (n,) actions gives away, (n,) float64: the best move's value less its own."""
        return costs_of(np.array([each.values for each in self.values]), actions)


def positions_of(variant: Variant, number: int, seed: int = 0) -> Positions:
    """Draw positions, the same for the same arguments.

    In each game every move is the solution's, or with a chance of a quarter any legal move. Of the decisions that optimal play
    can reach, and whose moves differ in value, one is drawn. Games without any are passed over. Advances by positions
    found.

    Raises:
        ValueError: optimal play is not known or takes too long, or too few games have such decisions.
    """
    states, values = [], []
    for game in range(number * MOST_GAMES):
        found = _decision(variant, np.random.default_rng([seed, game]))
        if found is None:
            continue
        states.append(found[0])
        values.append(found[1])
        advance()
        if len(states) == number:
            return Positions(variant, np.array(states), tuple(values))
    raise ValueError(f"only {len(states)} of {number * MOST_GAMES:,} games of {variant} have a decision that matters")


def _decision(variant: Variant, rng: np.random.Generator) -> tuple[Any, ActionValues] | None:
    """Return one decision of a new game, each one as likely; None if there is none."""
    sitting = Sitting(variant, int(rng.integers(2**53)), [PERSON] * variant.facts.num_seats)
    kept, seen = None, 0
    while not sitting.over:
        state = sitting.state
        with hinting():
            values = action_values(variant, state)
        legal = np.flatnonzero(~np.isnan(values.values))
        if values.reached and np.ptp(values.values[legal]) > NO_COST:
            seen += 1
            if rng.integers(seen) == 0:
                kept = state, values
        sitting.play(int(rng.choice(legal) if rng.random() < EXPLORES else _optimal(values, rng)))
    return kept


def _optimal(values: ActionValues, rng: np.random.Generator) -> int:
    """Draw a move of the solution; without one, the best move."""
    if values.mix is None:
        return int(np.nanargmax(values.values))
    return int(rng.choice(len(values.mix), p=values.mix / values.mix.sum()))


# --- scores ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Kind:
    """Decisions of one kind."""

    by: str  # the heading under which decisions are sorted, such as "dice left"
    label: str  # the kind, such as "5 v 4"
    decisions: int  # how many there are
    regret: float  # mean of them
    error: float  # half of its 95 % interval; NaN with one decision


@dataclasses.dataclass(frozen=True)
class Bluffs:
    """Positions in which the solution bluffs with about the same chance."""

    positions: int  # how many there are
    solution: float  # the solution's mean chance of a bluff there
    player: float  # the share of positions in which the player bluffed
    error: float  # half of the 95 % interval of `player`


@dataclasses.dataclass(frozen=True)
class Score:
    """A player on a task. Errors are half of 95 % intervals."""

    task: str  # its name
    player: str  # the player's
    unit: Unit  # of the regret
    positions: int  # how many it was asked
    regret: float  # what a move gives away, the mean over the positions
    error: float
    wrong: float  # share of the moves that give something away
    kinds: tuple[Kind, ...]  # the same by kind of decision
    bluffs: tuple[Bluffs, ...]  # by the solution's chance of a bluff; empty in games without bluffs
    games: int  # number of games played
    result: float  # the player's in these games without luck, in `result_unit`
    result_error: float
    best: float  # a best response's
    result_unit: Unit  # see `dice_envs.Evaluation`
    tally: Tally | None  # what a language model has done and used; None for scripted players

    @property
    def illegal(self) -> float:
        """Share of replies without a legal move; 0 for scripted players."""
        if self.tally is None:
            return 0.0
        legal = self.tally.moves - self.tally.random - self.tally.lost
        return self.tally.illegal / max(1, self.tally.illegal + legal)


def named_players(specs: Sequence[str], json: Path | None = None, resume: bool = False) -> dict[str, Agent]:
    """Return the players of specs by name: a language model by that of its model, others by their spec.

    Replies of language models are logged beside the file `json`, and used again with `resume`. A budget is for all tasks
    together. ValueError for a spec that names no agent, or a language model that resigns."""
    players: dict[str, Agent] = {}
    for spec in dict.fromkeys(specs):
        (agent,) = logged([resolve(spec)], json, resume)
        if not isinstance(agent, Chat):
            players[spec] = InWords(agent)
            continue
        if promises_of(agent).resigns:
            raise ValueError(
                "illegal must be 'random' or 'raise' in this benchmark, not 'lose': lost games have no exact price"
            )
        players[spec if agent.model in players else agent.model] = agent
    return players


def players_of(task: Task, named: Mapping[str, Agent], references: bool = True) -> dict[str, Agent]:
    """Return the players of a task by name: the game's usual agents that answer at once, then `named`.

    Those that do not play the task are left out.
    """
    usual: dict[str, Agent | None] = dict.fromkeys(usual_agents(task.game) if references else ())
    found: dict[str, Agent] = {}
    for name, player in {**usual, **named}.items():
        with contextlib.suppress(ValueError):
            if player is None:
                agent = resolve(name)
                check_needs(agent, task.variant, GAMES_ASKED)
                player = InWords(agent)
            check_plays(player, task.variant)
            found[name] = player
    return found


def score(
    task: Task,
    positions: Positions,
    values: ResponseValues,
    name: str,
    player: Agent,
    games: int,
    seed: int = 0,
    workers: Workers = HERE,
) -> Score:
    """Ask a player, who plays through words, at a task's positions, and play games against optimal play; workers do both.

    `values` are those of choices against optimal play (see `dice_envs.response_values`). Advances by positions and games.

    Raises:
        AgentError: a language model's server does not answer, or its budget is spent.
        ValueError: too few games.
    """
    variant = positions.variant
    firsts = range(0, len(positions.states), ASKED)
    parts = [(positions.states[first : first + ASKED], first, seed) for first in firsts]
    meter = ChatMeter([player])
    run = workers.metered(meter).run
    actions = np.concatenate(run(_answers, (variant, player), parts, [float(len(part[0])) for part in parts]))
    with counting() as part:
        played = functools.partial(evaluate, variant, player, None, games, seed=seed, name=name)
        result = played(values=values, done=part.advance, run=run)
    regrets = positions.regrets(actions)
    mean, error = _mean(positions, regrets)
    return Score(
        task=task.name,
        player=name,
        unit=positions.values[0].unit,
        positions=len(positions.states),
        regret=mean,
        error=error,
        wrong=float((regrets > 0).mean()),
        kinds=_kinds(positions, actions, regrets),
        bluffs=_bluffs(positions, actions),
        games=games,
        result=result.value,
        result_error=result.error,
        best=result.best,
        result_unit=result.unit,
        tally=meter.tallies[0] if meter.tallies else None,
    )


def _answers(variant: Variant, player: Agent, states: np.ndarray, first: int, seed: int) -> np.ndarray:
    """Return the player's actions at some positions, the first of which has the number `first`."""
    streams = new_streams(np.random.SeedSequence(seed), first + len(states))[first:]
    actions = ask(player, variant, states.copy(), np.arange(len(states)), streams, fresh_memory(player, len(states)))
    advance(len(states))
    return actions


def _mean(positions: Positions, regrets: np.ndarray) -> tuple[float, float]:
    """Return the mean regret, and half of its 95 % interval; no position offers a larger one than the largest of these."""
    most = max(float(np.nanmax(each.values) - np.nanmin(each.values)) for each in positions.values)
    return float(regrets.mean()), half_width(regrets, 0.0, most)


def _kinds(positions: Positions, actions: np.ndarray, regrets: np.ndarray) -> tuple[Kind, ...]:
    kinds = []
    situations = GameExact(positions.variant.game).situations(positions.variant, positions.states, actions)
    for by, labels in situations.items():
        for label in np.unique(labels) if len(np.unique(labels)) > 1 else ():
            mine = regrets[labels == label]
            kinds.append(Kind(by, str(label), len(mine), *_mean(positions, mine)))
    return tuple(kinds)


def _bluffs(positions: Positions, actions: np.ndarray) -> tuple[Bluffs, ...]:
    """Sort the positions in which one may bluff and need not by the solution's chance of a bluff."""
    which = GameExact(positions.variant.game).traits(positions.variant, positions.states).get("bluffs")
    if which is None or positions.values[0].mix is None:
        return ()
    legal = np.array([~np.isnan(each.values) for each in positions.values])
    free = (which & legal).any(axis=1) & (~which & legal).any(axis=1)
    mixes = np.array([each.mix for each in positions.values])
    chance = np.where(which, mixes, 0).sum(axis=1)[free]
    bluffed = which[np.arange(len(actions)), actions][free]
    place = np.clip(np.searchsorted(BINS, chance, side="right") - 1, 0, len(BINS) - 2)
    found = []
    for number in np.unique(place):
        mine = place == number
        count, share = int(mine.sum()), float(bluffed[mine].mean())
        found.append(Bluffs(count, float(chance[mine].mean()), share, share_half_width(share, count)))
    return tuple(found)


# --- tables and plots ------------------------------------------------------------------------------------------------


def _grids_of(scores: Sequence[Score]) -> list[Grid]:
    """Return the tables of one task's scores: the players, bluffs if there are any, then a table for each kind of decision."""
    return [_main_grid(scores), *([_bluff_grid(scores)] if scores[0].bluffs else []), *_kind_grids(scores)]


def _main_grid(scores: Sequence[Score]) -> Grid:
    first = scores[0]
    unit = first.result_unit.heading
    headings = (
        "player",
        f"regret a move ({first.unit.heading})",
        "wrong",
        "illegal",
        f"result without luck ({unit})",
        "tokens",
    )
    rows = [
        (
            each.player,
            each.unit.figure(each.regret, each.error),
            f"{100 * each.wrong:.0f} %",
            f"{100 * each.illegal:.1f} %",
            each.result_unit.figure(each.result, each.result_error),
            f"{each.tally.tokens:,}" if each.tally else "",
        )
        for each in scores
    ]
    notes = [f"a best response to optimal play: {first.result_unit.figure(first.best)} {unit}; all intervals are 95 %"]
    random = [f"{each.player}: {each.tally.random:,}" for each in scores if each.tally and each.tally.random]
    if random:
        notes.append(f"moves drawn at random after two illegal replies: {', '.join(random)}")
    if any(each.player == "nash" and each.regret > min(other.regret for other in scores) for each in scores):
        notes.append("less regret than nash has says nothing: its solution is an approximation, whose rare moves cost a little")
    return Grid(f"{first.task}: {first.positions:,} positions and {first.games:,} games", headings, rows, notes=notes)


def _kind_grids(scores: Sequence[Score]) -> list[Grid]:
    """A table for each heading, a row for each kind of decision, a column for each player."""
    grids = []
    for by in dict.fromkeys(kind.by for each in scores for kind in each.kinds):
        found = [{kind.label: kind for kind in each.kinds if kind.by == by} for each in scores]
        labels = dict.fromkeys(label for kinds in found for label in kinds)
        rows = []
        for label in labels:
            cells = [
                f"{scores[0].unit.figure(kinds[label].regret, kinds[label].error)} ({kinds[label].decisions:,})"
                if label in kinds
                else ""
                for kinds in found
            ]
            rows.append((label, *cells))
        title = f"regret by {by} ({scores[0].unit.heading}; decisions in brackets)"
        grids.append(Grid(title, ("", *(each.player for each in scores)), rows))
    return grids


def _bluff_grid(scores: Sequence[Score]) -> Grid:
    rows = [
        (f"{100 * own.solution:.0f} % ({own.positions:,})", *(f"{100 * each.bluffs[k].player:.0f} %" for each in scores))
        for k, own in enumerate(scores[0].bluffs)
    ]
    title = "how often each bluffs where the solution bluffs this often (positions in brackets)"
    return Grid(title, ("solution", *(each.player for each in scores)), rows)


def _plot(folder: Path, scores: Sequence[Score]) -> None:
    """Save the calibration plot of one task's bluffs; nothing for a game without bluffs."""
    if not scores[0].bluffs:
        return
    task = scores[0].task
    caption = (
        f"{task}: how often each player bluffs, beside how often the solution does at the same positions, with 95 % intervals."
    )
    with saved_plot(folder, f"bluffs_{task}", caption, figsize=(9, 6.5)) as (_, axes):
        axes.axline((0, 0), (1, 1), color="#999999", linestyle="--", label="as often as the solution")
        for number, each in enumerate(scores):
            shift = 0.006 * (number - (len(scores) - 1) / 2)  # side by side, so that intervals can be told apart
            axes.errorbar(
                [own.solution + shift for own in each.bluffs],
                [own.player for own in each.bluffs],
                [[min(own.error, own.player) for own in each.bluffs], [min(own.error, 1 - own.player) for own in each.bluffs]],
                linestyle="none",
                capsize=3,
                label=each.player,
            )
        axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), xlabel="chance of a bluff, solution", ylabel="share of bluffs, player")
        axes.set_title(f"bluffs in {task}")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
