"""What commands show: the terminal, pages of reports, plots."""
