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

`positions` says how a game moves on, `games` shows it to OpenSpiel and makes games by name, `policies` converts agents and
policies.
"""

try:
    import open_spiel.python.policy  # noqa: F401
    import pyspiel  # noqa: F401
except ImportError as problem:
    raise ImportError("dice_envs.envs.openspiel needs OpenSpiel: pip install 'dice-envs[openspiel]'") from problem

from dice_envs.envs.openspiel.games import PREFIX, DiceGame, DiceState, openspiel_game, register_all
from dice_envs.envs.openspiel.policies import AgentPolicy, PolicyAgent, estimate_positions

__all__ = ["PREFIX", "AgentPolicy", "DiceGame", "DiceState", "PolicyAgent", "estimate_positions", "openspiel_game"]

register_all()
