"""Measure how well a model uses the memory with the instructions and schemas of the bundle."""
