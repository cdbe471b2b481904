"""The games, one file each. Every module here that ends with `GAME = Game.of(globals(), ...)` is found automatically."""
