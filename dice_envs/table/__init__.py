"""People and agents at one table: the game, advice, the rules in words."""
