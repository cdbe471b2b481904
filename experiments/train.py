"""A training run from end to end: `dice_envs.train` with progress on the terminal, then measures and games."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dice_envs
from dice_envs import Agent, Measures, Variant, measure
from dice_envs.agent import promises_of
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.agent.specs import lineup
from dice_envs.agents.ppo import Likeliest, NetworkPolicy
from dice_envs.core.dice import derived_seeds
from dice_envs.core.files import named_in_errors
from dice_envs.core.game import single_seat
from dice_envs.core.options import check_choice, check_range, option_texts
from dice_envs.core.work import TooLong
from dice_envs.exact.contract import BEST_RESPONSE_WINS, NASH_CONV, plus_minus
from dice_envs.experiments import ui
from dice_envs.experiments.arena import add_optimal, known_values, num_meetings, tournament, won_by
from dice_envs.experiments.arena.results import Result, edge_grid, save_plot, tournament_grids
from dice_envs.experiments.jobs.guard import first_signal_waits
from dice_envs.experiments.ui.grids import Grid, measures_grid, short, show_all
from dice_envs.experiments.ui.pages import About, Plot, Section, command_line, logarithmic, plots_noted, saved_plot, write_page
from dice_envs.learn import TrainingCallback
from dice_envs.learn.presets import presets_of, setting_text
from dice_envs.learn.run import TrainingRun

LEVELS = ("none", "quick", "full")  # of measuring after training
SHORT = 1.0  # minutes: a shorter training, of fewer steps than its preset's, is measured quickly unless asked otherwise
MOST_POSITIONS, QUICK_POSITIONS = 20_000_000, 1_000_000  # at which a stochastic policy is evaluated after training
MOST_PLAYED, QUICK_PLAYED = 20_000, 2000  # games of each pair or table
QUICK_MINUTES = 0.1  # of each part of a quick measurement


@dataclasses.dataclass(frozen=True)
class RunSpec:
    """A run of the command `train`: what is trained, how and where, and what is measured afterwards."""

    game: str
    preset: str = "quick"
    out: Path | None = None  # its folder
    option: Sequence[str] = ()
    opponents: Sequence[str] = ()  # instead of the preset's
    steps: int | None = None
    seed: int | None = None
    resume: bool = False
    evaluation_games: int | None = None
    measure: str | None = None  # one of LEVELS
    learner: str | None = None
    device: str = "cpu"
    threads: int | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # fields of the preset

    def command(self, trained: TrainingRun) -> str:
        """Return the command that makes the same policy as this run has."""
        variant = trained.variant
        usual, threads = presets_of(variant.game.name)[self.preset], trained.preset.threads
        changed = (("learner", trained.learner, "ppo"), ("device", self.device, "cpu"), ("threads", threads, usual.threads))
        tried = [f"{name}={setting_text(value)}" for name, value in self.settings.items()]
        typed: dict[str, Any] = {"preset": self.preset, "option": option_texts(variant.plain.changed_options())}
        typed |= {"opponent": [*self.opponents], "set": tried, "steps": self.steps, "seed": trained.seed}
        typed |= {name: value for name, value, default in changed if value != default}
        return command_line(f"train {variant.game.name}", typed)


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """A run, trained, measured and played."""

    trained: TrainingRun  # its policy, learning curve and gaps
    folder: Path  # of its files
    command: str  # makes the same policy again
    steps_per_second: float | None  # None where nothing was left to train
    measures: list[Measures]  # of the policy and of its likeliest actions
    notes: list[str]  # why these are not known, or which command measures what was left out
    # The final cross table, for two seats and more; with two also what was won from opponents whose best response is known.
    table: Result | None = None
    # For three seats and more, a table with each opponent of the training, by its name, at all other seats.
    pool: dict[str, Result] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the form of results.json."""
        run = self.trained
        found = {
            "command": self.command,
            "seed": run.seed,
            "steps": run.steps,
            "steps_per_second": self.steps_per_second,
            "minutes": run.minutes or None,
            "curve": run.curve,
            "gaps": [{**point, "minutes": run.minutes_at.get(point["steps"])} for point in run.gaps],
            "measures": self.measures,
            "notes": self.notes,
        }
        found |= {"table": self.table.as_dict()} if self.table else {}
        return found | ({"pool": {name: own.as_dict() for name, own in self.pool.items()}} if self.pool else {})


class _Shown(TrainingCallback, contextlib.ExitStack):
    """Shows a run on the terminal, keeps TensorBoard's log of it, and stops it on a signal. Entered around the training.

    `policy` says whose options the variant's are, as `print_mode` takes it; `folder` is the run's.
    """

    def __init__(self, variant: Variant, policy: str, folder: Path) -> None:
        super().__init__()
        self.variant, self.policy, self.folder = variant, policy, folder
        self.signal_noted: Callable[[], int | None] = lambda: None

    def started(self, steps: int, until: int, seed: int) -> None:
        ui.print_mode(self.variant, self.policy)
        self.first, self.start = steps, time.perf_counter()
        if steps >= until:
            ui.console.print(f"already trained on {self.variant}: {steps:,} steps in {self.folder}, seed {seed}")
            return
        ui.console.print(f"training {self.variant} from step {steps:,} to {until:,} in {self.folder}, seed {seed}")
        self.signal_noted = self.enter_context(first_signal_waits())
        self.bar = self.enter_context(ui.progress("learner steps", until - steps))
        log = self.folder / "tensorboard" / "ppo" / f"events.out.tfevents.{time.time():.0f}.{os.getpid()}"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = self.enter_context(log.open("ab", buffering=0))  # unbuffered: TensorBoard can read each event at once
        self._note(file_version="brain.Event:2")  # TensorBoard expects the file's format first

    def _note(self, **event: Any) -> None:
        """Add an event to TensorBoard's log. TensorBoard's own writer is a thread, whose errors would not be raised here."""
        from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped,unused-ignore]
        from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped,unused-ignore]

        with named_in_errors(self.folder / "tensorboard"):
            RecordWriter(self.log).write(Event(wall_time=time.time(), **event).SerializeToString())

    def advanced(self, steps: int) -> None:
        self.bar.advance(steps, 1)

    def learned(self, steps: int, values: Mapping[str, float]) -> None:
        self._note(step=steps, summary={"value": [{"tag": name, "simple_value": value} for name, value in values.items()]})

    def measured(self, steps: int, minutes: float, name: str, gaps: Mapping[str, float]) -> None:
        found = "  ".join(f"{policy} {gap:.4f}" for policy, gap in gaps.items())
        ui.console.print(f"{steps:>12,} steps  {minutes:>7.1f} min  {name}: {found}")

    def saved(self, steps: int, speed: float, scores: Mapping[str, float]) -> None:
        found = "  ".join(f"{name} {score:.3f}" for name, score in scores.items())
        ui.console.print(f"{steps:>12,} steps  {speed:>8,.0f}/s  {found}")

    def stop(self) -> bool:
        return self.signal_noted() is not None


def train(spec: RunSpec) -> TrainingResult:
    """Train and measure.

    Raises:
        ValueError: wrong arguments, a folder that holds another run or is in use, a damaged checkpoint.
        Stopped: Ctrl-C or SIGTERM came during training; everything is saved.
    """
    variant, _, policy = lineup(spec.game, ui.game_options(spec.option), spec.opponents, single_seat)
    check_range("evaluation_games", 1 if spec.evaluation_games is None else spec.evaluation_games, 1, MOST_GAMES)
    check_choice("--measure", spec.measure or LEVELS[0], LEVELS)
    folder = spec.out or Path("runs") / f"{variant.game.name}_{spec.preset}"
    if (folder / "checkpoint.pt").exists() and not spec.resume:
        raise ValueError(f"{folder} holds a run already; add --resume to go on with it, or choose another --out")

    given = {**spec.settings, **({} if spec.threads is None else {"threads": spec.threads})}
    with _Shown(variant, policy, folder) as shown:
        trained = dice_envs.train(
            variant, preset=spec.preset, steps=spec.steps, opponents=spec.opponents or None, seed=spec.seed, settings=given,
            folder=folder, learner=spec.learner, device=spec.device, callback=shown,
        )  # fmt: skip
    seconds, number = time.perf_counter() - shown.start, shown.signal_noted()
    if number is not None:
        goes_on = f"which are saved in {folder}; the same command with --resume goes on"
        raise ui.Stopped(f"stopped after {trained.steps:,} steps, {goes_on}", number)
    new = trained.steps - shown.first
    if new:
        ui.console.print(f"{new:,} steps in {seconds:,.0f} s: {new / seconds:,.0f} a second")
    command, usual = spec.command(trained), presets_of(variant.game.name)[spec.preset]
    short = trained.minutes < SHORT and trained.steps < usual.steps
    found = _measured_at(spec.measure or ("quick" if short else "full"), trained, folder, spec.evaluation_games, command)
    return TrainingResult(trained, folder, command, new / seconds if new else None, *found)


# --- measures and games at the end ----------------------------------------------------------------------------------


def _measured_at(
    level: str, trained: TrainingRun, folder: Path, games: int | None, command: str
) -> tuple[list[Measures], list[str], Result | None, dict[str, Result] | None]:
    """Return the measures, notes and games of a TrainingResult, of which a level leaves some out; a note then says which."""
    variant, left = trained.variant, None if level == "full" else list[str]()
    measures, notes, table, pool = list[Measures](), list[str](), None, None
    if level != "none":
        count = games or (MOST_PLAYED if left is None else QUICK_PLAYED)
        measures, notes = measured(variant, trained.policy, f"ppo:{folder / 'policy.npz'}", trained.seed, left)
        table = _played(trained, count, left) if variant.facts.num_seats > 1 else None
        pool = _against_pool(trained, count) if variant.facts.num_seats > 2 else None
        if left is not None and table is not None and count < MOST_PLAYED and games is None:
            left.append(f"{MOST_PLAYED - count:,} of {MOST_PLAYED:,} games of each pair or table")
    elif left is not None:
        left.append("all measures and games")
    if left:
        again = f"{command} --out {shlex.quote(str(folder))} --resume --measure full"
        notes.append(f"left out to be quick: {', '.join(left)}. This command adds it: {again}")
    return measures, notes, table, pool


def measured(
    variant: Variant, policy: NetworkPolicy, spec: str, seed: int, left: list[str] | None = None
) -> tuple[list[Measures], list[str]]:
    """Return the distance from optimal play of the policy, sampled and greedy, and why it is not known.

    Without a floor the policy gives every action some probability. If that makes too many positions, a note has the command
    that measures it instead, in which `spec` names the policy. A quick measurement adds to `left` what takes longer.
    """
    measures, notes = list[Measures](), list[str]()
    for name, agent, its_spec in (("ppo", policy, spec), ("ppo greedy", Likeliest(policy), f"{spec},greedy=true")):
        try:
            seconds, most = _limits(agent is policy and (left is not None or not policy.floor), left)
            with ui.progress(f"measuring {name}", seconds=seconds, most=most) as bar:
                found = measure(variant, agent, seed=seed, done=bar.advance)
        except TooLong as problem:
            if left is not None:
                left.append(f"the distance of {name} from optimal play ({problem})")
                continue
            options = "".join(f" -o {shlex.quote(part)}" for part in option_texts(variant.changed_options()))
            command = f"dice-envs measure {variant.game.name} {its_spec}{options}"
            notes.append(f"{name} is not measured here: there are {problem} to evaluate. This command does it: {command}")
        except ValueError as problem:
            return measures, [*notes, f"not measured against optimal play: {problem}"]
        else:
            measures.append(dataclasses.replace(found, agent=name))
    return measures, notes


def _limits(everywhere: bool, left: list[str] | None) -> tuple[float, float]:
    """Return the limits of a measurement: on the seconds of a quick one, with `left`; and on positions where all are asked
    about (`everywhere`)."""
    most = MOST_POSITIONS if left is None else QUICK_POSITIONS
    return math.inf if left is None else 60 * QUICK_MINUTES, most if everywhere else math.inf


def _played(trained: TrainingRun, games: int, left: list[str] | None) -> Result:
    """Return the final cross table, for games of two or more seats; with two, also the shares of edges.

    With two seats it is of pairs, without luck where the values of choices against an opponent are known and found fast.
    With more it is of one table with the policy and its opponents in turn, the last ones first.
    """
    policy, specs, agents = trained.policy, trained.preset.opponents, dict(trained.opponents.by_name())
    variant, seats = trained.variant, trained.variant.facts.num_seats
    own: dict[str, Agent] = {"ppo": policy} | ({"ppo greedy": Likeliest(policy)} if seats == 2 else {})
    names = [*specs] if seats == 2 else [specs[-1 - place % len(specs)] for place in range(seats - 1)]
    row, players = [*own, *names], [*own.values(), *(agents[name][0] for name in names)]
    values: list[Any] = [None] * len(row)  # none against the policy's own rows
    notes: list[str] = []
    for place in range(2, len(row)) if seats == 2 and games > 1 else ():
        # Agents with `memoryless` need far fewer evaluations than positions are counted.
        seconds, most = _limits(not promises_of(players[place]).memoryless, left)
        with ui.progress(f"measuring values against {row[place]}", seconds=seconds, most=most):
            (values[place],), reasons = known_values(variant, [row[place]], [players[place]])
        notes += map(str, reasons)
        if left is not None and any(isinstance(each, TooLong) for each in reasons):  # others are not known at all
            left.append(f"what a best response wins from {row[place]}")
    with ui.progress("cross table", num_meetings(variant, len(row)) * games):
        table = tournament(variant, row, games, trained.seed, players, values=values)
    table.notes = notes
    add_optimal(table, variant)
    if seats == 2:
        table.compare([each and won_by(variant, each) for each in values], whose=2)  # the policy's two forms
    return table


def _against_pool(trained: TrainingRun, games: int) -> dict[str, Result]:
    """Return a table of the policy with each opponent of its training, which has all other seats of three or more.

    Where all are paid the same, the mean return is the team's.
    """
    variant, policy, pool, found = trained.variant, trained.policy, trained.opponents.by_name(), dict[str, Result]()
    seeds = derived_seeds(trained.seed, "pool", len(pool))
    with ui.progress("its pool", len(pool) * games):
        for (name, players), own_seed in zip(pool, seeds, strict=True):
            others = [players[place % len(players)] for place in range(variant.facts.num_seats - 1)]
            names = ["ppo", *[name] * len(others)]
            found[name] = tournament(variant, names, games, own_seed, [policy, *others])
    return found


# --- what is shown of it ------------------------------------------------------------------------------------------------


def make_run(spec: RunSpec, json: Path | None = None, report: Path | None = None, verbose: bool = False) -> TrainingResult:
    """Make a run, show what it was for, and write its files."""
    result = train(spec)
    for note in result.notes:
        ui.console.whole_line(note)
    if verbose:
        for found in result.measures:
            show_all([measures_grid(found)])
        if result.table is not None:
            show_all(tournament_grids(result.table))
    _show_verdict(result)
    ui.finish(
        lambda: ui.write_json(result.folder / "results.json", result.as_dict()),
        lambda: ui.write_json(json, result.as_dict()),
        lambda: _plot(result.folder, result),
        lambda: _write_report(report, result),
        lambda: _say_where(result),
    )
    return result


def _write_report(report: Path | None, result: TrainingResult) -> None:
    """Write the report's plots and page, if one is wanted."""
    if report is None:
        return
    with plots_noted() as plots:
        _plot(report, result)
    trained, variant = result.trained, result.trained.variant
    about = About(result.command, {"preset": trained.preset, **dataclasses.asdict(variant.options)}, trained.seed)
    write_page(report, f"PPO trained on {variant}", [], run_sections(result, plots), about)


def _say_where(result: TrainingResult) -> None:
    """Print where the policy is, and the command to play against it."""
    variant, folder = result.trained.variant, result.folder
    ui.console.whole_line(f"saved: ppo:{folder}; all results: {folder / 'results.json'}, or --verbose")
    if variant.facts.num_seats > 1:
        ui.console.whole_line(f"play against it: dice-envs play {variant.game.name} {shlex.quote(f'ppo:{folder}')}")


# --- tables ---------------------------------------------------------------------------------------------------------


def _show_verdict(result: TrainingResult) -> None:
    """Print what the training was for: what was won from its opponents and could be, or how far play is from optimal."""
    trained, measures = result.trained, result.measures
    edges = result.table.edges if result.table is not None and not trained.preset.self_play else ()
    against = [edge for edge in edges if edge.agent == "ppo"]
    if against and result.table is not None:
        edge_grid(against, f"Games won, % of {result.table.games:,} against each").show()
    elif result.pool:
        _pool_grid(result.pool, result).show()
    wins = [each.value for each in measures[0].measures if each.name == BEST_RESPONSE_WINS] if measures else []
    whose = "this policy" if measures and measures[0].agent == "ppo" else "its likeliest actions"
    if against and wins:
        others = " or ".join(name for name, each in presets_of(trained.variant.game.name).items() if each.self_play)
        learned = "it has learned to beat these opponents, not to be hard to beat. For that, train"
        if not all(edge.share > edge.ci95 for edge in against):
            learned = "it does not beat all of these opponents yet, with more --steps it may. To be hard to beat, train"
        won = plus_minus(wins[0], None, 1, percent=True)
        ui.console.print(f"A best response wins {won} % of the games against {whose}: {learned} with --preset {others}.")
    elif measures:
        distances_grid(measures).show()


def distances_grid(measures: Sequence[Measures]) -> Grid:
    """The measures of the policy and of its likeliest actions beside optimal play."""
    rows = []
    for each in zip(*(found.measures for found in measures), strict=True):
        if each[0].name == NASH_CONV:  # twice the first row
            continue
        values = [plus_minus(one.value, one.error or None, 4) for one in each]
        rows.append((each[0].name, *values, f"{each[0].optimum:.4f}"))
    headings = ("policy" if found.agent == "ppo" else "its likeliest actions" for found in measures)
    return Grid("How far it is from optimal play", ("", *headings, "optimal"), rows)


def _pool_grid(pool: Mapping[str, Result], result: TrainingResult) -> Grid:
    cooperative = result.trained.variant.facts.cooperative
    wins = [] if cooperative else ["even share", "share of wins"]
    headings = ("all other seats", *wins, "team's mean return" if cooperative else "mean return")
    rows = []
    for name, table in pool.items():
        own = table.meetings[0]
        shares = [f"{100 / table.seats:.2f}", plus_minus(own.win_rate, own.ci95, percent=True)]
        earned = plus_minus(own.mean_return, own.mean_return_ci95, 4)
        rows.append((f"{table.seats - 1} × {short(name)}", *(() if cooperative else shares), earned))
    title = f"against its pool, {table.games:,} games each, seed {result.trained.seed}"
    return Grid(title, headings, rows, whole=(0,))


def run_sections(result: TrainingResult, plots: Sequence[Plot]) -> list[Section]:
    """Return the results of a run as sections of a page."""
    trained = [f"{result.trained.steps:,} learner steps"]
    trained += [f"{result.trained.minutes:.1f} minutes"] if result.trained.minutes else []
    trained += [] if result.steps_per_second is None else [f"{result.steps_per_second:,.0f} steps a second"]
    games = [] if result.table is None else tournament_grids(result.table)
    games += [_pool_grid(result.pool, result)] if result.pool else []
    return [
        Section("What was trained", ["; ".join(trained) + "."], plots=plots),
        Section("How far from optimal play", result.notes, [measures_grid(each) for each in result.measures]),
        *([Section("Against others", grids=games)] if games else []),
    ]


# --- plots ----------------------------------------------------------------------------------------------------------


def _plot(folder: Path, result: TrainingResult) -> None:
    """Write learning_curve.png (win rates beside what a best response wins, or returns), gap.png and cross_table.png."""
    trained, table = result.trained, result.table
    what = "mean return in training" if table is None else "share of training games won"
    best = {each.opponent: each.best_response_wins for each in (table.edges if table else ())}
    ui.finish(
        lambda: plot_points(folder, "learning_curve", trained, what, what, "PPO while it learns", best),
        lambda: plot_points(folder, "gap", trained, gap_label(result.measures), "gap from optimal play", "PPO", {}),
        lambda: None if table is None else save_plot(folder, "cross_table", table),
    )


def gap_label(found: Sequence[Measures]) -> str:
    """Return the label of an axis of gaps: the headline measure, with its 95 % interval where it was sampled."""
    if not found:
        return "gap from optimal play"
    headline = found[0].measures[0]
    return f"gap from optimal play: {headline.name}, " + (f"± {headline.error:.2g}" if headline.error else "exact")


def plot_points(folder: Path, name: str, run: TrainingRun, what: str, axis: str, who: str, best: Mapping[str, float]) -> None:
    """Write a plot of a run's points against the learner's steps, a line for each of their names; nothing without points.

    A dashed line is at what is best, where that is known.
    """
    variant, gaps = run.variant, name == "gap"
    points = run.gaps if gaps else run.curve
    values = [value for point in points for key, value in point.items() if key != "steps"]
    if not values:
        return
    with saved_plot(folder, name, f"{variant}: {what} against the learner's steps, seed {run.seed}.") as (_, axes):
        for key in sorted({key for point in points for key in point} - {"steps"}):
            line = [(point["steps"] / 1e6, point[key]) for point in points if key in point]
            (drawn,) = axes.plot(*zip(*line), label=f"{key} policy" if gaps else key, markevery=0.1)
            if key in best:
                style = {"color": drawn.get_color(), "marker": drawn.get_marker(), "linestyle": "--", "linewidth": 1}
                axes.plot((0, line[-1][0]), [best[key]] * 2, markevery=[1], **style)
        if gaps and max(values) > 5 * min(values):  # else a logarithmic axis has hardly a label
            logarithmic(axes, "y")
        elif not gaps:  # the first steps would leave little room for what is learned later
            late = [point for point in points if 5 * point["steps"] >= points[-1]["steps"]]
            least = min(value for point in late for key, value in point.items() if key != "steps")
            most = max(*values, *best.values(), least + 1e-9)
            axes.set_ylim(1.1 * least - 0.1 * most, 1.05 * most - 0.05 * least)
        axes.set_xlim(left=0)
        axes.set_xlabel("learner steps, millions")
        axes.set_ylabel(axis)
        below = f"\n{what}" * gaps + "\ndashed: what a best response wins" * bool(best)
        axes.set_title(f"{variant.game.title}: {who}, seed {run.seed}{below}", fontsize=12)
        axes.grid(alpha=0.3, which="both")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
