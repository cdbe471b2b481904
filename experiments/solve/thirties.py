"""`solve thirties`: the best strategy for a goal, or any other, in exact figures."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from dice_envs import Variant, configure
from dice_envs.agents import make
from dice_envs.agents.thirties import function_in, named
from dice_envs.exact.thirties import Dice, Goal, Rules, Strategy, asides, expected_given, solve, strategy_of, throws
from dice_envs.exact.thirties.figures import Analysis, Distribution, Player, analyse, differences
from dice_envs.experiments.ui.console import console
from dice_envs.experiments.ui.files import check_writable, write_json
from dice_envs.experiments.ui.grids import Grid
from dice_envs.experiments.ui.options import JsonOption, OptionOption, game_options
from dice_envs.games.thirties import GOALS


def main(
    goal: Annotated[
        str,
        typer.Option(
            help="maximize, minimize_loss, thirty_or_over, optimal (points given less points got), or FILE.py:FUNCTION, the "
            "worth of a score."
        ),
    ] = "maximize",
    option: OptionOption = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="Measure this instead of the best: sixes, fives_and_sixes, beginner, heuristic, another goal, "
            "FILE.py:FUNCTION, MODULE.FUNCTION, or an agent that does not play at random, say ppo:FILE,greedy=true."
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print the advice for every throw, or every throw | dice aside.")
    ] = False,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(help="List every position in which two strategies (as for --strategy) differ, and their choices."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """The game of 30s: the best strategy for a goal, exactly.

    Prints its value, the figures of the paper's tables and the score's whole distribution in whole numbers of cases.

    JSON: {"value", "value_exact", "distribution", "scores", "cases", "figures", ...}, one whole number of
    `distribution` for each of `scores`, out of `cases`.

    Example: solve thirties --goal optimal -o num_dice=5 -o target=25
    """
    if strategy is not None and compare is not None:
        raise ValueError("give only one of --strategy and --compare")
    parsed = game_options(option)
    for name, reason in (("goal", "use --goal"), ("num_players", "the turn of one player is solved")):
        if name in parsed:
            raise ValueError(f"option {name} cannot be set with -o: {reason}")
    valued: Goal = (None if goal in GOALS else function_in(goal, "goal")) or goal
    of_game = {"goal": goal} if valued == goal else {}  # a goal that the game does not have changes nothing in it
    variant = configure("thirties", **{**parsed, "num_players": 1, **of_game})
    rules = Rules.of(variant.options)
    check_writable(json)
    if compare is not None:
        print_differences(rules, find(variant, compare[0]), find(variant, compare[1]), json)
        return
    best_of_all, _ = solve(rules, valued)
    chosen = find(variant, strategy) if strategy else best_of_all
    player = Player(rules, chosen)
    analysis = analyse(rules, player)
    value = analysis.value(valued)
    if verbose:
        print_advice(player)
    print_figures(rules, chosen, analysis)
    console.print(f"{'value' if strategy else 'best value'} for {goal}: {float(value):.6f}")
    if strategy:
        most = analyse(rules, best_of_all).value(valued)
        console.print(f"best value: {float(most):.6f}; short of it by {float(most - value):.6f}")
    console.whole_line(cases_line(analysis.distribution, rules.num_faces))
    result = {
        "game": "thirties",
        "options": variant.changed_options(),
        "goal": goal,
        "strategy": chosen.name,
        "value": float(value),
        "value_exact": str(value),
        **exact_figures(rules, analysis),
    }
    if verbose:
        result["advice"] = [
            {"throw": throw, "aside": aside, "again": again, "score": float(score)}
            for throw, aside, again, score in advice(player)
        ]
    write_json(json, result)


def find(variant: Variant, name: str) -> Strategy:
    """Return the strategy of that name, or the one that the agent of that spec plays. ValueError if there is none."""
    if ":" in name and ".py:" not in name:
        return strategy_of(make(name), variant.options, name)
    return named(Rules.of(variant.options), name)


def figures(analysis: Analysis) -> dict[str, Fraction | None]:
    """Return the paper's columns; None is infinite."""
    return {
        "expected score": analysis.score,
        "P(target or more)": analysis.reached,
        "expected points below": analysis.below,
        "expected points above": analysis.above,
        "expected points for the next player": analysis.given,
    }


def figures_as_floats(analysis: Analysis) -> dict[str, float | None]:
    """Return the paper's columns as --json writes them; None is infinite."""
    return {label: None if figure is None else float(figure) for label, figure in figures(analysis).items()}


def exact_figures(rules: Rules, analysis: Analysis) -> dict[str, Any]:
    """Return a strategy's distribution and figures, as --json writes them."""
    found, given = analysis.distribution, expected_given(rules)
    return {
        "distribution": list(found.weights),
        "scores": [found.first + i for i in range(len(found.weights))],
        "cases": found.total,
        "figures": figures_as_floats(analysis),
        "expected_given": None if given is None else [float(points) for points in given],
    }


def print_figures(rules: Rules, strategy: Strategy, analysis: Analysis) -> None:
    """Print the strategy and the paper's columns."""
    kind = "a simple strategy" if strategy.simple else "a full strategy"
    console.print(f"{strategy.name}, {kind}; {rules.num_dice} dice, {rules.num_faces} faces, target {rules.target}")
    rows = [(label, "infinite" if figure is None else f"{float(figure):.6f}") for label, figure in figures(analysis).items()]
    Grid("", (), rows, words=(0, 1)).show()


def cases_line(distribution: Distribution, faces: int) -> str:
    """Format the distribution as the paper's program does: [exponent of all cases] first score: cases … {all cases}."""
    exponent = round(math.log(distribution.total, faces))
    cases = " ".join(map(str, distribution.weights))
    return f"dist: [{exponent}] from {distribution.first}: {cases} {{{distribution.total}}}"


def position(throw: Dice, aside: Dice | None) -> str:
    """Format a position as the paper does, `5 6 6 6 | 5 5`; without the bar if `aside` is None."""
    shown = " ".join(map(str, throw))
    return shown if aside is None else f"{shown} | {' '.join(map(str, aside))}".rstrip()


def advice(player: Player) -> Any:
    """Yield (throw, aside, dice to throw again, expected score) for every position.

    For simple strategies aside is None, and scores are those of the throw alone.
    """
    rules = player.rules
    if player.strategy.simple:
        for dice in range(1, rules.num_dice + 1):
            for throw, _ in throws(dice, rules.num_faces):
                yield throw, None, *player.advice(throw)
        return
    for aside in asides(rules):
        for throw, _ in throws(rules.num_dice - len(aside), rules.num_faces):
            yield throw, aside, *player.advice(throw, aside)


def advice_line(player: Player, throw: Dice, aside: Dice | None) -> str:
    """Format advice: `3 5 5 5 6 6 es: 30.843641 cap: 4` gives the expected score, and the dice to throw again."""
    again, score = player.advice(throw, aside or ())
    return f"{position(throw, aside)} es: {float(score):.6f} cap: {again}"


def print_advice(player: Player) -> None:
    """Print the advice for every position, and a summary after all throws with the same dice aside."""
    last: Any = None
    for throw, aside, _, _ in advice(player):
        group = len(throw) if aside is None else aside
        if last is not None and group != last:
            print_summary(player, last)
        last = group
        console.whole_line(advice_line(player, throw, aside))
    print_summary(player, last)


def print_summary(player: Player, group: int | Dice) -> None:
    """Print the expected score with a number of dice (simple strategies), or after these dice aside."""
    if isinstance(group, int):
        console.whole_line(f"es[{group} dice]: {float(player.expected_with(group)):.6f}\n")
        return
    dice = player.rules.num_dice - len(group)
    score = float(player.expected_score(group))
    console.whole_line(f"{' '.join(map(str, group))} expected score[{dice} dice]: {score:.6f}".strip())
    console.whole_line(cases_line(player.distribution(group), player.rules.num_faces) + "\n")


def print_differences(rules: Rules, first: Strategy, second: Strategy, json: Path | None) -> None:
    """Print where the two differ, as the paper's program does: position, the first's choice, the second's."""
    simple = first.simple and second.simple
    found = list(differences(rules, first, second))
    bar = " | " if simple else " "
    for throw, aside, one, other in found:
        console.whole_line(f"{position(throw, None if simple else aside)}{bar}{one} {other}")
    kind = "throws" if simple else "positions"
    console.print(f"{first.name} and {second.name} differ in {len(found)} {kind}")
    write_json(
        json,
        {
            "game": "thirties",
            "strategies": [first.name, second.name],
            "differences": [
                {"throw": throw, "aside": None if simple else aside, "again": [one, other]}
                for throw, aside, one, other in found
            ],
            "figures": [figures_as_floats(analyse(rules, strategy)) for strategy in (first, second)],
        },
    )
