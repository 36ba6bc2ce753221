"""Measurements. Each prints a table; `--json` for machines."""
