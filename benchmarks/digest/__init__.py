"""Measure in which words a digest stores right and wrong statements of a scripted model."""
