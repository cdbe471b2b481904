"""`solve GAME`: exact values. A module here, named after the game, offers `main`, a typer command."""

GROUP = "Exact values of a game."
