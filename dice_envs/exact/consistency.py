"""Whether an agent answers alike each time it is asked: in other batches, at other times, in games of its own.

An agent is asked twice before work begins (`probe`), where most random answers show, and again when it is done (`ask_again`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from dice_envs.agent import Agent, AgentError, Turn, Uniform, ask, name_of
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant
from dice_envs.exact.agents import KEPT, Answered, Asked

COMPARED = 64  # positions of random play at which an agent is asked twice before work begins
OWN_GAMES = 256  # that an agent plays from beginning to end, to be asked twice at all of their positions
MOST_OWN = 50_000  # positions of them, after which only FEW_LONG go on
FEW_LONG = 8
AGAIN = 16_384  # answers in the end; where all agree, answers that differ from them have chances of 2e-4 or less
SIZES = (KEPT, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)  # of the first batches of them; the others have KEPT rows
STEADY = 8  # matching repeats required before a mismatch in another batch is an error
FEW = 2  # positions that may differ because the first answer happened to be the rare one
ENOUGH = 10  # answers that differ, after which it is known how often they do


def positions_of_play(variant: Variant, seed: int, player: Agent | None = None, steps: int = 12) -> np.ndarray:
    """Return the positions with a choice in games that a player has with itself, (n,) states.

    Without one they are the first steps of uniformly random games.
    """
    batch, everybody, going = Batch(variant, OWN_GAMES, seed), new_streams(seed, OWN_GAMES), np.arange(OWN_GAMES)
    found: list[np.ndarray] = []
    while len(going) and (player is not None or len(found) < steps):
        positions = batch.states[going]
        found.append(positions[batch.legal()[going].sum(axis=1) > 1])
        batch.play(ask(player or Uniform(), variant, batch.states, going, everybody), going)
        going = going[batch.states["seat"][going] != OVER]
        going = going[:FEW_LONG] if sum(map(len, found)) > MOST_OWN else going
    return np.concatenate(found)


def probe(variant: Variant, player: Asked) -> None:
    """Ask twice before work begins: at a few positions of random play, where most random answers show, then at all of the
    agent's own games, whose last positions are rare elsewhere. Errors as of `ask_again`."""
    states = positions_of_play(variant, 0)
    if player.is_random or player.positions.kept is not None or not len(states):
        return
    states = states[np.linspace(0, len(states) - 1, min(COMPARED, len(states))).astype(np.int64)]
    player.probabilities(Turn(variant, states, np.arange(len(states)), new_streams(0, len(states))))
    ask_again(variant, player, COMPARED)
    if player.is_read:
        return
    states = positions_of_play(variant, 1, player.agent if isinstance(player.agent, Agent) else player)
    parts = np.array_split(np.arange(len(states)), -(-len(states) // KEPT) or 1)
    found = [player.probabilities(Turn(variant, states, part, player.streams[: len(part)])) for part in parts]
    player.own = Answered(states, np.concatenate(found))
    ask_again(variant, player, COMPARED)


def ask_again(variant: Variant, player: Asked, answers: int = AGAIN) -> None:
    """Ask again at a sample of the positions asked about so far, in batches of other sizes and orders, and at those of the
    agent's own games. Where an answer differs at random, go on until it is known how often.

    Args:
        variant: the game.
        player: the agent.
        answers: how many to ask for at the sample. Fewer of an agent whose numbers are read.

    Raises:
        RandomAnswers: an answer differs at random.
        AgentError: the same of an agent that promises to answer alike; or an answer depends on its row, on the other rows or
            on the number of rows in its batch, or on what the agent was asked before.
    """
    kept, repeats, own = player.positions.kept, player.repeats, player.own
    if kept is None:
        return
    answers = min(answers, COMPARED) if player.is_read else answers
    sizes = itertools.chain(SIZES, itertools.repeat(KEPT))
    begun = repeats.number
    while repeats.number < begun + (max(answers, KEPT) if repeats.differing else answers) and repeats.differing < ENOUGH:
        order = np.resize(player.rng.permutation(len(kept.states)), KEPT)
        _compare(variant, player, kept, order[: min(next(sizes), answers)])
    everywhere = np.arange(0 if own is None else len(own.states))
    for rows in np.array_split(player.rng.permutation(everywhere), -(-len(everywhere) // KEPT) or 1):
        if own is not None and repeats.differing < ENOUGH:
            _compare(variant, player, own, rows)
    if repeats.differing:
        player.differ()


def _compare(variant: Variant, player: Asked, before: Answered, rows: np.ndarray) -> None:
    """Ask again at some of the positions, and count the answers that differ. AgentError if they do not by chance."""

    def at(rows: np.ndarray) -> np.ndarray:
        return player.answer(Turn(variant, before.states, rows, player.streams[: len(rows)]))

    def differ(answers: np.ndarray, others: np.ndarray) -> np.ndarray:
        return np.asarray((np.abs(answers - others) > player.rounding).any(axis=1))

    found = at(rows)
    differs = differ(found, before.answers[rows])
    if differs.any() and not player.repeats.in_one_batch:
        cause = _cause(at, differ, rows, found, differs)
        if cause:
            raise AgentError(
                f"{player.name or name_of(player.agent)}: its answer at a position depends on {cause}; it must be the same "
                f"in every batch and at every time, but was not when {len(rows)} positions were asked about again: "
                f"{differs.sum()} answers differ"
            )
        player.repeats.in_one_batch = cause is None
    player.repeats.count(differs)


def _cause(
    at: Callable[[np.ndarray], np.ndarray],
    differ: Callable[[np.ndarray, np.ndarray], np.ndarray],
    rows: np.ndarray,
    found: np.ndarray,
    differs: np.ndarray,
) -> str | None:
    """Return what the differing answers depend on; "" if they may differ by chance; None if they do, because the same batch is
    answered in two ways."""

    def steady(rows: np.ndarray) -> np.ndarray | None:
        found = at(rows)
        return None if any(differ(at(rows), found).any() for _ in range(STEADY)) else found

    again = steady(rows)
    if again is None or differ(again, found).any():
        return None
    row, number = int(differs.argmax()), len(rows)
    sizes = number, max(2 * number, KEPT), 1, number
    alike, longer, alone, again = (steady(np.full(times, rows[row])) for times in sizes)
    if alike is None or longer is None or alone is None or again is None or differ(again, alike).any():
        return None
    if differ(alike, alike[:1]).any() or differ(longer, longer[:1]).any():
        return "the row that the position has in the batch"
    if differ(alike[:1], found[row : row + 1]).any():
        return "the other positions in the batch, as of a PyTorch module in training mode, which eval() ends"
    if differ(alike[:1], longer[:1]).any() or differ(alike[:1], alone).any():
        return "the number of positions in the batch"
    return "the batch, or on what it was asked before" if len(np.unique(rows[differs])) > FEW else ""
