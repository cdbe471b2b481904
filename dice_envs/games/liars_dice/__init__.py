"""Liar's Dice: bid on what lies under all the cups, or call the last bidder a liar.

Play
    Each of N players holds dice that nobody else sees. The starter bids (quantity q, face f): "at least q dice
    show f". In seat order, each next player raises or calls. On a call all dice are shown: if the bid holds, the
    caller loses a die, otherwise the bidder does. The loser starts the next round; if the loser is out, the next
    player in seat order who still has dice does. The last player with dice wins. When no higher bid is possible,
    calling is the only legal action.

    Perudo, as played in pubs: ones are wild, a bid on ones needs half the quantity, a player who comes down to one die
    starts a palifico round without wild dice, and who says that a bid is exactly right wins a die back.

Sources
    D. Oehm, "Liar's Dice in R" (Gradient Descending, 2018) for the game and its rule of raising. OpenSpiel's game of this
    name for its own rules. For Perudo: Wikipedia, "Dudo"; the glossary of perudo.com; Board Game Arena's help for "dudo"
    (Asmodée's edition); RULES.md of github.com/nathkrill/liars-dice.

Readings
    - The article's sentence on who loses a call is wrong in two of its three cases: fewer dice than were bid, and
      more. Both calls of its example game, and its program, follow the rule above.
    - The article sets no limit to a bid. Here the quantity is at most the number of dice still in play, since a
      higher bid could never hold. Its "after 6 the next bid can be 6 or 1" holds here for the highest face of any dice.
    - Palifico: the glossary forbids to change the face at all, but also lets players with one die change it. Others let
      those change it who have had a palifico round. Here players with one die may, by the usual rule without halving.
      Players who begin the game with one die have no palifico round. Some leave it out between the last two players; here
      it is played, and no exact call is allowed in it, as in RULES.md.
    - Exact call: here only the seat to move may say it, in place of a raise or a call; some let all but the bidder. By
      Wikipedia the bidder then loses a die; here the caller wins one, as in RULES.md. It may be said with all dice, and a
      right one then saves the caller from the bid but wins nothing. No source sets a limit, so a game could last forever;
      here a player may be right as often in a game as it had dice at the start, and then may say it no more.
    - One round with exact calls: a right one wins the game.

In programs
    - The article's game is the default, with `raise_rule="quantity"`; `rules="openspiel"` is OpenSpiel's, `rules="perudo"`
      Perudo, and `rounds="single"` one round.
    - A player without dice is out at once: its episode ends there, with the reward -1/(n-1).

Actions
    0 … B-1     bid (q, f) is (q-1) * num_faces + (f-1), where B = all dice at the start * num_faces
    B           call
    B+1         call the bid exactly right, with `exact_call`
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from dice_envs.core.dice import below, counts_of, roll_counts
from dice_envs.core.game import Facts, Game
from dice_envs.core.kernel import kernel
from dice_envs.core.options import Range, check_faces, check_list, check_types, shown
from dice_envs.core.state import MAX_SEATS, OVER, clear_rewards, end_game, next_seat, relative_seat, start_game, state_dtype
from dice_envs.core.view import Block, Picture, offsets, seat_labels
from dice_envs.games.liars_dice import pictures
from dice_envs.games.liars_dice.raises import (
    MAX_FACES,
    NO_BID,
    PALIFICO,
    RULES,
    USUAL,
    count_raises,
    divide,
    face_of,
    is_raise,
    lowest_quantities,
    mark_raises,
    nth_raise,
    quantity_of,
    round_kinds,
)

MAX_DICE = 6  # per player
MAX_BIDS = MAX_SEATS * MAX_DICE * MAX_FACES
NOBODY = -1  # value of `caller` and `loser` before the first call
NO_WILD = -1  # value of `Params.wild` when no face is wild
# Tables that spare the binomial chance of a bid divisions and powers. Indices: faces that count minus 1, then num_faces.
_HITS = np.minimum(np.arange(1, 3)[:, None] / np.maximum(np.arange(MAX_FACES + 1), 1), 1.0)
_ODDS = np.divide(_HITS, 1.0 - _HITS, out=np.zeros_like(_HITS), where=_HITS < 1.0)  # 0 where every die counts
_NO_HIT = (1.0 - _HITS)[:, :, None] ** np.arange(MAX_SEATS * MAX_DICE + 1)  # third index k: none of k dice counts
_INVERSES = 1.0 / np.maximum(np.arange(MAX_SEATS * MAX_DICE + 1), 1)
_ANY_FACE = {"quantity": False, "either": True}  # whether any face may follow, by raise rule; see `Params.any_face`
MANY_BIDS = 8  # n past bids are shown as n / (n + 8), so 8 bids give 0.5


# --- options ----------------------------------------------------------------------------------------------------

Dice = Annotated[int, Range(1, MAX_DICE)]  # number of one player's dice


_PRESETS: dict[str, dict[str, Any]] = {
    "standard": {},
    "openspiel": {"num_players": 2, "raise_rule": "either", "wild": "highest", "rounds": "single", "starter": "first"},
    "perudo": {"raise_rule": "perudo", "wild": "ones", "palifico": True, "exact_call": True, "next_starter": "loser"},
    "textarena": {"raise_rule": "nondecreasing", "starter": "first", "next_starter": "after_caller"},
    "textarena_1": {"raise_rule": "either", "starter": "first", "next_starter": "loser"},
}


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of Liar's Dice; ValueError names the option, the value and what is allowed.

    Attributes:
        num_players: players at the table, 2 to 6.
        num_dice: dice each player starts with, 1 to 6, or one number for each seat.
        num_faces: faces of every die, 2 to 8.
        raise_rule: "quantity": the quantity must rise and the face may not fall, but face 1 may follow the highest
            face (the article). "either": a higher quantity with any face, or the same quantity with a higher face.
            "perudo", with wild="ones": a higher quantity, or the same quantity with a higher face, and half as many of ones. A
            bid on ones needs at least half the last quantity, rounded up, and the bid after it more than twice as many, or more
            ones. The first bid is not on ones.
            "nondecreasing": a higher quantity or a higher face, and neither lower (TextArena). "reset_quantity": a higher
            quantity of the same face, or any quantity of a higher face (OpenSpiel's bidding rule "reset-quantity").
        wild: "ones" or "highest": dice that show this face count for every face, but a bid on this face counts
            only them. None: no face is wild.
        palifico: when a player first comes down to one die, it starts a palifico round: no dice are wild, ones are a face as
            any other, and only players with one die may change the face. Without effect in a game of one round.
        exact_call: the seat to move may also say that the last bid is exactly right, but not in a palifico round. If so,
            it wins a die back, up to its number at the start; if not, it loses one. It starts the next round. A player can
            be right as often in a game as it had dice at the start.
        rounds: "elimination": the whole game; "single": the first call ends the game.
        starter: who bids first in the first round: "random" or "first" (seat 0).
        next_starter: who bids first in later rounds: "loser", the one who has just lost a die (if it is out, the next in seat
            order), or "after_caller", the next in seat order after the caller. Palifico needs "loser".
        reward: "win": at the end +1 for the winner and -1/(n-1) for the others (one round: -1 for the loser of the
            call and +1/(n-1) for the others, or +1 for a right exact call and -1/(n-1) for the others); "dice": -1 for each
            die lost, when it is lost, and +1 for each won back.
        past_rounds: false: agents forget the dice shown in earlier rounds; the observation lacks the block `past_bids`.
        rules: whose rules are played: those that the other options say, or a set of them. "openspiel" stands for
            num_players=2, raise_rule="either", wild="highest", rounds="single" and starter="first"; "perudo" for
            raise_rule="perudo", wild="ones", palifico=True and exact_call=True; "textarena" (TextArena's releases up to 0.7.4)
            for raise_rule="nondecreasing", starter="first" and next_starter="after_caller"; "textarena_1" (version 1.0.0 of
            its repository) for raise_rule="either", starter="first" and next_starter="loser".
    """

    num_players: Annotated[int, Range(2, MAX_SEATS)] = 2
    num_dice: Dice | tuple[Dice, ...] = 5
    num_faces: Annotated[int, Range(2, MAX_FACES)] = 6
    raise_rule: Literal["quantity", "either", "perudo", "nondecreasing", "reset_quantity"] = "quantity"
    wild: Literal["ones", "highest"] | None = None
    palifico: bool = False
    exact_call: bool = False
    rounds: Literal["elimination", "single"] = "elimination"
    starter: Literal["random", "first"] = "random"
    next_starter: Literal["loser", "after_caller"] = "loser"
    reward: Literal["win", "dice"] = "win"
    past_rounds: bool = True
    rules: Literal["standard", "openspiel", "perudo", "textarena", "textarena_1"] = "standard"

    def __post_init__(self) -> None:
        check_types(self)
        for name, value in _PRESETS[self.rules].items():
            given = getattr(self, name)
            if given not in (getattr(type(self), name), value):  # neither the default nor the preset's
                raise ValueError(f'{name} must be {value!r} with rules="{self.rules}", not {shown(given)}')
            object.__setattr__(self, name, value)
        if self.raise_rule == "perudo" and self.wild != "ones":
            raise ValueError(f"raise_rule must not be 'perudo' with wild={shown(self.wild)}: it needs wild='ones'")
        if self.palifico and self.next_starter != "loser":
            raise ValueError(f"palifico must be false with next_starter={self.next_starter!r}, not True")
        if isinstance(self.num_dice, tuple) and len(self.num_dice) != self.num_players:
            raise ValueError(
                f"num_dice must be one number or {self.num_players}, one for each seat, not {shown(self.num_dice)}"
            )

    @property
    def wild_face(self) -> int | None:
        """Index of the wild face; None: no face is wild."""
        return {None: None, "ones": 0, "highest": self.num_faces - 1}[self.wild]

    @property
    def dice_per_seat(self) -> tuple[int, ...]:
        """Dice at the start, one number for each seat."""
        return self.num_dice if isinstance(self.num_dice, tuple) else (self.num_dice,) * self.num_players


class Params(NamedTuple):
    """What the kernels receive."""

    num_players: int
    dice: tuple[int, ...]  # of each seat at the start, padded with 0 to MAX_SEATS
    most_dice: int  # the largest of them
    num_faces: int
    num_actions: int
    call: int  # the action that calls, and so the number of bids
    lowest: np.ndarray  # see `lowest_quantities`
    # `_ANY_FACE`, or None for other rules, with several kinds of round and with exact calls. If it is not None, raises are
    # counted and found without `lowest`. Compilers know None by its type, and leave the other code out.
    any_face: bool | None
    wild: int  # index of the wild face in usual rounds, or NO_WILD; see `wild_in`
    palifico: bool
    exact_call: bool  # then action call + 1 calls the bid exactly right
    single: bool
    random_starter: bool
    starts_after_caller: bool
    pay_dice: bool
    past_rounds: bool
    at: tuple[int, ...]  # where each of `_blocks` begins


def _blocks(options: Options) -> tuple[Block, ...]:
    """The observation's blocks. Seats are listed in turn order, the observer first."""
    n, dice, most = options.num_players, sum(options.dice_per_seat), max(options.dice_per_seat)
    seats, faces = seat_labels(n), range(1, options.num_faces + 1)
    bids = (seats, range(1, dice + 1), "x", faces)
    past = (
        "each seat's bids in past rounds: the share on a face that the bidder held most of, (such bids + 1) / (bids + 2), "
        f"and the number of bids as bids / (bids + {MANY_BIDS})"
    )
    return (
        Block("own_dice", len(faces), "own dice that show each face / the largest num_dice", (("face",), faces), high=most),
        Block("dice_left", n, "dice each seat has left / the largest num_dice", (seats,), high=most),
        Block(
            "bids", n * dice * len(faces), "1 for each bid that each seat has made this round", bids, flags=True, history=True
        ),
        Block("to_move", n, "1 for the seat to move", (seats,), flags=True),
        Block("bid_face", len(faces), "face of the last bid, one-hot", (("face",), faces), flags=True),
        Block("bid_quantity", 1, "quantity of the last bid / all dice at the start", high=dice),
        Block("bid_chance", 1, "probability that the last bid holds, given the observer's own dice; 1 without a bid"),
        Block("past_bids", 2 * n if options.past_rounds else 0, past, (seats, ("honest", "seen")), history=True),
        Block("palifico", int(options.palifico), "1 in a palifico round", flags=True),
        # Without dice won back, nobody comes down to one die twice.
        Block(
            "had_palifico",
            n if options.palifico and options.exact_call else 0,
            "1 for each seat that has had its palifico round",
            (seats,),
            flags=True,
        ),
        Block(
            "exact_left",
            n if options.exact_call else 0,
            "exact calls in which each seat may still be right / the largest num_dice",
            (seats,),
            high=most,
        ),
        Block(
            "exact_chance",
            int(options.exact_call),
            "probability that the last bid is exactly right, given the observer's own dice; 0 without a bid",
        ),
    )


def _params(options: Options) -> Params:
    dice = options.dice_per_seat
    num_bids = sum(dice) * options.num_faces
    return Params(
        num_players=options.num_players,
        dice=dice + (0,) * (MAX_SEATS - len(dice)),
        most_dice=max(dice),
        num_faces=options.num_faces,
        num_actions=num_bids + 1 + options.exact_call,
        call=num_bids,
        lowest=lowest_quantities(options.raise_rule, round_kinds(options), sum(dice), options.num_faces),
        any_face=None if round_kinds(options) or options.exact_call else _ANY_FACE.get(options.raise_rule),
        wild=NO_WILD if options.wild_face is None else options.wild_face,
        palifico=options.palifico,
        exact_call=options.exact_call,
        single=options.rounds == "single",
        random_starter=options.starter == "random",
        starts_after_caller=options.next_starter == "after_caller",
        pay_dice=options.reward == "dice",
        past_rounds=options.past_rounds,
        at=offsets(_blocks(options)),
    )


def _facts(options: Options) -> Facts:
    n, faces, dice = options.num_players, options.num_faces, options.dice_per_seat
    num_bids = sum(dice) * faces
    single = options.rounds == "single"
    # Entry k: the most actions in a round with k dice, which are all bids that can follow each other, and the call.
    # Each round takes one die away, unless an exact call is right.
    longest_round = [RULES[options.raise_rule].longest(k, faces) + 1 for k in range(sum(dice) + 1)]
    longest = longest_round[-1] if single else sum(longest_round[2:])
    if options.exact_call and not single:  # a right call is a round more, and so is the loss of the die that it has won
        longest += 2 * sum(dice) * longest_round[-1]
    if options.reward == "dice":
        low, high = (-1.0 if single else -float(max(dice))), 0.0
    elif single:
        low, high = -1.0, 1.0 if options.exact_call else 1 / (n - 1)
    else:
        low, high = -1 / (n - 1), 1.0
    return Facts(
        num_seats=n,
        num_actions=num_bids + 1 + options.exact_call,
        min_return=low,
        max_return=high,
        zero_sum=options.reward == "win",
        simultaneous=False,
        max_steps=longest,
    )


# --- state ------------------------------------------------------------------------------------------------------

STATE = state_dtype(
    [
        ("counts", np.int8, (MAX_SEATS, MAX_FACES)),  # hidden: dice of each seat that show each face
        ("dice", np.int8, (MAX_SEATS,)),  # dice left
        ("in_round", np.int8, (MAX_SEATS,)),  # 1 for the seats that hold dice in this round
        ("in_play", np.int16),  # dice in this round, all seats together
        ("starter", np.int8),  # the seat of this round's first bid; the others follow in seat order
        ("num_bids", np.int16),  # bids made in this round
        ("bid", np.int16),  # the last of them, or NO_BID
        ("bids_shown", np.int16, (MAX_SEATS,)),  # each seat's bids in past rounds, whose calls have shown the dice
        ("bids_honest", np.int16, (MAX_SEATS,)),  # of these, bids on a face that the bidder held most of
        ("shown", np.int8, (MAX_SEATS, MAX_FACES)),  # the counts shown at the last call
        ("shown_bid", np.int16),  # the bid then called, or NO_BID
        ("caller", np.int8),  # the seat that called it, or NOBODY
        ("loser", np.int8),  # the seat that lost the die, or NOBODY, as after a right exact call
        ("shown_exact", np.int8),  # 1: that call was an exact one
        ("shown_palifico", np.int8),  # the kind of its round; named, as the next one, in snapshots that are kept
        ("palifico", np.int8),  # the kind of this round, USUAL or PALIFICO
        ("had_palifico", np.int8, (MAX_SEATS,)),  # 1 for the seats that have had one, this one included
        ("exact_left", np.int8, (MAX_SEATS,)),  # exact calls in which each seat may still be right
        # Last, so that the hot fields share cache lines.
        ("bids", np.int16, (MAX_BIDS,)),  # this round's bids, in order; entries from num_bids are undefined
    ]
)
# The fields in which a state remembers past rounds.
OF_THE_PAST = ("bids_shown", "bids_honest", "shown", "shown_bid", "shown_exact", "shown_palifico", "caller", "loser")


def kind_of_round(options: Options, dice: tuple[int, ...], is_first: bool) -> int:
    """Return the kind of a round between two players, from their dice, the starter's first, and whether it begins the game.

    The starter of any later round has just lost a die.
    """
    has_come_down = dice[0] == 1 and not is_first
    return PALIFICO if options.palifico and options.rounds == "elimination" and has_come_down else USUAL


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel(allocates=False)
def deal(params, state):
    """Start a game. Modified in place."""
    start_game(state)
    for seat in range(MAX_SEATS):
        state["dice"][seat] = params.dice[seat]
        state["bids_shown"][seat] = 0
        state["bids_honest"][seat] = 0
        state["had_palifico"][seat] = 0
        state["exact_left"][seat] = params.dice[seat]
        for face in range(MAX_FACES):
            state["shown"][seat, face] = 0
    state["shown_bid"] = NO_BID
    state["caller"] = NOBODY
    state["loser"] = NOBODY
    state["shown_exact"] = 0
    state["shown_palifico"] = USUAL
    state["palifico"] = USUAL
    state["seat"] = below(state, params.num_players) if params.random_starter else 0
    _start_round(params, state)


@kernel(allocates=False)
def _start_round(params, state):
    state["starter"] = state["seat"]
    state["num_bids"] = 0
    state["bid"] = NO_BID
    in_play = 0
    for seat in range(MAX_SEATS):
        dice = np.int64(state["dice"][seat])
        state["in_round"][seat] = dice > 0
        in_play += dice
    state["in_play"] = in_play
    for seat in range(params.num_players):
        _throw(params, state, seat)


@kernel(allocates=False)
def set_kind(state, seat, kind):
    """Make a round that the seat begins one of the kind. Modified in place."""
    state["palifico"] = kind
    if kind == PALIFICO:
        state["had_palifico"][seat] = 1


@kernel(allocates=False)
def _throw(params, state, seat):
    roll_counts(state, state["dice"][seat], params.num_faces, state["counts"][seat])


@kernel(allocates=False)
def may_call_exactly(params, state):
    """Whether the seat to move may call the last bid exactly right."""
    if not params.exact_call or state["bid"] == NO_BID or state["palifico"] == PALIFICO:
        return False
    return state["exact_left"][state["seat"]] > 0


@kernel(allocates=False, inline=True)
def legal(params, state, mask):
    """Mark the legal actions. Modified in place."""
    mark_raises(params, state, mask)
    mask[params.call] = state["bid"] != NO_BID
    if may_call_exactly(params, state):
        mask[params.call + 1] = 1


@kernel(allocates=False)
def is_legal(params, state, action):
    """Whether an action is legal, as `legal` marks it."""
    if action < params.call:
        return is_raise(params, state, action)
    return state["bid"] != NO_BID if action == params.call else may_call_exactly(params, state)


@kernel(allocates=False, inline=True)
def random_action(params, state):
    """A uniformly random legal action. The state's stream is modified in place."""
    raises = count_raises(params, state)
    k = below(state, raises + (state["bid"] != NO_BID) + may_call_exactly(params, state))
    return nth_raise(params, state, k) if k < raises else np.int64(params.call) + k - raises


@kernel(allocates=False)
def wild_face(params, state):
    """The index of the face that is wild in this round, or NO_WILD."""
    return wild_in(params, state["palifico"])


@kernel(allocates=False)
def wild_in(params, kind):
    """The index of the face that is wild in rounds of a kind, or NO_WILD."""
    return NO_WILD if kind == PALIFICO else params.wild


@kernel(allocates=False)
def matching(wild, counts, face):
    """How many dice of `counts` (faces,) count for a bid on the face index. For `wild` see `wild_face`."""
    if wild != NO_WILD and wild != face:
        return np.int64(counts[face]) + np.int64(counts[wild])
    return np.int64(counts[face])


@kernel(allocates=False)
def chance_at_least(params, wild, quantity, own, unseen, face):
    """P(own + X >= quantity), X ~ Binomial(unseen, chance that a fair die counts for the face index).

    For `wild` see `wild_face`.
    """
    need = quantity - own
    if need <= 0:
        return 1.0
    if need > unseen:
        return 0.0
    counted = 1 if wild != NO_WILD and wild != face else 0
    odds = _ODDS[counted, params.num_faces]
    if odds == 0.0:
        return 1.0
    below_need = 0.0
    mass = _NO_HIT[counted, params.num_faces, unseen]
    for hits in range(need):
        below_need += mass
        mass *= odds * (unseen - hits) * _INVERSES[hits + 1]
    return 1.0 - below_need if below_need < 1.0 else 0.0


@kernel(allocates=False)
def chance_bid_holds(params, state, seat):
    """The probability that the last bid holds, given the seat's own dice; 1 without a bid."""
    return _chance_above(params, state, seat, np.int64(0))


@kernel(allocates=False)
def chance_bid_exact(params, state, seat):
    """The probability that the last bid is exactly right, given the seat's own dice; 0 without a bid."""
    chance = _chance_above(params, state, seat, np.int64(0)) - _chance_above(params, state, seat, np.int64(1))
    return chance if chance > 0.0 else 0.0


@kernel(allocates=False, inline=True)
def _chance_above(params, state, seat, more):
    """The probability that the last bid would hold with a quantity higher by `more`; 1 without a bid."""
    bid = np.int64(state["bid"])
    if bid == NO_BID:
        return 1.0
    face = face_of(params, bid)
    wild = wild_face(params, state)
    own = matching(wild, state["counts"][seat], face)
    unseen = state["in_play"] - state["dice"][seat]
    return chance_at_least(params, wild, quantity_of(params, bid) + 1 + more, own, unseen, face)


@kernel(allocates=False, inline=True)
def play(params, state, action):
    """Bid or call, and go on to the next decision. Modified in place."""
    clear_rewards(state)
    if action >= params.call:
        _call(params, state, action > params.call)
    else:
        state["bids"][state["num_bids"]] = action  # below MAX_BIDS: no bid is made twice in a round
        state["num_bids"] += 1
        state["bid"] = action
        state["seat"] = _next_with_dice(params, state["in_round"], np.int64(state["seat"]))


@kernel(allocates=False)
def _next_with_dice(params, counts, seat):
    """The next seat in order, after the int64 `seat`, whose entry of `counts` is not 0."""
    for _ in range(params.num_players):
        seat = next_seat(seat, params.num_players)
        if counts[seat] > 0:
            break
    return seat


@kernel(allocates=False)
def bidder_after(params, state, bids):
    """The seat to move after the first `bids` bids of this round."""
    seat = np.int64(state["starter"])
    for _ in range(bids):
        seat = _next_with_dice(params, state["in_round"], seat)
    return seat


@kernel(allocates=False)
def _call(params, state, exact):
    bid = np.int64(state["bid"])
    face_bid = face_of(params, bid)
    wild = wild_face(params, state)
    total = 0
    for seat in range(params.num_players):
        total += matching(wild, state["counts"][seat], face_bid)
    for seat in range(MAX_SEATS):
        for face in range(MAX_FACES):
            state["shown"][seat, face] = state["counts"][seat, face]
    caller = state["seat"]
    bidder = _remember_bids(params, state)
    loser = caller if total >= quantity_of(params, bid) + 1 else bidder
    if exact:
        loser = NOBODY if total == quantity_of(params, bid) + 1 else caller
    state["shown_bid"] = bid
    state["shown_exact"] = exact
    state["shown_palifico"] = state["palifico"]
    state["caller"] = caller
    state["loser"] = loser
    if _win_back(params, state) if loser == NOBODY else _lose_die(params, state):
        _start_round(params, state)


@kernel(allocates=False)
def _win_back(params, state):
    """Go on after an exact call that is right. Return whether there is another round. Modified in place."""
    caller = np.int64(state["caller"])
    if params.single:
        if not params.pay_dice:
            for seat in range(params.num_players):
                state["rewards"][seat] = 1.0 if seat == caller else -1.0 / (params.num_players - 1)
        end_game(state, params.num_players)
        return False
    state["exact_left"][caller] -= 1
    if state["dice"][caller] < params.dice[caller]:
        state["dice"][caller] += 1
        if params.pay_dice:
            state["rewards"][caller] = 1
    state["palifico"] = USUAL
    if params.starts_after_caller:
        state["seat"] = _next_with_dice(params, state["dice"], caller)
    return True


@kernel(allocates=False, inline=True)
def _lose_die(params, state):
    """Take a die from the loser and go on. Return whether there is another round. Modified in place."""
    loser = np.int64(state["loser"])
    state["dice"][loser] -= 1
    if params.pay_dice:
        state["rewards"][loser] = -1
    if params.single:
        if not params.pay_dice:
            for seat in range(params.num_players):
                state["rewards"][seat] = -1.0 if seat == loser else 1.0 / (params.num_players - 1)
        end_game(state, params.num_players)  # the last round's dice stay in the state, where pictures show them
        return False
    if state["dice"][loser] == 0:
        state["out"][loser] = 1
        winner = _next_with_dice(params, state["dice"], loser)
        if not params.pay_dice:
            state["rewards"][loser] = -1.0 / (params.num_players - 1)
        if state["dice"][winner] == state["in_play"] - 1:
            if not params.pay_dice:
                state["rewards"][winner] = 1
            end_game(state, params.num_players)
            return False
    last = np.int64(state["caller"]) if params.starts_after_caller else loser
    if params.starts_after_caller or state["dice"][loser] == 0:
        last = _next_with_dice(params, state["dice"], last)
    state["seat"] = last
    begins_palifico = params.palifico and state["dice"][loser] == 1 and state["had_palifico"][loser] == 0
    set_kind(state, loser, PALIFICO if begins_palifico else USUAL)
    return True


@kernel(allocates=False)
def _remember_bids(params, state):
    """Add the round's bids to the record of each bidder; return who made the last one."""
    last = bidder = np.int64(state["starter"])
    for i in range(state["num_bids"]):
        held = state["counts"][bidder]
        most = held[0]
        for face in range(1, MAX_FACES):
            if held[face] > most:
                most = held[face]
        state["bids_shown"][bidder] += 1
        state["bids_honest"][bidder] += held[face_of(params, np.int64(state["bids"][i]))] == most
        last, bidder = bidder, _next_with_dice(params, state["in_round"], bidder)
    return last


@kernel(allocates=False, inline=True)
def observe(params, state, seat, out):
    """Write what the seat sees, as `_blocks` lays it out. Modified in place."""
    own_at, dice_at, bids_at, mover_at, face_at, quantity_at, chance_at, past_at = params.at[:8]
    palifico_at, had_at, left_at, exact_at = params.at[8:]
    n = params.num_players
    faces = params.num_faces
    bids = params.call
    most = np.float32(params.most_dice)
    for face in range(faces):
        out[own_at + face] = state["counts"][seat, face] / most
    for other in range(n):
        relative = relative_seat(other, seat, n)
        out[dice_at + relative] = state["dice"][other] / most
        if state["seat"] == other:
            out[mover_at + relative] = 1
        if params.past_rounds:
            shown = np.float32(state["bids_shown"][other])
            out[past_at + 2 * relative] = (state["bids_honest"][other] + np.float32(1)) / (shown + np.float32(2))
            out[past_at + 2 * relative + 1] = shown / (shown + np.float32(MANY_BIDS))
        if params.exact_call:
            out[left_at + relative] = state["exact_left"][other] / most
            if params.palifico:
                out[had_at + relative] = state["had_palifico"][other]
    bidder = np.int64(state["starter"])
    for i in range(state["num_bids"]):
        out[bids_at + relative_seat(bidder, seat, n) * bids + state["bids"][i]] = 1
        bidder = _next_with_dice(params, state["in_round"], bidder)
    bid = np.int64(state["bid"])
    if bid != NO_BID:
        out[face_at + face_of(params, bid)] = 1
        out[quantity_at] = np.float32(quantity_of(params, bid) + 1) / np.float32(divide(bids, faces))
    out[chance_at] = chance_bid_holds(params, state, seat)
    if params.palifico:
        out[palifico_at] = state["palifico"]
    if params.exact_call:
        out[exact_at] = chance_bid_exact(params, state, seat)


@kernel(allocates=False)
def reroll_hidden(params, state, seat):
    """Throw the others' dice again; nothing is hidden after the call that ends the game. Modified in place."""
    if state["seat"] == OVER:
        return
    for other in range(params.num_players):
        if other != seat:
            _throw(params, state, other)


@kernel(allocates=False)
def hold(params, state, seat, hand):
    """Give the seat a hand, dice by face. Modified in place."""
    for face in range(MAX_FACES):
        state["counts"][seat, face] = hand[face]


@functools.lru_cache(maxsize=32)
def thrown(dice: int, faces: int) -> tuple[np.ndarray, np.ndarray]:
    """All hands of a number of dice, by face (hands, MAX_FACES) int8, and their chances (hands,). Shared: do not write."""
    throws = list(itertools.combinations_with_replacement(range(faces), dice))
    hands = np.array([[throw.count(face) for face in range(MAX_FACES)] for throw in throws], np.int8)
    ways = [math.factorial(dice) / math.prod(map(math.factorial, hand.tolist())) for hand in hands]
    return hands, np.array(ways) / faces**dice


def _hands(options: Options) -> tuple[np.ndarray, np.ndarray] | None:
    same = len(set(options.dice_per_seat)) == 1
    return thrown(options.dice_per_seat[0], options.num_faces) if options.rounds == "single" and same else None


# --- the largest picture, positions (words and other pictures: `pictures`) --------------------------------------


def _full_picture(options: Options) -> Picture:
    """Every seat with all its dice and as many bids as one seat can make in a round.

    Seats can bid more often when few of them are left, so the most bids are the largest share for any number of seats.
    """
    n, dice = options.num_players, options.dice_per_seat
    rule, in_play = RULES[options.raise_rule], np.cumsum(sorted(dice, reverse=True))
    most_bids = max(-(-rule.longest(int(in_play[seats - 1]), options.num_faces) // seats) for seats in range(2, n + 1))
    last_bid = sum(dice) * options.num_faces - 1
    state = np.zeros((), STATE)
    state["in_round"][:n] = 1
    state["counts"][:n, options.num_faces - 1] = dice
    state["shown"][:] = state["counts"]
    state["num_bids"] = n * most_bids  # at most MAX_BIDS, since a seat's share is at most MAX_DICE * MAX_FACES
    state["bids"] = last_bid
    state["bid"] = state["shown_bid"] = last_bid
    state["palifico"] = PALIFICO if options.palifico else USUAL
    state["shown_exact"] = options.exact_call
    state["loser"] = NOBODY if options.exact_call else 0
    return pictures.picture(options, state, None)


def _arrange(options: Options, state: Any, wanted: Mapping[str, Any]) -> None:
    """`{"dice": [[faces of seat 0], ...]}` sets the first round's dice."""
    hands = wanted["dice"]
    check_list("dice", hands, options.num_players, "lists of face values, one for each seat")
    for seat, (hand, count) in enumerate(zip(hands, options.dice_per_seat, strict=True)):
        check_faces(f"dice of seat {seat}", hand, count, options.num_faces)
    state["counts"][: options.num_players] = [counts_of(hand) for hand in hands]


GAME = Game.of(
    globals() | vars(pictures),
    name="liars_dice",
    env_name="LiarsDice",
    title="Liar's Dice",
    reset_options=("dice",),
    first_game={"num_dice": 2},
    known_as={"Perudo": {"rules": "perudo"}},
    usual_table={"Perudo": {"num_players": 4}},
)
