"""Measure the candidates for requests to forget, and what is forgotten without a choice."""
