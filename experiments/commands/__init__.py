"""The commands: a module each, of the command's name. Its `main` is the command, whose arguments are the options.

A module with `group` in place of `main` holds a group of commands.
"""

# The list of --help, by heading; commands that no heading names follow.
LISTED = {
    "Games and players": ("games", "agents"),
    "Train": ("train", "distill"),
    "Compare and measure": ("arena", "measure", "evaluate", "leaderboard", "benchmark"),
    "Play": ("play", "review", "sheet", "mcp"),
    "Exact and published figures, and speed": ("solve", "reproduce", "bench"),
}
