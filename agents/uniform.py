"""The baseline agent: a uniformly random legal action, in any game."""

from __future__ import annotations

import dataclasses

from dice_envs.agent import Uniform


@dataclasses.dataclass(frozen=True)
class Random(Uniform):
    """Plays a uniformly random legal action."""


AGENTS = {"random": Random}
