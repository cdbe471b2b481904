"""`train`: a PPO agent, or a sweep of them."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dice_envs import Measures, names
from dice_envs.core.options import check_range
from dice_envs.exact.contract import BEST_RESPONSE_WINS, plus_minus
from dice_envs.experiments import ui
from dice_envs.experiments.arena.results import Result, edge_grid, save_plot, tournament_grids
from dice_envs.experiments.sweep import MOST_RUNS, RECIPES, parse_settings, sweep
from dice_envs.experiments.train import TrainingResult, train
from dice_envs.experiments.ui.grids import Grid, measures_grid, short, show_all
from dice_envs.experiments.ui.pages import About, Plot, Section, logarithmic, plots_noted, saved_plot, write_page
from dice_envs.learn.presets import presets_of
from dice_envs.learn.run import TrainingRun


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
    measure: Annotated[str | None, typer.Option(help="Afterwards: none, quick or full. Default: see above.")] = None,
    evaluation_games: Annotated[int | None, ui.count_option(help="Games of a pair afterwards; 20,000, quick 2,000.")] = None,
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

    A training that is shorter than a minute and than its preset's is measured quickly, and a line says what was left out and
    which command adds it; --measure full measures all.

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
    measuring = measure or ("full" if several else None)  # runs that are compared have the same measures
    common |= {"evaluation_games": evaluation_games, "measuring": measuring, "learner": learner, "device": device}
    common["verbose"] = verbose
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
        ui.console.print(
            f"A best response wins {wins[0]:.1%} of the games against {whose}: it has learned to beat these opponents, "
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
