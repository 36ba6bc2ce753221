"""Measure how well `match` separates questions that a memory answers from others."""
