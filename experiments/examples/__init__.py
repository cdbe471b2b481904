"""Our environments in other people's code: programs that read top to bottom."""
