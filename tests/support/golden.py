"""Golden playthroughs: one readable record for each game. `python -m tests.support.golden` rewrites them.

They pin the random stream, the rules and the words. After an intended change, read the difference before committing it.
"""

import hashlib
import itertools
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dice_envs.agent import Uniform, ask
from dice_envs.agent.specs import make_agent
from dice_envs.core.batch import Batch
from dice_envs.core.dice import new_streams
from dice_envs.core.game import OVER, Variant, configure, names
from dice_envs.experiments.commands import sheet
from dice_envs.experiments.ui import console
from dice_envs.games.liars_dice.exact import solver
from dice_envs.games.liars_dice.raises import ROUND_KINDS
from dice_envs.pictures.render import ansi
from tests.support.commands import run

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
    {"raise_rule": rule, "wild": wild, **dict.fromkeys(ROUND_KINDS.values(), has_kinds), "exact_call": exact, **size}
    for (rule, wild), has_kinds, exact, size in itertools.product(
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


SOLVED = "solve"  # what `solve GAME` prints and writes
_SMALL_TABLE = "solve liars-dice -o num_players=3 -o num_dice=1 -o num_faces=2"
SOLVE_COMMANDS = [
    "solve fatestones --draws 200 --seed 1",
    "solve fatestones --draws 0 -o dice=111111,222222,333333,111666,123456,444444 --json",
    "solve fatestones --draws 100 --seed 3 -o hand_size=2 --json",
    "solve liars_dice -o num_dice=1 -o num_faces=3 --json",
    "solve liars_dice -o num_dice=2,1 -o num_faces=2 -o rounds=single --precision 1e-7 --report",
    f"{_SMALL_TABLE} --precision 1e-12 --json --report",
    f"{_SMALL_TABLE} -o rounds=single",
    "solve score_dice -o pool_a=6,6,6 -o pool_b=6,8 -o ties=reroll --json --report",
    "solve score_dice -o pool_a=6,6,6,6,6 -o pool_b=6,6,8,8,8 -o ties=a --pairing unsorted",
    "solve shakes -o num_players=2 --json",
    "solve shakes -o reward=win --policy ucb:1",
    "solve shakes -o num_players=2 -o open_efficacies=true --policy thompson --json",
    "solve thirties --json",
    "solve thirties --strategy beginner -o num_dice=3 -o num_faces=4 -o target=8 --goal optimal --json",
    "solve thirties -o num_faces=2 -o target=3 --strategy thirties:heuristic --json",
    "solve thirties --goal tests.support.golden:even --strategy minimize_loss -o num_dice=2 --json",
    "solve thirties -o goal=optimal",
    "solve thirties -o num_players=3",
]


def even(score: int) -> bool:
    """A goal of the game of 30s: an even score."""
    return score % 2 == 0


def solve_text(command: str) -> str:
    """A command, what it prints, and the JSON and the names of the plots that it writes. No time seems to pass."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DICE_ENVS_CACHE", f"{folder}/kept")
        patch.setattr(solver, "clock", lambda: 0.0)
        patch.setattr("time.perf_counter", lambda: 0.0)
        patch.setattr(console, "width", 140)
        given = command.replace("--json", f"--json {folder}/found.json").replace("--report", f"--report {folder}")
        result = run(*given.split())
        lines = [f"$ {command}", *result.output.replace(folder, "FOLDER").replace("\\", "/").splitlines()]
        for path in sorted(Path(folder).glob("*.*")):
            lines.append(path.name)
            if path.suffix == ".json":
                lines.append(json.dumps(json.loads(path.read_text(), parse_float=lambda text: round(float(text), 9) + 0.0)))
    # What only rounding leaves is not the same everywhere.
    return re.sub(r"-?\d(?:\.\d+)?e-1\d|0\.0+e\+00", "0", "".join(f"{line.rstrip()}\n" for line in lines))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    sheet.main("shakes", FOLDER / SHEET)
    (FOLDER / f"{SOLVED}.txt").write_text("\n".join(map(solve_text, SOLVE_COMMANDS)), encoding="utf-8")
    (FOLDER / f"{RAISES}.txt").write_text(raises_text(), encoding="utf-8")
    for name in PLAYTHROUGHS:
        (FOLDER / f"{name}.txt").write_text(playthrough(name), encoding="utf-8")
        print(FOLDER / f"{name}.txt")
