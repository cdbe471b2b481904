"""A training run: PPO against fixed opponents, past selves and itself, measured on the way, saved and resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dice_envs.agent.casting import make_players
from dice_envs.agents import check_harmless
from dice_envs.agents.ppo import NetworkPolicy, save_policy
from dice_envs.core.files import atomic, read_json, write_text
from dice_envs.core.game import Variant, configure, with_expected_rewards
from dice_envs.core.machine import torch_threads
from dice_envs.core.options import check_choice, check_range, check_seed, options_text, shown
from dice_envs.exact import measure
from dice_envs.exact.progress import TooLong, up_to
from dice_envs.learn.callback import TrainingCallback
from dice_envs.learn.checkpoint import blamed_on, check_curve, check_like, read_checkpoint, write_checkpoint
from dice_envs.learn.opponents import Opponents
from dice_envs.learn.presets import Preset

__all__ = ["LEARNERS", "Run", "check_plan", "open_run"]

LEARNERS = {"ppo": "dice_envs.learn.ppo:PPO", "sb3": "dice_envs.learn.sb3:StockPPO"}  # by name: their module and class
CHEAP_POSITIONS = 1_500_000  # most positions at which a policy is asked during training: a few seconds


class Run:
    """A training run, with its files if it has a folder.

    A run resumes from checkpoint.pt alone. config.json and policy.npz are derived from it, for people and agents. times.json
    holds the minutes of training at each point; timings are stored separately because they differ between identical runs.

    Args:
        variant: the game.
        preset: how to train.
        seed: fixes weights, games and all that is drawn.
        folder: of its files; None: nothing is written.
        device: PyTorch's.
        learner: a name in LEARNERS.

    Attributes:
        model: the learner, see `dice_envs.learn.ppo.PPO`.
        curve: points with the learner's steps, and the share of games won against each opponent since the last point.
        gaps: points with the learner's steps, and the exact gap of the last and of the averaged policy.
        gap_name: the measure's name.
        best: the policy with the smallest gap, where gaps are measured.
        minutes: of training up to a step, by the step.
    """

    def __init__(
        self,
        variant: Variant,
        preset: Preset,
        seed: int,
        folder: Path | None = None,
        device: str = "cpu",
        learner: str = "ppo",
    ) -> None:
        self.variant, self.preset, self.seed, self.folder = variant, preset, seed, folder
        self.learner = learner
        self.curve: list[dict[str, Any]] = []
        self.gaps: list[dict[str, Any]] = []
        self.minutes: dict[str, float] = {}
        self.gap_name = ""
        self.best: NetworkPolicy | None = None
        self.opponents = Opponents(variant, preset)
        module, _, name = LEARNERS[learner].partition(":")
        make = getattr(importlib.import_module(module), name)
        self.model: Any = make(variant, preset, self.opponents.pool or "random", seed, device)

    @property
    def steps(self) -> int:
        """Learner steps so far."""
        return int(self.model.steps)

    @property
    def iterations(self) -> int:
        """The number of rollouts collected."""
        return self.steps // (self.preset.num_envs * self.preset.num_steps)

    # --- policies and measures -----------------------------------------------------------------------------------

    def policy(self, averaged: bool = False) -> NetworkPolicy:
        """Return a copy of the learner's present policy, or of the running mean of its policies."""
        found: NetworkPolicy = self.model.policy(averaged)
        return found

    def offered(self) -> NetworkPolicy:
        """The run's policy: the last one, or with keep="best" the one that measured best.

        Where none was measured, that is the averaged one, which usually comes closer to equilibrium than the last.
        """
        if self.preset.keep == "last":
            return self.policy()
        return self.best or self.policy(averaged=self.model.averages)

    def measure_gap(self) -> dict[str, float]:
        """Measure the exact gap of the last and of the averaged policy; empty if it is known already, or not cheap."""
        steps = self.steps
        if not self.preset.measure_every or (self.gaps and self.gaps[-1]["steps"] >= steps):
            return {}
        found: dict[str, float] = {}
        best = min((gap for point in self.gaps for name, gap in point.items() if name != "steps"), default=math.inf)
        for name, averaged in (("last", False), ("averaged", True)):
            if averaged and not self.model.averages:
                continue
            policy = self.policy(averaged)
            try:
                measured = measure(self.variant, policy, seed=self.seed, done=up_to(CHEAP_POSITIONS)).measures[0]
            except (TooLong, ValueError):
                return {}
            self.gap_name = measured.name
            found[name] = measured.gap
            if measured.gap < best:
                best, self.best = measured.gap, policy
        self.gaps.append({"steps": steps, **found})
        return found

    # --- the learning curve --------------------------------------------------------------------------------------

    def add_point(self) -> dict[str, float]:
        """Add the mean scores since the last point to the curve, and return them."""
        means = self.opponents.take_means()
        if means:
            self.curve.append({"steps": self.steps, **means})
        return means

    # --- files ---------------------------------------------------------------------------------------------------

    def check_finite(self) -> None:
        """Raise ValueError if training has diverged. Checkpoints hold finite networks only."""
        if not self.model.finite():
            kept = f"; the last checkpoint in {self.folder} is from before" if self.folder else ""
            raise ValueError(
                f"the network's weights are not finite any more after {self.steps:,} steps{kept}; a lower "
                f"learning rate keeps them finite"
            )

    def save(self) -> None:
        """Write the checkpoint and the files derived from it, each whole or not at all. Nothing without a folder."""
        self.check_finite()
        if self.folder is None:
            return
        config = {
            "game": self.variant.game.name,
            "options": self.variant.changed_options(),
            "preset": dataclasses.asdict(self.preset),
            "seed": self.seed,
            "learner": self.learner,
        }
        state = {
            **self.model.state(),
            "config": json.dumps(config),
            "selves": [_tensors(policy) for policy in self.opponents.selves()],
            "num_selves": self.opponents.num_selves,
            "curve": json.dumps(self.curve),
            "score": json.dumps(self.opponents.score),
            "gaps": json.dumps(self.gaps),
            "best": [] if self.best is None else _tensors(self.best),
        }
        write_checkpoint(self.folder / "checkpoint.pt", state)
        write_text(self.folder / "config.json", json.dumps(config, indent=1) + "\n")
        with atomic(self.folder / "policy.npz") as temporary:
            save_policy(temporary, self.offered())
        write_text(self.folder / "times.json", json.dumps(self.minutes) + "\n")

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to a state that `save` wrote for a run like this one. ValueError, KeyError or TypeError for another."""
        num_selves = state["num_selves"]
        check_range("num_selves", num_selves, 0, 10**12)
        like = _tensors(self.policy())
        check_like("selves", state["selves"], [like] * self.opponents.num_kept(num_selves))
        self.opponents.restore([self._policy_of(layers) for layers in state["selves"]], num_selves)
        self.curve = json.loads(state["curve"])
        self.opponents.score = json.loads(state["score"])
        self.gaps = json.loads(state["gaps"])
        check_curve(self.curve, self.opponents.score)
        check_curve(self.gaps, {})
        check_like("best", state["best"], like if self.gaps else [])
        if state["best"]:
            self.best = self._policy_of(state["best"])
        if self.folder is not None:
            with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):  # the run can go on without its timings
                found = read_json(self.folder / "times.json")
                self.minutes = {str(int(steps)): float(minutes) for steps, minutes in found.items()}
        self.model.restore(state)

    def _policy_of(self, tensors: Sequence[tuple[Any, Any]]) -> NetworkPolicy:
        layers = [(weights.numpy(), biases.numpy()) for weights, biases in tensors]
        return NetworkPolicy(self.variant.game.name, self.variant.changed_options(), layers, floor=self.preset.floor)

    # --- training ------------------------------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """Learner steps up to the preset's; below 1 if the run is finished."""
        return self.preset.steps - self.steps

    def learn(self, callback: TrainingCallback | None = None) -> None:
        """Train up to the preset's steps, measure and save. Ends early, with everything saved, if the callback stops it."""
        if self.left <= 0:
            return
        callback = callback or TrainingCallback()
        first, before, seconds = self.steps, max(self.minutes.values(), default=0.0), 0.0
        with torch_threads(self.preset.threads):
            while self.left > 0:
                self.check_finite()
                self._measure_on_the_way(callback, before + seconds / 60)
                if callback.stop():
                    break
                if self.iterations % self.preset.checkpoint_every == 0 and self.steps > first:
                    self.minutes[str(self.steps)] = before + seconds / 60
                    self.save()
                    scores = {name: value for name, value in (self.curve or [{}])[-1].items() if name != "steps"}
                    callback.saved(self.steps, (self.steps - first) / seconds, scores)
                start = time.perf_counter()
                self._iterate(callback)
                seconds += time.perf_counter() - start
            self.minutes[str(self.steps)] = before + seconds / 60
            if self.left <= 0:
                self.measure_gap()
            self.save()

    def _measure_on_the_way(self, callback: TrainingCallback, minutes: float) -> None:
        """Measure the gaps if it is time to, after some minutes of training."""
        every = self.preset.measure_every
        if not every or self.iterations % every or not self.iterations:
            return
        self.minutes[str(self.steps)] = minutes
        gaps = self.measure_gap()
        if gaps:
            callback.learned(self.steps, {f"gap/{name}": gap for name, gap in gaps.items()})
            callback.measured(self.steps, minutes, self.gap_name, gaps)

    def _iterate(self, callback: TrainingCallback) -> None:
        """Play a rollout and learn from it; keep the learning curve and past selves."""
        before = self.steps
        values = {f"train/{name}": value for name, value in self.model.iterate(self.opponents.add_games).items()}
        callback.advanced(self.steps - before)
        if self.iterations % 4 == 0:
            values |= {f"pool/{name}": mean for name, mean in self.add_point().items()}
        callback.learned(self.steps, values)
        if self.iterations % self.preset.snapshot_every == 0:
            self.opponents.add_self(self.policy())


def _tensors(policy: NetworkPolicy) -> list[tuple[Any, Any]]:
    import torch

    return [(torch.from_numpy(weights), torch.from_numpy(biases)) for weights, biases in policy.layers]


# --- plans and checkpoints --------------------------------------------------------------------------------------------


def check_plan(variant: Variant, plan: Preset, given: Sequence[str] | None) -> None:
    """Raise ValueError, before anything is made, for a plan that the game or this machine cannot carry out.

    Args:
        variant: the game.
        plan: how to train.
        given: specs of opponents that replace the preset's, if any.
    """
    if variant.facts.num_seats > 1:
        make_players(variant, plan.opponents)
    elif given:
        game = variant.game
        usual = {name: getattr(game.options(), name) for name in game.gym_options}
        more = f" ({options_text(usual)} gives it more)" if usual else ""
        raise ValueError(f"opponents must be omitted for {variant}, which has one seat{more}, not {shown(given[0])}")
    if plan.self_play and variant.facts.num_seats == 1:
        raise ValueError(f"self_play must be 0: {variant} has one seat")
    if plan.expected_rewards:
        with_expected_rewards(variant.game)  # raises where the game does not provide them


def open_run(
    folder: Path | None,
    variant: Variant,
    plan: Preset,
    seed: int | None,
    given: Mapping[str, Any],
    device: str = "cpu",
    learner: str | None = None,
) -> Run:
    """Open the run in a folder, or begin one there.

    Args:
        folder: of the run; None: it begins one without files.
        variant: the game.
        plan: how to train a new run; one that is resumed goes on as it began.
        seed: None: that of the run in the folder, or a fresh one.
        given: fields of the preset that were asked for: `steps` and `threads` change a run that is resumed, and other
            `opponents` are refused.
        device: PyTorch's.
        learner: a name in LEARNERS; None: that of the run in the folder, or "ppo".

    Raises:
        ValueError: the folder holds another run, or a damaged one.
    """
    if learner is not None:
        check_choice("learner", learner, list(LEARNERS))
    path = None if folder is None else folder / "checkpoint.pt"
    if path is None or not path.exists():
        return Run(variant, plan, secrets.randbits(31) if seed is None else seed, folder, device, learner or "ppo")
    with blamed_on(path):
        state = read_checkpoint(path)
        its_variant, its_plan, its_seed, its_learner = _read_config(state["config"])
    game, its_game = str(variant.plain), str(its_variant.plain)
    if game != its_game:
        raise ValueError(f"{folder} holds a run of {its_game}, not of {game}")
    if seed not in (None, its_seed):
        raise ValueError(f"{folder} holds a run with seed {its_seed}, not {seed}")
    if learner not in (None, its_learner):
        raise ValueError(f"{folder} holds a run of the learner {its_learner}, not of {learner}")
    opponents = given.get("opponents", its_plan.opponents)
    if opponents != its_plan.opponents:
        raise ValueError(f"{folder} holds a run against {', '.join(its_plan.opponents)}, not against {', '.join(opponents)}")
    for spec in () if "opponents" in given else its_plan.opponents:
        try:
            check_harmless(spec)
        except ValueError as problem:
            raise ValueError(f"{path}: its opponent is {shown(spec)}; {problem}. To go on, name the opponents again") from None
    changes = {name: given[name] for name in ("steps", "threads") if name in given}
    run = Run(its_variant, dataclasses.replace(its_plan, **changes), its_seed, folder, device, its_learner)
    with blamed_on(path):
        run.restore(state)
    return run


def _read_config(text: str) -> tuple[Variant, Preset, int, str]:
    """Variant, preset, seed and learner of a run. ValueError, KeyError, TypeError or AttributeError where one is wrong."""
    config = json.loads(text)
    for field in dataclasses.fields(Preset):
        config["preset"][field.name]  # KeyError: a missing field would silently take today's default
    if check_seed(config["seed"]) is None:
        raise ValueError("seed is missing")
    variant = configure(str(config["game"]), **_tuples(config["options"]))
    check_choice("learner", config["learner"], list(LEARNERS))
    return variant, Preset(**_tuples(config["preset"])), config["seed"], config["learner"]


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples, which JSON does not have."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
