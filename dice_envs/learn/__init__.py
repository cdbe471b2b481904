"""Learning: `train` trains a policy, with the settings of `presets`.

`ppo` is the learner, `rollout` what it learns from, `sb3` the learner of Stable-Baselines3. `run` trains against `opponents`,
measures and saves, `checkpoint` reads and writes its state, `callback` reports. `distill` trains a network that plays a
solution.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice_envs.core.extras import check_extra
from dice_envs.core.files import atomic, folder_lock
from dice_envs.core.game import Game, Variant, single_seat
from dice_envs.core.machine import torch_device
from dice_envs.core.options import check_choice, check_seed
from dice_envs.learn.callback import TrainingCallback
from dice_envs.learn.presets import Preset, preset_of

if TYPE_CHECKING:
    from dice_envs.agent import Agent
    from dice_envs.agents.ppo import NetworkPolicy

__all__ = ["Trained", "TrainingCallback", "train"]


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained policy and its measures.

    Attributes:
        policy: an agent: `dice_envs.measure` takes it, and so does every other function that takes agents.
        steps: learner steps of the training.
        minutes: of training, without measuring.
        seed: of the run.
        learner: "ppo" or "sb3".
        curve: points of the learning curve: the learner's `steps`, and the share of games won against each opponent (in a game
            of one seat, the mean return) since the last point.
        gaps: points with the learner's `steps` and the gap of the "last" and, where the preset keeps it, of the "averaged"
            policy: that of the first measure of `dice_envs.measure`. Empty where it is not known, or not cheap to measure.
        preset: how it was trained, all settings included.
        policies: the "last" policy and, where the preset averages them, the "averaged" one.
        pool: the opponents by name, past selves included; empty in a game of one seat.
        minutes_at: minutes of training up to measurements and checkpoints, by the learner's steps.
    """

    policy: NetworkPolicy
    steps: int
    minutes: float
    seed: int
    learner: str
    curve: list[dict[str, Any]]
    gaps: list[dict[str, Any]]
    preset: Preset
    policies: dict[str, NetworkPolicy]
    pool: list[tuple[str, list[Agent]]]
    minutes_at: dict[int, float]

    def save(self, path: str | Path) -> None:
        """Write the policy to a file, which `ppo:PATH` plays."""
        from dice_envs.agents.ppo import save_policy

        with atomic(Path(path)) as temporary:
            save_policy(temporary, self.policy)


def train(
    game: str | Game | Variant,
    *,
    preset: str = "quick",
    steps: int | None = None,
    opponents: Sequence[str] | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    learner: str | None = None,
    device: str = "cpu",
    callback: TrainingCallback | None = None,
    **options: Any,
) -> Trained:
    """Train a policy by PPO: against opponents, or by self-play towards equilibrium.

    Args:
        game: a Variant, or a name or Game, which then stands for the variant that `gymnasium.make` gives.
        preset: "quick" or "full" learn to beat opponents and past selves, "equilibrium" to be hard to beat; Liar's Dice of
            many rounds also has "match". See `dice_envs.learn.presets`.
        steps: learner steps, instead of the preset's. Whole rollouts are played, so there may be a few more.
        opponents: specs of fixed opponents, instead of the preset's.
        seed: fixes weights, games and all that is drawn, together with the setting `threads`; None: a fresh one. Runs with
            different seeds share no random stream.
        settings: other fields of `dice_envs.learn.presets.Preset` by name.
        folder: of the run's files, made if it is missing. A run that it holds is resumed; one process at a time may use it.
            None: nothing is written.
        learner: "ppo", this package's, or "sb3", MaskablePPO of SB3-contrib as it is (see `dice_envs.learn.sb3`); None: that of
            the run in the folder, or "ppo".
        device: PyTorch's, such as "cuda"; "auto": "cuda" where there is a GPU, else "cpu". On a GPU the learner "ppo" has more
            games at once and shorter rollouts than the preset says, unless `settings` has `num_envs` or `num_steps`.
        callback: reports progress, and may stop training.
        options: the game's options.

    Raises:
        ValueError: wrong arguments, or a folder that holds another run or a damaged one, or that another process uses.
        ImportError: PyTorch or Stable-Baselines3 is not installed; the message names the extra.
    """
    check_extra("sb3", "dice_envs.train", "torch")
    from dice_envs.learn.run import LEARNERS, check_plan, open_run

    variant = single_seat(game, **options)
    given = {**(settings or {})}
    given |= {} if steps is None else {"steps": steps}
    given |= {} if opponents is None else {"opponents": tuple(opponents)}
    plan = preset_of(variant.game.name, preset, **given)
    seed, device = check_seed(seed), torch_device(device)
    if learner is not None:
        check_choice("learner", learner, list(LEARNERS))
    if learner == "sb3":
        from dice_envs.learn.sb3 import stock_plan

        plan = stock_plan(plan, given)
    elif device.startswith("cuda") and not given.keys() & {"num_envs", "num_steps"}:
        plan = plan.on_gpu()
    check_plan(variant, plan, opponents)
    if folder is not None:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
    with contextlib.nullcontext() if folder is None else folder_lock(folder, "folder"):
        run = open_run(folder, variant, plan, seed, given, device, learner)
        if callback is not None:
            callback.started(run.steps, run.preset.steps, run.seed)
        run.save()
        run.learn(callback)
    policies = {"last": run.policy(), **({"averaged": run.policy(averaged=True)} if run.model.averages else {})}
    return Trained(
        run.offered(),
        run.steps,
        max(run.minutes.values(), default=0.0),
        run.seed,
        run.learner,
        run.curve,
        run.gaps,
        run.preset,
        policies,
        run.opponents.by_name(),
        {int(at): minutes for at, minutes in run.minutes.items()},
    )
