"""Records of a learner's games: what lasts from turn to turn, and a turn with what it gives."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from dice_envs.core.dice import STREAM
from dice_envs.core.game import Variant
from dice_envs.core.state import MAX_SEATS

LEARNER = -1  # the learner's number in arrays that list the player of each seat

Array = TypeVar("Array")  # NumPy's or PyTorch's

# How new games of a SeatGames begin.
TABLE = np.dtype(
    [
        ("num_seats", np.int64),
        ("fixed_seat", np.int64),  # the learner's; negative: drawn
        ("self_play", np.float64),  # probability that the learner has every seat
        ("places", np.int64, (MAX_SEATS,)),  # number of the agent at each place after the learner's; LEARNER at its own
    ],
    align=True,
)

# A turn of the learner's in one game: what to do, and what it gave. No game has more than MAX_SEATS seats; entries of seats
# that there are not mean nothing. The last three say nothing of games that go on.
TURN = np.dtype(
    [
        ("todo", np.int8),  # one of the codes of `turn`
        ("action", np.int64),  # where one is to be played
        ("arranged", np.bool_),  # whether Python has arranged the game that begins
        ("seat", np.int64),  # the learner's before it played
        ("before", np.int64, (MAX_SEATS,)),  # work space
        ("fault", np.int64, (3,)),  # as in `dice_envs.agent.compiled.Context`; its first entry is for GPUs
        ("reward", np.float64),  # what `seat` has earned up to the learner's next turn; 0 in a game that begins
        ("earned", np.float64, (MAX_SEATS,)),  # the same for each seat
        ("ended", np.bool_),  # whether the learner's game has ended
        ("length", np.int64),  # the learner's turns in that game so far; 0 in one that begins
        ("learner", np.int64),  # the learner's seat in a game that has ended; with every seat, the one that moved last
        ("players", np.int64, (MAX_SEATS,)),  # who had each seat in it
        ("returns", np.float64, (MAX_SEATS,)),  # each seat's rewards in it
    ],
    align=True,
)
RESULTS = ("reward", "earned", "ended", "length", "learner", "players", "returns")  # what a turn gave, of TURN


def game_record(variant: Variant, memory: int) -> np.dtype[Any]:
    """Return the data type of a game and who plays it, in which each agent remembers so many bytes."""
    return np.dtype(
        [
            ("state", variant.game.state),
            ("stream", STREAM),  # for the opponents' draws
            ("memory", np.uint8, (MAX_SEATS, memory)),  # of the agent at each place after the learner's
            ("learner", np.int64),  # the learner's seat; where it has all, the one that is to move or moved last
            ("players", np.int64, (MAX_SEATS,)),  # the number of the agent at each seat, or LEARNER
            ("shared", np.bool_),  # whether the learner has every seat
            ("earned", np.float64, (MAX_SEATS,)),  # each seat's rewards since the learner's last turn
            ("returns", np.float64, (MAX_SEATS,)),  # and from the start of its game to the learner's last turn
            ("length", np.int64),  # the learner's turns in its game so far; -1 before the first game
        ],
        align=True,
    )


class Shown(NamedTuple, Generic[Array]):
    """The learner's view of n games."""

    observations: Array  # (n, size) float32
    masks: Array  # (n, actions) int8, the legal actions; all 1 where its game has ended, so that a masked softmax has no NaN


def part(records: str, name: str, doc: str = "", by_seat: bool = False) -> Any:
    """Return a property: a field of the owner's attribute `records`; with `by_seat` without the seats that there are not."""
    if by_seat:
        return property(lambda owner: getattr(owner, records)[name][:, : owner.num_seats], doc=doc)
    return property(lambda owner: getattr(owner, records)[name], doc=doc)


class Step(Generic[Array]):
    """Result of a learner's turn in n games.

    Args:
        turns: (n,) of TURN, or its fields by name.
        num_seats: of the game.
        shown: the games as the learners see them now.
        finals: games that have begun again, as the learners saw them last. Rows of other games mean nothing, and the next step
            overwrites them; may have no rows.

    The attributes `earned`, `players` and `returns` (n, seats), `rewards`, `ended`, `lengths` and `learners` (n,) are the
    results in `turns`, see TURN.
    """

    def __init__(self, turns: Any, num_seats: int, shown: Shown[Array], finals: Shown[Array]) -> None:
        self.turns, self.num_seats, self.shown, self.finals = turns, num_seats, shown, finals

    earned, players, returns = (part("turns", name, by_seat=True) for name in ("earned", "players", "returns"))
    rewards, ended, lengths, learners = (part("turns", name) for name in ("reward", "ended", "length", "learner"))


def room_for(variant: Variant, count: int) -> Shown[np.ndarray]:
    """Return empty arrays for the learner's view of `count` games."""
    facts = variant.facts
    return Shown(np.empty((count, facts.observation_size), np.float32), np.empty((count, facts.num_actions), np.int8))


def fields_of(memory: Any, kind: np.dtype[Any]) -> dict[str, Any]:
    """Return the signed and real fields of records as PyTorch tensors, by name, that share `memory`, a tensor of their bytes.

    A record within the record is a dictionary of its own.
    """
    import torch

    def tensors(fields: np.dtype[Any], begin: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in fields.names or ():
            field, offset = fields.fields[name][:2]  # type: ignore[index]
            base, shape = field.subdtype or (field, ())
            if base.fields:
                found[name] = tensors(base, begin + offset)
            elif base.kind in "bif" and 0 not in shape:
                numbers = memory.view(torch.from_numpy(np.zeros(0, base)).dtype)
                # Aligned fields begin at multiples of their size, and so do records.
                steps = [stride // base.itemsize for stride in (kind.itemsize, *np.zeros(shape, base).strides)]
                rows, first = len(memory) // kind.itemsize, (begin + offset) // base.itemsize
                found[name] = numbers.as_strided((rows, *shape), steps, first)
        return found

    return tensors(kind, 0)
