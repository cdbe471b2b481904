"""Monte Carlo tree search for every game of the suite, in compiled code.

One engine serves turns and simultaneous choices, chance and hidden information. It knows a game by its kernels only:

- Every simulation starts from the searched state with all that is hidden from the searcher drawn again, future dice
  included: information set MCTS (Cowling, Powley, Whitehouse, "Information Set Monte Carlo Tree Search", IEEE
  TCIAIG 4(2), 2012, section IV; each seat has its own tree here, their MO-ISMCTS).
- A node is the information state of the seat to move, found by a hash of its observation. So there are no chance
  nodes: a throw leads to the node of whatever the mover sees next. Seats that choose at the same time cannot see each
  other's choice, so they select independently: decoupled selection (Tak, Lanctot, Winands, "Monte Carlo Tree Search
  Variants for Simultaneous Move Games", IEEE CIG 2014).
- A simulation adds one leaf. From there a rollout policy plays to the end.
- The arrays of the tree grow as needed, up to a memory limit. Once it is full, simulations add no nodes: in positions
  without a node the rollout policy chooses.
- If a game provides `Game.expect`, a simulation can add the roll's expected reward, continue in the non-terminal outcome
  and be weighted by its probability (the agent's parameter `expect`). This removes dice noise.

Selection rules, `select`:
    uct      UCB1 on each seat's own returns (Kocsis, Szepesvári, "Bandit based Monte-Carlo Planning", ECML 2006).
    regret   regret matching on sampled returns, played as the average strategy (Lanctot, Lisý, Winands, "Monte Carlo
             Tree Search in Simultaneous Move Games with Applications to Goofspiel", CGW 2013). In each simulation one
             seat, in rotation, explores and learns while the others play their current strategies (Lanctot et al.,
             "Monte Carlo Sampling for Regret Minimization in Extensive Games", NIPS 2009). The mean return of each
             action is the baseline of its estimate (Schmid et al., "Variance Reduction in Monte Carlo Counterfactual
             Regret Minimization", AAAI 2019). Converges to equilibrium if simultaneous choices are the only hidden
             information; otherwise it is a heuristic.
    joint    the searcher picks for all seats, to its own advantage, and sees what it has picked. It is here for
             comparison, not for use.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np

from dice_envs.agent import Turn, draw_actions
from dice_envs.core.dice import below, choose_weighted, mix, next_u64, uniform
from dice_envs.core.game import MAX_SEATS, OVER, Facts, Game, Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_choice, check_range, shown

from .rollouts import RANDOM, rollout_of, rollouts

__all__ = ["AGENTS", "MCTS", "compile_search"]

SELECTIONS = ("uct", "regret", "joint")
UCT, REGRET, JOINT = range(3)
MAX_SIMULATIONS = 10_000_000
MOST_THREADS = 256
# What is searched where people wait. A tree of so many simulations takes some hundred MiB at most.
MOST_IN_PASSING = 100_000  # simulations
MOST_MOVES_IN_PASSING = 30_000_000  # moves of all simulations, if games take as long as they can: a second or two
MOST_GIB_IN_PASSING = 2
NO_NODE = -1  # in the hash table: a free place; for a position: it has no node, so the rollout policy chooses
MOST_DEPTH = 10_000  # tree moves of one simulation; deeper down, the rollout policy plays


class _Settings(NamedTuple):
    """What the kernels receive."""

    simulations: int
    exploration: float
    select: int  # UCT, REGRET or JOINT
    opponent_random: bool
    expect: bool
    best: bool  # the policy is the best action alone, not a mix
    span: float  # max_return − min_return of the game
    seats: int
    most_nodes: int  # limits on the tree's size
    most_edges: int


# Pack fields into few arrays: numba reference-counts every array passed between kernels.
_NODE = np.dtype([("key", np.uint64), ("start", np.int64), ("count", np.int64), ("visits", np.int64)])
_EDGE = np.dtype(
    [
        ("mean", np.float64),  # of the mover's returns from here on
        ("width", np.float64),  # 1 / sqrt(visits)
        ("regret", np.float64),  # cumulative; used by REGRET only, as is the next
        ("strategy", np.float64),  # cumulative
        ("visits", np.int32),
        ("action", np.int32),
    ]
)
_STEP = np.dtype(  # a tree move of the current simulation
    [
        ("node", np.int64),
        ("edge", np.int64),
        ("seat", np.int64),
        ("chance", np.float64),  # probability with which the edge was chosen
        ("weight", np.float64),  # importance weight of the simulation at this node; below 1 after an expected roll
        ("before", np.float64, (MAX_SEATS,)),  # returns earned before this node
    ]
)
_RUN = np.dtype(  # the current simulation
    [
        ("rng", np.uint64),  # of the search itself
        ("chain", np.uint64),  # hash of the path, if nodes depend on it (JOINT)
        ("game", np.int64),  # index in the batch; with the next, where to resume once the tree has grown
        ("simulation", np.int64),
        ("nodes", np.int64),  # number of nodes so far, and of edges
        ("edges", np.int64),
        ("leaves", np.int64),  # nodes without edges
        ("full", np.int64),  # 1 once a node or its edges found no room, in any game of the batch
        ("depth", np.int64),  # tree moves so far
        ("in_tree", np.int64),  # 1 until the rollout policy has taken over
        ("learner", np.int64),  # the seat that learns (REGRET)
        ("own_edge", np.int64),  # edge of the searcher's first move, or NO_NODE
        ("own_node", np.int64),  # node of that move
        ("earned", np.float64, (MAX_SEATS,)),  # returns so far
        ("rewards", np.float64, (MAX_SEATS,)),  # of one move
    ]
)


class _Tree(NamedTuple):
    """Arrays of one search, reused by the next."""

    table: np.ndarray  # (power of two,) int32: node at each place of the hash table, or NO_NODE
    nodes: np.ndarray  # (nodes,) of _NODE; edges of a node are start … start + count − 1, none at first
    edges: np.ndarray  # (edges,) of _EDGE
    path: np.ndarray  # (depth,) of _STEP
    runs: np.ndarray  # (1,) of _RUN
    observation: np.ndarray  # (a multiple of 2 * _CHAINS,) float32, zero from the game's size on
    mask: np.ndarray  # (actions,) int8
    policy: np.ndarray  # (actions,) float64


# --- room in the tree -------------------------------------------------------------------------------------------------

# The most that one simulation adds to the tree, so that room can be made before it starts.
# Nodes: its first position, the searcher's own first position, and one leaf, after which the rollout policy plays.
# Edges: at most one per action at every node that is expanded. Such a node was a leaf before this simulation or is one of
# its first two new nodes. Every expansion comes with a tree move, so there are at most as many as the path is long.
_NODES_A_SIMULATION = 3
_NEW_WITH_EDGES = 2

_ENOUGH, _MORE_NODES, _MORE_EDGES = range(3)  # what a search lacks to continue

_EDGES_A_NODE = 8  # edges budgeted per node under the memory limit; most nodes stay leaves, which have none
_FIRST_SIMULATIONS = 4096  # a new tree has room for this many
_TABLE_BYTES = 24  # a node's share of the hash table, and of the old table while a larger one is filled


def _most(memory: float, simulations: int, game: Game, facts: Facts) -> tuple[int, int]:
    """The most nodes and edges of a tree: what `memory` GiB hold, and no more than the simulations can make.

    Raises:
        ValueError: not even one simulation fits.
    """
    edges_a_node = min(_EDGES_A_NODE, facts.num_actions)
    node_bytes = _NODE.itemsize + _TABLE_BYTES + edges_a_node * _EDGE.itemsize
    path_bytes = _path_length(facts) * _STEP.itemsize
    nodes = int(memory * 2**30 - path_bytes) // node_bytes
    least = max(_NODES_A_SIMULATION, math.ceil(_NEW_WITH_EDGES * facts.num_actions / edges_a_node))
    if nodes < least:
        gib = math.ceil(100 * (path_bytes + least * node_bytes) / 2**30) / 100
        raise ValueError(f"memory must be at least {gib} for {game.name} with {facts.num_actions:,} actions, not {memory}")
    made = _NODES_A_SIMULATION * simulations
    return min(nodes, made), min(nodes * edges_a_node, made * facts.num_actions)


def _path_length(facts: Facts) -> int:
    return min(facts.max_steps, MOST_DEPTH)


def _fitting(most: int, wanted: int) -> int:
    """`most`, halved as often as possible without falling below `wanted`. So every growth doubles, the last one too."""
    size = most
    while size // 2 >= wanted:
        size //= 2
    return size


def _table_for(nodes: int) -> np.ndarray:
    return np.empty(1 << (2 * nodes).bit_length(), np.int32)


def _new_tree(settings: _Settings, facts: Facts) -> _Tree:
    begin = min(settings.simulations, _FIRST_SIMULATIONS) + _NODES_A_SIMULATION + 1
    nodes = _fitting(settings.most_nodes, begin)
    return _Tree(
        table=_table_for(nodes),
        nodes=np.empty(nodes, _NODE),
        edges=np.empty(_fitting(settings.most_edges, begin * facts.num_actions), _EDGE),
        path=np.empty(_path_length(facts), _STEP),
        runs=np.zeros(1, _RUN),
        observation=np.zeros(-(-facts.observation_size // (2 * _CHAINS)) * 2 * _CHAINS, np.float32),
        mask=np.zeros(facts.num_actions, np.int8),
        policy=np.zeros(facts.num_actions),
    )


def _grown(tree: _Tree, lacking: int, settings: _Settings) -> _Tree:
    """The tree with room for twice as many nodes or edges, or for the most that there may be."""
    used = tree.runs[0]
    if lacking == _MORE_EDGES:
        edges = np.empty(_fitting(settings.most_edges, 2 * len(tree.edges)), _EDGE)
        edges[: used["edges"]] = tree.edges[: used["edges"]]
        return tree._replace(edges=edges)
    nodes = np.empty(_fitting(settings.most_nodes, 2 * len(tree.nodes)), _NODE)
    nodes[: used["nodes"]] = tree.nodes[: used["nodes"]]
    table = _table_for(len(nodes))
    _fill_table(table, nodes, used["nodes"])
    return tree._replace(nodes=nodes, table=table)


_told_full = False


def _tell_full(memory: float, nodes: int) -> None:
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


_SALT = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_S32, _ONE = np.uint64(32), np.uint64(1)
_CHAINS = 4  # of `_hash`
_LIGHT = 0.02  # Russian roulette: a lighter simulation is dropped, or kept at this weight with probability weight / _LIGHT


@kernel(allocates=False, inline=True)
def _stir(key, word):
    key = (key ^ word) * _SPREAD
    return key ^ (key >> _S32)


@kernel(allocates=False, inline=True)
def _hash(start, words):
    """A hash of the words, a multiple of _CHAINS of them: in four chains, whose multiplications overlap."""
    a, b, c, d = start, start + _SALT, start ^ _SALT, start - _SALT
    for k in range(0, len(words), _CHAINS):
        a = _stir(a, words[k])
        b = _stir(b, words[k + 1])
        c = _stir(c, words[k + 2])
        d = _stir(d, words[k + 3])
    return _stir(_stir(_stir(a, b), c), d)


@kernel(allocates=False, inline=True)
def _find(key, table, nodes):
    """The node of this key, or −1 − the free place of the table where it belongs."""
    last = np.uint64(len(table) - 1)
    place = key & last
    while True:
        node = np.int64(table[place])
        if node == NO_NODE:
            return -1 - np.int64(place)
        if nodes[node]["key"] == key:
            return node
        place = (place + _ONE) & last


@kernel
def _fill_table(table, nodes, count):
    """Clear the table and enter the first `count` nodes. In place."""
    table[:] = NO_NODE
    for node in range(count):
        table[-1 - _find(nodes[node]["key"], table, nodes)] = node


@kernel(allocates=False)
def _lacking(settings, run, tree):
    """What the tree must have more of before another simulation starts. Growing does not change results."""
    if len(tree.nodes) < settings.most_nodes and run["nodes"] + _NODES_A_SIMULATION > len(tree.nodes):
        return _MORE_NODES
    expanded = min(run["leaves"] + _NEW_WITH_EDGES, len(tree.path))
    if len(tree.edges) < settings.most_edges and run["edges"] + expanded * len(tree.mask) > len(tree.edges):
        return _MORE_EDGES
    return _ENOUGH


@kernel(allocates=False)
def _matched(start, count, edges, policy):
    """The current strategy of a node by regret matching: in proportion to positive regrets. `policy` is modified in place."""
    total = 0.0
    for k in range(count):
        policy[k] = max(0.0, edges[start + k]["regret"])
        total += policy[k]
    for k in range(count):
        policy[k] = policy[k] / total if total > 0.0 else 1.0 / count


@kernel(allocates=False, inline=True)
def _select_uct(settings, node, edges):
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


@kernel(allocates=False)
def _select_regret(settings, run, node, edges, policy, step):
    """Sample an edge by regret matching. Its probability is recorded in the step. In place."""
    start, count = node["start"], node["count"]
    _matched(start, count, edges, policy)
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
def _tree_move(settings, number, seat, weight, run, tree):
    """Choose an edge of the node and record it in the path. Returns the edge. In place."""
    step = tree.path[run["depth"]]
    run["depth"] += 1
    step["node"] = number
    step["seat"] = seat
    step["weight"] = weight
    for other in range(settings.seats):
        step["before"][other] = run["earned"][other]
    if settings.select == REGRET:
        edge = _select_regret(settings, run, tree.nodes[number], tree.edges, tree.policy, step)
    else:
        edge = _select_uct(settings, tree.nodes[number], tree.edges)
    step["edge"] = edge
    return edge


@kernel(allocates=False, inline=True)
def _count(edge, value):
    """Record a visit with this value. In place."""
    edge["visits"] += 1
    edge["mean"] += (value - edge["mean"]) / edge["visits"]
    edge["width"] = 1.0 / np.sqrt(np.float64(edge["visits"]))


@kernel(allocates=False)
def _back_up(settings, run, searcher, nodes, edges, path):
    """Add one simulation's returns to the nodes on its path. In place."""
    for d in range(run["depth"]):
        step = path[d]
        edge = edges[step["edge"]]
        whose = searcher if settings.select == JOINT else step["seat"]
        _count(edge, (run["earned"][whose] - step["before"][whose]) / step["weight"])
        nodes[step["node"]]["visits"] += 1


@kernel(allocates=False)
def _back_up_regrets(run, nodes, edges, path, policy):
    """Add one simulation's returns to the learner's regrets, and to all average strategies. In place."""
    learner = run["learner"]
    rest = 0.0  # the learner's value of the node after this one
    for d in range(run["depth"] - 1, -1, -1):
        step = path[d]
        node = nodes[step["node"]]
        start, count = node["start"], node["count"]
        if d == run["depth"] - 1:
            value = (run["earned"][learner] - step["before"][learner]) / step["weight"]
        else:
            after = path[d + 1]
            value = (after["before"][learner] - step["before"][learner] + after["weight"] * rest) / step["weight"]
        _matched(start, count, edges, policy)
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
            _count(taken, value)
            value = expected
        rest = value


@functools.cache
def compile_search(game: Game, rollout: str = RANDOM) -> Any:
    """The search of one game, compiled on first use.

    Returns:
        A kernel `(params, settings, states (n,), streams (n,), worlds, chances, averaged, tree, policies (n, actions),
        totals (actions,), values (n,))` that searches each state for its seat to move, drawing from its stream. It
        writes the resulting policy and the searcher's mean return. All but the first three and `averaged` are modified
        in place. It returns _ENOUGH when all searches are done. Otherwise it returns what `tree` must have more of; call
        it again with a larger tree and it resumes.

    Raises:
        ValueError: the game has no such rollout.
    """
    legal, play, observe, reroll_hidden = game.legal, game.play, game.observe, game.reroll_hidden
    roll_out = rollout_of(game, rollout)
    pick_random = rollout_of(game, RANDOM)
    tag = f"{game.deal.__module__}.{game.name}:{rollout}"
    compiled = functools.partial(kernel, tag=tag, allocates=False)
    # The tree and the parameters are dozens of values: passing them at every move costs more than the search itself.
    inlined = functools.partial(compiled, inline=True)
    merged = functools.partial(compiled, merge=True)  # what has one caller: as kernels of their own they are optimised twice

    if game.retract is None:

        @compiled
        def prepare(params, state, seat):
            """Draw again what the seat cannot see, and undo choices that are not revealed yet. In place."""
            reroll_hidden(params, state, seat)
    else:
        retract = game.retract

        @compiled
        def prepare(params, state, seat):
            reroll_hidden(params, state, seat)
            retract(params, state)

    if game.expect is None:

        @inlined
        def advance(params, settings, state, action, run, share):
            """Play, and add what each seat earns times `share`. Returns the probability that the game continues. In place."""
            play(params, state, action)
            for seat in range(settings.seats):
                run["earned"][seat] += share * state["rewards"][seat]
            return 1.0
    else:
        expect = game.expect

        @inlined
        def advance(params, settings, state, action, run, share):
            if settings.expect:
                goes_on = expect(params, state, action, run["rewards"])
                for seat in range(settings.seats):
                    run["earned"][seat] += share * run["rewards"][seat]
                return goes_on
            play(params, state, action)
            for seat in range(settings.seats):
                run["earned"][seat] += share * state["rewards"][seat]
            return 1.0

    @compiled
    def expand(params, state, node, run, edges, mask):
        """Give the node an edge for each legal action, in random order. In place."""
        start = run["edges"]
        mask[:] = 0
        legal(params, state, mask)
        count = 0
        for a in range(len(mask)):
            if mask[a] != 0:
                other = below(run, count + 1)  # an inside-out shuffle
                edge = edges[start + count]
                edge["action"] = edges[start + other]["action"]
                edges[start + other]["action"] = a
                edge["visits"] = 0
                edge["mean"] = 0.0
                edge["width"] = 0.0
                edge["regret"] = 0.0
                edge["strategy"] = 0.0
                count += 1
        node["start"] = start
        node["count"] = count
        run["edges"] = start + count
        run["leaves"] -= 1

    @inlined
    def node_of(params, settings, state, key, at_once, run, tree):
        """The node of this key, expanded, or NO_NODE where the rollout policy is to choose. In place.

        A new position becomes a node if there is room. It is expanded now if `at_once`. Otherwise it stays a leaf until it
        is seen again, because most positions never are.
        """
        number = _find(key, tree.table, tree.nodes)
        if number < 0:
            if run["nodes"] == len(tree.nodes):
                run["full"] = 1
                return NO_NODE
            tree.table[-1 - number] = run["nodes"]
            number = run["nodes"]
            run["nodes"] += 1
            run["leaves"] += 1
            tree.nodes[number]["key"] = key
            tree.nodes[number]["visits"] = 0
            tree.nodes[number]["count"] = 0
            if not at_once:
                return NO_NODE
        if tree.nodes[number]["count"] == 0:
            if run["edges"] + len(tree.mask) > len(tree.edges):
                run["full"] = 1
                return NO_NODE
            expand(params, state, tree.nodes[number], run, tree.edges, tree.mask)
        return number

    @inlined
    def decide(params, settings, state, searcher, weight, run, tree):
        """The action of the seat to move, from the tree while the simulation is in it. In place."""
        seat = np.int64(state["seat"])
        if settings.opponent_random and seat != searcher:
            return np.int64(pick_random(params, state, tree.mask))
        if run["in_tree"] == 0:
            return np.int64(roll_out(params, state, tree.mask))
        observation = tree.observation
        observation[:] = 0
        observe(params, state, seat, observation)
        key = _hash(run["chain"] ^ (np.uint64(seat) + _SALT), observation.view(np.uint64))
        own_first = seat == searcher and run["own_edge"] == NO_NODE
        number = NO_NODE
        if run["depth"] < len(tree.path):
            number = node_of(params, settings, state, key, run["depth"] == 0 or own_first, run, tree)
        if number == NO_NODE:
            # In a full tree the first seat's position may have no node, if its hand is hidden. Stay in the tree then, as
            # the searcher's own node, further on, has to learn.
            if run["depth"] > 0 or own_first:
                run["in_tree"] = 0
            action = np.int64(roll_out(params, state, tree.mask))
        else:
            edge = _tree_move(settings, number, seat, weight, run, tree)
            if own_first:
                run["own_edge"] = edge
                run["own_node"] = number
            action = np.int64(tree.edges[edge]["action"])
        if settings.select == JOINT:  # picks are seen, so nodes depend on the path
            run["chain"] = mix(run["chain"] + _SALT * np.uint64(action + 1))
        return action

    if game.expect is None:

        @compiled
        def average_turn(params, settings, worlds, chances, searcher, weight, run, tree):
            """Not called: the game offers no expectation. Compiling the other one takes seconds."""
            return weight
    else:

        @compiled
        def average_turn(params, settings, worlds, chances, searcher, weight, run, tree):
            """A turn in which two seats choose at once, taking the expectation over a uniformly random opponent and the roll.

            The state is `worlds[0]`. Each choice of the opponent makes a world. The searcher cannot tell them apart, so it
            chooses once for all. The state becomes one of the worlds, drawn in proportion to its probability of continuing.
            Returns the simulation's new weight. In place.
            """
            worlds[1] = worlds[0]
            count = 1
            chances[0] = 1.0
            for _ in range(2):
                if worlds[1]["seat"] == searcher:
                    action = decide(params, settings, worlds[1], searcher, weight, run, tree)
                    for k in range(count):
                        chances[k] *= advance(params, settings, worlds[1 + k], action, run, weight * chances[k])
                else:
                    worlds[0] = worlds[1]
                    start = chances[0]
                    mask = tree.mask
                    mask[:] = 0
                    legal(params, worlds[0], mask)
                    count = 0
                    for a in range(len(mask)):
                        count += mask[a] != 0
                    k = 0
                    for a in range(len(mask)):
                        if mask[a] != 0:
                            worlds[1 + k] = worlds[0]
                            share = start / count
                            chances[k] = share * advance(params, settings, worlds[1 + k], a, run, weight * share)
                            k += 1
            total = 0.0
            for k in range(count):
                total += chances[k]
            worlds[0] = worlds[1 + max(0, choose_weighted(run, chances, count))]  # 0: all games are over, so any will do
            return weight * total

    @merged
    def simulate(params, settings, worlds, chances, averaged, searcher, run, tree):
        """One simulation from the state `worlds[0]`. In place."""
        run["depth"] = 0
        run["in_tree"] = 1
        run["own_edge"] = NO_NODE
        run["chain"] = np.uint64(0)
        for seat in range(settings.seats):
            run["earned"][seat] = 0.0
        weight = 1.0
        while worlds[0]["seat"] != OVER and weight > 0.0:
            if averaged:
                weight = average_turn(params, settings, worlds, chances, searcher, weight, run, tree)
            else:
                action = decide(params, settings, worlds[0], searcher, weight, run, tree)
                weight *= advance(params, settings, worlds[0], action, run, weight)
            if weight < _LIGHT:
                weight = _LIGHT if uniform(run) * _LIGHT < weight else 0.0

    @compiled
    def search_on(params, settings, state, worlds, chances, averaged, tree, policy, totals):
        """Run the simulations left and count the searcher's first moves. Returns what the tree lacks. In place."""
        run = tree.runs[0]
        searcher = np.int64(state["seat"])
        for simulation in range(run["simulation"], settings.simulations):
            lacking = _lacking(settings, run, tree)
            if lacking != _ENOUGH:
                run["simulation"] = simulation
                return lacking
            worlds[0] = state
            worlds[0]["rng"] = next_u64(run)
            prepare(params, worlds[0], searcher)
            run["learner"] = simulation - simulation // settings.seats * settings.seats
            simulate(params, settings, worlds, chances, averaged, searcher, run, tree)
            if settings.select == REGRET:
                _back_up_regrets(run, tree.nodes, tree.edges, tree.path, tree.policy)
            else:
                _back_up(settings, run, searcher, tree.nodes, tree.edges, tree.path)
            if run["own_edge"] != NO_NODE:
                own = tree.edges[run["own_edge"]]["action"]
                policy[own] += 1.0
                totals[own] += run["earned"][searcher]
        return _ENOUGH

    @merged
    def conclude(params, settings, state, tree, policy, totals):
        """Turn the counts into the policy. Returns the searcher's mean return. In place."""
        run = tree.runs[0]
        counted = 0.0  # fewer than all simulations where a full tree has had no node for the searcher's choice
        for a in range(len(policy)):
            counted += policy[a]
        if run["own_node"] == NO_NODE:  # the searcher's own choice was never reached
            tree.mask[:] = 0
            legal(params, state, tree.mask)
            for a in range(len(policy)):
                policy[a] = tree.mask[a]
        elif settings.select == REGRET:
            node = tree.nodes[run["own_node"]]
            for edge in range(node["start"], node["start"] + node["count"]):
                policy[tree.edges[edge]["action"]] = tree.edges[edge]["strategy"]
        total = 0.0
        returns = 0.0
        best = 0
        for a in range(len(policy)):
            total += policy[a]
            returns += totals[a]
            # Of actions visited equally often, take the one with the better mean return.
            if policy[a] > policy[best] or (policy[a] == policy[best] and totals[a] > totals[best] and policy[a] > 0.0):
                best = a
        for a in range(len(policy)):
            policy[a] = (1.0 if a == best else 0.0) if settings.best else policy[a] / total
        return returns / counted if counted > 0.0 else 0.0

    # The outermost kernel takes its arrays from Python and must release them, so it needs reference counting.
    @kernel(tag=tag)
    def search(params, settings, states, streams, worlds, chances, averaged, tree, policies, totals, values):
        run = tree.runs[0]
        for i in range(run["game"], len(states)):
            policy = policies[i]
            if run["simulation"] == 0:  # every tree has room for the first simulation, so this runs once per game
                run["rng"] = next_u64(streams[i])
                tree.table[:] = NO_NODE
                run["nodes"] = 0
                run["edges"] = 0
                run["leaves"] = 0
                run["own_node"] = NO_NODE
                policy[:] = 0.0
                totals[:] = 0.0
            lacking = search_on(params, settings, states[i], worlds, chances, averaged, tree, policy, totals)
            if lacking != _ENOUGH:
                run["game"] = i
                return lacking
            run["simulation"] = 0
            values[i] = conclude(params, settings, states[i], tree, policy, totals)
        return _ENOUGH

    return search


class _Found(NamedTuple):
    """Searches of n games and their results."""

    states: np.ndarray  # (n,)
    streams: np.ndarray  # (n,)
    policies: np.ndarray  # (n, actions) float64
    values: np.ndarray  # (n,) float64

    def part(self, games: slice) -> _Found:
        return _Found(*(array[games] for array in self))


@dataclasses.dataclass(frozen=True)
class MCTS:
    """Monte Carlo tree search, for every game: `mcts:50`, `mcts:1000,select=regret`, `mcts:50,opponent=random,expect=true`.

    Attributes:
        simulations: for each move, 1 to 10,000,000.
        select: "uct"; "regret": regret matching, for simultaneous choices; "joint": the searcher picks for all seats,
            for comparison only.
        exploration: "uct" and "joint": the constant of UCB1 on returns scaled to a range of 1 (default 1.4);
            "regret": how often the learning seat picks at random (default 0.2).
        opponent: "search": the tree search chooses for the others too; "random": they are modelled as uniformly random.
        expect: take the expectation over rolls instead of sampling them, and over a random opponent's simultaneous
            choice; only for games that offer it.
        rollout: how simulations continue below the tree: "random"; "numbers" (Liar's Dice); "strongest" (FateStones).
        final: "best" plays the most visited action, "mixed" in proportion to visits or, for "regret", the average
            strategy; None: "mixed" for "regret", else "best".
        memory: GiB that the tree of each thread may take, 0.01 to 1000. When it is full, simulations continue without adding
            to it.
        threads: that search several games at once, 1 to 256. What each game's search finds is the same.
    """

    simulations: int = 100
    select: Literal["uct", "regret", "joint"] = "uct"
    exploration: float | None = None
    opponent: Literal["search", "random"] = "search"
    expect: bool = False
    rollout: str = RANDOM
    final: Literal["best", "mixed"] | None = None
    memory: float = 2.0
    threads: int = 1

    def __post_init__(self) -> None:
        check_range("simulations", self.simulations, 1, MAX_SIMULATIONS)
        check_choice("select", self.select, SELECTIONS)
        if self.exploration is not None:
            check_range("exploration", self.exploration, 0, 1 if self.select == "regret" else 100, whole=False)
        check_choice("opponent", self.opponent, ("search", "random"))
        check_choice("expect", self.expect, (False, True))
        check_choice("rollout", self.rollout, (RANDOM, *rollouts()))
        check_choice("final", self.final, (None, "best", "mixed"))
        check_range("memory", self.memory, 0.01, 1000, whole=False)
        check_range("threads", self.threads, 1, MOST_THREADS)
        if self.select == "joint" and self.opponent == "random":
            raise ValueError("opponent must be 'search' with select='joint', which picks for the opponent, not 'random'")

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for a game that does not offer what the search is asked to use, or needs more `memory`."""
        if self.expect and variant.game.expect is None:
            raise ValueError(f"expect must be false for {variant.game.name}, which offers no exact expectation of a roll")
        rollout_of(variant.game, self.rollout)
        self._settings(variant.game, variant.facts)

    def check_in_passing(self, variant: Variant, asked: int = 1) -> None:
        """Raise ValueError for a search of more than a second or two, or one that takes threads."""
        fitting = MOST_MOVES_IN_PASSING // (variant.facts.max_steps * asked)
        most = max(1, min(MOST_IN_PASSING, fitting))
        for name, value, allowed in (
            ("simulations", self.simulations, most),
            ("memory", self.memory, MOST_GIB_IN_PASSING),
            ("threads", self.threads, 1),
        ):
            if value > allowed:
                raise ValueError(f"{name} must be at most {allowed:,} where people wait for a move, not {shown(value)}")

    def search(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """Search every game of the turn: the policies (n, num_actions) and the searchers' mean returns (n,), float64.

        Raises:
            ValueError: the game does not support the parameters, or `memory` is too little for it.
        """
        self.check_variant(turn.variant)
        settings = self._settings(turn.game, turn.variant.facts)
        policies = np.empty((len(turn), turn.variant.facts.num_actions))
        found = _Found(turn.states, turn.streams, policies, np.empty(len(turn)))
        threads = min(int(self.threads), len(turn))
        if threads <= 1:
            self._search_all(turn, settings, found)
        else:
            ends = [len(turn) * number // threads for number in range(threads + 1)]
            shares = [found.part(slice(first, last)) for first, last in itertools.pairwise(ends)]
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda share: self._search_all(turn, settings, share), shares))
        return found.policies, found.values

    def _search_all(self, turn: Turn, settings: _Settings, games: _Found) -> None:
        """Search states one after another, with one tree. In place."""
        game, facts = turn.game, turn.variant.facts
        search = compile_search(game, self.rollout)
        averaged = self.expect and settings.opponent_random and facts.simultaneous and facts.num_seats == 2
        worlds, chances = np.zeros(facts.num_actions + 1, game.state), np.zeros(facts.num_actions)
        found = games.policies, np.zeros(facts.num_actions), games.values
        tree = _new_tree(settings, facts)
        while lacking := search(turn.params, settings, games.states, games.streams, worlds, chances, averaged, tree, *found):
            tree = _grown(tree, lacking, settings)
        if tree.runs["full"][0]:
            _tell_full(self.memory, int(tree.runs["nodes"][0]))

    def _settings(self, game: Game, facts: Facts) -> _Settings:
        regret = self.select == "regret"
        exploration = self.exploration if self.exploration is not None else (0.2 if regret else 1.4)
        most_nodes, most_edges = _most(self.memory, int(self.simulations), game, facts)
        return _Settings(
            simulations=int(self.simulations),
            exploration=float(exploration),
            select=SELECTIONS.index(self.select),
            opponent_random=self.opponent == "random",
            expect=self.expect,
            best=(self.final or ("mixed" if regret else "best")) == "best",
            span=max(float(facts.max_return - facts.min_return), 1e-9),
            seats=facts.num_seats,
            most_nodes=most_nodes,
            most_edges=most_edges,
        )

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The policy of one search for each game, (n, num_actions) float64; another search may find another."""
        return self.search(turn)[0]

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64."""
        return draw_actions(turn.streams, self.probabilities(turn))


AGENTS = {"mcts": MCTS}
