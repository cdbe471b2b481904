"""What an agent's play in Liar's Dice depends on: questions to it at positions of random play."""

from __future__ import annotations

from typing import Any

import numpy as np

from dice_envs.agent import Turn, fresh_memory, promises_of
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.exact.agents import AGAIN, STEADY, chances_of, is_random, positions_of_play

PROBED = 512  # positions at which an agent is tested for whether past rounds matter to it
# Each player's bids that calls may have shown there, and those of them that named a face it held most of.
PASTS = ((1, 0), (1, 1), (10, 0), (10, 5), (10, 10))
_ROUNDING = 1e-9
# State fields that calls have set.
_OF_THE_PAST = ("bids_shown", "bids_honest", "shown", "shown_bid", "shown_exact", "shown_palifico", "caller", "loser")


def past_rounds_matter(variant: Variant, agent: Any, seed: int = 0) -> bool | None:
    """Return whether dice and bids that calls have shown in past rounds make a difference to an agent.

    An agent may promise that they make none (`looks_back=False`, or `memoryless`). Any other is asked at positions of
    random play after the first round: as if no call had been seen, with the calls seen there, and with each of PASTS.

    Returns:
        True where a difference was seen, False where there can be none, None where none was seen, and where answers are
        random (`is_random`).
    """
    options = variant.options
    if options.rounds == "single" or sum(options.dice_per_seat) == 2:
        return False  # there are no past rounds
    promised = promises_of(agent)
    if promised.memoryless or not promised.looks_back:
        return False
    if promised.observes_only and not options.past_rounds:
        return False  # it does not observe them
    if is_random(agent):
        return None
    states = positions_of_play(variant, seed)
    states = states[states["in_play"] < sum(options.dice_per_seat)]
    states = states[np.linspace(0, len(states) - 1, min(PROBED, len(states))).astype(np.int64)]
    forgotten, fresh = states.copy(), Batch(variant, 1, seed).states
    for name in _OF_THE_PAST:
        forgotten[name] = fresh[name]
    everywhere, streams = np.arange(len(states)), new_streams(seed, len(states))

    def answers(positions: np.ndarray) -> np.ndarray:
        return chances_of(agent, Turn(variant, positions, everywhere, streams.copy()))

    expected = answers(forgotten)

    def matters(positions: np.ndarray) -> bool:
        found = answers(positions)
        if np.abs(found - expected).max() <= _ROUNDING:
            return False
        return all(np.array_equal(answers(positions), found) for _ in range(STEADY))  # else the answers are random

    if matters(states):
        return True
    for shown, honest in PASTS:
        forgotten["bids_shown"][:, : options.num_players], forgotten["bids_honest"][:, : options.num_players] = shown, honest
        if matters(forgotten):
            return True
    return None


_OF_PAST_ROUNDS = {
    True: "the best response is to how the agent plays before it has seen a call; past rounds matter to it, so the figure is "
    "neither an upper nor a lower bound of what can be won from it",
    None: f"past rounds made no difference to the agent at {PROBED} positions; it does not declare that they never do",
}
_RANDOM = "whether past rounds matter to the agent is not known, since its answers are random"


def note_on_past_rounds(variant: Variant, agent: Any, seed: int = 0) -> str | None:
    """Return what a reader of a measure should know of an agent to which past rounds may matter; None of any other."""
    matters = past_rounds_matter(variant, agent, seed)
    return _RANDOM if matters is None and is_random(agent) else _OF_PAST_ROUNDS.get(matters)


def check_steady(variant: Variant, player: Any, what: str, answers: int = AGAIN) -> None:
    """Raise ValueError, naming what is known of other agents, if the player's answers are random, as far as can be seen.

    It is asked again for so many answers at positions that it was asked about before.
    """
    player.ask_again(variant, answers)
    if player.is_random:
        raise ValueError(f"the answers of {player.name} are random: {what} is known for agents whose probabilities are fixed")


def check_fixed(variant: Variant, player: Any, what: str) -> None:
    """Raise ValueError, naming `what` is not known, unless the player has fixed probabilities and looks at one round only."""
    if fresh_memory(player.agent, 1) is not None:
        raise ValueError(f"{player.name} remembers past games: {what} is known for agents that look at one round only")
    player.probe(variant)
    check_steady(variant, player, what, answers=0)
    if not player.is_known:
        raise ValueError(
            f"{player.name} states no probabilities and does not promise deterministic=True: {what} is known for agents "
            "whose probabilities are fixed"
        )
    if past_rounds_matter(variant, player):
        raise ValueError(f"past rounds matter to {player.name}: {what} is known for agents that look at one round only")
