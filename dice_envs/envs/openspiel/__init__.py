"""Games as OpenSpiel games: OpenSpiel's algorithms run on them, and agents and policies are converted both ways.

`openspiel_game("liars_dice", num_dice=1)` makes a `pyspiel.Game`. Importing this package also registers every game, so
`pyspiel.load_game("dice_envs_liars_dice(num_dice=1)")` makes the same one.

Chance
    `chance="explicit"`: every draw is a chance node with all its outcomes and their probabilities
    (`dice_envs.core.chance`), so exact algorithms run. `chance="sampled"`: a chance node with a single outcome stands for
    the deal, and another for all draws after an action; applying the outcome draws. Sampling is much faster with many dice,
    and the only way for games whose chance cannot be enumerated. Pickles and copies of a sampled game keep its random stream.
    OpenSpiel's own `serialize_game_and_state` raises "GetRNGState unimplemented": it has no way to ask a game in Python.

What a player knows
    An observation is what the game's own `observe` writes. An information state lists the player's observations after the
    deal and after each action, with its own actions between them: perfect recall. With `perfect_recall=False` it is the
    current observation alone, as our agents see it. This merges information sets. Algorithms that assume perfect recall
    remain right where the history lost has no influence on the rest of the game.
    As strings, both list the entries of the observation that are not 0, or have changed, as INDEX=VALUE; `dice_envs.layout`
    explains them. `|` begins a new observation, `>ACTION` is an own action.

Returns
    All rewards are paid at the end (`RewardModel.TERMINAL`), because OpenSpiel's search requires it.
    A seat that is out before the end stays in the game and has no more moves.

`positions` says how a game moves on, `games` shows it to OpenSpiel and makes games by name; agents and policies are converted
here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import pyspiel
    from open_spiel.python.policy import Policy
except ImportError as problem:
    raise ImportError("dice_envs.envs.openspiel needs OpenSpiel: pip install 'dice-envs[openspiel]'") from problem

from dice_envs.agent import Promises, Turn, ask_probabilities, draw_actions
from dice_envs.core.dice import new_streams
from dice_envs.core.game import Variant
from dice_envs.core.options import check_seed
from dice_envs.envs.openspiel.games import PREFIX, DiceGame, DiceState, openspiel_game, register_all
from dice_envs.exact import asked

__all__ = ["PREFIX", "AgentPolicy", "DiceGame", "DiceState", "PolicyAgent", "estimate_positions", "openspiel_game"]

_MAX_WALKED = 10_000_000  # positions: half an hour
_PLAYS = 200  # random plays of an estimate


class AgentPolicy(Policy):
    """An agent as an OpenSpiel policy.

    Args:
        game: the game that is played.
        agent: a spec such as "numbers:bluff=0.25", an Agent, or a function from observations and action masks to action
            probabilities, as `dice_envs.measure` takes them. An agent without probabilities is asked for actions, many times
            if they differ; the policy is then their frequencies.
        seed: fixes the agent's random draws.

    An agent that remembers past games plays as at the beginning of a match.

    Raises:
        ValueError: no such agent, or it does not play the game.
    """

    def __init__(self, game: DiceGame, agent: Any, seed: int = 0) -> None:
        super().__init__(game, list(range(game.num_players())))
        self._agent = asked(agent, game.variant)
        self._streams = new_streams(check_seed(seed), 1)

    def action_probabilities(self, state: DiceState, player_id: int | None = None) -> dict[int, float]:
        """Return every legal action of the seat to move with its probability. ValueError where no seat is to move."""
        if not state.is_player_node():
            raise ValueError("a policy is asked for a state in which a player is to move, not at chance nodes or after the end")
        turn = Turn(self.game.variant, state.position.record, np.zeros(1, np.int64), self._streams)
        chances = ask_probabilities(self._agent, turn)[0]
        return {action: float(chances[action]) for action in state.legal_actions()}


class PolicyAgent:
    """An OpenSpiel policy as an agent, for `dice_envs.measure`, tournaments and environments.

    An agent sees the current observation alone. With perfect recall the policy's information states hold more, so the whole
    tree is walked once to find the policy at each observation; this needs explicit chance and a small game. With
    `perfect_recall=False` the policy is asked directly, in games of any size. Where a tabular policy has no entry, the agent
    chooses uniformly, and `note` says so, as do exact measures, which also ask at positions that no play reaches.

    A policy may treat seats differently; the agent then does too. One that is for some seats alone plays there, in a profile.

    Args:
        game: the game that the policy is for.
        policy: an `open_spiel.python.policy.Policy` or a `pyspiel.Policy`.

    Raises:
        ValueError: with perfect recall, the policy differs where a player's observation is the same, chance is sampled, or
            the game has more than about 10,000,000 positions.
    """

    def __init__(self, game: DiceGame, policy: Any) -> None:
        self.game = game
        self.policy = policy
        seats = tuple(getattr(policy, "player_ids", range(game.num_players())))
        self.promises = Promises(seats=seats if len(seats) < game.num_players() else None)
        self._known: dict[tuple[int, bytes], np.ndarray] = {}
        self._lacking: set[tuple[int, bytes]] = set()  # of them, those without an entry
        if game.perfect_recall:
            if game.chance != "explicit":
                raise ValueError(
                    f"chance must be 'explicit', not {game.chance!r}, to make an agent of a policy with perfect recall, which "
                    "takes a walk of the tree"
                )
            about = estimate_positions(game)
            if about > _MAX_WALKED:
                raise ValueError(
                    f"{game.variant} has about {about:.0e} positions, and {_MAX_WALKED:,} are allowed to make an agent of a "
                    "policy with perfect recall, which takes a walk of the tree: make the game with perfect_recall=False, or "
                    "smaller"
                )
            self._walk()

    @property
    def note(self) -> str:
        """At how many of the observations met so far the policy has no entry; empty if it has all."""
        lacking, met = len(self._lacking), len(self._known)
        return f"the policy has no entry at {lacking:,} of {met:,} observations, and plays uniformly there" if lacking else ""

    def check_variant(self, variant: Variant) -> None:
        """Raise ValueError for another variant than the policy's."""
        if not variant.same_rules(self.game.variant):
            raise ValueError(f"the policy plays {self.game.variant}, not {variant}")

    def act(self, turn: Turn) -> np.ndarray:
        return draw_actions(turn.streams, ask_probabilities(self, turn))

    def probabilities(self, turn: Turn) -> np.ndarray:
        rows = zip(turn.seats.tolist(), turn.observations, strict=True)
        own = self.promises.seats
        if own is not None and not np.isin(turn.seats, own).all():
            raise ValueError(f"the policy is a profile that has seats {', '.join(str(seat + 1) for seat in own)} alone")
        return np.stack([self._at(turn, row, seat, seen) for row, (seat, seen) in enumerate(rows)])

    def _at(self, turn: Turn, row: int, seat: int, seen: np.ndarray) -> np.ndarray:
        key = seat, seen.tobytes()
        if key not in self._known:
            if self.game.perfect_recall:  # the walk has met every observation that play can reach
                self._known[key] = turn.legal[row] / turn.legal[row].sum()
            else:
                self._known[key] = self._stated(DiceState(self.game, self.game.positions.at(turn.states[row])))
        return self._known[key]

    def _stated(self, state: DiceState) -> np.ndarray:
        """Return the policy's probabilities, (num_actions,) float64."""
        try:
            stated = self.policy.action_probabilities(state)
        except (KeyError, pyspiel.SpielError):  # a tabular policy without this information state; one in C++ has no actions
            stated = {}
        if not stated:
            seat = state.current_player()
            self._lacking.add((seat, state.position.observations[seat].tobytes()))
            stated = dict.fromkeys(state.legal_actions(), 1 / len(state.legal_actions()))
        chances = np.zeros(self.game.num_distinct_actions())
        for action, probability in stated.items():
            chances[state.get_game().positions.checked(state.position, action)] = probability
        return chances

    def _walk(self) -> None:
        """Fill `_known` from every position of the tree."""
        states, seats = [self.game.new_initial_state()], self.promises.seats or range(self.game.num_players())
        while states:
            state = states.pop()
            if state.is_terminal():
                continue
            if not state.is_chance_node() and (seat := state.current_player()) in seats:
                chances = self._stated(state)
                key = seat, state.position.observations[seat].tobytes()
                if np.abs(self._known.setdefault(key, chances) - chances).max() > 1e-9:
                    raise ValueError(
                        f"the policy differs between positions that look the same to player {seat}, and agents see no history: "
                        "make it for a game with perfect_recall=False"
                    )
            states += [state.child(action) for action in state.legal_actions()]


def estimate_positions(game: DiceGame) -> float:
    """Estimate the number of positions in the game's tree, chance nodes included, from random plays.

    A play counts the tree's positions as if every branch were as wide as its own: the mean over plays is unbiased.
    Source: D. E. Knuth, Estimating the efficiency of backtrack programs (1975).
    """
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(_PLAYS):
        state, width = game.new_initial_state(), 1.0
        while not state.is_terminal():
            total += width
            legal = state.legal_actions()
            width *= len(legal)
            state.apply_action(int(rng.choice(legal)))
        total += width
    return total / _PLAYS


register_all()
