"""A page to play on: games at tables, a link for each seat. `server.serve` starts it.

`table` has a game with its agents, the rights of a link to it, and slow work in threads, without a browser. With NiceGUI, from
the extra `web`: `server`, `start_page` and `table_page` with `moves` and `review_panel` are the pages, `parts` and
`style` what they share.
"""
