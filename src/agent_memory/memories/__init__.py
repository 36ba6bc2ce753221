"""Memories, the kind of record that people know by name: what cleans them on the way in."""

from agent_memory.memories.cleaning import make_memory, redact_fields, redact_memory

__all__ = ["make_memory", "redact_fields", "redact_memory"]
