"""The cost of each part of an agent's play in Liar's Dice against a solution: its calls, its first bids, its raises.

An agent plays each round against the solution, as the starter and as the other player. Then one part of its play is
replaced by the solution's. The rounds that it wins more are the cost of that part. All chances are exact. The costs need not
add up: a better raise is worth more to a player that also calls well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core.dice import new_streams
from dice_envs.core.kernel import kernel
from dice_envs.exact.liars_dice.moves import Asking, Source
from dice_envs.exact.liars_dice.round import Round, Rules
from dice_envs.exact.liars_dice.seating import Dice, wins_game
from dice_envs.exact.liars_dice.solution import Solution, Strategy
from dice_envs.exact.liars_dice.sources import ROWS_AT_ONCE, source_of
from dice_envs.exact.liars_dice.walk import Party, walk
from dice_envs.experiments.reproduce.liars_dice.habits import round_shares

__all__ = ["PARTS", "Mixed", "Replaced", "RoundChances", "mean_loss", "wins_against", "wins_games"]

# Values of `Replaced.opening`: its own first bid, the solution's, the solution's quantity with its own face, and the reverse.
KEPT, BOTH, QUANTITY, FACE = range(4)


class Replaced(NamedTuple):
    """The part of an agent's play that is replaced by the solution's."""

    calls: bool = False  # the choice between call and raise
    opening: int = KEPT  # the first bid
    raises: bool = False  # the choice between raises


PARTS = {
    "nothing": Replaced(),
    "calls": Replaced(calls=True),
    "first bids": Replaced(opening=BOTH),
    "quantity of first bids": Replaced(opening=QUANTITY),
    "face of first bids": Replaced(opening=FACE),
    "raises": Replaced(raises=True),
}


@kernel(allocates=False)
def _combine_raises(own, other, takes_other, left, at, hands, edges, mixed):
    """Write the raises of one hand, which raises with probability `left`. Its numbers lie `hands` apart from `at` on. In place.

    If the player whose raises are taken never raises with this hand, the other's raises are taken.
    """
    of_own = 0.0
    of_other = 0.0
    for edge in range(edges):
        of_own += own.raises[at + edge * hands, 0]
        of_other += other.raises[at + edge * hands, 0]
    if (of_other if takes_other else of_own) == 0.0:
        takes_other = not takes_other
    total = of_other if takes_other else of_own
    for edge in range(edges):
        chance = other.raises[at + edge * hands, 0] if takes_other else own.raises[at + edge * hands, 0]
        mixed.raises[at + edge * hands, 0] = chance * left / total if left > 0.0 and total > 0.0 else 0.0


@kernel(allocates=False)
def _combine(rules, calls_too, opening_too, raises_too, own, other, mixed):
    """Blend the play of two players into `mixed`: the first one's, with parts of the other's. In place."""
    for node in range(len(mixed.slots)):
        slot, entry = mixed.slots[node], mixed.entry_at[node]
        hands, edges = mixed.entry_at[node + 1] - entry, rules.first[slot + 1] - rules.first[slot]
        takes_other = opening_too if slot == 0 else raises_too
        for k in range(hands):
            call = other.calls[entry + k, 0] if calls_too else own.calls[entry + k, 0]
            mixed.calls[entry + k, 0] = call
            _combine_raises(own, other, takes_other, 1.0 - call, mixed.raise_at[node] + k, hands, edges, mixed)


def _first_bids(rules: Rules, quantities: Asking, faces: Asking) -> np.ndarray:
    """Return chances of first bids (bids, hands), with quantities and faces drawn independently from two players' bids."""
    bids = rules.raises(0)
    need, face = rules.need[bids], rules.face[bids]
    by_quantity, by_face = (each.raises.reshape(len(need), -1) for each in (quantities, faces))
    weight = by_face.sum(axis=0)
    by_quantity, by_face = (need[:, None] == need).astype(float) @ by_quantity, (face[:, None] == face).astype(float) @ by_face
    return np.divide(by_quantity * by_face, weight, out=np.zeros_like(by_face), where=weight > 0)


class Mixed(Source):
    """A player that takes a part of its play from another, as a source."""

    def __init__(self, round_: Round, own: Source, other: Source, part: Replaced) -> None:
        self._rules, self._own, self._other, self._part = round_.rules, own, other, part

    def write(self, asking: Asking) -> None:
        own, other = _answers(self._own, asking), _answers(self._other, asking)
        part = self._part
        if asking.slots[0] == 0 and part.opening in (QUANTITY, FACE):
            both = _first_bids(self._rules, *((other, own) if part.opening == QUANTITY else (own, other)))
            other.raises[:, 0] = both.reshape(-1)
        _combine(self._rules, part.calls, part.opening != KEPT, part.raises, own, other, asking)


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

    Args:
        solution: of a game of two players.
        agent: states its probabilities, which do not depend on past rounds.
        parts: the parts that are replaced.
    """
    found: dict[str, dict[Dice, RoundChances]] = {name: {} for name in parts}
    streams = new_streams(0, ROWS_AT_ONCE)[None]
    for dice, solved in solution.rounds.items():
        round_ = Round(solution.variant, dice)
        best = Strategy(solved.tree, solved.numbers)
        own = [source_of(round_, player, agent, player, streams) for player in range(2)]
        for name, part in parts.items():
            mixed = [Mixed(round_, own[player], best, part) for player in range(2)]
            ((starting,),) = walk(round_, (mixed[0], best), [Party((), np.array([0.0, 1.0]))])
            ((following,),) = walk(round_, (best, mixed[1]), [Party((), np.array([1.0, 0.0]))])
            found[name][dice] = RoundChances(float(starting), float(following), solved.value, 1 - solved.value)
    return found


def wins_games(played: Mapping[Dice, RoundChances], dice: int) -> float:
    """Return the chance to win a game of elimination in which both begin with `dice` dice, mean over who starts."""

    def chance(own: int, others: int, starts: bool) -> float:
        return played[own, others].starting if starts else played[others, own].following

    return float(sum(wins_game((dice, dice), starts, chance) for starts in (True, False)) / 2)


def mean_loss(solution: Solution, played: Mapping[Dice, RoundChances]) -> float:
    """Return the loss of a round, mean over the rounds that the solution reaches in its own play."""
    shares = round_shares(solution)
    return sum(share * played[dice].loss for dice, share in shares.items()) / sum(shares.values())
