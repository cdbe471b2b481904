"""The arrays of a search tree, how its nodes are found, and how many there may be; and selection rules: how simulations choose
in the tree, and what nodes learn from them.

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

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dice_envs.core.dice import uniform
from dice_envs.core.game import MAX_SEATS, Facts, Game
from dice_envs.core.kernel import kernel

NO_NODE = -1  # in the hash table: a free place; for a position: it has no node, so the rollout policy chooses
MOST_DEPTH = 10_000  # tree moves of one simulation; deeper down, the rollout policy plays

# The most that one simulation adds to the tree: its first position, the searcher's own first position, and one leaf, after
# which the rollout policy plays. The first two get edges at once, one for each action at most.
_NODES_A_SIMULATION = 3
_NEW_WITH_EDGES = 2

_EDGES_A_NODE = 8  # edges budgeted per node under the memory limit; most nodes stay leaves, which have none
_TABLE_BYTES = 16  # a node's share of the hash table, at most


class Settings(NamedTuple):
    """The search's parameters, as kernels receive them."""

    simulations: int
    exploration: float
    opponent_random: bool
    best: bool  # the policy is the best action alone, not a mix
    span: float  # of the game's likely returns
    seats: int


# Pack fields into few arrays: numba reference-counts every array passed between kernels.
NODE = np.dtype([("key", np.uint64), ("start", np.int64), ("count", np.int64), ("visits", np.int64)])
EDGE = np.dtype(
    [
        ("mean", np.float64),  # of the mover's returns from here on
        ("width", np.float64),  # 1 / sqrt(visits)
        ("regret", np.float64),  # cumulative; used by regret matching only, as is the next
        ("strategy", np.float64),  # cumulative
        ("visits", np.int32),
        ("action", np.int32),
    ]
)
STEP = np.dtype(  # a tree move of the current simulation
    [
        ("node", np.int64),
        ("edge", np.int64),
        ("seat", np.int64),
        ("chance", np.float64),  # probability with which the edge was chosen; regret matching only
        ("weight", np.float64),  # importance weight of the simulation at this node; below 1 after an expected roll
        ("before", np.float64, (MAX_SEATS,)),  # returns earned before this node
    ]
)
RUN = np.dtype(  # the current simulation
    [
        ("rng", np.uint64),  # of the search itself
        ("chain", np.uint64),  # part of every node's key; a selection's `note` may make it a hash of the path
        ("game", np.int64),  # index in the batch; with the next, where to resume after a pause
        ("simulation", np.int64),
        ("left", np.int64),  # simulations until the search returns to Python, so that it can be stopped
        ("nodes", np.int64),  # number of nodes so far, and of edges
        ("edges", np.int64),
        ("full", np.int64),  # 1 once a node or its edges found no room, in any game of the batch
        ("depth", np.int64),  # tree moves so far
        ("in_tree", np.int64),  # 1 until the rollout policy has taken over
        ("searcher", np.int64),  # the seat for which the search is made
        ("learner", np.int64),  # a seat, in rotation, for selections in which one seat learns at a time
        ("own_edge", np.int64),  # edge of the searcher's first move, or NO_NODE
        ("own_node", np.int64),  # node of that move
        ("earned", np.float64, (MAX_SEATS,)),  # returns so far
        ("rewards", np.float64, (MAX_SEATS,)),  # of one move
    ]
)


class SearchTree(NamedTuple):
    """Arrays of one search, reused by the next."""

    table: np.ndarray  # (power of two,) int32: node at each place of the hash table, or NO_NODE
    nodes: np.ndarray  # (nodes,) of NODE; edges of a node are start … start + count − 1, none at first
    edges: np.ndarray  # (edges,) of EDGE
    path: np.ndarray  # (depth,) of STEP
    runs: np.ndarray  # (1,) of RUN
    observation: np.ndarray  # (a multiple of 2 * CHAINS,) float32, zero from the game's size on
    mask: np.ndarray  # (actions,) int8
    policy: np.ndarray  # (actions,) float64


SALT = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_S32, _ONE = np.uint64(32), np.uint64(1)
CHAINS = 4  # of `hash_words`


@kernel(allocates=False, inline=True)
def _stir(key, word):
    key = (key ^ word) * _SPREAD
    return key ^ (key >> _S32)


@kernel(allocates=False, inline=True)
def hash_words(start, words):
    """Hash the words, a multiple of CHAINS of them, in four chains whose multiplications overlap."""
    a, b, c, d = start, start + SALT, start ^ SALT, start - SALT
    for k in range(0, len(words), CHAINS):
        a = _stir(a, words[k])
        b = _stir(b, words[k + 1])
        c = _stir(c, words[k + 2])
        d = _stir(d, words[k + 3])
    return _stir(_stir(_stir(a, b), c), d)


@kernel(allocates=False, inline=True)
def find(key, table, nodes):
    """Return the node of this key, or −1 − the free place of the table where it belongs."""
    last = np.uint64(len(table) - 1)
    place = key & last
    while True:
        node = np.int64(table[place])
        if node == NO_NODE:
            return -1 - np.int64(place)
        if nodes[node]["key"] == key:
            return node
        place = (place + _ONE) & last


@kernel(allocates=False, inline=True)
def count_visit(edge, value):
    """Record a visit with this value. In place."""
    edge["visits"] += 1
    edge["mean"] += (value - edge["mean"]) / edge["visits"]
    edge["width"] = 1.0 / np.sqrt(np.float64(edge["visits"]))


# --- room in the arrays ------------------------------------------------------------------------------------------------


def most(memory: float, simulations: int, game: Game, facts: Facts) -> tuple[int, int]:
    """Return the most nodes and edges of a tree: what fits into `memory` GiB, and no more than the simulations can make.
    ValueError if not even one simulation fits."""
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


def new_tree(nodes: int, edges: int, facts: Facts) -> SearchTree:
    """Make an empty tree with room for these nodes and edges. The system finds memory for what is used, not before."""
    return SearchTree(
        table=np.empty(1 << (2 * nodes).bit_length(), np.int32),
        nodes=np.empty(nodes, NODE),
        edges=np.empty(edges, EDGE),
        path=np.empty(_path_length(facts), STEP),
        runs=np.zeros(1, RUN),
        observation=np.zeros(-(-facts.observation_size // (2 * CHAINS)) * 2 * CHAINS, np.float32),
        mask=np.zeros(facts.num_actions, np.int8),
        policy=np.zeros(facts.num_actions),
    )


_warned_full = False


def warn_full(memory: float, nodes: int) -> None:
    """Warn that a tree is full, once in a process."""
    global _warned_full
    if not _warned_full:
        _warned_full = True
        warnings.warn(
            f"mcts: the search tree has filled its {memory:g} GiB with {nodes:,} positions; simulations continue without "
            "adding to it. The agent's parameter memory raises the limit",
            RuntimeWarning,
            stacklevel=2,
        )


# --- selection rules -------------------------------------------------------------------------------------------------


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
