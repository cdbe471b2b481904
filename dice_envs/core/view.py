"""What a seat sees of a game: the layout of its observation, and pictures for people."""

from __future__ import annotations

import contextlib
import contextvars
import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self


class Move(str):
    """An action in words, which a game makes from its parts: `Move("{} x {}", 3, 5, kind="bid")` is "3 x 5".

    Attributes:
        form: the words with places for the numbers; moves of one form are shown as examples of it.
        numbers: those of this move.
        kind: "bid" of a number of dice and a face; "die" with the number of a die in the picture; else empty.
        bare: the words without a remark that follows them in brackets.
    """

    form: str
    numbers: tuple[int, ...]
    kind: Literal["", "bid", "die"]
    bare: str

    def __new__(cls, form: str, *numbers: int, kind: Literal["", "bid", "die"] = "", remark: str = "") -> Self:
        bare = form.format(*numbers) if numbers else form
        move = super().__new__(cls, f"{bare} ({remark})" if remark else bare)
        move.form, move.numbers, move.kind, move.bare = form, numbers, kind, bare
        return move


class Block(NamedTuple):
    """Consecutive entries of an observation with one meaning; a game lists its blocks in order.

    Entries lie in [0, 1]. An entry of 0 stands for the number `low`, an entry of 1 for `high`; or, where `half` is
    given, the entry n / (n + half) stands for n. `labels` holds one sequence with a label for each entry, or several
    sequences: then each combination labels an entry, and the last sequence varies fastest.
    """

    name: str
    size: int  # number of entries; 0 if the block is absent with these options
    meaning: str
    labels: tuple[Sequence[Any], ...] = ()
    low: float = 0.0
    high: float = 1.0
    half: float | None = None
    flags: bool = False  # every entry is 0 or 1, for no or yes
    history: bool = False  # says how the position came about; see `Promises.memoryless`


def offsets(blocks: Sequence[Block]) -> tuple[int, ...]:
    """The first entry of each block, in the order given, absent blocks included: `observe` adds its indices to these."""
    return tuple(itertools.accumulate((block.size for block in blocks[:-1]), initial=0))


def seat_labels(num_seats: int) -> tuple[str, ...]:
    """Labels for blocks with an entry for each seat, in turn order, the observer first."""
    return "you", *(f"seat +{i}" for i in range(1, num_seats))


class Tone(enum.Enum):
    """How strongly a die is drawn."""

    PLAIN = "plain"
    BRIGHT = "bright"  # it counts, is kept, chosen or wins
    FADED = "faded"  # it does not count, is taken away or loses


class Die(NamedTuple):
    """One die of a picture, with more than its face."""

    face: int | None  # None for a hidden die
    tone: Tone = Tone.PLAIN
    label: str = ""  # a few characters below it, such as d20
    number: bool = False  # show the face as a number, as on dice with many faces


class Group(NamedTuple):
    """Small dice that belong together: a bid (`3 ×` and a face), a hand that was shown, all faces of one die."""

    label: str
    dice: tuple[int | Die | None, ...] = ()
    strip: bool = False  # the faces of one die, drawn as a bar of cells
    tone: Tone = Tone.PLAIN  # of the group as a whole


class Bar(NamedTuple):
    """Progress: `value` of `most`, with a mark at `goal`."""

    value: float
    goal: float
    most: float


class Row(NamedTuple):
    """One line of a picture: a caption, dice (face values, None for a hidden die), and more.

    Attributes: `caption` names the line. `dice` are drawn large, after the words `lead` ("3 ×"). `detail` describes the
    line in small letters. `mark` says what its player has to do ("to move"), and highlights the line. `faded`: the line no
    longer matters. `outcomes` are dots, one for each good (True) or bad result. `groups` are small dice. `bar` shows
    progress. `facing`: each die stands opposite a die of the next line.
    """

    caption: str
    dice: tuple[int | Die | None, ...] = ()
    lead: str = ""
    detail: str = ""
    mark: str = ""
    faded: bool = False
    outcomes: tuple[bool, ...] = ()
    groups: tuple[Group, ...] = ()
    bar: Bar | None = None
    facing: bool = False


class Picture(NamedTuple):
    """What a viewer sees of a state: a title, rows of dice, and closing lines of text.

    `print` shows it as text, a notebook as a drawing; `dice_envs.pictures.render` has functions for both.
    """

    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _writers["text"](self)

    def _repr_svg_(self) -> str:
        return _writers["svg"](self)


_writers: dict[str, Callable[[Picture], str]] = {}


def write_pictures_by(text: Callable[[Picture], str], svg: Callable[[Picture], str]) -> None:
    """Set the functions that write pictures. `dice_envs.pictures.render` calls this, so that this module need not import it."""
    _writers.update(text=text, svg=svg)


def as_die(die: int | Die | None) -> Die:
    """A die of a row or group as a Die; most give the face alone."""
    return die if isinstance(die, Die) else Die(die)


_players: contextvars.ContextVar[Sequence[str]] = contextvars.ContextVar("players", default=())


@contextlib.contextmanager
def naming(players: Sequence[str]) -> Iterator[None]:
    """A block in which `seat_name` gives seats these names; none: their numbers."""
    before = _players.set(players)
    try:
        yield
    finally:
        _players.reset(before)


def seat_name(seat: int, viewer: int | None, kind: str = "player") -> str:
    """A seat's name for `viewer`: "you", the player's (see `dice_envs.Variant.named`), or one such as "player 1"."""
    named = _players.get()
    return "you" if seat == viewer else named[seat] if named else f"{kind} {seat}"


def with_verb(name: str, verb: str) -> str:
    """A seat's name and a verb: "you win", "you (A) win", "player 1 wins"."""
    return f"{name} {verb}" if name.partition(" (")[0] == "you" else f"{name} {verb}s"


_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SHARES = [(k, n) for n in (2, 3, 4, 5, 10) for k in range(1, n)]


def in_letters(number: int) -> str:
    """A number in letters up to ten: "two"; larger ones in digits."""
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def how_often(verb: str, chance: float) -> str:
    """A verb and a chance in words, as the nearest simple share: "holds one time in four", "hardly ever holds" below 5 %."""
    if not 0.05 <= chance <= 0.95:
        return f"{'hardly ever' if chance < 0.5 else 'almost always'} {verb}"
    k, n = min(_SHARES, key=lambda share: abs(chance - share[0] / share[1]))
    if n == 2:
        return f"{verb} half of the time"
    return f"{verb} {in_letters(k)} time{'s' * (k > 1)} in {in_letters(n)}"
