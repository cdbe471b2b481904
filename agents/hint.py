"""`hint` plays the best choice of a hint; `values_of` finds what choices are worth, for hints, reviews and this player."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from dice_envs.agent import KernelAgent, Turn
from dice_envs.agent.compiled import team_of
from dice_envs.agent.kernel import AgentKernel
from dice_envs.agent.specs import by_module, in_words, make_player, usual
from dice_envs.core.batch import checked_record
from dice_envs.core.dice import STREAM, new_streams
from dice_envs.core.game import Variant
from dice_envs.core.options import Range
from dice_envs.core.work import hinting
from dice_envs.evaluation import percent_of_winning
from dice_envs.exact import ActionValues, action_values
from dice_envs.exact.contract import RETURN
from dice_envs.exact.intervals import half_width
from dice_envs.exact.measuring import odds, play_out

from .base import Checked

# --- values of choices, in any game ------------------------------------------------------------------------------------

MOST_MOVES = 5_000_000  # of the playouts of one position: a few seconds
ROUNDS = 3  # of playouts; after each one, choices that are clearly worse than the best are left out
LEAST, MOST = 100, 20_000  # playouts of a choice in a round
LEAST_SHARE = 0.005  # of a choice in optimal play; what is rarer is not shown
MOST_WORSE = 0.02  # where optimal play makes a choice that is worse than the best by more, it has not foreseen the position


def values_of(
    variant: Variant, state: Any, seed: int, most: int = MOST_MOVES, played: int | None = None
) -> ActionValues | None:
    """Return exact values; where these are unknown or too slow those of playouts; None if these do not tell choices apart.

    Playouts also value choices where the opponent has left optimal play, which has no answer there. Their `errors` are
    half-widths of the 95 % intervals: of the best value, and of the distances of the others from it. `seed` fixes them; beyond
    `most` moves, or MOST_MOVES if that is less, each choice has LEAST playouts in a round. `played` is an action whose distance
    from the best matters; None: all matter.

    Raises:
        ValueError: `state` is no record in which a seat is to move.
    """
    state = checked_record(variant, state)
    own = _trial_of(variant)
    likely = own(variant, state) if own else None
    try:
        with hinting():
            exact = percent_of_winning(variant, action_values(variant, state))
        if likely is None or _is_answered(exact):
            return exact
    except ValueError:
        pass
    return _playouts(variant, likely or UsualGames(variant, state), seed, min(most, MOST_MOVES), played)


def _is_answered(values: ActionValues) -> bool:
    """Return whether the solution reaches the position, and makes no choice there that is clearly worse than the best."""
    if values.mix is None:
        return True
    worse = np.nanmax(values.values) - np.nan_to_num(values.values) > MOST_WORSE
    return values.reached and not (worse & (values.mix >= LEAST_SHARE)).any()


def _trial_of(variant: Variant) -> Any:
    """Return the game's own class of games that try choices (see `UsualGames`), or None."""
    return by_module("TRIALS").get(variant.game.name, {}).get("hint")


class UsualGames:
    """Games that try choices: the others hold anything, and all play as the game's usual opponent.

    A game's module of agents may offer a class of its own, as `TRIALS["hint"]`. It also has `chances(streams)`, the chance that
    each action is right, (num_actions,) float64, and `kernel(variant, games)`, which chooses by so many games, or None.

    Attributes:
        actions: of the seat to move, those worth trying; none in a game whose usual opponent plays at random, or has no kernel.
        note: what is assumed.
    """

    chances = None

    def __init__(self, variant: Variant, state: Any) -> None:
        self._variant, self._state, spec = variant, state, usual(variant)
        team = team_of([make_player(variant, spec)], variant)
        self._team = None if spec == "random" else team
        self.actions: list[int] = variant.legal_actions(state) if self._team else []
        self.note = f"the others hold any dice, and all play on as the {in_words(variant, spec)} does"

    def play(self, actions: Sequence[int], hidden: np.ndarray, streams: np.ndarray) -> tuple[np.ndarray, int]:
        """Return what the seat earns after each action, (actions, games) float64, and the number of moves."""
        assert self._team is not None
        return play_out(self._variant, self._team, self._state, actions, hidden, streams)


def _playouts(variant: Variant, trial: Any, seed: int, most: int, played: int | None) -> ActionValues | None:
    """Return mean results of each choice in games; see `values_of`.

    All that the seat cannot know is drawn anew for each game, and all choices are tried in the same ones.
    """
    rest = np.array(sorted({*trial.actions, *([] if played is None else [played])}))
    if not trial.actions:
        return None
    behind, errors = (np.full(variant.facts.num_actions, np.nan) for _ in range(2))
    low, high = variant.facts.likely_returns
    level, games, moves, played_out, differ = 0.0, LEAST, 0, 0, len(rest) == 1
    hidden, streams = np.zeros((2, 0), STREAM)
    for number in range(ROUNDS):
        if number:
            left = (most - moves) * played_out // moves  # playouts
            games = min(MOST, max(LEAST, left // (ROUNDS - number) // len(rest)))
        hidden, streams = (new_streams(np.random.SeedSequence(seed, spawn_key=(number, k)), games) for k in range(2))
        earned, more = trial.play(rest.tolist(), hidden, streams)
        moves += more
        played_out += earned.size
        best = int(earned.mean(axis=1).argmax())
        level = float(earned[best].mean())
        lost = earned[best] - earned
        behind[rest] = lost.mean(axis=1)
        errors[rest] = [half_width(each, low - high, high - low) for each in lost]
        first = rest[best]
        errors[first] = half_width(earned[best], low, high)
        differ |= bool((behind[rest] > errors[rest]).any())
        rest = rest[(behind[rest] <= errors[rest]) | (rest == played)]
        if played is not None and number == ROUNDS - 2:
            rest = np.unique([first, played])  # a fresh sample tells what the move cost
    if not differ:
        return None
    note, sample = f"estimated: {trial.note}", f"95 % intervals, seed {seed}"
    chances = trial.chances(hidden) if trial.chances else None
    return percent_of_winning(
        variant, ActionValues(level - behind, RETURN, note, errors=errors, chances=chances, sample=sample)
    )


# --- the player --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Hint(Checked, KernelAgent):
    """Plays the choice that a hint puts first.

    That is the best one against optimal play where this is known, else the best of those that are tried in games. In Liar's
    Dice without a known solution (Perudo; three players or more) it weighs hidden dice by what their owners have bid, and
    believes that these play like `numbers` or `reader`, or sometimes at random. Elsewhere what it tries is drawn by a seed that
    the observation gives, so it answers alike wherever it observes the same.

    Attributes:
        games: Liar's Dice without a known solution: games in which the best choices are tried.
    """

    games: Annotated[int, Range(10, 100_000)] = 200

    def kernel(self, variant: Variant) -> AgentKernel | None:
        """Return the kernel where hints are found by games alone; None elsewhere."""
        own = _trial_of(variant)
        found: AgentKernel | None = own.kernel(variant, self.games) if own else None
        return found

    def act(self, turn: Turn) -> np.ndarray:
        if self.kernel(turn.variant) is not None:
            return super().act(turn)
        _, first, same = np.unique(turn.observations, axis=0, return_index=True, return_inverse=True)
        chosen = []
        for state, observation in zip(turn.states[first], turn.observations[first], strict=True):
            seed = zlib.crc32(observation.tobytes())
            values = values_of(turn.variant, state, seed) or odds(turn.variant, state, seed)
            chosen.append(values.best_first[0])
        return np.array(chosen)[same.reshape(-1)]


AGENTS = {"hint": Hint}
