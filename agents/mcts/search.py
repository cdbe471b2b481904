"""The search engine: simulations of one game, and the resulting policy; rollout policies by name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dice_envs.agent.specs import by_module
from dice_envs.core.dice import below, choose_weighted, next_u64, uniform
from dice_envs.core.game import OVER, Game, compile_random_action
from dice_envs.core.kernel import kernel
from dice_envs.core.options import shown

from .tree import NO_NODE, SALT, UCT, Selection, find, hash_words

RANDOM = "random"  # the rollout policy of every game
# "sampled": rolls are drawn. "expected": the game's `expect` takes the expectation over a roll. "averaged": the expectation is
# also taken over the simultaneous choice of a uniformly random opponent.
Turns: TypeAlias = Literal["sampled", "expected", "averaged"]
_compiled = functools.partial(kernel, allocates=False)
_LIGHT = 0.02  # Russian roulette: a lighter simulation is dropped, or kept at this weight with probability weight / _LIGHT


class Searches(NamedTuple):
    """Searches of n games and their results."""

    states: np.ndarray  # (n,)
    streams: np.ndarray  # (n,)
    policies: np.ndarray  # (n, actions) float64
    values: np.ndarray  # (n,) float64, the searchers' mean returns


class WorkSpace(NamedTuple):
    """Work space of one thread."""

    worlds: np.ndarray  # (actions + 1,) of the game's states: the simulation's, and its copies in an averaged turn
    chances: np.ndarray  # (actions,) float64, of these copies
    totals: np.ndarray  # (actions,) float64, the searcher's returns by its first move


@functools.cache
def compile_search(
    game: Game, rollout: str = RANDOM, selection: Selection = UCT, turns: Turns = "sampled"
) -> Callable[..., bool]:
    """Return the search of one game, compiled on first use.

    Returns:
        A kernel `(params, settings, searches, scratch, tree)` that searches each state of the `Searches` for its seat to
        move, drawing from its stream. It writes the resulting policy and the searcher's mean return. `streams` and the
        last two are modified in place, too. It returns False when all searches are done, and True once the simulations in
        the tree's `left` are made; called again, it resumes.

    Raises:
        ValueError: the game has no such rollout.
    """
    decide = _compile_decide(game, rollout, selection)
    turn = _compile_turn(game, turns, decide)
    simulate = _compile_simulations(game, selection, turn)
    conclude = _compile_conclusion(game, selection)

    # The outermost kernel takes its arrays from Python and must release them, so it needs reference counting.
    @kernel
    def search(params, settings, searches, scratch, tree):
        run = tree.runs[0]
        for i in range(run["game"], len(searches.states)):
            state, policy = searches.states[i], searches.policies[i]
            if run["simulation"] == 0:  # no search pauses before its first simulation, so this runs once per game
                run["rng"] = next_u64(searches.streams[i])
                run["searcher"] = state["seat"]
                tree.table[:] = NO_NODE
                run["nodes"] = 0
                run["edges"] = 0
                run["own_node"] = NO_NODE
                policy[:] = 0.0
                scratch.totals[:] = 0.0
            if simulate(params, settings, state, policy, scratch, tree):
                run["game"] = i
                return True
            run["simulation"] = 0
            searches.values[i] = conclude(params, settings, state, policy, scratch.totals, tree)
        return False

    return search


def _compile_decide(game: Game, rollout: str, selection: Selection) -> Callable[..., int]:
    """Return the kernel `(params, settings, state, weight, run, tree) → action` of the seat to move."""
    observe, note = game.observe, selection.note
    roll_out, pick_random = rollout_of(game, rollout), rollout_of(game, RANDOM)
    node_of = _compile_nodes(game)
    choose = selection.choose

    # The tree and the parameters are dozens of values: passing them at every move costs more than the search itself.
    @_compiled(inline=True)
    def decide(params, settings, state, weight, run, tree):
        """Return the action of the seat to move, from the tree while the simulation is in it. In place."""
        seat = np.int64(state["seat"])
        if settings.opponent_random and seat != run["searcher"]:
            return np.int64(pick_random(params, state, tree.mask))
        if run["in_tree"] == 0:
            return np.int64(roll_out(params, state, tree.mask))
        observation = tree.observation
        observation[:] = 0
        observe(params, state, seat, observation)
        key = hash_words(run["chain"] ^ (np.uint64(seat) + SALT), observation.view(np.uint64))
        own_first = seat == run["searcher"] and run["own_edge"] == NO_NODE
        number = NO_NODE
        if run["depth"] < len(tree.path):
            number = node_of(params, state, key, run["depth"] == 0 or own_first, run, tree)
        if number == NO_NODE:
            # In a full tree the first seat's position may have no node, if its hand is hidden. Stay in the tree then,
            # because the searcher's own node, further on, has to learn.
            if run["depth"] > 0 or own_first:
                run["in_tree"] = 0
            action = np.int64(roll_out(params, state, tree.mask))
        else:
            step = tree.path[run["depth"]]
            run["depth"] += 1
            step["node"] = number
            step["seat"] = seat
            step["weight"] = weight
            for other in range(settings.seats):
                step["before"][other] = run["earned"][other]
            edge = choose(settings, run, step, tree)
            step["edge"] = edge
            if own_first:
                run["own_edge"] = edge
                run["own_node"] = number
            action = np.int64(tree.edges[edge]["action"])
        note(run, action)
        return action

    return decide


def _compile_nodes(game: Game) -> Callable[..., int]:
    """Return the kernel that finds or makes the node of a position."""
    legal = game.legal

    @_compiled
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

    @_compiled(inline=True)
    def node_of(params, state, key, at_once, run, tree):
        """Return the node of this key, expanded, or NO_NODE where the rollout policy is to choose. In place.

        A new position becomes a node if there is room. It is expanded now if `at_once`. Otherwise it stays a leaf until it
        is seen again, because most positions never are.
        """
        number = find(key, tree.table, tree.nodes)
        if number < 0:
            if run["nodes"] == len(tree.nodes):
                run["full"] = 1
                return NO_NODE
            tree.table[-1 - number] = run["nodes"]
            number = run["nodes"]
            run["nodes"] += 1
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

    return node_of


def _compile_simulations(game: Game, selection: Selection, turn: Callable[..., float]) -> Callable[..., bool]:
    """Return the kernel that runs the remaining simulations and counts the searcher's first moves."""
    reroll_hidden, retract, back_up = game.reroll_hidden, game.retract, selection.back_up

    @_compiled
    def redraw(params, state, seat):
        """Draw everything hidden from the seat again. In place."""
        reroll_hidden(params, state, seat)

    @_compiled
    def redraw_and_retract(params, state, seat):
        """Also undo choices that are not revealed yet. In place."""
        reroll_hidden(params, state, seat)
        retract(params, state)

    prepare = redraw if retract is None else redraw_and_retract

    @_compiled(merge=True)  # has one caller: as a kernel of its own it is optimised twice
    def simulate(params, settings, scratch, run, tree):
        """Run one simulation from the state `worlds[0]`. In place."""
        worlds = scratch.worlds
        run["depth"] = 0
        run["in_tree"] = 1
        run["own_edge"] = NO_NODE
        run["chain"] = np.uint64(0)
        for seat in range(settings.seats):
            run["earned"][seat] = 0.0
        weight = 1.0
        while worlds[0]["seat"] != OVER and weight > 0.0:
            weight = turn(params, settings, scratch, weight, run, tree)
            if weight < _LIGHT:
                weight = _LIGHT if uniform(run) * _LIGHT < weight else 0.0

    @_compiled
    def simulate_all(params, settings, state, policy, scratch, tree):
        """Run the remaining simulations and count the searcher's first moves. Return whether it pauses before. In place."""
        run, worlds = tree.runs[0], scratch.worlds
        searcher = run["searcher"]
        for simulation in range(run["simulation"], settings.simulations):
            if simulation > 0 and run["left"] <= 0:  # at 0 it would begin anew
                run["simulation"] = simulation
                return True
            run["left"] -= 1
            worlds[0] = state
            worlds[0]["rng"] = next_u64(run)
            prepare(params, worlds[0], searcher)
            run["learner"] = simulation - simulation // settings.seats * settings.seats
            simulate(params, settings, scratch, run, tree)
            back_up(settings, run, tree)
            if run["own_edge"] != NO_NODE:
                own = tree.edges[run["own_edge"]]["action"]
                policy[own] += 1.0
                scratch.totals[own] += run["earned"][searcher]
        return False

    return simulate_all


def _compile_conclusion(game: Game, selection: Selection) -> Callable[..., float]:
    """Return the kernel that turns counts into the policy."""
    legal, mix_actions = game.legal, selection.conclude

    @_compiled(merge=True)
    def conclude(params, settings, state, policy, totals, tree):
        """Turn the counts into the policy. Return the searcher's mean return. In place."""
        run = tree.runs[0]
        counted = 0.0  # less than all simulations if a full tree had no node for the searcher's choice
        for a in range(len(policy)):
            counted += policy[a]
        if run["own_node"] == NO_NODE:  # the searcher's own choice was never reached
            tree.mask[:] = 0
            legal(params, state, tree.mask)
            for a in range(len(policy)):
                policy[a] = tree.mask[a]
        else:
            mix_actions(run, tree, policy)
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

    return conclude


# --- turns ------------------------------------------------------------------------------------------------------------
# Kernels `(params, settings, scratch, weight, run, tree) → the simulation's new weight`. A turn plays the game
# `scratch.worlds[0]` and adds each seat's rewards to `run["earned"]`, times the simulation's weight: the probability that a
# simulation which takes expectations reaches this turn.


def _compile_turn(game: Game, turns: Turns, decide: Callable[..., int]) -> Callable[..., float]:
    """Return the kernel of one turn; unless turns are "sampled", the game must have `expect`.

    `decide` is the kernel `(params, settings, state, weight, run, tree) → action` of the seat to move.
    """
    advance = _compile_advance(game, turns)
    if turns == "averaged":
        return _compile_averaged(game, decide, advance)

    @_compiled(inline=True)
    def turn(params, settings, scratch, weight, run, tree):
        """Play the chosen action. In place."""
        state = scratch.worlds[0]
        action = decide(params, settings, state, weight, run, tree)
        return weight * advance(params, settings, state, action, weight, run)

    return turn


def _compile_advance(game: Game, turns: Turns) -> Callable[..., float]:
    """Return the kernel `(params, settings, state, action, share, run)`, which adds each seat's rewards times `share`.

    It returns the probability that the game continues, in the state that is left: 1 if the roll is drawn.
    """
    play, expect = game.play, game.expect

    @_compiled(inline=True)
    def draw(params, settings, state, action, share, run):
        play(params, state, action)
        for seat in range(settings.seats):
            run["earned"][seat] += share * state["rewards"][seat]
        return 1.0

    @_compiled(inline=True)
    def take_expectation(params, settings, state, action, share, run):
        goes_on = expect(params, state, action, run["rewards"])
        for seat in range(settings.seats):
            run["earned"][seat] += share * run["rewards"][seat]
        return goes_on

    return draw if turns == "sampled" else take_expectation


def _compile_averaged(game: Game, decide: Callable[..., int], advance: Callable[..., float]) -> Callable[..., float]:
    legal = game.legal

    @_compiled
    def imagine(params, settings, scratch, weight, run, mask):
        """Make a world of each choice of the opponent, who moves in `worlds[1]`. Return their number. In place."""
        worlds, chances = scratch.worlds, scratch.chances
        worlds[0] = worlds[1]
        start = chances[0]
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
                chances[k] = share * advance(params, settings, worlds[1 + k], a, weight * share, run)
                k += 1
        return count

    @_compiled
    def averaged_turn(params, settings, scratch, weight, run, tree):
        """Play a turn in which two seats choose at once, in expectation over a uniformly random opponent and the roll.

        Each choice of the opponent makes a world. The searcher cannot tell them apart, so it chooses once for all. The
        state becomes one of the worlds, drawn in proportion to its probability of continuing. In place.
        """
        worlds, chances = scratch.worlds, scratch.chances
        worlds[1] = worlds[0]
        count = 1
        chances[0] = 1.0
        for _ in range(2):
            if worlds[1]["seat"] == run["searcher"]:
                action = decide(params, settings, worlds[1], weight, run, tree)
                for k in range(count):
                    chances[k] *= advance(params, settings, worlds[1 + k], action, weight * chances[k], run)
            else:
                count = imagine(params, settings, scratch, weight, run, tree.mask)
        total = 0.0
        for k in range(count):
            total += chances[k]
        worlds[0] = worlds[1 + max(0, choose_weighted(run, chances, count))]  # 0: all games are over, so any will do
        return weight * total

    return averaged_turn


# --- rollout policies -------------------------------------------------------------------------------------------------
# Kernels `(params, state, mask) → a legal action`, by which a simulation plays on from a new node. They receive its whole
# state, hidden dice included, and should use only what the mover sees.


@functools.cache
def rollouts() -> dict[str, tuple[str, Any]]:
    """Return every rollout policy but RANDOM: name → (game, kernel), from the dictionaries `ROLLOUTS` of the modules."""
    return {name: (game, policy) for game, policies in by_module("ROLLOUTS").items() for name, policy in policies.items()}


def rollout_of(game: Game, name: str) -> Any:
    """Return the game's rollout kernel of this name. ValueError if there is none."""
    known = [RANDOM, *(known for known, (plays, _) in rollouts().items() if plays == game.name)]
    if name not in known:
        raise ValueError(f"rollout must be one of {', '.join(map(repr, known))} for {game.name}, not {shown(name)}")
    return compile_random_action(game) if name == RANDOM else rollouts()[name][1]
