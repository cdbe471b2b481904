"""The command `train`: `dice_envs.train` with progress on the terminal; then measures, tables, plots and a report."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dice_envs
from dice_envs import Agent, Measures, Variant, measure
from dice_envs.agent import promises_of
from dice_envs.agent.casting import cast
from dice_envs.agents.ppo import Likeliest, NetworkPolicy
from dice_envs.core.dice import derived_seeds
from dice_envs.core.game import single_seat
from dice_envs.core.options import check_range, option_texts
from dice_envs.exact.contract import BEST_RESPONSE_WINS
from dice_envs.exact.limits import TooLong, up_to
from dice_envs.experiments.arena import MOST_GAMES, Result, add_optimal, known_values, num_meetings, tournament, won_by
from dice_envs.experiments.arena.tables import edge_grid, save_plot, show, tournament_grids
from dice_envs.experiments.jobs.guard import first_signal_waits, writer_errors_name
from dice_envs.experiments.ui.console import Stopped, console, finish, print_mode
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.findings import measures_grid, measuring, show_measures
from dice_envs.experiments.ui.grids import Grid, plus_minus, short
from dice_envs.experiments.ui.options import game_options
from dice_envs.experiments.ui.page import About, Section, write_page
from dice_envs.experiments.ui.plots import Plot, logarithmic, plots_noted, saved_plot
from dice_envs.experiments.ui.progress import progress
from dice_envs.learn import Trained, TrainingCallback
from dice_envs.learn.presets import presets_of

__all__ = ["add_measures", "gap_label", "run_sections", "setting_text", "train"]

MOST_POSITIONS = 20_000_000  # at which a stochastic policy is evaluated after training


class _Shown(TrainingCallback):
    """Shows a run on the terminal, keeps TensorBoard's log of it, and stops it on a signal.

    Args:
        variant: the game.
        folder: of the run.
        check: called before the training; it may raise.
        until_ended: keeps what is open during the training.
    """

    def __init__(self, variant: Variant, folder: Path, check: Callable[[], Any], until_ended: contextlib.ExitStack) -> None:
        self.variant, self.folder, self.check, self.until_ended = variant, folder, check, until_ended
        self.signal_noted: Callable[[], int | None] = lambda: None

    def started(self, steps: int, until: int, seed: int) -> None:
        self.check()
        self.first, self.start = steps, time.perf_counter()
        if steps >= until:
            console.print(f"already trained on {self.variant}: {steps:,} steps in {self.folder}, seed {seed}")
            return
        console.print(f"training {self.variant} from step {steps:,} to {until:,} in {self.folder}, seed {seed}")
        from torch.utils.tensorboard import SummaryWriter

        self.signal_noted = self.until_ended.enter_context(first_signal_waits())
        self.advanced = self.until_ended.enter_context(progress("learner steps", until - steps))  # type: ignore[method-assign]
        log = self.folder / "tensorboard"
        self.until_ended.enter_context(writer_errors_name(log))
        self.writer = SummaryWriter(str(log / "ppo"))  # type: ignore[no-untyped-call]
        self.until_ended.callback(self.writer.close)

    def learned(self, steps: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, steps)  # type: ignore[no-untyped-call]

    def measured(self, steps: int, minutes: float, name: str, gaps: Mapping[str, float]) -> None:
        found = "  ".join(f"{policy} {gap:.4f}" for policy, gap in gaps.items())
        console.print(f"{steps:>12,} steps  {minutes:>7.1f} min  {name}: {found}")

    def saved(self, steps: int, speed: float, scores: Mapping[str, float]) -> None:
        found = "  ".join(f"{name} {score:.3f}" for name, score in scores.items())
        console.print(f"{steps:>12,} steps  {speed:>8,.0f}/s  {found}")

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
    json: Path | None = None,
    learner: str | None = None,
    device: str = "cpu",
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
    report: Path | None = None,
    verbose: bool = False,
) -> dict[str, Any]:
    """Train, measure and save. The arguments are those of the command `train`; `settings` are fields of the preset.

    Returns:
        The content of results.json: command, seed, speed, learning curve, measures, cross table.

    Raises:
        ValueError: wrong arguments, a folder that holds another run or is in use, a damaged checkpoint.
        Stopped: Ctrl-C or SIGTERM came during training; everything is saved.
    """
    variant, _, policy = cast(game, game_options(option), opponents or (), single_seat)
    check_range("evaluation_games", evaluation_games, 1, MOST_GAMES)
    folder = out or Path("runs") / f"{variant.game.name}_{preset}"
    if (folder / "checkpoint.pt").exists() and not resume:
        raise ValueError(f"{folder} holds a run already; add --resume to go on with it, or choose another --out")

    def check() -> None:
        check_writable(json)
        check_report(report)
        print_mode(variant, policy)

    given = {**(settings or {}), **({} if threads is None else {"threads": threads})}
    with contextlib.ExitStack() as until_ended:
        shown = _Shown(variant, folder, check, until_ended)
        trained = dice_envs.train(
            variant, preset=preset, steps=steps, opponents=opponents or None, seed=seed, settings=given, folder=folder,
            learner=learner, device=device, callback=shown,
        )  # fmt: skip
    seconds, number = time.perf_counter() - shown.start, shown.signal_noted()
    if number is not None:
        goes_on = f"which are saved in {folder}; the same command with --resume goes on"
        raise Stopped(f"stopped after {trained.steps:,} steps, {goes_on}", number)
    new = trained.steps - shown.first
    usual = presets_of(variant.game.name)[preset].threads
    changed = (("learner", trained.learner, "ppo"), ("device", device, "cpu"), ("threads", trained.preset.threads, usual))
    given = {} if steps is None else {"steps": steps}
    given |= {"seed": trained.seed, **{name: value for name, value, default in changed if value != default}}
    result: dict[str, Any] = {
        "command": _command(variant, preset, opponents or (), settings or {}, given),
        "seed": trained.seed,
        "steps": trained.steps,
        "steps_per_second": new / seconds if new else None,
        "minutes": max(trained.minutes_at.values(), default=None),
        "curve": trained.curve,
        "gaps": [{**point, "minutes": trained.minutes_at.get(point["steps"])} for point in trained.gaps],
    }
    if new:
        console.print(f"{new:,} steps in {seconds:,.0f} s: {result['steps_per_second']:,.0f} a second")
    add_measures(variant, trained.policy, f"ppo:{folder / 'policy.npz'}", trained.seed, result)
    seats = variant.facts.num_seats
    table = _add_table(trained, evaluation_games, result) if seats > 1 else None
    if seats > 2:
        _add_pool(trained, evaluation_games, result)
    if verbose:
        for found in result["measures"]:
            show_measures(found)
        if table is not None:
            show(table)
    _show_verdict(trained, result, evaluation_games)
    _write(trained, result, table, folder, json, report)
    return result


def _command(
    variant: Variant, preset: str, opponents: Sequence[str], settings: Mapping[str, Any], given: Mapping[str, Any]
) -> str:
    """Return the command that makes the same policy again; `given` are its other options by name."""
    parts = [f"python -m experiments train {variant.game.name} --preset {preset}"]
    parts += [f"-o {shlex.quote(part)}" for part in option_texts(variant.plain.changed_options())]
    parts += [f"--opponent {spec}" for spec in opponents]
    parts += [f"--set {name}={setting_text(value)}" for name, value in settings.items()]
    return " ".join([*parts, *(f"--{name} {value}" for name, value in given.items())])


def _write(trained: Trained, result: dict[str, Any], table: Any, folder: Path, json: Path | None, report: Path | None) -> None:
    """Write the results, plots and the report."""

    def plot(where: Path) -> None:
        finish(
            lambda: _plot_curve(where, trained, result.get("edges", ())),
            lambda: _plot_gaps(where, trained, gap_label(result["measures"])),
            lambda: save_plot(where, "cross_table", table) if table is not None else None,
        )

    def write_report() -> None:
        if report is None:
            return
        with plots_noted() as plots:
            plot(report)
        variant = trained.policy.variant
        about = About(result["command"], {"preset": trained.preset, **dataclasses.asdict(variant.options)}, trained.seed)
        write_page(report, f"PPO trained on {variant}", [], run_sections(result, table, plots), about)

    finish(
        lambda: write_json(folder / "results.json", result),
        lambda: write_json(json, result),
        lambda: plot(folder),
        write_report,
        lambda: _say_where(trained.policy.variant, folder),
    )


def _say_where(variant: Variant, folder: Path) -> None:
    """Print where the policy is, and the command to play against it."""
    console.whole_line(f"saved: ppo:{folder}; all results: {folder / 'results.json'}, or --verbose")
    if variant.facts.num_seats > 1:
        options = "".join(f" -o {shlex.quote(part)}" for part in option_texts(variant.changed_options()))
        console.whole_line(f"play against it: python -m experiments play {variant.game.name} ppo:{folder}{options}")


def setting_text(value: Any) -> str:
    """A setting's value as `--set` takes it: layers are written 128x128."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


# --- the final results ----------------------------------------------------------------------------------------------


def add_measures(variant: Variant, policy: NetworkPolicy, spec: str, seed: int, result: dict[str, Any]) -> None:
    """Add the distance from optimal play of the policy, sampled and greedy, or the reason why it is not known.

    Without a floor the policy gives every action some probability. If that makes too many positions, print the command
    that measures it instead, in which `spec` names the policy.
    """
    result["measures"] = []
    for name, agent, its_spec in (("ppo", policy, spec), ("ppo greedy", Likeliest(policy), f"{spec},greedy=true")):
        try:
            with measuring(name) as done:
                told = up_to(MOST_POSITIONS, done) if agent is policy and not policy.floor else done
                found = measure(variant, agent, seed=seed, done=told)
        except TooLong as problem:
            options = "".join(f" -o {shlex.quote(part)}" for part in option_texts(variant.changed_options()))
            command = f"measure {variant.game.name} {its_spec}{options}"
            console.print(f"{name} is not measured here: there are {problem} to evaluate. This command does it: {command}")
            continue
        except ValueError as problem:
            result["not_measured"] = str(problem)
            console.print(f"not measured against optimal play: {problem}")
            return
        result["measures"].append(dataclasses.replace(found, agent=name))


def _add_table(trained: Trained, games: int, result: dict[str, Any]) -> Result:
    """Add and return the final cross table, for games of two or more seats; with two, also the shares of edges.

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
            with measuring(f"values against {name}") as done:
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
    with progress("cross table", num_meetings(variant, len(row)) * games) as done:
        table = tournament(variant, row, games, trained.seed, done, players, values=known)
    table.notes = notes
    add_optimal(table, variant)
    result["table"] = table.as_dict()
    if seats == 2:
        table.compare([each and won_by(variant, each) for each in values], whose=2)  # the policy's two forms
        result["edges"] = table.edges
    return table


def _add_pool(trained: Trained, games: int, result: dict[str, Any]) -> None:
    """Add the policy's share of wins against each opponent of its training pool, at a table of three seats or more.

    The opponent has all other seats. Where all are paid the same, the mean return is the team's.
    """
    variant, pool = trained.policy.variant, trained.pool
    seats, result["pool"] = variant.facts.num_seats, []
    seeds = derived_seeds(trained.seed, "pool", len(pool))
    with progress("its pool", len(pool) * games) as done:
        for (name, players), own_seed in zip(pool, seeds, strict=True):
            others: list[Agent] = list(itertools.islice(itertools.cycle(players), seats - 1))
            names = ["ppo", *[name] * len(others)]
            own = tournament(variant, names, games, own_seed, done, [trained.policy, *others]).meetings[0]
            row = {key: vars(own)[key] for key in ("win_rate", "ci95", "mean_return", "mean_return_ci95")}
            result["pool"].append({"opponent": name, "seats": len(others), "games": games, "even": 1 / seats, **row})


# --- how they are shown ---------------------------------------------------------------------------------------------


def _show_verdict(trained: Trained, result: dict[str, Any], games: int) -> None:
    """Print what the training was for: what was won from its opponents and could be, or how far play is from optimal."""
    variant, preset, measures = trained.policy.variant, trained.preset, result["measures"]
    against = bool(result.get("edges")) and not preset.self_play
    if against:
        own = [edge for edge in result["edges"] if edge["agent"] == "ppo"]
        edge_grid(own, f"Games won, % of {games:,} against each").show()
    elif result.get("pool"):
        _pool_grid(result["pool"], games, trained.seed, variant.facts.cooperative).show()
    wins = [each.value for each in measures[0].measures if each.name == BEST_RESPONSE_WINS] if measures else []
    if against and wins:
        others = " or ".join(name for name, each in presets_of(variant.game.name).items() if each.self_play)
        console.print(
            f"A best response wins {wins[0]:.1%} of the games against this policy: it has learned to beat these opponents, "
            f"not to be hard to beat. For that, train with --preset {others}."
        )
    elif measures:
        _distances_grid(measures).show()


def _distances_grid(measures: Sequence[Measures]) -> Grid:
    """The measures of the policy and of its likeliest actions beside optimal play."""
    rows = []
    for each in zip(*(found.measures for found in measures), strict=True):
        values = [plus_minus(one.value, one.error or None, 4) for one in each]
        rows.append((each[0].name, *values, f"{each[0].optimum:.4f}"))
    headings = ("policy", "its likeliest actions")[: len(measures)]
    return Grid("How far it is from optimal play", ("", *headings, "optimal"), rows)


def _plot_curve(folder: Path, trained: Trained, edges: Sequence[dict[str, Any]]) -> None:
    """Write learning_curve.png: win rates beside what a best response wins, or returns, against the learner's steps."""
    alone = trained.policy.variant.facts.num_seats == 1
    what = "mean return in training" if alone else "share of training games won"
    best = {each["opponent"]: each["best_response_wins"] for each in edges}
    _plot_points(folder, "learning_curve", trained, trained.curve, what, what, "PPO while it learns", best)


def _plot_gaps(folder: Path, trained: Trained, label: str) -> None:
    """Write gap.png: the distance from optimal play against the learner's steps."""
    _plot_points(folder, "gap", trained, trained.gaps, label, "gap from optimal play", "PPO", {})


def _plot_points(
    folder: Path,
    name: str,
    trained: Trained,
    points: list[dict[str, Any]],
    what: str,
    axis: str,
    who: str,
    best: Mapping[str, float],
) -> None:
    """Write a plot of a run's points against the learner's steps, a line for each of their names; nothing without points.

    A dashed line is at what is best, where that is known.
    """
    variant, gaps = trained.policy.variant, points is trained.gaps
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


def gap_label(found: Sequence[Measures]) -> str:
    """Return the label of an axis of gaps: the headline measure, with its 95 % interval where it was sampled."""
    if not found:
        return "gap from optimal play"
    headline = found[0].measures[0]
    return f"gap from optimal play: {headline.name}, " + (f"± {headline.error:.2g}" if headline.error else "exact")


def run_sections(result: dict[str, Any], table: Result | None, plots: Sequence[Plot]) -> list[Section]:
    """Return the results of a run as sections of a page."""
    speed = result["steps_per_second"]
    trained = [f"{result['steps']:,} learner steps"]
    trained += [] if result["minutes"] is None else [f"{result['minutes']:.1f} minutes"]
    trained += [] if speed is None else [f"{speed:,.0f} steps a second"]
    why = [f"Not measured: {result['not_measured']}"] if "not_measured" in result else []
    games = [] if table is None else tournament_grids(table)
    if table is not None and result.get("pool"):
        games.append(_pool_grid(result["pool"], table.games, table.seed, table.cooperative))
    return [
        Section("What was trained", ["; ".join(trained) + "."], plots=plots),
        Section("How far from optimal play", why, [measures_grid(each) for each in result["measures"]]),
        *([Section("Against others", grids=games)] if games else []),
    ]


def _pool_grid(pool: Sequence[dict[str, Any]], games: int, seed: int, cooperative: bool) -> Grid:
    wins = [] if cooperative else ["even share", "share of wins"]
    headings = ("all other seats", *wins, "team's mean return" if cooperative else "mean return")
    rows = []
    for row in pool:
        shares = [f"{100 * row['even']:.2f}", plus_minus(row["win_rate"], row["ci95"], percent=True)]
        shares, earned = [] if cooperative else shares, plus_minus(row["mean_return"], row["mean_return_ci95"], 4)
        rows.append((f"{row['seats']} × {short(row['opponent'])}", *shares, earned))
    return Grid(f"against its pool, {games:,} games each, seed {seed}", headings, rows, whole=(0,))
