"""The command `train`: trains with progress on the terminal, measures, saves and reports."""

from __future__ import annotations

import dataclasses
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dice_envs import Variant, configure
from dice_envs.agent.casting import cast
from dice_envs.core.files import folder_lock
from dice_envs.core.game import single_seat
from dice_envs.core.options import check_range, check_seed, option_texts
from dice_envs.experiments.arena import MOST_GAMES
from dice_envs.experiments.jobs.guard import first_signal_waits, writer_errors_name
from dice_envs.experiments.outcome import (
    add_edges,
    add_measures,
    add_pool,
    add_table,
    gap_label,
    plot_curve,
    plot_gaps,
    run_sections,
)
from dice_envs.experiments.ui.console import Stopped, console, finish, print_mode
from dice_envs.experiments.ui.files import check_folder, check_report, check_writable, write_json
from dice_envs.experiments.ui.options import game_options
from dice_envs.experiments.ui.page import About, write_page
from dice_envs.experiments.ui.plots import plots_noted
from dice_envs.experiments.ui.progress import progress
from dice_envs.experiments.ui.tournaments import save_plot
from dice_envs.learn.callback import TrainingCallback
from dice_envs.learn.presets import preset_of, presets_of
from dice_envs.learn.run import Run, check_plan, open_run

__all__ = ["setting_text", "train"]


class _Shown(TrainingCallback):
    """Shows a run on the terminal, and stops it on a signal."""

    def __init__(self, done: Callable[[int], Any], signal_noted: Callable[[], int | None], writer: Any) -> None:
        self.done, self.signal_noted, self.writer = done, signal_noted, writer

    def learned(self, steps: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, steps)

    def advanced(self, steps: int) -> None:
        self.done(steps)

    def measured(self, steps: int, minutes: float, name: str, gaps: Mapping[str, float]) -> None:
        found = "  ".join(f"{policy} {gap:.4f}" for policy, gap in gaps.items())
        console.print(f"{steps:>12,} steps  {minutes:>7.1f} min  {name}: {found}")

    def saved(self, steps: int, speed: float, scores: Mapping[str, float]) -> None:
        found = "  ".join(f"{name} {score:.3f}" for name, score in scores.items())
        console.print(f"{steps:>12,} steps  {speed:>8,.0f}/s  {found}")

    def stop(self) -> bool:
        return self.signal_noted() is not None


def _learn(run: Run, folder: Path) -> None:
    """Train the rest of a run. Raises Stopped, with everything saved, after a signal."""
    if run.left <= 0:
        return
    log = folder / "tensorboard"
    from torch.utils.tensorboard import SummaryWriter

    with (
        first_signal_waits() as signal_noted,
        progress("learner steps", run.left) as done,
        writer_errors_name(log),
        SummaryWriter(str(log / "ppo")) as writer,
    ):
        run.learn(_Shown(done, signal_noted, writer))
        number = signal_noted()
        if number is not None:
            raise Stopped(
                f"stopped after {run.steps:,} steps, which are saved in {folder}; the same command with --resume goes on",
                number,
            )


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
    device: str = "cpu",
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
    report: Path | None = None,
) -> dict[str, Any]:
    """Train, measure and save. The arguments are those of the command `train`; `settings` are fields of the preset.

    Returns:
        The content of results.json: command, seed, speed, learning curve, measures, cross table.

    Raises:
        ValueError: wrong arguments, a folder that holds another run or is in use, a damaged checkpoint.
        Stopped: Ctrl-C or SIGTERM came during training; everything is saved.
    """
    options, plain = game_options(option), configure(game).game
    given: dict[str, Any] = {"opponents": tuple(opponents)} if opponents else {}
    given |= {name: value for name, value in (("steps", steps), ("threads", threads)) if value is not None}
    plan = preset_of(plain.name, preset, **{**(settings or {}), **given})
    check_range("evaluation_games", evaluation_games, 1, MOST_GAMES)
    seed = check_seed(seed)
    variant, _, policy = cast(game, options, opponents or (), single_seat)
    check_plan(variant, plan, opponents, device)
    check_writable(json)
    folder = out or Path("runs") / f"{plain.name}_{preset}"
    check_folder(folder)
    check_report(report)
    print_mode(variant, policy)
    with folder_lock(folder, "--out"):
        if (folder / "checkpoint.pt").exists() and not resume:
            raise ValueError(f"{folder} holds a run already; add --resume to go on with it, or choose another --out")
        run = open_run(folder, variant, plan, seed, given, device)
        run.save()
        usual = presets_of(plain.name)[preset].threads
        other_threads = run.preset.threads if run.preset.threads != usual else None
        command = _command(variant, preset, opponents, steps, run.seed, other_threads, settings or {})
        return _finish(run, folder, evaluation_games, json, command, report)


def _command(
    variant: Variant,
    preset: str,
    opponents: Sequence[str] | None,
    steps: int | None,
    seed: int,
    threads: int | None,
    settings: Mapping[str, Any],
) -> str:
    """The command that makes the same policy again. `threads` are part of it, because they change how sums are rounded."""
    parts = [f"python -m experiments train {variant.game.name} --preset {preset}"]
    parts += [f"-o {shlex.quote(part)}" for part in option_texts(variant.plain.changed_options())]
    parts += [f"--opponent {spec}" for spec in opponents or ()]
    parts += [f"--set {name}={setting_text(value)}" for name, value in settings.items()]
    parts += [] if steps is None else [f"--steps {steps}"]
    parts += [f"--seed {seed}"]
    parts += [] if threads is None else [f"--threads {threads}"]
    return " ".join(parts)


def setting_text(value: Any) -> str:
    """A setting's value as `--set` takes it: layers are written 128x128."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _finish(
    run: Run, folder: Path, evaluation_games: int, json: Path | None, command: str, report: Path | None
) -> dict[str, Any]:
    """Train the rest, measure, and write the results."""
    first = run.steps
    console.print(f"training {run.variant} from step {first:,} to {run.preset.steps:,} in {folder}, seed {run.seed}")
    start = time.perf_counter()
    _learn(run, folder)
    seconds, trained = time.perf_counter() - start, run.steps - first
    result: dict[str, Any] = {
        "command": command,
        "seed": run.seed,
        "steps": run.steps,
        "steps_per_second": trained / seconds if trained else None,
        "minutes": max(run.minutes.values(), default=None),
        "curve": run.curve,
        "gaps": [{**point, "minutes": run.minutes.get(str(point["steps"]))} for point in run.gaps],
    }
    if trained:
        console.print(f"{trained:,} steps in {seconds:,.0f} s: {result['steps_per_second']:,.0f} a second")
    spec, seats = f"ppo:{folder / 'policy.npz'}", run.variant.facts.num_seats
    add_measures(run.variant, spec, run.preset.floor > 0, run.seed, result)
    table = add_table(run.variant, spec, run.preset.opponents, evaluation_games, run.seed, result) if seats > 1 else None
    if seats > 2:
        add_pool(run.variant, spec, run.opponents.by_name(), evaluation_games, run.seed, result)
    if table is not None and seats == 2:
        add_edges(run.variant, table, run.seed, result)

    def plot(where: Path) -> None:
        finish(
            lambda: plot_curve(where, run.variant, run.seed, run.curve, seats > 1),
            lambda: plot_gaps(where, run.variant, run.seed, result["gaps"], gap_label(result["measures"])),
            lambda: save_plot(where, "cross_table", table) if table is not None else None,
        )

    def write_report() -> None:
        if report is None:
            return
        with plots_noted() as plots:
            plot(report)
        about = About(command, {"preset": run.preset, **dataclasses.asdict(run.variant.options)}, run.seed)
        write_page(report, f"PPO trained on {run.variant}", [], run_sections(result, table, plots), about)

    finish(
        lambda: write_json(folder / "results.json", result),
        lambda: write_json(json, result),
        lambda: plot(folder),
        write_report,
        lambda: console.print(f"saved: ppo:{folder}"),
    )
    return result
