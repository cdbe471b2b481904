"""`train`: a PPO agent, or a sweep of them: `dice_envs.train` with progress on the terminal, then measures and games."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import dice_envs
from dice_envs import Agent, Measures, Variant, measure, names
from dice_envs.agent import promises_of
from dice_envs.agent.casting import cast
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.agents.ppo import Likeliest, NetworkPolicy
from dice_envs.core.dice import derived_seeds
from dice_envs.core.files import named_in_errors
from dice_envs.core.game import single_seat
from dice_envs.core.options import check_range, option_texts
from dice_envs.exact.contract import BEST_RESPONSE_WINS
from dice_envs.exact.progress import TooLong, up_to
from dice_envs.experiments import ui
from dice_envs.experiments.arena import add_optimal, known_values, num_meetings, tournament, won_by
from dice_envs.experiments.arena.results import FIGURES, Result, edge_grid, save_plot, tournament_grids
from dice_envs.experiments.jobs.guard import first_signal_waits
from dice_envs.experiments.sweep import MOST_RUNS, RECIPES, parse_settings, setting_text, sweep
from dice_envs.experiments.ui.grids import Grid, measures_grid, plus_minus, short, show_all
from dice_envs.experiments.ui.pages import About, Plot, Section, command_line, logarithmic, plots_noted, saved_plot, write_page
from dice_envs.learn import Trained, TrainingCallback
from dice_envs.learn.presets import presets_of

MOST_POSITIONS = 20_000_000  # at which a stochastic policy is evaluated after training


def main(
    game: ui.GameArgument,
    preset: Annotated[
        str, typer.Option(help="quick (minutes) or full: beat opponents; equilibrium: be hard to exploit.")
    ] = "quick",
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/GAME_PRESET if left out.")] = None,
    option: ui.OptionOption = None,
    opponents: Annotated[
        list[str] | None, typer.Option("--opponent", help="A fixed opponent instead of the preset's; may be repeated.")
    ] = None,
    steps: Annotated[int | None, ui.count_option(help="Learner steps in all, instead of the preset's number.")] = None,
    seed: ui.SeedOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in the folder.")] = False,
    evaluation_games: Annotated[int, ui.count_option(help="Games for each pair of agents in the final cross table.")] = 20_000,
    learner: Annotated[
        str | None, typer.Option(help="ppo: this package's own PPO, or sb3: MaskablePPO of SB3-contrib as it is.")
    ] = None,
    device: ui.DeviceOption = "cpu",
    threads: Annotated[int | None, typer.Option(help="PyTorch's threads, instead of the preset's number.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the preset: NAME=VALUE, or NAME=VALUE,VALUE for a run with each."),
    ] = None,
    recipes: Annotated[
        list[str] | None,
        typer.Option("--recipe", help=f"A run with settings for self-play: {'; '.join(RECIPES)}; all: each but published."),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each setting, with seeds from --seed (or 1) upwards.")] = None,
    jobs: Annotated[int, typer.Option(help="Runs at once, one core each.")] = 1,
    ray: ui.RayOption = None,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show all measures and the games between all players.")] = False,
) -> None:
    """Train a PPO agent, measure it exactly where that is possible, and save it.

    The presets quick and full learn to beat a pool of opponents (--opponent) and past selves. The preset equilibrium, and
    match in Liar's Dice of many rounds, learn by self-play to be hard to beat. Exact gaps are recorded during training
    where they are cheap.

    The agent is saved as OUT/policy.npz; `ppo:OUT` names it in every command, with its game options. Ctrl-C saves
    everything and stops; --resume continues the run, even after a kill, and ends exactly like an undisturbed run. In The
    Shakes it trains a physician, in the game of 30s a player alone; -o chooses the game with others.

    With --report, the measures, tables and plots become one page.

    With --seeds, --recipe, or several values of --set, there are many runs, each in its own folder inside OUT, and a table
    at the end: exact gaps and shares won, for every seed. --jobs makes several at once, --ray distributes them on a cluster.

    Example: train liars_dice --out runs/three_dice -o num_dice=3 --opponent numbers --opponent random
    """
    plain = presets_of(game).get(preset) if game in names() else None
    values = parse_settings(settings or [], plain) if plain is not None else {}
    several = seeds is not None or bool(recipes) or any(len(each) > 1 for each in values.values())
    if (ray is not None or jobs != 1) and not several:
        raise ValueError("--jobs and --ray share out several runs: add --seeds or --recipe, or --set with several values")
    common: dict[str, Any] = {"option": option or [], "opponents": opponents, "steps": steps, "resume": resume, "json": json}
    common |= {"evaluation_games": evaluation_games, "learner": learner, "device": device, "verbose": verbose}
    if not several or plain is None:  # `train` refuses a game or preset that does not exist
        chosen = {name: each for name, (each,) in values.items()}
        make_run(game, preset, out, seed=seed, threads=threads, settings=chosen, report=report, **common)
        return
    if report is not None:
        raise ValueError("--report shows one run: leave it out, or --seeds, --recipe and several values of --set")
    check_range("seeds", 1 if seeds is None else seeds, 1, MOST_RUNS)
    first = 1 if seed is None else seed
    folder = out or Path("runs") / f"{game}_{preset}_sweep"
    chosen_seeds = range(first, first + (seeds or 1))
    sweep(make_run, game, preset, folder, values, chosen_seeds, recipes or (), jobs, ray, threads=threads or 1, **common)


def make_run(
    game: str,
    preset: str,
    out: Path | None,
    json: Path | None = None,
    report: Path | None = None,
    verbose: bool = False,
    **arguments: Any,
) -> TrainingResult:
    """Make a run, show what it was for, and write its files. `arguments` are those of `train`."""
    result = train(game, preset, out, **arguments)
    for note in result.notes:
        ui.console.print(note)
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
    trained, variant = result.trained, result.trained.policy.variant
    about = About(result.command, {"preset": trained.preset, **dataclasses.asdict(variant.options)}, trained.seed)
    write_page(report, f"PPO trained on {variant}", [], run_sections(result, plots), about)


def _say_where(result: TrainingResult) -> None:
    """Print where the policy is, and the command to play against it."""
    variant, folder = result.trained.policy.variant, result.folder
    ui.console.whole_line(f"saved: ppo:{folder}; all results: {folder / 'results.json'}, or --verbose")
    if variant.facts.num_seats > 1:
        ui.console.whole_line(f"play against it: python -m experiments play {variant.game.name} {shlex.quote(f'ppo:{folder}')}")


# --- a run -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """A run, trained, measured and played.

    Attributes:
        trained: its policy, learning curve and gaps.
        folder: of its files.
        command: makes the same policy again.
        steps_per_second: None where nothing was left to train.
        measures: of the policy and of its likeliest actions.
        not_measured: why these are not known; empty where they are, or only take long.
        notes: what a reader should know of the measures.
        table: the final cross table, for two seats and more; with two it has what was won from each opponent whose best
            response is known.
        pool: for three seats and more, a table with each opponent of the training, by its name, at all other seats.
    """

    trained: Trained
    folder: Path
    command: str
    steps_per_second: float | None
    measures: list[Measures]
    not_measured: str
    notes: list[str]
    table: Result | None = None
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
        }
        more: dict[str, Any] = {"not_measured": self.not_measured or None}
        if self.table is not None:
            more |= {"table": self.table.as_dict(), "edges": self.table.edges if self.table.seats == 2 else None}
        if self.pool is not None:
            more["pool"] = [
                {"opponent": name, "seats": own.seats - 1, "games": own.games, "even": 1 / own.seats}
                | {figure: own.matrix(figure)[0][0] for figure in FIGURES if figure != "draws"}
                for name, own in self.pool.items()
            ]
        return found | {name: value for name, value in more.items() if value is not None}


class _Shown(TrainingCallback, contextlib.ExitStack):
    """Shows a run on the terminal, keeps TensorBoard's log of it, and stops it on a signal. Entered around the training.

    Args:
        variant: the game.
        policy: whose options these are, as `print_mode` takes it.
        folder: of the run.
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
        self.advanced = self.enter_context(ui.progress("learner steps", until - steps))  # type: ignore[method-assign]
        log = self.folder / "tensorboard" / "ppo" / f"events.out.tfevents.{time.time():.0f}.{os.getpid()}"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = self.enter_context(log.open("ab", buffering=0))  # each event is there at once, for who looks on
        self._note(file_version="brain.Event:2")  # the form of the file

    def _note(self, **event: Any) -> None:
        """Add an event to TensorBoard's log. Its own writer is a thread, whose errors would not come here."""
        from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped,unused-ignore]
        from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped,unused-ignore]

        with named_in_errors(self.folder / "tensorboard"):
            RecordWriter(self.log).write(Event(wall_time=time.time(), **event).SerializeToString())

    def learned(self, steps: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._note(step=steps, summary={"value": [{"tag": name, "simple_value": value}]})

    def measured(self, steps: int, minutes: float, name: str, gaps: Mapping[str, float]) -> None:
        found = "  ".join(f"{policy} {gap:.4f}" for policy, gap in gaps.items())
        ui.console.print(f"{steps:>12,} steps  {minutes:>7.1f} min  {name}: {found}")

    def saved(self, steps: int, speed: float, scores: Mapping[str, float]) -> None:
        found = "  ".join(f"{name} {score:.3f}" for name, score in scores.items())
        ui.console.print(f"{steps:>12,} steps  {speed:>8,.0f}/s  {found}")

    def stop(self) -> bool:
        return self.signal_noted() is not None


def train(
    game: str,
    preset: str = "quick",
    out: Path | None = None,
    option: Sequence[str] = (),
    opponents: Sequence[str] | None = None,
    steps: int | None = None,
    seed: int | None = None,
    resume: bool = False,
    evaluation_games: int = 20_000,
    learner: str | None = None,
    device: str = "cpu",
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> TrainingResult:
    """Train and measure. The arguments are those of the command `train`; `settings` are fields of the preset.

    Raises:
        ValueError: wrong arguments, a folder that holds another run or is in use, a damaged checkpoint.
        Stopped: Ctrl-C or SIGTERM came during training; everything is saved.
    """
    variant, _, policy = cast(game, ui.game_options(option), opponents or (), single_seat)
    check_range("evaluation_games", evaluation_games, 1, MOST_GAMES)
    folder = out or Path("runs") / f"{variant.game.name}_{preset}"
    if (folder / "checkpoint.pt").exists() and not resume:
        raise ValueError(f"{folder} holds a run already; add --resume to go on with it, or choose another --out")

    given = {**(settings or {}), **({} if threads is None else {"threads": threads})}
    with _Shown(variant, policy, folder) as shown:
        trained = dice_envs.train(
            variant, preset=preset, steps=steps, opponents=opponents or None, seed=seed, settings=given, folder=folder,
            learner=learner, device=device, callback=shown,
        )  # fmt: skip
    seconds, number = time.perf_counter() - shown.start, shown.signal_noted()
    if number is not None:
        goes_on = f"which are saved in {folder}; the same command with --resume goes on"
        raise ui.Stopped(f"stopped after {trained.steps:,} steps, {goes_on}", number)
    new = trained.steps - shown.first
    if new:
        ui.console.print(f"{new:,} steps in {seconds:,.0f} s: {new / seconds:,.0f} a second")
    usual = presets_of(variant.game.name)[preset].threads
    changed = (("learner", trained.learner, "ppo"), ("device", device, "cpu"), ("threads", trained.preset.threads, usual))
    typed = {"steps": steps, "seed": trained.seed, **{name: value for name, value, default in changed if value != default}}
    command = _command(variant, preset, opponents or (), settings or {}, typed)
    found = measured(variant, trained.policy, f"ppo:{folder / 'policy.npz'}", trained.seed)
    table = _played(trained, evaluation_games) if variant.facts.num_seats > 1 else None
    pool = _against_pool(trained, evaluation_games) if variant.facts.num_seats > 2 else None
    return TrainingResult(trained, folder, command, new / seconds if new else None, *found, table, pool)


def _command(
    variant: Variant, preset: str, opponents: Sequence[str], settings: Mapping[str, Any], given: Mapping[str, Any]
) -> str:
    """Return the command that makes the same policy again; `given` are its other options by name."""
    tried = [f"{name}={setting_text(value)}" for name, value in settings.items()]
    typed = {"preset": preset, "option": option_texts(variant.plain.changed_options()), "opponent": [*opponents], "set": tried}
    return command_line(f"train {variant.game.name}", {**typed, **given})


# --- measures and games at the end ----------------------------------------------------------------------------------


def measured(variant: Variant, policy: NetworkPolicy, spec: str, seed: int) -> tuple[list[Measures], str, list[str]]:
    """Return the distance from optimal play of the policy, sampled and greedy; the reason why it is not known; and notes.

    Without a floor the policy gives every action some probability. If that makes too many positions, a note has the command
    that measures it instead, in which `spec` names the policy.
    """
    measures, notes = list[Measures](), list[str]()
    for name, agent, its_spec in (("ppo", policy, spec), ("ppo greedy", Likeliest(policy), f"{spec},greedy=true")):
        try:
            with ui.progress(f"measuring {name}") as done:
                told = up_to(MOST_POSITIONS, done) if agent is policy and not policy.floor else done
                found = measure(variant, agent, seed=seed, done=told)
        except TooLong as problem:
            options = "".join(f" -o {shlex.quote(part)}" for part in option_texts(variant.changed_options()))
            command = f"measure {variant.game.name} {its_spec}{options}"
            notes.append(f"{name} is not measured here: there are {problem} to evaluate. This command does it: {command}")
        except ValueError as problem:
            return measures, str(problem), [*notes, f"not measured against optimal play: {problem}"]
        else:
            measures.append(dataclasses.replace(found, agent=name))
    return measures, "", notes


def _played(trained: Trained, games: int) -> Result:
    """Return the final cross table, for games of two or more seats; with two, also the shares of edges.

    With two seats it is of pairs, without luck where the values of choices against an opponent are known and found fast.
    With more it is of one table with the policy and its opponents in turn, the last ones first.
    """
    policy, names, agents = trained.policy, list(trained.preset.opponents), dict(trained.pool)
    variant, seats = policy.variant, policy.variant.facts.num_seats
    values: list[Any] = [None, None]  # none against the policy's own two rows
    notes: list[str] = []
    players: list[Agent] = [policy]
    if seats == 2:
        row = ["ppo", "ppo greedy", *names]
        players.append(Likeliest(policy))
        for name in names if games > 1 else ():
            (agent,) = agents[name]
            with ui.progress(f"measuring values against {name}") as done:
                # Agents with `memoryless` need far fewer evaluations than positions are counted.
                told = done if promises_of(agent).memoryless else up_to(MOST_POSITIONS, done)
                found, reasons = known_values(variant, [name], [agent], told)
            values += found
            notes += reasons
    else:
        names = list(itertools.islice(itertools.cycle(reversed(names)), seats - 1))
        row = ["ppo", *names]
    players += [agents[name][0] for name in names]
    known = values if any(each is not None for each in values) else None
    with ui.progress("cross table", num_meetings(variant, len(row)) * games) as done:
        table = tournament(variant, row, games, trained.seed, done, players, values=known)
    table.notes = notes
    add_optimal(table, variant)
    if seats == 2:
        table.compare([each and won_by(variant, each) for each in values], whose=2)  # the policy's two forms
    return table


def _against_pool(trained: Trained, games: int) -> dict[str, Result]:
    """Return a table of the policy with each opponent of its training, which has all other seats of three or more.

    Where all are paid the same, the mean return is the team's.
    """
    variant, pool, found = trained.policy.variant, trained.pool, dict[str, Result]()
    seeds = derived_seeds(trained.seed, "pool", len(pool))
    with ui.progress("its pool", len(pool) * games) as done:
        for (name, players), own_seed in zip(pool, seeds, strict=True):
            others: list[Agent] = list(itertools.islice(itertools.cycle(players), variant.facts.num_seats - 1))
            names = ["ppo", *[name] * len(others)]
            found[name] = tournament(variant, names, games, own_seed, done, [trained.policy, *others])
    return found


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
    if against and wins:
        presets = presets_of(trained.policy.variant.game.name)
        others = " or ".join(name for name, each in presets.items() if each.self_play)
        ui.console.print(
            f"A best response wins {wins[0]:.1%} of the games against this policy: it has learned to beat these opponents, "
            f"not to be hard to beat. For that, train with --preset {others}."
        )
    elif measures:
        distances_grid(measures).show()


def distances_grid(measures: Sequence[Measures]) -> Grid:
    """The measures of the policy and of its likeliest actions beside optimal play."""
    rows = []
    for each in zip(*(found.measures for found in measures), strict=True):
        values = [plus_minus(one.value, one.error or None, 4) for one in each]
        rows.append((each[0].name, *values, f"{each[0].optimum:.4f}"))
    headings = ("policy", "its likeliest actions")[: len(measures)]
    return Grid("How far it is from optimal play", ("", *headings, "optimal"), rows)


def _pool_grid(pool: Mapping[str, Result], result: TrainingResult) -> Grid:
    cooperative = result.trained.policy.variant.facts.cooperative
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
    why = [f"Not measured: {result.not_measured}"] if result.not_measured else []
    games = [] if result.table is None else tournament_grids(result.table)
    games += [_pool_grid(result.pool, result)] if result.pool else []
    return [
        Section("What was trained", ["; ".join(trained) + "."], plots=plots),
        Section("How far from optimal play", why, [measures_grid(each) for each in result.measures]),
        *([Section("Against others", grids=games)] if games else []),
    ]


# --- plots ----------------------------------------------------------------------------------------------------------


def _plot(folder: Path, result: TrainingResult) -> None:
    """Write learning_curve.png (win rates beside what a best response wins, or returns), gap.png and cross_table.png."""
    trained, table = result.trained, result.table
    what = "mean return in training" if table is None else "share of training games won"
    best = {each.opponent: each.best_response_wins for each in (table.edges if table else ())}
    ui.finish(
        lambda: _plot_points(folder, "learning_curve", trained, what, what, "PPO while it learns", best),
        lambda: _plot_points(folder, "gap", trained, gap_label(result.measures), "gap from optimal play", "PPO", {}),
        lambda: None if table is None else save_plot(folder, "cross_table", table),
    )


def gap_label(found: Sequence[Measures]) -> str:
    """Return the label of an axis of gaps: the headline measure, with its 95 % interval where it was sampled."""
    if not found:
        return "gap from optimal play"
    headline = found[0].measures[0]
    return f"gap from optimal play: {headline.name}, " + (f"± {headline.error:.2g}" if headline.error else "exact")


def _plot_points(folder: Path, name: str, trained: Trained, what: str, axis: str, who: str, best: Mapping[str, float]) -> None:
    """Write a plot of a run's points against the learner's steps, a line for each of their names; nothing without points.

    A dashed line is at what is best, where that is known.
    """
    variant, gaps = trained.policy.variant, name == "gap"
    points = trained.gaps if gaps else trained.curve
    values = [value for point in points for key, value in point.items() if key != "steps"]
    if not values:
        return
    with saved_plot(folder, name, f"{variant}: {what} against the learner's steps, seed {trained.seed}.") as (_, axes):
        for key in sorted({key for point in points for key in point} - {"steps"}):
            line = [(point["steps"] / 1e6, point[key]) for point in points if key in point]
            (drawn,) = axes.plot(*zip(*line), label=f"{key} policy" if gaps else key, marker="." if gaps else "")
            if key in best:
                axes.axhline(best[key], color=drawn.get_color(), linestyle="--", linewidth=1)
        if gaps and max(values) > 5 * min(values):  # else a logarithmic axis has hardly a label
            logarithmic(axes, "y")
        axes.set_xlim(left=0)
        axes.set_xlabel("learner steps, millions")
        axes.set_ylabel(axis)
        below = f"\n{what}" * gaps + "\ndashed: what a best response wins" * bool(best)
        axes.set_title(f"{variant.game.title}: {who}, seed {trained.seed}{below}", fontsize=12)
        axes.grid(alpha=0.3, which="both")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
