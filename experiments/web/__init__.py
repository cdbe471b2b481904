"""A page to play on: games at tables, a link for each seat. `server.serve` starts it.

`tables` holds what goes on at the tables, `forms` and `moves` what there is to fill in and to click; none of them knows of
browsers. `start_page` and `table_page` show them with NiceGUI, which the extra `web` brings.
"""
