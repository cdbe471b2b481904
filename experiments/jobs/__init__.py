"""Work in parts that survive a stop, on one machine or on Ray; Ctrl-C."""
