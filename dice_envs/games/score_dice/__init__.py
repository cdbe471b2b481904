"""Score dice: two pools of dice are rolled and compared pair by pair.

Play
    A and B roll their pools. There are as many columns as the smaller pool has dice; the larger
    pool's spare lowest dice are dropped. In each column both secretly choose one of their remaining dice, then both
    dice are shown: the higher one scores a point. Equal dice score nothing, unless the rules in force say otherwise.
    The score is A's points minus B's.

Source
    Isaksen, Holmgård, Togelius, Nealen: "Characterising Score Distributions in Dice Games", Game and Puzzle Design
    2(1), 2016. Its "sorted" game is this one with both players always choosing their highest die (sections 3.1,
    5.1, 6, 7.1, 8.1), its "unsorted" game with both choosing at random (sections 3.2, 5.2, 7.2, 8.2).

Readings
    - A die is identified by its place in the pool, largest dice first. Both players see which dice are still held. Of
      two dice with equal faces the one in the earlier place counts as the higher.
    - The paper drops spare dice in the sorted game only. Here the lowest are always dropped, and laid aside face up.
    - Where ties are rolled again, the tied dice are rolled after the last column, and played as above, among themselves.
      When every pair ties the whole roll is repeated (section 8.1), dropped dice included. Pairs that still tie after 64
      rolls score nothing, so that every game ends.

In programs
    - A is seat 0, B is seat 1. The option `ties` says what equal dice do; with `ties="reroll"` they are rolled again.
    - Even for 24d2 sorted a game reaches 64 rolls (`MAX_ROLLS`) with a probability below 2**-46.

Actions
    k           choose the die in place k of one's own pool, 0 for the first
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from dice_envs.core.dice import below
from dice_envs.core.game import Facts, Game
from dice_envs.core.kernel import kernel
from dice_envs.core.options import Label, check_faces, check_list, check_range, check_types, is_list, is_whole, shown
from dice_envs.core.state import OVER, clear_rewards, end_game, start_game, state_dtype
from dice_envs.core.view import Block, Die, Group, Move, Picture, Row, Tone, offsets, with_verb

MAX_DICE = 24  # of one pool
MAX_SIDES = 100
MAX_ROLLS = 64  # of one game with ties="reroll"
NO_PICK = -1  # value of `pick` while A has not chosen

# Values of `status`:
OUT = 0  # no such die, or no longer in the game
HELD = 1  # in hand
PLAYED = 2  # shown in a column of this roll
DROPPED = 3  # one of the larger pool's spare dice


# --- options ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of score dice; ValueError names the option, the value and what is allowed.

    Attributes:
        pool_a: sizes of A's dice, 1 to 24 dice of 2 to 100 sides, sorted largest first; one number for a single die.
        pool_b: sizes of B's dice, in the same form.
        ties: what follows when a pair ties: "none": nobody scores; "a": A scores; "reroll": it is rolled again at the end.
        open_hands: true: each player sees the other's dice.
        reward: "win": at the end +1 for the player with more points and -1 for the other, or 0 for equal points;
            "score": at once 1 for each pair won and -1 for each pair lost.
    """

    pool_a: tuple[int, ...] | int = (6, 6, 6, 6, 6)
    pool_b: tuple[int, ...] | int = (6, 6, 6, 6, 6)
    ties: Literal["none", "a", "reroll"] = "none"
    open_hands: bool = False
    reward: Literal["win", "score"] = "win"

    def __post_init__(self) -> None:
        for name, pool in (("pool_a", self.pool_a), ("pool_b", self.pool_b)):
            object.__setattr__(self, name, _checked_pool(name, pool))
        # On the command line `ties=none` reads as None.
        object.__setattr__(self, "ties", "none" if self.ties is None else self.ties)
        check_types(self)

    @property
    def pools(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sizes of A's and of B's dice, each largest first."""
        return self.pool_a, self.pool_b  # type: ignore[return-value]

    @property
    def num_columns(self) -> int:
        """Pairs compared in the first roll."""
        return min(map(len, self.pools))


def _checked_pool(name: str, value: Any) -> tuple[int, ...]:
    """The pool as a tuple, largest dice first; ValueError if it is malformed."""
    if is_whole(value):
        value = (value,)
    if not is_list(value) or not 1 <= len(value) <= MAX_DICE:
        raise ValueError(f"{name} must be 1 to {MAX_DICE} sizes of dice such as 6,6,8, not {shown(value)}")
    for size in value:
        check_range(name, size, 2, MAX_SIDES)
    return tuple(sorted((int(size) for size in value), reverse=True))


class Params(NamedTuple):
    """What the kernels receive."""

    num_actions: int  # the size of the larger pool
    columns: int  # the size of the smaller
    most_sides: int  # the largest size of any die
    sizes: np.ndarray  # (2, MAX_DICE) int64, of each seat's dice, padded with 0
    tie_points: int  # what a tie scores for A
    reroll: bool
    open_hands: bool
    pay_score: bool
    at: tuple[int, ...]  # where each of `_blocks` begins


def _blocks(options: Options) -> tuple[Block, ...]:
    """The observation's blocks. Entries that do not apply to a die are 0."""
    places, columns, most = max(map(len, options.pools)), options.num_columns, max(map(max, options.pools))
    labels = (tuple(f"die {place}" for place in range(places)),)
    pairs = (tuple(f"column {column}" for column in range(columns)), ("own", "other"))
    return (
        Block("own_faces", places, "faces of own dice in hand / the largest size", labels, high=most),
        Block("own_sizes", places, "sizes of own dice in hand / the largest size", labels, high=most),
        Block("other_sizes", places, "sizes of the other's dice in hand / the largest size", labels, high=most),
        Block(
            "other_faces", places, "with open_hands, faces of the other's dice in hand / the largest size", labels, high=most
        ),
        Block("other_dropped", places, "faces of the other's dropped dice / the largest size", labels, high=most),
        Block("own_tied", places, "1 for own dice whose pair tied in this roll", labels, flags=True),
        Block("other_tied", places, "1 for the other's dice whose pair tied in this roll", labels, flags=True),
        Block("columns", 2 * columns, "faces shown in each column of this roll / the largest size", pairs, high=most),
        Block("score", 1, "(own points - the other's + n) / 2n, with n columns in the first roll", low=-columns, high=columns),
        Block("is_a", 1, "1 for A", flags=True),
    )


def _params(options: Options) -> Params:
    return Params(
        num_actions=max(map(len, options.pools)),
        columns=options.num_columns,
        most_sides=max(map(max, options.pools)),
        sizes=np.array([pool + (0,) * (MAX_DICE - len(pool)) for pool in options.pools]),
        tie_points=int(options.ties == "a"),
        reroll=options.ties == "reroll",
        open_hands=options.open_hands,
        pay_score=options.reward == "score",
        at=offsets(_blocks(options)),
    )


def _facts(options: Options) -> Facts:
    longest, columns = max(map(len, options.pools)), options.num_columns
    bound = float(columns) if options.reward == "score" else 1.0
    return Facts(
        num_seats=2,
        num_actions=longest,
        min_return=-bound,
        max_return=bound,
        zero_sum=True,
        simultaneous=True,
        max_steps=2 * columns * (MAX_ROLLS if options.ties == "reroll" else 1),
    )


# --- state ------------------------------------------------------------------------------------------------------

STATE = state_dtype(
    [
        ("faces", np.int8, (2, MAX_DICE)),  # faces of each seat's dice; hidden while they are held
        ("status", np.int8, (2, MAX_DICE)),  # OUT, HELD, PLAYED or DROPPED
        ("shown", np.int8, (2, MAX_DICE)),  # place of each seat's die in each column of this roll
        ("column", np.int8),  # columns of this roll already played; later entries of `shown` are undefined
        ("columns", np.int8),  # columns of this roll
        ("pick", np.int8),  # hidden: A's choice while B has not chosen, else NO_PICK
        ("rolls", np.int8),  # rolls so far, this one included
        ("score", np.int8),  # A's points minus B's
    ]
)


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def deal(params, state):
    """Start a game. Modified in place."""
    start_game(state)
    for seat in range(2):
        for die in range(params.num_actions):
            state["faces"][seat, die] = 0
            state["shown"][seat, die] = 0
            state["status"][seat, die] = HELD if params.sizes[seat, die] > 0 else OUT
    state["score"] = 0
    state["rolls"] = 0
    state["columns"] = params.columns
    _roll(params, state)


@kernel(allocates=False)
def _roll(params, state):
    """Roll all dice in hand, drop the spare lowest and begin the first column."""
    for seat in range(2):
        for die in range(params.num_actions):
            if state["status"][seat, die] == HELD:
                state["faces"][seat, die] = below(state, params.sizes[seat, die]) + 1
    state["rolls"] += 1
    state["column"] = 0
    state["pick"] = NO_PICK
    state["seat"] = 0
    _drop_spares(params, state)


@kernel(allocates=False)
def _drop_spares(params, state):
    for seat in range(2):
        held = 0
        for die in range(params.num_actions):
            held += state["status"][seat, die] == HELD
        for _ in range(held - state["columns"]):
            lowest = -1
            for die in range(params.num_actions):
                shown = state["faces"][seat, die]
                if state["status"][seat, die] == HELD and (lowest < 0 or shown <= state["faces"][seat, lowest]):
                    lowest = die
            state["status"][seat, lowest] = DROPPED


@kernel(allocates=False)
def pair_points(params, face_a, face_b):
    """A's points for a pair: 1, 0 or -1. A tie that is to be rolled again scores 0."""
    if face_a == face_b:
        return params.tie_points
    return 1 if face_a > face_b else -1


@kernel(allocates=False, inline=True)
def legal(params, state, mask):
    """Mark the dice in hand. Modified in place."""
    for die in range(params.num_actions):
        mask[die] = state["status"][state["seat"], die] == HELD


@kernel(allocates=False)
def _random_held(params, state, seat):
    k = below(state, state["columns"] - state["column"])  # the number of dice in hand
    for die in range(params.num_actions):
        if state["status"][seat, die] == HELD:
            if k == 0:
                return die
            k -= 1
    return -1


@kernel(allocates=False, inline=True)
def random_action(params, state):
    """A uniformly random die in hand. The state's stream is modified in place."""
    return _random_held(params, state, state["seat"])


@kernel(allocates=False, inline=True)
def play(params, state, action):
    """Choose a die; after B's choice both are shown. Modified in place."""
    clear_rewards(state)
    if state["seat"] == 0:
        state["pick"] = action
        state["seat"] = 1
        return
    die_a = state["pick"]
    column = state["column"]
    state["shown"][0, column] = die_a
    state["shown"][1, column] = action
    state["status"][0, die_a] = PLAYED
    state["status"][1, action] = PLAYED
    points = pair_points(params, state["faces"][0, die_a], state["faces"][1, action])
    state["score"] += points
    if params.pay_score:
        state["rewards"][0] = points
        state["rewards"][1] = -points
    state["pick"] = NO_PICK
    state["column"] += 1
    state["seat"] = 0
    if state["column"] == state["columns"] and not _roll_tied(params, state):
        if not params.pay_score:
            winner = int(state["score"] > 0) - int(state["score"] < 0)
            state["rewards"][0] = winner
            state["rewards"][1] = -winner
        end_game(state, 2)


@kernel(allocates=False)
def retract(params, state):
    """Undo A's choice, if there is one that B has not seen. Modified in place."""
    if state["pick"] != NO_PICK:
        state["pick"] = NO_PICK
        state["seat"] = 0


@kernel(allocates=False)
def _roll_tied(params, state):
    """After the last column: roll the tied dice again if the options ask for it. Returns whether any were rolled."""
    if not params.reroll or state["rolls"] == MAX_ROLLS:
        return False
    tied = 0
    for column in range(state["columns"]):
        tied += _is_tied(state, column)
    if tied == 0:
        return False
    for seat in range(2):
        for die in range(params.num_actions):
            if state["status"][seat, die] == DROPPED:
                state["status"][seat, die] = HELD if tied == state["columns"] else OUT
    for column in range(state["columns"]):
        status = HELD if _is_tied(state, column) else OUT
        for seat in range(2):
            state["status"][seat, state["shown"][seat, column]] = status
    state["columns"] = tied
    _roll(params, state)
    return True


@kernel(allocates=False)
def _is_tied(state, column):
    return state["faces"][0, state["shown"][0, column]] == state["faces"][1, state["shown"][1, column]]


@kernel(allocates=False, inline=True)
def observe(params, state, seat, out):
    """Write what the seat sees, as `_blocks` lays it out. Modified in place."""
    faces, sizes, other_sizes, other_faces, dropped, tied, other_tied, columns, score_at, is_a = params.at
    other = 1 - seat
    scale = np.float32(params.most_sides)
    for die in range(params.num_actions):
        if state["status"][seat, die] == HELD:
            out[faces + die] = state["faces"][seat, die] / scale
            out[sizes + die] = params.sizes[seat, die] / scale
        if state["status"][other, die] == HELD:
            out[other_sizes + die] = params.sizes[other, die] / scale
            if params.open_hands:
                out[other_faces + die] = state["faces"][other, die] / scale
        elif state["status"][other, die] == DROPPED:
            out[dropped + die] = state["faces"][other, die] / scale
    for column in range(state["column"]):
        own = np.int64(state["shown"][seat, column])
        others = np.int64(state["shown"][other, column])
        if _is_tied(state, column):
            out[tied + own] = 1
            out[other_tied + others] = 1
        out[columns + 2 * column] = state["faces"][seat, own] / scale
        out[columns + 2 * column + 1] = state["faces"][other, others] / scale
    score = np.float32(state["score"] if seat == 0 else -state["score"])
    out[score_at] = (score + np.float32(params.columns)) / np.float32(2 * params.columns)
    out[is_a] = seat == 0


@kernel(allocates=False)
def lowest_face(params, state, seat, die):
    """The lowest face that a die in hand can show, given that its owner's dropped dice are lower."""
    least = np.int64(1)
    for dropped in range(params.num_actions):
        if state["status"][seat, dropped] == DROPPED:
            least = max(least, np.int64(state["faces"][seat, dropped]) + (die > dropped))
    return least


@kernel(allocates=False)
def reroll_hidden(params, state, seat):
    """Roll the other's dice in hand again, none below the dice it dropped, and choose A's hidden choice again at
    random. Modified in place."""
    other = 1 - seat
    if not params.open_hands:
        for die in range(params.num_actions):
            if state["status"][other, die] == HELD:
                least = lowest_face(params, state, other, die)
                state["faces"][other, die] = least + below(state, params.sizes[other, die] - least + 1)
    if seat == 1 and state["pick"] != NO_PICK:
        state["pick"] = _random_held(params, state, 0)


# --- words, pictures, positions -----------------------------------------------------------------------------------

_SIDES = ("A", "B")


_TIES = {
    "none": "Equal dice score nothing.",
    "a": "Of equal dice A's scores.",
    "reroll": "Equal dice are rolled again at the end.",
}


def _pool_in_words(sizes: Sequence[int]) -> str:
    """Dice by their sizes: `2d8 d6`."""
    return " ".join(f"{count if (count := sizes.count(size)) > 1 else ''}d{size}" for size in dict.fromkeys(sizes))


def _rules_in_short(options: Options) -> list[str]:
    pool_a, pool_b = options.pools
    lines = [f"A rolls {_pool_in_words(pool_a)}, B rolls {_pool_in_words(pool_b)} (2d6: two dice of six faces)."]
    if len(pool_a) != len(pool_b):
        lines.append("The lowest dice of the larger pool are dropped, until both have equally many.")
    lines.append("Again and again both choose a die of theirs in secret, then show it: the higher one scores a point.")
    lines.append(_TIES[options.ties])
    seen = (
        "You see the dice that the other holds." if options.open_hands else "You see the other's dice only when they are shown."
    )
    lines.append(seen)
    counts = "More points win." if options.reward == "win" else "What counts is how many points you are ahead."
    return [*lines, counts]


LABELS = {  # the options as players read them
    "pool_a": Label("sizes of A's dice, 1 to 24 dice of 2 to 100 sides, sorted largest first"),
    "pool_b": Label("sizes of B's dice, in the same form"),
    "ties": Label(
        "what follows when a pair ties",
        meanings={"none": "nobody scores", "a": "A scores", "reroll": "it is rolled again at the end"},
    ),
    "open_hands": Label("yes: each player sees the other's dice"),
    "reward": Label(meanings={"win": "at the end +1 for the player with more points", "score": "at once 1 for each pair won"}),
}


def _describe_action(options: Options, action: int) -> Move:
    sizes = [f"d{pool[action]}" for pool in options.pools if action < len(pool)]
    return Move("die {}", action + 1, kind="die", remark=" or ".join(dict.fromkeys(sizes)))


def _explain_illegal(options: Options, state: Any, action: int) -> str:
    status = int(state["status"][int(state["seat"]), action])
    fate = {PLAYED: "has been shown in this roll", DROPPED: "was dropped", OUT: "is not in your hand"}[status]
    return f"die {action + 1} {fate}"


def _picture(options: Options, state: Any, viewer: int | None) -> Picture:
    over = state["seat"] == OVER
    hands = [_hand_row(options, state, seat, viewer) for seat in range(2)]
    columns = [_columns_row(options, state, seat, viewer) for seat in range(2)] if state["column"] else []
    notes = []
    if state["column"]:
        last = [int(state["faces"][seat, state["shown"][seat, state["column"] - 1]]) for seat in range(2)]
        notes.append(", ".join(f"{with_verb(_whose(seat, viewer), 'show')} {face}" for seat, face in enumerate(last)))
    notes.append(f"the score is {int(state['score']):+d} for A" if state["score"] else "the score is even")
    if state["rolls"] > 1:
        notes.append(f"roll {state['rolls']}: tied dice rolled again")
    if over:
        winner = _whose(int(state["score"] < 0), viewer) if state["score"] else "nobody"
        notes.append(f"the game is over: {with_verb(winner, 'win')}")
    rows = (hands[0], *columns, hands[1])
    return Picture("Score dice", tuple(row for row in rows if row.dice or row.groups), tuple(notes))


def _seat_names(options: Options) -> Sequence[str]:
    return _SIDES


def _whose(seat: int, viewer: int | None) -> str:
    return f"you ({_SIDES[seat]})" if seat == viewer else _SIDES[seat]


def _has_numbers(options: Options) -> bool:
    """Whether faces are drawn as numbers: on all dice, if one has too many faces for pips."""
    return max(map(max, options.pools)) > 8


def _hand_row(options: Options, state: Any, seat: int, viewer: int | None) -> Row:
    """A seat's dice in hand, as the viewer sees them, and its dropped dice."""
    pool, faces = options.pools[seat], state["faces"][seat]
    seen = state["seat"] == OVER or viewer in (None, seat) or options.open_hands
    held = [die for die in range(len(pool)) if state["status"][seat, die] == HELD]
    picked = int(state["pick"]) if seat == 0 and viewer != 1 else NO_PICK
    mixed = len(set(pool)) > 1
    dice = tuple(
        Die(
            int(faces[die]) if seen else None,
            Tone.BRIGHT if die == picked else Tone.PLAIN,
            f"{die + 1}: d{pool[die]}" if mixed else f"{die + 1}",
            _has_numbers(options),
        )
        for die in held
    )
    aside = [int(faces[die]) for die in range(len(pool)) if state["status"][seat, die] == DROPPED]
    dropped = tuple(Die(face, Tone.FADED, number=_has_numbers(options)) for face in aside)
    counts = _pool_in_words([pool[die] for die in held])
    return Row(
        _whose(seat, viewer),
        dice,
        detail=f"{'hold' if seat == viewer else 'holds'} {counts}" if held else "",
        mark="to choose" if seat == state["seat"] else "",
        groups=(Group("dropped:", dropped),) if dropped else (),
    )


def _columns_row(options: Options, state: Any, seat: int, viewer: int | None) -> Row:
    """A seat's dice in the columns of this roll; those that score are bright."""
    params = _params(options)
    dice = []
    for column in range(state["column"]):
        face_a, face_b = (int(state["faces"][side, state["shown"][side, column]]) for side in range(2))
        points = pair_points(params, face_a, face_b) * (1 if seat == 0 else -1)
        tone = Tone.BRIGHT if points > 0 else Tone.FADED if points < 0 else Tone.PLAIN
        dice.append(Die(face_b if seat else face_a, tone, number=_has_numbers(options)))
    return Row(with_verb(_whose(seat, viewer), "show"), tuple(dice), facing=seat == 0)


def _full_picture(options: Options) -> Picture:
    """All dice in hand, except one dropped where a pool has spares, and every column shown."""
    state = np.zeros((), STATE)
    for seat, pool in enumerate(options.pools):
        state["faces"][seat, : len(pool)] = pool
        state["status"][seat, : len(pool)] = HELD
        if len(pool) > options.num_columns:
            state["status"][seat, len(pool) - 1] = DROPPED
    state["column"] = options.num_columns
    state["score"] = options.num_columns
    state["rolls"] = MAX_ROLLS
    return _picture(options, state, None)


def _arrange(options: Options, state: Any, wanted: Mapping[str, Any]) -> None:
    """`{"dice": [[faces of A], [faces of B]]}` sets the first roll, largest dice first."""
    hands = wanted["dice"]
    check_list("dice", hands, 2, "lists of face values, A's and B's")
    for side, hand, pool in zip(_SIDES, hands, options.pools, strict=True):
        check_faces(f"dice of {side}", hand, len(pool), pool)
    for seat, hand in enumerate(hands):
        state["faces"][seat, : len(hand)] = hand
    state["status"][:] = np.where(state["status"] == DROPPED, HELD, state["status"])
    _drop_spares(_params(options), state)


GAME = Game.of(
    globals(),
    name="score_dice",
    env_name="ScoreDice",
    title="Score dice",
    reset_options=("dice",),
    first_game={"pool_a": (6, 6, 6), "pool_b": (8, 6, 4)},
)
