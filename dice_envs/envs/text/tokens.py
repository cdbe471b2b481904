"""Text as people and models write it, cut into numbers and words that can be compared."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

__all__ = ["Token", "clauses", "clean", "folded", "is_of_others", "tokens"]

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
)
_TYS = "twenty thirty forty fifty sixty seventy eighty ninety"
_RANKS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_NUMBERS = {word: number for number, word in enumerate(_UNITS.split())}
_TENS = {word: 10 * number for number, word in enumerate(_TYS.split(), 2)}
_ORDINALS = {word: number for number, word in enumerate(_RANKS.split(), 1)}
_SINGULAR = _NUMBERS | _TENS | _ORDINALS | {"ace": 1, "pair": 2}
_PLURAL = {(word[:-1] + "xes" if word[-1] == "x" else word + "s"): number for word, number in _NUMBERS.items()} | {"aces": 1}
_TIMES = ("x", "times")  # a sign between a quantity and a face

_TOKEN = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<ending>'?s|st|nd|rd|th)?(?![^\W\d_x])|(?P<part>[0-9]+)"
    r"|(?P<word>%|[^\W\d_]+(?:'[^\W\d_]+)*)"
)
_TAG = re.compile(r"<\s*(move|answer|action|choice)\s*>")
_MARKUP = (
    (re.compile(r"^.*</\s*(?:think|thinking|thought|reasoning)\s*>", re.S), ""),
    (_TAG, r"\n\1: "),
    (re.compile(r"</\s*[a-z]{1,20}\s*>|<\s*(?:b|br|code|div|em|i|p|span|strong|think|thinking|thought|reasoning)\s*/?>"), "\n"),
    (re.compile(r"\\(?:boxed|fbox)\s*\{"), "answer: "),
    (re.compile(r"\\(?:times|cdot)\b"), " x "),
    (re.compile(r"\\(?:text|textbf|mathrm|mathbf)\b"), " "),
    (re.compile(r"\\n"), "\n"),
    (re.compile(r"[×✕✖⨯·]"), " x "),
    (re.compile(r"(?<=[0-9])\s?\*\s?(?=[0-9])"), " x "),
)
_CLAUSE = re.compile(r"((?<![.!?;,:])[.!?;,:]+(?=[\s\"'*`)}\]]|$)|[()\[\]{}]|\s[-–—]+\s|[–—]|\b(?:because|since|but|then)\b)")
_OTHERS = "current example her his last legal opponent's possible previous their your"
_OF_OTHERS = frozenset(_OTHERS.split())


class Token(NamedTuple):
    """A word in lower case, or a number in digits.

    Attributes:
        text: the word, or the number.
        linked: whether a number is said to be a face: in the plural ("fours", "4s") or after a sign ("3 x 4").
    """

    text: str
    linked: bool = False


def folded(text: str) -> str:
    """Return a text in lower case, with one form of each letter and apostrophe."""
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‘", "'")


def clean(reply: str) -> str:
    """Return a reply in lower case, without the markup that hides its lines: thoughts, tags, LaTeX."""
    text = folded(reply)
    for pattern, instead in _MARKUP:
        text = pattern.sub(instead, text)
    return text


def clauses(line: str) -> list[str]:
    """Cut a line at its signs. Questions state nothing and are left out, as is what follows "last bid:"."""
    parts = _CLAUSE.split(line)
    found, own = [], True
    for part, sign in zip(parts[::2], [*parts[1::2], ""], strict=True):
        if part.strip() and own and "?" not in sign:
            found.append(part)
        if part.strip():
            own = not (":" in sign and is_of_others(part))
    return found


def is_of_others(label: str) -> bool:
    """Whether the words before a colon announce a move that is not the speaker's own, as in "last bid: 3 x 4"."""
    return not _OF_OTHERS.isdisjoint(token.text for token in tokens(label))


def tokens(text: str) -> list[Token]:
    """Return the numbers and words of a folded text. Number words become digits; a sign between two numbers is left out."""
    found: list[Token] = []
    tens = linked = ordinal = False
    for match in _TOKEN.finditer(text):
        word = match["word"]
        if word in _TIMES:
            linked, tens = True, False
            continue
        number = match["number"] or match["part"]
        plural = bool(match["ending"]) and match["ending"].endswith("s")
        if word in _PLURAL:
            number, plural = str(_PLURAL[word]), True
        elif word in _SINGULAR:
            number = str(_SINGULAR[word])
        if number is None:
            found.insert(len(found) - ordinal, Token(word))  # "second die" is die 2
        elif tens and word in _NUMBERS and 0 < _NUMBERS[word] < 10:
            found[-1] = found[-1]._replace(text=str(int(found[-1].text) + _NUMBERS[word]))
        else:
            found.append(Token(number.lstrip("0") or "0", plural or linked))
        tens, linked = word in _TENS, False
        ordinal = word in _ORDINALS or match["ending"] in ("st", "nd", "rd", "th")
    return found
