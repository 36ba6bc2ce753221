"""Helpers of the project itself; not installed."""
