"""Beliefs about the opponent: the players that it may be, how likely each would have decided as it did, and the posterior."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dice_envs.agent import Promises, Turn
from dice_envs.core.dice import STREAM
from dice_envs.core.game import Variant

from ..liars_dice import LiarsDiceNash, Numbers, Reader, chance_blind

_MANY = 30_000  # bids shown: a share of them is as exact as an int16 count allows


@dataclasses.dataclass(frozen=True)
class Lowest:
    """Makes the lowest legal bid, and calls with a fixed probability whatever has been bid.

    Attributes:
        call: this probability, 0 to 1; 1 where no bid is left.
    """

    promises = Promises(memoryless=True)

    call: float = 0.0

    def probabilities(self, turn: Turn) -> np.ndarray:
        rows, calls = np.arange(len(turn)), turn.params.call
        bids = turn.legal[:, :calls]
        may_call, may_bid = turn.legal[:, calls] > 0, bids.any(axis=1)
        out = np.zeros(turn.legal.shape)
        out[:, calls] = np.where(may_bid, self.call * may_call, 1.0)
        out[rows, bids.argmax(axis=1)] += 1.0 - out[:, calls]
        return out


@dataclasses.dataclass(frozen=True)
class FixedReader:
    """`reader` with a fixed opinion of its opponent.

    Attributes:
        nerve: as for `reader`.
        honest: how often it takes the opponent to name the face most held deliberately, 0 to 1.
    """

    nerve: float = 0.5
    honest: float = 0.5

    def probabilities(self, turn: Turn) -> np.ndarray:
        states = turn.states.copy()
        blind = chance_blind(turn.params.num_faces, turn.params.most_dice)
        states["bids_shown"][:, :2] = _MANY
        states["bids_honest"][:, :2] = round(_MANY * (blind + self.honest * (1 - blind)))
        return Reader(nerve=self.nerve).probabilities(Turn(turn.variant, states, np.arange(len(states)), turn.streams))


SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_NERVES = (0.25, 0.5, 0.75)
_BLUFFS = (0.0, 0.25, 0.5, 1.0)
# Players that have decided alike so far are equally likely, and the first is answered. So those that call more come first: the
# bids that answer them are soon called, or show that the opponent calls less.
_CALLS: tuple[dict[str, Any], ...] = (
    {},
    {"preset": "article"},
    *({"threshold": threshold} for threshold in (0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1)),
)
_STEADY: tuple[Any, ...] = (*(Numbers(bluff, **calls) for calls in _CALLS for bluff in _BLUFFS), *map(Lowest, SHARES))

# The players that are known, and those to whom best responses are computed: readers with fixed opinions.
KNOWN: tuple[Any, ...] = (*_STEADY, *(Reader(nerve=nerve) for nerve in _NERVES))
ANSWERED: tuple[Any, ...] = (*_STEADY, *(FixedReader(nerve, share) for nerve in _NERVES for share in SHARES))
READERS = len(_STEADY)  # where they begin, in both

# Kinds of player are those known, then optimal play and unknown play. The prior of all `numbers`, of all that make the lowest
# bid, of all readers, of optimal play and of unknown play is 1/5 each.
_SIZES = (len(_CALLS) * len(_BLUFFS), len(SHARES), len(_NERVES), 1, 1)
PRIOR = np.repeat([1 / len(_SIZES) / size for size in _SIZES], _SIZES)
KINDS = len(PRIOR)

# Each kind sometimes slips and acts at random. So one odd decision rules nothing out, and a player that often departs from all
# that are known is taken for unknown: for `numbers`, slipping half of the time.
_SLIPS = np.array([0.05] * (KINDS - 1) + [0.5])
_FAR = 30.0  # the most that log-likelihoods fall behind the greatest, so that a change of play is noticed soon


def log_likelihoods(variant: Variant, optimal: LiarsDiceNash, positions: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of each action for each kind of player, (n, KINDS) float64.

    Where both are legal, a slip is a call or a bid with probability 1/2 each. Legal bids are equally likely.
    """
    everywhere, call = np.arange(len(positions)), variant.params.call
    turn = Turn(variant, positions, everywhere, np.zeros(len(positions), STREAM))
    bids, may_call = turn.legal[:, :call].sum(axis=1), turn.legal[:, call] > 0
    slipped = np.where(actions == call, 1.0, 1.0 / np.maximum(bids, 1)) * np.where(may_call & (bids > 0), 0.5, 1.0)
    players = (*KNOWN, optimal, Numbers(bluff=0.5))
    chances = np.stack([player.probabilities(turn)[everywhere, actions] for player in players], axis=1)
    return np.log(chances * (1 - _SLIPS) + slipped[:, None] * _SLIPS)


def learn(memory: np.ndarray, rows: np.ndarray, logs: np.ndarray) -> None:
    """Add decisions' log-likelihoods, (decisions, KINDS), to the memories that `rows` names. In place."""
    likelihoods, learned = memory["likelihoods"], np.unique(rows)
    np.add.at(likelihoods, rows, logs)
    likelihoods[learned] = np.maximum(likelihoods[learned] - likelihoods[learned].max(axis=1, keepdims=True), -_FAR)


def posterior(likelihoods: np.ndarray) -> np.ndarray:
    """Return the probability of each kind by Bayes' rule, (n, KINDS) float64, from log-likelihoods; the greatest is 0."""
    weights = np.exp(likelihoods.astype(np.float64)) * PRIOR
    return weights / weights.sum(axis=1, keepdims=True)
