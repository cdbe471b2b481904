"""Final results of a training run: exact measures, a cross table, shares of the best responses' edges, plots."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dice_envs import Agent, Measures, Variant, measure
from dice_envs.agents import make
from dice_envs.core.dice import derived_seeds
from dice_envs.core.options import option_texts
from dice_envs.exact import BEST_RESPONSE_WINS, ResponseValues
from dice_envs.exact.limits import TooLong, up_to
from dice_envs.experiments.arena import Result, add_optimal, known_values, num_meetings, tournament
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.measures import measures_grid, measuring
from dice_envs.experiments.ui.measures import show as show_measures
from dice_envs.experiments.ui.names import short
from dice_envs.experiments.ui.page import Section
from dice_envs.experiments.ui.plots import Plot, logarithmic, saved_plot
from dice_envs.experiments.ui.progress import progress
from dice_envs.experiments.ui.tournaments import show, tournament_grids

__all__ = [
    "add_edges",
    "add_measures",
    "add_pool",
    "add_table",
    "gap_label",
    "plot_curve",
    "plot_gaps",
    "run_sections",
]

MOST_POSITIONS = 20_000_000  # at which a stochastic policy is evaluated after training


def add_measures(variant: Variant, spec: str, has_floor: bool, seed: int, result: dict[str, Any]) -> None:
    """Add the distance from optimal play of the policy, sampled and greedy, or the reason why it is not known.

    Without a floor the policy gives every action some probability. If that makes too many positions, print the command
    that measures it instead.
    """
    result["measures"] = []
    for name, each in (("ppo", spec), ("ppo greedy", spec + ",greedy=true")):
        try:
            with measuring(name) as done:
                told = done if has_floor or each != spec else up_to(MOST_POSITIONS, done)
                found = measure(variant, make(each), seed=seed, done=told)
        except TooLong as problem:
            options = "".join(f" -o {shlex.quote(part)}" for part in option_texts(variant.changed_options()))
            command = f"measure {variant.game.name} {spec}{options}"
            console.print(f"{name} is not measured here: there are {problem} to evaluate. This command does it: {command}")
            continue
        except ValueError as problem:
            result["not_measured"] = str(problem)
            console.print(f"not measured against optimal play: {problem}")
            return
        found = dataclasses.replace(found, agent=name)
        show_measures(found)
        result["measures"].append(found)


def add_table(variant: Variant, spec: str, opponents: Sequence[str], games: int, seed: int, result: dict[str, Any]) -> Result:
    """Add and return the final cross table, for games of two or more seats.

    With two seats it is of pairs, without luck where the values of choices against an opponent are known and found as fast as
    its best response. With more it is of one table with the policy and its opponents in turn, the last ones first.
    """
    seats = variant.facts.num_seats
    others = itertools.islice(itertools.cycle(reversed(opponents)), seats - 1)
    specs = [spec, spec + ",greedy=true", *opponents] if seats == 2 else [spec, *others]
    values, notes = _values_against(variant, opponents) if seats == 2 and games > 1 else (None, [])
    with progress("cross table", num_meetings(variant, len(specs)) * games) as done:
        table = tournament(variant, specs, games, seed, done, values=values)
    table.notes = notes
    table.agents[: 2 if seats == 2 else 1] = ["ppo", "ppo greedy"][: 2 if seats == 2 else 1]
    add_optimal(table, variant)
    show(table)
    result["table"] = table.as_dict()
    return table


def _values_against(variant: Variant, opponents: Sequence[str]) -> tuple[list[ResponseValues | None] | None, list[str]]:
    """Return the values of choices against each agent of the table, and why some are not known; None where none is."""
    found: list[ResponseValues | None] = [None, None]  # the policy's own two rows
    notes: list[str] = []
    for opponent in opponents:
        agent = make(opponent)
        with measuring(f"values against {opponent}") as done:
            values, reasons = known_values(variant, [opponent], [agent], _limited(agent, done))
        found += values
        notes += reasons
    return (found, notes) if any(each is not None for each in found) else (None, [])


def _limited(agent: Agent, done: Callable[[float, float], Any]) -> Callable[[float, float], Any]:
    """Limit what is done after training: agents with `memoryless` need far fewer evaluations than positions are counted."""
    return done if getattr(agent, "memoryless", False) else up_to(MOST_POSITIONS, done)


def add_pool(
    variant: Variant, spec: str, pool: Sequence[tuple[str, Sequence[Agent]]], games: int, seed: int, result: dict[str, Any]
) -> None:
    """Add the policy's share of wins against each opponent of its training pool, at a table of three seats or more.

    The opponent has all other seats. Where all are paid the same, the mean return is the team's.
    """
    seats, result["pool"] = variant.facts.num_seats, []
    seeds = derived_seeds(seed, "pool", len(pool))
    with progress("its pool", len(pool) * games) as done:
        for (name, players), own_seed in zip(pool, seeds, strict=True):
            others = list(itertools.islice(itertools.cycle(players), seats - 1))
            met = tournament(variant, ["ppo", *[name] * len(others)], games, own_seed, done, [make(spec), *others])
            own = met.meetings[0]
            row = {key: getattr(own, key) for key in ("win_rate", "ci95", "mean_return", "mean_return_ci95")}
            result["pool"].append({"opponent": name, "seats": len(others), "games": games, "even": 1 / seats, **row})
    _pool_grid(result["pool"], games, seed, variant.facts.cooperative).show()


def add_edges(variant: Variant, table: Result, seed: int, result: dict[str, Any]) -> None:
    """Add the policy's share of the best response's edge over one half against each opponent, where that is known."""
    result["edges"] = []
    for column, opponent in enumerate(table.agents[2:], start=2):
        agent = make(opponent)
        try:
            with measuring(f"best response to {opponent}") as done:
                found = measure(variant, agent, seed=seed, done=_limited(agent, done))
        except (TooLong, ValueError):
            continue
        best = next((each.value for each in found.measures if each.name == BEST_RESPONSE_WINS), None)
        if best is None or best <= 0.5:
            continue
        for row in (0, 1):
            met = table.meeting(row, column)
            if met is None:
                continue
            rate, half = met.win_rate, met.ci95
            edge = {"agent": table.agents[row], "opponent": opponent, "wins": rate, "best_response_wins": best}
            edge |= {"share": (rate - 0.5) / (best - 0.5), "ci95": half / (best - 0.5)}
            result["edges"].append(edge)
            console.print(
                f"{edge['agent']} wins {rate:.2%} against {opponent}, a best response {best:.2%}: "
                f"{edge['share']:.1%} ± {edge['ci95']:.1%} of its edge"
            )


def plot_curve(folder: Path, variant: Variant, seed: int, curve: Sequence[dict[str, Any]], has_opponents: bool) -> None:
    """Write learning_curve.png: win rates, or returns, against the learner's steps."""
    if not curve:
        return
    what = "share of training games won" if has_opponents else "mean return in training"
    with saved_plot(folder, "learning_curve", f"{variant}: {what} against the learner's steps, seed {seed}.") as (_, axes):
        names = sorted({key for point in curve for key in point if key != "steps"})
        for name in names:
            points = [(point["steps"] / 1e6, point[name]) for point in curve if name in point]
            axes.plot(*zip(*points), label=name)
        axes.set_xlabel("learner steps, millions")
        axes.set_ylabel(what)
        axes.set_title(f"{variant.game.title}: PPO while it learns, seed {seed}")
        axes.grid(alpha=0.3)
        axes.set_xlim(left=0)
        if len(names) > 1:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def gap_label(found: Sequence[Measures]) -> str:
    """Return the label of an axis of gaps: the headline measure, with its 95 % interval where it was sampled."""
    if not found:
        return "gap from optimal play"
    headline = found[0].measures[0]
    return f"gap from optimal play: {headline.name}, " + (f"± {headline.error:.2g}" if headline.error else "exact")


def plot_gaps(folder: Path, variant: Variant, seed: int, gaps: Sequence[dict[str, Any]], label: str) -> None:
    """Write gap.png: the distance from optimal play against the learner's steps."""
    if not gaps:
        return
    with saved_plot(folder, "gap", f"{variant}: {label} against the learner's steps, seed {seed}.") as (_, axes):
        for policy in ("last", "averaged"):
            points = [(point["steps"] / 1e6, point[policy]) for point in gaps if policy in point]
            if points:
                axes.plot(*zip(*points), label=f"{policy} policy", marker=".")
        values = [value for point in gaps for name, value in point.items() if name in ("last", "averaged")]
        if max(values) > 5 * min(values):  # else a logarithmic axis has hardly a label
            logarithmic(axes, "y")
        axes.set_xlim(left=0)
        axes.set_xlabel("learner steps, millions")
        axes.set_ylabel("gap from optimal play")
        axes.set_title(f"{variant.game.title}: PPO, seed {seed}\n{label}", fontsize=12)
        axes.grid(alpha=0.3, which="both")
        axes.legend()


def run_sections(result: dict[str, Any], table: Result | None, plots: Sequence[Plot]) -> list[Section]:
    """Return the results of a run as sections of a page."""
    speed = result["steps_per_second"]
    trained = [f"{result['steps']:,} learner steps"]
    trained += [] if result["minutes"] is None else [f"{result['minutes']:.1f} minutes"]
    trained += [] if speed is None else [f"{speed:,.0f} steps a second"]
    why = [f"Not measured: {result['not_measured']}"] if "not_measured" in result else []
    games = [] if table is None else tournament_grids(table)
    if table is not None and result.get("pool"):
        games.append(_pool_grid(result["pool"], table.games, table.seed, table.cooperative))
    games += [_edges_grid(result["edges"])] if result.get("edges") else []
    return [
        Section("What was trained", ["; ".join(trained) + "."], plots=plots),
        Section("How far from optimal play", why, [measures_grid(each) for each in result["measures"]]),
        *([Section("Against others", grids=games)] if games else []),
    ]


def _pool_grid(pool: Sequence[dict[str, Any]], games: int, seed: int, cooperative: bool) -> Grid:
    wins = [] if cooperative else ["even share", "share of wins"]
    headings = ("all other seats", *wins, "team's mean return" if cooperative else "mean return")
    rows = []
    for row in pool:
        shares = [] if cooperative else [f"{100 * row['even']:.2f}", f"{100 * row['win_rate']:.2f} ± {100 * row['ci95']:.2f}"]
        earned = f"{row['mean_return']:.4f} ± {row['mean_return_ci95']:.4f}"
        rows.append((f"{row['seats']} × {short(row['opponent'])}", *shares, earned))
    return Grid(f"against its pool, {games:,} games each, seed {seed}", headings, rows)


def _edges_grid(edges: Sequence[dict[str, Any]]) -> Grid:
    rows = []
    for row in edges:
        wins = [f"{100 * row[key]:.2f}" for key in ("wins", "best_response_wins")]
        rows.append((row["agent"], row["opponent"], *wins, *(f"{100 * row[key]:.1f}" for key in ("share", "ci95"))))
    headings = ("agent", "opponent", "wins, %", "a best response wins, %", "share of its edge, %", "± 95 %")
    return Grid("share of a best response's edge over one half", headings, rows, (0, 1))
