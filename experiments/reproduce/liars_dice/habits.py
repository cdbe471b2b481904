"""Habits of a solution of Liar's Dice against itself: how often it bluffs, how it opens and when it calls.

Nothing is sampled. A walk of a round's tree carries each player's reach by hands instead of by the tree's classes: hands of
one class may differ in dice that an earlier bid could have named.

The habits are those of one equilibrium, to the precision of its certificate. Another equilibrium may name other faces;
the value of a round is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.game import Variant, configure
from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.seating import Bounds, Dice, first_tables, starter_wins
from dice_envs.exact.liars_dice.solution import Solution, SolvedRound
from dice_envs.exact.liars_dice.solver import Progress, solve
from dice_envs.exact.liars_dice.tree import LEAF, Tree, mix_at
from dice_envs.games.liars_dice import chance_at_least
from dice_envs.games.liars_dice.raises import NO_BID

__all__ = [
    "FACES_NAMED",
    "FEWER",
    "FORCED",
    "MOST",
    "NAMERS",
    "NONE",
    "Habits",
    "Worth",
    "chance_that_bids_hold",
    "habits_of",
    "round_shares",
    "values_of_all_rounds",
]

# The face that a bid names, among those that may be named: the one held most of (or tied for it), one held less of, one that
# the hand does not hold although it holds another, or one that it does not hold because it holds none of them.
MOST, FEWER, NONE, FORCED = range(4)
FACES_NAMED = ("the face held most of", "a face held less of", "a face not held, by choice", "a face not held, by necessity")
NAMERS = ("solution", "numbers player", "random face")  # who names a face, at the solution's own decisions


class Habits(NamedTuple):
    """Expected numbers of decisions in one round in which both players play the solution.

    The round's starter is player 0. `need` is the number of the other player's dice that must show the face for the bid to
    hold, given the mover's own hand: from 0 (it holds) to one more than the other has (it fails).
    """

    named: np.ndarray  # (2, namers, faces named): first bids, then raises
    openings: np.ndarray  # (quantities, faces): first bids
    openings_by_most: np.ndarray  # (quantities, dice + 1): first bids, by how many dice show the starter's best face
    named_by_most: np.ndarray  # (faces named, dice + 1): first bids by the face named, likewise
    turns: np.ndarray  # (2, needs): each player's turns with a choice between call and raise, by need
    calls: np.ndarray  # (2, needs): those at which it calls
    called: np.ndarray  # (2,): called bids that hold, and that fail, forced calls included
    starter_wins: float


class _Scratch(NamedTuple):
    """Arrays of the walk, by depth of the nodes on its path."""

    kind: np.ndarray  # (depth,) int64
    offset: np.ndarray  # (depth,) int64
    edge: np.ndarray  # (depth,) int64: the next edge to follow
    reach: np.ndarray  # (depth, 2, hands) float64
    mix: np.ndarray  # (depth, actions, classes) float64
    total: np.ndarray  # (classes,) float64
    matched: np.ndarray  # (2, dice + 2) float64


class _Table(NamedTuple):
    """Lookup tables of the walk; players come first."""

    of: np.ndarray  # (2, kinds, hands) int64: hand → class
    matches: np.ndarray  # (2, hands, faces) int64
    hands: np.ndarray  # (2,) int64: number of hands
    dice: np.ndarray  # (2,) int64
    best: np.ndarray  # (2, kinds, hands) int64: dice that show the best face that may be named
    blind: np.ndarray  # (2, kinds, hands, faces named) float64: shares if such a face is named at random
    edge_face: np.ndarray  # (edges,) int64
    edge_quantity: np.ndarray  # (edges,) int64
    face: np.ndarray  # (kinds,) int64: of the last bid


@kernel(allocates=False)
def _what_is_named(held, best):
    if best == 0:
        return FORCED
    if held == best:
        return MOST
    return FEWER if held > 0 else NONE


@kernel(allocates=False)
def _count_call(table, player, face, needed, callers, bidders, matched, called):
    """Add up the calls of `player` with reach `callers` of a bid made with reach `bidders`; return how likely it fails."""
    for count in range(matched.shape[1]):
        matched[0, count] = 0.0
        matched[1, count] = 0.0
    for hand in range(table.hands[player]):
        matched[0, table.matches[player, hand, face]] += callers[hand]
    for hand in range(table.hands[1 - player]):
        matched[1, table.matches[1 - player, hand, face]] += bidders[hand]
    fails = 0.0
    for own in range(table.dice[player] + 1):
        for other in range(table.dice[1 - player] + 1):
            chance = matched[0, own] * matched[1, other]
            if own + other >= needed:
                called[0] += chance
            else:
                called[1] += chance
                fails += chance
    return fails


@kernel(allocates=False)
def _enter(kinds, numbers, table, scratch, depth, habits):
    """Count the decisions at one node; return how likely a call there wins the round for the starter. In place."""
    kind, offset = scratch.kind[depth], scratch.offset[depth]
    scratch.edge[depth] = kinds.first_edge[kind]
    player = kinds.mover[kind]
    reach, mix = scratch.reach[depth, player], scratch.mix[depth]
    active = kinds.active[kind]
    if active > 0:
        mix_at(kinds, kind, offset, numbers, mix, scratch.total)
    other = 0.0
    for hand in range(table.hands[1 - player]):
        other += scratch.reach[depth, 1 - player, hand]
    first, last = kinds.first_edge[kind], kinds.first_edge[kind + 1]
    stage = 0 if kind == 0 else 1
    won = 0.0
    if kind > 0:
        needed, face, unseen = kinds.needed[kind], table.face[kind], table.dice[1 - player]
        callers = scratch.reach[depth + 1, player]  # not in use yet
        for hand in range(table.hands[player]):
            each = table.of[player, kind, hand]
            callers[hand] = reach[hand] * (mix[0, each] if each < active else 1.0)
            need = min(max(needed - table.matches[player, hand, face], 0), unseen + 1)
            habits.turns[player, need] += reach[hand] * other
            habits.calls[player, need] += callers[hand] * other
        bidders = scratch.reach[depth, 1 - player]
        fails = _count_call(table, player, face, needed, callers, bidders, scratch.matched, habits.called)
        if player == 0:
            won += fails
        else:
            won -= fails
            for hand in range(table.hands[player]):
                won += callers[hand] * other
    for hand in range(table.hands[player]):
        each = table.of[player, kind, hand]
        if each >= active or reach[hand] == 0.0:
            continue
        best = table.best[player, kind, hand]
        bids = 0.0
        for edge in range(first, last):
            weight = reach[hand] * mix[1 + edge - first, each] * other
            bids += weight
            named = _what_is_named(table.matches[player, hand, table.edge_face[edge]], best)
            habits.named[stage, 0, named] += weight
            if stage == 0:
                habits.openings[table.edge_quantity[edge] - 1, table.edge_face[edge]] += weight
                habits.openings_by_most[table.edge_quantity[edge] - 1, best] += weight
                habits.named_by_most[named, best] += weight
        habits.named[stage, 1, MOST if best > 0 else FORCED] += bids
        for named in range(4):
            habits.named[stage, 2, named] += bids * table.blind[player, kind, hand, named]
    return won


@kernel(allocates=False)
def _follow(kinds, table, scratch, depth, edge):
    """Write the reach behind an edge one level deeper; return whether any hand takes it. In place."""
    kind = scratch.kind[depth]
    player = kinds.mover[kind]
    active = kinds.active[kind]
    place = 1 + edge - kinds.first_edge[kind]
    arrived = 0.0
    for hand in range(table.hands[player]):
        each = table.of[player, kind, hand]
        weight = scratch.reach[depth, player, hand] * scratch.mix[depth, place, each] if each < active else 0.0
        scratch.reach[depth + 1, player, hand] = weight
        arrived += weight
    for hand in range(table.hands[1 - player]):
        scratch.reach[depth + 1, 1 - player, hand] = scratch.reach[depth, 1 - player, hand]
    return arrived > 0.0


@kernel(allocates=False)
def _call_leaf(table, scratch, edge, caller, reach, habits):
    """Count the certain call of the bid behind an edge; return how likely it wins the round for the starter. In place."""
    fails = _count_call(
        table, caller, table.edge_face[edge], table.edge_quantity[edge], reach[caller], reach[1 - caller], scratch.matched,
        habits.called,
    )  # fmt: skip
    if caller == 0:
        return fails
    both = 0.0
    for own in range(table.dice[0] + 1):
        for other in range(table.dice[1] + 1):
            both += scratch.matched[1, own] * scratch.matched[0, other]
    return both - fails


@kernel(allocates=False)
def _walk(kinds, numbers, table, scratch, habits):
    """Visit every node that both players reach; return how likely the starter wins. In place.

    `scratch` has room for one level more than the tree is high.
    """
    depth = 0
    scratch.kind[0] = 0
    scratch.offset[0] = 0
    won = _enter(kinds, numbers, table, scratch, 0, habits)
    while depth >= 0:
        kind = scratch.kind[depth]
        edge = scratch.edge[depth]
        if edge == kinds.first_edge[kind + 1]:
            depth -= 1
            continue
        scratch.edge[depth] = edge + 1
        if not _follow(kinds, table, scratch, depth, edge):
            continue
        if kinds.child[edge] == LEAF:
            won += _call_leaf(table, scratch, edge, 1 - kinds.mover[kind], scratch.reach[depth + 1], habits)
            continue
        scratch.kind[depth + 1] = kinds.child[edge]
        scratch.offset[depth + 1] = scratch.offset[depth] + kinds.shift[edge]
        depth += 1
        won += _enter(kinds, numbers, table, scratch, depth, habits)
    return won


def _padded(parts: list[np.ndarray]) -> np.ndarray:
    """Stack arrays of the two players, the smaller one filled up with zeros."""
    shape = np.max([part.shape for part in parts], axis=0)
    out = np.zeros((len(parts), *shape), parts[0].dtype)
    for place, part in enumerate(parts):
        out[place][tuple(map(slice, part.shape))] = part
    return out


def _table(tree: Tree) -> _Table:
    faces = tree.variant.params.num_faces
    best: list[np.ndarray] = []
    blind: list[np.ndarray] = []
    for player in range(2):
        matches = tree.matches[player]
        best.append(np.zeros((len(tree.bids), len(matches)), np.int64))
        blind.append(np.zeros((len(tree.bids), len(matches), len(FACES_NAMED))))
        for (bid, mover), kind in tree.kind_of.items():
            held = matches[:, np.unique(tree.raises_after(bid, mover) % faces)]  # of each face that may be named
            most = held.max(axis=1)
            named = np.where(held == most[:, None], MOST, np.where(held > 0, FEWER, NONE))
            named[most == 0] = FORCED
            best[-1][kind] = most
            blind[-1][kind] = np.stack([(named == each).mean(axis=1) for each in range(len(FACES_NAMED))], axis=1)
    return _Table(
        of=tree.class_of,
        matches=_padded(list(tree.matches)),
        hands=np.array([len(hands) for hands in tree.hands], np.int64),
        dice=np.array(tree.dice, np.int64),
        best=_padded(best),
        blind=_padded(blind),
        edge_face=tree.edge_bids % faces,
        edge_quantity=tree.edge_bids // faces + 1,
        face=np.where(tree.bids == NO_BID, 0, tree.bids % faces),
    )


def habits_of(solved: SolvedRound) -> Habits:
    """Return the habits of both players of a solved round, in expectation over their dice and strategies."""
    tree, kinds = solved.tree, solved.tree.kinds
    faces, dice = tree.variant.params.num_faces, sum(tree.dice)
    depth = dice * faces + 2  # the most bids of a round, and one level that the walk writes ahead
    if tree.variant.options.raise_rule == "quantity":
        depth = dice + 2
    actions = 1 + int(np.diff(kinds.first_edge).max())
    table = _table(tree)
    scratch = _Scratch(
        kind=np.zeros(depth, np.int64),
        offset=np.zeros(depth, np.int64),
        edge=np.zeros(depth, np.int64),
        reach=np.zeros((depth, 2, int(table.hands.max()))),
        mix=np.zeros((depth, actions, int(kinds.classes.max()))),
        total=np.zeros(int(kinds.classes.max())),
        matched=np.zeros((2, max(tree.dice) + 2)),
    )
    for player in range(2):
        scratch.reach[0, player, : len(tree.chances[player])] = tree.chances[player]
    habits = Habits(
        named=np.zeros((2, len(NAMERS), len(FACES_NAMED))),
        openings=np.zeros((dice, faces)),
        openings_by_most=np.zeros((dice, tree.dice[0] + 1)),
        named_by_most=np.zeros((len(FACES_NAMED), tree.dice[0] + 1)),
        turns=np.zeros((2, max(tree.dice) + 2)),
        calls=np.zeros((2, max(tree.dice) + 2)),
        called=np.zeros(2),
        starter_wins=0.0,
    )
    return habits._replace(starter_wins=float(_walk(kinds, solved.numbers, table, scratch, habits)))


def chance_that_bids_hold(variant: Variant, unseen: int, face: int = 0) -> np.ndarray:
    """Return the chance that at least 0, 1, …, `unseen` + 1 of `unseen` fair dice count for a face, (unseen + 2,) float64."""
    params = variant.params
    chances = [float(chance_at_least(params, params.wild, need, 0, unseen, face)) for need in range(unseen + 2)]
    return np.array(chances)


def round_shares(solution: Solution) -> dict[Dice, float]:
    """Return how often a game that the solution plays against itself reaches each of its rounds."""
    starts = [table.dice for table in first_tables(solution.variant.options)]
    shares = dict.fromkeys(sorted(solution.rounds, key=sum, reverse=True), 0.0)
    for start in starts:
        shares[start] += 1 / len(starts)
    if solution.variant.options.rounds == "elimination":
        for (own, others), share in shares.items():
            wins = solution.rounds[own, others].value
            if own > 1:
                shares[own - 1, others] += share * (1 - wins)
            if others > 1:
                shares[others - 1, own] += share * wins
    return shares


class Worth(NamedTuple):
    """The chance that the starter of a round wins the game of elimination: between the solutions, and its certificate."""

    value: float
    lower: float
    upper: float


def values_of_all_rounds(
    solution: Solution, precision: float, done: Callable[[Progress], Any] = lambda progress: None
) -> dict[Dice, Worth]:
    """Return the value to the starter of a game of elimination from any dice up to those of the solution's game.

    Rounds that the game itself does not reach are solved, each alone, to the precision, or taken from their files.
    """
    options = solution.variant.options
    most = max(options.dice_per_seat)
    rounds = dict(solution.rounds)
    for dice in ((own, others) for own in range(1, most + 1) for others in range(1, most + 1)):
        if dice not in rounds:
            rules = {"num_faces": options.num_faces, "raise_rule": options.raise_rule, "wild": options.wild}
            alone = configure("liars_dice", num_dice=dice, rounds="single", starter="first", **rules)
            rounds[dice] = solve(alone, precision, resume=True, done=done).rounds[dice]
    values = {dice: Bounds(each.value, each.value) for dice, each in rounds.items()}
    bounds = {dice: each.bounds for dice, each in rounds.items()}
    return {dice: Worth(starter_wins(dice, values).lower, *starter_wins(dice, bounds)) for dice in sorted(rounds)}
