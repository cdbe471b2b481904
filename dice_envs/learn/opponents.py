"""The opponents of a training run: fixed agents and past selves."""

from __future__ import annotations

from typing import Any

from dice_envs.agent.casting import make_players
from dice_envs.agents.ppo import NetworkPolicy
from dice_envs.core.game import Variant
from dice_envs.envs.learner import Pool
from dice_envs.learn.presets import Preset

__all__ = ["Opponents"]


class Opponents:
    """A preset's fixed opponents and the learner's past selves.

    Attributes:
        pool: these agents with their weights; None in a game of one seat.
        num_selves: past selves added so far; the pool holds the latest ones.
    """

    def __init__(self, variant: Variant, preset: Preset) -> None:
        self.names = preset.opponents
        self.num_selves = 0
        self._share = preset.self_share
        fixed: list[Any] = make_players(variant, preset.opponents) if variant.facts.num_seats > 1 else []
        self._num_fixed = len(fixed)
        # Without past selves there are no places: games between agents that choose by kernels are then one compiled loop.
        self._places = preset.past_selves if fixed and preset.self_share else 0
        self.pool = Pool([*fixed, *["random"] * self._places]) if fixed else None
        self._weigh()

    def _weigh(self) -> None:
        """Divide the share that past selves leave among fixed opponents; empty places have weight 0."""
        if self.pool is None:
            return
        there = self.num_kept(self.num_selves)
        share = self._share if there else 0.0
        weights = [(1 - share) / self._num_fixed] * self._num_fixed
        weights += [share / there if place < there else 0.0 for place in range(self._places)]
        self.pool.weights = weights

    def num_kept(self, num_selves: int) -> int:
        """How many past selves the pool holds after `num_selves` have been added."""
        return min(num_selves, self._places)

    def selves(self) -> list[NetworkPolicy]:
        """The past selves in the pool."""
        return [] if self.pool is None else list(self.pool.agents[self._num_fixed :][: self.num_kept(self.num_selves)])

    def add_self(self, policy: NetworkPolicy) -> None:
        """Add a past self; it replaces the oldest where all places are taken."""
        if self.pool is not None and self._places:
            self.pool.agents[self._num_fixed + self.num_selves % self._places] = policy
            self.num_selves += 1
            self._weigh()

    def restore(self, selves: list[NetworkPolicy], num_selves: int) -> None:
        """Return to a state in which `selves` gave these, and `num_selves` was this."""
        for policy in selves:
            self.add_self(policy)
        self.num_selves = num_selves

    def name(self, number: int) -> str:
        """The name of the pool's agent `number`: its spec, or "past selves"."""
        return self.names[number] if number < self._num_fixed else "past selves"

    def by_name(self) -> list[tuple[str, list[Any]]]:
        """Each fixed opponent, and the past selves together, by name."""
        if self.pool is None:
            return []
        fixed = [(spec, [agent]) for spec, agent in zip(self.names, self.pool.agents, strict=False)]
        selves = self.selves()
        return [*fixed, *([("past selves", selves)] if selves else [])]
