"""Measure how well names in conversations are found, with precision first."""
