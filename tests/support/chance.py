"""Every deal and outcome of an action, with probabilities; best responses and counts by them; the second stage of 30s."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
from scipy.stats import chisquare

from dice_envs.agent import Turn
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER
from dice_envs.games.thirties.exact.strategies import second_stage


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


def best_response(drawn, agent, seat, look=lambda states, values: None, deals=None, own=None):
    """Return what the best response in a seat, or the agent `own`, earns from the agent in the other, from all that can happen.

    Wherever the seat is to move, `look` is called with all states (n,) that look alike to it, and the value of each action.
    `deals` are those of `every_deal`, unless they are given.
    """
    variant, one, answers = drawn.variant, np.zeros(1, np.int64), {}

    def seen(state):
        out = np.zeros((1, variant.facts.observation_size), np.float32)
        variant.kernels.observe(state, one, state["seat"].astype(np.int64), out)
        return out.tobytes()

    def play(state, action, weight, groups):
        """What is earned before the seat is to move again; the states in which it then is go to groups that look alike."""
        return sum(
            weight * chance * float(after["rewards"][0, seat]) + follow(after, weight * chance, groups)
            for chance, after in every_outcome(drawn, state, action)
        )

    def follow(state, weight, groups):
        if state["seat"][0] == OVER:
            return 0.0
        key = seen(state)
        if state["seat"][0] == seat:
            groups[key].append((weight, state))
            return 0.0
        if key not in answers:
            (answers[key],) = agent.probabilities(Turn(variant, state, one, new_streams(1, 1)))
        chances = answers[key]
        return sum(play(state, action, weight * chances[action], groups) for action in np.flatnonzero(chances))

    def best(group):
        values, total = {}, sum(weight for weight, _ in group)
        for action in variant.legal_actions(group[0][1][0]):
            groups = defaultdict(list)
            earned = sum(play(state, action, weight, groups) for weight, state in group)
            values[action] = (earned + sum(map(best, groups.values()))) / total
        look(np.concatenate([state for _, state in group]), values)
        if own is None:
            return total * max(values.values())
        (chances,) = own.probabilities(Turn(variant, group[0][1], one, new_streams(1, 1)))
        return total * sum(chances[action] * value for action, value in values.items())

    first = defaultdict(list)
    earned = sum(follow(state, chance, first) for chance, state in deals or every_deal(drawn))
    return earned + sum(map(best, first.values()))


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
