"""Beliefs about the opponent: likelihoods of its decisions, and the posterior by Bayes' rule."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Turn
from dice_envs.core.dice import STREAM
from dice_envs.core.game import Variant
from dice_envs.games.liars_dice.raises import NO_BID

from ..liars_dice import Nash
from .players import Way
from .styles import CALLING, KINDS, KINDS_OF, NERVES, OPENING, PARTS, RAISING, SIZES

__all__ = ["Beliefs", "learn", "log_likelihoods", "posterior"]

# Each kind sometimes slips and acts uniformly at random. So one odd decision rules nothing out, and a player that departs from
# its kind in more than about one decision in five is taken for unknown.
_SLIP, _UNKNOWN_SLIP = 0.05, 0.5
_FAR = 30.0  # the most that log-likelihoods fall behind the greatest, so that a change of style is noticed soon


def log_likelihoods(variant: Variant, optimal: Nash, positions: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Return the log-likelihood of each action for each kind of player, (n, KINDS) float64.

    Entries are 0 for the parts of play that a decision does not concern: an opening concerns openings, a call calls, and a
    raise both raises and calls. A forced call concerns none.
    """
    found = np.zeros((len(positions), KINDS))
    turn = Turn(variant, positions, np.arange(len(positions)), np.zeros(len(positions), STREAM))
    bids_left = turn.legal[:, : variant.params.call].sum(axis=1)
    opens, calls = positions["bid"] == NO_BID, actions == variant.params.call
    for part, rows in ((OPENING, opens), (RAISING, ~opens & ~calls), (CALLING, ~opens & (bids_left > 0))):
        which = np.flatnonzero(rows)
        if len(which):
            evenly = np.full(len(which), 0.5) if part == CALLING else 1.0 / bids_left[which]
            found[which, KINDS_OF[part]] = _part(variant, optimal, positions[which], actions[which], part, evenly)
    return found


def _part(
    variant: Variant, optimal: Nash, positions: np.ndarray, actions: np.ndarray, part: int, evenly: np.ndarray
) -> np.ndarray:
    """Return log-likelihoods of a part's kinds, (n, kinds of the part). `evenly`: the probability of each action at random."""
    everywhere = np.arange(len(positions))
    turn = Turn(variant, positions, everywhere, np.zeros(len(positions), STREAM))
    calls = actions == variant.params.call

    def chances(agent: Any) -> np.ndarray:
        call, bids = Way(agent).split(turn)
        return np.where(calls, call, 1 - call) if part == CALLING else bids[everywhere, actions]

    columns = []
    for style in PARTS[part]:
        first = chances(style.first)
        second = first if style.second is None else chances(style.second)
        columns += [first + level * (second - first) for level in style.levels]
    unknown = columns[len(PARTS[part][0].levels) // 2]  # the middle of the first style
    found = np.stack([*columns, chances(optimal), unknown], axis=1)
    slips = np.full(found.shape[1], _SLIP)
    slips[-1] = _UNKNOWN_SLIP
    logs: np.ndarray = np.log(found * (1 - slips) + slips * evenly[:, None])
    return logs


def learn(memory: np.ndarray, rows: np.ndarray, logs: np.ndarray) -> None:
    """Add decisions' log-likelihoods, (decisions, KINDS), to the memories that `rows` names. In place."""
    likelihoods = memory["likelihoods"]
    np.add.at(likelihoods, rows, logs)
    learned = np.unique(rows)
    memory["rounds"][learned] += 1
    for part, own in enumerate(KINDS_OF):
        np.add.at(memory["decisions"][:, part], rows, logs[:, own].any(axis=1))
        ahead = likelihoods[learned, own].max(axis=1, keepdims=True)
        likelihoods[learned, own] = np.maximum(likelihoods[learned, own] - ahead, -_FAR)


class Beliefs(NamedTuple):
    """Probabilities of what the opponent is, float64.

    Attributes:
        kinds: (n, KINDS), each kind; the sum of each part is 1.
        known: (n, parts), any known style.
        readers: (n, NERVES), each reader.
    """

    kinds: np.ndarray
    known: np.ndarray
    readers: np.ndarray


def _wholes() -> tuple[np.ndarray, np.ndarray]:
    """Return the players known as a whole: their kind in each part, (players, parts), and their prior probabilities.

    The prior of `numbers` and readers together, of optimal play, of an unknown player, and of a player of mixed parts is 1/4
    each.
    """
    style = len(PARTS[RAISING][0].levels)
    numbers = [(0, raising, raising // style) for raising in range(2 * style)]  # by the article's text, then by its program
    readers = [(SIZES[OPENING] - 2 - k, SIZES[RAISING] - 3, SIZES[CALLING] - 3) for k in range(len(NERVES), 0, -1)]
    optimal, unknown = (tuple(size - back for size in SIZES) for back in (2, 1))
    prior = [1 / 8 / len(numbers)] * len(numbers) + [1 / 8 / len(readers)] * len(readers) + [1 / 4, 1 / 4]
    return np.array([*numbers, *readers, optimal, unknown]), np.array(prior)


def _part_prior(part: int) -> np.ndarray:
    """Return the prior of a part's kinds in a player of mixed parts: 1/2 spread over known styles, 1/4 optimal, 1/4 unknown."""
    styles = PARTS[part] if part == OPENING else PARTS[part][:-1]
    known = [1 / 2 / len(styles) / len(style.levels) for style in styles for _ in style.levels]
    return np.array([*known, *[0.0] * (SIZES[part] - 2 - len(known)), 1 / 4, 1 / 4])


_WHOLES, _WHOLE_PRIOR = _wholes()
_READERS = slice(len(_WHOLES) - 2 - len(NERVES), len(_WHOLES) - 2)
_PART_PRIORS = tuple(_part_prior(part) for part in range(len(PARTS)))
_MIXED_PRIOR = 1.0 - _WHOLE_PRIOR.sum()


def posterior(likelihoods: np.ndarray) -> Beliefs:
    """Return the beliefs by Bayes' rule, from (n, KINDS) log-likelihoods.

    The opponent is one of the players known as a whole, or plays each part in a style of its own.
    """
    n = len(likelihoods)
    weights = []
    for kinds_of_part in KINDS_OF:
        own = likelihoods[:, kinds_of_part].astype(np.float64)
        weights.append(np.exp(own - own.max(axis=1, keepdims=True)))
    wholes = np.tile(_WHOLE_PRIOR, (n, 1))
    mixed = np.full(n, _MIXED_PRIOR)
    for part, weight in enumerate(weights):
        wholes *= weight[:, _WHOLES[:, part]]
        mixed *= weight @ _PART_PRIORS[part]
    total = wholes.sum(axis=1) + mixed
    kinds, known = [], []
    for part, weight in enumerate(weights):
        own = weight * _PART_PRIORS[part]
        own *= (mixed / own.sum(axis=1))[:, None]
        for number, kind in enumerate(_WHOLES[:, part]):
            own[:, kind] += wholes[:, number]
        kinds.append(own / total[:, None])
        known.append(kinds[-1][:, :-2].sum(axis=1))
    return Beliefs(np.concatenate(kinds, axis=1), np.stack(known, axis=1), wholes[:, _READERS] / total[:, None])
