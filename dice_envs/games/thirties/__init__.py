"""The game of 30s: put dice aside for a high score. Below 30 you get points, above 30 the next player does; points are bad.

Play
    First stage: throw six dice, put at least one aside, throw the rest, and so on until none is left. The score is
    the sum. Below 30 the player gets 30 - score points. Above it, with x = score - 30, the second stage gives points
    to the next player: throw six dice, put aside every die that shows x, and throw the rest again until no die shows x.
    The points are x plus the pips put aside. If all six are put aside, the points double and the second stage starts
    again with x + 1 (a 6 stays a 6). After a fixed number of rounds the fewest points win.

Source
    M. Veeningen, "The game of 30s: an analysis" (2008), sections 1.2 and 2.

Readings
    - As the paper assumes (section 1.3), no lower die is kept while a higher one is thrown again, so a choice is a
      number of dice.
    - The paper's text gives "the number of x's aside + x" points. But both its 7x points for six dice aside and its
      program count pips, and so does this game.
    - With other dice or another target, x may exceed the highest face: then the highest face is put aside.
    - Nothing bounds the length of the second stage. Here it starts again at most 40 times, so that points are bounded.
    - The winners share +1 and the others share -1; when all have the same points everybody gets 0. The first
      seat begins every round.

In programs
    - With `num_players=1`, the default of `gymnasium.make`, one turn is played, and at its end `goal` decides the reward.
      With 2 to 6 players it is the table game.
    - With six dice the second stage starts again 40 times (`MAX_RESTARTS`) with probability 1e-71.

Actions
    k = 0 … num_dice - 1    throw the k lowest dice again and put the others aside; 0 ends the turn
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from dice_envs.core.dice import below, counts_of, faces_of, roll_counts
from dice_envs.core.game import Facts, Game
from dice_envs.core.kernel import kernel
from dice_envs.core.options import Label, Range, check_faces, check_types, shown
from dice_envs.core.state import MAX_SEATS, OVER, clear_rewards, end_game, next_seat, relative_seat, start_game, state_dtype
from dice_envs.core.view import Bar, Block, Die, Group, Move, Picture, Row, Tone, offsets, seat_labels, seat_name, with_verb

MAX_DICE = 8
MAX_FACES = 8
MAX_ROUNDS = 1000
MAX_RESTARTS = 40  # of one second stage; points stay below 2**50
_UNLIKELY = 1e-7  # the chance of so many restarts that points exceed `Facts.max_likely_return`
NO_SCORE = -1  # value of `scores` before a seat's first turn has ended
GOALS = ("maximize", "minimize_loss", "thirty_or_over", "optimal")
MAXIMIZE, MINIMIZE_LOSS, THIRTY_OR_OVER, OPTIMAL = range(4)  # values of `Params.goal`


# --- options ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of the game of 30s; ValueError names the option, the value and what is allowed.

    Attributes:
        num_players: players at the table, 1 to 6; one alone plays one turn, rewarded by `goal`.
        rounds: turns of each player in the table game, 1 to 1000; one player plays one turn.
        num_dice: dice of the first throw, 1 to 8.
        num_faces: faces of every die, 2 to 8.
        target: the lowest score that costs no points, 1 to 64.
        goal: what one player is rewarded for: "maximize": the score; "minimize_loss": minus the points below the
            target; "thirty_or_over": 1 for the target or more; "optimal": minus its own points, plus the points
            that its second stage gives the next player. Leave it at the default in the table game.
    """

    num_players: Annotated[int, Range(1, MAX_SEATS)] = 2
    rounds: Annotated[int, Range(1, MAX_ROUNDS)] = 3
    num_dice: Annotated[int, Range(1, MAX_DICE)] = 6
    num_faces: Annotated[int, Range(2, MAX_FACES)] = 6
    target: Annotated[int, Range(1, MAX_DICE * MAX_FACES)] = 30
    goal: Literal["maximize", "minimize_loss", "thirty_or_over", "optimal"] = "maximize"

    def __post_init__(self) -> None:
        check_types(self)
        if self.num_players > 1 and self.goal != "maximize":
            raise ValueError(f"goal must be left at 'maximize' with num_players={self.num_players}, not {self.goal!r}")
        if self.goal == "optimal" and self.num_faces == 2 and 2 * self.num_dice > self.target:
            # Half of all second stages start again with doubled points.
            raise ValueError("goal must not be 'optimal' with num_faces=2: the second stage's expected points are infinite")


class Params(NamedTuple):
    """What the kernels receive."""

    num_players: int
    rounds: int
    num_dice: int
    num_faces: int
    num_actions: int
    target: int
    goal: int  # index into GOALS
    at: tuple[int, ...]  # where each of `_blocks` begins


def _blocks(options: Options) -> tuple[Block, ...]:
    """The observation's blocks; nothing is hidden. Seats are listed in turn order, the observer first."""
    n, dice = options.num_players, options.num_dice
    faces, seats = range(1, options.num_faces + 1), seat_labels(n)
    each = tuple(f"die {i} shows" for i in range(dice))
    players = n if n > 1 else 0  # the blocks after the score are for the table game only
    return (
        Block("on_table", len(faces), "dice on the table that show each face / num_dice", (("face",), faces), high=dice),
        Block("aside", len(faces), "dice put aside that show each face / num_dice", (("face",), faces), high=dice),
        Block("each_die", dice * len(faces), "the dice on the table in rising order, one-hot", (each, faces), flags=True),
        Block("thrown", 1, "dice on the table / num_dice", high=dice),
        Block("score", 1, "pips aside / the most possible", high=dice * len(faces)),
        Block("to_move", players, "1 for the seat to move", (seats,), flags=True),
        Block("place", players, "1 for the observer's own place in the order of a round", (range(n),), flags=True),
        Block("points", players, "points p of each seat as p / (p + target)", (seats,), half=options.target),
        Block("round", min(players, 1), "rounds completed / rounds", high=options.rounds),
    )


def _params(options: Options) -> Params:
    return Params(
        num_players=options.num_players,
        rounds=options.rounds,
        num_dice=options.num_dice,
        num_faces=options.num_faces,
        num_actions=options.num_dice,
        target=options.target,
        goal=GOALS.index(options.goal),
        at=offsets(_blocks(options)),
    )


def _restart_chance(options: Options) -> float:
    """P(all dice are put aside in one round of the second stage)."""
    hit, chances = 1 / options.num_faces, [1.0]  # by number of dice
    for dice in range(1, options.num_dice + 1):
        ways = (math.comb(dice, new) * hit**new * (1 - hit) ** (dice - new) * chances[-new] for new in range(1, dice + 1))
        chances.append(sum(ways))
    return chances[-1]


def _most_given(options: Options, restarts: int = MAX_RESTARTS) -> int:
    """The most points that one second stage can give if it starts again so often."""
    excess = options.num_dice * options.num_faces - options.target
    if excess <= 0:
        return 0
    points = excess
    for _ in range(restarts):
        points = 2 * (points + options.num_dice * options.num_faces)
    return points + options.num_dice * options.num_faces


def _facts(options: Options) -> Facts:
    n, dice, faces = options.num_players, options.num_dice, options.num_faces
    most_lost = float(max(0, options.target - dice))
    least_lost = float(max(0, options.target - dice * faces))
    bounds = {
        "maximize": (float(dice), float(dice * faces)),
        "minimize_loss": (-most_lost, -least_lost),
        "thirty_or_over": (0.0, 1.0),
        "optimal": (-most_lost, float(np.float32(_most_given(options))) - least_lost),
    }
    low, high = bounds[options.goal] if n == 1 else (-1.0, 1.0)
    likely = None
    if options.goal == "optimal":
        restarts = math.ceil(math.log(_UNLIKELY) / math.log(_restart_chance(options))) - 1
        likely = float(_most_given(options, min(restarts, MAX_RESTARTS))) - least_lost
    return Facts(
        num_seats=n,
        num_actions=dice,
        min_return=low,
        max_return=high,
        zero_sum=n > 1,
        simultaneous=False,
        max_steps=dice * (1 if n == 1 else n * options.rounds),
        winning_return=1.0 if n == 1 and options.goal == "thirty_or_over" else None,
        max_likely_return=likely,
    )


# --- state ------------------------------------------------------------------------------------------------------

STATE = state_dtype(
    [
        ("counts", np.int8, (MAX_FACES,)),  # dice on the table that show each face
        ("aside", np.int8, (MAX_FACES,)),  # dice put aside in this turn that show each face
        ("thrown", np.int8),  # dice on the table, 1 … num_dice; 0 once the game is over
        ("score", np.int16),  # pips aside
        ("round", np.int16),  # rounds completed
        ("points", np.int64, (MAX_SEATS,)),  # each seat's points so far
        ("scores", np.int16, (MAX_SEATS,)),  # score of each seat's last turn, or NO_SCORE
        ("given", np.int64, (MAX_SEATS,)),  # points given by that turn's second stage, 0 if there was none
    ]
)


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def deal(params, state):
    """Start a game. Modified in place."""
    start_game(state)
    for seat in range(MAX_SEATS):
        state["points"][seat] = 0
        state["scores"][seat] = NO_SCORE
        state["given"][seat] = 0
    state["round"] = 0
    state["seat"] = 0
    _start_turn(params, state)


@kernel(allocates=False)
def _start_turn(params, state):
    state["score"] = 0
    for face in range(MAX_FACES):
        state["aside"][face] = 0
    _throw(params, state, params.num_dice)


@kernel(allocates=False)
def _throw(params, state, num_dice):
    state["thrown"] = num_dice
    roll_counts(state, num_dice, params.num_faces, state["counts"])


@kernel(allocates=False, inline=True)
def legal(params, state, mask):
    """Mark the legal actions: at least one die goes aside. Modified in place."""
    for action in range(state["thrown"]):
        mask[action] = 1


@kernel(allocates=False, inline=True)
def random_action(params, state):
    """A uniformly random legal action. The state's stream is modified in place."""
    return below(state, np.int64(state["thrown"]))


@kernel(allocates=False, inline=True)
def play(params, state, action):
    """Put all but the `action` lowest dice aside and throw those again; end the turn when none is left. In place."""
    clear_rewards(state)
    keep = np.int64(state["thrown"]) - action
    for k in range(MAX_FACES):
        face = MAX_FACES - 1 - k
        moved = min(np.int64(state["counts"][face]), keep)
        keep -= moved
        state["counts"][face] -= moved
        state["aside"][face] += moved
        state["score"] += moved * (face + 1)
    if action > 0:
        _throw(params, state, action)
    else:
        _end_turn(params, state)


@kernel(allocates=False)
def _end_turn(params, state):
    seat = np.int64(state["seat"])
    score = np.int64(state["score"])
    lost = max(np.int64(0), params.target - score)
    given = np.int64(0)
    if score > params.target and (params.num_players > 1 or params.goal == OPTIMAL):
        given = second_stage(params, state, score - params.target)
    following = next_seat(seat, params.num_players)
    state["scores"][seat] = score
    state["given"][seat] = given
    state["points"][seat] += lost
    if params.num_players == 1:
        if params.goal == MAXIMIZE:
            state["rewards"][0] = score
        elif params.goal == THIRTY_OR_OVER:
            state["rewards"][0] = score >= params.target
        else:
            state["rewards"][0] = given - lost
        _end(params, state)
        return
    state["points"][following] += given
    state["seat"] = following
    if following == 0:
        state["round"] += 1
        if state["round"] == params.rounds:
            _share_out(params, state)
            _end(params, state)
            return
    _start_turn(params, state)


@kernel(allocates=False)
def second_stage(params, state, excess):
    """Throw the second stage of a score that exceeds the target by `excess` >= 1.

    Returns the points for the next player, int64. The state's stream is modified in place.
    """
    points = np.int64(excess)
    face = min(points, np.int64(params.num_faces))
    for _ in range(MAX_RESTARTS):
        aside = _chase(params, state, face)
        points += aside * face
        if aside < params.num_dice:
            return points
        points *= 2
        face = min(face + 1, np.int64(params.num_faces))
    return points + _chase(params, state, face) * face


@kernel(allocates=False)
def _chase(params, state, face):
    """Throw all dice, put aside those that show `face` and throw the rest again, until none does; returns the number put
    aside, int64."""
    left = np.int64(params.num_dice)
    hits = np.int64(1)
    while left > 0 and hits > 0:
        hits = np.int64(0)
        for _ in range(left):
            hits += below(state, params.num_faces) + 1 == face
        left -= hits
    return params.num_dice - left


@kernel(allocates=False)
def _share_out(params, state):
    """The seats with the fewest points share +1, the others share -1; 0 for all when all are equal."""
    fewest = state["points"][0]
    for seat in range(1, params.num_players):
        fewest = min(fewest, state["points"][seat])
    winners = 0
    for seat in range(params.num_players):
        winners += state["points"][seat] == fewest
    if winners < params.num_players:
        for seat in range(params.num_players):
            won = state["points"][seat] == fewest
            state["rewards"][seat] = 1.0 / winners if won else -1.0 / (params.num_players - winners)


@kernel(allocates=False)
def _end(params, state):
    """End the game; the last dice stay aside, where pictures show them."""
    state["thrown"] = 0
    end_game(state, params.num_players)


@kernel(allocates=False, inline=True)
def observe(params, state, seat, out):
    """Write what the seat sees, as `_blocks` lays it out. Modified in place."""
    table_at, aside_at, die_at, thrown_at, score_at, mover_at, place_at, points_at, round_at = params.at
    faces = params.num_faces
    dice = np.float32(params.num_dice)
    for face in range(faces):
        out[table_at + face] = state["counts"][face] / dice
        out[aside_at + face] = state["aside"][face] / dice
        for _ in range(state["counts"][face]):
            out[die_at + face] = 1
            die_at += faces
    out[thrown_at] = state["thrown"] / dice
    out[score_at] = state["score"] / (dice * np.float32(faces))
    n = params.num_players
    if n == 1:
        return
    for other in range(n):
        relative = relative_seat(other, seat, n)
        if state["seat"] == other:
            out[mover_at + relative] = 1
        points = np.float64(state["points"][other])
        out[points_at + relative] = points / (points + params.target)
    out[place_at + seat] = 1
    out[round_at] = state["round"] / np.float32(params.rounds)


@kernel(allocates=False)
def reroll_hidden(params, state, seat):
    """Nothing is hidden except future throws, which come from the state's stream."""


# --- words, pictures, positions -----------------------------------------------------------------------------------


_GOALS = {
    "maximize": "The higher the score, the better.",
    "minimize_loss": "What counts is how far the score stays below {0}: as little as possible.",
    "thirty_or_over": "You win with {0} or more.",
    "optimal": "A score below {0} costs what is missing. Above it, by x, a second stage gives points: all dice are thrown, and "
    "those that show x put aside, until none shows x. You get x and the pips put aside.",
}


def _rules_in_short(options: Options) -> list[str]:
    target, dice = options.target, options.num_dice
    lines = [
        f"Throw {dice} dice of {options.num_faces} faces. Keep at least one and throw the lowest again, until you keep all.",
        "The score is the sum of the dice.",
    ]
    if options.num_players == 1:
        return [*lines, _GOALS[options.goal].format(target)]
    turns = "one turn" if options.rounds == 1 else f"{options.rounds} turns"
    return [
        *lines,
        f"Below {target} you get a point for each pip that is missing, and points are bad. {target} costs nothing.",
        f"Above {target}, by x, the next player gets points: all dice are thrown, and those that show x put aside, until none "
        "shows x. It gets x and the pips put aside. If all dice go aside the points double, and it goes on with x + 1.",
        f"After {turns} of each of the {options.num_players} players the fewest points win.",
    ]


LABELS = {  # the options as players read them
    "num_players": Label("players at the table, 1 to 6", one="player"),
    "rounds": Label("turns of each player in the table game, 1 to 1000", counted=True, one="round"),
    "num_dice": Label("dice of the first throw, 1 to 8", one="die"),
    "num_faces": Label("faces of every die, 2 to 8"),
    "target": Label("the lowest score that costs no points, 1 to 64"),
    "goal": Label(
        "what one player is rewarded for",
        meanings={
            "maximize": "the score",
            "minimize_loss": "minus the points below the target",
            "thirty_or_over": "1 for the target or more",
            "optimal": "minus its own points, plus the points that its second stage gives the next player",
        },
    ),
}


def _describe_action(options: Options, action: int) -> Move:
    if action > 1:
        return Move("throw the {} lowest again", action)
    return Move("throw the lowest again" if action else "keep all")


def _explain_illegal(options: Options, state: Any, action: int) -> str:
    thrown = int(state["thrown"])
    dice = "1 die lies" if thrown == 1 else f"{thrown} dice lie"
    return f"at least one die goes aside: {dice} on the table, so at most {thrown - 1} can be thrown again"


def _picture(options: Options, state: Any, viewer: int | None) -> Picture:
    over = state["seat"] == OVER
    table = options.num_players > 1
    rows = []
    for seat in range(options.num_players if table else 0):
        groups = [Group(f"{int(state['points'][seat])} points", tone=Tone.BRIGHT)]
        if state["scores"][seat] != NO_SCORE:
            groups.append(Group(f"last score {int(state['scores'][seat])}"))
        if state["given"][seat]:
            groups.append(Group(f"gave {int(state['given'][seat])}"))
        mark = "to move" if seat == state["seat"] else ""
        rows.append(Row(seat_name(seat, viewer), mark=mark, groups=tuple(groups)))
    if not over:
        rows.append(Row("on the table", faces_of(state["counts"])))
    score = int(state["score"])
    if score or not over:
        aside = tuple(Die(face, Tone.BRIGHT) for face in faces_of(state["aside"]))
        most = max(options.target, options.num_dice * options.num_faces)
        rows.append(Row("aside", aside, detail=f"{score} of {options.target}", bar=Bar(score, options.target, most)))
    if over:
        rewards = ", ".join(f"{reward:+g}" for reward in state["rewards"][: options.num_players])
        notes = ["the game is over", f"rewards: {rewards}" if table else f"goal {options.goal}: {rewards}"]
    elif table:
        notes = [_roll_in_words(state, viewer), f"round {int(state['round']) + 1} of {options.rounds}; the fewest points win"]
    else:
        notes = [_roll_in_words(state, viewer), f"target {options.target}, goal {options.goal}"]
    return Picture("The game of 30s", tuple(rows), tuple(notes))


def _roll_in_words(state: Any, viewer: int | None) -> str:
    rolled, aside = (" ".join(map(str, faces_of(state[name]))) for name in ("counts", "aside"))
    who = with_verb(seat_name(int(state["seat"]), viewer), "roll")
    return f"{who} {rolled}, with {aside} aside" if aside else f"{who} {rolled}"


def _full_picture(options: Options) -> Picture:
    """The longest rows: all dice on the table, and all aside, and the largest numbers."""
    state = np.zeros((), STATE)
    most = options.num_dice * options.num_faces
    state["scores"] = state["score"] = most
    state["points"] = state["given"] = np.iinfo(np.int32).max
    state["counts"][0] = state["aside"][0] = options.num_dice
    return _picture(options, state, None)


def _arrange(options: Options, state: Any, wanted: Mapping[str, Any]) -> None:
    """`{"dice": [faces], "aside": [faces]}` sets the first turn's dice."""
    dice, aside = wanted.get("dice", ()), wanted.get("aside", ())
    check_faces("dice", dice, None, options.num_faces)
    check_faces("aside", aside, None, options.num_faces)
    if len(dice) < 1 or len(dice) + len(aside) != options.num_dice:
        raise ValueError(f"dice must be at least one face value, and {options.num_dice} with those of aside, not {shown(dice)}")
    state["counts"][:] = counts_of(dice)
    state["aside"][:] = counts_of(aside)
    state["thrown"] = len(dice)
    state["score"] = sum(aside)


GAME = Game.of(
    globals(),
    name="thirties",
    env_name="Thirties",
    title="The game of 30s",
    reset_options=("dice", "aside"),
    gym_options={"num_players": 1},
    first_game={"rounds": 1},
)
