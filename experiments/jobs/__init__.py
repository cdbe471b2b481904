"""Work that takes long: `workers` does it in parts, here or on Ray, and resumes it; `guard` ends it by Ctrl-C."""
