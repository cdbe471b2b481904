"""The agent `adaptive`: its parameters, and its turns."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from dice_envs.agent import Promises, Turn, draw_actions
from dice_envs.core.game import Variant
from dice_envs.core.options import check_range
from dice_envs.exact.liars_dice.seating import check_two_players
from dice_envs.exact.liars_dice.shares import check_measurable
from dice_envs.exact.liars_dice.solution import Solution
from dice_envs.exact.liars_dice.solver import LEAST_PRECISION, check_in_passing, solution_of

from ..base import OfOneGame
from ..liars_dice import Nash
from .beliefs import learn, log_likelihoods
from .book import NOWHERE
from .responses import best_responses, response_actions
from .rounds import MEMORY, decisions_of, may_respond, open_rounds, settle

__all__ = ["AGENTS", "Adaptive"]


@functools.lru_cache(maxsize=4)
def _worth(variant: Variant, precision: float) -> np.ndarray:
    """Return the value of each round to its starter under optimal play, by both players' dice, the starter's first."""
    most = max(variant.options.dice_per_seat) + 1
    worth = np.full((most, most), np.nan)
    for dice, solved in solution_of(variant, precision).rounds.items():
        worth[dice] = solved.value
    return worth


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
        new = (memory["open"] == 0) | (states["num_bids"] <= 1)
        worth = _worth(variant, self.precision)
        settle(states, memory, worth)
        positions, actions, rows = decisions_of(variant, states, memory)
        if len(rows):
            learn(memory, rows, log_likelihoods(variant, Nash(self.precision), positions, actions))
        allowed = np.empty(len(turn), bool)
        may_respond(states, memory, worth, allowed)
        memory["response"][new] = np.where(allowed, best_responses(variant, states, memory, self.caution), 0)[new]
        chosen = np.full(len(turn), NOWHERE, np.int64)
        exploited = np.flatnonzero(memory["response"] > 0)
        if len(exploited):
            which = memory["response"][exploited].astype(np.int64) - 1
            chosen[exploited] = response_actions(variant, which, states[exploited])
        return memory, chosen

    def _solution(self, variant: Variant) -> Solution:
        return solution_of(variant, self.precision)

    def act(self, turn: Turn) -> np.ndarray:
        """Return one legal action for each game, (n,) int64. `turn.memory` is modified in place."""
        memory, chosen = self._prepared(turn)
        optimal = np.flatnonzero(chosen == NOWHERE)
        if len(optimal):
            streams = turn.streams[optimal]
            chosen[optimal] = draw_actions(streams, self._solution(turn.variant).probabilities(turn.states[optimal]))
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
            chances[optimal] = self._solution(turn.variant).probabilities(turn.states[optimal])
        return chances


AGENTS = {"adaptive": Adaptive}
