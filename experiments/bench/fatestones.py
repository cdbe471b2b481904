"""FateStones and search: games and simulations a second, beside OpenSpiel's C++ search."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments.bench import BenchRow, best_rate, best_seconds

BUDGET = 1000  # simulations a search


def rows(quick: bool) -> Iterator[BenchRow]:
    """Yield the figures one by one."""
    from agents.mcts import MCTS
    from dice_envs import Batch, Uniform, configure
    from dice_envs.agent import Turn
    from dice_envs.dice import new_streams
    from dice_envs.exact.fatestones import draw_hands, solve_all, solve_draws
    from experiments.arena import play_table

    variant = configure("fatestones")
    batch = Batch(variant, 1024, seed=1)
    steps = 200 if quick else 2000
    rate = best_rate(lambda: variant.kernels.playouts(variant.params, batch.states, steps), 1024 * steps)
    yield BenchRow("FateStones: random play, steps", rate / 1e6, "M/s")

    games = 1000 if quick else 10_000
    seconds = best_seconds(lambda: play_table(variant, [MCTS(50), Uniform()], games, 1))
    yield BenchRow(f"FateStones: {games:,} games MCTS(50) v random", seconds, "s", aim=1.0 * games / 10_000)

    if quick:
        hands = draw_hands(variant, 5000, 1)
        yield BenchRow("FateStones: draws solved", best_rate(lambda: solve_draws(hands), len(hands)), "/s")
    else:
        start = time.perf_counter()
        draws = solve_all(variant)
        note = (
            f"best response {draws.best_response:.6f}, Nash {draws.nash:.6f} a draw against random; "
            f"at most {draws.gap:.0e} left to be won from Nash"
        )
        yield BenchRow(f"FateStones: all {draws.draws:,} draws solved", time.perf_counter() - start, "s", note=note)

    search = MCTS(BUDGET)
    for num_dice in (1, 5):
        liars = configure("liars_dice", rules="openspiel", num_dice=num_dice)
        searches = 20 if quick else 200
        states = Batch(liars, searches, seed=1).states
        streams = new_streams(1, searches)

        def work(liars: Any = liars, states: Any = states, streams: Any = streams) -> Any:
            return search.act(Turn(liars, states, np.arange(len(states)), streams))

        ours = best_rate(work, searches * BUDGET)
        name = f"Liar's Dice, dice each: {num_dice}, first move: simulations"
        peer = _openspiel(num_dice, searches // 10)
        if peer is None:
            yield BenchRow(name, ours, "/s", note="OpenSpiel is not installed")
        else:
            yield BenchRow(name, ours, "/s", aim=3 * peer, peer=peer, peer_name="OpenSpiel C++ MCTSBot")


def _openspiel(num_dice: int, searches: int) -> float | None:
    """Simulations a second of OpenSpiel's C++ search in the same position, with one random rollout each.

    It sees both players' dice, which spares it the drawing of hidden ones (its ISMCTSBot does not know this game).
    """
    try:
        import pyspiel
    except ImportError:
        return None
    game = pyspiel.load_game(f"liars_dice(players=2,numdice={num_dice},dice_sides=6)")
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    bot = pyspiel.MCTSBot(game, pyspiel.RandomRolloutEvaluator(1, 1), 1.4, BUDGET, 1000, False, 1, False)
    return best_rate(lambda: [bot.step(state) for _ in range(searches)], searches * BUDGET)
