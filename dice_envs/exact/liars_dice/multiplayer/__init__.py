"""Strategies for Liar's Dice at tables of three to six players.

`solver` solves whole games round by round with `cfr`, `store` keeps the rounds, `solution` plays them.
"""
