"""The commands: a module each, named like the command; its `main` is the command, its arguments the options.

A module with `group` in place of `main` holds a group of commands. PLACE orders the list of --help; commands without it
follow by name.
"""
