"""Which part of an agent's play costs it rounds of Liar's Dice against a solution: its calls, its openings or its raises.

An agent plays each round against the solution, as the starter and as the other player. Then one part of its play is
replaced by the solution's, and what it wins more is what that part has cost. All chances are exact. The parts need not
add up: a better raise is worth more to a player who also calls well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dice_envs.dice import new_streams
from dice_envs.exact.liars_dice_habits import round_shares
from dice_envs.exact.liars_dice_round import mix_at
from dice_envs.exact.liars_dice_solution import Dice, Solution, SolvedRound, edges_by_bid, find_node
from dice_envs.exact.liars_dice_walk import ROWS_AT_ONCE, Asked, Asking, Round, Source, Tabled, meet
from dice_envs.kernel import kernel

__all__ = ["PARTS", "Mixed", "Part", "Played", "Solved", "mean_loss", "wins_against"]


class Part(NamedTuple):
    """What of an agent's play is the solution's."""

    calls: bool = False  # whether it calls or raises
    opening: bool = False  # its first bid
    raises: bool = False  # what it raises to, when it raises


PARTS = {
    "as it plays": Part(),
    "the solution's calls": Part(calls=True),
    "the solution's first bids": Part(opening=True),
    "the solution's raises": Part(raises=True),
}

OUTSIDE = -1  # as in liars_dice_solution; kernels take globals of their own file for constants


@kernel
def _write_solved(
    kinds, numbers, edge_of, by_hand, slots, paths, rows, start, hand, weight, first, child, mix, total,
    entry_at, calls, raise_at, raises, alive,
):  # fmt: skip
    """Write what the solution does at each node, times the reach. `mix` and `total` are scratch. In place."""
    counted = 0
    for node in range(len(slots)):
        kind, offset = find_node(edge_of, kinds.child, kinds.shift, paths[node], paths.shape[1])
        active = 0 if kind == OUTSIDE else kinds.active[kind]
        if active > 0:
            mix_at(kinds, kind, offset, numbers, mix, total)
        begin = start[rows[node]]
        hands = start[rows[node] + 1] - begin
        for k in range(hands):
            each = by_hand[kind, hand[begin + k]] if active > 0 else 0
            call = 1.0
            if each < active:
                call = mix[0, each] if kind > 0 else 0.0
            calls[entry_at[node] + k, 0] = call * weight[begin + k, 0]
        at = raise_at[node]
        for edge in range(first[slots[node]], first[slots[node] + 1]):
            alive[counted] = 0
            own = edge_of[kind, child[edge] - 1] if active > 0 else -1
            if own >= 0:
                place = 1 + own - kinds.first_edge[kind]
                for k in range(hands):
                    each = by_hand[kind, hand[begin + k]]
                    chance = mix[place, each] if each < active else 0.0
                    raises[at + k, 0] = chance * weight[begin + k, 0]
                    alive[counted] += chance > 0.0
            counted += 1
            at += hands


class Solved:
    """A player of a solved round, as a source of probabilities. See `liars_dice_walk.Source`."""

    def __init__(self, round_: Round, player: int, solved: SolvedRound) -> None:
        tree, kinds = solved.tree, solved.tree.kinds
        self._round, self._solved = round_, solved
        self._edge_of = edges_by_bid(tree)
        self._by_hand = np.array([both[player] for both in tree.class_of], np.int64)
        most = int(kinds.classes.max())
        self._mix, self._total = np.zeros((1 + int(np.diff(kinds.first_edge).max()), most)), np.zeros(most)

    def write(self, asking: Asking) -> None:
        _write_solved(
            self._solved.tree.kinds, self._solved.numbers, self._edge_of, self._by_hand, asking.slots, asking.paths,
            asking.rows, *asking.reach, self._round.first, self._round.child, self._mix, self._total, asking.entry_at,
            asking.calls, asking.raise_at, asking.raises, asking.alive,
        )  # fmt: skip


@kernel
def _combine(
    slots, rows, start, weight, first, entry_at, raise_at, with_calls, with_opening, with_raises,
    own_calls, own_raises, own_alive, other_calls, other_raises, other_alive, calls, raises, alive,
):  # fmt: skip
    """Write the own play with parts of the other's into the last three. In place."""
    counted = 0
    for node in range(len(slots)):
        begin = start[rows[node]]
        hands = start[rows[node] + 1] - begin
        edges = first[slots[node] + 1] - first[slots[node]]
        for edge in range(counted, counted + edges):
            alive[edge] = 0
        for k in range(hands):
            own = 0.0
            other = 0.0
            for edge in range(edges):
                at = raise_at[node] + edge * hands + k
                raises[at, 0] = 0.0
                own += own_raises[at, 0] if own_alive[counted + edge] > 0 else 0.0
                other += other_raises[at, 0] if other_alive[counted + edge] > 0 else 0.0
            entry = entry_at[node] + k
            calls[entry, 0] = other_calls[entry, 0] if with_calls else own_calls[entry, 0]
            left = weight[begin + k, 0] - calls[entry, 0]
            takes_other = with_opening if slots[node] == 0 else with_raises
            if (other if takes_other else own) == 0.0:  # it never raises with this hand
                takes_other = not takes_other
            total = other if takes_other else own
            if left <= 0.0 or total == 0.0:
                continue
            for edge in range(edges):
                at = raise_at[node] + edge * hands + k
                share = 0.0
                if takes_other:
                    share = other_raises[at, 0] if other_alive[counted + edge] > 0 else 0.0
                else:
                    share = own_raises[at, 0] if own_alive[counted + edge] > 0 else 0.0
                raises[at, 0] = left * share / total
                alive[counted + edge] += raises[at, 0] > 0.0
        counted += edges


class Mixed:
    """A player who takes a part of its play from another. See `liars_dice_walk.Source`.

    Where the one whose raises are taken never raises, those of the other one are.
    """

    def __init__(self, round_: Round, own: Source, other: Source, part: Part) -> None:
        self._round, self._sources, self._part = round_, (own, other), part

    def write(self, asking: Asking) -> None:
        answers: list[np.ndarray] = []
        for source in self._sources:
            empty = np.zeros_like(asking.calls), np.zeros_like(asking.raises), np.zeros_like(asking.alive)
            source.write(asking._replace(calls=empty[0], raises=empty[1], alive=empty[2]))
            answers += empty
        _combine(
            asking.slots, asking.rows, asking.reach.start, asking.reach.weight, self._round.first, asking.entry_at,
            asking.raise_at, *self._part, *answers, asking.calls, asking.raises, asking.alive,
        )  # fmt: skip


class Played(NamedTuple):
    """What an agent wins of one round against the solution, and what the solution would win in its place."""

    starting: float  # the chance to win the round as its starter
    following: float  # and as the other player
    best_starting: float
    best_following: float

    @property
    def loss(self) -> float:
        """How much less often it wins than the solution, mean of both."""
        return (self.best_starting + self.best_following - self.starting - self.following) / 2


def wins_against(
    solution: Solution,
    agent: Any,
    parts: Mapping[str, Part] = PARTS,
    done: Callable[[int], Any] = lambda amount: None,
) -> dict[str, dict[Dice, Played]]:
    """What an agent wins of each round against the solution, with parts of its play replaced, by part and round.

    Args:
        solution: of a game of two players.
        agent: states its probabilities, which depend on its own dice and the last bid only.
        parts: what is replaced.
        done: told of 1 for every round and part.
    """
    found: dict[str, dict[Dice, Played]] = {name: {} for name in parts}
    streams = new_streams(0, ROWS_AT_ONCE)[None]
    for dice, solved in solution.rounds.items():
        round_ = Round(solution.variant, dice)
        best = [Solved(round_, player, solved) for player in range(2)]
        own = [Tabled(Asked(round_, player, agent, player, streams), round_, player) for player in range(2)]
        for name, part in parts.items():
            mixed = [Mixed(round_, own[player], best[player], part) for player in range(2)]
            starting, other_starting = meet(round_, (mixed[0], best[1])), meet(round_, (best[0], mixed[1]))
            found[name][dice] = Played(starting, 1 - other_starting, solved.value, 1 - solved.value)
            done(1)
    return found


def mean_loss(solution: Solution, played: Mapping[Dice, Played]) -> float:
    """The loss of a round, mean over the rounds that the solution comes to in its own play."""
    shares = round_shares(solution)
    return sum(share * played[dice].loss for dice, share in shares.items()) / sum(shares.values())
