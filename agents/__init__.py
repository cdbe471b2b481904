"""Baselines, heuristics and exact players, made from specs such as `numbers:bluff=0.25` (see `dice_envs.agent.specs`).

Every module here may offer agents in a dictionary `AGENTS`: name → frozen dataclass with an `act` method (see
`dice_envs.agent.Agent`). Its fields are the agent's parameters, its docstring is what `dice-envs agents`
prints. `plays` names the game of an agent (see `dice_envs.agents.base.OfOneGame`), or is a tuple of games; agents without
it play any game. `check_variant` refuses variants that an agent does not play.

The module of a game's name may list opponents in words, from the weakest to the strongest, in `LEVELS`: words → spec, of which
the second is the usual opponent; other names of agents in `ALIASES`: name → spec; policies for search in `ROLLOUTS`: name →
kernel; its player of optimal play in `NASH`: "nash" → function of a precision; and a class of games that try a choice in
`TRIALS`: "hint" → class (see `dice_envs.agents.hint.UsualGames`).
"""

from pathlib import Path

POLICIES = Path(__file__).resolve().parent / "policies"  # folder of the policies that come with the package
