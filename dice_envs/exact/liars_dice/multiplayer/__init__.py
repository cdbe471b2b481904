"""Liar's Dice for two to six players: what a player gains by leaving the strategy of all others, and coalitions.

`seating` has the rounds of a game and what follows each; `walk` values one round for several parties at once; `measures`
puts rounds together.
"""
