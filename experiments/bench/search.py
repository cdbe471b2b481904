"""Speed of search: games and simulations a second, beside OpenSpiel's C++ search."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from dice_envs import Batch, Turn, Uniform, configure
from dice_envs.agents.mcts import MCTS
from dice_envs.core.dice import new_streams
from dice_envs.experiments.arena import play_table
from dice_envs.experiments.bench import BenchPart, BenchRow, beside_openspiel, best_rate, best_seconds

BUDGET = 1000  # simulations a search
THREADS = 2


def _fatestones_games(quick: bool) -> Iterator[BenchRow]:
    variant = configure("fatestones")
    games = 1000 if quick else 10_000
    seconds = best_seconds(lambda: play_table(variant, [MCTS(50), Uniform()], games, 1))
    yield BenchRow(f"FateStones: {games:,} games MCTS(50) v random", seconds, "s", aim=1.0 * games / 10_000)


def _liars_dice_moves(quick: bool) -> Iterator[BenchRow]:
    search = MCTS(BUDGET)
    searches = 20 if quick else 200
    for num_dice in (1, 5):
        variant = configure("liars_dice", rules="openspiel", num_dice=num_dice)
        states = Batch(variant, searches, seed=1).states
        streams = new_streams(1, searches)

        def work(variant: Any = variant, states: Any = states, streams: Any = streams) -> Any:
            return search.act(Turn(variant, states, np.arange(len(states)), streams))

        ours = best_rate(work, searches * BUDGET)
        name = f"Liar's Dice, dice each: {num_dice}, first move: simulations"
        peer = functools.partial(_openspiel, num_dice=num_dice, searches=searches // 10)
        yield beside_openspiel(name, ours, "/s", peer, "OpenSpiel C++ MCTSBot", 3)
    together = dataclasses.replace(search, threads=THREADS)
    rate = best_rate(lambda: together.act(Turn(variant, states, np.arange(len(states)), streams)), searches * BUDGET)
    yield BenchRow(f"the same on {THREADS} threads", rate, "/s", peer=ours, peer_name="one thread")


def _openspiel(pyspiel: Any, num_dice: int, searches: int) -> float:
    """Return the simulations a second of OpenSpiel's C++ search in the same position, with one random rollout each.

    It sees both players' dice, so it need not sample the hidden ones (OpenSpiel's ISMCTSBot cannot play this game).
    """
    game = pyspiel.load_game(f"liars_dice(players=2,numdice={num_dice},dice_sides=6)")
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    bot = pyspiel.MCTSBot(game, pyspiel.RandomRolloutEvaluator(1, 1), 1.4, BUDGET, 1000, False, 1, False)
    return best_rate(lambda: [bot.step(state) for _ in range(searches)], searches * BUDGET)


PARTS = (BenchPart("fatestones", _fatestones_games), BenchPart("liars_dice", _liars_dice_moves))
