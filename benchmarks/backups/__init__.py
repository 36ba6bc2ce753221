"""Measure backups next to writing processes, and kill what makes them."""
