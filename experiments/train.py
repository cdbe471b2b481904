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
from dice_envs.agent.casting import cast
from dice_envs.agent.matches import MOST_GAMES
from dice_envs.agents.ppo import Likeliest, NetworkPolicy
from dice_envs.core.dice import derived_seeds
from dice_envs.core.files import named_in_errors
from dice_envs.core.game import single_seat
from dice_envs.core.options import check_choice, check_range, option_texts
from dice_envs.core.work import TooLong
from dice_envs.experiments import ui
from dice_envs.experiments.arena import add_optimal, known_values, num_meetings, tournament, won_by
from dice_envs.experiments.arena.results import Result
from dice_envs.experiments.jobs.guard import first_signal_waits
from dice_envs.experiments.sweep import setting_text
from dice_envs.experiments.ui.pages import command_line
from dice_envs.learn import TrainingCallback
from dice_envs.learn.presets import presets_of
from dice_envs.learn.run import TrainingRun

LEVELS = ("none", "quick", "full")  # of measuring after training
SHORT = 1.0  # minutes: a shorter training, of fewer steps than its preset's, is measured quickly unless asked otherwise
MOST_POSITIONS, QUICK_POSITIONS = 20_000_000, 1_000_000  # at which a stochastic policy is evaluated after training
MOST_PLAYED, QUICK_PLAYED = 20_000, 2000  # games of each pair or table
QUICK_MINUTES = 0.1  # of each part of a quick measurement


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


def train(
    game: str,
    preset: str = "quick",
    out: Path | None = None,
    option: Sequence[str] = (),
    opponents: Sequence[str] | None = None,
    steps: int | None = None,
    seed: int | None = None,
    resume: bool = False,
    evaluation_games: int | None = None,
    measuring: str | None = None,
    learner: str | None = None,
    device: str = "cpu",
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> TrainingResult:
    """Train and measure. The arguments are those of the command `train`; `settings` are fields of the preset, `measuring` is
    --measure.

    Raises:
        ValueError: wrong arguments, a folder that holds another run or is in use, a damaged checkpoint.
        Stopped: Ctrl-C or SIGTERM came during training; everything is saved.
    """
    variant, _, policy = cast(game, ui.game_options(option), opponents or (), single_seat)
    check_range("evaluation_games", 1 if evaluation_games is None else evaluation_games, 1, MOST_GAMES)
    check_choice("--measure", measuring or LEVELS[0], LEVELS)
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
    usual, threads = presets_of(variant.game.name)[preset], trained.preset.threads
    changed = (("learner", trained.learner, "ppo"), ("device", device, "cpu"), ("threads", threads, usual.threads))
    tried = [f"{name}={setting_text(value)}" for name, value in (settings or {}).items()]
    typed: dict[str, Any] = {"preset": preset, "option": option_texts(variant.plain.changed_options())}
    typed |= {"opponent": [*(opponents or ())], "set": tried, "steps": steps, "seed": trained.seed}
    typed |= {name: value for name, value, default in changed if value != default}
    command = command_line(f"train {variant.game.name}", typed)
    short = trained.minutes < SHORT and trained.steps < usual.steps
    found = _measured_at(measuring or ("quick" if short else "full"), trained, folder, evaluation_games, command)
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
