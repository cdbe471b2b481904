"""Play at the terminal.

`games` seats people and agents, opens saved games and plays them; `terminal` reads what people type and shows the table;
`words` holds the text: how a move is named, mistakes, help, lists, advice.
"""
