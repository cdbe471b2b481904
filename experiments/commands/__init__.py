"""The commands: a module each, of the command's name. Its `main` is the command, whose arguments are the options.

A module with `group` in place of `main` holds a group of commands. PLACE orders the list of --help; commands without it
follow by name.
"""
