"""The agent every other is measured against: any legal action, equally likely. Plays any game."""

from __future__ import annotations

import dataclasses

from dice_envs.agent import Uniform


@dataclasses.dataclass(frozen=True)
class Random(Uniform):
    """Plays a uniformly random legal action."""


AGENTS = {"random": Random}
