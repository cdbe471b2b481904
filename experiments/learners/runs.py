"""The learners of `dice_envs.train` as algorithms: this package's PPO and SB3-contrib's MaskablePPO."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from dice_envs.core.game import Variant
from dice_envs.core.options import shown
from dice_envs.experiments.learners import DECISIONS
from dice_envs.experiments.sweep import RECIPES
from dice_envs.learn import TrainingCallback
from dice_envs.learn.presets import Preset, plan_of
from dice_envs.learn.run import TrainingRun, open_run


class EquilibriumPPO:
    """The preset "equilibrium", with the settings of the preset that are given."""

    unit = DECISIONS
    preset, learner = "equilibrium", "ppo"
    changes: ClassVar[dict[str, Any]] = {}

    def __init__(self, variant: Variant, seed: int, steps: int, **settings: Any) -> None:
        known = [field.name for field in dataclasses.fields(Preset)]
        for name in settings.keys() - set(known):
            raise ValueError(f"there is no setting {shown(name)}; settings are: {', '.join(known)}")
        # Measured by the benchmark alone; nothing is written.
        fixed = {"steps": steps, "threads": 1, "measure_every": 0}
        plan = plan_of(variant, self.preset, {**self.changes, **settings, **fixed}, seed, self.learner)
        self.run = open_run(None, plan)

    def train(self, steps: int) -> int:
        before = self.run.steps
        self.run.learn(_Until(self.run, before + steps))
        return self.run.steps - before

    def policy(self) -> Any:
        return self.run.policy


class EveryHandPPO(EquilibriumPPO):
    """The same, with values over all hands of the other player."""

    changes: ClassVar[dict[str, Any]] = {"every_hand": True}


class PublishedPPO(EquilibriumPPO):
    """The best PPO of Rudolph et al. (2025), see `dice_envs.experiments.sweep.RECIPES`."""

    changes: ClassVar[dict[str, Any]] = {**RECIPES["published"], "keep": "last"}


class PublishedMMD(PublishedPPO):
    """Their best magnetic mirror descent: the same, with a divergence of weight 0.025 from the policy that played."""

    changes: ClassVar[dict[str, Any]] = {**PublishedPPO.changes, "proximal": 0.025}


class PastSelvesPPO(EquilibriumPPO):
    """SB3-contrib's MaskablePPO with the preset "quick", against twenty of its past selves."""

    preset, learner = "quick", "sb3"
    changes: ClassVar[dict[str, Any]] = {
        "opponents": ("random",), "self_share": 1.0, "past_selves": 20, "num_envs": 64, "minibatch": 1024,
    }  # fmt: skip


class _Until(TrainingCallback):
    """Stops a run at a number of steps."""

    def __init__(self, run: TrainingRun, steps: int) -> None:
        self.run, self.steps = run, steps

    def stop(self) -> bool:
        return self.run.steps >= self.steps
