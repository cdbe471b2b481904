"""Room in the tree: the sizes of its arrays, their limits, and how they grow."""

from __future__ import annotations

import math
import warnings

import numpy as np

from dice_envs.core.game import Facts, Game
from dice_envs.core.kernel import kernel

from .tree import CHAINS, EDGE, NODE, RUN, STEP, SearchTree, Settings, fill_table

MOST_DEPTH = 10_000  # tree moves of one simulation; deeper down, the rollout policy plays

# The most that one simulation adds to the tree, so that room can be made before it starts.
# Nodes: its first position, the searcher's own first position, and one leaf, after which the rollout policy plays.
# Edges: at most one per action at every node that is expanded. Such a node was a leaf before this simulation or is one of
# its first two new nodes. Every expansion comes with a tree move, so the path's length bounds their number, too.
_NODES_A_SIMULATION = 3
_NEW_WITH_EDGES = 2

ENOUGH, MORE_NODES, MORE_EDGES, PAUSED = range(4)  # what a search lacks to continue; PAUSED: nothing, it may be stopped here

_EDGES_A_NODE = 8  # edges budgeted per node under the memory limit; most nodes stay leaves, which have none
_FIRST_SIMULATIONS = 4096  # a new tree has room for this many
_TABLE_BYTES = 24  # a node's share of the hash table, and of the old table while a larger one is filled


def most(memory: float, simulations: int, game: Game, facts: Facts) -> tuple[int, int]:
    """Return the most nodes and edges of a tree: what fits into `memory` GiB, and no more than the simulations can make.

    Raises:
        ValueError: not even one simulation fits.
    """
    edges_a_node = min(_EDGES_A_NODE, facts.num_actions)
    node_bytes = NODE.itemsize + _TABLE_BYTES + edges_a_node * EDGE.itemsize
    path_bytes = _path_length(facts) * STEP.itemsize
    nodes = int(memory * 2**30 - path_bytes) // node_bytes
    least = max(_NODES_A_SIMULATION, math.ceil(_NEW_WITH_EDGES * facts.num_actions / edges_a_node))
    if nodes < least:
        gib = math.ceil(100 * (path_bytes + least * node_bytes) / 2**30) / 100
        raise ValueError(f"memory must be at least {gib} for {game.name} with {facts.num_actions:,} actions, not {memory}")
    made = _NODES_A_SIMULATION * simulations
    return min(nodes, made), min(nodes * edges_a_node, made * facts.num_actions)


def _path_length(facts: Facts) -> int:
    return min(facts.max_steps, MOST_DEPTH)


def _fitting(limit: int, wanted: int) -> int:
    """Halve `limit` as often as possible without falling below `wanted`, so every growth doubles, the last one too."""
    size = limit
    while size // 2 >= wanted:
        size //= 2
    return size


def _table_for(nodes: int) -> np.ndarray:
    return np.empty(1 << (2 * nodes).bit_length(), np.int32)


def new_tree(settings: Settings, facts: Facts) -> SearchTree:
    """Make an empty tree."""
    begin = min(settings.simulations, _FIRST_SIMULATIONS) + _NODES_A_SIMULATION + 1
    nodes = _fitting(settings.most_nodes, begin)
    return SearchTree(
        table=_table_for(nodes),
        nodes=np.empty(nodes, NODE),
        edges=np.empty(_fitting(settings.most_edges, begin * facts.num_actions), EDGE),
        path=np.empty(_path_length(facts), STEP),
        runs=np.zeros(1, RUN),
        observation=np.zeros(-(-facts.observation_size // (2 * CHAINS)) * 2 * CHAINS, np.float32),
        mask=np.zeros(facts.num_actions, np.int8),
        policy=np.zeros(facts.num_actions),
    )


def grown(tree: SearchTree, lacks: int, settings: Settings) -> SearchTree:
    """Return the tree with room for twice the nodes or edges, up to the limit."""
    used = tree.runs[0]
    if lacks == MORE_EDGES:
        edges = np.empty(_fitting(settings.most_edges, 2 * len(tree.edges)), EDGE)
        edges[: used["edges"]] = tree.edges[: used["edges"]]
        return tree._replace(edges=edges)
    nodes = np.empty(_fitting(settings.most_nodes, 2 * len(tree.nodes)), NODE)
    nodes[: used["nodes"]] = tree.nodes[: used["nodes"]]
    table = _table_for(len(nodes))
    fill_table(table, nodes, used["nodes"])
    return tree._replace(nodes=nodes, table=table)


@kernel(allocates=False)
def lacking(settings, run, tree):
    """Return what the tree needs more of before the next simulation starts. Growing does not change results."""
    if len(tree.nodes) < settings.most_nodes and run["nodes"] + _NODES_A_SIMULATION > len(tree.nodes):
        return MORE_NODES
    expanded = min(run["leaves"] + _NEW_WITH_EDGES, len(tree.path))
    if len(tree.edges) < settings.most_edges and run["edges"] + expanded * len(tree.mask) > len(tree.edges):
        return MORE_EDGES
    return ENOUGH


_told_full = False


def tell_full(memory: float, nodes: int) -> None:
    """Warn that a tree is full, once in a process."""
    global _told_full
    if not _told_full:
        _told_full = True
        warnings.warn(
            f"mcts: the search tree has filled its {memory:g} GiB with {nodes:,} positions; simulations continue without "
            "adding to it. The agent's parameter memory raises the limit",
            RuntimeWarning,
            stacklevel=2,
        )
