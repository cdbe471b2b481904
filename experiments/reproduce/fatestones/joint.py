"""Tree search whose searcher picks for all seats to its own advantage and sees the picks, for comparison only."""

from __future__ import annotations

import dataclasses

import numpy as np

from dice_envs.agents.mcts import MCTS
from dice_envs.agents.mcts.selection import Selection, choose_by_ucb, keep_visits
from dice_envs.agents.mcts.tree import SALT, count_visit
from dice_envs.core.dice import mix
from dice_envs.core.kernel import kernel

__all__ = ["JointSearch"]


@kernel(allocates=False, inline=True)
def _back_up(settings, run, tree):
    """Count each step's visit with the searcher's return, whichever seat moved. In place."""
    seat = run["searcher"]
    for d in range(run["depth"]):
        step = tree.path[d]
        count_visit(tree.edges[step["edge"]], (run["earned"][seat] - step["before"][seat]) / step["weight"])
        tree.nodes[step["node"]]["visits"] += 1


@kernel(allocates=False, inline=True)
def _note(run, action):
    """Picks are seen, so nodes depend on the path. In place."""
    run["chain"] = mix(run["chain"] + SALT * np.uint64(action + 1))


_JOINT = Selection(choose_by_ucb, _back_up, keep_visits, _note)


@dataclasses.dataclass(frozen=True)
class JointSearch(MCTS):
    """UCT whose searcher picks for all seats: the agent `mcts` with another selection. It cannot model a random opponent."""

    @property
    def selection(self) -> Selection:
        return _JOINT
