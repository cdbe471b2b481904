"""Two tree searches that `reproduce fatestones` compares: the FateStones project's own, and one that picks for all seats.

Source of the project's own
    The project's `gameSimulator.py` (GameAISchool2025members/FateStones, commit 5de8e6c), which passes its positions to
    L. H. Miles's minimal MCTS (the gist that the project's README names). Reimplemented from their behaviour.

Behaviour of the project's own, which does not find the best die
    A position becomes a tree with three kinds of nodes in turn: dice in hand, a pair of dice chosen, a pair of faces rolled.
    After a tie the tree continues with the dice that are left. Four traits keep it from finding the best die:

    - The searcher chooses both dice of a pair, and plays its own die of the pair with the best mean reward.
    - A face that a die has several times counts once: 144444 rolls 1 half of the time.
    - The tree chooses the rolls too, by UCB1, as if a player chose them.
    - The reward r becomes 1 − r at each level, rolls included. So the rolls are an opponent's choice; after one tie, three
      levels further down, wins count as losses, and after two ties as wins again.

    Each simulation expands one node: the first one the root, the next nine one pair each of three dice against three. So
    MCTS(10) sees each pair once.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from dice_envs.agent import KernelAgent, Promises
from dice_envs.agent.kernel import AgentKernel
from dice_envs.agents.base import Deterministic, OfOneGame
from dice_envs.agents.mcts import MCTS
from dice_envs.agents.mcts.selection import Selection, choose_by_ucb, keep_visits
from dice_envs.agents.mcts.tree import SALT, count_visit
from dice_envs.core.dice import below, mix
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_range
from dice_envs.games.fatestones import COUNTS, NUM_FACES

HAND = 3  # dice of the source's hands
MAX_SIMULATIONS = 1_000_000
# A node's number: (own dice left, the other's, as bits), then 0 or 1 + the pair chosen, then 0 or 1 + the faces rolled.
_ROLLS = 1 + NUM_FACES * NUM_FACES
_A_POSITION = (1 + HAND * HAND) * _ROLLS
_NODES = (1 << 2 * HAND) * _A_POSITION
_MOST_CHILDREN = NUM_FACES * NUM_FACES
_MOST_DEPTH = 3 * HAND + 1  # three levels a roll, and the position in which no dice are left


@kernel(allocates=False)
def _children(dice, node, out):
    """Write the node's children into `out` (_MOST_CHILDREN,) and return their number, 0 for a terminal node. In place.

    Args:
        dice: (2, HAND) rows of FACES, the searcher's first.
        node: its number.
    """
    position, pair, roll = node // _A_POSITION, node % _A_POSITION // _ROLLS, node % _ROLLS
    own, other = position >> HAND, position % (1 << HAND)
    count = 0
    if pair == 0:
        for i in range(HAND):
            for j in range(HAND):
                if own >> i & 1 and other >> j & 1:
                    out[count] = node + (1 + i * HAND + j) * _ROLLS
                    count += 1
        return count
    i, j = (pair - 1) // HAND, (pair - 1) % HAND
    if roll == 0:
        for mine in range(NUM_FACES):
            for theirs in range(NUM_FACES):
                if COUNTS[dice[0, i], mine] > 0 and COUNTS[dice[1, j], theirs] > 0:
                    out[count] = node + 1 + mine * NUM_FACES + theirs
                    count += 1
    elif (roll - 1) // NUM_FACES == (roll - 1) % NUM_FACES:
        out[0] = ((own ^ (1 << i)) << HAND | (other ^ (1 << j))) * _A_POSITION
        count = 1
    return count


@kernel(allocates=False)
def _reward(node):
    """Return a terminal node's reward to the searcher: 1 for a higher roll, 0 for a lower one, 0.5 when no dice are left."""
    roll = node % _ROLLS
    if roll == 0:
        return 0.5
    return 1.0 if (roll - 1) // NUM_FACES > (roll - 1) % NUM_FACES else 0.0


@kernel(allocates=False)
def _pick(children, count, parent, visits, totals, stream):
    """Return a random unvisited child; if there is none, a random one with the highest UCB1 (constant 1)."""
    chosen = children[0]
    fresh = 0
    for k in range(count):
        if visits[children[k]] == 0:
            fresh += 1
            if below(stream, fresh) == 0:
                chosen = children[k]
    if fresh > 0:
        return chosen
    best = -1.0
    equal = 0
    for k in range(count):
        child = children[k]
        value = totals[child] / visits[child] + math.sqrt(math.log(visits[parent]) / visits[child])
        equal = 1 if value > best else equal + 1 if value == best else equal
        if value > best or (value == best and below(stream, equal) == 0):
            best = value
            chosen = child
    return chosen


@kernel(allocates=False)
def _simulate(dice, root, visits, totals, path, children, stream):
    """Simulate once: descend to an unvisited node, play at random from there to the end, and back up the reward. In place."""
    node = root
    depth = 0
    path[0] = root
    count = _children(dice, node, children)
    while visits[node] > 0 and count > 0:
        node = _pick(children, count, node, visits, totals, stream)
        depth += 1
        path[depth] = node
        count = _children(dice, node, children)
    is_turned = True
    while count > 0:
        node = children[below(stream, count)]
        is_turned = not is_turned
        count = _children(dice, node, children)
    reward = 1.0 - _reward(node) if is_turned else _reward(node)
    for level in range(depth, -1, -1):
        visits[path[level]] += 1
        totals[path[level]] += reward
        reward = 1.0 - reward


@kernel
def _choose(params, options, state, stream):
    """Return the mover's die of the pair with the highest mean reward after `options["simulations"]` simulations."""
    visits, totals = np.zeros(_NODES, np.int64), np.zeros(_NODES)
    path, children = np.empty(_MOST_DEPTH, np.int64), np.empty(_MOST_CHILDREN, np.int64)
    seat, left = np.int64(state["seat"]), np.int64(state["left"])
    dice = np.zeros((2, HAND), np.int64)
    for i in range(left):
        dice[0, i] = state["hands"][seat, i]
        dice[1, i] = state["hands"][1 - seat, i]
    root = (((1 << left) - 1) << HAND | ((1 << left) - 1)) * _A_POSITION
    for _ in range(options["simulations"]):
        _simulate(dice, root, visits, totals, path, children, stream)
    best = -1.0
    equal = 0
    chosen = 0
    for k in range(_children(dice, root, children)):
        child = children[k]
        mean = totals[child] / visits[child] if visits[child] > 0 else -0.5  # below every mean of visited pairs
        equal = 1 if mean > best else equal + 1 if mean == best else equal
        if mean > best or (mean == best and below(stream, equal) == 0):
            best = mean
            chosen = (child % _A_POSITION // _ROLLS - 1) // HAND
    return chosen


@dataclasses.dataclass(frozen=True)
class ProjectSearch(OfOneGame, KernelAgent, Deterministic):
    """The FateStones project's own search. Ties are broken at random; the source takes the first of a set.

    Attributes:
        simulations: for each choice, 1 to 1,000,000; the source publishes 10 and 50.
    """

    plays = "fatestones"
    promises = Promises(memoryless=True)

    simulations: int = 10

    def __post_init__(self) -> None:
        check_range("simulations", self.simulations, 1, MAX_SIMULATIONS)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or hands of more than three dice."""
        super().check_variant(variant)
        check_range("hand_size", variant.params.hand_size, 1, HAND)

    def kernel(self, variant: Variant) -> AgentKernel:
        """Return the search as a kernel."""
        options = np.zeros((), [("simulations", np.int64)])
        options["simulations"] = self.simulations
        return AgentKernel(_choose, options, reads_hidden=False)


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
