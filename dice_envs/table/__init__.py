"""People and agents at one table: the game (`sitting`), hints and reviews (`advice`), the rules in words (`rules`)."""
