"""Checks that a call reads only the project: paths, shell words, programs."""
