"""Results of tournaments: shares of wins and mean returns, with 95 % intervals; their tables and plots."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.options import options_text
from dice_envs.evaluation import independent
from dice_envs.exact.contract import plus_minus
from dice_envs.exact.intervals import mean_interval, results_half_width
from dice_envs.experiments.ui.grids import Grid, joined, letters, short
from dice_envs.experiments.ui.pages import ORANGE, bars, heat_map, saved_plot

Matrix = list[list[float | None]]
PARTS_END = (10, 50)  # a match is shown in parts: its first 10 games, the next 40, the rest
LEAST_EDGE = 0.005  # over half of the games; of less nobody can be said to have a share
WIDEST, USEFUL = 0.5, 0.2  # half-widths of a share's interval: a wider one is not shown, and what more games are to give
FIGURES = ("win_rate", "ci95", "draws", "mean_return", "mean_return_ci95")  # of meetings, in JSON files
WITHOUT_LUCK = ("plain_win_rate", "plain_ci95", "variance_ratio")  # the same where luck is taken out


class Best(NamedTuple):
    """What a best response to an agent wins, mean of both seats, and the half-width of its interval, 0 if it is exact."""

    wins: float
    ci95: float = 0.0


class Played(NamedTuple):
    """Figures of games.

    Attributes:
        games: (matches, games) float64.
        by_match: whether the games of a match depend on each other, since somebody remembers.
    """

    games: np.ndarray
    by_match: bool

    @classmethod
    def of(cls, figures: np.ndarray, match: int, by_match: bool) -> Played:
        """Figures of all games one after another, (games,) float64, in matches of this length."""
        return cls(figures.reshape(-1, match), by_match)

    def mean(self, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
        """Return the mean of the figures, which lie between `low` and `high`, and its 95 % half-width."""
        return float(self.games.mean()), results_half_width(independent(self.games, self.by_match), low, high)

    def interval(self) -> tuple[float, float]:
        """Return the limits of the 95 % interval of the mean of shares."""
        return mean_interval(independent(self.games, self.by_match), 0.0, 1.0)


@dataclasses.dataclass
class Edge:
    """The share of a best response's advantage over 50 % that an agent achieved against an opponent.

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
        interval: the limits of the interval of the share of wins.
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
    interval: tuple[float, float]
    parts: list[Part] = dataclasses.field(default_factory=list)
    plain_win_rate: float | None = None
    plain_ci95: float | None = None
    variance_ratio: float | None = None

    @classmethod
    def of(cls, variant: Variant, place: tuple[int, int], shares: Played, is_tie: np.ndarray, returns: Played) -> Meeting:
        """Results from an agent's shares and returns, and from the ties, (all games,) bool."""
        spans = parts_of(shares.games.shape[1])
        parts = [Part(first, last, *Played(shares.games[:, first - 1 : last], shares.by_match).mean()) for first, last in spans]
        earned, interval = returns.mean(*variant.facts.likely_returns), shares.interval()
        return cls(*place, *shares.mean(), float(is_tie.mean()), *earned, interval, parts)


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
    def of(cls, variant: Variant, members: list[int], returns: Played) -> TeamResult:
        """Results from the returns."""
        least = variant.facts.winning_return
        won = () if least is None else Played(returns.games >= least - 1e-6, returns.by_match).mean()
        return cls(members, *returns.mean(*variant.facts.likely_returns), *won)


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
        cls, variant: Variant, specs: Sequence[str], shares: np.ndarray, returns: np.ndarray, match: int, by_match: bool
    ) -> list[Copies]:
        """Results of each spec, from shares and returns (games, seats) float64 at one table; `by_match` as in `Played`."""
        found = []
        for spec in dict.fromkeys(specs):
            mine = [place for place, other in enumerate(specs) if other == spec]
            share = Played.of(shares[:, mine].sum(axis=1), match, by_match)
            earned = Played.of(returns[:, mine].mean(axis=1), match, by_match)
            found.append(cls(spec, len(mine), *share.mean(), *earned.mean(*variant.facts.likely_returns)))
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
        match: games that the same players play one after another; if one of them remembers, intervals count matches, not games.
        exact: win rates were computed: no games were played, and intervals are 0.
        cooperative: all at a table are paid the same; `teams` holds what they earned.
        meetings: results of the agents that met.
        elo, elo_interval: ratings, and the limits of their 95 % intervals; not at one table.
        teams: of a cooperative game, or each agent that plays alone.
        copies: of agents that sit at the one table more than once, and of the others there; else empty.
        optimal: what optimal play reaches, by measure: first of the return, then of P(win), each by itself.
        without_luck: luck was taken out of the meetings' shares and returns where that is possible; `draws` are as played.
        edges: the shares of best responses' advantages over 50 % that agents achieved; see `compare`.
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
    elo_interval: list[tuple[float, float]] | None = None
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

        With `whose` only edges of that many agents, the first ones, are filled in. Where games are too few for a share, a note
        says how many it takes.
        """
        needed = 0.0
        for each in self.meetings:
            against = best[each.column] if each.row < (whose or len(self.agents)) else None
            if against is None or against.wins - 0.5 < LEAST_EDGE:
                continue
            edge = against.wins - 0.5
            share = (each.win_rate - 0.5) / edge
            half = math.hypot(each.ci95, share * against.ci95) / edge
            names = self.agents[each.row], self.agents[each.column]
            self.edges.append(Edge(*names, each.win_rate, *against, share, half))
            if half > WIDEST and share >= -half:
                needed = max(needed, self.games * (half / USEFUL) ** 2)
        if needed:
            self.notes.append(
                f"too few games for a share of the edge: within ± {100 * USEFUL:.0f} % it takes about "
                f"{float(f'{needed:.1e}'):,.0f}. Where the game allows it, --without-luck takes fewer, and `measure` none"
            )

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
    ends = [0, *(end for end in PARTS_END if end < match), match]
    return [(before + 1, end) for before, end in itertools.pairwise(ends)] if len(ends) > 2 else []


def shares_of(returns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each agent's share of each game and whether all shared it, from returns (games, agents) float64.

    Shares, (games, agents) float64, are 1 for the single best return and equal among several best; ties are (games,) bool.
    """
    best = returns >= returns.max(axis=1, keepdims=True) - 1e-6
    return best / best.sum(axis=1, keepdims=True), best.all(axis=1)


# --- tables and plots ------------------------------------------------------------------------------------------------


def tournament_grids(result: Result) -> list[Grid]:
    """Return the tables: of teams in a cooperative game, else of wins, of copies of an agent and of parts of the matches."""
    if result.cooperative:
        return [_team_grid(result)]
    has_parts = any(each.parts for each in result.meetings)
    return [
        _win_grid(result),
        *([edge_grid(result.edges, "What is won and what could be, % of games", 2)] if result.edges else []),
        *([_luck_grid(result)] if any(each.plain_win_rate is not None for each in result.meetings) else []),
        *([_copies_grid(result)] if result.copies else []),
        *([_parts_grid(result)] if has_parts else []),
    ]


def verdict(result: Result) -> str:
    """Return which of two agents at a table of two is better, in a sentence; of others an empty text."""
    if len(result.agents) != 2 or result.seats != 2 or result.cooperative or (each := result.meeting(0, 1)) is None:
        return ""
    first, second = map(short, result.agents)
    if abs(each.win_rate - 0.5) <= max(each.ci95, 1e-6):
        even = "even" if result.exact else "too close to call"
        return f"{first} and {second} are {even}: {first} wins {_share(each.win_rate, each.ci95, result.exact)} %"
    best, other, rate = (first, second, each.win_rate) if each.win_rate > 0.5 else (second, first, 1 - each.win_rate)
    return f"{best} beats {other}: it wins {_share(rate, each.ci95, result.exact)} %"


def edge_grid(edges: Sequence[Edge], title: str, digits: int = 1) -> Grid:
    """Return what agents won, what a best response wins, and the share of its edge over half that they took."""
    rows = []
    first, *others = dict.fromkeys(short(edge.agent) for edge in edges)
    for edge in edges:
        best = plus_minus(edge.best_response_wins, edge.best_response_ci95 or None, digits, percent=True)
        share = "too few games" if edge.ci95 > WIDEST else plus_minus(edge.share, edge.ci95, 1, percent=True)
        share = "none" if edge.share < -edge.ci95 else share
        names = f"{short(edge.agent)} v {short(edge.opponent)}" if others else short(edge.opponent)
        rows.append((names, plus_minus(edge.wins, None, digits, percent=True), best, share))
    who = "the first" if others else "it" if first == "ppo" else first
    headings = ("agents" if others else "against", f"{who} wins", "a best\nresponse", "share of the\nedge over half")
    return Grid(title, headings, rows)


def _title(result: Result, what: str) -> str:
    game = f"{result.game} ({options_text(result.options)})" if result.options else result.game
    what += ", without luck," if result.without_luck else ""
    if result.exact:
        return f"{game}: {what}, exactly"
    matches = f" in matches of {result.match:,}" if result.match > 1 else ""
    return f"{game}: {what} ± 95 % interval, {result.games:,} games each{matches}, seed {result.seed}"


def _share(rate: float | None, half: float | None, exact: bool = False) -> str:
    """A share in per cent with its interval; empty where nothing was played."""
    if rate is None or half is None:
        return ""
    return plus_minus(rate, None, 4, percent=True) if exact else plus_minus(rate, half, percent=True)


def _return(mean: float, half: float, exact: bool) -> str:
    """A mean return with its interval."""
    return plus_minus(mean, None if exact else half, 4)


def _named(result: Result) -> list[str]:
    """Each agent's letter and name, as rows show them."""
    return [f"{letter}  {short(name)}" for letter, name in zip(letters(len(result.agents)), result.agents, strict=True)]


def _optimal_cells(result: Result) -> list[str]:
    """What optimal play earns, and P(win) where that is known."""
    if not result.optimal:
        return []
    earned, *others = result.optimal.values()
    return [f"{earned:.4f}", *(f"{100 * chance:.2f}" for chance in others[:1])]


def legend(names: Sequence[str]) -> list[str]:
    """Return a line for each name that is cut in tables, with its letter among all names."""
    named = zip(letters(len(names)), names, strict=True)
    return [f"  {letter} = {name}" for letter, name in named if short(name) != name]


def _win_grid(result: Result) -> Grid:
    """Wins of each agent against each other or at the one table, and where wins do not say all, mean returns."""
    won = "% of games in which it earns more than the other, each alone," if result.seats == 1 else "% won"
    n, one_table = len(result.agents), result.one_table
    rated = [f"{rating:.0f}" for rating in result.elo or ()] if result.seats > 1 else []
    for i, (low, high) in enumerate(result.elo_interval or () if rated else ()):
        rated[i] += f" ({low:.0f}…{high:.0f})".replace("inf", "∞")
    wins = result.seats == 1 and all(team.win is not None for team in result.teams)
    # Columns have the rows' letters: names side by side would be cut until none could be told from another.
    headings = ["agent", *(("Elo",) if rated else ()), *(["share of wins"] if one_table else [f"v {x}" for x in letters(n)])]
    headings += [*(("mean return",) if result.seats != 2 else ()), *(("P(win), %",) if wins else ())]
    rows = []
    for i, name in enumerate(_named(result)):
        met = [result.meeting(0, i)] if one_table else [result.meeting(i, j) for j in range(n)]
        cells = [name, *rated[i : i + 1]]
        cells += ["" if each is None else _share(each.win_rate, each.ci95, result.exact) for each in met]
        if result.seats != 2:
            own = next(each for each in met if each is not None)
            cells.append(_return(own.mean_return, own.mean_return_ci95, result.exact))
        if wins:
            cells.append(_share(result.teams[i].win, result.teams[i].win_ci95))
        rows.append(cells)
    if result.seats == 1 and (best := _optimal_cells(result)):
        rows.append(["optimal play", *[""] * n, *best[: 1 + wins]])
    notes = [*_ties(result), *result.notes, *legend(result.agents)]
    return Grid(_title(result, won), headings, rows, notes=notes, rules=[n - 1])


def _luck_grid(result: Result) -> Grid:
    """Each pair's share of wins without luck and as played, and the variance reduction."""
    names, rows = [short(name) for name in result.agents], []
    for each in result.meetings:
        if each.row > each.column:
            continue
        pair = f"{names[each.row]} v {names[each.column]}"
        if each.plain_win_rate is None:
            rows.append((pair, "not known", _share(each.win_rate, each.ci95), ""))
        else:
            times = "all luck" if each.variance_ratio is None else f"{each.variance_ratio:.3g}"
            plain = _share(each.plain_win_rate, each.plain_ci95)
            rows.append((pair, _share(each.win_rate, each.ci95), plain, times))
    headings = ("agents", "without luck", "as played", "times as many games for the same interval")
    return Grid("% won without luck and as played ± 95 % interval", headings, rows)


def _ties(result: Result) -> list[str]:
    """A line with the share of ties of each pair, or of the one table; empty if there were none."""
    if result.one_table:
        ties = [f"{100 * each.draws:.2f} %" for each in result.meetings[:1] if each.draws]
    else:
        names = letters(len(result.agents))
        pairs = [each for each in result.meetings if each.row < each.column]
        ties = [f"{names[each.row]} v {names[each.column]} {100 * each.draws:.2f} %" for each in pairs if each.draws]
    return [f"ties: {', '.join(ties)}"] if ties else []


def _team_grid(result: Result) -> Grid:
    """Mean return of each team, and its distance from optimal play."""
    unit = f" ({next(iter(result.optimal))})" if result.optimal else ""
    wins = all(team.win is not None for team in result.teams)
    headings = ["team", "mean return", *(("short of optimal",) if result.optimal else ()), *(("P(win), %",) if wins else ())]
    rows = []
    for team in result.teams:
        cells = [joined([result.agents[member] for member in team.members]), plus_minus(team.mean_return, team.ci95, 4)]
        if result.optimal:
            cells.append(plus_minus(next(iter(result.optimal.values())) - team.mean_return, team.ci95, 4))
        if wins:
            cells.append(_share(team.win, team.win_ci95))
        rows.append(cells)
    if best := _optimal_cells(result):
        rows.append(["optimal play", best[0], "", *best[1 : 1 + wins]])
    several = ["  each optimum is that of the best play for it alone"] if result.optimal and wins and len(best) > 1 else []
    notes = [*several, *legend(result.agents)]
    return Grid(_title(result, f"what the team earns{unit}"), headings, rows, notes=notes, rules=[len(result.teams) - 1])


def _copies_grid(result: Result) -> Grid:
    """Results of each agent with all its copies at the table."""
    rows = []
    for each in result.copies:
        even = f"{100 * each.seats / result.seats:.2f}"
        earned = _return(each.mean_return, each.mean_return_ci95, result.exact)
        rows.append((short(each.agent), str(each.seats), even, _share(each.win_rate, each.ci95, result.exact), earned))
    return Grid("all copies of an agent", ("agent", "seats", "even share", "share of wins", "mean return of a seat"), rows)


def _parts_grid(result: Result) -> Grid:
    """The share that each agent wins in each part of the matches."""
    names = [short(name) for name in result.agents]
    shown = [each for each in result.meetings if result.one_table or each.row < each.column]
    rows = []
    for each in shown:
        name = names[each.column] if result.one_table else f"{names[each.row]} v {names[each.column]}"
        rows.append((name, *(_share(part.win_rate, part.ci95) for part in each.parts)))
    headings = ("agents", *(f"games {part.first}-{part.last}" for part in shown[0].parts))
    return Grid("% won by part of the match ± 95 % interval", headings, rows)


def save_plot(folder: Path, name: str, result: Result) -> None:
    """Save a plot of the tournament in the folder: a cross table of pairs, else bars."""
    names = [text.replace("  ", ": ") for text in _named(result)]
    if result.one_table or result.cooperative:
        bars = len(result.teams) if result.cooperative else len(names)
        caption = f"{_title(result, 'what teams earn' if result.cooperative else 'share of wins at one table')}."
        with saved_plot(folder, name, caption, figsize=(8, 1.8 + 0.45 * bars)) as (_, axes):
            _plot_bars(axes, result, names)
        return
    size = 2 + 1.1 * len(result.agents)
    caption = f"{_title(result, '% of games that the agent of the row wins')}."
    with saved_plot(folder, name, caption, figsize=(size + 0.1 * max(map(len, names)), size)) as (_, axes):
        _plot_win_rates(axes, result, names)


def _plot_bars(axes: Any, result: Result, names: list[str]) -> None:
    """Draw what teams earn, or each agent's share of wins at one table, as bars."""
    if result.cooperative:
        names = [joined([result.agents[member] for member in team.members]) for team in result.teams]
        values, halves = [team.mean_return for team in result.teams], [team.ci95 for team in result.teams]
        mark = None if result.optimal is None else ("optimal play", next(iter(result.optimal.values())))
        what = next(iter(result.optimal)) if result.optimal else "mean return"
    else:
        values, halves = (
            [100 * x for x in each] for each in zip(*((m.win_rate, m.ci95) for m in result.meetings), strict=True)
        )
        mark, what = ("an even share", 100 / result.seats), "% of games won"
    bars(axes, names, values, halves)
    for place, value, half in zip(axes.get_yticks(), values, halves, strict=True):
        axes.annotate(f"{value:.4g} ± {half:.2g}", (0, place), (4, 0), textcoords="offset points", va="center", color="white")
    if mark is not None:
        axes.axvline(mark[1], color=ORANGE, linestyle="--", label=f"{mark[0]}: {mark[1]:.4g}")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    axes.set_xlim(0, 1.05 * max(*values, mark[1] if mark else 0.0, 1e-9) if min(values) >= 0 else None)
    axes.set_xlabel(what)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{result.game}: {result.games:,} games, seed {result.seed}", pad=28)


def _plot_win_rates(axes: Any, result: Result, names: list[str]) -> None:
    """Draw the cross table as coloured cells."""
    texts = [[""] * len(names) for _ in names]
    for each in result.meetings:
        texts[each.row][each.column] = f"{100 * each.win_rate:.1f}" + ("" if result.exact else f"\n±{100 * each.ci95:.1f}")
    columns = [f"v {letter}" for letter in letters(len(names))]
    heat_map(axes, np.array(result.win_rate, float), texts, names, columns, "RdBu", 1)  # None becomes NaN
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    how = "exactly" if result.exact else f"{result.games:,} games each, seed {result.seed}"
    axes.set_title(f"{result.game}: % won by the row's agent\n({how})", fontsize=11)
