"""Golden playthroughs: one readable record for each game. `python -m tests.support.golden` rewrites them.

They pin the random stream, the rules and the words. After an intended change, read the difference before committing it.
"""

import hashlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from dice_envs.agent import Uniform, ask
from dice_envs.agent.specs import make_agent
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant, configure, names
from dice_envs.experiments.commands import sheet
from dice_envs.pictures.render import ansi

FOLDER = Path(__file__).resolve().parent.parent / "golden"
SHEET = "shakes_sheet.html"  # a score sheet
SEED = 2026
MOST_TURNS = 60
# The playthroughs by name: the game and its options.
PLAYTHROUGHS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in names()}
PLAYTHROUGHS |= {"perudo": ("liars_dice", {"rules": "perudo", "num_players": 3, "num_dice": 2})}


def playthrough(name: str) -> str:
    """A random game as text: every picture, the observation's fingerprint, the action, the rewards."""
    game, options = PLAYTHROUGHS[name]
    variant = configure(game, **options)
    batch = Batch(variant, 1, seed=SEED)
    streams = new_streams(SEED + 1, 1)
    lines = [f"{name}, seed {SEED}, random play", f"facts: {variant.facts}", ""]
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
        action = ask(Uniform(), variant, batch.states, np.arange(1), streams)
        lines.append(f"legal {int(batch.legal().sum())}; plays {action[0]}: {variant.describe_action(int(action[0]))}")
        batch.play(action)
        lines.append(f"rewards {[round(float(r), 4) for r in batch.rewards[0]]}\n")
    return "\n".join(lines)


RAISES = "liars_dice_raises"  # what may be bid in Liar's Dice, and which bids the seeds draw
# All raise rules with all that changes what may be bid, at tables of different sizes.
RAISE_VARIANTS: list[dict[str, Any]] = [
    {"raise_rule": rule, "wild": wild, "palifico": palifico, "exact_call": exact, **size}
    for (rule, wild), palifico, exact, size in itertools.product(
        [("quantity", None), ("either", "highest"), ("perudo", "ones")],
        [False, True],
        [False, True],
        [
            {"num_players": 2, "num_dice": (2, 1), "num_faces": 2},
            {"num_players": 2, "num_dice": 5, "num_faces": 6},
            {"num_players": 4, "num_dice": (3, 1, 2, 2), "num_faces": 3},
            {"num_players": 6, "num_dice": 6, "num_faces": 8},
        ],
    )
]


def raises_digest(options: dict[str, Any]) -> str:
    """Return a fingerprint of whole games of random play and of `numbers`: who moves, what is legal, what is drawn and paid."""
    variant, digest = configure("liars_dice", **options), hashlib.sha256()
    for player in (Uniform(), make_agent("numbers:bluff=0.6")):
        _play_whole_games(variant, player, digest)
    return digest.hexdigest()[:16]


def _play_whole_games(variant: Variant, player: Any, digest: Any) -> None:
    batch, streams = Batch(variant, 8, seed=SEED), new_streams(SEED + 1, 8)
    while len(playing := np.flatnonzero(batch.seats != OVER)):
        digest.update(batch.seats.tobytes() + np.packbits(batch.legal()).tobytes())
        actions = ask(player, variant, batch.states, playing, streams)
        batch.play(actions, playing)
        digest.update(actions.tobytes() + batch.rewards.tobytes())


def raises_text() -> str:
    """One line for each of `RAISE_VARIANTS`: its digest and its options."""
    return "".join(f"{raises_digest(options)} {options}\n" for options in RAISE_VARIANTS)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    sheet.main("shakes", FOLDER / SHEET)
    (FOLDER / f"{RAISES}.txt").write_text(raises_text(), encoding="utf-8")
    for name in PLAYTHROUGHS:
        (FOLDER / f"{name}.txt").write_text(playthrough(name), encoding="utf-8")
        print(FOLDER / f"{name}.txt")
