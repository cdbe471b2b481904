"""Every figure of a source beside ours: `reproduce SOURCE`. A module here offers `main`, a typer command."""
