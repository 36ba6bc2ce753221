"""Measure times and memory by the number of memories, against budgets."""
