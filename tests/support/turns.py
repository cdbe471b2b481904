"""Turns: an agent's at many states at once, and a learner's as they are played in tests."""

import numpy as np

from dice_envs.agent import Turn
from dice_envs.core.dice import new_streams
from dice_envs.envs.learner import SeatGames


def turn_at(variant, states, seed=1):
    """The turn of an agent that is asked at all of these states."""
    return Turn(variant, states, np.arange(len(states)), new_streams(seed, len(states)))


def begun(variant, opponents, count, seed=0, **arguments):
    """Games of a learner that have been dealt."""
    games, everything = SeatGames(variant, count, opponents, **arguments), np.arange(count)
    games.seed_games(everything, range(seed, seed + count))
    games.start(everything)
    return games


def random_actions(random, masks, mistakes):
    """Legal actions; in a share of the games illegal ones, or such that do not exist if all are legal."""
    actions = np.array([random.choice(np.flatnonzero(mask)) for mask in masks])
    if mistakes:
        wrong = random.random(len(masks)) < mistakes
        actions[wrong] = [int(np.argmin(np.append(mask, 0))) for mask in masks[wrong]]
    return actions


def played(variant, opponents, count, turns, seed=0, **arguments):
    """All results and states of games in which the learner plays at random, with both ways of beginning again."""
    games = begun(variant, opponents, count, seed, **arguments)
    random = np.random.default_rng(3)
    shown, begins = games.view(), np.zeros(count, bool)
    for turn in range(turns):
        actions = random_actions(random, shown.masks, 0.1 * (games.illegal_action == "lose"))
        restart = turn % 8 < 4
        done = games.advance(actions, begins, restart)
        shown, begins = done.shown, done.ended & (not restart)
        yield from (done.earned, done.ended, *done.shown)
        ends = np.flatnonzero(done.ended & restart)
        yield from (done.learners[ends], done.players[ends], done.returns[ends])
        yield from (array[ends] for array in done.finals)
        yield np.array([f"{game} {reason}" for game, reason in games.illegal.items()])
        kept = games.snapshot()
        yield from (kept[field] for field in ("states", "streams", "learners", "players", "earned", "returns"))
        yield kept["memories"] if kept["memories"].size else np.zeros(0)
