"""Logs of games in their sources' formats: a module for each game, of its name.

`dice_envs.experiments.arena.play_table` calls `after_move(states, games, shift)` of a `Writer(variant)` with (m,) arrays: the
states of the games that have just moved, their numbers, and agent 0's seat. `text()` returns the whole log.
"""
