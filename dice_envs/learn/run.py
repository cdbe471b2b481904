"""A training run: PPO against fixed opponents, past selves and itself, measured on the way, saved and resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dice_envs.agent.casting import make_players
from dice_envs.agents import check_harmless
from dice_envs.agents.ppo import NetworkPolicy, save_policy
from dice_envs.core.expected import with_expected_rewards
from dice_envs.core.files import atomic, read_json, write_text
from dice_envs.core.game import Variant, configure
from dice_envs.core.options import check_range, check_seed, options_text, shown
from dice_envs.exact import measure
from dice_envs.exact.limits import TooLong, up_to
from dice_envs.learn.builder import learner as make_learner
from dice_envs.learn.builder import policy_of, torch_threads
from dice_envs.learn.callback import TrainingCallback
from dice_envs.learn.checkpoint import check_like, model_state, read_checkpoint, restore_model, write_checkpoint
from dice_envs.learn.opponents import Opponents
from dice_envs.learn.presets import Preset

__all__ = ["Run", "check_plan", "open_run"]

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
        learner: "ppo" or "sb3", see `dice_envs.train`.

    Attributes:
        model: the learner.
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
        self.variant, self.preset, self.seed, self.folder, self.learner = variant, preset, seed, folder, learner
        self.curve: list[dict[str, Any]] = []
        self.gaps: list[dict[str, Any]] = []
        self.minutes: dict[str, float] = {}
        self.gap_name = ""
        self.best: NetworkPolicy | None = None
        self.opponents = Opponents(variant, preset)
        self._score: dict[str, list[float]] = {}  # games against each opponent since the curve's last point, and games won
        self.model = make_learner(variant, preset, self.opponents.pool or "random", seed, device=device)

    @property
    def steps(self) -> int:
        """The learner's steps so far."""
        return self.model.num_timesteps

    @property
    def averages(self) -> bool:
        """Whether there is a running mean of the policies."""
        return self.model.average_policy is not None

    @property
    def iterations(self) -> int:
        """The number of rollouts collected."""
        return self.model.num_timesteps // (self.preset.num_envs * self.preset.num_steps)

    # --- policies and measures -----------------------------------------------------------------------------------

    def policy(self, averaged: bool = False) -> NetworkPolicy:
        """A copy of the model's present policy, or of the running mean of its policies."""
        return policy_of(self.variant, self.preset, self.model, averaged)

    def offered(self) -> NetworkPolicy:
        """The run's policy: the last one, or with keep="best" the one that measured best.

        Where none was measured, that is the averaged one, which usually comes closer to equilibrium than the last.
        """
        if self.preset.keep == "last":
            return self.policy()
        return self.best or self.policy(averaged=self.model.average_policy is not None)

    def measure_gap(self) -> dict[str, float]:
        """Measure the exact gap of the last and of the averaged policy; empty if it is known already, or not cheap."""
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
            except (TooLong, ValueError):
                return {}
            self.gap_name = measured.name
            found[name] = measured.gap
            if measured.gap < best:
                best, self.best = measured.gap, policy
        self.gaps.append({"steps": steps, **found})
        return found

    # --- the learning curve --------------------------------------------------------------------------------------

    def add_game(self, info: Mapping[str, Any]) -> None:
        """Count a finished game: as won or not against each opponent, or by its return where there are none."""
        earned = info["episode"]["r"]
        if self.opponents.pool is None:
            self._add_score("return", earned)
            return
        for number in info["players"][info["players"] >= 0]:
            self._add_score(self.opponents.name(int(number)), self._worth(earned))

    def _worth(self, earned: float) -> float:
        """1 for a game won, 0 for another; with expected rewards, the return scaled from lost (0) to won (1)."""
        # A game is won where the return is above that of an even game: 0 in all games that are zero-sum.
        if not self.preset.expected_rewards:
            return float(earned > 0)
        facts = self.variant.facts
        return (earned - facts.min_return) / (facts.max_return - facts.min_return)

    def _add_score(self, name: str, worth: float) -> None:
        score = self._score.setdefault(name, [0, 0.0])
        score[0] += 1
        score[1] += worth

    def add_point(self) -> dict[str, float]:
        """Add the mean scores since the last point to the curve, and return them."""
        means = {name: worth / games for name, (games, worth) in sorted(self._score.items())}
        if means:
            self.curve.append({"steps": self.model.num_timesteps, **means})
        self._score = {}
        return means

    # --- files ---------------------------------------------------------------------------------------------------

    def check_finite(self) -> None:
        """Raise ValueError if training has diverged. Checkpoints hold finite networks only."""
        import torch

        if not all(torch.isfinite(parameter).all() for parameter in self.model.policy.parameters()):
            kept = f"; the last checkpoint in {self.folder} is from before" if self.folder else ""
            raise ValueError(
                f"the network's weights are not finite any more after {self.model.num_timesteps:,} steps{kept}; a lower "
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
        }
        state = {
            **model_state(self.model),
            "config": json.dumps(config),
            "selves": [_tensors(policy) for policy in self.opponents.selves()],
            "num_selves": self.opponents.num_selves,
            "curve": json.dumps(self.curve),
            "score": json.dumps(self._score),
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
        self._score = json.loads(state["score"])
        self.gaps = json.loads(state["gaps"])
        _check_curve(self.curve, self._score)
        _check_curve(self.gaps, {})
        check_like("best", state["best"], like if self.gaps else [])
        if state["best"]:
            self.best = self._policy_of(state["best"])
        if self.folder is not None:
            with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):  # the run can go on without its timings
                found = read_json(self.folder / "times.json")
                self.minutes = {str(int(steps)): float(minutes) for steps, minutes in found.items()}
        restore_model(self.model, state)

    def _policy_of(self, tensors: Sequence[tuple[Any, Any]]) -> NetworkPolicy:
        layers = [(weights.numpy(), biases.numpy()) for weights, biases in tensors]
        return NetworkPolicy(self.variant.game.name, self.variant.changed_options(), layers, floor=self.preset.floor)

    # --- training ------------------------------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """Learner steps up to the preset's; below 1 if the run is finished."""
        return self.preset.steps - self.model.num_timesteps

    def learn(self, callback: TrainingCallback | None = None) -> None:
        """Train up to the preset's steps, measure and save. Ends early, with everything saved, if the callback stops it."""
        if self.left <= 0:
            return
        watch = _watch(self, callback or TrainingCallback())
        with contextlib.suppress(_Stop), torch_threads(self.preset.threads):
            # Not to be reset: counters and games continue from where they are.
            self.model.learn(self.left, callback=watch, reset_num_timesteps=False, log_interval=None)
            self.measure_gap()
            self.save()


class _Stop(Exception):
    """Raised within SB3's `learn` to end it, with everything saved."""


def _watch(run: Run, callback: TrainingCallback) -> Any:
    """SB3's callback for a run: keeps the learning curve, takes past selves, writes checkpoints, stops."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Watch(BaseCallback):
        def _on_training_start(self) -> None:
            self.started = time.perf_counter()
            self.first = self.model.num_timesteps
            self.steps = self.first
            self.before = max(run.minutes.values(), default=0.0)
            self.measuring = 0.0  # seconds spent on measuring, which is not training

        def training(self) -> float:
            """Seconds of training, measuring left out."""
            return time.perf_counter() - self.started - self.measuring

        def note_minutes(self) -> float:
            minutes = run.minutes[str(self.model.num_timesteps)] = self.before + self.training() / 60
            return minutes

        def told(self) -> None:
            if self.steps > self.first:
                callback.learned(self.steps, self.logger.name_to_value)
                self.logger.name_to_value.clear()

        def _on_training_end(self) -> None:
            self.told()
            self.note_minutes()

        def _on_rollout_start(self) -> None:
            # Only here is a run complete: the last rollout has been learned from, the next has not begun.
            run.check_finite()
            self.told()
            every = run.preset.measure_every
            if every and run.iterations % every == 0 and run.iterations:
                minutes, start = self.note_minutes(), time.perf_counter()
                gaps = run.measure_gap()
                self.measuring += time.perf_counter() - start
                for name, gap in gaps.items():
                    self.logger.record(f"gap/{name}", gap)
                if gaps:
                    callback.measured(self.steps, minutes, run.gap_name, gaps)
            if callback.stop():
                self.note_minutes()
                run.save()
                raise _Stop
            if run.iterations % run.preset.checkpoint_every == 0 and self.steps > self.first:
                self.note_minutes()
                run.save()
                last = run.curve[-1] if run.curve else {}
                scores = {name: value for name, value in last.items() if name != "steps"}
                callback.saved(self.steps, (self.steps - self.first) / self.training(), scores)

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if "episode" in info:
                    run.add_game(info)
            return True

        def _on_rollout_end(self) -> None:
            callback.advanced(self.model.num_timesteps - self.steps)
            self.steps = self.model.num_timesteps
            if run.iterations % 4 == 0:
                for name, mean in run.add_point().items():
                    self.logger.record(f"pool/{name}", mean)
            if run.iterations % run.preset.snapshot_every == 0:
                run.opponents.add_self(run.policy())

    return Watch()


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
        instead = f"; {options_text(usual)} gives it more" if usual else ""
        raise ValueError(f"{variant} has one seat: the opponent {shown(given[0])} has nobody to play{instead}")
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
    learner: str = "ppo",
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
        learner: "ppo" or "sb3".

    Raises:
        ValueError: the folder holds another run, or a damaged one.
    """
    path = None if folder is None else folder / "checkpoint.pt"
    if path is None or not path.exists():
        return Run(variant, plan, secrets.randbits(31) if seed is None else seed, folder, device, learner)
    with _blamed_on(path):
        state = read_checkpoint(path)
        its_variant, its_plan, its_seed = _read_config(state["config"])
    game, its_game = str(variant.plain), str(its_variant.plain)
    if game != its_game:
        raise ValueError(f"{folder} holds a run of {its_game}, not of {game}")
    if seed not in (None, its_seed):
        raise ValueError(f"{folder} holds a run with seed {its_seed}, not {seed}")
    opponents = given.get("opponents", its_plan.opponents)
    if opponents != its_plan.opponents:
        raise ValueError(f"{folder} holds a run against {', '.join(its_plan.opponents)}, not against {', '.join(opponents)}")
    for spec in () if "opponents" in given else its_plan.opponents:
        try:
            check_harmless(spec)
        except ValueError as problem:
            raise ValueError(f"{path}: its opponent is {shown(spec)}; {problem}. To go on, name the opponents again") from None
    changes = {name: given[name] for name in ("steps", "threads") if name in given}
    run = Run(its_variant, dataclasses.replace(its_plan, **changes), its_seed, folder, device, learner)
    with _blamed_on(path):
        run.restore(state)
    return run


def _read_config(text: str) -> tuple[Variant, Preset, int]:
    """Variant, preset and seed of a run. ValueError, KeyError, TypeError or AttributeError if one is missing or wrong."""
    config = json.loads(text)
    for field in dataclasses.fields(Preset):
        config["preset"][field.name]  # KeyError: a missing field would silently take today's default
    if check_seed(config["seed"]) is None:
        raise ValueError("seed is missing")
    variant = configure(str(config["game"]), **_tuples(config["options"]))
    return variant, Preset(**_tuples(config["preset"])), config["seed"]


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples, which JSON does not have."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def _check_curve(curve: Any, score: Any) -> None:
    """Raise ValueError unless these are a learning curve and the scores since its last point."""
    if not isinstance(curve, list) or not all(isinstance(point, dict) and "steps" in point for point in curve):
        raise ValueError("curve is not a list of points")
    if not isinstance(score, dict) or not all(isinstance(sums, list) and len(sums) == 2 and sums[0] for sums in score.values()):
        raise ValueError("score does not hold two numbers for each opponent")
    for numbers in (*(point.values() for point in curve), *score.values()):
        for number in numbers:
            check_range("a number of the curve", number, -1e15, 1e15, whole=False)


@contextlib.contextmanager
def _blamed_on(path: Path) -> Iterator[None]:
    """Raise one ValueError, naming the file, for all errors in a checkpoint's content."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        reason = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem).partition("\n")[0][:200]
        raise ValueError(
            f"{str(path)!r} is damaged or of another run ({reason}); remove it to start anew, or choose another folder"
        ) from None
