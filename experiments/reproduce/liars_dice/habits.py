"""Habits of a solution of Liar's Dice against itself: how it bluffs, opens and calls; what parts of an agent's play cost.

Nothing is sampled. A round is walked in batches of public nodes, each with both players' reach by hands.

The habits are those of one equilibrium, to the precision of its certificate. Another equilibrium may name other faces;
the value of a round is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant, configure
from dice_envs.games.liars_dice import chance_at_least
from dice_envs.games.liars_dice.exact.moves import Asking, Nodes, Reach, Source, deal, entries_of, moves_of, parts_of
from dice_envs.games.liars_dice.exact.round import Round, RoundRules
from dice_envs.games.liars_dice.exact.seating import Certificate, Dice, certify_games, first_tables, wins_games
from dice_envs.games.liars_dice.exact.solution import Solution, SolvedRound
from dice_envs.games.liars_dice.exact.solver import Progress, solve
from dice_envs.games.liars_dice.exact.sources import ROWS_AT_ONCE, source_of
from dice_envs.games.liars_dice.exact.tree import Tree
from dice_envs.games.liars_dice.exact.walk import Coalition, Walk

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
    turns: np.ndarray  # (2, needs): each player's turns with a choice between call and raise, by need
    calls: np.ndarray  # (2, needs): those at which it calls
    holds: np.ndarray  # (2, needs): the chance that the bid holds, if the other's dice are fair


class _Choices(NamedTuple):
    """What a player may do."""

    player: int
    unseen: int  # dice of the other player
    matches: np.ndarray  # (hands, faces) int64: dice of the player's hands that count for a bid on the face
    free: np.ndarray  # (slots,) bool: whether some hand raises there
    best: np.ndarray  # (slots, hands) int64: dice that show the best face that may be named
    blind: np.ndarray  # (slots, hands, faces named) float64: shares if such a face is named at random


def _what_is_named(held: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Classify faces named, from the dice that show each and those that show the best one that may be named."""
    return np.select([best == 0, held == best, held > 0], [FORCED, MOST, FEWER], NONE)


class _Raises(NamedTuple):
    """Where each number in `Asking.raises` belongs."""

    entry: np.ndarray  # (numbers,) int64
    slot: np.ndarray  # (numbers,) int64: that the raise leads to
    made: np.ndarray  # (numbers,) bool: whether the number is one that may be read

    @classmethod
    def of(cls, rules: RoundRules, asking: Asking) -> _Raises:
        """Return the places of a batch's numbers: node by node, raise by raise, by hand."""
        first = rules.first[asking.slots]
        edges, hands = rules.first[asking.slots + 1] - first, np.diff(asking.entry_at)
        counts = np.repeat(hands, edges)
        slot, made = (np.repeat(each, counts) for each in (rules.child[entries_of(first, edges)], asking.made))
        return cls(entries_of(np.repeat(asking.entry_at[:-1], edges), counts), slot, made)


def _count(rules: RoundRules, choices: _Choices, asking: Asking, reach: np.ndarray, other: np.ndarray, habits: Habits) -> None:
    """Count a player's decisions at the nodes of a batch. In place.

    `asking` has the player's moves, each times its reach (entries,) float64; `other` (nodes,) float64 is how likely the other
    player comes to the node.
    """
    node = np.repeat(np.arange(len(asking.slots)), np.diff(asking.entry_at))
    slot, hand, weight = asking.slots[node], asking.hand, other[node]
    need = np.clip(rules.need[slot] - choices.matches[hand, rules.face[slot]], 0, choices.unseen + 1)
    may_call = (slot > 0) & choices.free[slot]
    for counts, chances in ((habits.turns, reach), (habits.calls, asking.calls[:, 0])):
        np.add.at(counts[choices.player], need[may_call], (chances * weight)[may_call])

    entry, bid, _ = raises = _Raises.of(rules, asking)
    entry, bid, weight = entry[raises.made], bid[raises.made], (asking.raises[:, 0] * weight[raises.entry])[raises.made]
    best, stage = choices.best[slot, hand][entry], min(asking.paths.shape[1], 1)
    named = _what_is_named(choices.matches[hand[entry], rules.face[bid]], best)
    np.add.at(habits.named[stage, 0], named, weight)
    np.add.at(habits.named[stage, 1], np.where(best > 0, MOST, FORCED), weight)
    habits.named[stage, 2] += weight @ choices.blind[slot, hand][entry]
    if stage == 0:
        np.add.at(habits.openings, (rules.need[bid] - 1, rules.face[bid]), weight)
        np.add.at(habits.openings_by_most, (rules.need[bid] - 1, best), weight)


def _choices(round_: Round, tree: Tree, player: int) -> _Choices:
    rules, matches = round_.rules, round_.matches[player]
    free = np.array([not tree.is_leaf(bid, player) for bid in rules.bid.tolist()])
    best = np.zeros((len(rules.need), len(matches)), np.int64)
    blind = np.zeros((*best.shape, len(FACES_NAMED)))
    for slot in range(len(best)):
        if len(raises := rules.raises(slot)):
            held = matches[:, np.unique(rules.face[raises])]  # of each face that may be named
            best[slot] = held.max(axis=1)
            named = _what_is_named(held, best[slot][:, None])
            blind[slot] = np.stack([(named == each).mean(axis=1) for each in range(len(FACES_NAMED))], axis=1)
    return _Choices(player, round_.dice[1 - player], matches, free, best, blind)


class _Counting(Source):
    """A walk that counts the decisions of both players, who play by one source; itself that source."""

    def __init__(self, round_: Round, solved: SolvedRound, habits: Habits) -> None:
        self._round, self._source, self._habits = round_, solved, habits
        self._choices = [_choices(round_, solved.tree, player) for player in range(2)]
        self._size = round_.decisions.sum(axis=0) * sum(map(len, round_.hands))  # numbers in the subtree of a slot

    def write(self, asking: Asking) -> None:
        self._source.write(asking)
        self._asking = asking  # `moves_of` then multiplies the answers by the reach

    def visit(self, batch: Nodes, reaches: list[Reach]) -> None:
        """Count the decisions at the nodes of a batch and below them."""
        mover = batch.paths.shape[1] % 2
        own, other = reaches[mover], reaches[1 - mover]
        arrived = np.add.reduceat(other.weight[:, 0], other.start[:-1])
        for begin, end in parts_of(self._size[batch.slots]):
            part, round_ = batch.part(begin, end), self._round
            moves = moves_of(round_, part, mover, own, self)
            _count(
                round_.rules,
                self._choices[mover],
                self._asking,
                own.weight[entries_of(own.start[part.rows[:, mover]], np.diff(self._asking.entry_at)), 0],
                arrived[part.rows[:, 1 - mover]],
                self._habits,
            )
            if len(moves.node):
                lower = [other, other]
                lower[mover] = moves.reach
                self.visit(part.below(mover, round_, moves.node, moves.edge, np.arange(len(moves.node))), lower)


def habits_of(solved: SolvedRound) -> Habits:
    """Return the habits of both players of a solved round, in expectation over their dice and strategies."""
    round_ = Round(solved.tree.variant, solved.tree.dice)
    dice, faces = round_.dice, round_.variant.params.num_faces
    habits = Habits(
        named=np.zeros((2, len(NAMERS), len(FACES_NAMED))),
        openings=np.zeros((sum(dice), faces)),
        openings_by_most=np.zeros((sum(dice), dice[0] + 1)),
        turns=np.zeros((2, max(dice) + 2)),
        calls=np.zeros((2, max(dice) + 2)),
        holds=np.array([chance_that_bids_hold(round_.variant, unseen, max(dice)) for unseen in dice[::-1]]),
    )
    _Counting(round_, solved, habits).visit(*deal(round_, (0, 1), 1))
    return habits


def chance_that_bids_hold(variant: Variant, unseen: int, most: int) -> list[float]:
    """Return the chance that at least 0, 1, …, `most` + 1 of `unseen` fair dice count for a face."""
    params = variant.params
    return [float(chance_at_least(params, params.wild, need, 0, unseen, 0)) for need in range(most + 2)]


def round_shares(solution: Solution) -> dict[Dice, float]:
    """Return how often a game that the solution plays against itself reaches each of its rounds."""
    starts = [table.dice for table in first_tables(solution.variant.options)]
    shares = dict.fromkeys(sorted(solution.rounds, key=sum, reverse=True), 0.0)
    for start in starts:
        shares[start] += 1 / len(starts)
    if solution.variant.options.rounds == "elimination":
        for (own, others), share in shares.items():
            wins = solution.rounds[own, others].certificate.value
            if own > 1:
                shares[own - 1, others] += share * (1 - wins)
            if others > 1:
                shares[others - 1, own] += share * wins
    return shares


def values_of_all_rounds(
    solution: Solution, precision: float, done: Callable[[Progress], Any] = lambda progress: None
) -> dict[Dice, Certificate]:
    """Return the certificate of a game of elimination from any dice up to those of the solution's game.

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
    return certify_games(options, {dice: rounds[dice].certificate for dice in sorted(rounds)})


# --- what parts of an agent's play cost -------------------------------------------------------------------------------
# An agent plays each round against the solution, as the starter and as the other player. Then one part of its play is
# replaced by the solution's. The rounds that it wins more are the cost of that part. All chances are exact. The costs need not
# add up: a better raise is worth more to a player that also calls well.


class Replaced(NamedTuple):
    """The part of an agent's play that is replaced by the solution's."""

    calls: bool = False  # the choice between call and raise
    quantity: bool = False  # of the first bid
    face: bool = False  # of the first bid
    raises: bool = False  # the choice between raises


PARTS = {
    "nothing": Replaced(),
    "calls": Replaced(calls=True),
    "first bids": Replaced(quantity=True, face=True),
    "quantity of first bids": Replaced(quantity=True),
    "face of first bids": Replaced(face=True),
    "raises": Replaced(raises=True),
}


def _first_bids(rules: RoundRules, quantities: Asking, faces: Asking) -> np.ndarray:
    """Return chances of first bids (bids, hands), with quantities and faces drawn independently from two players' bids."""
    bids = rules.raises(0)
    need, face = rules.need[bids], rules.face[bids]
    by_quantity, by_face = (each.raises.reshape(len(need), -1) for each in (quantities, faces))
    weight = by_face.sum(axis=0)
    by_quantity, by_face = (need[:, None] == need).astype(float) @ by_quantity, (face[:, None] == face).astype(float) @ by_face
    return np.divide(by_quantity * by_face, weight, out=np.zeros_like(by_face), where=weight > 0)


class MixedHabits(Source):
    """A player that takes a part of its play from another, as a source."""

    def __init__(self, round_: Round, own: Source, other: Source, part: Replaced) -> None:
        self._rules, self._own, self._other, self._part = round_.rules, own, other, part

    def write(self, asking: Asking) -> None:
        own, other = _answers(self._own, asking), _answers(self._other, asking)
        part = self._part
        if asking.slots[0] == 0 and part.quantity != part.face:
            both = _first_bids(self._rules, *((other, own) if part.quantity else (own, other)))
            other.raises[:, 0] = both.reshape(-1)
        takes_other = part.raises if asking.paths.shape[1] else part.quantity or part.face
        chances, instead = (other.raises, own.raises) if takes_other else (own.raises, other.raises)
        entry = _Raises.of(self._rules, asking).entry
        total, others_total = (np.bincount(entry, each[:, 0], len(asking.hand)) for each in (chances, instead))
        never = total == 0  # a hand with which the player whose raises are taken never raises: the other's are taken
        asking.calls[:] = (other if part.calls else own).calls
        left = np.divide(1 - asking.calls[:, 0], total := np.where(never, others_total, total), where=total > 0, out=0 * total)
        asking.raises[:, 0] = np.where(never[entry], instead[:, 0], chances[:, 0]) * left[entry]


def _answers(source: Source, asking: Asking) -> Asking:
    """Return a source's answers in fresh arrays; raises that it does not make are 0."""
    calls, raises, made = np.zeros_like(asking.calls), np.zeros_like(asking.raises), np.ones_like(asking.made)
    own = asking._replace(calls=calls, raises=raises, made=made)
    source.write(own)
    return own


class RoundChances(NamedTuple):
    """An agent's chances in one round against the solution, and those of the solution in its place."""

    starting: float  # the chance to win the round as its starter
    following: float  # and as the other player
    best_starting: float
    best_following: float

    @property
    def loss(self) -> float:
        """How much less often it wins than the solution, mean of both seats."""
        return (self.best_starting + self.best_following - self.starting - self.following) / 2


def wins_against(solution: Solution, agent: Any, parts: Mapping[str, Replaced] = PARTS) -> dict[str, dict[Dice, RoundChances]]:
    """Return an agent's chances against the solution with parts of its play replaced: part → round → chances.

    The game has two players. The agent states its probabilities, which do not depend on past rounds.
    """
    found: dict[str, dict[Dice, RoundChances]] = {name: {} for name in parts}
    streams = new_streams(0, ROWS_AT_ONCE)[None]
    for dice, solved in solution.rounds.items():
        round_ = Round(solution.variant, dice)
        own = [source_of(round_, player, agent, player, streams) for player in range(2)]
        for name, part in parts.items():
            mixed = [MixedHabits(round_, own[player], solved, part) for player in range(2)]
            ((starting,),) = Walk(round_, (mixed[0], solved), [Coalition((), np.array([0.0, 1.0]))]).values()
            ((following,),) = Walk(round_, (solved, mixed[1]), [Coalition((), np.array([1.0, 0.0]))]).values()
            found[name][dice] = RoundChances(float(starting), float(following), *solved.certificate.plays.tolist())
    return found


def games_won(played: Mapping[Dice, RoundChances], dice: int) -> float:
    """Return the chance to win a game of elimination in which both begin with `dice` dice, mean over who starts."""
    rounds = {each: np.array([chances.starting, chances.following]) for each, chances in played.items()}
    return float(wins_games(configure("liars_dice").options, rounds)[dice, dice].mean())


def mean_loss(solution: Solution, played: Mapping[Dice, RoundChances]) -> float:
    """Return the loss of a round, mean over the rounds that the solution reaches in its own play."""
    shares = round_shares(solution)
    return sum(share * played[dice].loss for dice, share in shares.items()) / sum(shares.values())
