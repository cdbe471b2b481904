"""Selection rules: how simulations choose in the tree, and what nodes learn from them.

UCT      UCB1 on each seat's own returns (Kocsis, Szepesvári, "Bandit based Monte-Carlo Planning", ECML 2006).
REGRET   regret matching on sampled returns, played as the average strategy (Lanctot, Lisý, Winands, "Monte Carlo
         Tree Search in Simultaneous Move Games with Applications to Goofspiel", CGW 2013). In each simulation one
         seat, in rotation, explores and learns while the others play their current strategies (Lanctot et al.,
         "Monte Carlo Sampling for Regret Minimization in Extensive Games", NIPS 2009). The mean return of each
         action is the baseline of its estimate (Schmid et al., "Variance Reduction in Monte Carlo Counterfactual
         Regret Minimization", AAAI 2019). Converges to equilibrium if simultaneous choices are the only hidden
         information; otherwise it is a heuristic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dice_envs.core.dice import uniform
from dice_envs.core.kernel import kernel

from .tree import count_visit


class Selection(NamedTuple):
    """A selection rule, as kernels that are compiled into the search. `run` is the only row of `tree.runs`.

    Attributes:
        choose: `(settings, run, step, tree) → edge`. `step` names the node and its seat.
        back_up: `(settings, run, tree)`, after each simulation: add its returns to the nodes on its path, in place.
        conclude: `(run, tree, policy)`, after the last one: `policy` (actions,) float64 counts how often each action was
            the searcher's first move; replace it, in place, by the weights of a mixed policy if they are others.
        note: `(run, action)`, after each choice in the tree, those of the rollout policy included: may change
            `run["chain"]`, on which the nodes further down depend.
    """

    choose: Callable[..., int]
    back_up: Callable[..., None]
    conclude: Callable[..., None]
    note: Callable[..., None]


@kernel(allocates=False, inline=True)
def note_nothing(run, action):
    """Nodes depend only on what the mover sees."""


# --- UCB1 -------------------------------------------------------------------------------------------------------------


@kernel(allocates=False, inline=True)
def choose_by_ucb(settings, run, step, tree):
    """Return the edge of the highest upper confidence bound; edges not tried yet come first."""
    edges, node = tree.edges, tree.nodes[step["node"]]
    start, count, visits = node["start"], node["count"], node["visits"]
    if visits < count:  # edges lie in random order
        return start + visits
    bonus = settings.exploration * settings.span * np.sqrt(np.log(np.float64(visits)))
    best = start
    best_score = -np.inf
    for edge in range(start, start + count):
        score = edges[edge]["mean"] + bonus * edges[edge]["width"]
        if score > best_score:
            best = edge
            best_score = score
    return best


@kernel(allocates=False, inline=True)
def _back_up_returns(settings, run, tree):
    """Count each step's visit with the return of the seat that moved. In place."""
    for d in range(run["depth"]):
        step = tree.path[d]
        value = (run["earned"][step["seat"]] - step["before"][step["seat"]]) / step["weight"]
        count_visit(tree.edges[step["edge"]], value)
        tree.nodes[step["node"]]["visits"] += 1


@kernel(allocates=False, inline=True)
def keep_visits(run, tree, policy):
    """Weigh actions by their visits."""


UCT = Selection(choose_by_ucb, _back_up_returns, keep_visits, note_nothing)


# --- regret matching --------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def _match_regrets(start, count, edges, policy):
    """Write a node's current strategy into `policy`: in proportion to positive regrets. In place."""
    total = 0.0
    for k in range(count):
        policy[k] = max(0.0, edges[start + k]["regret"])
        total += policy[k]
    for k in range(count):
        policy[k] = policy[k] / total if total > 0.0 else 1.0 / count


@kernel(allocates=False, inline=True)
def _choose_by_regret(settings, run, step, tree):
    """Sample an edge by regret matching. Its probability is recorded in the step. In place."""
    node, policy = tree.nodes[step["node"]], tree.policy
    start, count = node["start"], node["count"]
    _match_regrets(start, count, tree.edges, policy)
    share = settings.exploration if step["seat"] == run["learner"] else 0.0
    at = uniform(run)
    chosen = 0
    chance = 0.0
    for k in range(count):
        of_this = (1.0 - share) * policy[k] + share / count
        if of_this > 0.0:
            chosen = k
            chance = of_this
            at -= of_this
            if at < 0.0:
                break
    step["chance"] = chance
    return start + chosen


@kernel(allocates=False, inline=True)
def _back_up_regrets(settings, run, tree):
    """Add one simulation's returns to the learner's regrets, and to all average strategies. In place."""
    edges, path, policy, learner = tree.edges, tree.path, tree.policy, run["learner"]
    rest = 0.0  # the learner's value of the node after this one
    for d in range(run["depth"] - 1, -1, -1):
        step = path[d]
        node = tree.nodes[step["node"]]
        start, count = node["start"], node["count"]
        if d == run["depth"] - 1:
            value = (run["earned"][learner] - step["before"][learner]) / step["weight"]
        else:
            after = path[d + 1]
            value = (after["before"][learner] - step["before"][learner] + after["weight"] * rest) / step["weight"]
        _match_regrets(start, count, edges, policy)
        node["visits"] += 1
        for k in range(count):  # weighted by visits: early strategies count for little
            edges[start + k]["strategy"] += node["visits"] * policy[k]
        if step["seat"] == learner:
            # The baseline of each action's value is its mean so far. The action taken is corrected by its deviation from
            # that, divided by its sampling probability, so that all estimates are unbiased.
            taken = edges[step["edge"]]
            correction = (value - taken["mean"]) / step["chance"]
            expected = policy[step["edge"] - start] * correction
            for k in range(count):
                expected += policy[k] * edges[start + k]["mean"]
            for k in range(count):
                edges[start + k]["regret"] += edges[start + k]["mean"] - expected
            taken["regret"] += correction
            count_visit(taken, value)
            value = expected
        rest = value


@kernel(allocates=False, inline=True)
def _take_average(run, tree, policy):
    """Weigh actions as in the average strategy. In place."""
    node = tree.nodes[run["own_node"]]
    for edge in range(node["start"], node["start"] + node["count"]):
        policy[tree.edges[edge]["action"]] = tree.edges[edge]["strategy"]


REGRET = Selection(_choose_by_regret, _back_up_regrets, _take_average, note_nothing)
