"""Memories of many agents and machines on a Qdrant server, which is the truth there."""
