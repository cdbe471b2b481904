"""`python -m dice_envs COMMAND`: the command line."""

from dice_envs.command import main

if __name__ == "__main__":
    main()
