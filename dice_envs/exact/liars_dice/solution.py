"""The solution of a game of Liar's Dice between two players: its value and its strategies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import ActionValues
from dice_envs.exact.liars_dice.cfr import Walker
from dice_envs.exact.liars_dice.hands import Hands, hand_number, numbered_hands
from dice_envs.exact.liars_dice.nodes import strategy_at
from dice_envs.exact.liars_dice.seating import Bounds, Dice, first_tables, game_width, starter_wins
from dice_envs.exact.liars_dice.store import SolvedRound
from dice_envs.exact.liars_dice.tree import LEAF, Kinds
from dice_envs.games.liars_dice.raises import NO_BID, face_of, quantity_of

__all__ = ["OUTSIDE", "Solution", "Strategies", "find_node"]


class Solution:
    """Strategies for every round of a game, with a certificate.

    Attributes:
        variant: of Liar's Dice.
        rounds: dice of the starter and of the other → the solved round.
        lower, value, upper: of a single round, the starter's expected return; of a game of elimination, the starter's
            chance to win; mean over the seats that may start. `value` is that of the strategies against each other.
        exploitability: what best responses win from the strategies above the value, for returns of ±1, mean of the two
            players.
        nash_conv: the sum of the two.
        seconds: taken to solve or load it.
    """

    def __init__(self, variant: Variant, rounds: Mapping[Dice, SolvedRound], seconds: float = 0.0) -> None:
        self.variant = variant
        self.rounds = dict(rounds)
        self.seconds = seconds
        self.bounds = {dice: each.bounds for dice, each in self.rounds.items()}
        hands = numbered_hands(variant, max(max(dice) for dice in self.rounds))
        self._plans = {dice: _Plan(each, hands) for dice, each in self.rounds.items()}
        self.exploitability = game_width(variant, self.bounds)
        self.nash_conv = 2 * self.exploitability
        starts = [table.dice for table in first_tables(variant.options)]
        ends = [self.chance(dice) for dice in starts]
        values = [self.chance(dice, expected=True).lower for dice in starts]
        stretch = 2.0 if self._is_single else 1.0
        shift = -1.0 if self._is_single else 0.0
        self.lower = shift + stretch * sum(end.lower for end in ends) / len(ends)
        self.upper = shift + stretch * sum(end.upper for end in ends) / len(ends)
        self.value = min(max(self.lower, shift + stretch * sum(values) / len(values)), self.upper)

    @property
    def _is_single(self) -> bool:
        return bool(self.variant.options.rounds == "single")

    def chance(self, dice: Dice, expected: bool = False) -> Bounds:
        """Bound the starter's chance to win the game (or the one round) from these dice.

        Args:
            dice: of the starter and of the other player.
            expected: return the chance between the two strategies, as both bounds.
        """
        chances = {each: Bounds(found.value, found.value) for each, found in self.rounds.items()} if expected else self.bounds
        return chances[dice] if self._is_single else starter_wins(dice, chances)

    def as_dict(self) -> dict[str, Any]:
        """Return what `solve --json` writes."""
        rounds = [
            {
                "dice": list(dice),
                "value": each.value,
                "lower": each.bounds.lower,
                "upper": each.bounds.upper,
                "iterations": each.iterations,
                "seconds": each.seconds,
            }
            for dice, each in self.rounds.items()
        ]
        return {
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "exploitability": self.exploitability,
            "nash_conv": self.nash_conv,
            "seconds": self.seconds,
            "rounds": rounds,
        }

    def _round_at(self, state: Any) -> Dice:
        starter = int(state["starter"])
        return int(state["dice"][starter]), int(state["dice"][1 - starter])

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return the solution's probabilities at states in which a seat is to move, (n, num_actions) float64."""
        out = np.zeros((len(states), self.variant.facts.num_actions))
        starters = states["starter"].astype(np.int64)
        rows = np.arange(len(states))
        own, others = states["dice"][rows, starters], states["dice"][rows, 1 - starters]
        for dice in {(int(a), int(b)) for a, b in zip(own, others, strict=True)}:
            mine = np.flatnonzero((own == dice[0]) & (others == dice[1]))
            self._plans[dice].write_probabilities(states, mine, out)
        return out

    def action_values(self, state: Any) -> ActionValues:
        """Return the chance to win the game (or the one round) with each action, followed by a best response to the solution,
        and the solution's own probabilities. See `dice_envs.exact.ActionValues`."""
        dice = self._round_at(state)
        wins, reached = self._plans[dice].action_wins(self.variant, state)
        mix = self.probabilities(np.array([state]))[0]
        if not self._is_single:
            (own, others), is_starter = dice, state["seat"] == state["starter"]
            lost = self.chance((own - 1, others)) if own > 1 else Bounds(0.0, 0.0)
            after = self.chance((others - 1, own)) if others > 1 else Bounds(0.0, 0.0)
            if is_starter:
                low, high = lost.upper, 1 - after.lower
            else:
                low, high = after.upper, 1 - lost.lower
            wins = low + (high - low) * wins
        note = "against optimal play"
        if (inaccuracy := 50 * self.exploitability) > 1e-6:  # exploitability is for returns of ±1
            note += f" (accurate to about {inaccuracy:.1g} %)"
        if not reached:
            note += ", which would not have bid this way: its dice are taken for fair"
        return ActionValues(wins, "% of rounds won" if self._is_single else "% of games won", note, mix, reached=reached)


# --- one round ----------------------------------------------------------------------------------------------------

OUTSIDE = -1  # where no kind of node is: all dice are bid, and the solution calls


class Strategies(NamedTuple):
    """Both players' strategies of a round, for kernels that look them up by bids and hands."""

    kinds: Kinds
    numbers: np.ndarray
    edge_of: np.ndarray  # (kinds, bids) int64: the edge by which each bid leaves each kind of node, −1 where none does
    edge_bids: np.ndarray  # (edges,) int64: the bid of each edge
    by_hand: tuple[np.ndarray, np.ndarray]  # each player's hands → classes, (kinds, hands) int64

    @classmethod
    def of(cls, solved: SolvedRound) -> Strategies:
        """Return the strategies of a solved round."""
        tree = solved.tree
        edge_of = np.full((len(tree.bids), sum(tree.dice) * tree.variant.params.num_faces), -1, np.int64)
        kind_of = np.repeat(np.arange(len(tree.bids)), np.diff(tree.kinds.first_edge))
        edge_of[kind_of, tree.edge_bids] = np.arange(len(kind_of))
        first, second = (np.array([both[player] for both in tree.class_of], np.int64) for player in range(2))
        return cls(tree.kinds, solved.numbers, edge_of, tree.edge_bids, (first, second))


@kernel(allocates=False)
def find_node(strategies, bids, count):
    """Return the kind of node that bids lead to, and where its numbers begin; OUTSIDE where the tree ends before."""
    kind = 0
    offset = 0
    for k in range(count):
        edge = strategies.edge_of[kind, bids[k]]
        if edge < 0 or strategies.kinds.child[edge] == LEAF:
            return OUTSIDE, 0
        offset += strategies.kinds.shift[edge]
        kind = strategies.kinds.child[edge]
    return kind, offset


@kernel(allocates=False)
def _write_probabilities(params, strategies, hands, dice, states, rows, out):
    """Write the probabilities of the player to move at states[rows] into out[rows]. In place.

    `dice` are those of the round's starter and of the other player.
    """
    kinds = strategies.kinds
    for row in rows:
        state = states[row]
        seat = np.int64(state["seat"])
        player = 0 if state["starter"] == seat else 1
        kind, offset = find_node(strategies, state["bids"], state["num_bids"])
        hand = hand_number(hands, dice[player], state["counts"][seat])
        each = strategies.by_hand[player][kind, hand] if kind != OUTSIDE else 0
        if kind == OUTSIDE or each >= kinds.active[kind]:
            out[row, params.call] = 1.0
        else:
            strategy_at(kinds, kind, offset, strategies.numbers, each, params.call, strategies.edge_bids, out[row])


class _Plan:
    """A solved round in which states can be found."""

    def __init__(self, solved: SolvedRound, hands: Hands) -> None:
        self._solved, self._hands = solved, hands
        self._strategies = Strategies.of(solved)

    def write_probabilities(self, states: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
        """Write the solution's probabilities at states[rows] into out[rows]."""
        tree = self._solved.tree
        _write_probabilities(tree.variant.params, self._strategies, self._hands, tree.dice, states, rows, out)

    def _reach(self, walker: Walker, other: int, bids: list[int]) -> tuple[int, int, np.ndarray]:
        """Return the kind of node that bids lead to, where its numbers begin, and the reach of each hand of `other`."""
        kinds, edge_of = self._solved.tree.kinds, self._strategies.edge_of
        reach = self._solved.tree.hand_chances[other].copy()
        kind = offset = 0
        for place, bid in enumerate(bids):
            edge = edge_of[kind, bid] if kind != OUTSIDE else -1
            if place % 2 == other:
                if edge < 0:
                    reach[:] = 0.0
                else:
                    reach *= walker.bid_chances(kind, offset, edge)[self._strategies.by_hand[other][kind]]
            if edge < 0 or kinds.child[edge] == LEAF:
                kind = OUTSIDE
            else:
                offset += int(kinds.shift[edge])
                kind = int(kinds.child[edge])
        return kind, offset, reach

    def action_wins(self, variant: Variant, state: Any) -> tuple[np.ndarray, bool]:
        """Return how likely each legal action wins the round, and whether the other player may have made its bids."""
        tree, kinds, params = self._solved.tree, self._solved.tree.kinds, variant.params
        by_hand, edge_of = self._strategies.by_hand, self._strategies.edge_of
        seat = int(state["seat"])
        player = 0 if seat == int(state["starter"]) else 1
        other = 1 - player
        hand = int(np.flatnonzero((tree.hands[player] == state["counts"][seat]).all(axis=1))[0])
        bids = state["bids"][: int(state["num_bids"])].tolist()
        walker = Walker(tree, self._solved.numbers)
        kind, offset, reach = self._reach(walker, other, bids)
        reached = bool(reach.sum() > 0)
        weights = reach if reached else tree.hand_chances[other]
        weights = weights / weights.sum()
        wins = np.full(variant.facts.num_actions, np.nan)
        if bids:
            needed, face = int(quantity_of(params, bids[-1])) + 1, int(face_of(params, bids[-1]))
            own = int(tree.matches[player][hand, face])
            wins[params.call] = weights[tree.matches[other][:, face] + own < needed].sum()
        for bid in tree.raises_after(bids[-1] if bids else NO_BID, player).tolist():
            edge = edge_of[kind, bid] if kind != OUTSIDE and bid < edge_of.shape[1] else -1
            if edge >= 0 and kinds.child[edge] != LEAF:
                child = int(kinds.child[edge])
                arrived = np.bincount(by_hand[other][child], weights, int(kinds.classes[child, other]))
                values = walker.response(player, child, offset + int(kinds.shift[edge]), arrived)
                wins[bid] = values[by_hand[player][child, hand]]
            else:  # a bid of all dice: the solution calls it
                face = int(face_of(params, bid))
                all_match = tree.matches[player][hand, face] == tree.dice[player]
                wins[bid] = weights[tree.matches[other][:, face] == tree.dice[other]].sum() if all_match else 0.0
        return wins, reached
