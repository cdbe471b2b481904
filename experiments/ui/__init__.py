"""What commands take and show.

`options` are the arguments that several commands share; `console` is the terminal, `progress` shows long work, `findings` rows
of figures, `measures` what `measure` found; `files` writes results, `plots` plots, `page` reports; `names` shortens.
"""
