"""Results of tournaments: shares of wins and mean returns, with 95 % intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.exact.intervals import match_half_width

Matrix = list[list[float | None]]
PARTS_END = (10, 50)  # a match is shown in parts: its first 10 games, the next 40, the rest
LEAST_EDGE = 0.005  # over half of the games; of less nobody can be said to have a share
FIGURES = ("win_rate", "ci95", "draws", "mean_return", "mean_return_ci95")  # of meetings, in JSON files
WITHOUT_LUCK = ("plain_win_rate", "plain_ci95", "variance_ratio")  # the same where luck is taken out


class Best(NamedTuple):
    """What a best response to an agent wins, mean of both seats, and the half-width of its interval, 0 if it is exact."""

    wins: float
    ci95: float = 0.0


@dataclasses.dataclass
class Edge:
    """What an agent took of the edge over one half that a best response to its opponent has.

    Attributes:
        agent, opponent: their names.
        wins: the agent's share of wins.
        best_response_wins, best_response_ci95: of a best response, and the half-width of its interval.
        share, ci95: of the edge, and the half-width.
    """

    agent: str
    opponent: str
    wins: float
    best_response_wins: float
    best_response_ci95: float
    share: float
    ci95: float


@dataclasses.dataclass
class Part:
    """An agent's share of wins in one part of all matches.

    Attributes:
        first, last: numbers of the part's games in their match, from 1.
        win_rate, ci95: as in `Meeting`.
    """

    first: int
    last: int
    win_rate: float
    ci95: float


@dataclasses.dataclass
class Meeting:
    """An agent's results against another, or at the one table.

    Attributes:
        row, column: its place in `Result.win_rate`: numbers of the agent and of the other; at one table 0 and the agent's.
        win_rate, ci95: the agent's share of wins, where a tie counts half, and the half-width of its interval.
        draws: share of ties.
        mean_return, mean_return_ci95: of the agent, and the half-width of its interval.
        parts: of the matches, where they are long enough.
        plain_win_rate, plain_ci95: as games were won, where luck is taken out of the other figures; else None.
        variance_ratio: how many times as many games the plain interval takes to be as small; None where no luck is taken out,
            or all of it.
    """

    row: int
    column: int
    win_rate: float
    ci95: float
    draws: float
    mean_return: float
    mean_return_ci95: float
    parts: list[Part] = dataclasses.field(default_factory=list)
    plain_win_rate: float | None = None
    plain_ci95: float | None = None
    variance_ratio: float | None = None

    @classmethod
    def of(
        cls, variant: Variant, place: tuple[int, int], shares: np.ndarray, is_tie: np.ndarray, returns: np.ndarray
    ) -> Meeting:
        """Results from an agent's shares and returns, (matches, games) float64, and from the ties, (all games,) bool."""
        spans = parts_of(shares.shape[1])
        parts = [Part(first, last, *_mean(shares[:, first - 1 : last], 0.0, 1.0)) for first, last in spans]
        earned = _mean(returns, variant.facts.min_return, variant.facts.max_return)
        return cls(*place, *_mean(shares, 0.0, 1.0), float(is_tie.mean()), *earned, parts)


@dataclasses.dataclass
class TeamResult:
    """Results of agents that earn together, or of one that plays alone.

    Attributes:
        members: numbers of the agents.
        mean_return, ci95: mean return, and the half-width of its interval.
        win, win_ci95: share of games won, and the half-width; None where a game cannot be won.
    """

    members: list[int]
    mean_return: float
    ci95: float
    win: float | None = None
    win_ci95: float | None = None

    @classmethod
    def of(cls, variant: Variant, members: list[int], returns: np.ndarray) -> TeamResult:
        """Results from the returns, (matches, games) float64."""
        facts = variant.facts
        earned = _mean(returns, facts.min_return, facts.max_return)
        won = () if facts.winning_return is None else _mean(returns >= facts.winning_return - 1e-6, 0.0, 1.0)
        return cls(members, *earned, *won)


@dataclasses.dataclass
class Copies:
    """Results of all copies of an agent at one table.

    Attributes:
        agent: its spec.
        seats: number of copies.
        win_rate, ci95: share of games that one of them wins, and the half-width of its interval.
        mean_return, mean_return_ci95: of one seat, and the half-width.
    """

    agent: str
    seats: int
    win_rate: float
    ci95: float
    mean_return: float
    mean_return_ci95: float

    @classmethod
    def each_of(
        cls, variant: Variant, specs: Sequence[str], shares: np.ndarray, returns: np.ndarray, match: int
    ) -> list[Copies]:
        """Results of each spec, from shares and returns (games, seats) float64 at one table."""
        found = []
        for spec in dict.fromkeys(specs):
            mine = [place for place, other in enumerate(specs) if other == spec]
            share = shares[:, mine].sum(axis=1).reshape(-1, match)
            earned = returns[:, mine].mean(axis=1).reshape(-1, match)
            own = _mean(earned, variant.facts.min_return, variant.facts.max_return)
            found.append(cls(spec, len(mine), *_mean(share, 0.0, 1.0), *own))
        return found


@dataclasses.dataclass
class Result:
    """A tournament.

    Meetings can be read as matrices, such as `win_rate[i][j]`: row agent i's share of wins against column agent j, None where
    nothing was played. With more than two seats there is one row: each agent's share at the one table. In a game of one seat
    the agent with the higher return wins.

    Attributes:
        game: its name.
        options: those that differ from the game's defaults.
        agents: their specs.
        games: number of games of each meeting; 0 where `exact`.
        seed: fixed all games.
        seats: of the game.
        match: games that the same players play one after another; intervals then count matches, not games.
        exact: win rates were computed: no games were played, and intervals are 0.
        cooperative: all at a table are paid the same; `teams` holds what they earned.
        meetings: results of the agents that met.
        elo: ratings, except at one table.
        teams: of a cooperative game, or each agent that plays alone.
        copies: of agents that sit at the one table more than once, and of the others there; else empty.
        optimal: what optimal play reaches, by measure: first of the return, then of P(win), each by itself.
        without_luck: luck was taken out of the meetings' shares and returns where that is possible; `draws` are as played.
        edges: what agents took of the edge over half that a best response to their opponent has; see `compare`.
        notes: why luck was not taken out against some agents.
    """

    game: str
    options: dict[str, Any]
    agents: list[str]
    games: int
    seed: int
    seats: int = 2
    match: int = 1
    exact: bool = False
    cooperative: bool = False
    meetings: list[Meeting] = dataclasses.field(default_factory=list)
    elo: list[float] | None = None
    teams: list[TeamResult] = dataclasses.field(default_factory=list)
    copies: list[Copies] = dataclasses.field(default_factory=list)
    optimal: dict[str, float] | None = None
    without_luck: bool = False
    edges: list[Edge] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def one_table(self) -> bool:
        """Whether all agents play at one table, not in pairs."""
        return self.seats > 2

    def meeting(self, row: int, column: int) -> Meeting | None:
        """Return the meeting at a place of the matrices, None if there was none."""
        return next((each for each in self.meetings if (each.row, each.column) == (row, column)), None)

    @property
    def win_rate(self) -> Matrix:
        """Shares of wins; a tie counts half."""
        return self.matrix("win_rate")

    @property
    def ci95(self) -> Matrix:
        """Half-widths of the shares' intervals."""
        return self.matrix("ci95")

    def matrix(self, figure: str) -> Matrix:
        """Return an attribute of all meetings in rows and columns, such as "mean_return"."""
        return self._matrix([getattr(each, figure) for each in self.meetings])

    def compare(self, best: Sequence[Best | None], whose: int | None = None) -> None:
        """Fill in `edges`, from what a best response to each agent wins; None where that is not known.

        With `whose` only edges of that many agents, the first ones, are filled in. A share whose interval is as wide as the
        whole edge on each side says nothing, and is left out.
        """
        for each in self.meetings:
            against = best[each.column] if each.row < (whose or len(self.agents)) else None
            if against is None or against.wins - 0.5 < LEAST_EDGE:
                continue
            edge = against.wins - 0.5
            share = (each.win_rate - 0.5) / edge
            half = math.hypot(each.ci95, share * against.ci95) / edge
            if half >= 1:
                continue
            names = self.agents[each.row], self.agents[each.column]
            self.edges.append(Edge(*names, each.win_rate, *against, share, half))

    def _matrix(self, values: Sequence[float | None]) -> Matrix:
        """Arrange values, one for each meeting, in rows and columns."""
        found: Matrix = [[None] * len(self.agents) for _ in range(1 if self.one_table else len(self.agents))]
        for each, value in zip(self.meetings, values, strict=True):
            found[each.row][each.column] = value
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the form that JSON files hold, with the meetings as matrices."""
        parts = []
        for number, (first, last) in enumerate(parts_of(self.match)):
            own = [each.parts[number] for each in self.meetings]
            shares, halves = self._matrix([part.win_rate for part in own]), self._matrix([part.ci95 for part in own])
            parts.append({"first": first, "last": last, "win_rate": shares, "ci95": halves})
        found = dataclasses.asdict(self)
        del found["meetings"]
        found |= {figure: self.matrix(figure) for figure in FIGURES}
        found |= {figure: self.matrix(figure) if self.without_luck else None for figure in WITHOUT_LUCK}
        return {**found, "parts": parts}


def parts_of(match: int) -> list[tuple[int, int]]:
    """Return the first and last game, from 1, of each part of a match; no parts if it is no longer than the first."""
    starts = [1, *(end + 1 for end in PARTS_END if end < match)]
    ends = [*(end for end in PARTS_END if end < match), match]
    return list(zip(starts, ends, strict=True)) if len(starts) > 1 else []


def shares_of(returns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each agent's share of each game and whether all shared it, from returns (games, agents) float64.

    Shares, (games, agents) float64, are 1 for the single best return and equal among several best; ties are (games,) bool.
    """
    best = returns >= returns.max(axis=1, keepdims=True) - 1e-6
    return best / best.sum(axis=1, keepdims=True), best.all(axis=1)


def _mean(values: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """Return the mean of figures from `low` to `high`, (matches, games) float64, and its 95 % half-width."""
    return float(values.mean()), match_half_width(values.mean(axis=1), values.shape[1], low, high)
