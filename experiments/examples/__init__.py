"""Programs that read top to bottom: other people's learners on these games, one file each."""
