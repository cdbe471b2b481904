"""Games in words: prompts for language models and other players who read and write.

A prompt has the rules once, what has happened, the position as the seat may know it, and if wanted the legal moves. All of it
comes from the game's own words. `read_reply` finds the move in a reply.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium

from dice_envs.core.game import Game, Variant, configure
from dice_envs.core.options import check_choice, shown
from dice_envs.pictures.render import rows_in_words
from dice_envs.table.rules import rules_in_short
from dice_envs.table.sitting import PERSON, Sitting

__all__ = ["IllegalMove", "TextEnv", "Unreadable", "prompt", "read_reply"]

MOST_CHARACTERS = 20_000  # of a prompt; only the end of a longer reply is read
WORDS = {
    word: str(k)
    for k, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
}
FACES = {word: str(k) for k, word in enumerate(["ones", "twos", "threes", "fours", "fives", "sixes", "sevens", "eights"], 1)}
# Words that make no difference between moves.
FILLERS = frozenset(
    [
        "a",
        "an",
        "the",
        "i",
        "we",
        "my",
        "is",
        "are",
        "bid",
        "bids",
        "move",
        "answer",
        "action",
        "play",
        "choose",
        "raise",
        "to",
        "of",
        "at",
        "least",
        "dice",
        "showing",
    ]
)
TIMES = ("x", "times")


class Unreadable(ValueError):
    """A reply states no move, or several. The message says what was read and what is allowed."""


class IllegalMove(ValueError):
    """A reply states a move that is not legal now.

    Attributes:
        action: the action.
    """

    def __init__(self, message: str, action: int) -> None:
        super().__init__(message)
        self.action = action


# --- prompts ----------------------------------------------------------------------------------------------------------


def prompt(sitting: Sitting, seat: int, *, rules: bool = True, legal: bool = True) -> str:
    """Return what the player at a seat is told: nothing that this seat may not know.

    Args:
        sitting: the game.
        seat: the player's seat.
        rules: whether to begin with the rules, as in the first prompt of a game.
        legal: whether to list the legal moves, where the seat is to move.
    """
    variant = sitting.variant
    count = variant.facts.num_seats
    parts = []
    if rules:
        others = [variant.seat_name(other) for other in range(count) if other != seat]
        against = f" with {' and '.join(others)}" if others else ""
        who = f" You are {variant.seat_name(seat)}." if others else ""
        lines = "\n".join(f"- {line}" for line in rules_in_short(variant))
        parts.append(f"You play {variant.game.title}{against}.{who} The rules:\n{lines}")
    said = [_entry(variant, seat, entry.seat, entry.words, entry.notes) for entry in sitting.history(seat)]
    if said:
        parts.append("What has happened:\n" + "\n".join(said))
    rows = "\n".join(f"- {line}" for line in rows_in_words(sitting.picture(seat)))
    parts.append(f"The position:\n{rows}")
    if not sitting.over and sitting.mover == seat:
        if legal:
            parts.append(f"Your legal moves: {', '.join(_legal_words(sitting))}.")
        parts.append("It is your move. Give it on the last line of your reply, in these words and nothing else.")
    return _cut("\n\n".join(parts))


def _entry(variant: Variant, viewer: int, seat: int, words: str, notes: Sequence[str]) -> str:
    return "; ".join([f"{variant.seat_name(seat, viewer)}: {words}", *notes])


def _legal_words(sitting: Sitting) -> list[str]:
    return [sitting.variant.describe_action(action) for action in sitting.legal()]


def _cut(text: str) -> str:
    """Leave out the middle of a text that is too long."""
    half = MOST_CHARACTERS // 2 - 10
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]}\n…\n{text[-half:]}"


# --- replies ----------------------------------------------------------------------------------------------------------


def read_reply(variant: Variant, legal: Sequence[int], reply: str, state: Any = None) -> int:
    """Return the action that a reply states: the last line that names a move counts.

    Case, punctuation, markup, number words ("three fours") and words around the move make no difference. A line that names two
    different moves is refused, since nobody can know which one is meant.

    Args:
        variant: the game with its options.
        legal: the legal actions.
        reply: what the player wrote.
        state: the state record, for the game's own explanation of an illegal move; None: without it.

    Raises:
        Unreadable: no line states a move, or the line states several.
        IllegalMove: the move that it states is not legal now.
    """
    known = _moves(variant)
    lines = [line for line in reply[-MOST_CHARACTERS:].splitlines() if line.strip()]
    for line in reversed(lines):
        found = _named(known, _tokens(_after_mark(line)))
        if len(found) > 1:
            said = " or ".join(variant.describe_action(action) for action in sorted(found)[:3])
            raise Unreadable(f"{shown(line.strip()[:80])} could mean {said}; {_allowed(variant, legal)}")
        if found:
            (action,) = found
            if action not in legal:
                why = variant.explain_illegal(state, action) if state is not None else ""
                said = variant.describe_action(action)
                raise IllegalMove(f"{said} is not legal now{': ' if why else ''}{why}; {_allowed(variant, legal)}", action)
            return action
    read = shown(lines[-1].strip()[:80]) if lines else "an empty reply"
    raise Unreadable(f"{read} states no move; {_allowed(variant, legal)}")


def _allowed(variant: Variant, legal: Sequence[int]) -> str:
    words = [variant.describe_action(action) for action in legal]
    some = words if len(words) <= 12 else [*words[:6], "…", *words[-6:]]
    return f"allowed: {', '.join(some)}"


def _after_mark(line: str) -> str:
    """Return a line without the number or sign of a list, and without "Answer:", "move =" and the like."""
    line = re.sub(r"^\s*(\d+[.)]|[-*•>])\s+(?=\S)", "", line)
    return re.split(r"(?i)\b(?:answer|move|action|bid|final)\b\W*[:=]", line)[-1]


def _tokens(text: str) -> tuple[str, ...]:
    """Return the words and numbers of a text that tell moves apart."""
    text = re.sub(r"[×✕*]", " x ", re.sub(r"[*_`]{2,}|[`_]", " ", text.lower()))
    words = re.findall(r"[a-z]+|\d+", re.sub(r"(\d)\s*['’]?s\b", r"\1", text))
    words = [WORDS.get(word, FACES.get(word, word)) for word in words]
    return tuple(word for word in words if word not in FILLERS and word not in TIMES)


@functools.lru_cache(32)
def _moves(variant: Variant) -> Mapping[tuple[str, ...], int]:
    """Return the tokens of every action that has tokens of its own, without what stands in brackets."""
    found: dict[tuple[str, ...], int] = {}
    for action in range(variant.facts.num_actions):
        words = variant.describe_action(action)
        for each in dict.fromkeys((_tokens(re.sub(r"\(.*?\)", "", words)), _tokens(words))):
            if found.setdefault(each, action) != action:  # options may give two actions the same name
                found.pop(each)
    return found


def _named(known: Mapping[tuple[str, ...], int], said: tuple[str, ...]) -> set[int]:
    """Return the actions whose tokens stand in a line one after the other. Longer ones hide those inside them."""
    lengths = sorted({len(tokens) for tokens in known if tokens}, reverse=True)
    found: dict[int, range] = {}
    for length in lengths:
        for begin in range(len(said) - length + 1):
            action = known.get(said[begin : begin + length])
            place = range(begin, begin + length)
            if action is not None and not any(set(place) & set(other) for other in found.values()):
                found[action] = place
    if found or len(said) > 6:
        return set(found)
    # a short reply may also leave words out: "throw 2" for "throw the 2 lowest again"
    short = {action for tokens, action in known.items() if said and _is_part(said, tokens)}
    return short if len(short) == 1 else set()


def _is_part(said: Sequence[str], tokens: Sequence[str]) -> bool:
    """Whether the words said stand in the move's words, in that order."""
    rest = iter(tokens)
    return all(word in rest for word in said)


# --- an environment ---------------------------------------------------------------------------------------------------


class TextEnv(gymnasium.Env[str, str]):
    """One seat of a game in words: observations are prompts, actions are replies.

    The first observation of a game has the rules. `info` has `"legal"`, the legal moves in words, and `"seat"`; after a reply
    without a legal move also `"problem"`, the reason. Rewards are the seat's own. For several seats use `prompt` and
    `read_reply` with a `dice_envs.table.sitting.Sitting`.

    Args:
        game: name, Game or Variant.
        opponents: the spec of the agent at all other seats.
        seat: the player's seat.
        legal: whether prompts list the legal moves.
        illegal_action: what follows a reply without a legal move. "ask": the player is told why and asked again, without limit.
            "lose": the game ends with the least possible return.
        options: the game's options.

    Raises:
        ValueError: unknown game, options, agent or seat.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(
        self,
        game: str | Game | Variant,
        opponents: str = "random",
        seat: int = 0,
        legal: bool = True,
        illegal_action: str = "ask",
        **options: Any,
    ) -> None:
        self.variant = configure(game, **options)
        check_choice("illegal_action", illegal_action, ("ask", "lose"))
        check_choice("seat", seat, tuple(range(self.variant.facts.num_seats)))
        self.seats = [PERSON if each == seat else opponents for each in range(self.variant.facts.num_seats)]
        self.seat, self.legal, self.illegal_action = seat, legal, illegal_action
        letters = "".join(map(chr, range(32, 127))) + "\n×●○◐…←’“”–−"
        self.observation_space = gymnasium.spaces.Text(MOST_CHARACTERS, charset=letters)
        self.action_space = gymnasium.spaces.Text(MOST_CHARACTERS, min_length=0, charset=letters)
        self.sitting = Sitting(self.variant, 0, self.seats)
        self._ended = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Deal a game and play up to the player's turn. ValueError for reset options: a game in words has none."""
        if options:
            raise ValueError(f"a game in words takes no reset options, not {shown(options)}")
        super().reset(seed=seed)
        number = int(self.np_random.integers(2**31)) if seed is None else seed
        self.sitting = Sitting(self.variant, number, self.seats)
        self._go_on()
        self._ended = self.sitting.over
        return prompt(self.sitting, self.seat, legal=self.legal), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play the move that a reply states, and all others' moves up to the player's next turn or the end."""
        if self._ended:
            raise gymnasium.error.ResetNeeded("call reset before step: no game has begun, or the last one has ended")
        before = float(self.sitting.returns[self.seat])
        try:
            move = read_reply(self.variant, self.sitting.legal(), str(action), self.sitting.state)
        except (Unreadable, IllegalMove) as problem:
            return self._refuse(str(problem), before)
        self.sitting.play(move)
        self._go_on()
        self._ended = self.sitting.over
        reward = float(self.sitting.returns[self.seat]) - before
        return prompt(self.sitting, self.seat, rules=False, legal=self.legal), reward, self._ended, False, self._info()

    def _refuse(self, problem: str, before: float) -> tuple[str, float, bool, bool, dict[str, Any]]:
        said = problem[:1].upper() + problem[1:]
        self._ended = self.illegal_action == "lose"
        reward = self.variant.facts.min_return - before if self._ended else 0.0
        asked = _cut(f"{said}.\n\n{prompt(self.sitting, self.seat, rules=False, legal=self.legal)}")
        return asked, reward, self._ended, False, {**self._info(), "problem": problem}

    def _go_on(self) -> None:
        while not self.sitting.over and self.sitting.mover != self.seat:
            self.sitting.step()

    def _info(self) -> dict[str, Any]:
        legal = [] if self.sitting.over else _legal_words(self.sitting)
        return {"legal": legal, "seat": self.seat}
