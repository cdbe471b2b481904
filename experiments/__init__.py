"""Programs that train, evaluate, solve and reproduce: `python -m experiments COMMAND`."""
