"""Beliefs about the opponent: simple players, the styles that are told apart, likelihoods of its decisions, and the posterior.

An opponent may open like one player, raise like another and call like a third, and each part may mix two players, so a few
players make many opponents. All state their probabilities; best responses to them are exact.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from dice_envs.agent import Promises, Turn, ask_probabilities, promises_of
from dice_envs.core.dice import STREAM
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.games.liars_dice import is_legal, matching, wild_face
from dice_envs.games.liars_dice.raises import NO_BID

from ..base import Random
from ..liars_dice import LiarsDiceNash, Numbers, Reader, chance_blind

_MANY = 30_000  # bids shown: a share of them is as exact as an int16 count allows


# --- players ----------------------------------------------------------------------------------------------------------


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


@kernel
def _claims(params, states, more, out):
    """Write the claim of `Claims`, or NO_BID where it is not legal. In place."""
    for i in range(len(states)):
        state = states[i]
        counts = state["counts"][state["seat"]]
        wild = wild_face(params, state)
        most = 0
        for face in range(1, params.num_faces):
            if matching(wild, counts, face) > matching(wild, counts, most):
                most = face
        quantity = min(max(matching(wild, counts, most) + more, 1), np.int64(state["in_play"]))
        action = (quantity - 1) * params.num_faces + most
        out[i] = action if is_legal(params, state, action) else NO_BID


@dataclasses.dataclass(frozen=True)
class Claims:
    """Bids a fixed number of dice more than it holds of the face most held; where that is no raise, bids like `numbers`.

    Calls only where no bid is left.

    Attributes:
        more: this number.
    """

    promises = Promises(memoryless=True)

    more: int = 1

    def probabilities(self, turn: Turn) -> np.ndarray:
        bids = np.empty(len(turn), np.int64)
        _claims(turn.params, turn.states, self.more, bids)
        _, others = _split(Numbers(), turn)
        out = np.zeros(turn.legal.shape)
        out[:, :-1] = others
        claimed = np.flatnonzero(bids != NO_BID)
        out[claimed] = 0
        out[claimed, bids[claimed]] = 1
        out[:, -1] = ~out.any(axis=1)
        return out


@dataclasses.dataclass(frozen=True)
class FixedReader:
    """`reader` with a fixed opinion of its opponent.

    Attributes:
        honest: how often it takes the opponent to name the face most held deliberately, 0 to 1.
    """

    honest: float = 0.5

    def probabilities(self, turn: Turn) -> np.ndarray:
        states = turn.states.copy()
        blind = chance_blind(turn.params.num_faces, turn.params.most_dice)
        states["bids_shown"][:, :2] = _MANY
        states["bids_honest"][:, :2] = round(_MANY * (blind + self.honest * (1 - blind)))
        return Reader().probabilities(Turn(turn.variant, states, np.arange(len(states)), turn.streams))


@dataclasses.dataclass(frozen=True)
class Way:
    """How a player opens, raises or calls: like one agent, or a mixture of two.

    Attributes:
        first, second: agents that state their probabilities.
        share: the probability that a decision is made like `second`.
    """

    first: Any
    second: Any = None
    share: float = 0.0

    @property
    def agents(self) -> tuple[Any, ...]:
        """The agents that have a share."""
        return (self.first,) if self.second is None or self.share == 0 else (self.first, self.second)

    def split(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability of a call, (n,) float64, and of each bid given no call, (n, bids) float64."""
        call, bids = _split(self.first, turn)
        if len(self.agents) == 1:
            return call, bids
        other_call, other_bids = _split(self.second, turn)
        return call + self.share * (other_call - call), bids + self.share * (other_bids - bids)


def _split(agent: Any, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
    """Return an agent's probability of a call, (n,) float64, and of each bid given no call, (n, bids) float64.

    Where the agent always calls, bids are uniform over the legal ones. Zeros where no bid is left.
    """
    chances = ask_probabilities(agent, turn)
    call, bids = chances[:, turn.params.call], chances[:, : turn.params.call]
    total = bids.sum(axis=1, keepdims=True)
    legal = turn.legal[:, : turn.params.call]
    anything = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    return call, np.where(total > 0, bids / np.where(total > 0, total, 1), anything)


@dataclasses.dataclass(frozen=True)
class Composed:
    """Opens, raises and calls like different players."""

    opening: Way
    raising: Way
    calling: Way

    @functools.cached_property
    def promises(self) -> Promises:
        """It is memoryless if those are that it raises and calls like: no bids come before an opening."""
        ways = (self.raising, self.calling)
        return Promises(memoryless=all(promises_of(agent).memoryless for way in ways for agent in way.agents))

    def probabilities(self, turn: Turn) -> np.ndarray:
        rows, states = np.arange(len(turn)), turn.states
        opens = states["bid"] == NO_BID
        out = np.zeros((len(turn), turn.variant.facts.num_actions))
        for which, way in ((rows[opens], self.opening), (rows[~opens], self.raising)):
            if len(which):
                part = Turn(turn.variant, states, which, turn.streams[which])
                out[which, :-1] = way.split(part)[1]
        later = rows[~opens]
        if len(later):
            part = Turn(turn.variant, states, later, turn.streams[later])
            call = np.where(part.legal[:, :-1].any(axis=1), self.calling.split(part)[0], 1.0)
            out[later, :-1] *= (1.0 - call)[:, None]
            out[later, -1] = call
        return out


# --- styles -----------------------------------------------------------------------------------------------------------

_LEVELS = tuple(step / 10 for step in range(11))  # shares of a mixture that are distinguished


class Style(NamedTuple):
    """A family of players: mixtures of two in any shares, or a single one."""

    first: Any
    second: Any = None
    answered: tuple[float, ...] = (0.0,)  # shares of `second` to which best responses are computed; the nearest is played

    @property
    def levels(self) -> tuple[float, ...]:
        """The shares that are distinguished."""
        return _LEVELS if self.second is not None else (0.0,)


QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
NERVES = (0.25, 0.5, 0.75)
_THRESHOLDS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)

# The first style of each part is `numbers` by the article's text; the last ones are `reader`. Its raises and calls depend on
# each other, and a best response to them mixed with other styles takes minutes, so they are known as a whole only.
_OPENINGS = (
    Style(Claims(1), Random(), (0.0, 0.5, 1.0)),
    Style(Claims(0)),
    Style(Claims(2)),
    Style(Lowest()),
    *(Style(Reader(nerve=nerve)) for nerve in NERVES),
)
_RAISES = (
    Style(Numbers(), Numbers(bluff=1.0), (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)),
    # The calls of the article's program give it away, so its share of bluffs hardly matters.
    Style(Numbers(preset="article"), Numbers(bluff=1.0, preset="article"), (0.5,)),
    Style(Claims(1)),
    Style(Claims(2)),
    Style(Lowest()),
    Style(Reader()),
)
_CALLS = (
    Style(Numbers()),
    Style(Numbers(preset="article")),
    *(Style(Numbers(threshold=threshold)) for threshold in _THRESHOLDS),
    Style(Lowest(call=0.0), Lowest(call=1.0), QUARTERS),
    Style(Reader()),
)
PARTS = (_OPENINGS, _RAISES, _CALLS)
OPENING, RAISING, CALLING = range(3)  # parts of play

# Kinds of a part: each style at each of its levels, then optimal play, then unknown. All kinds form one row.
_SIZES = tuple(sum(len(style.levels) for style in styles) + 2 for styles in PARTS)
_ENDS = np.cumsum(_SIZES).tolist()
KINDS_OF = tuple(slice(end - size, end) for end, size in zip(_ENDS, _SIZES, strict=True))  # of each part
KINDS = _ENDS[-1]

# Each kind sometimes slips and acts uniformly at random. So one odd decision rules nothing out, and a player that departs from
# its kind in more than about one decision in five is taken for unknown.
_SLIP, _UNKNOWN_SLIP = 0.05, 0.5
_FAR = 30.0  # the most that log-likelihoods fall behind the greatest, so that a change of style is noticed soon


def log_likelihoods(variant: Variant, optimal: LiarsDiceNash, positions: np.ndarray, actions: np.ndarray) -> np.ndarray:
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
    variant: Variant, optimal: LiarsDiceNash, positions: np.ndarray, actions: np.ndarray, part: int, evenly: np.ndarray
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
    return np.log(found * (1 - slips) + slips * evenly[:, None])


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
    readers = [(_SIZES[OPENING] - 2 - k, _SIZES[RAISING] - 3, _SIZES[CALLING] - 3) for k in range(len(NERVES), 0, -1)]
    optimal, unknown = (tuple(size - back for size in _SIZES) for back in (2, 1))
    prior = [1 / 8 / len(numbers)] * len(numbers) + [1 / 8 / len(readers)] * len(readers) + [1 / 4, 1 / 4]
    return np.array([*numbers, *readers, optimal, unknown]), np.array(prior)


def _part_prior(part: int) -> np.ndarray:
    """Return the prior of a part's kinds in a player of mixed parts: 1/2 spread over known styles, 1/4 optimal, 1/4 unknown."""
    styles = PARTS[part] if part == OPENING else PARTS[part][:-1]
    known = [1 / 2 / len(styles) / len(style.levels) for style in styles for _ in style.levels]
    return np.array([*known, *[0.0] * (_SIZES[part] - 2 - len(known)), 1 / 4, 1 / 4])


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
