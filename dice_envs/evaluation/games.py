"""Games of the player that is evaluated: what each one earned, and what each of its decisions gave away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dice_envs.agent import Agent
from dice_envs.agent.matches import Piece, Watch, play_pieces, remembering
from dice_envs.core.game import Variant
from dice_envs.exact import GameExact, ResponseValues
from dice_envs.pictures.render import in_words

MOST_KEPT = 10  # of the costliest decisions
NO_COST = 1e-6  # a smaller one is rounding: large tables of values are float32
# Decisions, those that cost something, and the cost of each game in which any did, or of each match if an agent remembers.
Group = tuple[int, int, list[float]]


class _Decisions:
    """Collects the player's decisions while its games are played.

    Attributes:
        lost: (matches, games) float64, what all decisions of a game gave away, in returns.
    """

    def __init__(self, variant: Variant, values: ResponseValues, match: int, pieces: Sequence[Piece], alone: bool) -> None:
        self._variant, self._values, self._unit = variant, values, 1 if alone else match
        self._first = pieces[0].first * match
        self.lost = np.zeros((sum(piece.number for piece in pieces), match))
        self._made = np.zeros(self.lost.size, np.int64)  # decisions so far, by game
        self._by: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
        self._worst: list[dict[str, Any]] = []
        self._exact = GameExact(variant.game)

    def before_move(self, agent: int, states: np.ndarray, games: np.ndarray, actions: np.ndarray) -> None:
        """See `dice_envs.agent.matches.Watch`. Agent 0 is the player, or all are."""
        if agent != 0 and not self._values.whole_team:
            return
        values = self._values.action_values(states)
        rows = np.flatnonzero((~np.isnan(values)).sum(axis=1) > 1)
        if not len(rows):
            return
        states, actions, values, place = states[rows], actions[rows], values[rows], games[rows] - self._first
        cost = costs_of(values, actions)
        np.add.at(self.lost.reshape(-1), place, cost)
        self._made[place] += 1
        labels = self._exact.situations(self._variant, states, actions)
        for heading, names in (labels or {"decision of the game": self._made[place].astype(str)}).items():
            groups = self._by.setdefault(heading, {})
            for name in np.unique(names):
                mine = names == name
                counts, costs = groups.setdefault(str(name), (np.zeros(2, np.int64), np.zeros(self.lost.size // self._unit)))
                counts += len(cost[mine]), (cost[mine] > 0).sum()
                np.add.at(costs, place[mine] // self._unit, cost[mine])
        self._keep_worst(states, games[rows], actions, values, cost)

    def _keep_worst(
        self, states: np.ndarray, games: np.ndarray, actions: np.ndarray, values: np.ndarray, cost: np.ndarray
    ) -> None:
        """Keep the costliest decisions in words."""
        least = self._worst[-1]["cost"] if len(self._worst) == MOST_KEPT else 0.0
        say = self._variant.describe_action
        for row in np.argsort(-cost)[:MOST_KEPT].tolist():
            if cost[row] <= least:
                break
            best, seat = int(np.nanargmax(values[row])), int(states[row]["seat"])
            self._worst.append(
                {
                    "cost": float(cost[row]),
                    "game": int(games[row]),
                    "position": in_words(self._variant.picture(states[row], seat)),
                    "played": say(int(actions[row])),
                    "better": say(best),
                }
            )
        self._worst = worst_of(self._worst)

    def as_dict(self) -> dict[str, Any]:
        """Return groups and the costliest decisions in what JSON can hold."""
        groups: dict[str, dict[str, Group]] = {}
        for heading, found in self._by.items():
            groups[heading] = {name: (*counts.tolist(), costs[costs > 0].tolist()) for name, (counts, costs) in found.items()}
        return {"lost": self.lost.tolist(), "groups": groups, "worst": self._worst}


def costs_of(values: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Return what each action gives away, (n,) float64, from the values (n, num_actions) of all."""
    costs = np.nanmax(values, axis=1) - values[np.arange(len(actions)), actions]
    costs[costs < NO_COST] = 0.0
    return np.asarray(costs)


def expected_returns(values: ResponseValues, matches: int, match: int, *, agent: int = 0) -> np.ndarray:
    """Return what a best response expects in an agent's seat of each game, (matches, match) float64; see `play_pieces`."""
    if values.whole_team:
        return np.full((matches, match), values.start(0))
    seats = (np.arange(matches)[:, None] + np.arange(match) + agent) % 2
    return np.array([values.start(0), values.start(1)])[seats]


def seats_of(shape: tuple[int, ...], by_match: bool, seats: int = 2, agent: int = 0) -> np.ndarray:
    """Return an agent's seat in each game of (matches, games), or in the first of each match, (n,) int64; see `play_pieces`."""
    found = (np.arange(shape[0])[:, None] + np.arange(shape[1]) + agent) % seats
    return np.asarray(found[:, 0] if by_match else found.ravel())


def independent(values: np.ndarray, by_match: bool) -> np.ndarray:
    """Return values (…, matches, games) as (…, n) that are independent: of all games, or means of matches."""
    return values.mean(axis=-1) if by_match else values.reshape(*values.shape[:-2], -1)


def worst_of(decisions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the costliest decisions, the same one at the same position once."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in sorted(decisions, key=lambda each: (-each["cost"], each["game"])):
        found.setdefault((each["position"], each["played"]), each)
    return list(found.values())[:MOST_KEPT]


def play_part(
    variant: Variant,
    agents: Sequence[Agent],
    values: ResponseValues,
    match: int,
    pieces: Sequence[Piece],
) -> dict[str, Any]:
    """Play matches and value the decisions of the player, agent 0, or of all agents in a team.

    Returns:
        What JSON can hold: "earned" and "lost", the player's return of each game and what its decisions gave away (matches,
        games); "groups", by heading and label: see `Group`; "worst", the costliest decisions.
    """
    decisions = _Decisions(variant, values, match, pieces, alone=not remembering(agents))
    returns = play_pieces(variant, agents, match, pieces, Watch(before_move=decisions.before_move))
    return {"earned": returns[:, :, 0].tolist(), **decisions.as_dict()}


def play_valued(
    variant: Variant,
    agents: Sequence[Agent],
    values: Sequence[ResponseValues | None],
    match: int,
    pieces: Sequence[Piece],
) -> np.ndarray:
    """Play matches of two agents and value the decisions of both, as far as that is known.

    Args:
        variant: a game of two seats.
        agents: both.
        values: of each one's choices against the other; None where they are not known.
        match, pieces: as for `play_part`.

    Returns:
        (matches, games, 4) float64: the return of each agent, and what the decisions of each gave away, 0 where not known.
    """
    first = pieces[0].first * match
    lost = np.zeros((2, match * sum(piece.number for piece in pieces)))

    def before_move(agent: int, states: np.ndarray, games: np.ndarray, actions: np.ndarray) -> None:
        own = values[agent]
        if own is not None:
            np.add.at(lost[agent], games - first, costs_of(own.action_values(states), actions))

    returns = play_pieces(variant, agents, match, pieces, Watch(before_move=before_move))
    return np.concatenate([returns, lost.T.reshape(-1, match, 2)], axis=2)
