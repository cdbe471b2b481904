"""`solve shakes`: the exact value and distribution of Bayes-optimal play, or of any policy."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.text import Text

from dice_envs import configure
from dice_envs.agent.specs import make_agent
from dice_envs.agents.shakes import TallyPolicy
from dice_envs.core.game import Variant
from dice_envs.exact.agents import is_uniform
from dice_envs.experiments import ui
from dice_envs.games.shakes.exact.chances import Problem
from dice_envs.games.shakes.exact.policies import Performance, as_policy, evaluate, evaluate_open, sees_efficacies


def main(
    option: ui.OptionOption = None,
    policy: Annotated[str, typer.Option(help="optimal, or an agent: argument, thompson, ucb:1, ppo:PATH, ...")] = "optimal",
    json: ui.JsonOption = None,
) -> None:
    """The exact value of a physician's policy in The Shakes, and the distribution of patients saved.

    With -o open_efficacies=true the physician knows how effective each treatment is, as on the rules' score sheet; so does
    optimal play.

    JSON: {"value", "distribution"}; entry k of the distribution, from k = 0, is the probability that k patients are saved.

    Example: solve shakes -o num_players=4 -o reward=win --policy argument
    """
    variant = configure("shakes", **{"mode": "physician", **ui.game_options(option)})
    options = variant.options
    if options.mode != "physician":
        raise ValueError(f"mode must be physician for the value of a policy, not {options.mode}")
    agent = make_agent(f"bayes:{options.pays}" if policy == "optimal" else policy)
    start = time.perf_counter()
    result = evaluation_of(agent, variant)
    seconds = time.perf_counter() - start
    value = result.reached(options.pays)
    ui.console.print(Text.assemble((policy, "bold"), f", {options.num_players} players, {options.patients} patients"))
    ui.console.print(
        f"patients saved {result.saved:.6f}, P(win) {result.win:.6f}; {options.pays} counts: {value:.6f}", highlight=False
    )
    ui.console.print(f"share of patients by efficacy: {shares_by_efficacy(variant, result)}")
    for k, chance in enumerate(result.distribution):
        ui.console.print(f"{k:3d} saved {chance:10.6f} {'█' * round(150 * chance)}")
    ui.console.print(f"exact, in {seconds:.1f} s")
    ui.write_json(
        json,
        {
            "value": value,
            "distribution": result.distribution,
            "policy": policy,
            "reward": options.pays,
            "options": variant.changed_options(),
        },
    )


def evaluation_of(agent: Any, variant: Variant) -> Performance:
    """Return the exact evaluation of an agent as the physician, which is asked at as few tallies as possible."""
    options, problem = variant.options, Problem.of(variant.options)
    if isinstance(agent, TallyPolicy) and not sees_efficacies(variant, agent):
        return evaluate(problem, lambda treated, saved: agent.chances(options, treated, saved))
    if options.open_efficacies and not is_uniform(agent):
        return evaluate_open(problem, lambda efficacies: as_policy(agent, variant, efficacies=efficacies))
    # Only random play is known not to tell treatments apart by their place.
    return evaluate(problem, as_policy(agent, variant), merged=is_uniform(agent))


def shares_by_efficacy(variant: Variant, result: Performance) -> str:
    """Return the share of patients that get a treatment of each efficacy, in words."""
    kinds = Problem.of(variant.options).kinds
    return ", ".join(f"{pips}: {share:.4f}" for pips, share in zip(kinds, result.shares, strict=True))
