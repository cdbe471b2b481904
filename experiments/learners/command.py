"""The command `benchmark learners`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dice_envs import TASKS, names
from dice_envs.core.game import Variant, single_seat
from dice_envs.core.options import check_range, did_you_mean, shown
from dice_envs.core.own import FILES
from dice_envs.experiments import ui
from dice_envs.experiments.jobs import Processes, resumable
from dice_envs.experiments.learners import ALGORITHMS, Budget, learn, parse, summary
from dice_envs.experiments.ui.grids import Grid, show_all
from dice_envs.experiments.ui.pages import (
    About,
    Section,
    command_line,
    logarithmic,
    plots_noted,
    saved_plot,
    versions,
    write_page,
)

LONGEST = 14 * 24 * 60.0  # minutes
MOST_STEPS = 10**12
LIBRARIES = ("open-spiel", "stable-baselines3", "sb3-contrib")
INTRO = (
    "Learning algorithms on one game, each on one core, measured exactly while they learn: no games are sampled. "
    "Minutes are processor time of training alone. Figures are those of the median run, with the least and the greatest "
    "over seeds."
)


def learners(
    task: Annotated[str, typer.Argument(help="A named task, or a game with its options (-o).")],
    algorithms: Annotated[list[str], typer.Argument(help="NAME or NAME:KEY=VALUE, or FILE.py:NAME of your own; all: each.")],
    option: ui.OptionOption = None,
    steps: Annotated[int, ui.count_option(help="Steps after which an algorithm stops.")] = 10_000_000,
    minutes: Annotated[float, typer.Option(help="Minutes of a core after which it stops.")] = 60.0,
    seeds: Annotated[int, ui.count_option(help="Runs of each algorithm, with seeds from --seed upwards.")] = 3,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 1,
    jobs: Annotated[int, typer.Option(help="Runs at once, one core each.")] = 1,
    json: ui.JsonOption = None,
    report: ui.ReportOption = None,
    resume: ui.ResumeOption = False,
) -> None:
    """Known learning algorithms on one game, each measured exactly while it learns.

    The algorithms are other people's code as its authors ship it (OpenSpiel, Stable-Baselines3), and this package's PPO. Each
    learns on one core up to about --steps or --minutes, whichever comes first, with several seeds. It is measured after about
    0.1 minutes of training, after twice as many each time, and at the end. A step is a decision in a game; of CFR and its like
    it is an iteration.

    An algorithm of your own is a class with three functions, see docs/algorithms.md. With --json finished runs are kept; after
    a stop the same command with --resume continues.

    Example: benchmark learners liars_dice_openspiel_1 nfsp external_mccfr equilibrium --minutes 5 --json result.json
    """
    variant = variant_of(task, ui.game_options(option))
    specs = list(ALGORITHMS) if algorithms == ["all"] else list(dict.fromkeys(algorithms))
    for spec in specs:
        parse(spec)
    check_range("steps", steps, 1, MOST_STEPS)
    check_range("minutes", minutes, 0.01, LONGEST, whole=False)
    check_range("seeds", seeds, 1, 1000)
    check_range("jobs", jobs, 1, 256)
    what = {"learners": specs, "variant": str(variant), "steps": steps, "minutes": minutes, "seeds": seeds}
    parts = [(spec, number) for number in range(seed, seed + seeds) for spec in specs]
    with resumable(json, resume, what, seed) as (_, workers):
        workers = Processes(jobs, workers.kept) if jobs > 1 else workers
        seconds = 60 * minutes
        with ui.progress("seconds of training", seconds * len(parts)):
            runs = workers.run(learn, (variant, Budget(steps, minutes)), parts, [seconds] * len(parts))
    found = {spec: [run for run in runs if run["algorithm"] == spec] for spec in specs}
    words = shlex.join(["benchmark", "learners", task, *algorithms])
    typed = {
        "option": option,
        "steps": steps,
        "minutes": minutes,
        "seeds": seeds,
        "seed": seed,
        "jobs": jobs if jobs > 1 else None,
    }
    command = command_line(words, {**typed, "json": json, "report": report})
    written = {
        "command": command,
        "game": variant.game.name,
        "options": variant.changed_options(),
        "budget": {"steps": steps, "minutes": minutes},
        "versions": versions(*LIBRARIES),
        "own_code": dict(FILES),
        "runs": runs,
    }
    about = About(command, {"steps": steps, "minutes": minutes, "seeds": seeds}, seed)
    grid = grid_of(str(variant), found)
    ui.write_all(
        json,
        written,
        report,
        lambda folder: _write_report(folder, grid, found, about),
        lambda: ui.console.print(f"{_verdict(found)}; {'seed' if seeds == 1 else f'seeds {seed} to'} {seed + seeds - 1}"),
        lambda: show_all([grid]),
    )


def variant_of(task: str, options: Mapping[str, Any]) -> Variant:
    """Return the variant of a task's name, or of a game's with options. ValueError if there is none."""
    if task not in TASKS:
        near = did_you_mean(task, TASKS)
        if near and task not in names():
            raise ValueError(f"unknown task {shown(task)}; tasks are: {', '.join(TASKS)}, or a game{near}")
        return single_seat(task, **options)
    if options:
        raise ValueError(f"-o must be left out with the task {shown(task)}, which has its own options")
    return TASKS[task].variant


def grid_of(title: str, found: Mapping[str, Sequence[dict[str, Any]]]) -> Grid:
    """Return a table of algorithms, the best first: what their runs end with, and below it how that was measured."""
    rows, notes = [], dict[str, list[str]]()
    for spec in sorted(found, key=lambda spec: summary(found[spec])[0]):
        runs = found[spec]
        median, least, greatest = summary(runs)
        last = [run["points"][-1] for run in runs]
        steps, minutes = max(point["steps"] for point in last), max(point["minutes"] for point in last)
        between = f"{least:.4f} to {greatest:.4f}" if len(runs) > 1 else ""
        rows.append((spec, f"{median:.4f}", between, f"{steps:,} {runs[0]['unit']}", f"{minutes:.1f}"))
        notes.setdefault(runs[-1].get("note", ""), []).append(spec)
    name = next(iter(found.values()))[0]["name"]
    said = [f"{', '.join(specs)}: {note}" for note, specs in notes.items() if note]
    return Grid(title, ("algorithm", name, "over seeds", "steps", "core minutes"), rows, (0, 2, 3), said)


def _verdict(found: Mapping[str, Sequence[dict[str, Any]]]) -> str:
    best = min(found, key=lambda spec: summary(found[spec])[0])
    which = "the least " if len(found) > 1 else ""
    return f"{best} ends with {which}{found[best][0]['name']} {summary(found[best])[0]:.4f}"


def plot(axes: Any, found: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Draw what each algorithm has reached after so many minutes of a core: a line for the median run, thin ones for all.

    The legend has the algorithms in the order in which the lines end, from above.
    """
    from matplotlib import rcParams

    looks = list(rcParams["axes.prop_cycle"])
    for number, spec in enumerate(sorted(found, key=lambda spec: -summary(found[spec])[0])):
        runs, look = found[spec], {**looks[number % len(looks)], "linestyle": ("-", "--", ":")[number // len(looks) % 3]}
        median = sorted(runs, key=lambda run: run["points"][-1]["value"])[(len(runs) - 1) // 2]
        for run in runs:
            minutes, values = ([point[name] for point in run["points"]] for name in ("minutes", "value"))
            style = {"label": spec} if run is median else {"linewidth": 0.6, "alpha": 0.5, "marker": ""}
            axes.plot(minutes, values, **{**look, **style})
    name = next(iter(found.values()))[0]["name"]
    for axis in ("x", "y"):
        logarithmic(axes, axis)  # type: ignore[arg-type]
    axes.set(xlabel="minutes of one core", ylabel=name)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


def _write_report(folder: Path, grid: Grid, found: Mapping[str, Sequence[dict[str, Any]]], about: About) -> None:
    with plots_noted() as plots:
        caption = f"{grid.title}: what each algorithm has reached; the thick line is the run whose end is the median."
        with saved_plot(folder, "learners", caption, figsize=(10, 6)) as (_, axes):
            plot(axes, found)
    write_page(folder, "dice-envs: learning algorithms", [INTRO], [Section(grid.title, (), [grid], plots)], about)
