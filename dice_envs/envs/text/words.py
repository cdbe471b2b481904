"""Games in words: the prompt for a seat, and the move in a reply."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from dice_envs.core.batch import IllegalActionError, checked_record
from dice_envs.core.game import OVER, Picture, Variant
from dice_envs.core.options import check_range, shown
from dice_envs.core.view import Tone, as_die
from dice_envs.pictures.render import text_lines
from dice_envs.table.rules import rules_in_short
from dice_envs.table.sitting import Sitting

_MARKS = "A die in [ ] counts, wins or is chosen; one in ( ) does not."
MOST_READ = 50_000  # characters at the end of a reply; what stands before them is not read
MOST_LISTED = 12  # legal moves in a message; of more, the first and the last are listed
_MARKUP = " \t\ufeff\"'`*_#>()[]{}"  # around a line, a label or a move; a minus before a number is none
_ENDS = _MARKUP + ".,;!"  # what may also follow a move
_TAGS = ("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "seed:think")
MARKS_OF_THINKING = (  # its beginning and its end, as models of several families write them
    *((f"<{tag}>", f"</{tag}>") for tag in _TAGS),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis", "<|channel|>final<|message|>"),
)
_THOUGHTS = "|".join(rf"({re.escape(first)}).*?({re.escape(last)}|\Z)" for first, last in MARKS_OF_THINKING)
_THOUGHT = re.compile(rf"(?=[<\[◁])(?:{_THOUGHTS})", re.DOTALL | re.IGNORECASE)  # one look ahead saves nine tenths of the time
_END_OF_THOUGHT = re.compile("|".join(re.escape(last) for _, last in MARKS_OF_THINKING), re.IGNORECASE)
CUT_OFF = "the reply was cut off"
_IN_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_TIMES = re.compile(r"(?<=[0-9])\s*[x×*]\s*(?=[0-9])")


# --- prompts ----------------------------------------------------------------------------------------------------------


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
    state = checked_record(variant, state, over=True)
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
        forms.setdefault(words.form, []).append(words)
    return ", ".join(words[0] if len(words) == 1 else f"{words[0]} … {words[-1]}" for words in forms.values())


def _moves(sitting: Sitting, seat: int, picture: Picture) -> str:
    """Return the seat's last move and those after it, without what the picture says; "" before the first move."""
    own = sitting.latest(seat)
    entries = sitting.history(seat, max(own - 1, 0))
    if not entries:
        return ""
    lines = ["Your last move, and what followed:" if own else "The moves so far:"]
    for entry in entries:
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
        words = ", ".join(variant.describe_action(action) for action in variant.legal_actions(state))
        lines.append(f"Legal moves: {words}")
    lines.append('End your reply with the line "Move: …", with your move in place of the dots.')
    return "\n".join(lines)


# --- replies ----------------------------------------------------------------------------------------------------------


class Unreadable(ValueError):
    """A reply states no move, or several. The message says what was read and what is allowed."""


class IllegalMove(IllegalActionError):
    """A reply states a move that is not legal now. The message says why, and what is allowed.

    Attributes:
        action: the action that was read.
    """

    def __init__(self, message: str, action: int = -1) -> None:
        super().__init__(message)
        self.action = action


def read_reply(variant: Variant, state: Any, reply: str) -> int:
    """Return the legal action that a reply states.

    The move follows "Move:" at the beginning of a line, stands in square brackets, or is all of the reply. It is written in the
    game's own words; case, markup, signs at the end and remarks in round brackets make no difference. Other text is not read,
    nor is thinking between marks such as "<think>" and "</think>", which must have an end. The last line "Move: …" must have a
    move, and no other move may be stated.

    Args:
        variant: the game.
        state: the state record of a position that is not over.
        reply: text of any length; of a long one only the end is read.

    Raises:
        Unreadable: the reply states no move of this game, or several.
        IllegalMove: the move is not legal now.
        ValueError: the game is over.
    """
    state = checked_record(variant, state)
    legal = variant.legal_actions(state)
    allowed = f"allowed: {listed([variant.describe_action(action) for action in legal])}"
    try:
        action = read_move(variant, reply)
    except Unreadable as problem:
        raise Unreadable(f"{problem}; {allowed}") from None
    if action not in legal:
        why = variant.why_not(state, action).reason
        raise IllegalMove(f"read {variant.describe_action(action)}: {why}; {allowed}", action)
    return action


def read_move(variant: Variant, reply: str) -> int:
    """Return the action that a reply states, legal or not. Unreadable as in `read_reply`, without what is allowed."""
    if not isinstance(reply, str):
        raise Unreadable(f"a reply must be text, not {shown(reply)}")
    words = _words(variant)
    if reply.strip() in words:  # also names such as "Move: bark"
        return words[reply.strip()]
    text = unicodedata.normalize("NFKC", _without_thinking(reply)[-MOST_READ:])
    lines = [line for line in text.splitlines() if line.strip(_MARKUP)]
    labelled = list(_labelled(lines))
    read = *_IN_BRACKETS.findall(text), *(labelled or [text])
    found = [words.get(each.strip(), words.get(_plain(each))) for each in read]
    stated = sorted({action for action in found if action is not None})
    if not stated or (labelled and found[-1] is None):
        last = " ".join((labelled or lines or [""])[-1].split())
        raise Unreadable(f"no move in {shown(last) if last else 'an empty line' if lines else 'an empty reply'}")
    if len(stated) > 1:
        raise Unreadable(f"several moves: {listed([variant.describe_action(action) for action in stated])}")
    return stated[0]


def _without_thinking(reply: str) -> str:
    """Return a reply without its thinking, which may have begun in the prompt. Unreadable if it was cut off while it thinks."""
    thoughts = [[mark for mark in marks if mark] for marks in _THOUGHT.findall(reply)]
    if thoughts and len(thoughts[-1]) == 1:
        raise Unreadable(f"its thinking does not end: {shown(thoughts[-1][0])}")
    return _END_OF_THOUGHT.split(_THOUGHT.sub("\n", reply))[-1]


def _labelled(lines: Sequence[str]) -> Iterator[str]:
    """Yield what follows "Move:" in each line that begins with it; if the line ends there, the next line."""
    for line, following in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        label, colon, content = line.lstrip(_MARKUP + "-").partition(":")
        if colon and label.rstrip(_MARKUP).casefold() == "move":
            yield content if content.strip(_MARKUP) else following


@functools.lru_cache(maxsize=32)
def _words(variant: Variant) -> dict[str, int]:
    """Return the words of each action as the game writes them, and in plain form where they name only one → action."""
    own: dict[Any, int] = {variant.describe_action(action): action for action in range(variant.facts.num_actions)}
    plain: dict[str, set[int]] = {}
    for words, action in own.items():
        for form in (words, words.bare):
            plain.setdefault(_plain(form), set()).add(action)
    return {**{words: min(actions) for words, actions in plain.items() if len(actions) == 1}, **own}


def _plain(text: str) -> str:
    """Return a text in lower case, without markup and signs around it and with single blanks."""
    folded = _TIMES.sub(" x ", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split()).rstrip(_ENDS).lstrip(_MARKUP)


def ask_again(problem: object) -> str:
    """Return the answer to a reply without a legal move, which asks for another one; `problem` is the error."""
    return f'That is no legal move: {problem}. End your reply with the line "Move: …", with a legal one in place of the dots.'


def listed(words: Sequence[str]) -> str:
    """Return moves in one line; the middle of a long list is left out."""
    half = MOST_LISTED // 2
    return ", ".join(words if len(words) <= MOST_LISTED else [*words[:half], "…", *words[-half:]])
