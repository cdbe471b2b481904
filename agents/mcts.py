"""Monte Carlo tree search for every game of the suite, in compiled code.

One engine serves turns and simultaneous choices, chance and hidden information. It knows a game by its kernels only:

- Every simulation starts from the searched state with all that the searcher cannot see drawn again, its dice to
  come included: information set MCTS (Cowling, Powley, Whitehouse, "Information Set Monte Carlo Tree Search", IEEE
  TCIAIG 4(2), 2012, section IV; each seat has its own tree here, their MO-ISMCTS).
- A node is what one seat sees when it is to move, found by a hash of its observation. Chance needs no nodes then: a
  throw leads to whatever the mover sees next. And since seats that choose at the same time cannot see each other's
  choice, they select independently of each other: decoupled selection (Tak, Lanctot, Winands, "Monte Carlo Tree
  Search Variants for Simultaneous Move Games", IEEE CIG 2014).
- A simulation adds one node and plays on from there by a rollout policy.
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

from agents.rollouts import RANDOM, ROLLOUTS, rollout_of
from dice_envs.agent import Turn
from dice_envs.dice import below, mix, next_u64, uniform
from dice_envs.game import OVER, Facts, Game, check_choice, check_range
from dice_envs.kernel import kernel

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


class _Tree(NamedTuple):
    """Arrays of one search, emptied for the next. Edges of node n are `start[n]` … `start[n] + count[n] − 1`."""

    table: np.ndarray  # (power of two,) int32: node at each place of the hash table, or NO_NODE
    keys: np.ndarray  # (nodes,) uint64
    start: np.ndarray  # (nodes,) int64
    count: np.ndarray  # (nodes,) int64
    node_visits: np.ndarray  # (nodes,) int64
    action: np.ndarray  # (edges,) int16
    visits: np.ndarray  # (edges,) int32
    total: np.ndarray  # (edges,) float64: sum of the mover's returns from here on
    regret: np.ndarray  # (edges,) float64, summed; only for REGRET, as the next
    strategy: np.ndarray  # (edges,) float64, summed


class _Run(NamedTuple):
    """Work space of one simulation."""

    # The path: tree moves of this simulation, (depth,) each.
    node: np.ndarray  # int64
    edge: np.ndarray  # int64
    seat: np.ndarray  # int64
    chance: np.ndarray  # float64: with which the edge was chosen
    weight: np.ndarray  # float64: chance that the game came to this node, where rolls were averaged over
    before: np.ndarray  # (depth, seats) float64: returns earned before this node
    # The rest.
    counter: np.ndarray  # (5,) int64: NODES, DEPTH, IN_TREE, LEARNER and OWN
    chain: np.ndarray  # (1,) uint64: hash of the path, where nodes depend on it
    observation: np.ndarray  # (even number,) float32
    mask: np.ndarray  # (actions,) int8
    policy: np.ndarray  # (actions,) float64
    earned: np.ndarray  # (seats,) float64: returns of the simulation so far
    rewards: np.ndarray  # (seats,) float64: those of one move
    own_visits: np.ndarray  # (actions,) float64: how often the searcher's first move was each
    own_total: np.ndarray  # (actions,) float64: its returns after each
    world_chance: np.ndarray  # (actions,) float64: see `average_turn`


NODES, DEPTH, IN_TREE, LEARNER, OWN = range(5)  # nodes made; tree moves so far; 1 before a node was added; the seat
#                                                 that learns (REGRET); the searcher's first move, as an edge


def _new_tree(simulations: int, actions: int, regret: bool) -> _Tree:
    nodes = simulations + 1
    edges = nodes * actions
    places = 1 << (2 * nodes).bit_length()
    sums = edges if regret else 0
    return _Tree(
        table=np.empty(places, np.int32),
        keys=np.empty(nodes, np.uint64),
        start=np.empty(nodes, np.int64),
        count=np.empty(nodes, np.int64),
        node_visits=np.empty(nodes, np.int64),
        action=np.empty(edges, np.int16),
        visits=np.empty(edges, np.int32),
        total=np.empty(edges),
        regret=np.empty(sums),
        strategy=np.empty(sums),
    )


def _new_run(depth: int, facts: Facts) -> _Run:
    return _Run(
        node=np.empty(depth, np.int64),
        edge=np.empty(depth, np.int64),
        seat=np.empty(depth, np.int64),
        chance=np.empty(depth),
        weight=np.empty(depth),
        before=np.empty((depth, facts.num_seats)),
        counter=np.zeros(5, np.int64),
        chain=np.zeros(1, np.uint64),
        observation=np.zeros(facts.observation_size + facts.observation_size % 2, np.float32),
        mask=np.zeros(facts.num_actions, np.int8),
        policy=np.zeros(facts.num_actions),
        earned=np.zeros(facts.num_seats),
        rewards=np.zeros(facts.num_seats),
        own_visits=np.zeros(facts.num_actions),
        own_total=np.zeros(facts.num_actions),
        world_chance=np.zeros(facts.num_actions),
    )


_SALT = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_S32 = np.uint64(32)


@kernel
def _find(key, tree):
    """The node of this key, or −1 − the free place of the table where it belongs."""
    last = np.uint64(len(tree.table) - 1)
    place = key & last
    while True:
        node = np.int64(tree.table[place])
        if node == NO_NODE:
            return -1 - np.int64(place)
        if tree.keys[node] == key:
            return node
        place = (place + np.uint64(1)) & last


@kernel
def _matched(start, count, tree, policy):
    """The current strategy of a node, in proportion to positive regrets. `policy` is modified in place."""
    total = 0.0
    for k in range(count):
        policy[k] = max(0.0, tree.regret[start + k])
        total += policy[k]
    for k in range(count):
        policy[k] = policy[k] / total if total > 0.0 else 1.0 / count


@kernel
def _select_uct(settings, node, tree):
    start, count, visits = tree.start[node], tree.count[node], tree.node_visits[node]
    if visits < count:  # edges lie in random order
        return start + visits
    log_visits = np.log(np.float64(visits))
    best = start
    best_score = -np.inf
    for edge in range(start, start + count):
        tried = np.float64(tree.visits[edge])
        score = tree.total[edge] / (tried * settings.span) + settings.exploration * np.sqrt(log_visits / tried)
        if score > best_score:
            best = edge
            best_score = score
    return best


@kernel
def _select_regret(settings, state, node, tree, run, explores):
    """The edge; the chance of it goes on the path. In place."""
    start, count = tree.start[node], tree.count[node]
    _matched(start, count, tree, run.policy)
    share = settings.exploration if explores else 0.0
    at = uniform(state)
    chosen = 0
    chance = 0.0
    for k in range(count):
        of_this = (1.0 - share) * run.policy[k] + share / count
        if of_this > 0.0:
            chosen = k
            chance = of_this
            at -= of_this
            if at < 0.0:
                break
    run.chance[run.counter[DEPTH]] = chance
    return start + chosen


@kernel
def _back_up(settings, tree, run, searcher):
    """Add one simulation's returns to the nodes on its path, the last first. In place."""
    learner = run.counter[LEARNER] if settings.select == REGRET else searcher
    last = run.counter[DEPTH] - 1
    rest = 0.0  # the learner's value of the node after this one
    for d in range(last, -1, -1):
        node, edge = run.node[d], run.edge[d]
        if settings.select == REGRET:
            start, count = tree.start[node], tree.count[node]
            if d == last:
                value = (run.earned[learner] - run.before[d, learner]) / run.weight[d]
            else:
                value = (run.before[d + 1, learner] - run.before[d, learner] + run.weight[d + 1] * rest) / run.weight[d]
            _matched(start, count, tree, run.policy)
            for k in range(count):  # weighted by age: early strategies count for little
                tree.strategy[start + k] += (tree.node_visits[node] + 1) * run.policy[k]
            if run.seat[d] == learner:
                # Each action is worth its mean so far; the one taken is corrected by what came of it over the chance
                # that it was taken, so that the estimates of all are without bias.
                tried = tree.visits[edge]
                correction = (value - (tree.total[edge] / tried if tried else 0.0)) / run.chance[d]
                expected = run.policy[edge - start] * correction
                for k in range(count):
                    tried = tree.visits[start + k]
                    expected += run.policy[k] * (tree.total[start + k] / tried if tried else 0.0)
                for k in range(count):
                    tried = tree.visits[start + k]
                    tree.regret[start + k] += (tree.total[start + k] / tried if tried else 0.0) - expected
                tree.regret[edge] += correction
                tree.visits[edge] += 1
                tree.total[edge] += value
                value = expected
            rest = value
        else:
            whose = searcher if settings.select == JOINT else run.seat[d]
            tree.visits[edge] += 1
            tree.total[edge] += (run.earned[whose] - run.before[d, whose]) / run.weight[d]
        tree.node_visits[node] += 1


@functools.cache
def compile_search(game: Game, rollout: str = RANDOM) -> Any:
    """The search of one game, compiled on first use.

    Returns:
        A kernel `(params, settings, states (n,), streams (n,), worlds, tree, run, policies (n, actions), values (n,))`
        that searches each state for its seat to move, drawing from its stream. It writes the policy that the search
        arrives at and the searcher's mean return. All but the first three are modified in place.

    Raises:
        ValueError: the game has no such rollout.
    """
    legal, play, observe, reroll_hidden = game.legal, game.play, game.observe, game.reroll_hidden
    roll_out = rollout_of(game, rollout)
    pick_random = rollout_of(game, RANDOM)
    compiled = functools.partial(kernel, tag=f"{game.deal.__module__}.{game.name}:{rollout}")

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
        def advance(params, settings, state, action, rewards):
            """Play; every seat's rewards are written. Returns the chance that the game stands as it now does. In place."""
            play(params, state, action)
            for seat in range(settings.seats):
                rewards[seat] = state["rewards"][seat]
            return 1.0
    else:
        expect = game.expect

        @compiled
        def advance(params, settings, state, action, rewards):
            if settings.expect:
                return expect(params, state, action, rewards)
            play(params, state, action)
            for seat in range(settings.seats):
                rewards[seat] = state["rewards"][seat]
            return 1.0

    @compiled
    def add(params, state, key, place, tree, run):
        """Make a node with an edge for each legal action, in random order. In place."""
        node = run.counter[NODES]
        run.counter[NODES] = node + 1
        tree.table[place] = node
        tree.keys[node] = key
        tree.node_visits[node] = 0
        start = tree.start[node - 1] + tree.count[node - 1] if node > 0 else np.int64(0)
        mask = run.mask
        mask[:] = 0
        legal(params, state, mask)
        count = 0
        for a in range(len(mask)):
            if mask[a] != 0:
                other = below(state, count + 1)  # an inside-out shuffle
                tree.action[start + count] = tree.action[start + other]
                tree.action[start + other] = a
                tree.visits[start + count] = 0
                tree.total[start + count] = 0.0
                count += 1
        tree.start[node] = start
        tree.count[node] = count
        return node

    @compiled
    def node_of(params, settings, state, tree, run):
        """The node of what the seat to move sees, made if there is none. In place."""
        observation = run.observation
        observation[:] = 0
        seat = np.int64(state["seat"])
        observe(params, state, seat, observation)
        words = observation.view(np.uint64)
        key = run.chain[0] ^ (np.uint64(seat) + _SALT)
        for k in range(len(words)):
            key = (key ^ words[k]) * _SPREAD
            key ^= key >> _S32
        node = _find(key, tree)
        if node < 0:
            node = add(params, state, key, -1 - node, tree, run)
            run.counter[IN_TREE] = 0
            if settings.select == REGRET:
                for edge in range(tree.start[node], tree.start[node] + tree.count[node]):
                    tree.regret[edge] = 0.0
                    tree.strategy[edge] = 0.0
        return node

    @compiled
    def decide(params, settings, state, searcher, weight, tree, run):
        """The action of the seat to move, from the tree while the simulation is in it. In place."""
        seat = np.int64(state["seat"])
        if settings.opponent_random and seat != searcher:
            return np.int64(pick_random(params, state, run.mask))
        if run.counter[IN_TREE] == 0:
            return np.int64(roll_out(params, state, run.mask))
        node = node_of(params, settings, state, tree, run)
        if settings.select == REGRET:
            edge = _select_regret(settings, state, node, tree, run, seat == run.counter[LEARNER])
        else:
            edge = _select_uct(settings, node, tree)
        depth = run.counter[DEPTH]
        run.counter[DEPTH] = depth + 1
        run.node[depth] = node
        run.edge[depth] = edge
        run.seat[depth] = seat
        run.weight[depth] = weight
        for other in range(settings.seats):
            run.before[depth, other] = run.earned[other]
        if seat == searcher and run.counter[OWN] < 0:
            run.counter[OWN] = edge
        action = np.int64(tree.action[edge])
        if settings.select == JOINT:  # what has been picked is seen: nodes are those of a path
            run.chain[0] = mix(run.chain[0] + _SALT * np.uint64(action + 1))
        return action

    @compiled
    def average_turn(params, settings, worlds, searcher, weight, tree, run):
        """A turn in which two seats choose at once, averaged over a uniformly random opponent and the roll.

        The state is `worlds[0]`. Each choice of the opponent's makes a world; the searcher, who cannot tell them apart,
        chooses once. What each seat earns, averaged over the worlds, goes to `run.earned`, and the state becomes one
        of them, drawn by its chance. Returns the weight of what follows. In place.
        """
        chances, count = run.world_chance, 1
        chances[0] = 1.0
        for _ in range(2):
            if worlds[1]["seat"] == searcher or count == 0:
                action = decide(params, settings, worlds[1], searcher, weight, tree, run)
                for k in range(count):
                    goes_on = advance(params, settings, worlds[1 + k], action, run.rewards)
                    for seat in range(2):
                        run.earned[seat] += weight * chances[k] * run.rewards[seat]
                    chances[k] *= goes_on
            else:
                worlds[0] = worlds[1]
                run.mask[:] = 0
                legal(params, worlds[0], run.mask)
                count = 0
                for a in range(len(run.mask)):
                    count += run.mask[a] != 0
                k = 0
                for a in range(len(run.mask)):
                    if run.mask[a] != 0:
                        worlds[1 + k] = worlds[0]
                        goes_on = advance(params, settings, worlds[1 + k], a, run.rewards)
                        for seat in range(2):
                            run.earned[seat] += weight / count * run.rewards[seat]
                        chances[k] = goes_on / count
                        k += 1
        total = 0.0
        for k in range(count):
            total += chances[k]
        at = uniform(worlds[1]) * total
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
    def simulate(params, settings, worlds, searcher, averaged, tree, run):
        """One simulation from the state `worlds[0]`. In place."""
        run.counter[DEPTH] = 0
        run.counter[IN_TREE] = 1
        run.counter[OWN] = -1
        run.chain[0] = np.uint64(0)
        run.earned[:] = 0.0
        weight = 1.0
        state = worlds[0]
        while state["seat"] != OVER and weight > 0.0:
            if averaged:
                worlds[1] = worlds[0]
                weight = average_turn(params, settings, worlds, searcher, weight, tree, run)
            else:
                action = decide(params, settings, state, searcher, weight, tree, run)
                goes_on = advance(params, settings, state, action, run.rewards)
                for seat in range(settings.seats):
                    run.earned[seat] += weight * run.rewards[seat]
                weight *= goes_on

    @compiled
    def search(params, settings, states, streams, worlds, averaged, tree, run, policies, values):
        for i in range(len(states)):
            searcher = np.int64(states[i]["seat"])
            tree.table[:] = NO_NODE
            run.counter[NODES] = 0
            run.own_visits[:] = 0.0
            run.own_total[:] = 0.0
            own_node = NO_NODE
            for simulation in range(settings.simulations):
                worlds[0] = states[i]
                state = worlds[0]
                state["rng"] = next_u64(streams[i])
                prepare(params, state, searcher)
                run.counter[LEARNER] = simulation - simulation // settings.seats * settings.seats
                simulate(params, settings, worlds, searcher, averaged, tree, run)
                _back_up(settings, tree, run, searcher)
                if run.counter[OWN] >= 0:
                    own = tree.action[run.counter[OWN]]
                    run.own_visits[own] += 1
                    run.own_total[own] += run.earned[searcher]
                    if own_node == NO_NODE and run.counter[DEPTH] > 0:
                        for d in range(run.counter[DEPTH]):
                            if run.seat[d] == searcher:
                                own_node = run.node[d]
                                break
            policy = policies[i]
            policy[:] = 0.0
            if own_node == NO_NODE:  # too few simulations to have come to the searcher's own choice
                run.mask[:] = 0
                legal(params, states[i], run.mask)
                for a in range(len(policy)):
                    policy[a] = run.mask[a]
            elif settings.select == REGRET:
                for edge in range(tree.start[own_node], tree.start[own_node] + tree.count[own_node]):
                    policy[tree.action[edge]] = tree.strategy[edge]
            else:
                policy[:] = run.own_visits
            total = 0.0
            returns = 0.0
            best = 0
            for a in range(len(policy)):
                total += policy[a]
                returns += run.own_total[a]
                better = policy[a] == policy[best] and run.own_total[a] > run.own_total[best]  # as many visits: the mean
                if policy[a] > policy[best] or (better and policy[a] > 0.0):
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
        depth = min(facts.max_steps, self.simulations + 1) + 1
        policies, values = np.empty((len(turn), facts.num_actions)), np.empty(len(turn))
        search(
            turn.params,
            settings,
            turn.states,
            turn.streams,
            np.zeros(facts.num_actions + 2, game.state),
            averaged,
            _new_tree(self.simulations, facts.num_actions, regret),
            _new_run(depth, facts),
            policies,
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
