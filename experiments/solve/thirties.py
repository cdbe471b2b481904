"""`solve thirties`: the best strategy for a goal, or any other, in exact figures."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from dice_envs import Variant, configure
from dice_envs.agent.specs import make_agent
from dice_envs.agents.thirties import function_in, named
from dice_envs.core.own import load_own, split_own
from dice_envs.experiments import ui
from dice_envs.experiments.ui.grids import Grid
from dice_envs.games.thirties import GOALS
from dice_envs.games.thirties.exact import Goal, Rules, Strategy, expected_given, solve, strategy_of
from dice_envs.games.thirties.exact.figures import analyse


def main(
    goal: Annotated[
        str,
        typer.Option(
            help="maximize, minimize_loss, thirty_or_over, optimal (points given less points got), or FILE.py:NAME or "
            "PACKAGE.MODULE:NAME, a function that gives the worth of a score."
        ),
    ] = "maximize",
    option: ui.OptionOption = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Measure this instead of the best: sixes, fives_and_sixes, beginner, heuristic, another goal, "
            "FILE.py:NAME or PACKAGE.MODULE:NAME (a function or an agent), or an agent that does not play at random, say "
            "ppo:FILE,greedy=true."
        ),
    ] = None,
    json: ui.JsonOption = None,
) -> None:
    """The game of 30s: the best strategy for a goal, exactly.

    Prints its value, the figures of the paper's tables and the score's whole distribution in whole numbers of cases.

    JSON: {"value", "value_exact", "distribution", "scores", "cases", "figures", ...}, one whole number of
    `distribution` for each of `scores`, out of `cases`.

    Example: solve thirties --goal optimal -o num_dice=5 -o target=25
    """
    parsed = ui.game_options(option)
    for name, reason in (("goal", "use --goal"), ("num_players", "the turn of one player is solved")):
        if name in parsed:
            raise ValueError(f"option {name} cannot be set with -o: {reason}")
    valued: Goal = (None if goal in GOALS else function_in(goal, "goal")) or goal
    of_game = {"goal": goal} if valued == goal else {}  # a goal that the game does not have changes nothing in it
    variant = configure("thirties", **{**parsed, "num_players": 1, **of_game})
    rules = Rules.of(variant.options)
    best_of_all, _ = solve(rules, valued)
    chosen = find(variant, strategy) if strategy else best_of_all
    analysis = analyse(rules, chosen)
    value = analysis.value(valued)
    kind = "a simple strategy" if chosen.simple else "a full strategy"
    ui.console.print(f"{chosen.name}, {kind}; {rules.num_dice} dice, {rules.num_faces} faces, target {rules.target}")
    of_strategy = {  # the paper's columns; None is infinite
        "expected score": analysis.score,
        "P(target or more)": analysis.reached,
        "expected points below": analysis.below,
        "expected points above": analysis.above,
        "expected points for the next player": analysis.given,
    }
    rows = [(label, "infinite" if figure is None else f"{float(figure):.6f}") for label, figure in of_strategy.items()]
    Grid("", (), rows, words=(0, 1)).show()
    ui.console.print(f"{'value' if strategy else 'best value'} for {goal}: {float(value):.6f}")
    if strategy:
        most = analyse(rules, best_of_all).value(valued)
        ui.console.print(f"best value: {float(most):.6f}; short of it by {float(most - value):.6f}")
    found, given = analysis.distribution, expected_given(rules)
    exponent = round(math.log(found.total, rules.num_faces))  # of all cases; the line is as the paper's program writes it
    cases = " ".join(map(str, found.weights))
    ui.console.whole_line(f"dist: [{exponent}] from {found.first}: {cases} {{{found.total}}}")
    result = {
        "game": "thirties",
        "options": variant.changed_options(),
        "goal": goal,
        "strategy": chosen.name,
        "value": float(value),
        "value_exact": str(value),
        "distribution": list(found.weights),
        "scores": list(range(found.first, found.first + len(found.weights))),
        "cases": found.total,
        "figures": {label: None if figure is None else float(figure) for label, figure in of_strategy.items()},
        "expected_given": None if given is None else [float(points) for points in given],
    }
    ui.write_json(json, result)


def find(variant: Variant, name: str) -> Strategy:
    """Return the strategy of that name, or the one that the agent of that spec plays. ValueError if there is none."""
    own = split_own(name)
    found = None if own is None else load_own(*own[:2], "strategy")
    if isinstance(found, type) or (own is None and ":" in name):
        return strategy_of(make_agent(name), variant.options, name)
    return named(Rules.of(variant.options), name)
