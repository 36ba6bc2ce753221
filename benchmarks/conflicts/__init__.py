"""Measure which conflicts of ordinary notes are reported."""
