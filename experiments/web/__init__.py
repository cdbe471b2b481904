"""A page to play on: games at tables, a link for each seat. `server.serve` starts it.

Without a browser: `table` is a game and its agents, `place` the rights of a link to it, `tables` all tables and links, `work`
threads for slow work, `forms` a game's options as fields, `moves` the layout of legal moves, `graph` a review's graph as SVG.
With NiceGUI, from the extra `web`: `server`, `gate` checks all that comes in, `start_page` and `table_page` with its
`review_panel` are the pages, `parts` and `style` what they share.
"""
