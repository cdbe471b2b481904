"""Exact values: `solve GAME`. A module here, named after the game, offers `main`, a typer command."""
