"""Many games at once: the loops over states on which every environment is built.

`dice_envs.agent.compiled` has the loops with agents in them.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Game, Variant, configure
from dice_envs.core.options import MAX_SHOWN, check_range, check_seed, is_whole, python_value, shown
from dice_envs.core.state import clear_rewards, end_game

MOST_GAMES = 2**31  # in one batch
MOST_ACTION = 2**63 - 1  # that kernels receive, and the negative of it
_INT64 = np.dtype(np.int64)


class IllegalActionError(ValueError):
    """An action is malformed or not legal now. Nothing has changed.

    Attributes:
        reason: why, without the number of the game with which the message may begin.
    """

    def __init__(self, reason: str, game: int | None = None) -> None:
        super().__init__(reason if game is None else f"game {game}: {reason}")
        self.reason = reason


# The effect of an illegal action, in every environment. "raise": IllegalActionError, and nothing changes. "lose": the game
# ends with the least possible return, so that learners without masks can be used. Values that are not whole numbers raise in
# both.
IllegalAction: TypeAlias = Literal["lose", "raise"]
ILLEGAL_ACTIONS = ("lose", "raise")


class Batch:
    """n games of one variant, stepped together; the caller plays every seat.

    Args:
        game: name, Game or Variant.
        num_games: the number n of games.
        seed: seeds all games (game i depends on the seed and on i alone); None for fresh entropy.
        options: the game's options.

    An argument `index` of a method is (m,) int64 and names each game at most once; ValueError otherwise.
    """

    def __init__(self, game: str | Game | Variant, num_games: int, seed: int | None = None, **options: Any) -> None:
        self.variant = configure(game, **options)
        check_range("num_games", num_games, 1, MOST_GAMES)
        self.num_games = int(num_games)
        self.states = dealt(self.variant, self.num_games, np.random.SeedSequence(check_seed(seed)))
        self._all = np.arange(num_games)

    @property
    def seats(self) -> np.ndarray:
        """The seat to move in each game, (n,) int8; OVER (−1) where the game has ended."""
        return self.states["seat"].copy()

    @property
    def rewards(self) -> np.ndarray:
        """Each seat's reward for the last action, (n, seats) float32."""
        return self.states["rewards"][:, : self.variant.facts.num_seats].copy()

    def deal(self, index: np.ndarray | None = None) -> None:
        """Deal these games again (all, by default); their random streams continue."""
        self.variant.kernels.deal(self.states, self._checked(index))

    def _checked(self, index: np.ndarray | None) -> np.ndarray:
        if index is None:
            return self._all
        array = as_array("index", index)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"index must be a list of games, not {array.dtype} of shape {array.shape}")
        if len(array) and not 0 <= array.min() <= array.max() < self.num_games:
            raise ValueError(f"index must name games from 0 to {self.num_games - 1}, not {array.min()} to {array.max()}")
        array = array.astype(np.int64) if array.size else np.zeros(0, np.int64)  # an empty list may have any dtype
        if len(np.unique(array)) < len(array):
            raise ValueError("index must name each game once")
        return array

    def legal(self) -> np.ndarray:
        """Legal actions, (n, actions) int8; all 0 where the game has ended."""
        masks = np.empty((self.num_games, self.variant.facts.num_actions), np.int8)
        self.variant.kernels.legal(self.states, self._all, masks)
        return masks

    def observe(self, seats: np.ndarray | None = None) -> np.ndarray:
        """What `seats` (n,) see (by default the seat to move, seat 0 where the game has ended), (n, size) float32.

        Raises:
            ValueError: `seats` are not n seats of the game.
        """
        facts = self.variant.facts
        seats = np.maximum(self.states["seat"], 0) if seats is None else as_array("seats", seats)
        if seats.shape != (self.num_games,) or seats.dtype.kind not in "iu":
            raise ValueError(f"seats must be {self.num_games} integers, not {seats.dtype} of shape {seats.shape}")
        if not 0 <= seats.min() <= seats.max() < facts.num_seats:
            raise ValueError(f"seats must be 0 to {facts.num_seats - 1}, not {seats.min()} to {seats.max()}")
        out = np.empty((self.num_games, facts.observation_size), np.float32)
        self.variant.kernels.observe(self.states, self._all, seats, out)
        return out

    def play(self, actions: np.ndarray, index: np.ndarray | None = None) -> None:
        """Play one action in each game of `index` (all, by default).

        Raises:
            IllegalActionError: some action is malformed or not legal; no game has moved.
        """
        variant, games = self.variant, self._checked(index)
        array = as_actions(actions, len(games))
        row = variant.kernels.checked_play(self.states, games, array)
        if row >= 0:
            raise illegal_error(variant, self.states[games[row]], int(games[row]), int(array[row]))


def dealt(variant: Variant, count: int, seed: np.random.SeedSequence | None = None) -> np.ndarray:
    """Return states of games at their start, (count,), dealt with these random numbers; without a seed all deals are alike."""
    states = np.zeros(count, variant.game.state)
    if seed is not None:
        states["rng"] = new_streams(seed, count)["rng"]
    variant.kernels.deal(states, np.arange(count))
    return states


def illegal_error(variant: Variant, state: Any, game: int, action: int) -> IllegalActionError:
    """The error for an action that cannot be played in a state, with the number of the game and the reason."""
    return IllegalActionError(explain_illegal(variant, state, action), game)


def as_array(name: str, value: Any) -> np.ndarray:
    """The value as an array. ValueError with its name if it cannot be one, such as a list of lists that differ in length."""
    try:
        return np.asarray(value)
    except Exception as problem:  # a caller's object may raise anything in `__array__`
        reason = " ".join(str(problem).split())[:MAX_SHOWN] or type(problem).__name__
        raise ValueError(f"{name} must be an array, not {shown(value)}: {reason}") from None


def as_action(action: Any, name: str = "the action") -> int:
    """The action as an int, whether legal or not: the rule of every interface that takes one action at a time.

    It is a whole number of at most 64 bits: an int, or an integer scalar, array or tensor of one element, of NumPy or PyTorch.

    Raises:
        IllegalActionError: it is anything else, such as a bool, a float or text; the message calls it `name`.
    """
    if type(action) is int:  # most are
        number = action
    elif is_whole(action):
        number = int(action)
    else:
        single = python_value(action.flat[0]) if isinstance(action, np.ndarray) and action.size == 1 else action
        is_bool = isinstance(single, bool) or str(getattr(single, "dtype", "")) == "torch.bool"
        try:
            number = operator.index("a bool" if is_bool else single)  # type: ignore[arg-type]
        except Exception:  # a caller's object may raise anything in `__index__`
            raise IllegalActionError(f"{name} must be a whole number, not {shown(action)}") from None
    if not -MOST_ACTION <= number <= MOST_ACTION:
        raise IllegalActionError(f"{name} must be a whole number of 64 bits, not {shown(number)}")
    return number


def as_actions(actions: Any, count: int) -> np.ndarray:
    """The actions as (count,) int64, perhaps the caller's own array, by the rule of `as_action`.

    IllegalActionError if they are not `count` whole numbers.
    """
    if type(actions) is np.ndarray and actions.dtype is _INT64 and actions.shape == (count,) and actions.flags.carray:
        return actions  # as kernels take it
    if isinstance(actions, (list, tuple)):
        actions = [as_action(action, "an action") for action in actions]
    try:
        array = as_array("actions", actions)
    except ValueError as problem:
        raise IllegalActionError(str(problem)) from None
    if array.shape != (count,) or array.dtype.kind not in "iu":
        raise IllegalActionError(
            f"actions must be {count} whole numbers, one for each game, not {array.dtype} of shape {array.shape}"
        )
    if array.dtype.kind == "u" and count and array.max() > MOST_ACTION:
        raise IllegalActionError(f"actions must be whole numbers of 64 bits, not {array.max()}")
    return array.astype(np.int64)


def checked_record(variant: Variant, state: Any, over: bool = False) -> Any:
    """Return one record of the variant's states in which a seat is to move, also one given as a 0-d array.

    With `over`, the game may have ended. ValueError if it is anything else. Values of the game's own fields are not checked:
    games do not declare which are possible, and for others kernels may read out of bounds.
    """
    if getattr(state, "dtype", None) != variant.game.state or state.shape != ():
        raise ValueError(f"state must be one record of the states of {variant.game.name}, not {shown(state)}")
    if state["seat"] == OVER and not over:
        raise ValueError("the game is over: nobody has an action")
    check_range("the state's seat", int(state["seat"]), OVER, variant.facts.num_seats - 1)
    return state if isinstance(state, np.void) else state[()]


def forfeit(variant: Variant, state: Any, seats: Sequence[int], returns: Sequence[float] | np.ndarray) -> None:
    """End a game in which these seats have acted against the rules. `state` is modified in place.

    Their last reward brings them down to the least possible return, from `returns`, each seat's sum of rewards so far; the
    other seats earn nothing more.
    """
    clear_rewards(state)
    for seat in seats:
        state["rewards"][seat] = variant.facts.min_return - returns[seat]
    end_game(state, variant.facts.num_seats)


_warned = False


def warn_forfeit(legal: str = "action_mask") -> None:
    """Warn that an illegal action has ended a game, once per process: a learner without masks ends many.

    `legal` is the entry of `info` that has the legal actions.
    """
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "an illegal action has ended a game with the least possible return, as illegal_action='lose' says; "
            f"info['{legal}'] has the legal actions, info['illegal_action'] tells of illegal ones (warned of once)",
            stacklevel=2,
        )


def explain_illegal(variant: Variant, state: Any, action: int) -> str:
    """Say to a program why the action cannot be played, with examples of legal ones."""
    refusal = variant.why_not(state, action)
    named = f"action {action} ({variant.describe_action(action)}) is not legal now: " if refusal.legal else ""
    return named + refusal.text(numbered=True)
