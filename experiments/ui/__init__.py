"""What commands take and show.

`options` are the arguments that several commands share; `console` is the terminal, `progress` shows long work; `grids` are
tables, `findings` those of published figures, `measures` those of `measure`; `files` writes results, `plots` plots, `page`
reports; `names` shortens the names of agents.
"""
