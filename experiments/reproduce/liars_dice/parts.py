"""Which part of an agent's play costs it rounds of Liar's Dice against a solution: its calls, its openings or its raises.

An agent plays each round against the solution, as the starter and as the other player. Then one part of its play is
replaced by the solution's, and what it wins more is what that part has cost. All chances are exact. The parts need not
add up: a better raise is worth more to a player who also calls well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.dice import new_streams
from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.round import mix_at
from dice_envs.exact.liars_dice.solution import OUTSIDE, Dice, Solution, SolvedRound, edges_by_bid, find_node, wins_game
from dice_envs.exact.liars_dice.walk import ROWS_AT_ONCE, Asking, Round, Source, meet, source_of
from dice_envs.experiments.reproduce.liars_dice.habits import round_shares

__all__ = ["PARTS", "Mixed", "Part", "Played", "Solved", "mean_loss", "wins_against", "wins_games"]

# Values of `Part.opening`: its own first bid, the solution's, the solution's quantity with its own face, and the reverse.
KEPT, BOTH, QUANTITY, FACE = range(4)


class Part(NamedTuple):
    """What of an agent's play is the solution's."""

    calls: bool = False  # whether it calls or raises
    opening: int = KEPT  # its first bid
    raises: bool = False  # what it raises to, when it raises


PARTS = {
    "nothing": Part(),
    "calls": Part(calls=True),
    "first bids": Part(opening=BOTH),
    "quantity of first bids": Part(opening=QUANTITY),
    "face of first bids": Part(opening=FACE),
    "raises": Part(raises=True),
}


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


class Answers(NamedTuple):
    """What a source writes. See `liars_dice_walk.Asking`."""

    calls: np.ndarray
    raises: np.ndarray
    alive: np.ndarray


class Solved:
    """A player of a solved round, as a source of probabilities: of one answer each. See `liars_dice_walk.Source`."""

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
def _combine(slots, rows, start, weight, first, entry_at, raise_at, calls_too, opening_too, raises_too, own, other, mixed):
    """Write the own play with parts of the other's into `mixed`. In place, and `own` and `other` too: their raises that no
    hand makes become 0.
    """
    counted = 0
    for node in range(len(slots)):
        begin = start[rows[node]]
        hands = start[rows[node] + 1] - begin
        edges = first[slots[node] + 1] - first[slots[node]]
        for edge in range(edges):
            at = raise_at[node] + edge * hands
            mixed.alive[counted + edge] = 0
            mixed.raises[at : at + hands] = 0.0
            if own.alive[counted + edge] == 0:
                own.raises[at : at + hands] = 0.0
            if other.alive[counted + edge] == 0:
                other.raises[at : at + hands] = 0.0
        for k in range(hands):
            entry = entry_at[node] + k
            mixed.calls[entry, 0] = other.calls[entry, 0] if calls_too else own.calls[entry, 0]
            of_own = 0.0
            of_other = 0.0
            for edge in range(edges):
                of_own += own.raises[raise_at[node] + edge * hands + k, 0]
                of_other += other.raises[raise_at[node] + edge * hands + k, 0]
            left = weight[begin + k, 0] - mixed.calls[entry, 0]
            takes_other = opening_too if slots[node] == 0 else raises_too
            if (of_other if takes_other else of_own) == 0.0:  # it never raises with this hand
                takes_other = not takes_other
            total = of_other if takes_other else of_own
            if left <= 0.0 or total == 0.0:
                continue
            for edge in range(edges):
                at = raise_at[node] + edge * hands + k
                mixed.raises[at, 0] = (other.raises[at, 0] if takes_other else own.raises[at, 0]) * left / total
                mixed.alive[counted + edge] += mixed.raises[at, 0] > 0.0
        counted += edges


def _first_bids(round_: Round, quantities: Answers, faces: Answers) -> np.ndarray:
    """First bids (bids, hands) of the one's quantities and the other's faces, drawn apart; weighted like both."""
    bids = slice(round_.first[0], round_.first[1])
    need, face = round_.need[round_.child[bids]], round_.face[round_.child[bids]]
    by_quantity, by_face = (
        np.where(each.alive[:, None] > 0, each.raises.reshape(len(need), -1), 0.0) for each in (quantities, faces)
    )
    weight = by_face.sum(axis=0)
    by_quantity, by_face = (need[:, None] == need).astype(float) @ by_quantity, (face[:, None] == face).astype(float) @ by_face
    return np.divide(by_quantity * by_face, weight, out=np.zeros_like(by_face), where=weight > 0)


class Mixed:
    """A player who takes a part of its play from another. See `liars_dice_walk.Source`.

    Where the one whose raises are taken never raises, those of the other one are.
    """

    def __init__(self, round_: Round, own: Source, other: Source, part: Part) -> None:
        self._round, self._own, self._other, self._part = round_, own, other, part

    def write(self, asking: Asking) -> None:
        own, other = (_answers(source, asking) for source in (self._own, self._other))
        mixed = Answers(asking.calls, asking.raises, asking.alive)
        part, reach = self._part, asking.reach
        if asking.slots[0] == 0 and part.opening in (QUANTITY, FACE):
            both = _first_bids(self._round, *((other, own) if part.opening == QUANTITY else (own, other)))
            other.raises[:, 0] = both.reshape(-1)
            other.alive[:] = (both > 0).sum(axis=1)
        _combine(
            asking.slots, asking.rows, reach.start, reach.weight, self._round.first, asking.entry_at, asking.raise_at,
            part.calls, part.opening != KEPT, part.raises, own, other, mixed,
        )  # fmt: skip


def _answers(source: Source, asking: Asking) -> Answers:
    answers = Answers(np.zeros_like(asking.calls), np.zeros_like(asking.raises), np.zeros_like(asking.alive))
    source.write(asking._replace(calls=answers.calls, raises=answers.raises, alive=answers.alive))
    return answers


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


def wins_against(solution: Solution, agent: Any, parts: Mapping[str, Part] = PARTS) -> dict[str, dict[Dice, Played]]:
    """What an agent wins of each round against the solution, with parts of its play replaced, by part and round.

    Args:
        solution: of a game of two players.
        agent: states its probabilities, which do not depend on past rounds.
        parts: what is replaced.
    """
    found: dict[str, dict[Dice, Played]] = {name: {} for name in parts}
    streams = new_streams(0, ROWS_AT_ONCE)[None]
    for dice, solved in solution.rounds.items():
        round_ = Round(solution.variant, dice)
        best = [Solved(round_, player, solved) for player in range(2)]
        own = [source_of(round_, player, agent, player, streams) for player in range(2)]
        for name, part in parts.items():
            mixed = [Mixed(round_, own[player], best[player], part) for player in range(2)]
            starting, other_starting = meet(round_, (mixed[0], best[1])), meet(round_, (best[0], mixed[1]))
            found[name][dice] = Played(starting, 1 - other_starting, solved.value, 1 - solved.value)
    return found


def wins_games(played: Mapping[Dice, Played], dice: int) -> float:
    """The chance to win a game of elimination in which both begin with so many dice, mean over who starts."""

    def chance(own: int, others: int, starts: bool) -> float:
        return played[own, others].starting if starts else played[others, own].following

    return float(sum(wins_game((dice, dice), starts, chance) for starts in (True, False)) / 2)


def mean_loss(solution: Solution, played: Mapping[Dice, Played]) -> float:
    """The loss of a round, mean over the rounds that the solution comes to in its own play."""
    shares = round_shares(solution)
    return sum(share * played[dice].loss for dice, share in shares.items()) / sum(shares.values())
