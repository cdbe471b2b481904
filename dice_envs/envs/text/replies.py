"""Read the move in a reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from dice_envs.core.batch import IllegalActionError, check_record
from dice_envs.core.game import Variant
from dice_envs.core.options import shown
from dice_envs.envs.text.tokens import clauses, clean, is_of_others, tokens
from dice_envs.envs.text.vocabulary import Vocabulary, plain, vocabulary_of

__all__ = ["IllegalMove", "Unreadable", "legal_actions", "listed", "read_move", "read_reply"]

MOST_READ = 50_000  # characters at the end of a reply; what stands before them is not read
MOST_LISTED = 12  # legal moves in a message; of more, the first and the last are listed
_LABEL = re.compile(r"\b(?:move|answer|action|decision|choice|play)\b[\"'`*_\s]*(?:[:=]|\bis\s*:)[\"'`*_\s]*")
_BREAK = re.compile(r"[.!?;,:(){}\[\]\"]")
_QUOTES = "\"'`"
LONGEST_LABEL = 100  # characters before a label that may say whose move it is
_ITEM = re.compile(r"^\s*(?:[-•>#]+\s|\*\s|\(?[0-9]{1,3}[.)]\s)\s*(?=\S)")


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

    The last line that states a move counts. A line that names it ("Move: 3 x 4", `"move": "call"`, `<move>call</move>`) comes
    before all others. Case, markup, quotes and words such as "I bid" make no difference, and numbers may be words: "three
    fours". Besides the game's own words those of `Game.other_words` are read.

    Args:
        variant: the game.
        state: the state record of a position that is not over.
        reply: text of any length; of a long one only the end is read.

    Raises:
        Unreadable: the reply states no move of this game, or its last line with moves states several.
        IllegalMove: the move is not legal now.
        ValueError: the game is over.
    """
    check_record(variant, state)
    legal = legal_actions(variant, state)
    allowed = f"allowed: {listed([variant.describe_action(action) for action in legal])}"
    try:
        action = read_move(variant, reply)
    except Unreadable as problem:
        raise Unreadable(f"{problem}; {allowed}") from None
    if action not in legal:
        words = variant.describe_action(action)
        why = variant.explain_illegal(state, action) or f"{words} is not legal now"
        raise IllegalMove(f"read {words}: {why}; {allowed}", action)
    return action


def read_move(variant: Variant, reply: str) -> int:
    """Return the action that a reply states, legal or not. Unreadable as in `read_reply`, without what is allowed."""
    if not isinstance(reply, str):
        raise Unreadable(f"a reply must be text, not {shown(reply)}")
    vocabulary = vocabulary_of(variant)
    for text in (reply[-MOST_READ:].strip(), plain(reply[-MOST_READ:])):
        if text in vocabulary.words:
            return vocabulary.words[text]
    lines = [line for line in clean(reply[-MOST_READ:]).splitlines() if line.strip()]
    rest = lines
    for at in reversed(range(len(lines))):
        content = _labelled(lines[at])
        if content:
            stated = _stated(vocabulary, content)
            if stated:
                return _only(variant, stated)
            rest = lines[at + 1 :]  # what stands before an unreadable "Move: …" is not the answer
            break
    for line in reversed(rest):
        stated = _stated(vocabulary, line)
        if stated:
            return _only(variant, stated)
    raise Unreadable(f"no move in {_end(lines) if lines else 'an empty reply'}")


def _labelled(line: str) -> str:
    """Return what stands after the last label of a line, such as "Move:"; "" without one."""
    for match in reversed(list(_LABEL.finditer(line))):
        before = _BREAK.split(line[max(0, match.start() - LONGEST_LABEL) : match.start()])[-1]
        if is_of_others(before):
            continue
        content, quote = line[match.end() :], match[0].rstrip()[-1]
        if quote in _QUOTES and quote in content:
            content = content.partition(quote)[0]
        return content if tokens(content) else ""
    return ""


def _stated(vocabulary: Vocabulary, line: str) -> set[int]:
    """Return the actions that a line states: as a whole, in clauses of their own, or in a sentence that decides on one."""
    asks = line.rstrip(_QUOTES + "* ").endswith("?")
    for text in () if asks else (line, _ITEM.sub("", line)):
        action = vocabulary.whole(text)
        if action is not None:
            return {action}
    parts = clauses(_ITEM.sub("", line))
    found = {action for part in parts if (action := vocabulary.clause(part)) is not None}
    return found or set().union(*map(vocabulary.decided, parts))


def _only(variant: Variant, stated: set[int]) -> int:
    if len(stated) > 1:
        raise Unreadable(f"several moves in one line: {listed([variant.describe_action(action) for action in sorted(stated)])}")
    return next(iter(stated))


def _end(lines: Sequence[str]) -> str:
    last = " ".join(lines[-1].split())
    return shown(last if len(lines) == 1 else f"… {last}")


def legal_actions(variant: Variant, state: Any) -> list[int]:
    """Return the legal actions of the seat to move; none once the game is over."""
    mask = np.zeros(variant.facts.num_actions, np.int8)
    variant.game.legal(variant.params, state, mask)
    return [int(action) for action in np.flatnonzero(mask)]


def listed(words: Sequence[str]) -> str:
    """Return moves in one line; the middle of a long list is left out."""
    half = MOST_LISTED // 2
    return ", ".join(words if len(words) <= MOST_LISTED else [*words[:half], "…", *words[-half:]])
