"""Every deal and every outcome of an action, with their probabilities, from draws with chosen outcomes."""

import numpy as np


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
