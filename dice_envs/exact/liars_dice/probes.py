"""What an agent's play in Liar's Dice depends on: questions to it at positions of random play."""

from __future__ import annotations

from typing import Any

import numpy as np

from dice_envs.agent import Turn, ask_probabilities, fresh_memory
from dice_envs.core.batch import Batch
from dice_envs.core.dice import choose_from_mask, new_streams
from dice_envs.core.game import Variant
from dice_envs.core.kernel import kernel
from dice_envs.exact.agents import COMPARED

__all__ = ["PROBED", "check_fixed", "check_steady", "note_on_past_rounds", "past_rounds_matter", "see_if_random"]

PROBED = 512  # positions at which an agent is tested for whether past rounds matter to it
# Each player's bids that calls may have shown there, and those of them that named a face it held most of.
PASTS = ((1, 0), (1, 1), (10, 0), (10, 5), (10, 10))
_PROBE_GAMES, _PROBE_STEPS = 256, 12
_ROUNDING = 1e-9
# State fields that calls have set.
_OF_THE_PAST = ("bids_shown", "bids_honest", "shown", "shown_bid", "shown_exact", "shown_palifico", "caller", "loser")


@kernel
def _draw_legal(states, masks, actions):
    for i in range(len(actions)):
        actions[i] = choose_from_mask(states[i], masks[i])


def past_rounds_matter(variant: Variant, agent: Any, seed: int = 0) -> bool | None:
    """Return whether dice and bids that calls have shown in past rounds make a difference to an agent.

    An agent may declare that they make none (`looks_back = False`, or `memoryless`). Any other is asked at positions of
    random play after the first round: as if no call had been seen, with the calls seen there, and with each of PASTS.

    Returns:
        True where a difference was seen, False where there can be none, None where none was seen.
    """
    options = variant.options
    if options.rounds == "single" or sum(options.dice_per_seat) == 2:
        return False  # there are no past rounds
    if getattr(agent, "memoryless", False) or getattr(agent, "looks_back", None) is False:
        return False
    if getattr(agent, "observes_only", False) and not options.past_rounds:
        return False  # it does not observe them
    states = _positions(variant, seed, PROBED, later=True)
    forgotten, fresh = states.copy(), Batch(variant, 1, seed).states
    for name in _OF_THE_PAST:
        forgotten[name] = fresh[name]
    everywhere, streams = np.arange(len(states)), new_streams(seed, len(states))

    def answers(positions: np.ndarray) -> np.ndarray:
        return ask_probabilities(agent, Turn(variant, positions, everywhere, streams.copy()))

    expected = answers(forgotten)

    def matters(positions: np.ndarray) -> bool:
        return bool(np.abs(answers(positions) - expected).max() > _ROUNDING)

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


def note_on_past_rounds(variant: Variant, agent: Any, seed: int = 0) -> str | None:
    """Return what a reader of a measure should know of an agent to which past rounds may matter; None of any other."""
    return _OF_PAST_ROUNDS.get(past_rounds_matter(variant, agent, seed))


def _positions(variant: Variant, seed: int, most: int, later: bool = False) -> np.ndarray:
    """Return up to `most` positions of random play with a choice; with `later` only those after the first round."""
    batch = Batch(variant, _PROBE_GAMES, seed)
    positions = []
    for _ in range(_PROBE_STEPS):
        masks = batch.legal()
        wanted = masks.sum(axis=1) > 1
        if later:
            wanted &= batch.states["in_play"] < sum(variant.options.dice_per_seat)
        positions.append(batch.states[wanted])
        actions = np.zeros(_PROBE_GAMES, np.int64)
        _draw_legal(batch.states, masks, actions)
        going = np.flatnonzero(batch.states["seat"] >= 0)
        batch.play(actions[going], going)
    states = np.concatenate(positions)
    return states[np.linspace(0, len(states) - 1, min(most, len(states))).astype(np.int64)]


def see_if_random(variant: Variant, agent: Any) -> None:
    """Ask the agent at a few positions of random play, which sets its `is_random`."""
    states = _positions(variant, 0, COMPARED)
    ask_probabilities(agent, Turn(variant, states, np.arange(len(states)), new_streams(0, len(states))))


def check_steady(variant: Variant, player: Any, what: str) -> None:
    """Raise ValueError if the player's answers are random, as far as can be seen."""
    see_if_random(variant, player)
    if player.is_random:
        raise ValueError(f"the answers of {player.name} are random: {what} is known for agents whose probabilities are fixed")


def check_fixed(variant: Variant, player: Any, what: str) -> None:
    """Raise ValueError, naming `what` is not known, unless the player has fixed probabilities and looks at one round only."""
    if fresh_memory(player.agent, 1) is not None:
        raise ValueError(f"{player.name} remembers past games: {what} is known for agents that look at one round only")
    check_steady(variant, player, what)
    if past_rounds_matter(variant, player):
        raise ValueError(f"past rounds matter to {player.name}: {what} is known for agents that look at one round only")
