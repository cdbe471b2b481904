"""The contract of a game, and the loops over its states."""
