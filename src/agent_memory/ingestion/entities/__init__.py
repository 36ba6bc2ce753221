"""Entities of stored texts: extraction, comparison, storage, reading and removal."""
