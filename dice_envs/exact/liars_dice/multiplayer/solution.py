"""Solved games of Liar's Dice at a table: strategies for every round, what each seat wins and gains by leaving them.

Whoever is out plays no part in a round, so a round is named by the dice of those who are left, its starter's first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.hands import Hands, hand_number, numbered_hands
from dice_envs.exact.liars_dice.multiplayer.cfr import Layout, Walker, mix_at
from dice_envs.exact.liars_dice.round import Round, must_call
from dice_envs.exact.liars_dice.seating import Dice, Table, first_tables, left_of, players_of, rounds_of, share_after
from dice_envs.exact.liars_dice.sources import Asking, find_place

__all__ = ["Certificate", "Rest", "Solution", "SolvedRound", "Strategy", "rounds_left"]


def rounds_left(variant: Variant) -> list[Dice]:
    """Return the dice of those left in every round that a game can reach, few dice first."""
    return list(dict.fromkeys(left_of(dice) for dice in rounds_of(variant.options)))


# --- one round ------------------------------------------------------------------------------------------------------------


class Certificate(NamedTuple):
    """Shares of wins from a round on, each (players,) float64. In a game of one round all who lose no die share the win."""

    plays: np.ndarray  # when all follow the strategies
    responds: np.ndarray  # of a player who responds best to all others, in this round and all that follow

    @property
    def gain(self) -> float:
        """Return what the players gain by leaving the strategies, each alone, in all."""
        return float((self.responds - self.plays).sum())


@dataclasses.dataclass(frozen=True)
class SolvedRound:
    """The strategies of all players in a round, with their certificate.

    Attributes:
        round_: the round.
        numbers: (numbers,) float, in proportion to how likely each action is; see `cfr.Layout`.
        certificate: exact, for these numbers and those of the rounds that follow.
        iterations: made to find them.
        seconds: taken to find them.
    """

    round_: Round
    numbers: np.ndarray
    certificate: Certificate
    iterations: int
    seconds: float


class Rest:
    """What the rest of a game is worth after a round.

    Attributes:
        plays: (players, players) float64: to each player, if each of them loses the die and all follow their strategies.
        responds: the same, to a player who responds best to all others.
    """

    def __init__(self, variant: Variant, dice: Dice, known: Mapping[Dice, Certificate]) -> None:
        def worth(part: int) -> np.ndarray:
            def share(follows: Table, place: int) -> float:
                return float(known[left_of(follows.dice)][part][players_of(follows.dice).index(place)])

            players = range(len(dice))
            table = Table(dice, 0)
            return np.array(
                [[share_after(variant.options, table, loser, player, share) for loser in players] for player in players]
            )

        self.plays, self.responds = worth(0), worth(1)

    def certify(self, walker: Walker) -> Certificate:
        """Certify the strategies of a walker."""
        return Certificate(walker.plays(self.plays), walker.responds(self.responds))


# --- strategies -----------------------------------------------------------------------------------------------------------


class _Strategies(NamedTuple):
    """The strategies of a round, for kernels."""

    layout: Layout
    numbers: np.ndarray
    of: np.ndarray  # (players, slots, hands) int64: the mover's hand → class, padded


@kernel(allocates=False)
def _class_chances(strategies, mover, slot, at, rows, total):
    """Write the strategy at a node that has a choice into `rows` (actions, classes); return its number of actions. In place."""
    layout = strategies.layout
    actions = 1 + layout.first[slot + 1] - layout.first[slot]
    mix_at(strategies.numbers, at, 1 if slot == 0 else 0, layout.size[mover, mover, slot], rows[:actions], total)
    return actions


@kernel(allocates=False)
def _write_asked(strategies, asking, rows, total):
    """Write how likely each action is at each node. In place; `rows` (actions, classes) and `total` (classes,) are scratch."""
    layout = strategies.layout
    mover = asking.paths.shape[1] % len(layout.size)
    for node in range(len(asking.slots)):
        slot = asking.slots[node]
        begin, entry = asking.start[asking.rows[node]], asking.entry_at[node]
        hands = asking.entry_at[node + 1] - entry
        at, _ = find_place(asking.paths[node], layout, layout.shift)
        actions = _class_chances(strategies, mover, slot, at, rows, total)
        for k in range(hands):
            each = strategies.of[mover, slot, asking.hand[begin + k]]
            asking.calls[entry + k, 0] = rows[0, each]
            for place in range(1, actions):
                asking.raises[asking.raise_at[node] + (place - 1) * hands + k, 0] = rows[place, each]


@kernel(allocates=False)
def _write_probabilities(params, strategies, hands, states, which, out, rows, total):
    """Write the probabilities of the player to move at states[which] into out[which]. In place; `rows` and `total` as above."""
    layout = strategies.layout
    for row in which:
        state = states[row]
        bids = np.int64(state["num_bids"])
        at, slot = find_place(state["bids"][:bids], layout, layout.shift)
        if must_call(layout, slot):
            out[row, params.call] = 1.0
            continue
        seat, mover = np.int64(state["seat"]), bids % len(layout.size)
        hand = hand_number(hands, np.int64(state["dice"][seat]), state["counts"][seat])
        actions = _class_chances(strategies, mover, slot, at, rows, total)
        each = strategies.of[mover, slot, hand]
        out[row, params.call] = rows[0, each]
        for place in range(1, actions):
            out[row, layout.bid[layout.child[layout.first[slot] + place - 1]]] = rows[place, each]


class Strategy:
    """The strategies of all players in a round, by numbers as in `cfr.Layout`. A `sources.Source` for each player."""

    def __init__(self, round_: Round, numbers: np.ndarray) -> None:
        layout = Layout.of(round_)
        of = [classes.of[player] for player, classes in enumerate(round_.all_classes)]
        padded = np.zeros((len(of), len(layout.need), max(each.shape[1] for each in of)), np.int64)
        for to, each in zip(padded, of, strict=True):
            to[:, : each.shape[1]] = each
        self._strategies = _Strategies(layout, numbers, padded)
        most = int(layout.size.max())
        self._rows, self._total = np.zeros((1 + int(np.diff(layout.first).max()), most)), np.zeros(most)

    def write(self, asking: Asking) -> None:
        if asking.calls.shape[1] != 1:
            raise ValueError("a solution gives one answer, not two")
        _write_asked(self._strategies, asking, self._rows, self._total)

    def write_probabilities(
        self, variant: Variant, hands: Hands, states: np.ndarray, rows: np.ndarray, out: np.ndarray
    ) -> None:
        """Write the probabilities of the player to move at states[rows], all of this round, into out[rows]. In place."""
        _write_probabilities(variant.params, self._strategies, hands, states, rows, out, self._rows, self._total)


# --- a game ---------------------------------------------------------------------------------------------------------------


class Solution:
    """Strategies for every round of a game at a table, with a certificate.

    Attributes:
        variant: of Liar's Dice.
        rounds: dice of those who are left, the starter's first → the solved round.
        plays, responds: (seats,) float64: each seat's share of wins when all follow the strategies, and when it alone
            responds best to them; mean over the seats that may start. In a game of one round all who lose no die share the win.
        gain: what the seats gain by leaving the strategies, each alone, in all. For two players it is the exploitability
            for returns of ±1.
        seconds: taken to solve or load it.
    """

    def __init__(self, variant: Variant, rounds: Mapping[Dice, SolvedRound], seconds: float = 0.0) -> None:
        self.variant = variant
        self.rounds = dict(rounds)
        self.seconds = seconds
        self._hands = numbered_hands(variant, max(variant.options.dice_per_seat))
        self._strategies = {dice: Strategy(each.round_, each.numbers) for dice, each in self.rounds.items()}
        starts = first_tables(variant.options)
        by_seat = [[np.roll(part, table.starter) for part in self.rounds[table.dice].certificate] for table in starts]
        self.plays, self.responds = np.mean(by_seat, axis=0)
        self.gain = float((self.responds - self.plays).sum())

    @property
    def nbytes(self) -> int:
        """Return the bytes of all strategies."""
        return sum(each.numbers.nbytes for each in self.rounds.values())

    def source(self, round_: Round) -> Strategy:
        """Return what plays a round, for any of its players. See `sources.Source`."""
        return self._strategies[round_.dice]

    def probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return the strategies' probabilities at states in which a seat is to move, (n, num_actions) float64."""
        out = np.zeros((len(states), self.variant.facts.num_actions))
        seats = self.variant.params.num_players
        turned = (states["starter"][:, None].astype(np.int64) + np.arange(seats)) % seats
        dice = np.take_along_axis(states["dice"].astype(np.int64), turned, axis=1)
        different, which = np.unique(dice, axis=0, return_inverse=True)
        for number, row in enumerate(different.tolist()):
            mine = np.flatnonzero(which.reshape(-1) == number)
            self._strategies[left_of(tuple(row))].write_probabilities(self.variant, self._hands, states, mine, out)
        return out

    def as_dict(self) -> dict[str, Any]:
        """Return what `solve --json` writes."""
        rounds = [
            {
                "dice": list(dice),
                "shares": each.certificate.plays.tolist(),
                "best_responses": each.certificate.responds.tolist(),
                "gain": each.certificate.gain,
                "iterations": each.iterations,
                "seconds": each.seconds,
            }
            for dice, each in self.rounds.items()
        ]
        return {
            "shares": self.plays.tolist(),
            "best_responses": self.responds.tolist(),
            "gain": self.gain,
            "seconds": self.seconds,
            "rounds": rounds,
        }
