"""Measure how well search finds the memories that answer a question."""
