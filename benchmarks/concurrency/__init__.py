"""Many processes on one agent: what they were told against what is there. Exits with 1 when anything was lost."""
