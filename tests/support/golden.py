"""Golden playthroughs: one readable record for each game. `python -m tests.support.golden` rewrites them.

They pin the random stream, the rules and the words. After an intended change, read the difference before committing it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dice_envs import agents
from dice_envs.agent import ask
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, configure, names
from dice_envs.experiments.commands.sheet import write_sheet
from dice_envs.pictures.render import ansi

FOLDER = Path(__file__).resolve().parent.parent / "golden"
SHEET = "shakes_sheet.html"  # a score sheet
SEED = 2026
MOST_TURNS = 60
# The playthroughs by name: the game, its options and who plays. Those of Liar's Dice find legal bids in all ways: with any face
# and without, in order and by the table; all of them and the lowest ones, which `numbers` asks for.
PLAYTHROUGHS: dict[str, tuple[str, dict[str, Any], str]] = {name: (name, {}, "random") for name in names()} | {
    "perudo": ("liars_dice", {"rules": "perudo", "num_players": 3, "num_dice": 2}, "random"),
    "openspiel": ("liars_dice", {"raise_rule": "either", "wild": "highest", "num_dice": 2}, "random"),
    "numbers": ("liars_dice", {"num_players": 3, "num_dice": 2}, "numbers:bluff=0.6"),
    "palifico": ("liars_dice", {"num_players": 3, "num_dice": 2, "palifico": True, "exact_call": True}, "numbers:bluff=0.6"),
}


def playthrough(name: str) -> str:
    """A game as text: every picture, the observation's fingerprint, the action, the rewards."""
    game, options, player = PLAYTHROUGHS[name]
    variant, agent = configure(game, **options), agents.make(player)
    batch = Batch(variant, 1, seed=SEED)
    streams = new_streams(SEED + 1, 1)
    lines = [f"{name}, seed {SEED}, {player} play", f"facts: {variant.facts}", ""]
    for turn in range(MOST_TURNS):
        seat = int(batch.seats[0])
        lines.append(ansi(variant.picture(batch.states[0])))
        if seat == OVER:
            break
        observation = batch.observe()[0].astype(float)
        weights = np.arange(1, len(observation) + 1)
        lines.append(
            f"turn {turn}: player {seat}; observation sum {observation.sum():.4f}, weighted {observation @ weights:.3f}"
        )
        action = ask(agent, variant, batch.states, np.arange(1), streams)
        lines.append(f"legal {int(batch.legal().sum())}; plays {action[0]}: {variant.describe_action(int(action[0]))}")
        batch.play(action)
        lines.append(f"rewards {[round(float(r), 4) for r in batch.rewards[0]]}\n")
    return "\n".join(lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write_sheet(FOLDER / SHEET, configure("shakes"))
    for name in PLAYTHROUGHS:
        (FOLDER / f"{name}.txt").write_text(playthrough(name), encoding="utf-8")
        print(FOLDER / f"{name}.txt")
