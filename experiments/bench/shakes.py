"""The Shakes beside a plain Python version of the same game."""

from __future__ import annotations

import random
from collections.abc import Iterator

from dice_envs import Batch, agents, configure
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.bench import BenchRow, Part, best_rate

__all__ = ["PARTS"]

PLAYERS = 4
SEED = 1


def _patients(quick: bool) -> Iterator[BenchRow]:
    """Measure patients treated a second, in both environments."""
    steps = 2_000 if quick else 20_000
    batch = Batch("shakes", 512, seed=SEED, mode="physician", num_players=PLAYERS)
    kernels, params = batch.variant.kernels, batch.variant.params
    patients = best_rate(lambda: kernels.playouts(params, batch.states, steps), 512 * steps)
    source = random.Random(SEED)
    games = 100 if quick else 1000
    per_game = batch.variant.options.patients
    peer = best_rate(lambda: [_plain_game(source, argue=False) for _ in range(games)], games * per_game)
    name = "plain Python"
    yield BenchRow("shakes: physician, random treatments", patients / 1e6, "M/s", None, peer / 1e6, name, "patients")

    variant = configure("shakes", num_players=PLAYERS)
    players = [agents.make("dogmatic")] * PLAYERS
    count = 4096 if quick else 40_960
    ours = best_rate(lambda: play_table(variant, players, count, SEED), count * per_game)
    peer = best_rate(lambda: [_plain_game(source, argue=True) for _ in range(games)], games * per_game)
    note = "patients, every maester asked through the agents' interface"
    yield BenchRow("shakes: table of four dogmatic maesters", ours / 1e6, "M/s", None, peer / 1e6, name, note)


def _plain_game(source: random.Random, argue: bool) -> int:
    """Play one cooperative game of four in the obvious way; return the number of patients saved."""
    efficacies = [4, 2, 1, 1]
    source.shuffle(efficacies)
    treated, saved = [0] * PLAYERS, [0] * PLAYERS
    for _ in range(18):
        if argue:
            tied = list(range(PLAYERS))
            while len(tied) > 1:
                strength = [sorted(source.choices(range(1, 7), k=treated[i] + 1))[saved[i]] for i in tied]
                tied = [i for i, kept in zip(tied, strength, strict=True) if kept == max(strength)]
            chosen = tied[0]
        else:
            chosen = source.randrange(PLAYERS)
        treated[chosen] += 1
        saved[chosen] += source.randint(1, 6) <= efficacies[chosen]
    return sum(saved)


PARTS = (Part("shakes", _patients),)
