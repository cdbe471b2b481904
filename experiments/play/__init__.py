"""Play at the terminal.

`games` seats people and agents, opens saved games and plays them; `terminal` reads what people type and shows the table;
`reviews` holds reviews as text; `words` holds the text: how a move is named, mistakes, help, lists, advice.
"""
