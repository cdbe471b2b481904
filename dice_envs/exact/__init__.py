"""Right answers: optimal play, equilibria and best responses, a module for each game."""
