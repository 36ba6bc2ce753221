"""Qdrant engines of a memory: embedded next to files, or a server."""
