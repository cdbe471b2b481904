"""Games in words: the prompt for a seat, the move in a reply, and environments whose observations and actions are texts.

`words` writes prompts from a game's own words and pictures, and reads moves. `TextEnv` has Gymnasium's form, `TextTable` serves
several seats; `InWords` is any agent, playing through words. `verifiers` and `textarena` are environments of these libraries.
"""

from dice_envs.envs.text.env import InWords, TextEnv, TextTable
from dice_envs.envs.text.words import IllegalMove, Unreadable, prompt, read_reply

__all__ = ["IllegalMove", "InWords", "TextEnv", "TextTable", "Unreadable", "prompt", "read_reply"]
