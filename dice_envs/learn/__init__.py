"""Learning: `train` trains a policy, with the settings of `presets`.

`ppo` is the learner, `sb3` that of Stable-Baselines3; `networks` has what they share. `run` trains against opponents, measures
and saves, `checkpoint` reads and writes its state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dice_envs.core.files import folder_lock
from dice_envs.core.game import Game, Variant, single_seat
from dice_envs.core.machine import check_extra, torch_device
from dice_envs.learn.presets import plan_of

if TYPE_CHECKING:
    from dice_envs.learn.run import TrainingRun


class TrainingCallback:
    """Progress reports of a training run, for subclasses to override. No method changes what is learned."""

    def started(self, steps: int, until: int, seed: int) -> None:
        """All arguments are checked, and the run is open: it goes on after `steps` learner steps, and ends at `until`.

        Also called for a run that has ended. What it raises ends the call before anything is trained or written.
        """

    def advanced(self, steps: int) -> None:
        """`steps` learner steps have been played since the last call."""

    def learned(self, steps: int, values: Mapping[str, float]) -> None:
        """The policy has learned from a rollout: losses and the like by name, for a log."""

    def measured(self, steps: int, minutes: float, name: str, gaps: Mapping[str, float]) -> None:
        """Exact gaps from optimal play after `steps` learner steps and `minutes` of training.

        `name` is the measure's; `gaps` those of the "last" and, where there is one, of the "averaged" policy.
        """

    def saved(self, steps: int, speed: float, scores: Mapping[str, float]) -> None:
        """A checkpoint has been reached, and is written if the run has a folder.

        `speed` is in learner steps per second; `scores` is the last point of the learning curve.
        """

    def stop(self) -> bool:
        """Return True to end training, with everything saved. Called before each rollout."""
        return False


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
    device: str | None = "cpu",
    callback: TrainingCallback | None = None,
    **options: Any,
) -> TrainingRun:
    """Train a policy by PPO: against opponents, or by self-play towards equilibrium.

    Args:
        game: a Variant, or a name or Game, which then stands for the variant that `gymnasium.make` gives.
        preset: "quick" or "full" learn to beat opponents and past selves, "equilibrium" to be hard to beat; Liar's Dice of
            many rounds also has "match". See `dice_envs.learn.presets`.
        steps: learner steps, instead of the preset's. Whole rollouts are played, so there may be a few more.
        opponents: specs of fixed opponents, instead of the preset's.
        seed: fixes weights, games and all that is drawn, together with the setting `threads`, also beside runs in other
            threads of the process; None: a fresh one. Runs with different seeds share no random stream.
        settings: other fields of `dice_envs.learn.presets.Preset` by name.
        folder: of the run's files, made if it is missing. A run that it holds is resumed; one process at a time may use it.
            None: nothing is written.
        learner: "ppo", this package's, or "sb3", MaskablePPO of SB3-contrib as it is (see `dice_envs.learn.sb3`); None: that of
            the run in the folder, or "ppo".
        device: PyTorch's, such as "cuda"; "auto": "cuda" where there is a GPU, else "cpu"; None: "cpu". A GPU takes one run of
            a process at a time. For the learner "ppo" on a GPU the preset's steps, rollouts and minibatches are larger
            (`dice_envs.learn.presets.Preset.on_gpu`), unless `settings` has `num_envs`, `num_steps` or `minibatch`.
        callback: reports progress, and may stop training.
        options: the game's options.

    Raises:
        ValueError: wrong arguments, or a folder that holds another run or a damaged one, or that another process uses.
        ImportError: PyTorch or Stable-Baselines3 is not installed; the message names the extra.
    """
    check_extra("sb3", "dice_envs.train", "torch")
    from dice_envs.learn.run import open_run

    variant, device = single_seat(game, **options), torch_device(device)
    given = {**(settings or {}), **({} if steps is None else {"steps": steps})}
    given |= {} if opponents is None else {"opponents": opponents}
    plan = plan_of(variant, preset, given, seed, learner, device)
    folder = None if folder is None else Path(folder)
    with contextlib.nullcontext() if folder is None else folder_lock(folder, "folder"):
        run = open_run(folder, plan)
        callback = callback or TrainingCallback()
        callback.started(run.steps, run.preset.steps, run.seed)
        run.write()
        run.learn(callback)
    return run
