"""A player of Liar's Dice that learns during a match how its opponent opens, raises and calls, and responds to that.

It begins with optimal play, from which no opponent wins more than the game's value. After each round whose dice are shown, it
computes how likely each known kind of player would have decided as the opponent did with those dice. Bayes' rule accumulates
this over the match, separately for the three parts of play: opening, raising and calling. The opponent may be a known player as
a whole, or play each part in another style. Once the agent is sure enough of the styles, it plays the exact best response to an
opponent composed of the likeliest ones.

A best response is chosen before a round and played to the round's end, because nothing is shown before that. The opponent may
not be what it seems. So the rounds won by best responses are compared with the rounds that optimal play would win at least;
after too many losses the agent plays optimally for the rest of the match. Nobody is shown the result of a round with one die
each, which ends the game. Best responses play such rounds only after winning enough in others to pay for losing them all.

Modules:
    beliefs    simple players and opponents composed of them, the styles of each part of play, and Bayes' rule
    responses  best responses, small enough to play from
    rounds     the agent's memory, and the opponent's decisions in rounds that have been shown
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from dice_envs.agent import Promises, Turn, draw_actions
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.core.options import check_range
from dice_envs.exact.liars_dice.seating import check_two_players
from dice_envs.exact.liars_dice.shares import check_measurable
from dice_envs.exact.liars_dice.solver import LEAST_PRECISION, check_in_passing, solution_of

from ..base import OfOneGame
from ..liars_dice import LiarsDiceNash, Reader, chance_blind, honesty
from .beliefs import (
    CALLING,
    KINDS_OF,
    NERVES,
    OPENING,
    PARTS,
    QUARTERS,
    RAISING,
    Composed,
    FixedReader,
    Style,
    Way,
    learn,
    log_likelihoods,
    posterior,
)
from .responses import NOWHERE, PlayedResponse, respond_to, response_to
from .rounds import MEMORY, began, decisions_of, may_respond, open_rounds, settle

_ANSWERS = tuple(sum(len(style.answered) for style in styles) for styles in PARTS)  # of each part
_MIXED_ANSWERS = int(np.prod(_ANSWERS))  # responses to readers are numbered from here on


@dataclasses.dataclass(frozen=True)
class Adaptive(OfOneGame):
    """Begins with optimal play, learns in a match how its opponent opens, raises and calls, and then exploits it.

    Whenever a call has shown the opponent's dice, Bayes' rule weighs the known kinds of player: `numbers` with any share of
    bluffs, `reader`, optimal play, unknown play, and players that open, raise and call in different styles. Known calls are
    below a probability of the bid, or random; known raises are as low as possible, or a fixed number of dice above those
    held; mixtures are known, too. Once known styles explain nine decisions in ten, it plays the exact best response;
    otherwise optimal play. It returns to optimal play for the rest of the match once best responses have lost ten rounds
    more than optimal play would. It learns in matches only: `arena liars_dice adaptive numbers --match 200 --games 20000`.
    Two players, five dice at most, the article's rule.

    A best response is computed when first played: at once with three dice each, in up to a quarter of a minute with five.
    It is kept on disk, unless it answers `reader`. Optimal play is solved and kept as for `nash`.

    Attributes:
        precision: of optimal play, as for `nash`.
        caution: share of decisions that known styles must explain before it leaves optimal play, 0 to 1.
    """

    plays = "liars_dice"
    promises = Promises(remembers=MEMORY)

    precision: float = 1e-3
    caution: float = 0.9

    def __post_init__(self) -> None:
        check_range("precision", self.precision, LEAST_PRECISION, 1, whole=False)
        check_range("caution", self.caution, 0, 1, whole=False)

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
        if options.palifico:
            raise ValueError("palifico must be false for adaptive play, which knows one rule of raising")
        check_measurable(variant, "adaptive play")

    def check_in_passing(self, variant: Variant, asked: int = 1) -> None:
        """Raise ValueError for a game that takes more than about a minute to solve."""
        self.check_variant(variant)
        check_in_passing(variant, self.precision)

    def _prepared(self, turn: Turn) -> tuple[np.ndarray, np.ndarray]:
        """Return the memories, brought up to date, and for each game an action, or NOWHERE for optimal play."""
        self.check(turn)
        variant, states = turn.variant, turn.states
        memory = np.zeros(len(turn), MEMORY) if turn.memory is None else turn.memory.copy()
        new = began(states, memory)
        worth = _worth(variant, self.precision)
        settle(states, memory, worth)
        positions, actions, rows = decisions_of(variant, states, memory)
        if len(rows):
            learn(memory, rows, log_likelihoods(variant, LiarsDiceNash(self.precision), positions, actions))
        allowed = may_respond(states, memory, worth)
        memory["response"][new] = np.where(allowed, _best_responses(variant, states, memory, self.caution), 0)[new]
        chosen = np.full(len(turn), NOWHERE, np.int64)
        for response in np.unique(memory["response"][memory["response"] > 0]).tolist():
            rows = np.flatnonzero(memory["response"] == response)
            chosen[rows] = _response_to(variant, _opponent(response - 1)).actions(states[rows])
        return memory, chosen

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64. `turn.memory` is modified in place."""
        memory, chosen = self._prepared(turn)
        optimal = np.flatnonzero(chosen == NOWHERE)
        if len(optimal):
            streams = turn.streams[optimal]
            chosen[optimal] = draw_actions(
                streams, solution_of(turn.variant, self.precision).probabilities(turn.states[optimal])
            )
            turn.streams[optimal] = streams
        open_rounds(turn.params, turn.states, memory, chosen)
        if turn.memory is not None:
            turn.memory[:] = memory
        return chosen

    def probabilities(self, turn: Turn) -> np.ndarray:
        chosen = self._prepared(turn)[1]
        chances = np.zeros((len(turn), turn.variant.facts.num_actions))
        fixed, optimal = np.flatnonzero(chosen != NOWHERE), np.flatnonzero(chosen == NOWHERE)
        chances[fixed, chosen[fixed]] = 1.0
        if len(optimal):
            chances[optimal] = solution_of(turn.variant, self.precision).probabilities(turn.states[optimal])
        return chances


@functools.lru_cache(maxsize=4)
def _worth(variant: Variant, precision: float) -> np.ndarray:
    """Return the value of each round to its starter under optimal play, by both players' dice, the starter's first."""
    most = max(variant.options.dice_per_seat) + 1
    worth = np.full((most, most), np.nan)
    for dice, solved in solution_of(variant, precision).rounds.items():
        worth[dice] = solved.value
    return worth


# --- best responses to the likeliest opponent ------------------------------------------------------------------------


def _best_responses(variant: Variant, states: np.ndarray, memory: np.ndarray, caution: float) -> np.ndarray:
    """Return the number of the response to play plus 1, or 0 for optimal play, (n,) int64.

    Best responses are played where known styles explain at least a share `caution` of the decisions learned from.
    """
    beliefs = posterior(memory["likelihoods"])
    decisions = memory["decisions"]
    sure = (beliefs.known * decisions).sum(axis=1) >= caution * np.maximum(decisions.sum(axis=1), 1)
    mixed = np.zeros(len(states), np.int64)
    for part, styles in enumerate(PARTS):
        mixable = styles if part == OPENING else styles[:-1]
        mixed = mixed * _ANSWERS[part] + _answer_to(beliefs.kinds[:, KINDS_OF[part]], mixable)
    opinions = np.empty(len(states))
    _opinions(states, chance_blind(variant.params.num_faces, variant.params.most_dice), opinions)
    level = np.abs(opinions[:, None] - np.array(QUARTERS)).argmin(axis=1)
    reader = _MIXED_ANSWERS + beliefs.readers.argmax(axis=1) * len(QUARTERS) + level
    return np.where(sure, 1 + np.where(beliefs.readers.sum(axis=1) > 0.5, reader, mixed), 0)


def _answer_to(beliefs: np.ndarray, styles: tuple[Style, ...]) -> np.ndarray:
    """Return the number of the answer to a part's likeliest known style, (n,) int64."""
    by_style, nearest = [], []
    kind = answer = 0
    for style in styles:
        own = beliefs[:, kind : kind + len(style.levels)]
        by_style.append(own.sum(axis=1))
        level = own @ np.array(style.levels) / np.maximum(by_style[-1], 1e-300)
        nearest.append(answer + np.abs(level[:, None] - np.array(style.answered)).argmin(axis=1))
        kind, answer = kind + len(style.levels), answer + len(style.answered)
    likeliest = np.argmax(by_style, axis=0)
    return np.array(nearest)[likeliest, np.arange(len(beliefs))]


@kernel
def _opinions(states, blind, out):
    """Write a reader's opinion of the seat to move: how often it names its face deliberately. In place."""
    for i in range(len(states)):
        out[i] = honesty(states[i], np.int64(states[i]["seat"]), blind)


@functools.cache
def _opponent(response: int) -> Composed:
    """Return the opponent that the response of this number answers."""
    if response >= _MIXED_ANSWERS:
        nerve, level = divmod(response - _MIXED_ANSWERS, len(QUARTERS))
        reading = Way(FixedReader(QUARTERS[level]))
        return Composed(Way(Reader(nerve=NERVES[nerve])), reading, reading)
    opening, raising, calling = np.unravel_index(response, _ANSWERS)
    ways = [[Way(style.first, style.second, share) for style in styles for share in style.answered] for styles in PARTS]
    return Composed(ways[OPENING][opening], ways[RAISING][raising], ways[CALLING][calling])


@functools.lru_cache(maxsize=256)  # with five dice each one takes 2 MB
def _response_to(variant: Variant, opponent: Composed) -> PlayedResponse:
    """Return the best response, kept on disk or computed now."""
    return (response_to if opponent.promises.memoryless else respond_to)(variant, opponent)


AGENTS = {"adaptive": Adaptive}
