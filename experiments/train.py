"""The command `train`: `dice_envs.train` with progress on the terminal; then measures, tables, plots and a report."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dice_envs
from dice_envs.agent.casting import cast
from dice_envs.core.game import Variant, single_seat
from dice_envs.core.options import check_range, option_texts
from dice_envs.experiments.arena import MOST_GAMES
from dice_envs.experiments.jobs.guard import first_signal_waits, writer_errors_name
from dice_envs.experiments.outcome import (
    add_measures,
    add_pool,
    add_table,
    gap_label,
    plot_curve,
    plot_gaps,
    run_sections,
    show_verdict,
)
from dice_envs.experiments.ui.console import Stopped, console, finish, print_mode
from dice_envs.experiments.ui.files import check_report, check_writable, write_json
from dice_envs.experiments.ui.measures import show as show_measures
from dice_envs.experiments.ui.options import game_options
from dice_envs.experiments.ui.page import About, write_page
from dice_envs.experiments.ui.plots import plots_noted
from dice_envs.experiments.ui.progress import progress
from dice_envs.experiments.ui.tournaments import save_plot, show
from dice_envs.learn import Trained, TrainingCallback
from dice_envs.learn.presets import presets_of

__all__ = ["setting_text", "train"]


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
    table = add_table(trained, evaluation_games, result) if seats > 1 else None
    if seats > 2:
        add_pool(trained, evaluation_games, result)
    if verbose:
        for found in result["measures"]:
            show_measures(found)
        if table is not None:
            show(table)
    show_verdict(trained, result, evaluation_games)
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
            lambda: plot_curve(where, trained),
            lambda: plot_gaps(where, trained, gap_label(result["measures"])),
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
