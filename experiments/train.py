"""MaskablePPO against a pool of fixed opponents and past selves: train, measure, save."""

from __future__ import annotations

import dataclasses
import importlib
import json as json_module
import pickle
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import agents
from agents.ppo import NetworkPolicy, Ppo, save_policy
from dice_envs import Pool, Variant, configure
from dice_envs.game import check_range, parse_options
from experiments.output import (
    atomic,
    check_folder,
    check_writable,
    console,
    figure,
    print_rows,
    progress,
    seed_or_fresh,
    write_json,
)

__all__ = ["PRESETS", "Preset", "train"]


@dataclasses.dataclass(frozen=True)
class Preset:
    """How to train.

    Attributes:
        steps: learner steps in all.
        opponents: specs of the pool's fixed opponents.
        self_share: how many of the opponents drawn are past selves, 0 to 1.
        past_selves: how many of them are kept; the oldest makes room.
        snapshot_every: iterations between two of them.
        num_envs, num_steps: games at once, and steps in each between two updates.
        minibatch, epochs, learning_rate, entropy, gae_lambda, hidden: MaskablePPO's; the learning rate falls to 0.
        checkpoint_every: iterations between two checkpoints.
        threads: PyTorch's.
    """

    steps: int
    opponents: tuple[str, ...] = ("random",)
    self_share: float = 0.2
    past_selves: int = 8
    snapshot_every: int = 8
    num_envs: int = 512
    num_steps: int = 64
    minibatch: int = 4096
    epochs: int = 4
    learning_rate: float = 5e-4
    entropy: float = 0.01
    gae_lambda: float = 0.95
    hidden: tuple[int, ...] = (128, 128)
    checkpoint_every: int = 8
    threads: int = 2


_NUMBERS = ("random", "numbers:bluff=0", "numbers:bluff=0.25", "numbers:bluff=0.75", "numbers:bluff=1")

# Presets of games that need their own; "" is for all others.
PRESETS: dict[str, dict[str, Preset]] = {
    "": {"quick": Preset(steps=2_000_000), "full": Preset(steps=50_000_000)},
    "liars_dice": {
        "quick": Preset(steps=9_000_000, opponents=_NUMBERS),
        "full": Preset(steps=200_000_000, opponents=_NUMBERS, hidden=(256, 256), checkpoint_every=32, snapshot_every=32),
    },
    "shakes": {
        "quick": Preset(
            steps=1_500_000,
            num_envs=256,
            num_steps=24,
            minibatch=2048,
            learning_rate=1e-3,
            entropy=0.003,
            hidden=(64, 64),
            threads=1,
        ),
    },
    "thirties": {
        "quick": Preset(
            steps=1_000_000,
            num_envs=256,
            num_steps=32,
            minibatch=1024,
            epochs=8,
            learning_rate=1e-3,
            entropy=0.0,
            hidden=(64, 64),
            threads=1,
        ),
    },
}


class _Run:
    """A training run in a folder: config.json, checkpoint.pt, policy.npz, results.json, plots, a TensorBoard log."""

    def __init__(self, folder: Path, variant: Variant, preset: Preset, seed: int) -> None:
        self.folder, self.variant, self.preset, self.seed = folder, variant, preset, seed
        self.curve: list[dict[str, Any]] = []
        self.selves = 0  # snapshots taken so far
        fixed: list[Any] = [agents.make(spec) for spec in preset.opponents] if variant.facts.num_seats > 1 else []
        self.num_fixed = len(fixed)
        self.pool = Pool([*fixed, *["random"] * preset.past_selves]) if fixed else None
        self._weigh()

    def _weigh(self) -> None:
        """Fixed opponents share what past selves leave; places of selves that are not there yet weigh nothing."""
        if self.pool is None:
            return
        there = min(self.selves, self.preset.past_selves)
        share = self.preset.self_share if there else 0.0
        weights = [(1 - share) / self.num_fixed] * self.num_fixed
        weights += [share / there if place < there else 0.0 for place in range(self.preset.past_selves)]
        self.pool.weights = weights

    def opponent_name(self, number: int) -> str:
        return self.preset.opponents[number] if number < self.num_fixed else "past selves"

    def add_self(self, policy: NetworkPolicy) -> None:
        """Take a snapshot into the pool."""
        if self.pool is not None and self.preset.past_selves:
            self.pool.agents[self.num_fixed + self.selves % self.preset.past_selves] = policy
            self.selves += 1
            self._weigh()

    def build(self) -> Any:
        """The MaskablePPO model on its environment."""
        import torch
        from sb3_contrib import MaskablePPO

        from dice_envs.sb3 import make_vec_env

        torch.set_num_threads(self.preset.threads)
        # SB3 builds distributions by the thousand; checking their arguments each time costs a third of the update.
        torch.distributions.Distribution.set_default_validate_args(False)
        p = self.preset
        env = make_vec_env(self.variant, p.num_envs, self.pool or "random", seed=self.seed)
        return MaskablePPO(
            "MlpPolicy",
            env,
            n_steps=p.num_steps,
            batch_size=p.minibatch,
            n_epochs=p.epochs,
            learning_rate=lambda remaining: p.learning_rate * remaining,
            ent_coef=p.entropy,
            gamma=1.0,
            gae_lambda=p.gae_lambda,
            policy_kwargs={"net_arch": list(p.hidden)},
            tensorboard_log=str(self.folder / "tensorboard"),
            seed=self.seed,
            device="cpu",
        )

    def policy_of(self, model: Any) -> NetworkPolicy:
        """The model's present policy, copied."""
        from torch import nn

        dense = [m for m in model.policy.mlp_extractor.policy_net if isinstance(m, nn.Linear)] + [model.policy.action_net]
        layers = [(m.weight.detach().numpy().copy(), m.bias.detach().numpy().copy()) for m in dense]
        return NetworkPolicy(self.variant.game.name, self.variant.changed_options(), layers)

    def save(self, model: Any) -> None:
        """Write the checkpoint and the policy, each whole or not at all."""
        import torch

        selves = []
        if self.pool is not None:
            there = self.pool.agents[self.num_fixed : self.num_fixed + min(self.selves, self.preset.past_selves)]
            selves = [[(torch.from_numpy(w), torch.from_numpy(b)) for w, b in policy.layers] for policy in there]
        state = {
            "policy": model.policy.state_dict(),
            "optimizer": model.policy.optimizer.state_dict(),
            "num_timesteps": model.num_timesteps,
            "selves": selves,
            "num_selves": self.selves,
            "curve": json_module.dumps(self.curve),
        }
        with atomic(self.folder / "checkpoint.pt") as temporary:
            torch.save(state, temporary)
        with atomic(self.folder / "policy.npz") as temporary:
            save_policy(temporary, self.policy_of(model))

    def load(self, model: Any) -> None:
        """Go back to the last checkpoint. ValueError if it is damaged or of another run."""
        import torch

        path = self.folder / "checkpoint.pt"
        try:
            state = torch.load(path, weights_only=True)
            model.policy.load_state_dict(state["policy"])
            model.policy.optimizer.load_state_dict(state["optimizer"])
            model.num_timesteps = int(state["num_timesteps"])
            self.curve = json_module.loads(state["curve"])
            for layers in state["selves"]:
                arrays = [(weights.numpy(), biases.numpy()) for weights, biases in layers]
                self.add_self(NetworkPolicy(self.variant.game.name, self.variant.changed_options(), arrays))
            self.selves = int(state["num_selves"])
        except (
            RuntimeError,
            KeyError,
            TypeError,
            EOFError,
            AttributeError,
            pickle.UnpicklingError,
            zipfile.BadZipFile,
        ) as problem:
            reason = str(problem).partition("\n")[0][:120]
            raise ValueError(
                f"{str(path)!r} is damaged or of another run ({reason}); remove it to start anew, or choose another --out"
            ) from None


def _callback(run: _Run, done: Any) -> Any:
    from stable_baselines3.common.callbacks import BaseCallback

    class Watch(BaseCallback):
        """Keeps the learning curve, takes snapshots, writes checkpoints."""

        def __init__(self) -> None:
            super().__init__()
            self.iterations = 0
            self.score: dict[str, list[float]] = {}
            self.at = 0

        def _on_training_start(self) -> None:
            self.at = self.model.num_timesteps
            self.started = time.perf_counter()
            self.first = self.at

        def _on_step(self) -> bool:
            # A game is won where the return is above what an even game pays: 0 in all games that are zero-sum.
            for info in self.locals["infos"]:
                if "episode" in info:
                    for number in info["players"][info["players"] >= 0] if run.pool else [0]:
                        name = run.opponent_name(int(number)) if run.pool else "return"
                        self.score.setdefault(name, []).append(info["episode"]["r"])
            return True

        def _on_rollout_end(self) -> None:
            self.iterations += 1
            done(self.model.num_timesteps - self.at)
            self.at = self.model.num_timesteps
            if self.iterations % 4 == 0 and self.score:
                point: dict[str, Any] = {"steps": self.model.num_timesteps}
                for name, returns in sorted(self.score.items()):
                    point[name] = float(np.mean(returns)) if run.pool is None else float(np.mean(np.array(returns) > 0))
                    self.logger.record(f"pool/{name}", point[name])
                run.curve.append(point)
                self.score = {}
            if self.iterations % run.preset.snapshot_every == 0:
                run.add_self(run.policy_of(self.model))
            if self.iterations % run.preset.checkpoint_every == 0:
                run.save(self.model)
                speed = (self.at - self.first) / (time.perf_counter() - self.started)
                last = run.curve[-1] if run.curve else {}
                shown = "  ".join(f"{name} {value:.3f}" for name, value in last.items() if name != "steps")
                console.print(f"{self.at:>12,} steps  {speed:>8,.0f}/s  {shown}", highlight=False)

    return Watch()


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config = json_module.loads(path.read_text())
        return {"game": config["game"], "options": config["options"], "preset": config["preset"], "seed": config["seed"]}
    except (ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{str(path)!r} is damaged ({problem}); remove the folder to start anew") from None


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no tuples: lists become them again."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


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
) -> dict[str, Any]:
    """Train, measure and save; the arguments are those of the command `train`.

    Returns:
        What results.json holds: the cross table, the learning curve, the seed, the speed.

    Raises:
        ValueError: wrong arguments, a folder that holds another run, a damaged checkpoint.
    """
    plain = configure(game).game
    variant = plain.configure(**{**plain.gym_options, **parse_options(list(option))})
    choices = {**PRESETS[""], **PRESETS.get(plain.name, {})}
    if preset not in choices:
        raise ValueError(f"unknown preset {preset!r}; presets are: {', '.join(choices)}")
    plan = choices[preset]
    if opponents:
        plan = dataclasses.replace(plan, opponents=tuple(opponents))
    if steps is not None:
        check_range("steps", steps, 1, 10**12)
        plan = dataclasses.replace(plan, steps=steps)
    check_range("evaluation_games", evaluation_games, 1, 10**9)
    for spec in plan.opponents:
        agents.make(spec)
    check_writable(json)
    seed = seed_or_fresh(seed)
    folder = out or Path("runs") / f"{plain.name}_{preset}"
    going_on = (folder / "checkpoint.pt").exists()
    wanted = {"game": plain.name, "options": variant.changed_options()}
    if going_on:
        if not resume:
            raise ValueError(f"{folder} holds a run already; add --resume to go on with it, or choose another --out")
        config = _read_config(folder)
        if {"game": config["game"], "options": _tuples(config["options"])} != wanted:
            raise ValueError(
                f"{folder} holds a run of {config['game']} {config['options']}, not of {plain.name} {wanted['options']}"
            )
        seed = int(config["seed"])
        kept: dict[str, Any] = _tuples(config["preset"])
        plan = Preset(**{**kept, "steps": steps or kept["steps"]})
    check_folder(folder)
    run = _Run(folder, variant, plan, seed)
    model = run.build()
    if going_on:
        run.load(model)
    write_json(folder / "config.json", {**wanted, "preset": dataclasses.asdict(plan), "seed": seed})
    console.print(
        f"training {plain.name} {wanted['options'] or ''} for {plan.steps:,} steps in {folder}, seed {seed}", highlight=False
    )
    left, start = plan.steps - model.num_timesteps, time.perf_counter()
    first = model.num_timesteps
    if left > 0:
        with progress("learner steps", left) as done:
            model.learn(left, callback=_callback(run, done), reset_num_timesteps=not going_on, tb_log_name="ppo")
        run.save(model)
    seconds = time.perf_counter() - start
    result: dict[str, Any] = {
        "seed": seed,
        "steps": model.num_timesteps,
        "steps_per_second": (model.num_timesteps - first) / seconds if left > 0 else None,
        "curve": run.curve,
    }
    if left > 0:
        console.print(f"{model.num_timesteps - first:,} steps in {seconds:,.0f} s: {result['steps_per_second']:,.0f} a second")
    _measure(run, evaluation_games, result)
    _plot_curve(run)
    write_json(folder / "results.json", result)
    write_json(json, result)
    console.print(f"saved: ppo:{folder / 'policy.npz'}", highlight=False)
    return result


def _measure(run: _Run, games: int, result: dict[str, Any]) -> None:
    """The final cross table, and whatever exact measure the game's solver offers."""
    from experiments.__main__ import draw_win_rates
    from experiments.arena import show, tournament

    spec = f"ppo:{run.folder / 'policy.npz'}"
    try:
        solver: Any = importlib.import_module(f"experiments.solve.{run.variant.game.name}")
    except ImportError:
        solver = None
    if hasattr(solver, "evaluate"):
        rows = solver.evaluate(run.variant, Ppo(str(run.folder / "policy.npz"), greedy=True))
        print_rows("measured exactly, greedy policy", rows, digits=6)
        result["exact"] = [dataclasses.asdict(row) for row in rows]
    seats = run.variant.facts.num_seats
    if seats == 1:
        return
    specs = (
        [spec, spec + ",greedy=true", *run.preset.opponents]
        if seats == 2
        else [spec, *([run.preset.opponents[0]] * (seats - 1))]
    )
    meetings = len(specs) * (len(specs) - 1) // 2 if seats == 2 else 1
    with progress("cross table", meetings * games) as done:
        table = tournament(run.variant, specs, games, run.seed, done)
    table.agents[: 2 if seats == 2 else 1] = ["ppo", "ppo greedy"][: 2 if seats == 2 else 1]
    show(table)
    result["table"] = dataclasses.asdict(table)
    size = 2 + 1.1 * len(specs)
    with figure(run.folder, "cross_table", figsize=(size + 2, size)) as (_, axes):
        draw_win_rates(axes, table)


def _plot_curve(run: _Run) -> None:
    if not run.curve:
        return
    with figure(run.folder, "learning_curve") as (_, axes):
        for name in sorted({key for point in run.curve for key in point if key != "steps"}):
            points = [(point["steps"] / 1e6, point[name]) for point in run.curve if name in point]
            axes.plot(*zip(*points), label=name)
        axes.set_xlabel("learner steps, millions")
        axes.set_ylabel("mean return" if run.pool is None else "share of training games won (policy drawn)")
        axes.set_title(f"{run.variant.game.title}: MaskablePPO, seed {run.seed}")
        axes.grid(alpha=0.3)
        axes.legend()
