"""PPO against fixed opponents, past selves and itself: train, measure, save."""

from __future__ import annotations

import contextlib
import dataclasses
import json as json_module
import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import Pool, Variant, configure, measure
from dice_envs.agent.casting import cast, make_players
from dice_envs.agents.ppo import NetworkPolicy, save_policy
from dice_envs.core.expected import with_expected_rewards
from dice_envs.core.files import atomic, remove_left_overs, write_text
from dice_envs.core.game import single_seat
from dice_envs.core.options import check_range, option_texts, options_text, shown
from dice_envs.experiments.arena import MOST_GAMES, save_plot
from dice_envs.experiments.jobs.guard import first_signal_waits, only_process, writer_errors_name
from dice_envs.experiments.outcome import (
    TooManyPositions,
    add_edges,
    add_measures,
    add_pool,
    add_table,
    gap_label,
    plot_curve,
    plot_gaps,
    run_sections,
    up_to,
)
from dice_envs.experiments.ui.console import Stopped, console, finish, print_mode
from dice_envs.experiments.ui.files import check_folder, check_report, check_writable, write_json
from dice_envs.experiments.ui.options import game_options, seed_or_fresh
from dice_envs.experiments.ui.page import About, write_page
from dice_envs.experiments.ui.plots import plots_noted
from dice_envs.experiments.ui.progress import progress
from dice_envs.learn.builder import learner, policy_of
from dice_envs.learn.checkpoint import check_like, model_state, read_checkpoint, restore_model, write_checkpoint
from dice_envs.learn.presets import MOST_SEED, PRESETS, Preset, presets_of

__all__ = ["PRESETS", "Preset", "train"]


CHEAP_POSITIONS = 1_000_000  # at which a policy is asked while training goes on: some seconds


class Run:
    """A training run in a folder.

    checkpoint.pt is all that is needed to resume. config.json and policy.npz are derived from it, for people and agents;
    results.json and plots come at the end, and a TensorBoard log beside them. times.json says how many minutes of training
    each point took; it is kept apart since a resumed run ends with the same checkpoint, though not at the same time.

    Attributes:
        curve: points with the learner's steps, and the share of games won against each opponent since the last point.
        gaps: points with the learner's steps, and the exact gap of the last and of the averaged policy.
        best: the policy with the smallest gap, where gaps are measured.
    """

    def __init__(self, folder: Path, variant: Variant, preset: Preset, seed: int, device: str = "cpu") -> None:
        self.folder, self.variant, self.preset, self.seed, self.device = folder, variant, preset, seed, device
        self.curve: list[dict[str, Any]] = []
        self.gaps: list[dict[str, Any]] = []
        self.minutes: dict[str, float] = {}  # of training up to a step, by the step
        self.gap_name = ""
        self.best: NetworkPolicy | None = None
        self.score: dict[str, list[float]] = {}  # since the curve's last point: games against each opponent, and their worth
        self.selves = 0  # snapshots taken so far
        fixed: list[Any] = make_players(variant, preset.opponents) if variant.facts.num_seats > 1 else []
        self.num_fixed = len(fixed)
        # Where no past self plays, none is in the pool: games between agents that choose by kernels are one compiled loop.
        self.places = preset.past_selves if fixed and preset.self_share else 0
        self.pool = Pool([*fixed, *["random"] * self.places]) if fixed else None
        self._weigh()
        self.model = self._build()

    def _weigh(self) -> None:
        """Fixed opponents share what past selves leave; places of selves that are not there yet weigh nothing."""
        if self.pool is None:
            return
        there = min(self.selves, self.places)
        share = self.preset.self_share if there else 0.0
        weights = [(1 - share) / self.num_fixed] * self.num_fixed
        weights += [share / there if place < there else 0.0 for place in range(self.places)]
        self.pool.weights = weights

    def _build(self) -> Any:
        return learner(
            self.variant, self.preset, self.pool or "random", self.seed,
            log=str(self.folder / "tensorboard"), device=self.device,
        )  # fmt: skip

    @property
    def iterations(self) -> int:
        """How many rollouts have been collected."""
        return self.model.num_timesteps // (self.preset.num_envs * self.preset.num_steps)

    def opponent_name(self, number: int) -> str:
        return self.preset.opponents[number] if number < self.num_fixed else "past selves"

    def trained_on(self) -> list[tuple[str, list[Any]]]:
        """The pool: each fixed opponent, and the past selves together, by name."""
        if self.pool is None:
            return []
        fixed = [(spec, [agent]) for spec, agent in zip(self.preset.opponents, self.pool.agents, strict=False)]
        there = min(self.selves, self.places)
        return [*fixed, *([("past selves", list(self.pool.agents[self.num_fixed :][:there]))] if there else [])]

    def policy(self, averaged: bool = False) -> NetworkPolicy:
        """The model's present policy, or the running mean of its policies, copied."""
        return policy_of(self.variant, self.preset, self.model, averaged)

    def _policy_of(self, layers: list[tuple[np.ndarray, np.ndarray]]) -> NetworkPolicy:
        return NetworkPolicy(self.variant.game.name, self.variant.changed_options(), layers, floor=self.preset.floor)

    def add_self(self, policy: NetworkPolicy) -> None:
        """Take a snapshot into the pool."""
        if self.pool is not None and self.places:
            self.pool.agents[self.num_fixed + self.selves % self.places] = policy
            self.selves += 1
            self._weigh()

    def add_game(self, info: Mapping[str, Any]) -> None:
        """Count an ended game: where there are opponents, whether it was won against each; else its return."""
        if self.pool is None:
            self._add_score("return", info["episode"]["r"])
            return
        for number in info["players"][info["players"] >= 0]:
            self._add_score(self.opponent_name(int(number)), self._worth(info["episode"]["r"]))

    def _worth(self, earned: float) -> float:
        """What a game that pays so much counts as: won or not, or with expected rewards how far it is from lost to won."""
        # It is won where the return is above what an even game pays: 0 in all games that are zero-sum.
        if not self.preset.expected_rewards:
            return float(earned > 0)
        facts = self.variant.facts
        return (earned - facts.min_return) / (facts.max_return - facts.min_return)

    def _add_score(self, name: str, worth: float) -> None:
        score = self.score.setdefault(name, [0, 0.0])
        score[0] += 1
        score[1] += worth

    def add_point(self) -> dict[str, float]:
        """Take the mean scores since the last point into the curve, and return them."""
        means = {name: worth / games for name, (games, worth) in sorted(self.score.items())}
        if means:
            self.curve.append({"steps": self.model.num_timesteps, **means})
        self.score = {}
        return means

    def offered(self) -> NetworkPolicy:
        """What the run offers as its policy: the last one, or, if it keeps the best, the best of those measured.

        Where none was measured, that is the averaged one: in self-play it comes closer than the last as a rule.
        """
        if self.preset.keep == "last":
            return self.policy()
        return self.best or self.policy(averaged=self.model.average_policy is not None)

    def measure_gap(self) -> dict[str, float]:
        """The exact gap of the last and of the averaged policy, if it is not known yet and cheap to know; else nothing."""
        steps = self.model.num_timesteps
        if not self.preset.measure_every or (self.gaps and self.gaps[-1]["steps"] >= steps):
            return {}
        found: dict[str, float] = {}
        best = min((gap for point in self.gaps for name, gap in point.items() if name != "steps"), default=math.inf)
        for name, averaged in (("last", False), ("averaged", True)):
            if averaged and self.model.average_policy is None:
                continue
            policy = self.policy(averaged)
            try:
                measured = measure(self.variant, policy, seed=self.seed, done=up_to(CHEAP_POSITIONS)).measures[0]
            except (TooManyPositions, ValueError):
                return {}
            self.gap_name = measured.name
            found[name] = measured.gap
            if measured.gap < best:
                best, self.best = measured.gap, policy
        self.gaps.append({"steps": steps, **found})
        return found

    def check_finite(self) -> None:
        """ValueError where the network has become useless; checkpoints are of networks that are not."""
        import torch

        if not all(torch.isfinite(parameter).all() for parameter in self.model.policy.parameters()):
            raise ValueError(
                f"the network's weights are not finite any more after {self.model.num_timesteps:,} steps; the last "
                f"checkpoint in {self.folder} is from before; a lower learning rate keeps them finite"
            )

    def save(self) -> None:
        """Write the checkpoint and what is derived from it, each file whole or not at all."""
        self.check_finite()
        selves = []
        if self.pool is not None:
            there = self.pool.agents[self.num_fixed : self.num_fixed + min(self.selves, self.places)]
            selves = [_tensors(policy) for policy in there]
        config = {
            "game": self.variant.game.name,
            "options": self.variant.changed_options(),
            "preset": dataclasses.asdict(self.preset),
            "seed": self.seed,
        }
        state = {
            **model_state(self.model),
            "config": json_module.dumps(config),
            "selves": selves,
            "num_selves": self.selves,
            "curve": json_module.dumps(self.curve),
            "score": json_module.dumps(self.score),
            "gaps": json_module.dumps(self.gaps),
            "best": [] if self.best is None else _tensors(self.best),
        }
        write_checkpoint(self.folder / "checkpoint.pt", state)
        write_text(self.folder / "config.json", json_module.dumps(config, indent=1) + "\n")
        with atomic(self.folder / "policy.npz") as temporary:
            save_policy(temporary, self.offered())
        write_text(self.folder / "times.json", json_module.dumps(self.minutes) + "\n")

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state that `save` wrote for a run like this one. ValueError, KeyError or TypeError if it is not one."""
        check_range("num_selves", state["num_selves"], 0, 10**12)
        like = _tensors(self.policy())
        there = min(state["num_selves"], self.places)
        check_like("selves", state["selves"], [like] * there)
        for layers in state["selves"]:
            self.add_self(self._policy_of([(weights.numpy(), biases.numpy()) for weights, biases in layers]))
        self.selves = state["num_selves"]
        self.curve = json_module.loads(state["curve"])
        self.score = json_module.loads(state["score"])
        self.gaps = json_module.loads(state["gaps"])
        _check_curve(self.curve, self.score)
        _check_curve(self.gaps, {})
        check_like("best", state["best"], like if self.gaps else [])
        if state["best"]:
            self.best = self._policy_of([(weights.numpy(), biases.numpy()) for weights, biases in state["best"]])
        with contextlib.suppress(OSError, ValueError):  # without it the run goes on as well; it only knows less
            found = json_module.loads((self.folder / "times.json").read_text())
            self.minutes = {str(int(steps)): float(minutes) for steps, minutes in found.items()}
        restore_model(self.model, state)

    def learn(self) -> None:
        """Train up to the preset's steps. Stopped if a signal comes before that."""
        left = self.preset.steps - self.model.num_timesteps
        if left <= 0:
            return
        log = self.folder / "tensorboard"
        with first_signal_waits() as signal_noted, progress("learner steps", left) as done, writer_errors_name(log):
            # Not to be reset: counters and games continue from where they are, which is the beginning in a new run.
            self.model.learn(left, callback=_callback(self, done, signal_noted), reset_num_timesteps=False, tb_log_name="ppo")
            self.measure_gap()
            self.save()
            self.stop_on(signal_noted())

    def stop_on(self, signal_number: int | None) -> None:
        """Raise Stopped if a signal has come; everything is saved."""
        if signal_number is not None:
            raise Stopped(
                f"stopped after {self.model.num_timesteps:,} steps, which are saved in {self.folder}; the same command "
                f"with --resume goes on",
                signal_number,
            )


def _tensors(policy: NetworkPolicy) -> list[tuple[Any, Any]]:
    import torch

    return [(torch.from_numpy(weights), torch.from_numpy(biases)) for weights, biases in policy.layers]


def _callback(run: Run, done: Callable[[int], Any], signal_noted: Callable[[], int | None]) -> Any:
    from stable_baselines3.common.callbacks import BaseCallback

    class Watch(BaseCallback):
        """Keeps the learning curve, takes snapshots, writes checkpoints, stops on a signal."""

        def _on_training_start(self) -> None:
            self.started = time.perf_counter()
            self.first = self.model.num_timesteps
            self.steps = self.first
            self.before = max(run.minutes.values(), default=0.0)
            self.measuring = 0.0  # seconds spent with measuring, which is no training

        def trained(self) -> float:
            """Minutes of training, measuring left out."""
            return self.before + (time.perf_counter() - self.started - self.measuring) / 60

        def save(self) -> None:
            run.minutes[str(self.steps)] = self.trained()
            run.save()

        def _on_training_end(self) -> None:
            run.minutes[str(self.model.num_timesteps)] = self.trained()

        def _on_rollout_start(self) -> None:
            # Only here is a run complete: the last rollout has been learned from, the next has not begun.
            run.check_finite()
            every = run.preset.measure_every
            if every and run.iterations % every == 0 and run.iterations:
                start = time.perf_counter()
                run.minutes[str(self.steps)] = self.trained()
                found = run.measure_gap()
                self.measuring += time.perf_counter() - start
                for name, gap in found.items():
                    self.logger.record(f"gap/{name}", gap)
                if found:
                    gaps = "  ".join(f"{name} {gap:.4f}" for name, gap in found.items())
                    console.print(f"{self.steps:>12,} steps  {run.minutes[str(self.steps)]:>7.1f} min  {run.gap_name}: {gaps}")
            number = signal_noted()
            if number is not None:
                self.save()
                run.stop_on(number)
            if run.iterations % run.preset.checkpoint_every == 0 and self.steps > self.first:
                self.save()
                speed = (self.steps - self.first) / (time.perf_counter() - self.started - self.measuring)
                last = run.curve[-1] if run.curve else {}
                scores = "  ".join(f"{name} {value:.3f}" for name, value in last.items() if name != "steps")
                console.print(f"{self.steps:>12,} steps  {speed:>8,.0f}/s  {scores}")

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if "episode" in info:
                    run.add_game(info)
            return True

        def _on_rollout_end(self) -> None:
            done(self.model.num_timesteps - self.steps)
            self.steps = self.model.num_timesteps
            if run.iterations % 4 == 0:
                for name, mean in run.add_point().items():
                    self.logger.record(f"pool/{name}", mean)
            if run.iterations % run.preset.snapshot_every == 0:
                run.add_self(run.policy())

    return Watch()


def _check_curve(curve: Any, score: Any) -> None:
    """Raise ValueError unless these are a learning curve and the scores since its last point."""
    if not isinstance(curve, list) or not all(isinstance(point, dict) and "steps" in point for point in curve):
        raise ValueError("curve is not a list of points")
    if not isinstance(score, dict) or not all(isinstance(sums, list) and len(sums) == 2 and sums[0] for sums in score.values()):
        raise ValueError("score does not hold two numbers for each opponent")
    for numbers in (*(point.values() for point in curve), *score.values()):
        for number in numbers:
            check_range("a number of the curve", number, -1e15, 1e15, whole=False)


def _read_config(text: str) -> tuple[Variant, Preset, int]:
    """Variant, preset and seed of a run. ValueError, KeyError, TypeError or AttributeError if one is missing or wrong."""
    config = json_module.loads(text)
    for field in dataclasses.fields(Preset):
        config["preset"][field.name]  # one that is missing would take today's default
    check_range("seed", config["seed"], 0, MOST_SEED)
    variant = configure(str(config["game"]), **_tuples(config["options"]))
    return variant, Preset(**_tuples(config["preset"])), config["seed"]


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no tuples: lists become them again."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


@contextlib.contextmanager
def _blamed_on(path: Path) -> Iterator[None]:
    """One ValueError for all that can be wrong with what a checkpoint holds."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        reason = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem).partition("\n")[0][:200]
        raise ValueError(
            f"{str(path)!r} is damaged or of another run ({reason}); remove it to start anew, or choose another --out"
        ) from None


def _open_run(
    folder: Path,
    resume: bool,
    variant: Variant,
    plan: Preset,
    steps: int | None,
    opponents: Sequence[str] | None,
    seed: int | None,
    device: str,
    threads: int | None = None,
) -> Run:
    """The run in the folder, a new one or the one that is there; ValueError if that is another or damaged."""
    path = folder / "checkpoint.pt"
    if not path.exists():
        return Run(folder, variant, plan, seed_or_fresh(seed), device)
    if not resume:
        raise ValueError(f"{folder} holds a run already; add --resume to go on with it, or choose another --out")
    with _blamed_on(path):
        state = read_checkpoint(path)
        its_variant, its_plan, its_seed = _read_config(state["config"])
    game, its_game = str(variant.plain), str(its_variant.plain)
    if game != its_game:
        raise ValueError(f"{folder} holds a run of {its_game}, not of {game}")
    if seed not in (None, its_seed):
        raise ValueError(f"{folder} holds a run with seed {its_seed}, not {seed}")
    if opponents and tuple(opponents) != its_plan.opponents:
        raise ValueError(f"{folder} holds a run against {', '.join(its_plan.opponents)}, not against {', '.join(opponents)}")
    its_plan = dataclasses.replace(its_plan, steps=steps or its_plan.steps, threads=threads or its_plan.threads)
    run = Run(folder, its_variant, its_plan, its_seed, device)
    with _blamed_on(path):
        run.restore(state)
    return run


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
    """Train, measure and save; the arguments are those of the command `train`, `settings` fields of the preset.

    Returns:
        What results.json holds: the cross table, the learning curve, the seed, the speed.

    Raises:
        ValueError: wrong arguments, a folder that holds another run or is in use, a damaged checkpoint.
        Stopped: Ctrl-C or SIGTERM came during training; all is saved.
    """
    given, plain = game_options(option), configure(game).game
    choices = presets_of(plain.name)
    if preset not in choices:
        raise ValueError(f"unknown preset {shown(preset)}; presets are: {', '.join(choices)}")
    plan = dataclasses.replace(choices[preset], **(settings or {}))
    if opponents:
        plan = dataclasses.replace(plan, opponents=tuple(opponents))
    if steps is not None:
        plan = dataclasses.replace(plan, steps=steps)
    if threads is not None:
        plan = dataclasses.replace(plan, threads=threads)
    check_range("evaluation_games", evaluation_games, 1, MOST_GAMES)
    if seed is not None:
        check_range("seed", seed, 0, MOST_SEED)
    variant, _, policy = cast(game, given, opponents or (), single_seat)
    if variant.facts.num_seats > 1:
        make_players(variant, plan.opponents)
    elif opponents:
        usual = {name: getattr(plain.options(), name) for name in plain.gym_options}
        instead = f"; -o {options_text(usual)} gives it more" if usual else ""
        raise ValueError(f"{variant} has one seat: --opponent {shown(opponents[0])} has nobody to play{instead}")
    if plan.self_play and variant.facts.num_seats == 1:
        raise ValueError(f"preset {preset} is self-play, and {variant} has one seat")
    if plan.expected_rewards:
        with_expected_rewards(variant.game)  # raises where the game does not tell them
    _check_device(device)
    check_writable(json)
    folder = out or Path("runs") / f"{plain.name}_{preset}"
    check_folder(folder)
    check_report(report)
    print_mode(variant, policy)
    with only_process(folder):
        remove_left_overs(folder)
        run = _open_run(folder, resume, variant, plan, steps, opponents, seed, device, threads)
        run.save()
        other_threads = run.preset.threads if run.preset.threads != choices[preset].threads else None
        command = _command(variant, preset, opponents, steps, run.seed, other_threads, settings or {})
        return _finish(run, evaluation_games, json, command, report)


def _check_device(device: str) -> None:
    """Raise ValueError for a device that PyTorch does not have here."""
    import torch

    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as problem:
        reason = str(problem).partition("\n")[0][:200]
        raise ValueError(f"device must be one that PyTorch has here, say cpu or cuda, not {shown(device)}: {reason}") from None


def _command(
    variant: Variant,
    preset: str,
    opponents: Sequence[str] | None,
    steps: int | None,
    seed: int,
    threads: int | None,
    settings: Mapping[str, Any],
) -> str:
    """The command that makes the same policy again. Sums are rounded in another way with other threads."""
    parts = [f"python -m experiments train {variant.game.name} --preset {preset}"]
    parts += [f"-o {shlex.quote(part)}" for part in option_texts(variant.plain.changed_options())]
    parts += [f"--opponent {spec}" for spec in opponents or ()]
    for name, value in settings.items():
        parts.append(f"--set {name}={'x'.join(map(str, value)) if isinstance(value, tuple) else value}")
    parts += [] if steps is None else [f"--steps {steps}"]
    parts += [f"--seed {seed}"]
    parts += [] if threads is None else [f"--threads {threads}"]
    return " ".join(parts)


def _finish(run: Run, evaluation_games: int, json: Path | None, command: str, report: Path | None) -> dict[str, Any]:
    """Train what is left to train, measure, and write the results."""
    first = run.model.num_timesteps
    console.print(f"training {run.variant} from step {first:,} to {run.preset.steps:,} in {run.folder}, seed {run.seed}")
    start = time.perf_counter()
    run.learn()
    seconds, trained = time.perf_counter() - start, run.model.num_timesteps - first
    result: dict[str, Any] = {
        "command": command,
        "seed": run.seed,
        "steps": run.model.num_timesteps,
        "steps_per_second": trained / seconds if trained else None,
        "minutes": max(run.minutes.values(), default=None),
        "curve": run.curve,
        "gaps": [{**point, "minutes": run.minutes.get(str(point["steps"]))} for point in run.gaps],
    }
    if trained:
        console.print(f"{trained:,} steps in {seconds:,.0f} s: {result['steps_per_second']:,.0f} a second")
    spec, seats = f"ppo:{run.folder / 'policy.npz'}", run.variant.facts.num_seats
    add_measures(run.variant, spec, run.preset.floor > 0, run.seed, result)
    table = add_table(run.variant, spec, run.preset.opponents, evaluation_games, run.seed, result) if seats > 1 else None
    if seats > 2:
        add_pool(run.variant, spec, run.trained_on(), evaluation_games, run.seed, result)
    if table is not None and seats == 2:
        add_edges(run.variant, table, run.seed, result)

    def plot(folder: Path) -> None:
        finish(
            lambda: plot_curve(folder, run.variant, run.seed, run.curve, seats > 1),
            lambda: plot_gaps(folder, run.variant, run.seed, result["gaps"], gap_label(result["measures"])),
            lambda: save_plot(folder, "cross_table", table) if table is not None else None,
        )

    def write_report() -> None:
        if report is None:
            return
        with plots_noted() as plots:
            plot(report)
        about = About(command, {"preset": run.preset, **dataclasses.asdict(run.variant.options)}, run.seed)
        write_page(report, f"PPO trained on {run.variant}", [], run_sections(result, table, plots), about)

    finish(
        lambda: write_json(run.folder / "results.json", result),
        lambda: write_json(json, result),
        lambda: plot(run.folder),
        write_report,
        lambda: console.print(f"saved: ppo:{run.folder}"),
    )
    return result
