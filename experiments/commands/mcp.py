"""`mcp`: games for an assistant."""

from __future__ import annotations


def main() -> None:
    """Serve the games to an assistant by the Model Context Protocol, on standard input and output: it plays, asks for rules,
    hints and the price of a move, and reviews its play. The assistant's program starts this command.
    """
    from dice_envs.experiments.assistant import serve  # of an extra of its own

    serve()
