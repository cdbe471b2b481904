"""Liar's Dice for two to six players: what a player gains by leaving the strategy of all others, and coalitions.

`seating` has the tables at which rounds begin and what follows each; `walk` values one round for several parties at once;
`shares` puts rounds together, and `measures` fulfils the contract of `dice_envs.exact`. `solver` solves whole games round by
round with `cfr`, `store` keeps the rounds, `solution` plays them.
"""
