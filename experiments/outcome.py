"""Final results of a training run: exact measures, a cross table, shares of the best responses' edges, plots."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dice_envs import Agent, Measures, Variant, measure
from dice_envs.agent import promises_of
from dice_envs.agents.ppo import Likeliest, NetworkPolicy
from dice_envs.core.dice import derived_seeds
from dice_envs.core.options import option_texts
from dice_envs.evaluation import scale_of
from dice_envs.exact.contract import BEST_RESPONSE_WINS
from dice_envs.exact.limits import TooLong, up_to
from dice_envs.experiments.arena import Result, add_optimal, known_values, num_meetings, tournament
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.measures import measures_grid, measuring
from dice_envs.experiments.ui.names import short
from dice_envs.experiments.ui.page import Section
from dice_envs.experiments.ui.plots import Plot, logarithmic, saved_plot
from dice_envs.experiments.ui.progress import progress
from dice_envs.experiments.ui.tournaments import tournament_grids
from dice_envs.learn import Trained
from dice_envs.learn.presets import presets_of

__all__ = [
    "add_measures",
    "add_pool",
    "add_table",
    "gap_label",
    "plot_curve",
    "plot_gaps",
    "run_sections",
    "show_verdict",
    "verdict_grid",
]

MOST_POSITIONS = 20_000_000  # at which a stochastic policy is evaluated after training


def add_measures(variant: Variant, policy: NetworkPolicy, spec: str, seed: int, result: dict[str, Any]) -> None:
    """Add the distance from optimal play of the policy, sampled and greedy, or the reason why it is not known.

    Without a floor the policy gives every action some probability. If that makes too many positions, print the command
    that measures it instead, in which `spec` names the policy.
    """
    result["measures"] = []
    for name, agent, its_spec in (("ppo", policy, spec), ("ppo greedy", Likeliest(policy), f"{spec},greedy=true")):
        try:
            with measuring(name) as done:
                told = up_to(MOST_POSITIONS, done) if agent is policy and not policy.floor else done
                found = measure(variant, agent, seed=seed, done=told)
        except TooLong as problem:
            options = "".join(f" -o {shlex.quote(part)}" for part in option_texts(variant.changed_options()))
            command = f"measure {variant.game.name} {its_spec}{options}"
            console.print(f"{name} is not measured here: there are {problem} to evaluate. This command does it: {command}")
            continue
        except ValueError as problem:
            result["not_measured"] = str(problem)
            console.print(f"not measured against optimal play: {problem}")
            return
        result["measures"].append(dataclasses.replace(found, agent=name))


def add_table(trained: Trained, games: int, result: dict[str, Any]) -> Result:
    """Add and return the final cross table, for games of two or more seats; with two, also the shares of edges.

    With two seats it is of pairs, without luck where the values of choices against an opponent are known and found fast.
    With more it is of one table with the policy and its opponents in turn, the last ones first.
    """
    policy, names, agents = trained.policy, list(trained.preset.opponents), dict(trained.pool)
    variant, seats = policy.variant, policy.variant.facts.num_seats
    values: list[Any] = [None, None]  # none against the policy's own two rows
    notes: list[str] = []
    players: list[Agent] = [policy]
    if seats == 2:
        row = ["ppo", "ppo greedy", *names]
        players.append(Likeliest(policy))
        for name in names if games > 1 else ():
            (agent,) = agents[name]
            with measuring(f"values against {name}") as done:
                # Agents with `memoryless` need far fewer evaluations than positions are counted.
                told = done if promises_of(agent).memoryless else up_to(MOST_POSITIONS, done)
                found, reasons = known_values(variant, [name], [agent], told)
            values += found
            notes += reasons
    else:
        names = list(itertools.islice(itertools.cycle(reversed(names)), seats - 1))
        row = ["ppo", *names]
    players += [agents[name][0] for name in names]
    known = values if any(each is not None for each in values) else None
    with progress("cross table", num_meetings(variant, len(row)) * games) as done:
        table = tournament(variant, row, games, trained.seed, done, players, values=known)
    table.notes = notes
    add_optimal(table, variant)
    result["table"] = table.as_dict()
    if seats == 2:
        wins = [each and scale_of(variant, each).of((each.start(0) + each.start(1)) / 2) for each in values]
        result["edges"] = [edge for column, best in enumerate(wins) if best for edge in _edges(table, column, best)]
    return table


def _edges(table: Result, column: int, best: float) -> list[dict[str, Any]]:
    """Return the policy's share of the edge over one half that a best response, which wins `best`, has."""
    edges = []
    for row in (0, 1) if best > 0.5 else ():
        met = table.meeting(row, column)
        if met is None:
            continue
        agent, opponent = table.agents[row], table.agents[column]
        share, half = (met.win_rate - 0.5) / (best - 0.5), met.ci95 / (best - 0.5)
        edge = {"agent": agent, "opponent": opponent, "wins": met.win_rate, "best_response_wins": best}
        edges.append({**edge, "share": share, "ci95": half})
    return edges


def add_pool(trained: Trained, games: int, result: dict[str, Any]) -> None:
    """Add the policy's share of wins against each opponent of its training pool, at a table of three seats or more.

    The opponent has all other seats. Where all are paid the same, the mean return is the team's.
    """
    variant, pool = trained.policy.variant, trained.pool
    seats, result["pool"] = variant.facts.num_seats, []
    seeds = derived_seeds(trained.seed, "pool", len(pool))
    with progress("its pool", len(pool) * games) as done:
        for (name, players), own_seed in zip(pool, seeds, strict=True):
            others: list[Agent] = list(itertools.islice(itertools.cycle(players), seats - 1))
            names = ["ppo", *[name] * len(others)]
            own = tournament(variant, names, games, own_seed, done, [trained.policy, *others]).meetings[0]
            row = {key: vars(own)[key] for key in ("win_rate", "ci95", "mean_return", "mean_return_ci95")}
            result["pool"].append({"opponent": name, "seats": len(others), "games": games, "even": 1 / seats, **row})


def show_verdict(trained: Trained, result: dict[str, Any], games: int) -> None:
    """Print what the training was for: what was won from its opponents and could be, or how far play is from optimal."""
    variant, preset, measures = trained.policy.variant, trained.preset, result["measures"]
    against = bool(result.get("edges")) and not preset.self_play
    if against:
        verdict_grid(result["edges"], games).show()
    elif result.get("pool"):
        _pool_grid(result["pool"], games, trained.seed, variant.facts.cooperative).show()
    wins = [each.value for each in measures[0].measures if each.name == BEST_RESPONSE_WINS] if measures else []
    if against and wins:
        others = " or ".join(name for name, each in presets_of(variant.game.name).items() if each.self_play)
        console.print(
            f"A best response wins {wins[0]:.1%} of the games against this policy: it has learned to beat these opponents, "
            f"not to be hard to beat. For that, train with --preset {others}."
        )
    elif measures:
        _distances_grid(measures).show()


def verdict_grid(edges: Sequence[dict[str, Any]], games: int) -> Grid:
    """What the policy won from each opponent, what could be won, and the share of that: of the edge over one half."""
    rows = []
    for edge in (edge for edge in edges if edge["agent"] == "ppo"):
        share = f"{100 * edge['share']:.1f} ± {100 * edge['ci95']:.1f}"
        rows.append((edge["opponent"], *(f"{100 * edge[key]:.1f}" for key in ("wins", "best_response_wins")), share))
    headings = ("against", "it wins", "a best\nresponse", "share of the\nedge over half")
    return Grid(f"Games won, % of {games:,} against each", headings, rows, whole=range(4))


def _distances_grid(measures: Sequence[Measures]) -> Grid:
    """The measures of the policy and of its likeliest actions beside optimal play."""
    rows = []
    for each in zip(*(found.measures for found in measures), strict=True):
        values = [f"{one.value:.4f}" + (f" ± {one.error:.4f}" if one.error else "") for one in each]
        rows.append((each[0].name, *values, f"{each[0].optimum:.4f}"))
    headings = ("policy", "its likeliest actions")[: len(measures)]
    return Grid("How far it is from optimal play", ("", *headings, "optimal"), rows)


def plot_curve(folder: Path, trained: Trained) -> None:
    """Write learning_curve.png: win rates, or returns, against the learner's steps."""
    alone = trained.policy.variant.facts.num_seats == 1
    what = "mean return in training" if alone else "share of training games won"
    _plot(folder, "learning_curve", trained, trained.curve, what, what, "PPO while it learns")


def plot_gaps(folder: Path, trained: Trained, label: str) -> None:
    """Write gap.png: the distance from optimal play against the learner's steps."""
    _plot(folder, "gap", trained, trained.gaps, label, "gap from optimal play", "PPO")


def _plot(folder: Path, name: str, trained: Trained, points: list[dict[str, Any]], what: str, axis: str, who: str) -> None:
    """Write a plot of a run's points against the learner's steps, a line for each of their names; nothing without points."""
    variant, gaps = trained.policy.variant, points is trained.gaps
    values = [value for point in points for key, value in point.items() if key != "steps"]
    if not values:
        return
    with saved_plot(folder, name, f"{variant}: {what} against the learner's steps, seed {trained.seed}.") as (_, axes):
        for key in sorted({key for point in points for key in point} - {"steps"}):
            line = [(point["steps"] / 1e6, point[key]) for point in points if key in point]
            axes.plot(*zip(*line), label=f"{key} policy" if gaps else key, marker="." if gaps else "")
        if gaps and max(values) > 5 * min(values):  # else a logarithmic axis has hardly a label
            logarithmic(axes, "y")
        axes.set_xlim(left=0)
        axes.set_xlabel("learner steps, millions")
        axes.set_ylabel(axis)
        axes.set_title(f"{variant.game.title}: {who}, seed {trained.seed}" + f"\n{what}" * gaps, fontsize=12)
        axes.grid(alpha=0.3, which="both")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def gap_label(found: Sequence[Measures]) -> str:
    """Return the label of an axis of gaps: the headline measure, with its 95 % interval where it was sampled."""
    if not found:
        return "gap from optimal play"
    headline = found[0].measures[0]
    return f"gap from optimal play: {headline.name}, " + (f"± {headline.error:.2g}" if headline.error else "exact")


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
    return Grid(f"against its pool, {games:,} games each, seed {seed}", headings, rows, whole=(0,))


def _edges_grid(edges: Sequence[dict[str, Any]]) -> Grid:
    rows = []
    for row in edges:
        wins = [f"{100 * row[key]:.2f}" for key in ("wins", "best_response_wins")]
        rows.append((row["agent"], row["opponent"], *wins, *(f"{100 * row[key]:.1f}" for key in ("share", "ci95"))))
    headings = ("agent", "opponent", "wins, %", "a best response wins, %", "share of its edge, %", "± 95 %")
    return Grid("share of a best response's edge over one half", headings, rows, (0, 1))
