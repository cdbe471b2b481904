"""A player of Liar's Dice that learns during a match which known player its opponent plays like, and responds to that.

It begins with optimal play, from which no opponent wins more than the game's value. After each round whose dice are shown, it
computes how likely each known player would have decided as the opponent did with those dice. Bayes' rule accumulates this over
the match. Once the agent is sure enough that the opponent is a known player, it plays the exact best response to the likeliest.

A best response is chosen before a round and played to the round's end, because nothing is shown before that. The opponent may
not be what it seems. So the rounds won by best responses are compared with the rounds that optimal play would win at least;
after too many losses the agent plays optimally for the rest of the match. Nobody is shown the result of a round with one die
each, which ends the game. Best responses play such rounds only after winning enough in others to pay for losing them all.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dice_envs.agent import Promises, Turn, draw_actions, promises_of
from dice_envs.core.dice import STREAM, new_streams
from dice_envs.core.files import read_archive
from dice_envs.core.game import Variant
from dice_envs.core.options import Range
from dice_envs.core.work import say
from dice_envs.exact.contract import LEAST_PRECISION
from dice_envs.games.liars_dice import MAX_DICE, MAX_SEATS
from dice_envs.games.liars_dice.exact.measures import record_response
from dice_envs.games.liars_dice.exact.round import CALL, Round, hand_number
from dice_envs.games.liars_dice.exact.seating import check_two_players
from dice_envs.games.liars_dice.exact.shares import check_measurable, has_equal_seats
from dice_envs.games.liars_dice.exact.solver import check_needs, solution_of, throttled
from dice_envs.games.liars_dice.exact.sources import ROWS_AT_ONCE, Tabled, source_of
from dice_envs.games.liars_dice.exact.store import cache_folder, keep_archive
from dice_envs.games.liars_dice.raises import NO_BID, ROUND_KINDS, round_kinds

from ..base import Checked, OfOneGame
from .players import LiarsDiceNash, Numbers, Reader, chance_blind, honesty

MOST_LOST = 10.0  # best responses end once they have won this many rounds fewer than optimal play would
MOST_BIDS = 2 * MAX_DICE  # of a round by the article's rule: every bid raises the quantity, up to all dice
NOWHERE = -2  # the response does not come to the node with this hand
_VERSION = 3  # of the files' layout
_SAY_EVERY = 5.0  # seconds between two lines of progress
_say = throttled(say, _SAY_EVERY)
_MANY = 30_000  # bids shown: a share of them is as exact as an int16 count allows

# --- the players that are known, and Bayes' rule ---------------------------------------------------------------------


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


# --- best responses, small enough to play from -----------------------------------------------------------------------
# A best response is found by a walk over all that an agent may bid and every answer to it. To play it, only the nodes that it
# reaches itself are needed, by the agent's bids and its own choices: about one node in forty.


@dataclasses.dataclass(frozen=True)
class PlayedResponse:
    """The best response to an agent.

    Attributes:
        nodes: (nodes, 3 + MOST_BIDS) int16: its own dice, the agent's, whether it begins, and the bids made; then NO_BID.
        choices: (nodes, hands) int16, by hand: a bid, CALL or NOWHERE.
    """

    nodes: np.ndarray
    choices: np.ndarray

    @functools.cached_property
    def _rows(self) -> dict[bytes, int]:
        return {node.tobytes(): row for row, node in enumerate(self.nodes)}

    def actions(self, variant: Variant, states: np.ndarray) -> np.ndarray:
        """Return its actions at states in which it is to move, (n,) int64; NOWHERE where it does not come to the state."""
        everywhere, seats = np.arange(len(states)), states["seat"].astype(np.int64)
        own, other = (states["dice"][everywhere, each] for each in (seats, 1 - seats))
        bids = np.where(np.arange(MOST_BIDS) < states["num_bids"][:, None], states["bids"][:, :MOST_BIDS], NO_BID)
        nodes = np.column_stack([own, other, states["starter"] == seats, bids]).astype(np.int16)
        rows = np.array([self._rows.get(node.tobytes(), NOWHERE) for node in nodes], np.int64)
        held = zip(own.tolist(), states["counts"][everywhere, seats], strict=True)
        hands = np.array([hand_number(variant.params.num_faces, dice, counts) for dice, counts in held], np.int64)
        found = np.where(rows >= 0, self.choices[rows, hands], NOWHERE).astype(np.int64)
        return np.where(found == CALL, variant.params.call, found)


def _respond_to(variant: Variant, agent: Any) -> PlayedResponse:
    _say("adaptive: finding a best response")
    chosen: dict[tuple[int, ...], np.ndarray] = {}
    for seat in (0,) if has_equal_seats(variant) else (0, 1):
        for table, recorded in record_response(variant, agent, seat).items():
            for path, choice in _reached(recorded):
                chosen.setdefault((table.dice_of(1 - seat), table.dice_of(seat), table.starter != seat, *path), choice)
    nodes = list(itertools.zip_longest(range(3 + MOST_BIDS), *chosen, fillvalue=NO_BID))
    choices = list(itertools.zip_longest(*chosen.values(), fillvalue=NOWHERE))
    return PlayedResponse(np.array(nodes, np.int16)[:, 1:].T.copy(), np.array(choices, np.int16).T.copy())


def _reached(choices: dict[tuple[int, ...], np.ndarray]) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield the nodes of a round that the response itself reaches, with its choices: see `record_response`."""
    reached: dict[tuple[int, ...], np.ndarray] = {}  # by node: with which hands
    for path in sorted(choices, key=len):
        if len(path) < 2:
            reached[path] = np.ones(len(choices[path]), np.bool_)
        elif path[:-2] in reached:
            reached[path] = reached[path[:-2]] & (choices[path[:-2]] == path[-2])
        if path in reached and reached[path].any():
            yield path, np.where(reached[path], choices[path], NOWHERE)


def response_to(variant: Variant, agent: Any, folder: Path | None = None) -> PlayedResponse:
    """Find the best response to an agent that states its probabilities and looks at the present round only.

    That to a memoryless agent is read from a file in the folder (None: `cache_folder()`), if there is one, or kept in it.

    Raises:
        ValueError: the game is too large, or is not one of elimination between two players in which every bid raises the
            quantity.
    """
    if not promises_of(agent).memoryless:
        return _respond_to(variant, agent)
    path = _file_of(variant, agent, folder or cache_folder())
    found = read_archive(path, path.name, lambda members: PlayedResponse(**members), say)
    if found is None:
        found = _respond_to(variant, agent)
        keep_archive(path, dataclasses.asdict(found))
    return found


def _file_of(variant: Variant, agent: Any, folder: Path) -> Path:
    """Return the file of a response. Its name has a hash of the rules of the game and of the agent's probabilities."""
    digest = hashlib.sha256(f"{_VERSION} {variant.options!r} {agent!r}".encode())
    dice = variant.options.dice_per_seat
    for pair, player in itertools.product({dice, dice[::-1]}, range(2)):
        round_ = Round(variant, pair)
        digest.update(round_.rules.child.tobytes())
        source = source_of(round_, player, agent, player, new_streams(0, ROWS_AT_ONCE)[None])
        assert isinstance(source, Tabled)
        for table in (source.tables.raises, source.tables.calls):
            digest.update(np.round(table, 9).tobytes())
    return folder / "responses" / f"{dice[0]}-{dice[1]}-{digest.hexdigest()[:16]}.npz"


# --- the agent -------------------------------------------------------------------------------------------------------

MEMORY = np.dtype(
    [
        ("likelihoods", np.float32, (KINDS,)),  # log-likelihoods of the kinds of player; the greatest is 0
        ("response", np.int32),  # number of the response played in this round, plus 1; 0 for optimal play
        ("lost", np.float64),  # rounds that best responses have won fewer than the rounds' value, 0 or more
        ("credit", np.float64),  # rounds that they have won above that value, if they lost every round that ended unseen
        ("open", np.int8),  # 1: it has acted in a round whose end it has not seen; the fields below describe that round
        ("seat", np.int8),  # its own
        ("starter", np.int8),
        ("dice", np.int8, (MAX_SEATS,)),
        ("bids_shown", np.int16, (MAX_SEATS,)),  # by calls before the round
        ("bids_honest", np.int16, (MAX_SEATS,)),  # of these, bids on a face that the bidder held most of
        ("num_bids", np.int8),  # up to its last action, this included
        ("bids", np.int16, (MOST_BIDS + 1,)),  # undefined from num_bids on
    ]
)
_OF_ROUND = ("starter", "dice", "bids_shown", "bids_honest")  # fields that a round's beginning sets, here and in states


@dataclasses.dataclass(frozen=True)
class Adaptive(Checked, OfOneGame):
    """Begins with optimal play, learns in a match which known player its opponent plays like, and then exploits it.

    Whenever a call has shown the opponent's dice, Bayes' rule weighs the known players against optimal and unknown play. Known
    are `numbers` with several shares of bluffs, presets and thresholds, `reader` with several nerves, and players that make the
    lowest bid and call at random. Once its opponent is one of these with a probability of 0.9, it plays the exact best
    response to the likeliest; otherwise optimal play. It returns to optimal play for the rest of the match once best responses
    have lost ten rounds more than optimal play would. It learns in matches only:
    `arena liars_dice adaptive numbers --match 200 --games 20000`. Two players, five dice at most, the article's rule.

    A best response is computed when first played: at once with three dice each, in up to a quarter of a minute with five.
    It is kept on disk, unless it answers `reader`. Optimal play is solved and kept as for `nash`.

    Attributes:
        precision: of optimal play, as for `nash`.
        caution: probability that the opponent is a known player from which it leaves optimal play, 0 to 1.
    """

    plays = "liars_dice"
    precision: Annotated[float, Range(LEAST_PRECISION, 1)] = 1e-3
    caution: Annotated[float, Range(0, 1)] = 0.9

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or a variant with nothing to learn, or too large."""
        super().check_variant(variant)
        options = variant.options
        check_two_players(options, "adaptive play")
        if options.rounds != "elimination":
            raise ValueError(
                f"rounds must be 'elimination' for adaptive play, not {options.rounds!r}: no dice are shown after its only call"
            )
        if options.raise_rule != "quantity":
            raise ValueError(f"raise_rule must be 'quantity' for adaptive play, not {options.raise_rule!r}")
        for kind in round_kinds(options):
            raise ValueError(f"{ROUND_KINDS[kind]} must be false for adaptive play, which knows one rule of raising")
        check_measurable(variant, "adaptive play")

    @functools.cached_property
    def promises(self) -> Promises:
        """It remembers what it has seen of the opponent, and solves the game."""
        return Promises(remembers=MEMORY, needs=self._needs)

    def _needs(self, variant: Variant, positions: int) -> None:
        self.check_variant(variant)
        check_needs(variant, self.precision)

    def _prepared(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """Return the memories, brought up to date, and the probability of each action, (n, num_actions) float64."""
        self.check_variant(turn.variant)
        variant, states = turn.variant, turn.states
        memory = np.zeros(len(turn), MEMORY) if turn.memory is None else turn.memory.copy()
        new = began(states, memory)
        values = _round_values(variant, self.precision)
        settle(states, memory, values)
        positions, actions, rows = decisions_of(variant, states, memory)
        if len(rows):
            learn(memory, rows, log_likelihoods(variant, LiarsDiceNash(self.precision), positions, actions))
        unseen = (states["dice"][:, :2] == 1).all(axis=1)  # the ends of these rounds will be unseen and count as lost
        paid_for = memory["credit"] >= _values_of(values, states, states["seat"].astype(np.int64))
        allowed = (memory["lost"] < MOST_LOST) & (paid_for | ~unseen)
        memory["response"][new] = np.where(allowed, _best_responses(variant, states, memory, self.caution), 0)[new]
        chances = np.zeros((len(turn), variant.facts.num_actions))
        for response in np.unique(memory["response"][memory["response"] > 0]).tolist():
            rows = np.flatnonzero(memory["response"] == response)
            chosen = _response(variant, response - 1).actions(variant, states[rows])
            chances[rows[chosen != NOWHERE], chosen[chosen != NOWHERE]] = 1.0
        optimal = np.flatnonzero(chances.sum(axis=1) == 0)
        if len(optimal):
            chances[optimal] = solution_of(variant.options, self.precision).probabilities(states[optimal])
        return memory, chances

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64. `turn.memory` is modified in place."""
        memory, chances = self._prepared(turn)
        chosen = draw_actions(turn.streams, chances)
        open_rounds(turn.params, turn.states, memory, chosen)
        if turn.memory is not None:
            turn.memory[:] = memory
        return chosen

    def probabilities(self, turn: Turn) -> np.ndarray:
        return self._prepared(turn)[1]


@functools.lru_cache(maxsize=4)
def _round_values(variant: Variant, precision: float) -> np.ndarray:
    """Return the value of each round to its starter under optimal play, by both players' dice, the starter's first."""
    most = max(variant.options.dice_per_seat) + 1
    values = np.full((most, most), np.nan)
    for dice, solved in solution_of(variant.options, precision).rounds.items():
        values[dice] = solved.certificate.value
    return values


# --- best responses to the likeliest opponent ------------------------------------------------------------------------


def _best_responses(variant: Variant, states: np.ndarray, memory: np.ndarray, caution: float) -> np.ndarray:
    """Return the number of the response to play plus 1, or 0 for optimal play, (n,) int64.

    Best responses are played where known players together are as likely as `caution`.
    """
    beliefs = posterior(memory["likelihoods"])[:, : len(KNOWN)]
    kinds, blind = beliefs.argmax(axis=1), chance_blind(variant.params.num_faces, variant.params.most_dice)
    opinions = np.array([honesty(state, int(state["seat"]), blind) for state in states])  # that readers have of the agent
    nearest = np.abs(opinions[:, None] - np.array(SHARES)).argmin(axis=1)
    numbers = np.where(kinds < READERS, kinds, READERS + (kinds - READERS) * len(SHARES) + nearest)
    return np.where(beliefs.sum(axis=1) >= caution, 1 + numbers, 0)


@functools.lru_cache(maxsize=128)  # with five dice each one takes 4 MB
def _response(variant: Variant, number: int) -> PlayedResponse:
    return response_to(variant, ANSWERED[number])


# --- rounds: the memory of a match, and what rounds have shown --------------------------------------------------------


def began(states: np.ndarray, memories: np.ndarray) -> np.ndarray:
    """Return in which games the round began after the last turn, (n,) bool: then it has at most one bid, else two or more."""
    return (memories["open"] == 0) | (states["num_bids"] <= 1)


def _values_of(values: np.ndarray, records: np.ndarray, seats: np.ndarray) -> np.ndarray:
    """Return the values to these seats of the rounds in states or memories, (n,) float64."""
    rows = np.arange(len(records))
    own, other = (records["dice"][rows, each].astype(np.int64) for each in (seats, 1 - seats))
    return np.where(records["starter"] == seats, values[own, other], 1.0 - values[other, own])


def settle(states: np.ndarray, memories: np.ndarray, values: np.ndarray) -> None:
    """Count the rounds played by best responses that have ended since the last turn. In place.

    `values` (dice + 1, dice + 1) is the value of a round to its starter, by both players' dice, the starter's first.
    """
    ended = np.flatnonzero(began(states, memories) & (memories["open"] != 0) & (memories["response"] != 0))
    state, memory, rows = states[ended], memories[ended], np.arange(len(ended))
    seat = memory["seat"].astype(np.int64)
    value = _values_of(values, memory, seat)
    shown = state["shown_bid"] != NO_BID
    own, other = memory["dice"][rows, seat], memory["dice"][rows, 1 - seat]
    won = np.where(shown, state["loser"] != seat, other == 1).astype(np.float64)  # where no call is shown, a game has ended
    unseen = ~shown & (own == 1) & (other == 1)  # rounds whose end is shown to nobody
    memories["credit"][ended] += np.where(unseen, 0.0, won) - value
    memories["lost"][ended] = np.where(unseen, memory["lost"], np.maximum(0.0, memory["lost"] + value - won))


def decisions_of(variant: Variant, states: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the opponent's decisions in rounds that have ended since the last turns, given (n,) states and MEMORY.

    They are (decisions,) of the game's states, before each decision, with the opponent's dice; (decisions,) int64 actions; and
    (decisions,) int64, the row of each in `states`. A game's last round is unknown: its dice are no longer visible once the
    next game has been dealt.
    """
    made = memory["num_bids"].astype(np.int64)
    called = memory["bids"][np.arange(len(states)), made - 1] == states["shown_bid"]
    ended = began(states, memory) & (memory["open"] != 0) & called
    rows, before = np.nonzero(ended[:, None] & (np.arange(MOST_BIDS + 1) <= made[:, None]))  # with the bids before a decision
    others = (memory["starter"][rows] + before) % 2 != memory["seat"][rows]
    rows, before = rows[others], before[others]
    rounds, everywhere, seat = memory[rows], np.arange(len(rows)), 1 - memory["seat"][rows]
    positions = np.zeros(len(rows), variant.game.state)
    for name in _OF_ROUND:
        positions[name] = rounds[name]
    positions["seat"], positions["num_bids"] = seat, before
    positions["bid"] = np.where(before > 0, rounds["bids"][everywhere, before - 1], NO_BID)
    positions["bids"][:, :MOST_BIDS] = rounds["bids"][:, :MOST_BIDS]
    positions["in_play"] = rounds["dice"].sum(axis=1)
    positions["in_round"] = rounds["dice"] > 0
    positions["counts"][everywhere, seat] = states["shown"][rows, seat]
    actions = np.where(before < made[rows], rounds["bids"][everywhere, before], variant.params.call)
    return positions, actions.astype(np.int64), rows


def open_rounds(params: Any, states: np.ndarray, memories: np.ndarray, actions: np.ndarray) -> None:
    """Record the rounds as they stand after the actions. In place."""
    made = states["num_bids"].astype(np.int64)
    memories["open"], memories["seat"] = 1, states["seat"]
    for name in _OF_ROUND:
        memories[name] = states[name]
    memories["bids"] = states["bids"][:, : MOST_BIDS + 1]
    memories["bids"][np.arange(len(states)), made] = actions  # in range: a round has at most one bid for each die
    memories["num_bids"] = made + (actions != params.call)
