"""Tables and plots of tournaments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs.core.options import options_text
from dice_envs.experiments.arena.results import Edge, Result
from dice_envs.experiments.ui.grids import Grid, joined, legend, letters, plus_minus, short, show_all
from dice_envs.experiments.ui.pages import ORANGE, bars, heat_map, saved_plot


def show(result: Result) -> None:
    """Print the tables of a tournament, then ties and the full names of agents whose names are cut there."""
    show_all(tournament_grids(result))


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


def edge_grid(edges: Sequence[Edge], title: str, digits: int = 1) -> Grid:
    """Return what agents won, what a best response wins, and the share of its edge over half that they took."""
    rows = []
    first, *others = dict.fromkeys(short(edge.agent) for edge in edges)
    for edge in edges:
        best = plus_minus(edge.best_response_wins, edge.best_response_ci95 or None, digits, percent=True)
        share = "none" if edge.share < -edge.ci95 else plus_minus(edge.share, edge.ci95, 1, percent=True)
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


def _legend(result: Result) -> list[str]:
    return [f"  {line}" for line in legend(result.agents)]


def _win_grid(result: Result) -> Grid:
    """Wins of each agent against each other or at the one table, and where wins do not say all, mean returns."""
    won = "% of games in which it earns more than the other, each alone," if result.seats == 1 else "% won"
    n, one_table = len(result.agents), result.one_table
    rated = result.elo if result.seats > 1 else None
    wins = result.seats == 1 and all(team.win is not None for team in result.teams)
    # Columns have the rows' letters: names side by side would be cut until none could be told from another.
    headings = ["agent", *(("Elo",) if rated else ()), *(["share of wins"] if one_table else [f"v {x}" for x in letters(n)])]
    headings += [*(("mean return",) if result.seats != 2 else ()), *(("P(win), %",) if wins else ())]
    rows = []
    for i, name in enumerate(_named(result)):
        met = [result.meeting(0, i)] if one_table else [result.meeting(i, j) for j in range(n)]
        cells = [name, *((f"{rated[i]:.0f}",) if rated else ())]
        cells += ["" if each is None else _share(each.win_rate, each.ci95, result.exact) for each in met]
        if result.seats != 2:
            own = next(each for each in met if each is not None)
            cells.append(_return(own.mean_return, own.mean_return_ci95, result.exact))
        if wins:
            cells.append(_share(result.teams[i].win, result.teams[i].win_ci95))
        rows.append(cells)
    if result.seats == 1 and (best := _optimal_cells(result)):
        rows.append(["optimal play", *[""] * n, *best[: 1 + wins]])
    return Grid(_title(result, won), headings, rows, notes=[*_ties(result), *result.notes, *_legend(result)], rules=[n - 1])


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
    notes = [*several, *_legend(result)]
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
