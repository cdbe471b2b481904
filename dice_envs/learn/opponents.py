"""The opponents of a training run, fixed agents and past selves, and the games won against them."""

from __future__ import annotations

from typing import Any

import numpy as np

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
        score: games against each opponent since `take_means` was last called, and games won; in a game of one seat, of which
            "return" is the name, the sum of returns.
    """

    def __init__(self, variant: Variant, preset: Preset) -> None:
        self.names = preset.opponents
        self.num_selves = 0
        self.score: dict[str, list[float]] = {}
        self._facts, self._expected = variant.facts, preset.expected_rewards
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

    def add_games(self, returns: np.ndarray, players: np.ndarray) -> None:
        """Count finished games: as won or not against each opponent, or by their returns where there are none.

        Args:
            returns: (k,) float64, the learner's.
            players: (k, seats) int64, the number of the opponent at each seat, or LEARNER.
        """
        if self.pool is None:
            self._add("return", len(returns), returns.sum())
            return
        worth = self._worth(returns)
        for number in np.unique(players[players >= 0]):
            seats = (players == number).sum(axis=1)
            self._add(self.name(int(number)), seats.sum(), (seats * worth).sum())

    def _worth(self, returns: np.ndarray) -> np.ndarray:
        """1 for a game won, 0 for another; with expected rewards, the return scaled from lost (0) to won (1)."""
        # A game is won where the return is above that of an even game: 0 in all games that are zero-sum.
        facts = self._facts
        if not self._expected:
            return (returns > 0).astype(float)
        return (returns - facts.min_return) / (facts.max_return - facts.min_return)

    def _add(self, name: str, games: int, worth: float) -> None:
        score = self.score.setdefault(name, [0, 0.0])
        score[0] += int(games)
        score[1] += float(worth)

    def take_means(self) -> dict[str, float]:
        """Return the share of games won against each opponent, or the mean return, since the last call."""
        means = {name: worth / games for name, (games, worth) in sorted(self.score.items())}
        self.score = {}
        return means
