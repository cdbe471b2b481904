"""Logs of games in their sources' formats: one module a game, named like it.

`Writer(variant)` takes the moves of `dice_envs.experiments.arena.play_table` through `after_move(states, games, shift)`: the
states of the games that have just moved, their numbers, and how many seats agent 0 sits from seat 0, all (m,).
`text()` is then the whole log.
"""
