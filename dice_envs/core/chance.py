"""Enumeration of chance: a game's own kernels run with the outcome of each draw chosen by the caller.

Kernels draw with the helpers of `dice_envs.core.dice`. `Drawn` runs a game's `deal` and `play` as plain Python with stand-ins
for these helpers. The first draws have the outcomes that the caller gives; the next draw stops the kernel and is returned,
with its outcomes and their probabilities. So every game has explicit chance without another line of code, unless it draws
fractions (`uniform`, `next_u64`), which cannot be enumerated.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dice_envs.core import dice
from dice_envs.core.game import Game, Variant, configure

MAX_DRAWS = 10_000  # in one deal or action; more are an error, since rerolls could go on forever
MAX_OUTCOMES = 2**15  # of one draw; enough for the largest bag of FateStones
MAX_LISTED = 256  # a throw of dice with at most this many results is one draw; any other is drawn face by face


class Draw(NamedTuple):
    """A draw whose outcome is open."""

    outcomes: tuple[int, ...]  # whole numbers in rising order, at least two of them
    probabilities: tuple[float, ...]  # one for each, all above 0; they sum to 1
    words: Callable[[int], str]  # outcome → its meaning in words


class Drawn:
    """A game's `deal` and `play` with chosen outcomes. Game and options are those of `Batch`.

    Raises:
        ValueError: the game cannot be enumerated; see `can_be_enumerated`.
    """

    def __init__(self, game: str | Game | Variant, /, **options: Any) -> None:
        self.variant = configure(game, **options)
        self._deal, self._play = _scripted(self.variant.game)
        if self._deal is None:
            raise ValueError(f"{self.variant.game.name} draws fractions of the unit interval, so chance cannot be enumerated")

    def deal(self, state: Any, outcomes: Sequence[int] = ()) -> Draw | None:
        """Deal into the record `state` with these outcomes of its first draws. Modified in place.

        Returns:
            None when the deal is done; the next draw if it needs more outcomes: then `state` is undefined.

        Raises:
            ValueError: an outcome is impossible, there are too many of them, or the game draws more than MAX_DRAWS times or
                from more than MAX_OUTCOMES.
        """
        return self._run(self._deal, (self.variant.params, state), outcomes)

    def play(self, state: Any, action: int, outcomes: Sequence[int] = ()) -> Draw | None:
        """Play a legal action with these outcomes of the draws that follow it, as `deal` does. `state` is modified in place."""
        return self._run(self._play, (self.variant.params, state, action), outcomes)

    @staticmethod
    def _run(kernel: Any, arguments: tuple[Any, ...], outcomes: Sequence[int]) -> Draw | None:
        if len(outcomes) > MAX_DRAWS:
            raise ValueError(f"more than {MAX_DRAWS} draws follow one action")
        _script.left = list(reversed(outcomes))
        state = arguments[1]
        stream = state["rng"]
        try:
            kernel(*arguments)
        except _OpenDraw as stopped:
            return stopped.draw
        if state["rng"] != stream:
            raise ValueError(
                "the game draws by other means than the helpers of dice_envs.core.dice: chance cannot be enumerated"
            )
        if _script.left:
            raise ValueError(f"{len(_script.left)} of {len(outcomes)} outcomes were not drawn")
        return None


def can_be_enumerated(game: Game) -> bool:
    """Whether the game's chance can be enumerated: its kernels draw whole numbers and dice only."""
    return _scripted(game)[0] is not None


# --- stand-ins for the helpers of `dice_envs.core.dice` ----------------------------------------------------------------


_script = threading.local()  # its `left`: the outcomes still to be drawn by this thread's kernel, the next one last


class _OpenDraw(Exception):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.draw = draw


def _decide(draw: Draw) -> int:
    """The script's outcome for the draw. A draw with a single outcome takes none from the script."""
    if len(draw.outcomes) == 1:
        return draw.outcomes[0]
    if not _script.left:
        raise _OpenDraw(draw)
    outcome = _script.left.pop()
    if outcome not in draw.outcomes:
        raise ValueError(f"outcome {outcome} cannot be drawn here; outcomes are {draw.outcomes[0]} to {draw.outcomes[-1]}")
    return outcome


@functools.lru_cache(maxsize=1024)
def _equal_chances(outcomes: tuple[int, ...]) -> Draw:
    return Draw(outcomes, (1 / len(outcomes),) * len(outcomes), lambda outcome: f"{outcome} of {outcomes[0]} to {outcomes[-1]}")


def _below(stream: Any, n: Any, taken: Any = ()) -> np.int64:
    if n > MAX_OUTCOMES:
        raise ValueError(f"a draw from {n} outcomes is not listed; at most {MAX_OUTCOMES} are")
    return np.int64(_decide(_equal_chances(tuple(place for place in range(int(n)) if place not in taken))))


def _choose_weighted(stream: Any, weights: Any, count: Any) -> np.int64:
    kept = [float(weight) for weight in weights[:count]]
    possible = tuple(i for i, weight in enumerate(kept) if weight > 0)
    if not possible:
        return np.int64(-1)
    chances = tuple(kept[i] / sum(kept) for i in possible)
    return np.int64(_decide(Draw(possible, chances, lambda outcome: f"choice {outcome}")))


def _roll_counts(stream: Any, num_dice: Any, num_faces: Any, counts: Any) -> None:
    dice_left, faces = int(num_dice), int(num_faces)
    counts[:] = 0
    if math.comb(dice_left + faces - 1, dice_left) <= MAX_LISTED:
        results, draw = _throw(dice_left, faces)
        counts[:faces] = results[_decide(draw)]
        return
    for face in range(faces):
        counts[face] = _decide(_showing(dice_left, face, faces))
        dice_left -= int(counts[face])


@functools.cache
def _throw(num_dice: int, num_faces: int) -> tuple[list[list[int]], Draw]:
    """A throw of dice as one draw: the number of dice that show each face, for every outcome, and the draw."""
    thrown = list(itertools.combinations_with_replacement(range(1, num_faces + 1), num_dice))
    results = [[faces.count(face) for face in range(1, num_faces + 1)] for faces in thrown]
    orders = [math.factorial(num_dice) // math.prod(map(math.factorial, counts)) for counts in results]
    chances = tuple(count / num_faces**num_dice for count in orders)
    return results, Draw(tuple(range(len(thrown))), chances, lambda outcome: f"dice {' '.join(map(str, thrown[outcome]))}")


@functools.lru_cache(maxsize=1024)
def _showing(num_dice: int, face: int, num_faces: int) -> Draw:
    """The number of dice that show the face with this index, given that none shows a lower one."""
    kinds = num_faces - face  # faces that the dice may show
    if kinds == 1:
        return Draw((num_dice,), (1.0,), str)
    ways = [math.comb(num_dice, shown) * (kinds - 1) ** (num_dice - shown) for shown in range(num_dice + 1)]
    chances = tuple(count / kinds**num_dice for count in ways)
    return Draw(tuple(range(num_dice + 1)), chances, lambda outcome: f"{outcome} dice show {face + 1}")


def _plain(function: Any) -> Any:
    """The Python function of a kernel."""
    return getattr(function, "py_func", function)


_STAND_INS = {
    _plain(dice.below): _below,
    _plain(dice.below_except): _below,
    _plain(dice.choose_weighted): _choose_weighted,
    _plain(dice.roll_counts): _roll_counts,
}
_NOT_LISTED = (_plain(dice.next_u64), _plain(dice.uniform))  # too many outcomes to list


class _FractionDrawn(Exception):
    pass


@functools.cache
def _scripted(game: Game) -> tuple[Any, Any]:
    """The game's `deal` and `play` as plain Python that draws from the script; (None, None) if it draws fractions."""
    copies: dict[Any, Any] = dict(_STAND_INS)
    try:
        return _copy(game.deal, copies), _copy(game.play, copies)
    except _FractionDrawn:
        return None, None


def _copy(kernel: Any, copies: dict[Any, Any]) -> Any:
    """A copy of the kernel's Python function that calls copies of its callees. `copies` maps each function to its copy."""
    function = _plain(kernel)
    if function in _NOT_LISTED:
        raise _FractionDrawn
    if function in copies:
        return copies[function]
    cells = [types.CellType() for _ in function.__closure__ or ()]
    named = dict(function.__globals__)
    made = types.FunctionType(function.__code__, named, function.__name__, function.__defaults__, tuple(cells))
    copies[function] = made
    names = _names_in(function.__code__)
    for cell, old in zip(cells, function.__closure__ or (), strict=True):
        if old != types.CellType():  # an empty cell belongs to a name that has no value yet
            cell.cell_contents = _copied(old.cell_contents, names, copies)
    for name in names & named.keys():
        named[name] = _copied(named[name], names, copies)
    return made


def _copied(value: Any, names: set[str], copies: dict[Any, Any]) -> Any:
    """A copy of a kernel, or of the helpers in `names` if the value is the module of helpers; any other value as it is."""
    if value is dice:
        helpers = {name: getattr(dice, name) for name in names if hasattr(dice, name)}
        return types.SimpleNamespace(**{name: _copied(helper, names, copies) for name, helper in helpers.items()})
    return _copy(value, copies) if isinstance(_plain(value), types.FunctionType) else value


def _names_in(code: types.CodeType) -> set[str]:
    """The global names that the code and the functions within it may use."""
    inner = (_names_in(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*inner)
