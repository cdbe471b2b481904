"""A page to play on: games at tables, a link for each seat. `server.serve` starts it.

Without a browser: `table` has a game with its agents, the rights of a link to it, and slow work in threads; `forms` a game's
options as fields, `graph` a review's graph as SVG. With NiceGUI, from the extra `web`: `server`, `start_page` and `table_page`
with `moves`, `guide` and `review_panel` are the pages, `parts` and `style` what they share.
"""
