"""Measure hooks, imports, embedding, and search with the vector engine."""
