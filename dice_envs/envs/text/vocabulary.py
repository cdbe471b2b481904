"""How the moves of a game are said: from the words of all its actions to the phrases by which a reply may name them."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dice_envs.core.game import Variant
from dice_envs.envs.text.tokens import Token, folded, tokens

__all__ = ["Vocabulary", "plain", "vocabulary_of"]

Phrase = tuple[str, ...]

# Words that may stand around a move and change nothing. Those that a game's own moves contain are not ignored.
_FILLING = (
    "a action actually am an and answer are at be best bid bidding bids boxed choice choose chosen decide decided decision "
    "dice die do face faces final for give go going here hereby i i'd i'll i'm in is it least let let's like make me move "
    "moves my now of ok okay on option output pick place play please raise raising reply respond response say select selected "
    "show showing shows so submit take that the them there therefore this thus to try use using will with would"
)
# Words of which a sentence has one if it decides on the move that it contains.
_DECISIVE = (
    "answer best better bid choice choose choosing decide decided decision go going i'll let's move optimal option pick "
    "picking play playing prefer raise safest select selecting should take"
)
# Words in a sentence about a move that is not the speaker's, or not yet.
_DISTANT = (
    "after although aren't avoid before can't cannot could current didn't doesn't don't doubt he her his if instead isn't last "
    "may maybe might never no nobody not opponent opponent's opponents or other player previous rather risky she than their "
    "they too unless unlikely until was wasn't were whether without won't would wouldn't you your"
)
_AROUND, _DECIDING, _ABOUT_ANOTHER = (frozenset(text.split()) for text in (_FILLING, _DECISIVE, _DISTANT))
_POINTING = frozenset(("the", "this", "that", "a", "each", "every"))  # before a noun: "the bid" decides nothing
_PRAISE = frozenset(("best", "better", "optimal", "safest"))
LONGEST_SHORTENED = 8  # words of a phrase that may be left out: any of the first ones
_IN_BRACKETS = re.compile(r"\([^()]*\)")


class Vocabulary(NamedTuple):
    """The phrases of a variant's actions.

    Attributes:
        words: words of an action as the game writes them, in lower case → action.
        phrases: tokens → action.
        shortened: tokens left of the phrases of only one action when words, but no numbers, are left out → that action.
        ignored: words around a move that change nothing.
        longest: number of tokens of the longest phrase.
    """

    words: dict[str, int]
    phrases: dict[Phrase, int]
    shortened: dict[Phrase, int]
    ignored: frozenset[str]
    longest: int

    def whole(self, text: str) -> int | None:
        """Return the action that a text names and says nothing else; None if there is none."""
        if (own := self.words.get(plain(text))) is not None:
            return own
        phrase = tuple(token.text for token in self._said(tokens(text)))
        return self.phrases.get(phrase, self.shortened.get(phrase))

    def clause(self, text: str) -> int | None:
        """As `whole`, for a part of a line, where numbers alone name nothing unless one is said to be a face."""
        said = self._said(tokens(text))
        if all(token.text.isdigit() for token in said) and not any(token.linked for token in said):
            return None
        return self.whole(text)

    def decided(self, text: str) -> set[int]:
        """Return the actions in a sentence that decides on a move, such as "I think 3 x 4 is best"."""
        found = tokens(text)
        words = [token.text for token in found]
        if _ABOUT_ANOTHER.intersection(words):
            return set()
        deciding = (word in _DECIDING and before not in _POINTING for before, word in zip(["", *words], words))
        return set(self._mentioned(self._said(found))) if _PRAISE.intersection(words) or any(deciding) else set()

    def _said(self, found: Sequence[Token]) -> list[Token]:
        return [token for token in found if token.text not in self.ignored]

    def _mentioned(self, said: Sequence[Token]) -> Iterator[int]:
        """Yield the action of each phrase, the longest that begins at each token."""
        at = 0
        while at < len(said):
            for end in range(min(len(said), at + self.longest), at, -1):
                part = said[at:end]
                action = self.phrases.get(tuple(token.text for token in part))
                if action is not None and not _only_numbers(part):
                    yield action
                    at = end - 1
                    break
            at += 1


def _only_numbers(part: Sequence[Token]) -> bool:
    """Whether a phrase is of numbers of which none is said to be a face: it may be about anything."""
    return all(token.text.isdigit() for token in part) and not (len(part) > 1 and part[-1].linked)


def plain(text: str) -> str:
    """Return a text in lower case, without signs around it and with single blanks."""
    return " ".join(folded(text).split()).strip(" \"'`*_.,;:!#>-")


@functools.lru_cache(maxsize=32)
def vocabulary_of(variant: Variant) -> Vocabulary:
    """Return the phrases by which replies may name the actions of a variant."""
    own = {action: variant.describe_action(action) for action in range(variant.facts.num_actions)}
    texts = {action: [words, _IN_BRACKETS.sub(" ", words), *variant.other_words(action)] for action, words in own.items()}
    used = {token.text for words in own.values() for token in tokens(folded(words))}
    ignored = _AROUND - used | {"the", "a", "an", "of"}
    said = {
        action: [tuple(token.text for token in tokens(folded(text)) if token.text not in ignored) for text in forms]
        for action, forms in texts.items()
    }
    phrases = {action: set(forms) - {()} for action, forms in said.items()}
    shortened = {
        action: {short for form in [forms[1], *filter(_has_number, forms[2:])] for short in _shorter(form)}
        for action, forms in said.items()
    }
    return Vocabulary(
        words=_of_one({action: {words.strip(), plain(words)} for action, words in own.items()}),
        phrases=_of_one(phrases),
        shortened=_of_one(shortened),
        ignored=frozenset(ignored),
        longest=max((len(phrase) for known in phrases.values() for phrase in known), default=0),
    )


def _has_number(phrase: Phrase) -> bool:
    return any(word.isdigit() for word in phrase)


def _shorter(phrase: Phrase) -> Iterator[Phrase]:
    """Yield what is left of a phrase when some of its words, but none of its numbers, are left out."""
    choices = [(True,) if word.isdigit() else (True, False) for word in phrase[:LONGEST_SHORTENED]]
    for kept in itertools.product(*choices):
        short = *itertools.compress(phrase, kept), *phrase[LONGEST_SHORTENED:]
        if short:
            yield short


def _of_one(named: Mapping[int, Iterable[Any]]) -> dict[Any, int]:
    """Return phrase → action, for phrases of only one action."""
    found: dict[Any, int] = {}
    several = set()
    for action, phrases in named.items():
        for phrase in phrases:
            if found.setdefault(phrase, action) != action:
                several.add(phrase)
    return {phrase: action for phrase, action in found.items() if phrase not in several}
