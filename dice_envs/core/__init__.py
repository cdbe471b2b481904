"""The contract of a game, and the loops over its states.

`game` holds the contract and finds games; `options`, `state`, `dice` and `view` are the tools that a game file is written
with; `kernel` and `parts` compile; `loops` and `batch` run many games; `expected` replaces rewards by their expectation
over a roll; `chance` enumerates rolls; `own` loads the user's own code; `files` writes files whole or not at all; `extras`
reports missing optional packages.
"""
