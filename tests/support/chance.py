"""Every deal and outcome of an action, with probabilities; counts compared with them; the second stage of 30s."""

from fractions import Fraction

import numpy as np
from scipy.stats import chisquare

from dice_envs.exact.thirties import second_stage


def every_deal(drawn):
    """Yield the probability and the state, a (1,) array, of every deal of a `Drawn`. Different deals may give equal states."""
    return _every(np.zeros(1, drawn.variant.game.state), drawn.deal)


def every_outcome(drawn, state, action):
    """Yield the probability and the next state of every outcome of a legal action in `state`, a (1,) array left unchanged.

    Where rolls may repeat without limit, as when maesters tie in The Shakes, the outcomes never end.
    """
    return _every(state, lambda record, outcomes: drawn.play(record, action, outcomes))


def _every(before, run):
    open_branches = [(1.0, ())]
    while open_branches:
        probability, outcomes = open_branches.pop()
        after = before.copy()
        draw = run(after[0], outcomes)
        if draw is None:
            yield probability, after
        else:
            branches = zip(draw.outcomes, draw.probabilities, strict=True)
            open_branches += [(probability * chance, (*outcomes, outcome)) for outcome, chance in branches]


def assert_distributed(seen, chances):
    """Assert that counts agree with probabilities: a chi-square test, with rare outcomes merged.

    Both are sequences, or dictionaries by outcome; outcomes that `chances` then leaves out have the rest of the probability.
    """
    if isinstance(chances, dict):
        listed = [seen.get(outcome, 0) for outcome in chances]
        seen, chances = [*listed, sum(seen.values()) - sum(listed)], [*map(float, chances.values())]
        chances.append(1 - sum(chances))
    counts, expected = np.asarray(seen, float), np.asarray(chances, float) * np.sum(seen)
    assert not counts[expected < 1e-9].any(), "something was seen that cannot be"
    if (expected > 1e-9).sum() == 1:
        return
    common = expected >= 5
    seen = np.append(counts[common], counts[~common].sum())
    due = np.append(expected[common], expected[~common].sum())
    if due[-1] < 5:
        smallest = due[:-1].argmin()
        seen[smallest] += seen[-1]
        due[smallest] += due[-1]
        seen, due = seen[:-1], due[:-1]
    assert len(seen) > 1
    assert chisquare(seen, due * seen.sum() / due.sum()).pvalue > 1e-4


def assert_even(counts):
    """Assert that outcomes with these counts are equally likely."""
    assert_distributed(counts, np.full(len(counts), 1 / len(counts)))


def second_stage_points(rules, excess, restarts):
    """Return points → chance that a second stage from `excess` gives them with at most this many restarts.

    The missing probability is that of more restarts.
    """
    chances = second_stage(rules)
    found = {}
    reached, points, face = Fraction(1), excess, min(excess, rules.num_faces)
    for _ in range(restarts + 1):
        for count, chance in enumerate(chances[:-1]):
            value = points + count * face
            found[value] = found.get(value, Fraction(0)) + reached * chance
        reached *= chances[-1]
        points = 2 * (points + rules.num_dice * face)
        face = min(face + 1, rules.num_faces)
    return found
