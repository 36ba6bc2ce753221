"""Hooks of a session: what they hear, capture, ingest and show."""
