"""Agents as policies: a physician, or a table of maesters all of whom are the agent."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Literal

import numpy as np

from dice_envs.agent import Turn, ask_probabilities, promises_of
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.exact.agents import is_uniform
from dice_envs.exact.shakes.argument import argument_chances, kept_chances
from dice_envs.exact.shakes.tally import Policy
from dice_envs.games.shakes import ARGUE, FACES, SILENT

__all__ = ["as_policy", "as_tally_team", "as_team", "looks_at_tally_alone", "sees_efficacies"]

ROWS_AT_ONCE = 1 << 16


def looks_at_tally_alone(agent: Any) -> bool:
    """Return whether the agent promises that its choices depend on the tally alone; see `measures.measure`."""
    return is_uniform(agent) or promises_of(agent).tally_alone


def sees_efficacies(variant: Variant, agent: Any) -> bool:
    """Return whether the agent's choices may depend on the efficacies: they are open, and it looks at more than the tally."""
    reads = not looks_at_tally_alone(agent) or promises_of(agent).reads_efficacies
    return bool(variant.options.open_efficacies) and reads


def _states(variant: Variant, treated: np.ndarray, saved: np.ndarray, efficacies: np.ndarray | None = None) -> np.ndarray:
    """Return states with these tallies, in which nobody has spoken on the next patient; efficacies are random by default."""
    states = np.zeros(len(treated), variant.game.state)
    variant.kernels.deal(variant.params, states, np.arange(len(treated)))
    states["treated"][:, : treated.shape[1]] = treated
    states["saved"][:, : treated.shape[1]] = saved
    states["patients"] = treated.sum(axis=1)
    if efficacies is not None:
        states["efficacy"][:, : treated.shape[1]] = efficacies
    return states


def _answers(agent: Any, variant: Variant, states: np.ndarray, seeds: np.random.SeedSequence) -> np.ndarray:
    """Return the agent's probabilities in each state, (m, num_actions) float64. Its random streams are new."""
    streams = new_streams(seeds.spawn(1)[0], len(states))
    return ask_probabilities(agent, Turn(variant, states, np.arange(len(states)), streams))


def _check_told(variant: Variant, agent: Any, efficacies: np.ndarray | None) -> None:
    """Raise ValueError if the agent sees efficacies and none are given."""
    if efficacies is None and sees_efficacies(variant, agent):
        raise ValueError("open_efficacies: what this agent does depends on the efficacies, so they must be given")


def as_policy(agent: Any, variant: Variant, seed: int = 0, efficacies: np.ndarray | None = None) -> Policy:
    """Return the policy of an agent with `probabilities` as the physician of `variant`; evaluate it with `merged=False`.

    Args:
        agent: see `dice_envs.agent.ask_probabilities`.
        variant: the game.
        seed: of the agent's own random streams.
        efficacies: (n,) of the treatments, if they are open; see `evaluate_open`.

    Raises:
        ValueError: the variant is not the physician's, or the agent sees efficacies that are not given.
        AgentError: the agent states no probabilities; raised when the policy is first asked.
    """
    if variant.game.name != "shakes" or variant.options.mode != "physician":
        raise ValueError('an agent is evaluated as a physician: the game must be shakes with mode="physician"')
    _check_told(variant, agent, efficacies)
    seeds = np.random.SeedSequence(seed)
    return lambda treated, saved: _answers(agent, variant, _states(variant, treated, saved, efficacies), seeds)


# --- a table of maesters as a policy ------------------------------------------------------------------------------

# A set of maesters is a number, as in `argument`: bit k stands for column k.


def _members(num_players: int) -> np.ndarray:
    """Return the members of each set, (2**n, n) bool."""
    return (np.arange(1 << num_players)[:, None] >> np.arange(num_players) & 1).astype(bool)


def _winners(sets: np.ndarray, treated: np.ndarray, saved: np.ndarray, ties: Literal["again", "random"]) -> np.ndarray:
    """Return P(each maester wins), (m, n), if `sets` (m, 2**n) are the probabilities that exactly this set argues."""
    wins = np.zeros(treated.shape)
    for among, members in enumerate(_members(treated.shape[1])):
        met = np.flatnonzero(sets[:, among] * members.any())
        if len(met):
            where = np.ix_(met, np.flatnonzero(members))
            wins[where] += sets[met, among, None] * argument_chances(treated[where], saved[where], ties)
    return wins


def as_tally_team(
    agent: Any, variant: Variant, first_opener: int = 0, seed: int = 0, efficacies: np.ndarray | None = None
) -> Policy:
    """Return the policy of a table where every maester is an agent that looks at the tally alone.

    It is asked once for each tally and maester, as the first to speak. The order of speaking matters only where all
    may yield, because then the last must argue.

    Arguments and errors are those of `as_team`.
    """
    _check_told(variant, agent, efficacies)
    n, ties = variant.options.num_players, variant.options.ties
    seeds = np.random.SeedSequence(seed)

    def policy(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        sets = np.ones((len(treated), 1))
        for seat in range(n):
            states = _states(variant, treated, saved, efficacies)
            states["opener"] = states["seat"] = seat
            argues = _answers(agent, variant, states, seeds)[:, [ARGUE]]
            sets = np.hstack([sets * (1 - argues), sets * argues])
        last = (first_opener + treated.sum(axis=1) - 1) % n
        sets[np.arange(len(sets)), 1 << last] += sets[:, 0]  # if all others yield, the last must argue
        return _winners(sets, treated, saved, ties)

    return policy


@functools.lru_cache(maxsize=8)
def _histories(spoken: int) -> np.ndarray:
    """Return all outcomes of the first `spoken` maesters, (7**spoken, spoken) int8: the die each kept, or SILENT."""
    said = list(itertools.product(range(FACES + 1), repeat=spoken))
    return np.array(said, np.int8).reshape(len(said), spoken)


def as_team(agent: Any, variant: Variant, first_opener: int = 0, seed: int = 0, efficacies: np.ndarray | None = None) -> Policy:
    """Return the policy of a table where the agent plays every maester; evaluate it with `merged=False`.

    Each maester is asked about every combination of dice that those before it may have kept. As in the observation, it
    sees which die each of them kept, but not the dice taken away.

    Args:
        agent: see `dice_envs.agent.ask_probabilities`.
        variant: the game, of maesters.
        first_opener: the first seat to speak on the first patient.
        seed: of the agent's own random streams.
        efficacies: (n,) of the treatments, if they are open; see `evaluate_open`.

    Raises:
        ValueError: the agent sees efficacies that are not given.
        AgentError: the agent states no probabilities; raised when the policy is first asked.
    """
    _check_told(variant, agent, efficacies)
    n, ties = variant.options.num_players, variant.options.ties
    seeds = np.random.SeedSequence(seed)
    at_once = max(1, ROWS_AT_ONCE // len(_histories(n - 1)))
    members = _members(n)

    def policy(treated: np.ndarray, saved: np.ndarray) -> np.ndarray:
        order = (first_opener + treated.sum(axis=1)[:, None] + np.arange(n)) % n  # seats as they speak
        blocks = [slice(first, first + at_once) for first in range(0, len(treated), at_once)]
        tied = np.concatenate(
            [_tied(agent, variant, treated[rows], saved[rows], order[rows], seeds, efficacies) for rows in blocks]
        )
        if ties == "again":
            in_turn = np.take_along_axis(treated, order, axis=1), np.take_along_axis(saved, order, axis=1)
            wins = _winners(tied, *in_turn, ties)
        else:
            wins = tied @ (members / np.maximum(members.sum(axis=1, keepdims=True), 1))
        by_seat = np.empty(wins.shape)
        np.put_along_axis(by_seat, order, wins, axis=1)
        return by_seat

    return policy


def _tied(
    agent: Any,
    variant: Variant,
    treated: np.ndarray,
    saved: np.ndarray,
    order: np.ndarray,
    seeds: np.random.SeedSequence,
    efficacies: np.ndarray | None,
) -> np.ndarray:
    """Return P(each set of maesters keeps the highest die), (m, 2**n) float64, once all have spoken.

    Args:
        order: (m, n) seats as they speak; column k of a set stands for the k-th of them.
    """
    count, n = treated.shape
    rows = np.arange(count)
    kept = kept_chances(treated, saved)
    reached = np.ones((count, 1))  # P(each history)
    for spoken in range(n):
        row, history = np.nonzero(reached)
        states = _states(variant, treated[row], saved[row], efficacies)
        states["opener"], states["seat"], states["spoken"] = order[row, 0], order[row, spoken], spoken
        states["strength"][np.arange(len(row))[:, None], order[row, :spoken]] = _histories(spoken)[history]
        states["argued"] = states["strength"] != SILENT
        argues = np.zeros((*reached.shape, 1))
        argues[row, history] = _answers(agent, variant, states, seeds)[:, [ARGUE]]
        said = np.concatenate([1 - argues, argues * kept[rows, order[:, spoken]][:, None, :]], axis=2)
        reached = (reached[:, :, None] * said).reshape(count, -1)
    strengths = _histories(n)
    highest = (strengths == strengths.max(axis=1, keepdims=True)) @ (1 << np.arange(n))
    return np.stack([reached[:, highest == tied].sum(axis=1) for tied in range(1 << n)], axis=1)
