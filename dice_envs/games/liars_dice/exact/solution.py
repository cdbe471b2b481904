"""Solved games of Liar's Dice: strategies for every round, what they win, and what best responses win from them.

Whoever is out plays no part in a round, so a round is named by the dice of those who are left, its starter's first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact import ActionValues
from dice_envs.exact.contract import GAMES_WON, Unit
from dice_envs.games.liars_dice import MAX_DICE
from dice_envs.games.liars_dice.exact.cfr import Walker
from dice_envs.games.liars_dice.exact.moves import Asking, Source
from dice_envs.games.liars_dice.exact.round import hand_number
from dice_envs.games.liars_dice.exact.seating import Certificate, Dice, certify_games, first_tables, left_of, rest_of, rounds_of
from dice_envs.games.liars_dice.exact.tree import LEAF, Tree, mix_at, strategy_at
from dice_envs.games.liars_dice.raises import face_of, quantity_of


def rounds_left(variant: Variant) -> list[Dice]:
    """Return the dice of those left in every round that a game can reach, few dice first."""
    return list(dict.fromkeys(left_of(dice) for dice in rounds_of(variant.options)))


# --- strategies -----------------------------------------------------------------------------------------------------------

ROUNDS_WON = Unit("rounds won", True, "chance to win", "rounds")
OUTSIDE = -1  # where no kind of node is: all dice are bid, and the solution calls


@kernel(allocates=False)
def find_node(kinds, bids, count):
    """Return the kind of node that bids lead to, and where its numbers begin; OUTSIDE where the tree ends before."""
    kind = 0
    offset = 0
    for k in range(count):
        edge = kinds.edge_of[kind, bids[k]]
        if edge < 0 or kinds.child[edge] == LEAF:
            return OUTSIDE, 0
        offset += kinds.shift[edge]
        kind = kinds.child[edge]
    return kind, offset


@kernel(allocates=False)
def _write_probabilities(params, kinds, numbers, states, rows, out):
    """Write the probabilities of the player to move at states[rows] into out[rows]. In place."""
    for row in rows:
        state = states[row]
        seat, bids = np.int64(state["seat"]), np.int64(state["num_bids"])
        kind, offset = find_node(kinds, state["bids"], bids)
        hand = hand_number(params.num_faces, np.int64(state["dice"][seat]), state["counts"][seat])
        each = kinds.class_of[bids % len(kinds.class_of), kind, hand] if kind != OUTSIDE else 0
        if kind == OUTSIDE or each >= kinds.active[kind]:
            out[row, params.call] = 1.0
        else:
            strategy_at(kinds, kind, offset, numbers, each, params.call, out[row])


@kernel(allocates=False)
def _write_solved(kinds, numbers, rules, asking, mix, factor):
    """Write the solution's strategy at each node. `mix` and `factor` have room for what `mix_at` writes. In place."""
    by_hand = kinds.class_of[asking.paths.shape[1] % len(kinds.class_of)]
    for node in range(len(asking.slots)):
        kind, offset = find_node(kinds, asking.paths[node], asking.paths.shape[1])
        active = 0
        if kind != OUTSIDE:
            active = kinds.active[kind]
            mix_at(kinds, kind, offset, numbers, mix, factor)
        kind = max(kind, 0)  # where it is OUTSIDE, no class is active
        slot, entry, at = asking.slots[node], asking.entry_at[node], asking.raise_at[node]
        hands = asking.entry_at[node + 1] - entry
        for k in range(hands):
            each = by_hand[kind, asking.hand[entry + k]]
            asking.calls[entry + k, 0] = mix[0, each] * factor[each] if each < active else 1.0
        for edge in range(rules.first[slot], rules.first[slot + 1]):
            own = kinds.edge_of[kind, rules.bid[rules.child[edge]]]
            for k in range(hands):
                each = by_hand[kind, asking.hand[entry + k]]
                bids = own >= 0 and each < active
                asking.raises[at + k, 0] = mix[1 + own - kinds.first_edge[kind], each] * factor[each] if bids else 0.0
            at += hands


# --- a round --------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SolvedRound(Source):
    """The strategies of all players in a round, as a source for each of them, with their certificate."""

    tree: Tree  # of the round
    numbers: np.ndarray  # (numbers,) of any type, in proportion to how likely each action is; see `Kinds`
    # Exact for these numbers: of two players for the round alone, at larger tables for it and those that follow.
    certificate: Certificate
    iterations: int  # made to find them; 0 for a linear programme
    seconds: float  # taken to find them
    widths: tuple[float, ...] = ()  # those asked for one after another: the result depends on all of them

    def _room(self) -> tuple[np.ndarray, np.ndarray]:
        """Return arrays for what `mix_at` writes at any kind of node, new ones at each call: threads share the strategies."""
        kinds = self.tree.kinds
        most = int(kinds.classes.max())
        return np.empty((1 + int(np.diff(kinds.first_edge).max()), most)), np.empty(most)

    def write(self, asking: Asking) -> None:
        if asking.calls.shape[1] != 1:
            raise ValueError("a solution gives one answer, not two")
        _write_solved(self.tree.kinds, self.numbers, self.tree.rules, asking, *self._room())

    def _reach(self, other: int, bids: np.ndarray) -> np.ndarray:
        """Return how likely a player of two comes to where bids lead, with each of its hands."""
        tree, kinds, reach = self.tree, self.tree.kinds, self.tree.chances[other].copy()
        mix, factor = self._room()
        for place in range(other, len(bids), 2):
            kind, offset = find_node(kinds, bids, place)
            edge = int(kinds.edge_of[kind, bids[place]]) if kind != OUTSIDE else -1
            if edge < 0:
                return np.zeros(len(reach))
            mix_at(kinds, kind, offset, self.numbers, mix, factor)
            chances, active = np.zeros(int(kinds.classes[kind, other])), int(kinds.active[kind])
            chances[:active] = mix[1 + edge - kinds.first_edge[kind], :active] * factor[:active]
            reach *= chances[tree.class_of[other, kind, : len(reach)]]
        return reach

    def action_wins(self, variant: Variant, state: Any) -> tuple[np.ndarray, bool]:
        """Return how likely each legal action wins a round of two, and whether the other player may have made its bids."""
        tree, kinds, params = self.tree, self.tree.kinds, variant.params
        seat = int(state["seat"])
        player = 0 if seat == int(state["starter"]) else 1
        other = 1 - player
        hand = hand_number(params.num_faces, tree.dice[player], state["counts"][seat])
        if hand < 0:
            raise ValueError(
                f"the seat to move must hold {tree.dice[player]} dice, not {state['counts'][seat].tolist()} by face"
            )
        bids = state["bids"][: int(state["num_bids"])].astype(np.int64)
        walker = Walker(tree, self.numbers)
        kind, offset = find_node(kinds, bids, len(bids))
        reach = self._reach(other, bids)
        reached = bool(reach.sum() > 0)
        weights = reach if reached else tree.chances[other]
        weights = weights / weights.sum()
        wins = np.full(variant.facts.num_actions, np.nan)
        if len(bids):
            needed, face = int(quantity_of(params, bids[-1])) + 1, int(face_of(params, bids[-1]))
            own = int(tree.matches[player][hand, face])
            wins[params.call] = weights[tree.matches[other][:, face] + own < needed].sum()
        for bid in tree.raises[int(state["bid"]), player].tolist():
            edge = kinds.edge_of[kind, bid] if kind != OUTSIDE else -1
            if edge >= 0 and kinds.child[edge] != LEAF:
                child = int(kinds.child[edge])
                arrived = np.bincount(tree.class_of[other, child, : len(weights)], weights, int(kinds.classes[child, other]))
                values = walker.response(player, child, offset + int(kinds.shift[edge]), arrived)
                wins[bid] = values[tree.class_of[player, child, hand]]
            else:  # a bid of all dice: the solution calls it
                face = int(face_of(params, bid))
                all_match = tree.matches[player][hand, face] == tree.dice[player]
                wins[bid] = weights[tree.matches[other][:, face] == tree.dice[other]].sum() if all_match else 0.0
        return wins, reached


# --- a game ---------------------------------------------------------------------------------------------------------------


class Solution:
    """Strategies for every round of a game, with a certificate.

    Attributes:
        variant: of Liar's Dice.
        rounds: dice of those who are left, the starter's first → the solved round.
        certificates: the same → the certificate of the game from that round on.
        seconds: taken to solve or load it.
        plays, responds: (seats,) float64: each seat's share of wins when all follow the strategies, and when it alone
            responds best to them; mean over the seats that may start. In a game of one round all who lose no die share the win.
        gain: what the seats gain by leaving the strategies, each alone, in all.
        lower, value, upper: of two players; of a single round, the starter's expected return; of a game of elimination, the
            starter's chance to win; mean over the seats that may start. `value` is that of the strategies against each other.
        exploitability: of two players; what best responses win from the strategies above the value, for returns of ±1, mean of
            the two: the gain.
        nash_conv: the sum of the two.
        unseen, visitor: see `dice_envs.exact.contract.Equilibrium`.
    """

    unseen = ("past_bids",)
    visitor = "numbers:bluff=0.5"

    def __init__(self, variant: Variant, rounds: Mapping[Dice, SolvedRound], seconds: float = 0.0) -> None:
        self.variant = variant
        self.rounds = dict(rounds)
        self.seconds = seconds
        known = {dice: each.certificate for dice, each in self.rounds.items()}
        of_two = variant.options.num_players == 2
        self.certificates = certify_games(variant.options, known) if of_two else known
        starts = [(self.certificates[table.dice], table.starter) for table in first_tables(variant.options)]
        self.plays, self.responds = np.mean([np.roll(each, starter, axis=1) for each, starter in starts], axis=0)
        self.gain = float((self.responds - self.plays).sum())
        if of_two:
            self.exploitability, self.nash_conv = self.gain, 2 * self.gain
            ends = np.mean([(each.lower, each.value, each.upper) for each, _ in starts], axis=0)
            ends.sort()  # rounding may have put them out of order
            self.lower, self.value, self.upper = (2 * ends - 1 if variant.options.rounds == "single" else ends).tolist()

    def as_dict(self) -> dict[str, Any]:
        """Return what `solve --json` writes."""
        of_two = self.variant.options.num_players == 2
        rounds = []
        for dice, each in self.rounds.items():
            plays, responds = each.certificate
            figures = {"shares": plays.tolist(), "best_responses": responds.tolist(), "gain": each.certificate.gain}
            if of_two:
                lower, upper = sorted((each.certificate.lower, each.certificate.upper))
                figures = {"value": each.certificate.value, "lower": lower, "upper": upper}
            rounds.append({"dice": list(dice), **figures, "iterations": each.iterations, "seconds": each.seconds})
        whole: dict[str, Any] = {"shares": self.plays.tolist(), "best_responses": self.responds.tolist(), "gain": self.gain}
        if of_two:
            whole = {"value": self.value, "lower": self.lower, "upper": self.upper, "exploitability": self.exploitability}
            whole["nash_conv"] = self.nash_conv
        return {**whole, "seconds": self.seconds, "rounds": rounds}

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return the solution's probabilities at states in which a seat is to move, (n, num_actions) float64."""
        out = np.zeros((len(states), self.variant.facts.num_actions))
        seats = self.variant.params.num_players
        places = (states["starter"][:, None] + np.arange(seats)) % seats
        dice = states["dice"][np.arange(len(states))[:, None], places].astype(np.int64)
        keys = dice @ (MAX_DICE + 1) ** np.arange(seats)
        for key in set(keys.tolist()):
            mine = np.flatnonzero(keys == key)
            solved = self.rounds[left_of(tuple(dice[mine[0]].tolist()))]
            _write_probabilities(self.variant.params, solved.tree.kinds, solved.numbers, states, mine, out)
        return out

    def action_values(self, state: Any) -> ActionValues:
        """Return the chance to win the game (or the one round) with each action, followed by a best response to the solution,
        and the solution's own probabilities. See `dice_envs.exact.ActionValues`."""
        starter = int(state["starter"])
        dice = int(state["dice"][starter]), int(state["dice"][1 - starter])
        wins, reached = self.rounds[dice].action_wins(self.variant, state)
        chances, call = np.full(len(wins), np.nan), self.variant.params.call
        chances[call] = wins[call]
        mix = self.probabilities(np.array([state]))[0]
        player = 0 if state["seat"] == starter else 1
        payoffs = rest_of(self.variant.options, dice, {each: found.responds for each, found in self.certificates.items()})
        low, high = payoffs[player, player], payoffs[player, 1 - player]
        wins = low + (high - low) * wins
        note = "against optimal play"
        if (inaccuracy := 50 * self.exploitability) > 1e-6:  # exploitability is for returns of ±1
            note += f" (accurate to about {inaccuracy:.1g} %)"
        if not reached:
            note += ", which would not have bid this way: its dice are taken for fair"
        unit = ROUNDS_WON if self.variant.options.rounds == "single" else GAMES_WON
        return ActionValues(wins, unit, note, mix, reached=reached, chances=chances)
