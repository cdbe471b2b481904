"""The contract of a game, and the loops over its states.

`game` is the contract, the discovery of games and the checking of options; `state`, `dice` and `view` are what a game file is
written with; `kernel` compiles; `loops` and `batch` run many games; `expected` pays rolls in the mean; `chance` enumerates
them; `own` loads code of the user's own; `files` writes whole files; `extras` names missing ones.
"""
