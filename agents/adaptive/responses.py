"""Best responses to the likeliest opponent: which one to play, and its actions."""

from __future__ import annotations

import functools
import sys
import time

import numpy as np

from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel

from ..liars_dice import Reader, chance_blind, honesty
from .beliefs import posterior
from .book import Responses, respond_to, responses_to
from .players import Composed, Reading, Way
from .styles import CALLING, KINDS_OF, NERVES, OPENING, PARTS, QUARTERS, RAISING, Style

__all__ = ["best_responses", "response_actions"]

_ANSWERS = tuple(sum(len(style.answered) for style in styles) for styles in PARTS)  # of each part
_MIXED_ANSWERS = int(np.prod(_ANSWERS))  # responses to readers are numbered from here on
_SAY_EVERY = 5.0  # seconds between two lines of progress


def best_responses(variant: Variant, states: np.ndarray, memory: np.ndarray, caution: float) -> np.ndarray:
    """Return the number of the response to play plus 1, or 0 for optimal play, (n,) int64.

    Best responses are played where known styles explain at least a share `caution` of the decisions learned from.
    """
    beliefs = posterior(memory["likelihoods"])
    decisions = memory["decisions"]
    sure = (beliefs.known * decisions).sum(axis=1) >= caution * np.maximum(decisions.sum(axis=1), 1)
    mixed = np.zeros(len(states), np.int64)
    for part, styles in enumerate(PARTS):
        mixable = styles if part == OPENING else styles[:-1]
        mixed = mixed * _ANSWERS[part] + _answer_to(beliefs.kinds[:, KINDS_OF[part]], mixable)
    opinions = np.empty(len(states))
    _opinions(states, chance_blind(variant.params.num_faces, variant.params.most_dice), opinions)
    level = np.abs(opinions[:, None] - np.array(QUARTERS)).argmin(axis=1)
    reader = _MIXED_ANSWERS + beliefs.readers.argmax(axis=1) * len(QUARTERS) + level
    return np.where(sure, 1 + np.where(beliefs.readers.sum(axis=1) > 0.5, reader, mixed), 0)


def response_actions(variant: Variant, which: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the actions of the responses of these numbers, (n,) int64: see `Responses.actions`."""
    out = np.empty(len(states), np.int64)
    for number in np.unique(which).tolist():
        rows = np.flatnonzero(which == number)
        out[rows] = _response_to(variant, _opponent(number)).actions(np.zeros(len(rows), np.int64), states[rows])
    return out


def _answer_to(beliefs: np.ndarray, styles: tuple[Style, ...]) -> np.ndarray:
    """Return the number of the answer to a part's likeliest known style, (n,) int64."""
    by_style, nearest = [], []
    kind = answer = 0
    for style in styles:
        own = beliefs[:, kind : kind + len(style.levels)]
        by_style.append(own.sum(axis=1))
        level = own @ np.array(style.levels) / np.maximum(by_style[-1], 1e-300)
        nearest.append(answer + np.abs(level[:, None] - np.array(style.answered)).argmin(axis=1))
        kind, answer = kind + len(style.levels), answer + len(style.answered)
    likeliest = np.argmax(by_style, axis=0)
    found: np.ndarray = np.array(nearest)[likeliest, np.arange(len(beliefs))]
    return found


@kernel
def _opinions(states, blind, out):
    """Write a reader's opinion of the seat to move: how often it names its face deliberately. In place."""
    for i in range(len(states)):
        out[i] = honesty(states[i], np.int64(states[i]["seat"]), blind)


@functools.cache
def _opponent(response: int) -> Composed:
    """Return the opponent that the response of this number answers."""
    if response >= _MIXED_ANSWERS:
        nerve, level = divmod(response - _MIXED_ANSWERS, len(QUARTERS))
        reading = Way(Reading(QUARTERS[level]))
        return Composed(Way(Reader(nerve=NERVES[nerve])), reading, reading)
    opening, raising, calling = np.unravel_index(response, _ANSWERS)
    ways = [[Way(style.first, style.second, share) for style in styles for share in style.answered] for styles in PARTS]
    return Composed(ways[OPENING][opening], ways[RAISING][raising], ways[CALLING][calling])


class _Progress:
    """Lines on standard error, every few seconds, while best responses are being computed."""

    def __init__(self) -> None:
        self.told, self.found = time.monotonic(), 0

    def say(self, number: int) -> None:
        self.found += 1
        if time.monotonic() - self.told >= _SAY_EVERY:
            self.told = time.monotonic()
            print(f"adaptive: finding its best response number {self.found}", file=sys.stderr, flush=True)


_PROGRESS = _Progress()


@functools.lru_cache(maxsize=256)  # with five dice each one takes 2 MB
def _response_to(variant: Variant, opponent: Composed) -> Responses:
    """Return the best response, kept on disk or computed now."""
    return (responses_to if opponent.promises.memoryless else respond_to)(variant, [opponent], done=_PROGRESS.say)
