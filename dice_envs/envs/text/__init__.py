"""Games in words: the prompt for a seat, the move in a reply, and environments whose observations and actions are texts.

`prompts` writes prompts from a game's own words and pictures, `replies` reads moves. `TextEnv` has Gymnasium's form,
`TextTable` serves several seats; `InWords` is any agent, playing through words. `verifiers` and `textarena` are environments
of these libraries.
"""

from dice_envs.envs.text.env import TextEnv
from dice_envs.envs.text.prompts import prompt
from dice_envs.envs.text.replies import IllegalMove, Unreadable, read_reply
from dice_envs.envs.text.table import InWords, TextTable

__all__ = ["IllegalMove", "InWords", "TextEnv", "TextTable", "Unreadable", "prompt", "read_reply"]
