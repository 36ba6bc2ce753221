"""Measure the ingestion of conversations: time of a turn, turns a second, disk space."""
