"""Measure wrong acts on ordinary texts, and right acts done or offered."""
