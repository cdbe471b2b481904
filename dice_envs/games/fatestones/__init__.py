"""FateStones: odd dice lie open, both players secretly pick one of theirs, the higher roll wins.

Play
    Dice have six faces of 1 to 6 pips; a die is written as its faces in rising order, 123456 being the usual one.
    Both players draw dice from one bag without replacement; all dice are open. Both choose one of their dice in
    secret, reveal and roll them: the higher roll wins the game. On a tie both dice are put away and they choose
    again. When the dice run out the round is a scratch.

Source
    The README of the FateStones project: "Elements" for dice and rules, "Episode" for the log of a game, and
    "Investigation" for its simulator.

Readings
    - One bag holds one of each of the 32 dice that average 3.5 (the source's avgfaces.txt), another one of each of the 462.
      A list of dice is itself the bag, and may repeat a die.
    - The source's rules redraw after a scratch. Its simulator records the scratch and stops.
    - A bag whose dice can only tie would be redrawn forever, so after 100 scratches the game ends in a draw. With the dice
      that average 3.5 a scratch has probability 1/200, so the cap is never reached in practice.
    - The remaining dice are numbered anew after a tie, as in the source's logs.

In programs
    - `bag="fair"` is the bag of 32 dice, `bag="all"` that of 462.
    - `scratch="redraw"` is the source's rule; `scratch="draw"`, as in its simulator, gives both players the reward 0.

Actions
    0 … hand_size-1     which of its remaining dice the seat rolls; seat 0 commits, then seat 1, which cannot see it
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from dice_envs.core.dice import below, below_except
from dice_envs.core.game import Facts, Game
from dice_envs.core.kernel import kernel
from dice_envs.core.options import Label, Range, check_list, check_types, is_list, is_whole, shown
from dice_envs.core.state import OVER, clear_rewards, end_game, start_game, state_dtype
from dice_envs.core.view import Block, Die, Group, Move, Picture, Row, Tone, offsets, seat_name, with_verb

MAX_HAND = 5
NUM_FACES = 6
MAX_BAG = int(np.iinfo(np.int16).max)  # dice in a bag: during a draw, hands hold positions in the bag as int16
MAX_DRAWS = 100  # this many scratches end a game in a draw
GONE = -1  # stands for a die that has been put away
NONE = -1  # value of `committed` when seat 0 has yet to commit
FAIR_PIPS = 21  # sum of the faces of a die that averages 3.5

FACES = np.array(list(itertools.combinations_with_replacement(range(1, 7), NUM_FACES)), np.int8)  # (462, 6), every die
COUNTS = np.array([[list(die).count(value) for value in range(1, 7)] for die in FACES], np.int8)  # (462, 6)
CODES = tuple(int("".join(map(str, faces))) for faces in FACES)  # each die as its six digits
DIE_OF_CODE = {code: die for die, code in enumerate(CODES)}


# --- options ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of FateStones; ValueError names the option, the value and what is allowed.

    Attributes:
        dice: the bag: "fair" (the 32 dice that average 3.5), "all" (all 462), or a list of up to 32767
            codes such as 123456.
        hand_size: dice each player draws, 1 to 5.
        scratch: what follows when all dice have tied: "redraw": new hands from the whole bag; "draw": the game is a draw.
    """

    dice: Literal["fair", "all"] | tuple[int, ...] = "fair"
    hand_size: Annotated[int, Range(1, MAX_HAND)] = 3
    scratch: Literal["redraw", "draw"] = "redraw"

    def __post_init__(self) -> None:
        check_types(self)
        allowed = "'fair', 'all' or a list of codes of six faces 1 to 6 in rising order, such as 123456"
        if isinstance(self.dice, str) and self.dice in ("fair", "all"):
            return
        if not is_list(self.dice):
            raise ValueError(f"dice must be {allowed}, not {shown(self.dice)}")
        if len(self.dice) > MAX_BAG:
            raise ValueError(f"dice must list at most {MAX_BAG} codes, not {len(self.dice)}")
        for code in self.dice:
            if not _is_code(code):
                raise ValueError(f"dice must be {allowed}; {shown(code)} is no such code")
        if len(self.dice) < 2 * self.hand_size:
            raise ValueError(f"dice must list at least 2 * hand_size = {2 * self.hand_size} codes, not {len(self.dice)}")
        object.__setattr__(self, "dice", tuple(int(code) for code in self.dice))

    @property
    def bag(self) -> np.ndarray:
        """The dice of the bag as rows of FACES, (n,) int64."""
        if self.dice == "all":
            return np.arange(len(FACES))
        if self.dice == "fair":
            return np.flatnonzero(FACES.sum(axis=1) == FAIR_PIPS)
        return np.array([DIE_OF_CODE[int(code)] for code in self.dice])


def _is_code(code: Any) -> bool:
    """Whether a value is the code of a die, as a whole number or as text of six digits."""
    if isinstance(code, str):
        return len(code) == NUM_FACES and code.isascii() and code.isdigit() and int(code) in DIE_OF_CODE
    return is_whole(code) and code in DIE_OF_CODE


class Params(NamedTuple):
    """What the kernels receive."""

    num_actions: int
    hand_size: int
    redraw: bool
    bag: np.ndarray  # (n,) int64, rows of FACES
    at: tuple[int, ...]  # where each of `_blocks` begins


def _blocks(options: Options) -> tuple[Block, ...]:
    """The observation's blocks."""
    labels = (tuple(f"die {i} face" for i in range(options.hand_size)), range(1, NUM_FACES + 1))
    size = options.hand_size * NUM_FACES
    return (
        Block("own_dice", size, "for each own die, its faces that show 1 to 6, / 6; 0 for a die that is gone", labels, high=6),
        Block("other_dice", size, "the opponent's dice in the same form", labels, high=6),
    )


def _params(options: Options) -> Params:
    return Params(options.hand_size, options.hand_size, options.scratch == "redraw", options.bag, offsets(_blocks(options)))


def _facts(options: Options) -> Facts:
    return Facts(
        num_seats=2,
        num_actions=options.hand_size,
        min_return=-1.0,
        max_return=1.0,
        zero_sum=True,
        simultaneous=True,
        max_steps=2 * options.hand_size * (MAX_DRAWS if options.scratch == "redraw" else 1),
    )


# --- state ------------------------------------------------------------------------------------------------------

STATE = state_dtype(
    [
        ("hands", np.int16, (2, MAX_HAND)),  # each seat's remaining dice as rows of FACES, then GONE
        ("left", np.int8),  # dice left in each hand
        ("committed", np.int8),  # hidden: the die seat 0 has chosen, or NONE
        ("draws", np.int16),  # draws from the bag so far
        ("shown_hands", np.int16, (2, MAX_HAND)),  # the hands at the last roll
        ("shown_left", np.int8),  # dice in each of them; 0 before the first roll
        ("choices", np.int8, (2,)),  # each seat's action for that roll
        ("results", np.int8, (2,)),  # the faces rolled, 1 … 6
    ]
)


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def deal(params, state):
    """Start a game. Modified in place."""
    start_game(state)
    state["draws"] = 0
    state["shown_left"] = 0
    for seat in range(2):
        state["choices"][seat] = 0
        state["results"][seat] = 0
        for i in range(MAX_HAND):
            state["shown_hands"][seat, i] = GONE
    _draw(params, state)


@kernel(allocates=False)
def _draw(params, state):
    """Both seats draw their dice from the full bag."""
    hands = state["hands"]
    size = params.hand_size
    for i in range(MAX_HAND):
        hands[0, i] = GONE
        hands[1, i] = GONE
    for k in range(2 * size):  # positions in the bag first; entries not drawn yet are GONE, which is no position
        hands[k & 1, k >> 1] = below_except(state, len(params.bag), hands)
    for i in range(size):
        hands[0, i] = params.bag[hands[0, i]]
        hands[1, i] = params.bag[hands[1, i]]
    state["left"] = size
    state["committed"] = NONE
    state["draws"] += 1
    state["seat"] = 0


@kernel(allocates=False, inline=True)
def legal(params, state, mask):
    """Mark the legal actions. Modified in place."""
    for i in range(state["left"]):
        mask[i] = 1


@kernel(allocates=False, inline=True)
def random_action(params, state):
    """A uniformly random legal action. The state's stream is modified in place."""
    return below(state, np.int64(state["left"]))


@kernel(allocates=False, inline=True)
def play(params, state, action):
    """Commit to a die; when seat 1 has committed, roll both dice. Modified in place."""
    clear_rewards(state)
    if state["committed"] == NONE:
        state["committed"] = action
        state["seat"] = 1
        return
    hands = state["hands"]
    first, second = np.int64(state["committed"]), np.int64(action)
    one = FACES[hands[0, first], below(state, np.int64(NUM_FACES))]
    two = FACES[hands[1, second], below(state, np.int64(NUM_FACES))]
    for seat in range(2):
        for i in range(MAX_HAND):
            state["shown_hands"][seat, i] = hands[seat, i]
    state["shown_left"] = state["left"]
    state["choices"][0] = first
    state["choices"][1] = second
    state["results"][0] = one
    state["results"][1] = two
    if one == two:
        _put_away(params, state, first, second)
    else:
        state["rewards"][0] = 1 if one > two else -1
        state["rewards"][1] = -state["rewards"][0]
        state["committed"] = NONE
        end_game(state, 2)


@kernel(allocates=False)
def _put_away(params, state, first, second):
    """After a tie: remove both dice; then the next choice, a new draw or the end of the game follows."""
    hands = state["hands"]
    left = np.int64(state["left"]) - 1
    for i in range(left):
        if i >= first:
            hands[0, i] = hands[0, i + 1]
        if i >= second:
            hands[1, i] = hands[1, i + 1]
    hands[0, left] = GONE
    hands[1, left] = GONE
    state["left"] = left
    state["committed"] = NONE
    state["seat"] = 0
    if left == 0:
        if params.redraw and state["draws"] < MAX_DRAWS:
            _draw(params, state)
        else:
            end_game(state, 2)


@kernel(allocates=False)
def duel(one, two):
    """(wins of die `one`, ties) among the 36 rolls of two dice, given as rows of FACES."""
    wins = 0
    ties = 0
    lower = 0  # faces of `two` below the value
    for value in range(NUM_FACES):
        ours, theirs = np.int64(COUNTS[one, value]), np.int64(COUNTS[two, value])
        wins += ours * lower
        ties += ours * theirs
        lower += theirs
    return wins, ties


@kernel(allocates=False)
def expect(params, state, action, rewards):
    """Play the action, taking the expectation over the roll. `state` becomes the one after a tie, `rewards` (seats,) each
    seat's expected reward; both are modified in place. Returns the probability of a tie."""
    rewards[0] = 0.0
    rewards[1] = 0.0
    if state["committed"] == NONE:
        play(params, state, action)
        return 1.0
    first = np.int64(state["committed"])
    wins, ties = duel(state["hands"][0, first], state["hands"][1, action])
    clear_rewards(state)
    rewards[0] = (2 * wins + ties - 36) / 36.0
    rewards[1] = -rewards[0]
    _put_away(params, state, first, np.int64(action))
    return ties / 36.0


@kernel(allocates=False, inline=True)
def observe(params, state, seat, out):
    """Write both hands as face counts, as `_blocks` lays them out. Modified in place."""
    for whose, at in enumerate(params.at):
        hand = state["hands"][1 - seat if whose else seat]
        for i in range(params.hand_size):
            if hand[i] != GONE:
                for value in range(NUM_FACES):
                    out[at + value] = COUNTS[hand[i], value] / np.float32(NUM_FACES)
            at += NUM_FACES


@kernel(allocates=False)
def reroll_hidden(params, state, seat):
    """Draw seat 0's commitment again if the seat cannot see it. Modified in place."""
    if seat == 1 and state["committed"] != NONE:
        state["committed"] = below(state, np.int64(state["left"]))


@kernel(allocates=False)
def retract(params, state):
    """Undo seat 0's commitment, if there is one. Modified in place."""
    if state["committed"] != NONE:
        state["committed"] = NONE
        state["seat"] = 0


# --- words, pictures, positions -----------------------------------------------------------------------------------


def _rules_in_short(options: Options) -> list[str]:
    bags = {"fair": "the 32 dice of 1 to 6 pips a face that average 3.5", "all": "all 462 dice of 1 to 6 pips a face"}
    bag = bags.get(options.dice, f"{len(options.dice)} dice") if isinstance(options.dice, str) else f"{len(options.dice)} dice"
    ending = "the game is a draw" if options.scratch == "draw" else "both draw new ones"
    return [
        f"Both players draw from one bag of {bag}: {options.hand_size} each, for all to see.",
        "Both choose a die of theirs in secret and roll it. The higher roll wins the game.",
        "After a tie both dice are put away, and both choose again.",
        f"When all dice have tied, it is a scratch: {ending}.",
    ]


LABELS = {  # the options as players read them
    "dice": Label('the bag: "fair", "all", or a list of up to 32767 codes such as 123456'),
    "hand_size": Label("dice each player draws, 1 to 5", label="dice each", counted=True, one="die each"),
    "scratch": Label(
        "what follows when all dice have tied",
        meanings={"redraw": "new hands from the whole bag", "draw": "the game is a draw"},
    ),
}


def _describe_action(options: Options, action: int) -> Move:
    return Move("roll die {}", action + 1, kind="die")


def _explain_illegal(options: Options, state: Any, action: int) -> str:
    left = int(state["left"])
    return f"there is no die {action + 1}: you have {left} left, {'die 1' if left == 1 else f'1 to {left}'}"


def _picture(options: Options, state: Any, viewer: int | None) -> Picture:
    over = state["seat"] == OVER
    rows, notes = [], []
    for seat in range(2):
        chosen = NONE
        if over:
            chosen = int(state["choices"][seat])
        elif seat == 0 and viewer != 1:
            chosen = int(state["committed"])
        dice = [FACES[die].tolist() for die in state["hands"][seat, : state["left"]]]
        strips = [
            Group(str(i + 1), tuple(die), strip=True, tone=Tone.BRIGHT if i == chosen else Tone.PLAIN)
            for i, die in enumerate(dice)
        ]
        detail = "chosen" if not over and seat == 0 and state["committed"] != NONE else ""
        mark = "to choose" if seat == state["seat"] else ""
        rows.append(Row(seat_name(seat, viewer), detail=detail, mark=mark, groups=tuple(strips)))
    if state["shown_left"]:
        faces = [int(face) for face in state["results"]]
        thrown = [int(state["shown_hands"][seat, state["choices"][seat]]) for seat in range(2)]
        rolls = [
            f"{seat_name(seat, viewer)} rolled {face} with {CODES[die]}"
            for seat, face, die in zip(range(2), faces, thrown, strict=True)
        ]
        verdict = "a tie"
        if faces[0] != faces[1]:
            verdict = with_verb(seat_name(0 if faces[0] > faces[1] else 1, viewer), "win")
        groups = tuple(_roll_shown(f"{seat_name(seat, viewer)}:", thrown[seat], faces[seat], max(faces)) for seat in range(2))
        rows.append(Row("the last roll", detail=verdict, groups=groups))
        notes.append(f"{'; '.join(rolls)}: {verdict}")
        if verdict == "a tie" and state["shown_left"] == 1:
            notes.append("a scratch: no dice are left" + ("" if over else "; both draw again"))
    if over:
        notes.append("the game is over")
    return Picture("FateStones", tuple(rows), tuple(notes))


def _roll_shown(label: str, die: int, face: int, best: int) -> Group:
    """All faces of a die, the rolled one bright; a die that has lost is faded."""
    faces = FACES[die].tolist()
    dice: list[int | Die] = list(faces)
    dice[faces.index(face)] = Die(face, Tone.BRIGHT)
    return Group(label, tuple(dice), strip=True, tone=Tone.FADED if face < best else Tone.PLAIN)


def _full_picture(options: Options) -> Picture:
    state = np.zeros((), STATE)
    state["left"] = options.hand_size
    state["shown_left"] = 1
    state["results"] = 1  # a tie with the last dice that ends the game takes three notes
    state["seat"] = OVER
    return _picture(options, state, None)


def _arrange(options: Options, state: Any, wanted: Mapping[str, Any]) -> None:
    """`{"dice": [[codes of seat 0], [codes of seat 1]]}` sets the first hands."""
    hands = wanted["dice"]
    check_list("dice", hands, 2, "lists of codes, one for each seat")
    for seat, hand in enumerate(hands):
        check_list(f"dice of seat {seat}", hand, options.hand_size, "codes")
        for code in hand:
            if not _is_code(code):
                raise ValueError(f"dice of seat {seat} must be codes such as 123456, not {shown(code)}")
    state["hands"][:, : options.hand_size] = [[DIE_OF_CODE[int(code)] for code in hand] for hand in hands]


GAME = Game.of(globals(), name="fatestones", env_name="FateStones", title="FateStones", reset_options=("dice",))
