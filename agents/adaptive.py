"""A player of Liar's Dice that learns in a match how its opponent opens, raises and calls, and plays against that.

It begins with optimal play, from which nobody wins more than the game's value. When a round is over and its dice have been
shown, it asks how likely each kind of player would have decided as the opponent did with those dice. Bayes' rule adds
this up over the match, apart for the three parts of play: opening, raising and calling. An opponent may be a whole player
that it knows, or do each part in another way (see `liars_dice_styles`). Once it is sure enough that it knows the ways,
it plays the exact best response to an opponent that is composed of the likeliest of them.

A best response is chosen before a round and played to the round's end, because nothing is shown before that. An opponent
may be another than it seems. So the rounds that best responses win are compared with what optimal play would win at
least, and after too many lost ones it plays optimally for the rest of the match. Of a round of one die each, which ends
the game, nobody is told who has won it. Best responses play such rounds only where they have won enough in others to pay
for losing every one.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dice_envs.agent import Turn, draw_actions
from dice_envs.core.dice import STREAM
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_range
from dice_envs.exact.liars_dice.elimination import check_two_players
from dice_envs.exact.liars_dice.measures import check_in_passing, check_measurable
from dice_envs.exact.liars_dice.responses import NOWHERE, Responses, respond_to, responses_to
from dice_envs.exact.liars_dice.solution import Solution
from dice_envs.exact.liars_dice.solver import LEAST_PRECISION
from dice_envs.games.liars_dice import MAX_DICE, MAX_FACES, NO_BID

from .base import OfOneGame
from .liars_dice import Nash, Reader, chance_blind, honesty
from .liars_dice_styles import NERVES, PARTS, QUARTERS, Composed, Reading, Style, Way

__all__ = ["AGENTS", "KINDS", "Adaptive", "Beliefs", "decisions_of", "log_likelihoods", "posterior"]

OPENING, RAISING, CALLING = range(3)  # parts of play
# Kinds of a part: each style at each of its levels, then optimal play, then unknown. All parts stand in one row.
SIZES = tuple(sum(len(style.levels) for style in styles) + 2 for styles in PARTS)
FIRST = np.concatenate([[0], np.cumsum(SIZES)])  # of each part
KINDS = int(FIRST[-1])
ANSWERS = tuple(sum(len(style.answered) for style in styles) for styles in PARTS)  # of each part
MIXED_ANSWERS = int(np.prod(ANSWERS))  # those to readers come after these

# Each kind does something else now and then, anything legal with equal chances. So one odd decision rules nothing out, and
# a player who does otherwise than its kind in more than about one decision in five is taken for unknown.
SLIP, UNKNOWN_SLIP = 0.05, 0.5
FAR = 30.0  # log-likelihoods fall at most so far behind the greatest: whoever changes its ways is found out soon
MOST_LOST = 10.0  # rounds that best responses may win fewer than optimal play would: then it plays none any more
MOST_BIDS = 2 * MAX_DICE  # of a round by the article's rule: each raises the quantity, which is at most all dice
SAY_EVERY = 5.0  # seconds between two lines of progress

MEMORY = np.dtype(
    [
        ("likelihoods", np.float32, (KINDS,)),  # logarithms, less the greatest of them in their part
        ("decisions", np.int32, (len(PARTS),)),  # of each part that it has learned from
        ("rounds", np.int32),  # rounds that it has learned from
        ("response", np.int32),  # played in this round, plus 1; 0 for optimal play
        ("lost", np.float64),  # rounds that best responses have won fewer than the value of the rounds, 0 or more
        ("credit", np.float64),  # rounds that they have won above that value in all, if they lost all that end unseen
        ("open", np.int8),  # 1: it has acted in a round of which it has not seen the end
        ("seat", np.int8),  # its own in that round
        ("starter", np.int8),  # of that round
        ("dice", np.int8, (2,)),  # of each seat in that round
        ("bids_shown", np.int16, (2,)),  # by calls before that round, of each seat
        ("bids_honest", np.int16, (2,)),  # those that named a face the bidder held most of
        ("num_bids", np.int8),  # up to its last turn, its own action there included
        ("bids", np.int16, (MOST_BIDS,)),  # entries from num_bids are undefined
    ]
)


# --- what a finished round has shown ----------------------------------------------------------------------------------


@kernel
def _is_new(state, memory):
    """Whether the round is another one than at the last turn. Then it has one bid at most; otherwise two or more."""
    return memory["open"] == 0 or state["num_bids"] <= 1


@kernel
def _replay(params, states, memories, positions, actions, rows):
    """Write the opponent's decisions in the rounds that have ended since the last turn; returns how many. In place.

    `positions` are the states before them, with the opponent's dice as the call has shown them, and `rows` says whose they
    are. Nothing is known of a game's last round: its dice are no longer seen when the next game has been dealt.
    """
    found = 0
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        made = np.int64(memory["num_bids"])
        if memory["open"] == 0 or not _is_new(state, memory) or state["shown_bid"] == NO_BID or made == 0:
            continue
        seat = np.int64(state["seat"])
        mover = np.int64(memory["starter"])
        caller = mover if made % 2 == 0 else 1 - mover
        if memory["bids"][made - 1] != state["shown_bid"] or caller != state["caller"]:
            continue
        other = 1 - seat
        for k in range(made + 1):
            if mover == other:
                position = positions[found]
                position["starter"] = memory["starter"]
                position["seat"] = other
                position["bid"] = memory["bids"][k - 1] if k > 0 else NO_BID
                position["num_bids"] = k
                position["in_play"] = np.int64(memory["dice"][0]) + np.int64(memory["dice"][1])
                for each in range(2):
                    position["dice"][each] = memory["dice"][each]
                    position["in_round"][each] = 1
                    position["bids_shown"][each] = memory["bids_shown"][each]
                    position["bids_honest"][each] = memory["bids_honest"][each]
                for face in range(MAX_FACES):
                    position["counts"][other, face] = state["shown"][other, face]
                for before in range(k):
                    position["bids"][before] = memory["bids"][before]
                actions[found] = memory["bids"][k] if k < made else params.call
                rows[found] = i
                found += 1
            mover = 1 - mover
    return found


@kernel(allocates=False)
def _worth_of(worth, record, seat):
    """What the round of a state or a memory is worth to the seat."""
    own = np.int64(record["dice"][seat])
    other = np.int64(record["dice"][1 - seat])
    return worth[own, other] if record["starter"] == seat else 1.0 - worth[other, own]


@kernel
def _may_respond(states, memories, worth, out):
    """Whether best responses may play the rounds that begin. In place."""
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        out[i] = memory["lost"] < MOST_LOST
        if state["dice"][0] == 1 and state["dice"][1] == 1:  # it counts as lost
            out[i] = out[i] and memory["credit"] >= _worth_of(worth, state, np.int64(state["seat"]))


@kernel
def _settle(states, memories, worth):
    """Count the rounds that have been played by best responses and have ended since the last turn. In place.

    `worth` (dice + 1, dice + 1) is what a round is worth to its starter, by both players' dice, the starter's first.
    """
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        if memory["open"] == 0 or not _is_new(state, memory) or memory["response"] == 0:
            continue
        seat = np.int64(memory["seat"])
        own = np.int64(memory["dice"][seat])
        other = np.int64(memory["dice"][1 - seat])
        value = _worth_of(worth, memory, seat)
        if state["shown_bid"] == NO_BID and own == 1 and other == 1:  # its end is told to nobody
            memory["credit"] -= value
            continue
        if state["shown_bid"] != NO_BID:
            won = 1.0 if state["loser"] != seat else 0.0
        else:  # the last round of a game
            won = 1.0 if other == 1 else 0.0
        memory["credit"] += won - value
        memory["lost"] = max(0.0, memory["lost"] + value - won)


def decisions_of(variant: Variant, states: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The opponent's decisions in rounds that have ended since the last turns.

    Args:
        variant: the game.
        states: (n,) at which the agent is to move.
        memory: (n,) of MEMORY.

    Returns:
        (decisions,) of the game's states, before each decision, with the opponent's dice; (decisions,) int64 actions; and
        (decisions,) int64, the row that each belongs to.
    """
    most = len(states) * (MOST_BIDS // 2 + 1)
    positions = np.zeros(most, variant.game.state)
    actions, rows = np.empty(most, np.int64), np.empty(most, np.int64)
    found = _replay(variant.params, states, memory, positions, actions, rows)
    return positions[:found], actions[:found], rows[:found]


def log_likelihoods(variant: Variant, optimal: Nash, positions: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """The logarithm of how likely each kind of player takes each action, (n, KINDS) float64.

    Kinds of a part have 0 where the decision was none of theirs: an opening tells of openings alone, a call of calls, and a
    raise of raises, and that it was no call. Where nothing but the call was left, nothing is told.
    """
    found = np.zeros((len(positions), KINDS))
    turn = Turn(variant, positions, np.arange(len(positions)), np.zeros(len(positions), STREAM))
    bids_left = turn.legal[:, : variant.params.call].sum(axis=1)
    opens, calls = positions["bid"] == NO_BID, actions == variant.params.call
    for part, rows in ((OPENING, opens), (RAISING, ~opens & ~calls), (CALLING, ~opens & (bids_left > 0))):
        which = np.flatnonzero(rows)
        if len(which):
            evenly = np.full(len(which), 0.5) if part == CALLING else 1.0 / bids_left[which]
            own = slice(FIRST[part], FIRST[part + 1])
            found[which, own] = _part(variant, optimal, positions[which], actions[which], part, evenly)
    return found


def _part(
    variant: Variant, optimal: Nash, positions: np.ndarray, actions: np.ndarray, part: int, evenly: np.ndarray
) -> np.ndarray:
    """The logarithm of how likely each kind of a part decides so, (n, kinds of the part). `evenly`: how likely by chance."""
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
    slips = np.full(found.shape[1], SLIP)
    slips[-1] = UNKNOWN_SLIP
    logs: np.ndarray = np.log(found * (1 - slips) + slips * evenly[:, None])
    return logs


# --- what it believes and does ------------------------------------------------------------------------------------------


class Beliefs(NamedTuple):
    """How likely the opponent is of each kind.

    `kinds` (n, KINDS) float64 sum up to 1 in each part. `known` (n, parts) is how likely it does a part in a known way,
    and `readers` (n, NERVES) how likely it is each reader.
    """

    kinds: np.ndarray
    known: np.ndarray
    readers: np.ndarray


def _wholes() -> tuple[np.ndarray, np.ndarray]:
    """Players that it knows as a whole: a kind in each part (players, parts), and how likely they are before a match.

    The numbers and readers, optimal play, and an unknown player are equally likely, and so is one of mixed parts.
    """
    style = len(PARTS[RAISING][0].levels)
    numbers = [(0, raising, raising // style) for raising in range(2 * style)]  # by the article's text, then its program
    readers = [(SIZES[OPENING] - 2 - k, SIZES[RAISING] - 3, SIZES[CALLING] - 3) for k in range(len(NERVES), 0, -1)]
    optimal, unknown = (tuple(size - back for size in SIZES) for back in (2, 1))
    prior = [1 / 8 / len(numbers)] * len(numbers) + [1 / 8 / len(readers)] * len(readers) + [1 / 4, 1 / 4]
    return np.array([*numbers, *readers, optimal, unknown]), np.array(prior)


def _part_prior(part: int) -> np.ndarray:
    """How likely each kind of a part is in a player of mixed parts: one half for all known styles together, evenly."""
    styles = PARTS[part] if part == OPENING else PARTS[part][:-1]
    known = [1 / 2 / len(styles) / len(style.levels) for style in styles for _ in style.levels]
    return np.array([*known, *[0.0] * (SIZES[part] - 2 - len(known)), 1 / 4, 1 / 4])


WHOLES, WHOLE_PRIOR = _wholes()
READERS = slice(len(WHOLES) - 2 - len(NERVES), len(WHOLES) - 2)
PART_PRIORS = tuple(_part_prior(part) for part in range(len(PARTS)))
MIXED_PRIOR = 1.0 - WHOLE_PRIOR.sum()


def posterior(likelihoods: np.ndarray) -> Beliefs:
    """What to believe by Bayes' rule, from (n, KINDS) logarithms of likelihoods.

    The opponent is one of the players that are known as a whole, or does each part in a way of its own.
    """
    n = len(likelihoods)
    weights = []
    for part in range(len(PARTS)):
        own = likelihoods[:, FIRST[part] : FIRST[part + 1]].astype(np.float64)
        weights.append(np.exp(own - own.max(axis=1, keepdims=True)))
    wholes = np.tile(WHOLE_PRIOR, (n, 1))
    mixed = np.full(n, MIXED_PRIOR)
    for part, weight in enumerate(weights):
        wholes *= weight[:, WHOLES[:, part]]
        mixed *= weight @ PART_PRIORS[part]
    total = wholes.sum(axis=1) + mixed
    kinds, known = [], []
    for part, weight in enumerate(weights):
        own = weight * PART_PRIORS[part]
        own *= (mixed / own.sum(axis=1))[:, None]
        for number, kind in enumerate(WHOLES[:, part]):
            own[:, kind] += wholes[:, number]
        kinds.append(own / total[:, None])
        known.append(kinds[-1][:, :-2].sum(axis=1))
    return Beliefs(np.concatenate(kinds, axis=1), np.stack(known, axis=1), wholes[:, READERS] / total[:, None])


def _answer_to(beliefs: np.ndarray, styles: tuple[Style, ...]) -> np.ndarray:
    """The number among a part's answers of the one to the likeliest known style, (n,) int64."""
    by_style, nearest = [], []
    kind = answer = 0
    for style in styles:
        own = beliefs[:, kind : kind + len(style.levels)]
        by_style.append(own.sum(axis=1))
        level = own @ np.array(style.levels) / np.maximum(by_style[-1], 1e-300)
        nearest.append(answer + np.abs(level[:, None] - np.array(style.answered)).argmin(axis=1))
        kind, answer = kind + len(style.levels), answer + len(style.answered)
    likeliest = np.argmax(by_style, axis=0)
    found: np.ndarray = np.array(nearest)[likeliest, np.arange(len(beliefs))]
    return found


@kernel
def _opinions(states, blind, out):
    """Write how often a reader takes the seat to move to name its face deliberately. In place."""
    for i in range(len(states)):
        out[i] = honesty(states[i], np.int64(states[i]["seat"]), blind)


def _best_responses(variant: Variant, states: np.ndarray, memory: np.ndarray, caution: float) -> np.ndarray:
    """The number of the response to play plus 1, or 0 for optimal play, (n,) int64.

    It is sure of its opponent where it knows it in as many of the decisions that it has learned from.
    """
    beliefs = posterior(memory["likelihoods"])
    decisions = memory["decisions"]
    sure = (beliefs.known * decisions).sum(axis=1) >= caution * np.maximum(decisions.sum(axis=1), 1)
    mixed = np.zeros(len(states), np.int64)
    for part, styles in enumerate(PARTS):
        own = beliefs.kinds[:, FIRST[part] : FIRST[part + 1]]
        mixed = mixed * ANSWERS[part] + _answer_to(own, styles if part == OPENING else styles[:-1])
    opinions = np.empty(len(states))
    _opinions(states, chance_blind(variant.params.num_faces, variant.params.most_dice), opinions)
    level = np.abs(opinions[:, None] - np.array(QUARTERS)).argmin(axis=1)
    reader = MIXED_ANSWERS + beliefs.readers.argmax(axis=1) * len(QUARTERS) + level
    return np.where(sure, 1 + np.where(beliefs.readers.sum(axis=1) > 0.5, reader, mixed), 0)


@functools.cache
def _opponent(response: int) -> Composed:
    """Whom the response of a number answers."""
    if response >= MIXED_ANSWERS:
        nerve, level = divmod(response - MIXED_ANSWERS, len(QUARTERS))
        reading = Way(Reading(QUARTERS[level]))
        return Composed(Way(Reader(nerve=NERVES[nerve])), reading, reading)
    opening, raising, calling = np.unravel_index(response, ANSWERS)
    ways = [[Way(style.first, style.second, share) for style in styles for share in style.answered] for styles in PARTS]
    return Composed(ways[OPENING][opening], ways[RAISING][raising], ways[CALLING][calling])


@kernel
def _open_rounds(params, states, memories, actions):
    """Note the rounds as they stand after the actions. In place."""
    for i in range(len(states)):
        state = states[i]
        memory = memories[i]
        memory["open"] = 1
        memory["seat"] = state["seat"]
        memory["starter"] = state["starter"]
        made = np.int64(state["num_bids"])
        for seat in range(2):
            memory["dice"][seat] = state["dice"][seat]
            memory["bids_shown"][seat] = state["bids_shown"][seat]
            memory["bids_honest"][seat] = state["bids_honest"][seat]
        for k in range(made):  # with the next action at most one for each die, MOST_BIDS
            memory["bids"][k] = state["bids"][k]
        if actions[i] != params.call:
            memory["bids"][made] = actions[i]
            made += 1
        memory["num_bids"] = made


class _Progress:
    """Says on standard error that best responses are being found, every few seconds."""

    def __init__(self) -> None:
        self.told, self.found = time.monotonic(), 0

    def say(self, number: int) -> None:
        self.found += 1
        if time.monotonic() - self.told >= SAY_EVERY:
            self.told = time.monotonic()
            print(f"adaptive: finding its best response number {self.found}", file=sys.stderr, flush=True)


_PROGRESS = _Progress()


@functools.lru_cache(maxsize=256)  # one of five dice each takes 2 MB
def _response_to(variant: Variant, opponent: Composed) -> Responses:
    """The best response that is kept, or found now."""
    return (responses_to if opponent.memoryless else respond_to)(variant, [opponent], done=_PROGRESS.say)


def _answers(variant: Variant, which: np.ndarray, states: np.ndarray) -> np.ndarray:
    """What responses of these numbers do, (n,) int64: see `Responses.actions`."""
    out = np.empty(len(states), np.int64)
    for number in np.unique(which).tolist():
        rows = np.flatnonzero(which == number)
        out[rows] = _response_to(variant, _opponent(number)).actions(np.zeros(len(rows), np.int64), states[rows])
    return out


@functools.lru_cache(maxsize=4)
def _worth(variant: Variant, precision: float) -> np.ndarray:
    """What each round is worth to its starter under optimal play, by both players' dice, the starter's first."""
    most = max(variant.options.dice_per_seat) + 1
    worth = np.full((most, most), np.nan)
    for dice, solved in Nash(precision).solution(variant).rounds.items():
        worth[dice] = solved.value
    return worth


@dataclasses.dataclass(frozen=True)
class Adaptive(OfOneGame):
    """Begins with optimal play, learns in a match how its opponent opens, raises and calls, and then punishes it.

    Whenever a call has shown the opponent's dice, Bayes' rule weighs the kinds of player that it knows: the numbers agent
    with any share of bluffs, the reader, optimal play, anything else, and players that open, raise and call each in a way
    of their own: calls below a chance of the bid, or at random; raises as low as may be, or as high as so many dice more
    than are held; mixtures. Where it knows them in nine decisions of ten it plays the exact best response; against
    all others it stays with optimal play, and it goes back to that for the rest of the match once best responses
    have lost ten rounds more than optimal play would have. It learns in matches only:
    `arena liars_dice adaptive numbers --match 200 --games 20000`. Two players, five dice at most, the article's rule.

    A best response is found when it is first played: in a moment with three dice each, in up to a quarter of a minute with
    five. It is kept, unless it answers a reader. It keeps and solves optimal play as `nash` does.

    Attributes:
        precision: of the optimal play, as for `nash`.
        caution: how sure it must be before it leaves optimal play, 0 to 1.
    """

    plays = "liars_dice"
    remembers: ClassVar[np.dtype[Any]] = MEMORY

    precision: float = 1e-3
    caution: float = 0.9

    def __post_init__(self) -> None:
        check_range("precision", self.precision, LEAST_PRECISION, 1, whole=False)
        check_range("caution", self.caution, 0, 1, whole=False)

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another game, or a variant in which there is nothing to learn or that is too large."""
        super().check_variant(variant)
        options = variant.options
        check_two_players(options, "adaptive play")
        if options.rounds != "elimination":
            raise ValueError(
                f"rounds must be 'elimination' for adaptive play, not {options.rounds!r}: no dice are seen after its only call"
            )
        if options.raise_rule != "quantity":
            raise ValueError(f"raise_rule must be 'quantity' for adaptive play, not {options.raise_rule!r}")
        check_measurable(variant, "adaptive play")

    def check_in_passing(self, variant: Variant, asked: int = 1) -> None:
        """Raise ValueError for a game that takes more than about a minute to solve."""
        self.check_variant(variant)
        check_in_passing(variant, self.precision)

    def _prepared(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """The memories with all that has been seen since, and for each game an action, or NOWHERE for optimal play."""
        self.check(turn)
        variant, states = turn.variant, turn.states
        memory = np.zeros(len(turn), MEMORY) if turn.memory is None else turn.memory.copy()
        new = (memory["open"] == 0) | (states["num_bids"] <= 1)
        worth = _worth(variant, self.precision)
        _settle(states, memory, worth)
        positions, actions, rows = decisions_of(variant, states, memory)
        if len(rows):
            logs = log_likelihoods(variant, Nash(self.precision), positions, actions)
            added = memory["likelihoods"]
            np.add.at(added, rows, logs)
            learned = np.unique(rows)
            memory["rounds"][learned] += 1
            for part in range(len(PARTS)):
                own = slice(FIRST[part], FIRST[part + 1])
                np.add.at(memory["decisions"][:, part], rows, logs[:, own].any(axis=1))
                ahead = added[learned, own].max(axis=1, keepdims=True)
                added[learned, own] = np.maximum(added[learned, own] - ahead, -FAR)
        allowed = np.empty(len(turn), bool)
        _may_respond(states, memory, worth, allowed)
        memory["response"][new] = np.where(allowed, _best_responses(variant, states, memory, self.caution), 0)[new]
        chosen = np.full(len(turn), NOWHERE, np.int64)
        punished = np.flatnonzero(memory["response"] > 0)
        if len(punished):
            which = memory["response"][punished].astype(np.int64) - 1
            chosen[punished] = _answers(variant, which, states[punished])
        return memory, chosen

    def _solution(self, variant: Variant) -> Solution:
        return Nash(self.precision).solution(variant)

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64. `turn.memory` is modified in place."""
        memory, chosen = self._prepared(turn)
        optimal = np.flatnonzero(chosen == NOWHERE)
        if len(optimal):
            streams = turn.streams[optimal]
            chosen[optimal] = draw_actions(streams, self._solution(turn.variant).probabilities(turn.states[optimal]))
            turn.streams[optimal] = streams
        _open_rounds(turn.params, turn.states, memory, chosen)
        if turn.memory is not None:
            turn.memory[:] = memory
        return chosen

    def probabilities(self, turn: Turn) -> np.ndarray:
        """Return each action's probability, (n, num_actions) float64."""
        chosen = self._prepared(turn)[1]
        chances = np.zeros((len(turn), turn.variant.facts.num_actions))
        fixed, optimal = np.flatnonzero(chosen != NOWHERE), np.flatnonzero(chosen == NOWHERE)
        chances[fixed, chosen[fixed]] = 1.0
        if len(optimal):
            chances[optimal] = self._solution(turn.variant).probabilities(turn.states[optimal])
        return chances


AGENTS = {"adaptive": Adaptive}
