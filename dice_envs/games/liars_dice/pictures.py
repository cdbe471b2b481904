"""Liar's Dice for people: the rules in short, actions in words, why one is illegal, and pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from dice_envs.core.dice import faces_of
from dice_envs.core.options import Label
from dice_envs.core.state import OVER
from dice_envs.core.view import Die, Group, Move, Picture, Row, Tone, how_often, in_letters, seat_name, with_verb
from dice_envs.games.liars_dice.raises import NO_BID, PALIFICO, RULES, lowest_quantities, round_kinds, rule_number

_FACES = ("one", "two", "three", "four", "five", "six", "seven", "eight")


def rules_in_short(options: Any) -> list[str]:
    """Return the rules in force, a few sentences for people who have never played."""
    dice, faces = options.dice_per_seat, options.num_faces
    each = (
        ("1 die" if dice[0] == 1 else f"{dice[0]} dice") + " each"
        if len(set(dice)) == 1
        else f"{', '.join(map(str, dice))} dice"
    )
    lines = [
        f"{options.num_players} players begin with {each}, of {faces} faces. They roll, and see only their own.",
        'A bid says how many dice of all players show a face: "3 x 2" means three twos or more.',
        RULES[options.raise_rule].words,
    ]
    if options.wild is not None:
        lines.append(f"Dice that show {1 if options.wild == 'ones' else faces} are wild: they count for every face.")
    lines.append(
        "Instead of bidding you may call the last bid. All dice are shown: if it is true the caller loses, else the bidder."
    )
    whole, palifico = options.rounds == "elimination", options.palifico and options.rounds == "elimination"
    if options.exact_call:
        ending = "you win a die back, else you lose one" if whole else "you win, else you lose"
        where = " (not in a palifico round)" if palifico else ""
        lines.append(f'Or you say "exact"{where}: that there are exactly as many. If so {ending}.')
    if whole:
        begins = (
            "and starts the next round" if options.next_starter == "loser" else "and the player after the caller starts anew"
        )
        lines.append(f"The loser gives up a die {begins}. The last player with dice wins.")
    else:
        lines.append("One call ends the game: all but the loser win.")
    if palifico:
        lines.append(
            "Who comes down to one die begins a palifico round: no dice are wild, and only players with one die change faces."
        )
    return lines


LABELS = {  # the options as players read them
    "num_players": Label("players at the table, 2 to 6"),
    "num_dice": Label("dice each player starts with, 1 to 6, or one number for each seat", label="dice each", one="die each"),
    "num_faces": Label("faces of every die, 2 to 8"),
    "raise_rule": Label(
        meanings={
            "quantity": "the quantity must rise and the face may not fall, but face 1 may follow the highest face",
            "either": "a higher quantity with any face, or the same quantity with a higher face",
            "perudo": "a higher quantity, or the same quantity with a higher face, and half as many of ones",
            "nondecreasing": "a higher quantity or a higher face, and neither lower",
            "reset_quantity": "a higher quantity of the same face, or any quantity of a higher face",
        }
    ),
    "wild": Label(
        '"ones" or "highest": dice that show this face count for every face, but a bid on this face counts only them'
    ),
    "palifico": Label(
        "when a player first comes down to one die, it starts a palifico round: no dice are wild, ones are a face as any "
        "other, and only players with one die may change the face"
    ),
    "exact_call": Label("the seat to move may also say that the last bid is exactly right, but not in a palifico round"),
    "rounds": Label(meanings={"elimination": "the whole game", "single": "the first call ends the game"}),
    "starter": Label('who bids first in the first round: "random" or "first"'),
    "next_starter": Label(
        'who bids first in later rounds: "loser", the one who has just lost a die, or "after caller", the next in seat order '
        "after the caller"
    ),
    "reward": Label(
        meanings={
            "win": "at the end +1 for the winner",
            "dice": "-1 for each die lost, when it is lost, and +1 for each won back",
        }
    ),
    "past_rounds": Label("no: agents forget the dice shown in earlier rounds"),
    "rules": Label("whose rules are played: those that the other options say, or a set of them"),
}


def describe_action(options: Any, action: int) -> Move:
    """Return an action in words: "3 x 2", "call" or "exact"."""
    quantity, face = divmod(action, options.num_faces)
    bids = sum(options.dice_per_seat) * options.num_faces
    if action >= bids:
        return Move("call" if action == bids else "exact")
    return Move("{} x {}", quantity + 1, face + 1, kind="bid")


def explain_illegal(options: Any, state: Any, action: int) -> str:
    """Return why an action is not legal now, in words."""
    said, dice, bid, seat = describe_action(options, action), int(state["in_play"]), int(state["bid"]), state["seat"]
    if said in ("call", "exact") and bid == NO_BID:
        return "there is no bid to call yet"
    if said == "exact":
        if state["palifico"] == PALIFICO:
            return "no exact call is allowed in a palifico round"
        rights = int(options.dice_per_seat[seat])
        return f"a player can be right with {rights} exact call{'s' * (rights > 1)} in a game, and you have been"
    quantity, face = divmod(action, options.num_faces)
    if quantity >= dice:
        return f"{said} can never hold: {dice} dice are left"
    table = lowest_quantities(options.raise_rule, round_kinds(options), sum(options.dice_per_seat), options.num_faces)
    lowest = int(table[rule_number(state["palifico"], state["dice"][seat]), bid + 1, face])
    needed = f"no bid on {face + 1} is legal now"
    if lowest < dice:
        needed = f"the lowest bid on {face + 1} is now {lowest + 1} x {face + 1}"
    if bid == NO_BID:
        return f"{said} cannot be the first bid: {needed}"
    if state["palifico"] == PALIFICO and state["dice"][seat] > 1:
        needed += "; in a palifico round only players with one die may change the face"
    return f"{said} does not raise {describe_action(options, bid)}: {needed}"


def reason(options: Any, state: Any, action: int, chance: float) -> str:
    """Return why an action may be best, given the chance that the bid holds or the call is right, in a sentence for people."""
    said, bids = describe_action(options, action), sum(options.dice_per_seat) * options.num_faces
    if action < bids:
        bluff = ", and still no other choice is better" if chance < 0.5 else ""
        return f"Bid {said}: it {how_often('holds', chance)}{bluff}."
    quantity, face = divmod(int(state["bid"]), options.num_faces)
    wild = None if state["palifico"] == PALIFICO or options.wild_face == face else options.wild_face
    faces = f"{_FACES[face]}s" + ("" if wild is None else f" or {_FACES[wild]}s")
    if action > bids:
        return f"Say exact: there {how_often('are', chance)} exactly {in_letters(quantity + 1)} {faces}."
    seat = int(state["seat"])
    own = sum(int(state["counts"][seat, each]) for each in {face, wild} - {None})
    others = [each for each in range(options.num_players) if each != seat and state["dice"][each]]
    who, needs, has = (seat_name(others[0], seat), "needs", "has") if len(others) == 1 else ("the others", "need", "have")
    needed = quantity + 1 - own
    if needed <= 0:
        return f"Call: your own dice make {describe_action(options, int(state['bid']))} true, and a raise would cost more."
    return f"Call: {who} {needs} {in_letters(needed)} more {faces}, and {how_often(has + ' them', 1 - chance)}."


def picture(options: Any, state: Any, viewer: int | None) -> Picture:
    """Return what a seat sees of a state; None sees everything."""
    over = state["seat"] == OVER
    called = int(state["shown_bid"])
    made: list[list[Group]] = [[] for _ in range(options.num_players)]
    playing = [seat for seat in range(options.num_players) if state["in_round"][seat]]
    bidder = 0
    for i in range(state["num_bids"]):
        bidder = playing[(playing.index(state["starter"]) + i) % len(playing)]
        tone = Tone.BRIGHT if i == state["num_bids"] - 1 else Tone.PLAIN
        made[bidder].append(Group(*_bid_shown(options, int(state["bids"][i])), tone=tone))
    says_exact, rows = options.exact_call and not over and state["palifico"] != PALIFICO, []
    for seat in range(options.num_players):
        whose = seat_name(seat, viewer)
        if not state["in_round"][seat]:
            rows.append(Row(whose, detail="out", faded=True))
            continue
        dice: tuple[int | Die | None, ...] = faces_of(state["counts"][seat])
        if over:
            dice = _hand_shown(options, state, state["counts"][seat])
        elif viewer not in (None, seat):
            dice = (None,) * len(dice)
        mark = "to move" if seat == state["seat"] else ""
        exact_left = f"exact calls left: {state['exact_left'][seat]}" if says_exact else ""
        rows.append(Row(whose, dice, detail=exact_left, mark=mark, groups=tuple(made[seat])))
    if not over and state["bid"] != NO_BID:
        lead, faces = _bid_shown(options, int(state["bid"]))
        rows.append(Row("the bid", faces, lead=lead, detail=f"by {seat_name(bidder, viewer)}"))
    notes = []
    if called != NO_BID:
        if not over:
            hands = tuple(
                Group(f"{seat_name(seat, viewer)}:", _hand_shown(options, state, state["shown"][seat]))
                for seat in range(options.num_players)
                if state["shown"][seat].any()
            )
            rows.append(Row("the last call", detail=f"of {describe_action(options, called)}", groups=hands))
        notes.append(_call_in_words(options, state, viewer))
    if state["palifico"] == PALIFICO and not over:
        notes.append("a palifico round: no dice are wild, and only players with one die may change the face")
    if over:
        left = np.flatnonzero(state["dice"])
        won = f": {with_verb(seat_name(int(left[0]), viewer), 'win')}" if len(left) == 1 else ""
        notes.append(f"the game is over{won}")
    return Picture("Perudo" if options.rules == "perudo" else "Liar's Dice", tuple(rows), tuple(notes))


def _bid_shown(options: Any, bid: int) -> tuple[str, tuple[int]]:
    quantity, face = divmod(bid, options.num_faces)
    return f"{quantity + 1} ×", (face + 1,)


def _call_in_words(options: Any, state: Any, viewer: int | None) -> str:
    """Who called what last, and what came of it."""
    bid, caller = int(state["shown_bid"]), seat_name(int(state["caller"]), viewer)
    found = sum(int(state["shown"][:, face].sum()) for face in _faces_that_count(options, state))
    exactly = "exactly " if state["shown_exact"] else ""
    called = f"{caller} called {exactly}{describe_action(options, bid)}: there {'was' if found == 1 else 'were'} {found}"
    if state["loser"] < 0:
        if options.rounds == "single":
            return called
        return f"{called}, so {with_verb(caller, 'win')} a die back, up to the number at the start"
    return f"{called}, so {with_verb(seat_name(int(state['loser']), viewer), 'lose')} a die"


def _faces_that_count(options: Any, state: Any) -> set[int]:
    """Indices of the faces that counted in the last call: of a bid on the wild face only it."""
    face, wild = int(state["shown_bid"]) % options.num_faces, options.wild_face
    return {face} if wild is None or state["shown_palifico"] == PALIFICO else {face, wild}


def _hand_shown(options: Any, state: Any, counts: Any) -> tuple[Die, ...]:
    """Dice after a call; those that count for the bid are bright."""
    bright = _faces_that_count(options, state)
    return tuple(Die(face, Tone.BRIGHT if face - 1 in bright else Tone.FADED) for face in faces_of(counts))
