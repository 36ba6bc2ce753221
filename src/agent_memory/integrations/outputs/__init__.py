"""Calls that read only the project: paths, shell words and local programs."""
