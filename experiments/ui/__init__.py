"""Input and output of commands.

`options` holds the arguments that several commands share; `console` is the terminal, `progress` shows long work; `grids` are
tables, `findings` those of published figures and of `measure`; `files` writes results, `plots` saves plots,
`page` writes reports.
"""
