"""Long work: `workers` divides it into parts, for processes here or on Ray, and resumes it; `guard` lets Ctrl-C end it."""
