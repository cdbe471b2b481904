"""Monte Carlo tree search for every game of the suite, in compiled code.

One engine serves turns and simultaneous choices, chance and hidden information. It knows a game by its kernels only:

- Every simulation starts from the searched state with all that the searcher cannot see drawn again, its dice to
  come included: information set MCTS (Cowling, Powley, Whitehouse, "Information Set Monte Carlo Tree Search", IEEE
  TCIAIG 4(2), 2012, section IV; each seat has its own tree here, their MO-ISMCTS).
- A node is what one seat sees when it is to move, found by a hash of its observation. Chance needs no nodes then: a
  throw leads to whatever the mover sees next. And since seats that choose at the same time cannot see each other's
  choice, they select independently of each other: decoupled selection (Tak, Lanctot, Winands, "Monte Carlo Tree
  Search Variants for Simultaneous Move Games", IEEE CIG 2014).
- A simulation adds one leaf and plays on from there by a rollout policy.
- Where a game can average over a roll (`Game.expect`), so can a simulation: it goes on as the game does if it goes on,
  weighted by the chance of that, and the dice add no noise.

Selection rules, `select`:
    uct      UCB1 on each seat's own returns (Kocsis, Szepesvári, "Bandit based Monte-Carlo Planning", ECML 2006).
    regret   regret matching on sampled returns, played as the average strategy (Lanctot, Lisý, Winands, "Monte Carlo
             Tree Search in Simultaneous Move Games with Applications to Goofspiel", CGW 2013). Seats take turns, from
             simulation to simulation, in exploring and learning while the others play their current strategies
             (Lanctot et al., "Monte Carlo Sampling for Regret Minimization in Extensive Games", NIPS 2009), and the
             mean return of each action is the baseline of its estimate (Schmid et al., "Variance Reduction in Monte
             Carlo Counterfactual Regret Minimization", AAAI 2019). Converges to equilibrium where seats hide nothing
             but choices made at the same time; with other hidden information it is a heuristic.
    joint    the searcher picks for everybody, to its own advantage, and sees what it has picked: what the FateStones
             project's simulator does with the two picks of a turn. It is here to be measured, not to be used.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Literal, NamedTuple

import numpy as np

from dice_envs.agent import Turn
from dice_envs.dice import below, mix, next_u64, uniform
from dice_envs.game import MAX_SEATS, OVER, Facts, Game, check_choice, check_range
from dice_envs.kernel import kernel

from .rollouts import RANDOM, ROLLOUTS, rollout_of

__all__ = ["AGENTS", "MCTS", "compile_search"]

SELECTIONS = ("uct", "regret", "joint")
UCT, REGRET, JOINT = range(3)
MAX_SIMULATIONS = 10_000_000
NO_NODE = -1  # in the hash table: a free place; in a path: a move that was not chosen in the tree


class _Settings(NamedTuple):
    """What the kernels receive."""

    simulations: int
    exploration: float
    select: int  # UCT, REGRET or JOINT
    opponent_random: bool
    expect: bool
    best: bool  # the policy is the most visited action and not the mix
    span: float  # max_return − min_return of the game
    seats: int


# Few arrays of records, because every array that a kernel hands on is counted in and out.
_NODE = np.dtype([("key", np.uint64), ("start", np.int64), ("count", np.int64), ("visits", np.int64)])
_EDGE = np.dtype(
    [
        ("mean", np.float64),  # of the mover's returns from here on
        ("width", np.float64),  # 1 / sqrt(visits)
        ("regret", np.float64),  # summed; used by REGRET, as the next
        ("strategy", np.float64),  # summed
        ("visits", np.int32),
        ("action", np.int32),
    ]
)
_STEP = np.dtype(  # a tree move of the current simulation
    [
        ("node", np.int64),
        ("edge", np.int64),
        ("seat", np.int64),
        ("chance", np.float64),  # with which the edge was chosen
        ("weight", np.float64),  # of the simulation at this node; below 1 where rolls were averaged over
        ("before", np.float64, (MAX_SEATS,)),  # returns earned before this node
    ]
)
_RUN = np.dtype(  # the current simulation
    [
        ("rng", np.uint64),  # of the search itself
        ("chain", np.uint64),  # hash of the path, where nodes depend on it
        ("nodes", np.int64),  # made so far by all simulations, and the edges of those that have been expanded
        ("edges", np.int64),
        ("depth", np.int64),  # tree moves so far
        ("in_tree", np.int64),  # 1 until a node has been added
        ("learner", np.int64),  # the seat that learns (REGRET)
        ("own_edge", np.int64),  # the searcher's first move, or NO_NODE
        ("own_node", np.int64),  # where it was chosen
        ("earned", np.float64, (MAX_SEATS,)),  # returns so far
        ("rewards", np.float64, (MAX_SEATS,)),  # of one move
    ]
)


class _Tree(NamedTuple):
    """Arrays of one search, emptied for the next."""

    table: np.ndarray  # (power of two,) int32: node at each place of the hash table, or NO_NODE
    nodes: np.ndarray  # (nodes,) of _NODE; edges of a node are start … start + count − 1, none at first
    edges: np.ndarray  # (edges,) of _EDGE
    path: np.ndarray  # (depth,) of _STEP
    runs: np.ndarray  # (1,) of _RUN
    observation: np.ndarray  # (even number,) float32
    mask: np.ndarray  # (actions,) int8
    policy: np.ndarray  # (actions,) float64


def _new_tree(simulations: int, facts: Facts) -> _Tree:
    nodes = simulations + 3  # a leaf a simulation, and the first nodes of both seats
    return _Tree(
        table=np.empty(1 << (2 * nodes).bit_length(), np.int32),
        nodes=np.empty(nodes, _NODE),
        edges=np.empty(nodes * facts.num_actions, _EDGE),
        path=np.empty(min(facts.max_steps, nodes) + 1, _STEP),
        runs=np.zeros(1, _RUN),
        observation=np.zeros(facts.observation_size + facts.observation_size % 2, np.float32),
        mask=np.zeros(facts.num_actions, np.int8),
        policy=np.zeros(facts.num_actions),
    )


_SALT = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_S32, _ONE = np.uint64(32), np.uint64(1)
_LIGHT = 0.02  # simulations of less weight end, or go on in its place with a chance of weight / _LIGHT


@kernel(allocates=False)
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


@kernel(allocates=False)
def _matched(start, count, edges, policy):
    """The current strategy of a node, in proportion to positive regrets. `policy` is modified in place."""
    total = 0.0
    for k in range(count):
        policy[k] = max(0.0, edges[start + k]["regret"])
        total += policy[k]
    for k in range(count):
        policy[k] = policy[k] / total if total > 0.0 else 1.0 / count


@kernel(allocates=False)
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
    """The edge; its chance is noted in the step. In place."""
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


@kernel(allocates=False)
def _count(edge, value):
    """One more visit, which returned the value. In place."""
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
        for k in range(count):  # weighted by age: early strategies count for little
            edges[start + k]["strategy"] += node["visits"] * policy[k]
        if step["seat"] == learner:
            # Each action is worth its mean so far; the one taken is corrected by what came of it over the chance that
            # it was taken, so that the estimates of all are without bias.
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
        writes the policy that the search arrives at and the searcher's mean return. All but the first three and
        `averaged` are modified in place.

    Raises:
        ValueError: the game has no such rollout.
    """
    legal, play, observe, reroll_hidden = game.legal, game.play, game.observe, game.reroll_hidden
    roll_out = rollout_of(game, rollout)
    pick_random = rollout_of(game, RANDOM)
    tag = f"{game.deal.__module__}.{game.name}:{rollout}"
    compiled = functools.partial(kernel, tag=tag, allocates=False)

    if game.retract is None:

        @compiled
        def prepare(params, state, seat):
            """Draw again what the seat cannot see; choices not yet revealed are taken back. In place."""
            reroll_hidden(params, state, seat)
    else:
        retract = game.retract

        @compiled
        def prepare(params, state, seat):
            reroll_hidden(params, state, seat)
            retract(params, state)

    if game.expect is None:

        @compiled
        def advance(params, settings, state, action, run, share):
            """Play and add what each seat earns, times `share`. Returns the chance that the game goes on. In place."""
            play(params, state, action)
            for seat in range(settings.seats):
                run["earned"][seat] += share * state["rewards"][seat]
            return 1.0
    else:
        expect = game.expect

        @compiled
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
                edge["regret"] = 0.0
                edge["strategy"] = 0.0
                count += 1
        node["start"] = start
        node["count"] = count
        run["edges"] = start + count

    @compiled
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
        words = observation.view(np.uint64)
        key = run["chain"] ^ (np.uint64(seat) + _SALT)
        for k in range(len(words)):
            key = (key ^ words[k]) * _SPREAD
            key ^= key >> _S32
        number = _find(key, tree.table, tree.nodes)
        node = tree.nodes[number if number >= 0 else run["nodes"]]
        if number < 0:
            tree.table[-1 - number] = run["nodes"]
            number = run["nodes"]
            run["nodes"] += 1
            node["key"] = key
            node["visits"] = 0
            node["count"] = 0
            own_first = seat == searcher and run["own_edge"] == NO_NODE
            if run["depth"] > 0 and not own_first:  # a leaf: most are never seen again, so they get no edges yet
                run["in_tree"] = 0
                return np.int64(roll_out(params, state, tree.mask))
        if node["count"] == 0:
            expand(params, state, node, run, tree.edges, tree.mask)
        step = tree.path[run["depth"]]
        run["depth"] += 1
        step["node"] = number
        step["seat"] = seat
        step["weight"] = weight
        for other in range(settings.seats):
            step["before"][other] = run["earned"][other]
        if settings.select == REGRET:
            edge = _select_regret(settings, run, node, tree.edges, tree.policy, step)
        else:
            edge = _select_uct(settings, node, tree.edges)
        step["edge"] = edge
        if seat == searcher and run["own_edge"] == NO_NODE:
            run["own_edge"] = edge
            run["own_node"] = number
        action = np.int64(tree.edges[edge]["action"])
        if settings.select == JOINT:  # what has been picked is seen: nodes are those of a path
            run["chain"] = mix(run["chain"] + _SALT * np.uint64(action + 1))
        return action

    @compiled
    def average_turn(params, settings, worlds, chances, searcher, weight, run, tree):
        """A turn in which two seats choose at once, averaged over a uniformly random opponent and the roll.

        The state is `worlds[0]`. Each choice of the opponent makes a world; the searcher, who cannot tell them apart,
        chooses once. The state becomes one of the worlds, drawn by its chance. Returns the weight of what follows.
        In place.
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
        at = uniform(run) * total
        chosen = 0
        for k in range(count):
            if chances[k] > 0.0:
                chosen = k
                at -= chances[k]
                if at < 0.0:
                    break
        worlds[0] = worlds[1 + chosen]
        return weight * total

    @compiled
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

    # The outermost kernel takes its arrays from Python and must give them back, so it counts references.
    @kernel(tag=tag)
    def search(params, settings, states, streams, worlds, chances, averaged, tree, policies, totals, values):
        run = tree.runs[0]
        for i in range(len(states)):
            searcher = np.int64(states[i]["seat"])
            tree.table[:] = NO_NODE
            run["rng"] = next_u64(streams[i])
            run["nodes"] = 0
            run["edges"] = 0
            run["own_node"] = NO_NODE
            policy = policies[i]
            policy[:] = 0.0
            totals[:] = 0.0
            for simulation in range(settings.simulations):
                worlds[0] = states[i]
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
            if run["own_node"] == NO_NODE:  # too few simulations to have come to the searcher's own choice
                tree.mask[:] = 0
                legal(params, states[i], tree.mask)
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
                # Of actions visited equally often, the one of the better mean.
                if policy[a] > policy[best] or (policy[a] == policy[best] and totals[a] > totals[best] and policy[a] > 0.0):
                    best = a
            for a in range(len(policy)):
                policy[a] = (1.0 if a == best else 0.0) if settings.best else policy[a] / total
            values[i] = returns / settings.simulations

    return search


@kernel
def _choose_all(streams, policies, actions):
    for i in range(len(policies)):
        at = uniform(streams[i])
        for a in range(policies.shape[1]):
            if policies[i, a] > 0.0:
                actions[i] = a
                at -= policies[i, a]
                if at < 0.0:
                    break


@dataclasses.dataclass(frozen=True)
class MCTS:
    """Monte Carlo tree search, for every game: `mcts:50`, `mcts:1000,select=regret`, `mcts:50,opponent=random,expect=true`.

    Attributes:
        simulations: for each move, 1 to 10,000,000.
        select: "uct"; "regret": regret matching, for choices made at the same time; "joint": the searcher picks for
            everybody, as the FateStones project's search does.
        exploration: "uct" and "joint": the constant of UCB1 on returns scaled to a range of 1 (default 1.4);
            "regret": how often the learning seat picks at random (default 0.2).
        opponent: "search": the others are searched for too; "random": they are modelled as uniformly random.
        expect: average over rolls instead of sampling them, and over a random opponent's choice made at the same
            time; only for games that offer it.
        rollout: how simulations go on below the tree: "random"; "numbers" (Liar's Dice); "strongest" (FateStones).
        final: "best" plays the most visited action, "mixed" in proportion to visits or, for "regret", the average
            strategy; None: "mixed" for "regret", else "best".
    """

    simulations: int = 100
    select: Literal["uct", "regret", "joint"] = "uct"
    exploration: float | None = None
    opponent: Literal["search", "random"] = "search"
    expect: bool = False
    rollout: str = RANDOM
    final: Literal["best", "mixed"] | None = None

    def __post_init__(self) -> None:
        check_range("simulations", self.simulations, 1, MAX_SIMULATIONS)
        check_choice("select", self.select, SELECTIONS)
        if self.exploration is not None:
            check_range("exploration", self.exploration, 0, 1 if self.select == "regret" else 100, whole=False)
        check_choice("opponent", self.opponent, ("search", "random"))
        check_choice("expect", self.expect, (False, True))
        check_choice("rollout", self.rollout, (RANDOM, *ROLLOUTS))
        check_choice("final", self.final, (None, "best", "mixed"))
        if self.select == "joint" and self.opponent == "random":
            raise ValueError("opponent must be 'search' with select='joint', which picks for the opponent, not 'random'")

    def search(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """Search every game of the turn: the policies (n, num_actions) and the searchers' mean returns (n,), float64.

        Raises:
            ValueError: the game does not offer what the search is asked to use.
        """
        game, facts = turn.game, turn.variant.facts
        if self.expect and game.expect is None:
            raise ValueError(f"expect must be false for {game.name}, which offers no exact expectation of a roll")
        search = compile_search(game, self.rollout)
        regret = self.select == "regret"
        exploration = self.exploration if self.exploration is not None else (0.2 if regret else 1.4)
        settings = _Settings(
            simulations=int(self.simulations),
            exploration=float(exploration),
            select=SELECTIONS.index(self.select),
            opponent_random=self.opponent == "random",
            expect=self.expect,
            best=(self.final or ("mixed" if regret else "best")) == "best",
            span=max(float(facts.max_return - facts.min_return), 1e-9),
            seats=facts.num_seats,
        )
        averaged = self.expect and settings.opponent_random and facts.simultaneous and facts.num_seats == 2
        policies, values = np.empty((len(turn), facts.num_actions)), np.empty(len(turn))
        search(
            turn.params,
            settings,
            turn.states,
            turn.streams,
            np.zeros(facts.num_actions + 1, game.state),
            np.zeros(facts.num_actions),
            averaged,
            _new_tree(self.simulations, facts),
            policies,
            np.zeros(facts.num_actions),
            values,
        )
        return policies, values

    def probabilities(self, turn: Turn) -> np.ndarray:
        """The policy of one search for each game, (n, num_actions) float64; another search may find another."""
        return self.search(turn)[0]

    def act(self, turn: Turn) -> np.ndarray:
        """One legal action for each game, (n,) int64."""
        actions = np.zeros(len(turn), np.int64)
        _choose_all(turn.streams, self.search(turn)[0], actions)
        return actions


AGENTS = {"mcts": MCTS}
