"""The contract of a game, and the loops over its states.

`game` holds the contract, compiles a game's loops and finds games; `options`, `state`, `dice` and `view` are the tools that a
game file is written with; `kernel` and `parts` compile; `batch` runs many games; `chance` enumerates rolls; `own` loads the
user's own code; `files` writes files whole or not at all; `machine` finds threads, memory, devices and extras; `work` says how
far long work is, and how much time and memory it may take.
"""
