"""Searches of FateStones measured: the edge that they capture, and their exploitability, by simulations."""

from __future__ import annotations

from typing import Any

import numpy as np

from dice_envs import Agent, agents, configure
from dice_envs.core.dice import derived_seeds
from dice_envs.core.game import Variant
from dice_envs.exact.fatestones import draw_hands, evaluate, first_choices
from dice_envs.exact.liars_dice.measures import exploitability
from dice_envs.experiments.jobs.workers import Done, Workers
from dice_envs.experiments.reproduce.fatestones.joint import JointSearch
from dice_envs.experiments.reproduce.fatestones.search import ProjectSearch
from dice_envs.experiments.ui.findings import Finding, print_rows
from dice_envs.experiments.ui.progress import progress

__all__ = ["PROJECT", "against_random", "agent_of", "fatestones_curves", "liars_dice_curves", "own_search"]

RULES = {  # the curves: label → agent; {} is its number of simulations
    "the project's own": "project:{}",
    "UCT that picks both dice": "joint:{}",
    "decoupled UCT": "mcts:{},select=uct",
    "decoupled UCT, mixed": "mcts:{},select=uct,final=mixed",
    "regret matching": "mcts:{},select=regret",
    "regret matching, rolls averaged": "mcts:{},select=regret,expect=true",
}
SEARCHES = {"project": ProjectSearch, "joint": JointSearch}  # this package's searches, by their names in specs
MOST_FOR_OWN = 50_000  # draws for the project's own search: its share is small, so it takes many to measure
PROJECT = (10, 50, 1000)  # simulations with which the project's own search is measured: the published numbers, and many more
AGAINST_RANDOM = {"sampled": "opponent=random", "rolls averaged": "opponent=random,expect=true"}
LIARS_DICE_RULES = {"UCT, mixed": "final=mixed", "regret matching": "select=regret"}


def agent_of(spec: str) -> Agent:
    """Return the agent of a spec; `project:N` and `joint:N` are searches of this package with N simulations."""
    name, _, simulations = spec.partition(":")
    return SEARCHES[name](int(simulations)) if name in SEARCHES else agents.make(spec)


def _affordable(
    hands: np.ndarray, searches: int, simulations: int, work: float, least: int = 20, most: int = 2000
) -> np.ndarray:
    """Return the draws that `work` million simulations allow, from `least` to `most` of them."""
    return hands[: max(least, min(most, int(work * 1e6 / (searches * simulations))))]


def _captured(seed: int, spec: str, hands: np.ndarray, done: Done) -> list[float]:
    """Return the share of the edge against random that a search's first choices capture, and its error."""
    found = first_choices(configure("fatestones"), agent_of(spec), hands, seed)
    done(1)
    return list(found)


def _captures(title: str, parts: list[tuple[str, np.ndarray]], seed: int, workers: Workers, whose: str = "") -> list[Finding]:
    """Return the share of the edge against random that searches capture, each given by its spec and its draws."""
    with progress(title, len(parts)) as done:
        found = workers.run(_captured, (seed,), parts, done=done)
    return [
        Finding("search", f"{spec}: share of the edge", None, share, error, note=f"{whose}{len(some):,} draws")
        for (spec, some), (share, error) in zip(parts, found, strict=True)
    ]


def own_search(variant: Variant, work: float, seed: int, workers: Workers) -> list[Finding]:
    """Measure the project's own search on a larger sample of draws."""
    hands = draw_hands(variant, MOST_FOR_OWN, *derived_seeds(seed, "own search"))
    parts = [(f"project:{size}", _affordable(hands, 2, size, work, most=MOST_FOR_OWN)) for size in PROJECT]
    return _captures("the project's own search", parts, seed, workers, "the project's own; ")


def against_random(hands: np.ndarray, work: float, seed: int, workers: Workers) -> list[Finding]:
    """Measure searches that know that their opponent plays at random."""
    parts = []
    for label, extra in AGAINST_RANDOM.items():
        for simulations in (50, 1000, 100_000) if label == "sampled" else (50,):
            parts.append((f"mcts:{simulations},{extra}", _affordable(hands, 2, simulations, work)))
    return _captures("searches against random", parts, seed, workers)


def _sizes(most: int) -> list[int]:
    return [size for size in (10, 50, 200, 1000, 10_000, 100_000) if size <= most]


def _evaluated(seed: int, spec: str, hands: np.ndarray, done: Done) -> list[float]:
    """Return a search's share of the edge and its exploitability, each with its error."""
    result = evaluate(configure("fatestones"), agent_of(spec), hands, seed)
    done(1)
    return [*result.edge_share(), *result.exploitability()]


def fatestones_curves(hands: np.ndarray, most: int, work: float, seed: int, workers: Workers) -> list[dict[str, Any]]:
    """Return the share of the edge and the exploitability by simulations for each selection rule, and print them."""
    points = []
    rows = []
    places = [(label, size) for label in RULES for size in _sizes(most)]
    parts = [(RULES[label].format(size), _affordable(hands, 38, size, work)) for label, size in places]
    with progress("points of curves", len(parts)) as done:
        found = workers.run(_evaluated, (seed,), parts, done=done)
    for (label, simulations), (_, some), (share, share_error, lost, lost_error) in zip(places, parts, found, strict=True):
        points.append(
            {
                "game": "fatestones",
                "rule": label,
                "simulations": simulations,
                "draws": len(some),
                "edge_share": share,
                "edge_share_ci95": share_error,
                "exploitability": lost,
                "exploitability_ci95": lost_error,
            }
        )
        name = f"{label}, {simulations:,}"
        rows.append(Finding("search", f"{name}: share of the edge", None, share, share_error, note=f"{len(some):,} draws"))
        rows.append(Finding("search", f"{name}: exploitability", None, lost, lost_error))
    print_rows("How well search plays against anyone (exploitability: upper bound, a draw)", rows)
    return points


def _searched(seed: int, spec: str, done: Done) -> float:
    """Return a search's exploitability in one-die Liar's Dice."""
    found = exploitability(configure("liars_dice", rules="openspiel", num_dice=1), agents.make(spec), seed)
    done(1)
    return found


def liars_dice_curves(most: int, seed: int, workers: Workers) -> list[dict[str, Any]]:
    """Return the exploitability in one-die Liar's Dice, with a search at every information set, and print it."""
    sizes = [size for size in (10, 30, 100, 300, 1000, 3000, 10_000) if size <= most]
    places = [(label, size) for label in LIARS_DICE_RULES for size in sizes]
    parts = [(f"mcts:{size},{LIARS_DICE_RULES[label]}",) for label, size in places]
    with progress("searches of one-die Liar's Dice", len(parts)) as done:
        found = workers.run(_searched, (seed,), parts, done=done)
    points: list[dict[str, Any]] = []
    rows = []
    for (label, simulations), lost in zip(places, found, strict=True):
        points.append({"game": "liars_dice", "rule": label, "simulations": simulations, "exploitability": lost})
        rows.append(Finding("search", f"{label}, {simulations:,}", None, lost, note="one search an information set"))
    print_rows("One-die Liar's Dice (OpenSpiel's rules): exploitability of the policy found", rows)
    return points
