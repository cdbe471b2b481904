"""The games: a file each, or a folder whose `__init__` has the rules.

Every module here that ends with `GAME = Game.of(globals(), ...)` is found automatically.
"""
