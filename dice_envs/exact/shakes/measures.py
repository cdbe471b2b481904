"""`measure` and `optima` of the cooperative Shakes, as `dice_envs.exact` asks for them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Agent, Uniform, ask
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant
from dice_envs.core.options import check_range
from dice_envs.exact import MOST_SAMPLE, Effort, Measurement
from dice_envs.exact.agents import is_uniform, original
from dice_envs.exact.intervals import half_width, share_half_width
from dice_envs.exact.shakes.evaluation import TooManyReached, evaluate, evaluate_open
from dice_envs.exact.shakes.policies import (
    as_policy,
    as_tally_team,
    as_team,
    looks_at_tally_alone,
    sees_efficacies,
)
from dice_envs.exact.shakes.solution import check_in_passing, open_optimum, solve
from dice_envs.exact.shakes.tally import Policy, Problem, tallies
from dice_envs.games.shakes import assignments

__all__ = ["measure", "optima"]

MOST_ASKED = 10_000_000  # positions at which `measure` asks an agent; where there are more it plays games instead
MOST_TRIED = 200_000  # positions at which it asks with open efficacies to see whether the agent reaches only few of them
GAMES = 20_000  # how many it plays by default
LEAST_GAMES = 100  # fewer give no usable estimate of the error
GAMES_AT_ONCE = 1 << 16
SAVED, WIN = "patients saved", "P(win)"


def _merges(variant: Variant, agent: Any) -> bool:
    """Return whether `evaluate` may merge tallies. Where all may yield it may not, since then the last to speak must argue."""
    return looks_at_tally_alone(agent) and not (variant.options.mode == "maesters" and is_uniform(agent))


def _policies(variant: Variant, agent: Any, seed: int) -> list[Policy]:
    """Return equally likely policies of the agent: one for each seat that may open the game, if that makes a difference."""
    if variant.options.mode == "physician":
        return [as_policy(agent, variant, seed)]
    if looks_at_tally_alone(agent):
        return [as_tally_team(agent, variant, seed=seed)]
    return [as_team(agent, variant, opener, seed) for opener in range(variant.options.num_players)]


def _positions(variant: Variant, agent: Any) -> int:
    """Return the number of positions at which the agent is asked if no tallies are merged."""
    n, patients = variant.options.num_players, variant.options.patients
    ways = len(assignments(variant.options.efficacies)) if sees_efficacies(variant, agent) else 1
    return ways * math.comb(patients - 1 + 2 * n, 2 * n) * _positions_at_tally(variant, agent)


def _positions_at_tally(variant: Variant, agent: Any) -> int:
    n = variant.options.num_players
    if variant.options.mode == "physician":
        return 1
    return n * (1 if looks_at_tally_alone(agent) else sum(7**spoken for spoken in range(n)))


def _play(variant: Variant, agent: Any, games: int, effort: Effort) -> np.ndarray:
    """Play games with the agent at every seat; return how often k patients were saved, (num_patients + 1,) int64."""
    given = original(agent)
    player = given if isinstance(given, Agent) else agent  # errors name the agent as given
    counts = np.zeros(variant.options.patients + 1, np.int64)
    seeds = np.random.SeedSequence(effort.seed)
    for first in range(0, games, GAMES_AT_ONCE):
        index = np.arange(min(GAMES_AT_ONCE, games - first))
        dealt, own = (new_streams(each, len(index)) for each in seeds.spawn(2))
        states = np.zeros(len(index), variant.game.state)
        states["rng"] = dealt["rng"]
        variant.kernels.deal(variant.params, states, index)
        while states["seat"][0] != OVER:  # all games are equally long
            variant.kernels.play(variant.params, states, index, ask(player, variant, states, index, own))
        counts += np.bincount(states["saved"].sum(axis=1), minlength=len(counts))
        effort.done(len(index), games)
    return counts


class _Outcome(NamedTuple):
    """The patients that an agent saves."""

    distribution: np.ndarray  # (num_patients + 1,) float64: P(k patients are saved)
    games: int  # played to find it; 0: it is exact
    note: str

    def mean_error(self) -> float:
        """Return the 95 % half-width of the mean."""
        if not self.games:
            return 0.0
        saved = np.arange(len(self.distribution))
        return half_width(saved, 0, saved[-1], self.games * self.distribution)

    def chance_error(self, chance: float) -> float:
        """Return the 95 % half-width of a chance."""
        return share_half_width(chance, self.games) if self.games else 0.0


def _exactly(variant: Variant, agent: Any, seed: int, done: Callable[[int, int], Any]) -> _Outcome:
    """Return the outcome of an agent that does not see the efficacies, from its answers at all tallies."""
    problem, merged, policies = Problem.of(variant.options), _merges(variant, agent), _policies(variant, agent, seed)
    count = sum(len(level.keys) for level in tallies(problem, merged)[:-1])

    def watched(policy: Policy) -> Policy:
        def watched_policy(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
            chances = policy(treated, saved)
            done(len(treated), count * len(policies))
            return chances

        return watched_policy

    found = [evaluate(problem, watched(policy), merged).distribution for policy in policies]
    return _Outcome(np.mean(found, axis=0), 0, f"all {count:,} tallies")


@functools.lru_cache(maxsize=16)
def _random_exactly(variant: Variant) -> _Outcome:
    """Return the outcome of uniformly random play. Cached: every score needs it, and a table of four takes ten seconds."""
    return _exactly(variant, Uniform(), 0, lambda amount, total: None)


def _openly(variant: Variant, agent: Any, effort: Effort) -> _Outcome:
    """Return the outcome of an agent that sees the efficacies: exact, unless it reaches too many positions."""
    options, problem = variant.options, Problem.of(variant.options)
    allowed = MOST_ASKED if _positions(variant, agent) <= MOST_ASKED else MOST_TRIED
    team = as_tally_team if looks_at_tally_alone(agent) else as_team
    openers = range(options.num_players) if options.mode == "maesters" and team is as_team else range(1)

    def policy_of(efficacies: np.ndarray, opener: int) -> Policy:
        if options.mode == "physician":
            return as_policy(agent, variant, effort.seed, efficacies)
        return team(agent, variant, opener, effort.seed, efficacies)

    found = []
    try:
        for opener in openers:
            most = allowed // _positions_at_tally(variant, agent)
            report = lambda amount, total: effort.done(amount, total * len(openers))  # noqa: E731
            found.append(evaluate_open(problem, functools.partial(policy_of, opener=opener), most, report).distribution)
    except TooManyReached:
        return _by_playing(variant, agent, effort)
    return _Outcome(np.mean(found, axis=0), 0, f"all {len(assignments(problem.efficacies))} deals of the efficacies")


def _by_playing(variant: Variant, agent: Any, effort: Effort) -> _Outcome:
    """Return the outcome of a sample of games."""
    games = GAMES if effort.sample is None else effort.sample
    check_range("sample", games, LEAST_GAMES, MOST_SAMPLE)
    note = f"{games:,} games played: {_positions(variant, agent):,} positions are too many to ask at"
    return _Outcome(_play(variant, agent, games, effort) / games, games, note)


SAVED, WIN = "patients saved", "P(win)"


def optima(variant: Variant) -> dict[str, float]:
    """Return what Bayes-optimal play reaches, the quantity that the game rewards first. See `dice_envs.exact.optima`.

    Raises:
        ValueError: the variation is competitive, or the game is too large to be solved in passing.
    """
    check_in_passing(variant)
    return _best(variant)


def _best(variant: Variant) -> dict[str, float]:
    options = variant.options
    if options.competitive:
        raise ValueError("variation must be 'cooperative' for an exact measure, not 'competitive': no optimal play is known")
    problem = Problem.of(options)
    if options.open_efficacies:
        best = {SAVED: open_optimum(problem, "saved"), WIN: open_optimum(problem, "win")}
    else:
        best = {SAVED: solve(problem, "saved").value, WIN: solve(problem, "win").value}
    return best if options.pays == "saved" else dict(reversed(best.items()))


def measure(variant: Variant, agent: Any, effort: Effort) -> list[Measurement]:
    """Measure patients saved and P(win), the one that the game rewards first. See `dice_envs.exact.GameMeasure`.

    A physician is asked at every tally. At the table the agent plays every maester, and is asked at every tally, for each
    seat that may open the game and all dice that others may have kept. Above MOST_ASKED positions (such as a physician
    with six treatments, or four maesters) GAMES games are played instead, or `effort.sample`.

    Of agents that promise `tally_alone` (see `dice_envs.Promises`), tallies are merged, and the measure is exact for all sizes
    that can be solved.

    With open efficacies such an agent does as well as with hidden ones, unless it promises `reads_efficacies`. In that case,
    and without `tally_alone`, the agent is asked at the tallies that it reaches, for every deal of the efficacies.

    Takes seconds for agents that answer quickly; a minute and 3 GiB for a physician with five treatments whose
    tallies cannot be merged.

    Raises:
        ValueError: the variation is competitive, or the game is too large to be solved.
    """
    best = _best(variant)
    if sees_efficacies(variant, agent):
        found = _openly(variant, agent, effort)
    elif not _merges(variant, agent) and _positions(variant, agent) > MOST_ASKED:
        found = _by_playing(variant, agent, effort)
    elif is_uniform(agent):
        found = _random_exactly(variant)
    else:
        found = _exactly(variant, agent, effort.seed, effort.done)
    saved = float(found.distribution @ np.arange(len(found.distribution)))
    win = float(found.distribution[variant.options.to_win :].sum())
    steps, patients = variant.facts.max_steps, variant.options.patients
    figures = {
        SAVED: (saved, found.mean_error(), "patients", steps * patients),
        WIN: (win, found.chance_error(win), "probability", steps),
    }

    def measurement(name: str, value: float, error: float, unit: str, span: float) -> Measurement:
        return Measurement(name, value, best[name], max(0.0, best[name] - value), error, unit, found.note, span)

    return [measurement(name, *figures[name]) for name in best]
