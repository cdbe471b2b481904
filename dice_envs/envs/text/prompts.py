"""The prompt for a seat: the rules, the last moves, the position as the seat may know it, and the legal moves."""

from __future__ import annotations

import functools
import re
from typing import Any

from dice_envs.core.batch import check_record
from dice_envs.core.game import OVER, Picture, Variant
from dice_envs.core.options import check_range
from dice_envs.core.view import Tone, as_die
from dice_envs.envs.text.replies import legal_actions
from dice_envs.pictures.render import text_lines
from dice_envs.table.rules import rules_in_short
from dice_envs.table.sitting import Sitting

__all__ = ["introduction", "prompt"]

_MARKS = "A die in [ ] counts, wins or is chosen; one in ( ) does not."


def prompt(game: Sitting | Variant, seat: int, *, state: Any = None, legal: bool = True, rules: bool = True) -> str:
    """Return what a seat may know of a game, and the question for its move, in plain text.

    Two positions that the seat cannot tell apart have the same prompt. The prompt also tells a seat that is not to move how
    the game stands, and after the end its result.

    Args:
        game: a Sitting, whose moves since the seat's own last one are told too; or a variant, with `state`.
        seat: the seat that reads the prompt.
        state: a state record of the variant. Leave it out with a Sitting.
        legal: whether the legal moves are listed.
        rules: whether the prompt begins with the rules and with how moves are written.

    Raises:
        ValueError: there is no such seat, or `state` is missing, malformed, or given with a Sitting.
    """
    sitting = game if isinstance(game, Sitting) else None
    variant = game.variant if isinstance(game, Sitting) else game
    if (state is None) == (sitting is None):
        raise ValueError("state is the position of a variant: give one with a variant, and none with a Sitting")
    check_range("seat", seat, 0, variant.facts.num_seats - 1)
    if sitting is not None:
        state = sitting.state
    check_record(variant, state, over=True)
    parts = [introduction(variant, seat)] if rules else []
    picture = variant.picture(state, seat)
    if sitting is not None and (moves := _moves(sitting, seat, picture)):
        parts.append(moves)
    parts.append(_position(picture))
    parts.append(_question(variant, state, seat, legal))
    if sitting is not None and (sitting.over or state["out"][seat]):
        parts.append(f"Your result: {sitting.returns[seat]:+g}")
    return "\n\n".join(parts)


def introduction(variant: Variant, seat: int) -> str:
    """Return the rules, as the seat's first prompt has them, and how moves are written."""
    name = variant.seat_name(seat)
    count = variant.facts.num_seats
    you = f" You are {name}, one of {count} players." if count > 1 else ""
    lines = [f"The game is {variant.game.title}.{you}", "", "Rules:", *(f"- {line}" for line in rules_in_short(variant))]
    return "\n".join([*lines, "", f"Moves are written like this: {_forms(variant)}"])


@functools.lru_cache(maxsize=32)
def _forms(variant: Variant) -> str:
    """Return the first and the last move of each form, such as "1 x 1 … 10 x 6, call"."""
    forms: dict[str, list[str]] = {}
    for action in range(variant.facts.num_actions):
        words = variant.describe_action(action)
        forms.setdefault(re.sub(r"[0-9]+", "0", words), []).append(words)
    return ", ".join(words[0] if len(words) == 1 else f"{words[0]} … {words[-1]}" for words in forms.values())


def _moves(sitting: Sitting, seat: int, picture: Picture) -> str:
    """Return the seat's last move and those after it, without what the picture says; "" before the first move."""
    own = sitting.latest(seat)
    told = sitting.history(seat, max(own - 1, 0))
    if not told:
        return ""
    lines = ["Your last move, and what followed:" if own else "The moves so far:"]
    for entry in told:
        name = sitting.variant.seat_name(entry.seat, seat)
        lines.append(f"- {name} {entry.words}" if entry.action is None else f"- {name}: {entry.words}")
        lines += [f"  {note}" for note in entry.notes if note not in picture.notes]
    return "\n".join(lines)


def _position(picture: Picture) -> str:
    lines = ["The position, as you see it:"]
    lines += [f"- {line}" if line[:1].strip("* ") else f"  {line}" for line in text_lines(picture)]  # others belong to them
    dice = [as_die(die) for row in picture.rows for die in (*row.dice, *(die for group in row.groups for die in group.dice))]
    return "\n".join([*lines, *([_MARKS] if any(die.tone is not Tone.PLAIN for die in dice) else [])])


def _question(variant: Variant, state: Any, seat: int, legal: bool) -> str:
    mover = int(state["seat"])
    if mover == OVER:
        return "The game is over."
    if mover != seat:
        out = "You are out of the game. " if state["out"][seat] else ""
        return f"{out}It is the turn of {variant.seat_name(mover)}."
    lines = ["It is your turn."]
    if legal:
        words = ", ".join(variant.describe_action(action) for action in legal_actions(variant, state))
        lines.append(f"Legal moves: {words}")
    lines.append('End your reply with the line "Move: …", with your move in place of the dots.')
    return "\n".join(lines)
