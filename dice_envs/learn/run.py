"""A training run: PPO against fixed opponents, past selves and itself, measured on the way, saved and resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import pkgutil
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dice_envs.agent.mixture import Mixture
from dice_envs.agent.specs import check_harmless, make_players
from dice_envs.agents.ppo import NetworkPolicy, save_policy
from dice_envs.core.files import read_json, write_text
from dice_envs.core.game import Variant
from dice_envs.core.machine import torch_threads
from dice_envs.core.options import check_choice, check_range, shown
from dice_envs.core.work import clock, work
from dice_envs.exact import measure
from dice_envs.learn.checkpoint import blamed_on, check_curve, read_checkpoint, read_config, write_checkpoint
from dice_envs.learn.presets import LEARNERS, Plan, Preset

if TYPE_CHECKING:
    from dice_envs.learn import TrainingCallback

CHEAP_POSITIONS = 2_000_000  # most at which policies are asked in 64 iterations or fewer: a few seconds


class TrainingPool:
    """A preset's fixed opponents and the learner's past selves.

    Attributes:
        pool: these agents with their weights; None in a game of one seat.
        most: the number of past selves that are kept: none where the learner has every seat. A new one replaces the oldest.
        num_selves: past selves added so far.
        score: games against each opponent since the last point of the learning curve, and games won; in a game of one seat, of
            which "return" is the name, the sum of returns.
    """

    def __init__(self, variant: Variant, preset: Preset) -> None:
        fixed: list[Any] = make_players(variant, preset.opponents) if variant.facts.num_seats > 1 else []
        self._facts, self._preset, self._fixed = variant.facts, preset, len(fixed)
        self.pool = Mixture(fixed) if fixed else None
        self.most = preset.past_selves if fixed and preset.self_share and preset.self_play < 1 else 0
        self.num_selves = 0
        self.score: dict[str, list[float]] = {}

    @property
    def selves(self) -> list[NetworkPolicy]:
        """The latest past selves."""
        return self.pool.agents[self._fixed :] if self.pool else []

    def add_self(self, policy: NetworkPolicy) -> None:
        """Add a past self, if any are kept."""
        if self.pool and self.most:
            place = self._fixed + self.num_selves % self.most
            self.pool.agents[place : place + 1] = [policy]
            self.num_selves += 1
            share, there = self._preset.self_share, len(self.selves)
            self.pool.weights = [(1 - share) / self._fixed] * self._fixed + [share / there] * there

    def by_name(self) -> list[tuple[str, list[Any]]]:
        """Each fixed opponent by its spec, and the "past selves" together."""
        agents = self.pool.agents if self.pool else []
        fixed = [(spec, [agent]) for spec, agent in zip(self._preset.opponents, agents, strict=False)]
        return [*fixed, ("past selves", self.selves)] if self.selves else fixed

    def add_games(self, returns: np.ndarray, players: np.ndarray) -> None:
        """Count finished games: as won or not against each opponent, or by their returns where there are none.

        `returns` (k,) float64 are the learner's, `players` (k, seats) int64 the opponents' numbers, or LEARNER, at each seat.
        """
        facts, names = self._facts, self._preset.opponents
        # A game is won where the return is above that of an even game: 0 in all games that are zero-sum.
        won = (returns > 0).astype(float)
        if self._preset.expected_rewards:  # from lost (0) to won (1)
            low, high = facts.likely_returns
            won = (returns - low) / (high - low)
        found = [("return", len(returns), returns.sum())] if self.pool is None and len(returns) else []
        for number in np.unique(players[players >= 0]):
            seats = (players == number).sum(axis=1)
            found.append((names[number] if number < self._fixed else "past selves", seats.sum(), (seats * won).sum()))
        for name, games, total in found:
            score = self.score.setdefault(name, [0, 0.0])
            score[0] += int(games)
            score[1] += float(total)


@dataclasses.dataclass(eq=False, repr=False)
class TrainingRun:
    """What `dice_envs.train` returns: a training run with its policy, its measures, and its files if it has a folder.

    A run resumes from checkpoint.pt alone. config.json and policy.npz are derived from it, for people and agents. times.json
    holds the minutes of training at each point; timings are stored separately because they differ between identical runs.

    Attributes:
        variant: the game.
        preset: how it was trained, all settings included.
        seed: fixes weights, games and all that is drawn.
        folder: of its files; None: nothing is written.
        device: PyTorch's.
        learner: "ppo" or "sb3".
        curve: points of the learning curve: the learner's `steps`, and the share of games won against each opponent (in a game
            of one seat, the mean return) since the last point.
        gaps: points with the learner's `steps` and the gap of the "last" and, where the preset keeps it, of the "averaged"
            policy: that of the first measure of `dice_envs.measure`. Empty where it is not known, or not cheap to measure.
        minutes_at: minutes of training up to measurements and checkpoints, by the learner's steps.
        gap_name: the measure's name.
        best: the policy with the smallest gap, where gaps are measured.
        opponents: those of the preset, and past selves.
        model: the learner, `dice_envs.learn.ppo.PPO` or `dice_envs.learn.sb3.StockPPO`, with its networks.
    """

    variant: Variant
    preset: Preset
    seed: int
    folder: Path | None = None
    device: str = "cpu"
    learner: str = "ppo"
    curve: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    gaps: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    minutes_at: dict[int, float] = dataclasses.field(default_factory=dict)
    gap_name: str = ""
    best: NetworkPolicy | None = None

    def __post_init__(self) -> None:
        self.opponents = TrainingPool(self.variant, self.preset)
        make = pkgutil.resolve_name(LEARNERS[self.learner])
        self.model: Any = make(self.variant, self.preset, self.opponents.pool or "random", self.seed, self.device)

    @property
    def steps(self) -> int:
        """Learner steps so far."""
        return int(self.model.steps)

    @property
    def minutes(self) -> float:
        """Minutes of training, without measuring; 0 if they are not known."""
        return max(self.minutes_at.values(), default=0.0)

    @property
    def iterations(self) -> int:
        """The number of rollouts collected."""
        return self.steps // (self.preset.num_envs * self.preset.num_steps)

    # --- policies and measures -----------------------------------------------------------------------------------

    @property
    def policy(self) -> NetworkPolicy:
        """The run's policy, an agent: the last one, or with keep="best" the one that measured best.

        Where none was measured, that is the averaged one, which usually comes closer to equilibrium than the last.
        """
        last, *averaged = self.model.policies().values()
        return last if self.preset.keep == "last" else self.best or [last, *averaged][-1]

    def save(self, path: str | Path) -> None:
        """Write the policy to a file, which `ppo:PATH` plays."""
        save_policy(Path(path), self.policy)

    def measure_gap(self) -> dict[str, float]:
        """Measure the exact gap of the last and of the averaged policy; empty between times, and where it is not cheap.

        It is time every `measure_every` iterations and at the end. Until a measure was cheap, it is tried after 1, 2, 4, 8 …
        times as many iterations.
        """
        steps, every = self.steps, self.preset.measure_every
        times, beyond = divmod(self.iterations, every or 1)
        is_time = steps >= self.preset.steps or (not beyond and (self.gaps or times.bit_count() == 1))
        if not every or not is_time or (self.gaps and self.gaps[-1]["steps"] >= steps):
            return {}
        found, most = dict[str, float](), CHEAP_POSITIONS * min(max(every, 64), 512) // 64
        best = min((gap for point in self.gaps for name, gap in point.items() if name != "steps"), default=math.inf)
        for name, policy in self.model.policies().items():
            try:
                with work(most=most):
                    measured = measure(self.variant, policy, seed=self.seed).measures[0]
            except ValueError:  # TooLong is one
                return {}
            self.gap_name = measured.name
            found[name] = measured.gap
            if measured.gap < best:
                best, self.best = measured.gap, policy
        self.gaps.append({"steps": steps, **found})
        return found

    def add_point(self) -> dict[str, float]:
        """Add the mean scores since the last point to the curve, and return them."""
        means = {name: total / games for name, (games, total) in sorted(self.opponents.score.items())}
        self.opponents.score = {}
        if means:
            self.curve.append({"steps": self.steps, **means})
        return means

    # --- files ---------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the checkpoint and the files derived from it, each whole or not at all. Nothing without a folder."""
        self.model.check_finite()
        if self.folder is None:
            return
        config = {"game": self.variant.game.name, "options": self.variant.changed_options(), "seed": self.seed}
        config |= {"learner": self.learner, "preset": dataclasses.asdict(self.preset)}
        state = {
            **self.model.state(),
            "config": json.dumps(config),
            "selves": [_tensors(policy) for policy in self.opponents.selves],
            "num_selves": self.opponents.num_selves,
            "curve": json.dumps(self.curve),
            "score": json.dumps(self.opponents.score),
            "gaps": json.dumps(self.gaps),
            "best": [] if self.best is None else _tensors(self.best),
        }
        write_checkpoint(self.folder / "checkpoint.pt", state)
        write_text(self.folder / "config.json", json.dumps(config, indent=1) + "\n")
        self.save(self.folder / "policy.npz")
        write_text(self.folder / "times.json", json.dumps(self.minutes_at) + "\n")

    def restore(self, state: Mapping[str, Any]) -> None:
        """Return to a state that `write` wrote for a run like this one. Another one raises various errors, see `blamed_on`."""
        num_selves = state["num_selves"]
        check_range("num_selves", num_selves, 0, 10**12)
        if len(state["selves"]) != min(num_selves, self.opponents.most):
            raise ValueError(f"selves are not those of {num_selves} snapshots")
        for layers in state["selves"]:
            self.opponents.add_self(self.model.policy_with(layers))
        self.opponents.num_selves = num_selves
        self.curve = json.loads(state["curve"])
        self.opponents.score = json.loads(state["score"])
        self.gaps = json.loads(state["gaps"])
        check_curve(self.curve, self.opponents.score)
        check_curve(self.gaps, {})
        if state["best"]:
            self.best = self.model.policy_with(state["best"])
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):  # the run can go on without its timings
            found = read_json(self.folder / "times.json") if self.folder else {}
            self.minutes_at = {int(steps): float(minutes) for steps, minutes in found.items()}
        self.model.restore(state)

    # --- training ------------------------------------------------------------------------------------------------

    def learn(self, callback: TrainingCallback) -> None:
        """Train up to the preset's steps, measure and save. Ends early, with everything saved, if the callback stops it."""
        p = self.preset
        if self.steps >= p.steps:
            return
        first, before, seconds = self.steps, self.minutes, 0.0
        with torch_threads(p.threads):
            while self.steps < p.steps:
                self.model.check_finite()
                minutes = before + seconds / 60
                if gaps := self.measure_gap():
                    self.minutes_at[self.steps] = minutes
                    callback.learned(self.steps, {f"gap/{name}": gap for name, gap in gaps.items()})
                    callback.measured(self.steps, minutes, self.gap_name, gaps)
                if callback.stop():
                    break
                if self.iterations % p.checkpoint_every == 0 and self.steps > first:
                    self.minutes_at[self.steps] = minutes
                    self.write()
                    scores = {name: value for name, value in (self.curve or [{}])[-1].items() if name != "steps"}
                    callback.saved(self.steps, (self.steps - first) / seconds, scores)
                steps, start = self.steps, clock()
                values = {f"train/{name}": value for name, value in self.model.iterate(self.opponents.add_games).items()}
                callback.advanced(self.steps - steps)
                if self.iterations % 4 == 0:
                    values |= {f"pool/{name}": mean for name, mean in self.add_point().items()}
                callback.learned(self.steps, values)
                if self.iterations % p.snapshot_every == 0:
                    self.opponents.add_self(self.model.policy())
                seconds += clock() - start
            self.minutes_at[self.steps] = before + seconds / 60
            if self.steps >= p.steps:
                self.measure_gap()
            self.write()


def _tensors(policy: NetworkPolicy) -> list[tuple[Any, Any]]:
    import torch

    return [(torch.from_numpy(weights), torch.from_numpy(biases)) for weights, biases in policy.layers]


def open_run(folder: Path | None, plan: Plan) -> TrainingRun:
    """Open the run in a folder, or begin one there; without a folder begin one without files.

    A run that is resumed goes on as it began. Only `steps` and `threads` that were asked for change it.

    Raises:
        ValueError: the folder holds another run, one against other opponents than were asked for, or a damaged one.
    """
    path = None if folder is None else folder / "checkpoint.pt"
    if path is None or not path.exists():
        seed, learner = secrets.randbits(31) if plan.seed is None else plan.seed, plan.learner or "ppo"
        return TrainingRun(plan.variant, plan.preset, seed, folder, plan.device, learner)
    with blamed_on(path):
        state = read_checkpoint(path)
        its_variant, its_preset, its_seed, its_learner = read_config(state["config"])
        check_choice("learner", its_learner, list(LEARNERS))
    opponents = plan.preset.opponents if "opponents" in plan.asked else its_preset.opponents
    differ = {
        "of": (str(its_variant.plain), str(plan.variant.plain)),
        "with seed": (its_seed, its_seed if plan.seed is None else plan.seed),
        "of the learner": (its_learner, plan.learner or its_learner),
        "against": tuple(", ".join(specs) for specs in (its_preset.opponents, opponents)),
    }
    for words, (its_own, wanted) in differ.items():
        if its_own != wanted:
            raise ValueError(f"{folder} holds a run {words} {its_own}, not {words} {wanted}")
    for spec in () if "opponents" in plan.asked else its_preset.opponents:
        try:
            check_harmless(spec, its_variant.game.name)
        except ValueError as problem:
            raise ValueError(f"{path}: its opponent is {shown(spec)}; {problem}. To go on, name the opponents again") from None
    changes = {name: getattr(plan.preset, name) for name in {"steps", "threads"} & plan.asked}
    run = TrainingRun(its_variant, dataclasses.replace(its_preset, **changes), its_seed, folder, plan.device, its_learner)
    with blamed_on(path):
        run.restore(state)
    return run
